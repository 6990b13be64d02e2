/* SPDX-License-Identifier: Apache-2.0 */
/* ro-crate-metadata.json. Sources: RO-Crate 1.1 (w3id.org/ro/crate/1.1), Workflow Run Crate 0.5 (w3id.org/ro/wfrun/workflow/0.5),
   Workflow RO-Crate 1.0 (w3id.org/workflowhub/workflow-ro-crate/1.0), which it builds on. */
#include "base/base.h"

#include "evidence/evidence.h"

#define PROFILE_PROCESS  "https://w3id.org/ro/wfrun/process/0.5"
#define PROFILE_WORKFLOW "https://w3id.org/ro/wfrun/workflow/0.5"
#define PROFILE_HUB      "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
#define ID_ACTION        "#run"
#define ID_ENGINE        "#reperf"
#define ID_LANGUAGE      "#reperf-manifest"
#define ID_BYTES         (3 * USTAR_NAME_MAX + 1)

/* "@id"s are relative URIs: what RFC 3986 does not let stand in a path is written %XX. */
static void file_id(struct str name, char ret_id[ID_BYTES])
{
    static const char PLAIN[] = "-._~/!$&'()*+,;=@";
    size_t len = 0;
    for (size_t idx = 0; idx < name.len; idx++) {
        unsigned char c = (unsigned char)name.ptr[idx];
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                        (c >= 'a' && c <= 'z') || (c && strchr(PLAIN, c));
        len += (size_t)snprintf(ret_id + len, ID_BYTES - len, is_plain ? "%c" : "%%%02X", c);
    }
    ret_id[len] = '\0';
}

static void add_ref(struct json_out *out, const char *key, const char *id)
{
    jw_object(out, key);
    jw_z(out, "@id", id);
    jw_end_object(out);
}

static void add_file_ref(struct json_out *out, const char *key, struct str name)
{
    char id[ID_BYTES];
    file_id(name, id);
    add_ref(out, key, id);
}

static void begin_entity(struct json_out *out, const char *id, const char *type)
{
    jw_object(out, NULL);
    jw_z(out, "@id", id);
    jw_z(out, "@type", type);
}

/* The report's manifest is the workflow: it says what is run, how, and what is read from the logs. */
static size_t workflow_idx(const struct evidence_files *files)
{
    size_t found = files->n;
    for (size_t idx = 0; idx < files->n; idx++) {
        struct str name = files->items[idx].name;
        if (str_eq_z(name, "manifest/report.json")) {
            return idx;
        }
        if (found == files->n && str_starts(name, STR_LIT("manifest/"))) {
            found = idx;
        }
    }
    ASSERT(found < files->n);
    return found;
}

static void add_descriptor(struct json_out *out)
{
    begin_entity(out, EVIDENCE_CRATE, "CreativeWork");
    jw_array(out, "conformsTo");
    add_ref(out, NULL, "https://w3id.org/ro/crate/1.1");
    add_ref(out, NULL, PROFILE_HUB);
    jw_end_array(out);
    add_ref(out, "about", "./");
    jw_end_object(out);
}

static void add_root(struct json_out *out, const struct evidence_facts *facts,
                     const struct evidence_files *files, struct str workflow, struct str time)
{
    begin_entity(out, "./", "Dataset");
    jw_array(out, "conformsTo");
    add_ref(out, NULL, PROFILE_PROCESS);
    add_ref(out, NULL, PROFILE_WORKFLOW);
    add_ref(out, NULL, PROFILE_HUB);
    jw_end_array(out);
    jw_str(out, "name", facts->run_id);
    jw_str(out, "identifier", facts->run_id);
    jw_z(out, "description",
         "Evidence of one run of reperf: manifest, pins, environment, raw logs, series, verdicts.");
    jw_str(out, "datePublished", time);
    /* RO-Crate wants one; only who ran it can give one. */
    jw_z(out, "license", "No licence is stated.");
    jw_array(out, "hasPart");
    for (size_t idx = 0; idx < files->n; idx++) {
        add_file_ref(out, NULL, files->items[idx].name);
    }
    jw_end_array(out);
    add_file_ref(out, "mainEntity", workflow);
    jw_array(out, "mentions");
    add_ref(out, NULL, ID_ACTION);
    jw_end_array(out);
    jw_end_object(out);
}

static void add_file(struct json_out *out, const struct evidence_file *file, bool is_workflow)
{
    char id[ID_BYTES];
    file_id(file->name, id);
    jw_object(out, NULL);
    jw_z(out, "@id", id);
    if (is_workflow) {
        jw_array(out, "@type");
        jw_z(out, NULL, "File");
        jw_z(out, NULL, "SoftwareSourceCode");
        jw_z(out, NULL, "ComputationalWorkflow");
        jw_end_array(out);
        add_ref(out, "programmingLanguage", ID_LANGUAGE);
    } else {
        jw_z(out, "@type", "File");
    }
    jw_str(out, "name", file->name);
    if (str_ends(file->name, STR_LIT(".json"))) {
        jw_z(out, "encodingFormat", "application/json");
    } else if (str_ends(file->name, STR_LIT(".log"))) {
        jw_z(out, "encodingFormat", "text/plain");
    }
    jw_i64(out, "contentSize", (int64_t)file->size_bytes);
    jw_end_object(out);
}

static void add_action(struct json_out *out, const struct evidence_facts *facts,
                       const struct evidence_files *files, struct str workflow)
{
    begin_entity(out, ID_ACTION, "CreateAction");
    jw_str(out, "name", facts->run_id);
    add_file_ref(out, "instrument", workflow);
    if (facts->finished_at.ptr) {
        jw_str(out, "endTime", facts->finished_at);
    }
    add_ref(out, "actionStatus",
            facts->outcome == EVIDENCE_FAILED ? "http://schema.org/FailedActionStatus"
                                              : "http://schema.org/CompletedActionStatus");
    jw_array(out, "object");
    for (size_t idx = 0; idx < files->n; idx++) {
        if (str_starts(files->items[idx].name, STR_LIT("lock/"))) {
            add_file_ref(out, NULL, files->items[idx].name);
        }
    }
    jw_end_array(out);
    jw_array(out, "result");
    for (size_t idx = 0; idx < files->n; idx++) {
        struct str name = files->items[idx].name;
        if (str_starts(name, STR_LIT("logs/")) || str_starts(name, STR_LIT("series/")) ||
            str_eq_z(name, EVIDENCE_RESULT)) {
            add_file_ref(out, NULL, name);
        }
    }
    jw_end_array(out);
    jw_end_object(out);
}

static void add_profile(struct json_out *out, const char *id, const char *name, const char *version)
{
    begin_entity(out, id, "CreativeWork");
    jw_z(out, "name", name);
    jw_z(out, "version", version);
    jw_end_object(out);
}

static void add_contexts(struct json_out *out)
{
    begin_entity(out, ID_LANGUAGE, "ComputerLanguage");
    jw_z(out, "name", "reperf report manifest");
    jw_z(out, "version", "1");
    jw_end_object(out);
    begin_entity(out, ID_ENGINE, "SoftwareApplication");
    jw_z(out, "name", "reperf");
    jw_z(out, "softwareVersion", REPERF_VERSION);
    jw_end_object(out);
    begin_entity(out, "#organize", "OrganizeAction");
    jw_z(out, "name", "reperf run");
    add_ref(out, "instrument", ID_ENGINE);
    add_ref(out, "result", ID_ACTION);
    jw_end_object(out);
    add_profile(out, PROFILE_PROCESS, "Process Run Crate", "0.5");
    add_profile(out, PROFILE_WORKFLOW, "Workflow Run Crate", "0.5");
    add_profile(out, PROFILE_HUB, "Workflow RO-Crate", "1.0");
}

void evidence_crate(struct strbuf *buf, const struct evidence_facts *facts,
                    const struct evidence_files *files, struct str time)
{
    size_t main_idx = workflow_idx(files);
    struct str workflow = files->items[main_idx].name;
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_z(&out, "@context", "https://w3id.org/ro/crate/1.1/context");
    jw_array(&out, "@graph");
    add_descriptor(&out);
    add_root(&out, facts, files, workflow, time);
    for (size_t idx = 0; idx < files->n; idx++) {
        add_file(&out, &files->items[idx], idx == main_idx);
    }
    add_action(&out, facts, files, workflow);
    add_contexts(&out);
    jw_end_array(&out);
    jw_end_object(&out);
}
