/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: SHA256SUMS: sha256sum(1). Statements: github.com/in-toto/attestation, spec/predicates/test-result.md (v0.1);
   slsa.dev/spec/v1.0/provenance. ro-crate-metadata.json: RO-Crate 1.1 (w3id.org/ro/crate/1.1), Workflow Run Crate 0.5
   (w3id.org/ro/wfrun/workflow/0.5), Workflow RO-Crate 1.0 (w3id.org/workflowhub/workflow-ro-crate/1.0), which it builds on.
   Envelopes: github.com/secure-systems-lab/dsse, envelope.md and protocol.md. */
#include "base/base.h"

#include "evidence/evidence.h"

#include "base/clock.h"
#include "codec/json_table.h"
#include "codec/pattern.h"
#include "report/run_id.h"

#define PROFILE_PROCESS  "https://w3id.org/ro/wfrun/process/0.5"
#define PROFILE_WORKFLOW "https://w3id.org/ro/wfrun/workflow/0.5"
#define PROFILE_HUB      "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
#define ID_ACTION        "#run"
#define ID_ENGINE        "#reperf"
#define ID_LANGUAGE      "#reperf-manifest"
#define ID_BYTES         (3 * USTAR_NAME_MAX + 1)
#define PAE_MAX          (JSON_TEXT_MAX + SIGN_DSSE_TYPE_MAX)
#define TEXT_SHOWN       80 /* bytes of a foreign text that a message quotes */
#define VERSION_MAX      64
#define JOURNAL_MARK     "\"name\":\"journal.jsonl\",\"digest\":{\"sha256\":\""

const char *const EVIDENCE_OUTCOME_NAMES[] = {"PASSED", "WARNED", "FAILED"};

/* --- result.json ------------------------------------------------------------------------------ */

static const char *const VERDICTS[] = {"reproduced", "faster",  "slower",
                                       "failed",     "not_run", "not_comparable"};
static const enum evidence_outcome OUTCOMES[] = {EVIDENCE_PASSED, EVIDENCE_WARNED, EVIDENCE_FAILED,
                                                 EVIDENCE_FAILED, EVIDENCE_WARNED, EVIDENCE_WARNED};

static int check_cell(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    struct evidence_cell *cell = out;
    cell->name = cell->name.ptr ? cell->name : cell->case_id;
    cell->outcome = OUTCOMES[cell->verdict];
    return cell->name.ptr ? 0 : json_fail(at, err, "expected a member \"case\", found none");
}

static const struct json_field CELL_ROWS[] = {
    ROW("cell", struct evidence_cell, name, 0),
    ROW("case", struct evidence_cell, case_id, 0),
    ROW_WORD("verdict", struct evidence_cell, verdict, VERDICTS, JSON_REQUIRED),
    ROW_OTHERS,
};
static const struct json_field FACTS_ROWS[] = {
    ROW("run_id", struct evidence_facts, run_id, JSON_REQUIRED),
    ROW("report", struct evidence_facts, report, JSON_REQUIRED),
    ROW("finished_at", struct evidence_facts, finished_at, JSON_NULLABLE),
    ROW_LIST("cells", struct evidence_facts, cells, n_cells, CELL_ROWS, JSON_REQUIRED, .min = 1,
             .max = EVIDENCE_CELLS_MAX, .check = check_cell),
    ROW_OTHERS,
};

int evidence_facts(struct arena *arena, struct str result_json, const char *name,
                   struct evidence_facts *ret_facts, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct evidence_facts facts = {.counts = ""};
    size_t n_of[ARRAY_LEN(VERDICTS)] = {0};
    if (json_parse(result_json, name, &doc, err) < 0 ||
        json_decode(&doc.root, arena, FACTS_ROWS, ARRAY_LEN(FACTS_ROWS), &facts, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < facts.n_cells; idx++) {
        const struct evidence_cell *cell = &facts.cells[idx];
        facts.outcome = cell->outcome > facts.outcome ? cell->outcome : facts.outcome;
        n_of[cell->verdict]++;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(VERDICTS); idx++) {
        if (n_of[idx] && OUTCOMES[idx] != EVIDENCE_PASSED) {
            facts.counts = arena_printf(arena, "%s%s%zu %s", facts.counts,
                                        *facts.counts ? ", " : "", n_of[idx], VERDICTS[idx]);
        }
    }
    *ret_facts = facts;
    return 0;
}

/* --- SHA256SUMS ------------------------------------------------------------------------------- */

void evidence_sums(struct strbuf *buf, const struct evidence_files *files)
{
    for (size_t idx = 0; idx < files->n; idx++) {
        if (ustar_closing_rank(files->items[idx].name) == 0) {
            strbuf_printf(buf, "%s  %.*s\n", sha256_hex_of(files->items[idx].sha256).text,
                          STR_ARG(files->items[idx].name));
        }
    }
}

static struct str name_of_line(struct str line)
{
    return str_sub(line, SHA256_HEX_SIZE - 1 + 2, line.len);
}

/* How a line differs from what the files require; ptr NULL: there is none. */
static int line_differs(struct str line, size_t line_no, struct str wanted, struct err *err)
{
    int order = !line.ptr     ? 1
                : !wanted.ptr ? -1
                              : str_cmp(name_of_line(line), name_of_line(wanted));
    struct str found = str_sub(line, 0, USTAR_NAME_MAX);
    if (line.ptr && line.len < SHA256_HEX_SIZE + 2) {
        return err_set(err, ERR_INTEGRITY, USTAR_SUMS " line %zu: expected a digest and a name",
                       line_no);
    }
    if (order < 0) {
        return err_set(err, ERR_INTEGRITY, "%.*s: missing, " USTAR_SUMS " line %zu names it",
                       STR_ARG(name_of_line(found)), line_no);
    }
    if (order > 0) {
        return err_set(err, ERR_INTEGRITY, "%.*s: added, " USTAR_SUMS " does not name it",
                       STR_ARG(name_of_line(wanted)));
    }
    return err_set(err, ERR_INTEGRITY,
                   "%.*s: its SHA-256 is %.*s, " USTAR_SUMS " line %zu says %.*s",
                   STR_ARG(name_of_line(wanted)), STR_ARG(str_sub(wanted, 0, SHA256_HEX_SIZE - 1)),
                   line_no, STR_ARG(str_sub(line, 0, SHA256_HEX_SIZE - 1)));
}

int evidence_sums_check(struct str text, const struct evidence_files *files, struct err *err)
{
    CLEANUP(strbuf) struct strbuf sums = STRBUF(EVIDENCE_SUMS_MAX);
    evidence_sums(&sums, files);
    struct str wanted = strbuf_str(&sums);
    if (text.len == 0 || text.ptr[text.len - 1] != '\n') {
        return err_set(err, ERR_INTEGRITY, USTAR_SUMS ": expected a line end at the end");
    }
    for (size_t line_no = 1; text.len || wanted.len; line_no++) {
        struct str line = STR_EMPTY, want = STR_EMPTY;
        (void)(text.len && str_next(&text, '\n', &line));
        (void)(wanted.len && str_next(&wanted, '\n', &want));
        if (!line.ptr || !want.ptr || !str_eq(line, want)) {
            return line_differs(line, line_no, want, err);
        }
    }
    return 0;
}

/* --- statements ------------------------------------------------------------------------------- */

const char *evidence_statement_name(enum evidence_kind kind)
{
    return kind == EVIDENCE_TEST_RESULT ? USTAR_STATEMENT : USTAR_PROVENANCE;
}

static const char *predicate_type(enum evidence_kind kind)
{
    return kind == EVIDENCE_TEST_RESULT ? "https://in-toto.io/attestation/test-result/v0.1"
                                        : "https://slsa.dev/provenance/v1";
}

static const char STATEMENT_TYPE[] = "https://in-toto.io/Statement/v1";

static bool is_subject(const struct evidence_file *file)
{
    return ustar_closing_rank(file->name) <= 1;
}

/* What went into the run: pins and manifests. */
static bool is_input(const struct evidence_file *file)
{
    return str_starts(file->name, STR_LIT("manifest/")) || str_starts(file->name, STR_LIT("lock/"));
}

static void put_descriptors(struct json_out *out, const char *key,
                            const struct evidence_files *files,
                            bool (*is_wanted)(const struct evidence_file *file))
{
    jw_array(out, key);
    for (size_t idx = 0; idx < files->n; idx++) {
        if (!is_wanted(&files->items[idx])) {
            continue;
        }
        JW(out, "{'name': ?, 'digest': {'sha256': ?}}", files->items[idx].name,
           str_of(sha256_hex_of(files->items[idx].sha256).text));
    }
    jw_end_array(out);
}

static const char *const LISTS[] = {"passedTests", "warnedTests", "failedTests"};

static void put_test_result(struct json_out *out, const struct evidence_facts *facts,
                            const struct evidence_files *files)
{
    jw_z(out, "result", EVIDENCE_OUTCOME_NAMES[facts->outcome]);
    put_descriptors(out, "configuration", files, is_input);
    for (size_t list = 0; list < ARRAY_LEN(LISTS); list++) {
        jw_array(out, LISTS[list]);
        for (size_t idx = 0; idx < facts->n_cells; idx++) {
            if (facts->cells[idx].outcome == (enum evidence_outcome)list) {
                jw_str(out, NULL, facts->cells[idx].name);
            }
        }
        jw_end_array(out);
    }
}

static void put_provenance(struct json_out *out, const struct evidence_facts *facts,
                           const struct evidence_files *files, struct str version)
{
    JW(out,
       "'buildDefinition': {'buildType': 'urn:x-reperf:run:1', 'externalParameters': {'report': ?}",
       facts->report);
    put_descriptors(out, "resolvedDependencies", files, is_input);
    JW(out,
       "}, 'runDetails': {'builder': {'id': 'urn:x-reperf:local', 'version': {'reperf': ?}},"
       " 'metadata': {'invocationId': ?",
       version, facts->run_id);
    if (facts->finished_at.ptr) {
        jw_str(out, "finishedOn", facts->finished_at);
    }
    jw_end_object(out);
    /* The journal chains all records before it, and each has the files that it wrote. */
    if (facts->journal.ptr) {
        JW(out, "'byproducts': [{'name': 'journal.jsonl', 'digest': {'sha256': ?}}]",
           facts->journal);
    }
    jw_end_object(out);
}

void evidence_statement(struct strbuf *buf, enum evidence_kind kind,
                        const struct evidence_facts *facts, const struct evidence_files *files,
                        struct str version)
{
    struct json_out out;
    jw_begin(&out, buf, true);
    jw_object(&out, NULL);
    JW(&out, "'_type': ?", str_of(STATEMENT_TYPE));
    put_descriptors(&out, "subject", files, is_subject);
    JW(&out, "'predicateType': ?", str_of(predicate_type(kind)));
    jw_object(&out, "predicate");
    if (kind == EVIDENCE_TEST_RESULT) {
        put_test_result(&out, facts, files);
    } else {
        put_provenance(&out, facts, files, version);
    }
    jw_end_object(&out);
    jw_end_object(&out);
}

/* ---- checking: each text is made again, of the files and of what it says of its maker, and compared ---- */

/* Between a mark and the next quotation mark; ptr NULL: there is no such mark. */
static struct str text_after(struct str text, const char *mark)
{
    int64_t at = str_find(text, str_of(mark));
    struct str rest = at < 0 ? STR_EMPTY : str_sub(text, (size_t)at + strlen(mark), text.len);
    struct str value = STR_EMPTY;
    (void)str_next(&rest, '"', &value);
    return value;
}

int evidence_version_check(struct str version, const char *name, struct err *err)
{
    return str_is_made_of(version, "0-9a-z.+-") && version.len <= VERSION_MAX
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: expected a version of reperf", name);
}

int evidence_same_text(struct str found, struct str wanted, const char *name, struct err *err)
{
    size_t at = 0;
    while (at < found.len && at < wanted.len && found.ptr[at] == wanted.ptr[at]) {
        at++;
    }
    return str_eq(found, wanted)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: not what reperf writes there, from byte %zu on: \"%.*s\", "
                         "expected \"%.*s\"",
                         name, at, STR_ARG(str_sub(found, at, at + TEXT_SHOWN)),
                         STR_ARG(str_sub(wanted, at, at + TEXT_SHOWN)));
}

int evidence_statement_check(struct arena *arena, struct str payload, enum evidence_kind kind,
                             struct evidence_facts *facts, const struct evidence_files *files,
                             struct err *err)
{
    CLEANUP(strbuf) struct strbuf wanted = STRBUF(JSON_TEXT_MAX);
    const char *name = evidence_statement_name(kind);
    struct str version = STR_LIT(REPERF_VERSION);
    if (kind == EVIDENCE_PROVENANCE) {
        /* The program that sealed it may be another than this one. Statements from before the journal was signed, and those of
           folders without one, name none. */
        struct str journal = text_after(payload, JOURNAL_MARK);
        version = text_after(payload, "\"version\":{\"reperf\":\"");
        facts->journal = journal.ptr ? str_dup(arena, journal) : STR_EMPTY;
    }
    if (evidence_version_check(version, name, err) < 0) {
        return -1;
    }
    evidence_statement(&wanted, kind, facts, files, version);
    return evidence_same_text(payload, strbuf_str(&wanted), name, err);
}

/* ---- RO-Crate ---- */

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
static void put_file_ref(struct json_out *out, struct str name)
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

static void put_root(struct json_out *out, const struct evidence_facts *facts,
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
        put_file_ref(out, files->items[idx].name);
    }
    JW(out, "], 'mainEntity': {'@id': ?}, 'mentions': [{'@id': '" ID_ACTION "'}]}",
       str_of(workflow));
}

static void put_file(struct json_out *out, const struct evidence_file *file, bool is_workflow)
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

static void put_action(struct json_out *out, const struct evidence_facts *facts,
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
            put_file_ref(out, files->items[idx].name);
        }
    }
    jw_fill(out, "], 'result': [", NULL);
    for (size_t idx = 0; idx < files->n; idx++) {
        struct str name = files->items[idx].name;
        if (str_starts(name, STR_LIT("logs/")) || str_starts(name, STR_LIT("series/")) ||
            str_eq_z(name, EVIDENCE_RESULT)) {
            put_file_ref(out, name);
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
    put_root(&out, facts, files, workflow, marks->time);
    for (size_t idx = 0; idx < files->n; idx++) {
        put_file(&out, &files->items[idx], idx == main_idx);
    }
    put_action(&out, facts, files, workflow);
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

/* The same moment in the same form, and not before the run; an id of no run says no moment. */
static int check_time(const struct evidence_facts *facts, struct str time, struct err *err)
{
    static const char FORM[] = "\\A[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}\\.[0-9]{3}Z\\z";
    const size_t seconds = sizeof("2026-11-21T11:53:00") - 1;
    struct patterns patterns = {0};
    char begun[RFC3339_MAX];
    bool holds = facts->finished_at.ptr ? str_eq(time, facts->finished_at)
                                        : patterns_find(&patterns, FORM, time, NULL, 0);
    patterns_release(&patterns);
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
    const struct evidence_crate_marks marks = {text_after(text, "\"softwareVersion\": \""),
                                               text_after(text, "\"datePublished\": \"")};
    struct evidence_files described = {.items =
                                           arena_array(arena, struct evidence_file, files->n + 1)};
    bool has_workflow = false;
    if (evidence_version_check(marks.version, EVIDENCE_CRATE, err) < 0 ||
        check_time(facts, marks.time, err) < 0) {
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

/* ---- envelopes ---- */

static int sign_payload(struct str payload, const struct sign_key *key,
                        uint8_t ret_signature[SIGN_BYTES], struct err *err)
{
    CLEANUP(strbuf) struct strbuf pae = STRBUF(PAE_MAX);
    dsse_pae(&pae, STR_LIT(EVIDENCE_PAYLOAD_TYPE), payload);
    ASSERT(!pae.is_full);
    return sign_message(key, strbuf_str(&pae), ret_signature, err);
}

struct dsse_text { /* as it stands there */
    struct str payload;
    struct dsse_signature {
        struct str key_id, sig;
    } * items;
    size_t n;
};
static const struct json_field SIGNATURE_ROWS[] = {
    ROW("keyid", struct dsse_signature, key_id, JSON_REQUIRED),
    ROW("sig", struct dsse_signature, sig, JSON_REQUIRED),
};
static const struct json_field ENVELOPE_ROWS[] = {
    ROW_ALONE("payloadType", JSON_CONST, JSON_REQUIRED, .is = EVIDENCE_PAYLOAD_TYPE),
    ROW("payload", struct dsse_text, payload, JSON_REQUIRED),
    ROW_LIST("signatures", struct dsse_text, items, n, SIGNATURE_ROWS, JSON_REQUIRED, .max = 1),
};

static void write_envelope(struct strbuf *buf, const struct evidence_envelope *envelope)
{
    CLEANUP(strbuf) struct strbuf payload, sig;
    strbuf_init(&payload, 2 * (size_t)JSON_TEXT_MAX);
    strbuf_init(&sig, (size_t)4 * SIGN_BYTES);
    base64_encode(&payload, envelope->payload);
    base64_encode(&sig, (struct str){(const char *)envelope->signature, SIGN_BYTES});
    struct dsse_signature signature = {str_of(envelope->key_id), strbuf_str(&sig)};
    const struct dsse_text text = {strbuf_str(&payload), &signature, envelope->is_signed};
    struct json_out out;
    jw_begin(&out, buf, true);
    json_encode_object(&out, NULL, ENVELOPE_ROWS, ARRAY_LEN(ENVELOPE_ROWS), &text);
    strbuf_add_char(buf, '\n');
}

int evidence_envelope(struct strbuf *buf, struct str payload, const struct sign_key *key,
                      struct err *err)
{
    struct evidence_envelope envelope = {.payload = payload, .is_signed = key != NULL};
    if (payload.len > JSON_TEXT_MAX / 4 * 3 - 1024) {
        return err_set(err, ERR_DISK, "a statement of %zu bytes: too many files or cells",
                       payload.len);
    }
    if (key) {
        memcpy(envelope.key_id, key->id, sizeof(envelope.key_id));
        if (sign_payload(payload, key, envelope.signature, err) < 0) {
            return -1;
        }
    }
    write_envelope(buf, &envelope);
    return 0;
}

static int read_envelope(const struct json *root, struct arena *arena,
                         struct evidence_envelope *envelope, struct err *err)
{
    struct dsse_text text = {0};
    struct str bytes;
    if (json_decode(root, arena, ENVELOPE_ROWS, ARRAY_LEN(ENVELOPE_ROWS), &text, err) < 0 ||
        base64_decode(arena, text.payload, &envelope->payload, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < text.n; idx++) {
        struct str id = text.items[idx].key_id;
        if (base64_decode(arena, text.items[idx].sig, &bytes, err) < 0) {
            return -1;
        }
        if (bytes.len != SIGN_BYTES || id.len != SIGN_KEY_ID_SIZE - 1) {
            return json_fail(root, err, "expected an Ed25519 signature and a key id");
        }
        envelope->is_signed = true;
        memcpy(envelope->signature, bytes.ptr, SIGN_BYTES);
        memcpy(envelope->key_id, id.ptr, id.len);
    }
    return 0;
}

int evidence_envelope_read(struct arena *arena, struct str text, const char *name,
                           struct evidence_envelope *ret_envelope, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf wanted = STRBUF(2 * (size_t)JSON_TEXT_MAX);
    struct evidence_envelope envelope = {0};
    if (json_parse(text, name, &doc, err) < 0 ||
        read_envelope(&doc.root, arena, &envelope, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    write_envelope(&wanted, &envelope);
    *ret_envelope = envelope;
    return evidence_same_text(text, strbuf_str(&wanted), name, err);
}

int evidence_envelope_check(const struct evidence_envelope *envelope, const struct sign_key *key,
                            struct err *err)
{
    CLEANUP(strbuf) struct strbuf pae = STRBUF(PAE_MAX);
    if (!envelope->is_signed) {
        return err_set(err, ERR_INTEGRITY, "not signed");
    }
    if (strcmp(envelope->key_id, key->id) != 0) {
        return err_set(err, ERR_INTEGRITY, "signed by key %.16s, expected key %.16s",
                       envelope->key_id, key->id);
    }
    dsse_pae(&pae, STR_LIT(EVIDENCE_PAYLOAD_TYPE), envelope->payload);
    return sign_check(key, strbuf_str(&pae), envelope->signature, err);
}
