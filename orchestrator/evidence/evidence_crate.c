/* SPDX-License-Identifier: Apache-2.0 */
/* ro-crate-metadata.json. Sources: RO-Crate 1.1 (w3id.org/ro/crate/1.1), Workflow Run Crate 0.5 (w3id.org/ro/wfrun/workflow/0.5),
   Workflow RO-Crate 1.0 (w3id.org/workflowhub/workflow-ro-crate/1.0), which it builds on. */
#include "base/base.h"

#include "evidence/evidence.h"

#include "base/clock.h"
#include "report/run_id.h"

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
    /* RO-Crate requires one; only the person who ran it can choose one. */
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

static void add_contexts(struct json_out *out, struct str version)
{
    begin_entity(out, ID_LANGUAGE, "ComputerLanguage");
    jw_z(out, "name", "reperf report manifest");
    jw_z(out, "version", "1");
    jw_end_object(out);
    begin_entity(out, ID_ENGINE, "SoftwareApplication");
    jw_z(out, "name", "reperf");
    jw_str(out, "softwareVersion", version);
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
                    const struct evidence_files *files, const struct evidence_crate_marks *marks)
{
    size_t main_idx = workflow_idx(files);
    struct str workflow = files->items[main_idx].name;
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_z(&out, "@context", "https://w3id.org/ro/crate/1.1/context");
    jw_array(&out, "@graph");
    add_descriptor(&out);
    add_root(&out, facts, files, workflow, marks->time);
    for (size_t idx = 0; idx < files->n; idx++) {
        add_file(&out, &files->items[idx], idx == main_idx);
    }
    add_action(&out, facts, files, workflow);
    add_contexts(&out, marks->version);
    jw_end_array(&out);
    jw_end_object(&out);
}

/* ---- checking ---- */

static int text_of(const struct json *at, const char *key, struct arena *arena,
                   struct str *ret_text, struct err *err)
{
    struct json member;
    return json_member(at, key, &member, err) < 0 ? -1 : json_str(&member, arena, ret_text, err);
}

static int read_marks(struct str text, struct arena *arena, struct evidence_crate_marks *marks,
                      struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json graph, item;
    if (json_parse(text, EVIDENCE_CRATE, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    if (json_member(&root, "@graph", &graph, err) < 0) {
        return -1;
    }
    for (bool more = json_first(&graph, &item); more; more = json_next(&item)) {
        struct str id;
        if (text_of(&item, "@id", arena, &id, err) < 0 ||
            (str_eq_z(id, "./") && text_of(&item, "datePublished", arena, &marks->time, err) < 0) ||
            (str_eq_z(id, ID_ENGINE) &&
             text_of(&item, "softwareVersion", arena, &marks->version, err) < 0)) {
            return -1;
        }
    }
    return 0;
}

/* The same moment in the same form, and not before the run; an id of no run says no moment. */
static int check_time(const struct evidence_facts *facts, struct str time, struct err *err)
{
    static const char SHAPE[] = "dddd-dd-ddTdd:dd:dd.dddZ";
    const size_t seconds = sizeof("2026-11-21T11:53:00") - 1;
    char begun[RFC3339_MAX];
    bool holds =
        facts->finished_at.ptr ? str_eq(time, facts->finished_at) : time.len == sizeof(SHAPE) - 1;
    for (size_t idx = 0; holds && !facts->finished_at.ptr && idx < time.len; idx++) {
        char c = time.ptr[idx];
        holds = SHAPE[idx] == 'd' ? c >= '0' && c <= '9' : c == SHAPE[idx];
    }
    if (holds && run_id_is_valid(facts->run_id)) {
        run_id_time(facts->run_id, begun);
        holds = str_cmp(str_sub(time, 0, seconds), str_sub(str_of(begun), 0, seconds)) >= 0;
    }
    return holds ? 0
                 : err_set(err, ERR_INTEGRITY,
                           EVIDENCE_CRATE ": datePublished \"%.*s\": expected a time after the "
                                          "run began",
                           STR_ARG(str_sub(time, 0, 40)));
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct evidence_file *)a)->name,
                   ((const struct evidence_file *)b)->name);
}

int evidence_crate_check(struct arena *arena, struct str text, const struct evidence_facts *facts,
                         const struct evidence_files *files, struct err *err)
{
    CLEANUP(strbuf) struct strbuf wanted = STRBUF(JSON_TEXT_MAX);
    struct evidence_crate_marks marks = {0};
    struct evidence_files described = {.items =
                                           arena_array(arena, struct evidence_file, files->n + 1)};
    bool has_workflow = false;
    if (read_marks(text, arena, &marks, err) < 0 ||
        evidence_version_check(marks.version, EVIDENCE_CRATE, err) < 0 ||
        check_time(facts, marks.time, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    for (size_t idx = 0; idx < files->n; idx++) {
        const struct evidence_file *file = &files->items[idx];
        if (!ustar_closing_rank(file->name) && !str_eq_z(file->name, EVIDENCE_CRATE)) {
            described.items[described.n++] = *file;
            has_workflow = has_workflow || str_starts(file->name, STR_LIT("manifest/"));
        }
    }
    if (!has_workflow) {
        return err_set(err, ERR_INTEGRITY, "manifest/: nothing is there");
    }
    qsort(described.items, described.n, sizeof(*described.items), by_name);
    evidence_crate(&wanted, facts, &described, &marks);
    return evidence_same_text(text, strbuf_str(&wanted), EVIDENCE_CRATE, err);
}
