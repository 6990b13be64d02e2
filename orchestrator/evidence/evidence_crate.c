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

/* {"@id"}, as an item. */
static void add_file_ref(struct json_out *out, struct str name)
{
    char id[ID_BYTES];
    file_id(name, id);
    JW(out, "{'@id': ?}", str_of(id));
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

static void add_root(struct json_out *out, const struct evidence_facts *facts,
                     const struct evidence_files *files, const char *workflow, struct str time)
{
    JW(out,
       "{'@id': './', '@type': 'Dataset',"
       " 'conformsTo': [{'@id': '" PROFILE_PROCESS "'}, {'@id': '" PROFILE_WORKFLOW "'},"
       " {'@id': '" PROFILE_HUB "'}],"
       " 'name': ?, 'identifier': ?, 'description': 'Evidence of one run of reperf: manifest, "
       "pins, "
       "environment, raw logs, series, verdicts.', 'datePublished': ?,",
       facts->run_id, facts->run_id, time);
    /* RO-Crate requires a licence; only the person who ran it can choose one. */
    jw_fill(out, "'license': 'No licence is stated.', 'hasPart': [", NULL);
    for (size_t idx = 0; idx < files->n; idx++) {
        add_file_ref(out, files->items[idx].name);
    }
    JW(out, "], 'mainEntity': {'@id': ?}, 'mentions': [{'@id': '" ID_ACTION "'}]}",
       str_of(workflow));
}

static void add_file(struct json_out *out, const struct evidence_file *file, bool is_workflow)
{
    char id[ID_BYTES];
    file_id(file->name, id);
    JW(out, "{'@id': ?", str_of(id));
    if (is_workflow) {
        jw_fill(out,
                "'@type': ['File', 'SoftwareSourceCode', 'ComputationalWorkflow'],"
                " 'programmingLanguage': {'@id': '" ID_LANGUAGE "'}",
                NULL);
    } else {
        jw_fill(out, "'@type': 'File'", NULL);
    }
    jw_str(out, "name", file->name);
    if (str_ends(file->name, STR_LIT(".json"))) {
        jw_fill(out, "'encodingFormat': 'application/json'", NULL);
    } else if (str_ends(file->name, STR_LIT(".log"))) {
        jw_fill(out, "'encodingFormat': 'text/plain'", NULL);
    }
    jw_i64(out, "contentSize", (int64_t)file->size_bytes);
    jw_end_object(out);
}

static void add_action(struct json_out *out, const struct evidence_facts *facts,
                       const struct evidence_files *files, const char *workflow)
{
    JW(out, "{'@id': '" ID_ACTION "', '@type': 'CreateAction', 'name': ?, 'instrument': {'@id': ?}",
       facts->run_id, str_of(workflow));
    if (facts->finished_at.ptr) {
        jw_str(out, "endTime", facts->finished_at);
    }
    JW(out, "'actionStatus': {'@id': ?}, 'object': [",
       facts->outcome == EVIDENCE_FAILED ? STR_LIT("http://schema.org/FailedActionStatus")
                                         : STR_LIT("http://schema.org/CompletedActionStatus"));
    for (size_t idx = 0; idx < files->n; idx++) {
        if (str_starts(files->items[idx].name, STR_LIT("lock/"))) {
            add_file_ref(out, files->items[idx].name);
        }
    }
    jw_fill(out, "], 'result': [", NULL);
    for (size_t idx = 0; idx < files->n; idx++) {
        struct str name = files->items[idx].name;
        if (str_starts(name, STR_LIT("logs/")) || str_starts(name, STR_LIT("series/")) ||
            str_eq_z(name, EVIDENCE_RESULT)) {
            add_file_ref(out, name);
        }
    }
    jw_fill(out, "]}", NULL);
}

void evidence_crate(struct strbuf *buf, const struct evidence_facts *facts,
                    const struct evidence_files *files, const struct evidence_crate_marks *marks)
{
    size_t main_idx = workflow_idx(files);
    char workflow[ID_BYTES];
    struct json_out out;
    file_id(files->items[main_idx].name, workflow);
    jw_begin(&out, buf, false);
    jw_fill(&out,
            "{'@context': 'https://w3id.org/ro/crate/1.1/context', '@graph': ["
            "{'@id': '" EVIDENCE_CRATE "', '@type': 'CreativeWork',"
            " 'conformsTo': [{'@id': 'https://w3id.org/ro/crate/1.1'}, {'@id': '" PROFILE_HUB
            "'}], 'about': {'@id': './'}}",
            NULL);
    add_root(&out, facts, files, workflow, marks->time);
    for (size_t idx = 0; idx < files->n; idx++) {
        add_file(&out, &files->items[idx], idx == main_idx);
    }
    add_action(&out, facts, files, workflow);
    JW(&out,
       "{'@id': '" ID_LANGUAGE "', '@type': 'ComputerLanguage', 'name': 'reperf report manifest',"
       " 'version': '1'},"
       " {'@id': '" ID_ENGINE "', '@type': 'SoftwareApplication', 'name': 'reperf',"
       " 'softwareVersion': ?},"
       " {'@id': '#organize', '@type': 'OrganizeAction', 'name': 'reperf run',"
       " 'instrument': {'@id': '" ID_ENGINE "'}, 'result': {'@id': '" ID_ACTION "'}},"
       " {'@id': '" PROFILE_PROCESS "', '@type': 'CreativeWork', 'name': 'Process Run Crate',"
       " 'version': '0.5'},"
       " {'@id': '" PROFILE_WORKFLOW "', '@type': 'CreativeWork', 'name': 'Workflow Run Crate',"
       " 'version': '0.5'},"
       " {'@id': '" PROFILE_HUB "', '@type': 'CreativeWork', 'name': 'Workflow RO-Crate',"
       " 'version': '1.0'}]}",
       marks->version);
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
