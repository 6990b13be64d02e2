/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/evidence.h"

#define TEXT_SHOWN  80 /* bytes of a foreign text that a message quotes */
#define VERSION_MAX 64

const char *const EVIDENCE_OUTCOME_NAMES[] = {"PASSED", "WARNED", "FAILED"};

/* --- result.json ------------------------------------------------------------------------------ */

static const struct {
    const char *verdict;
    enum evidence_outcome outcome;
} VERDICTS[] = {
    {"reproduced", EVIDENCE_PASSED}, {"faster", EVIDENCE_WARNED},
    {"slower", EVIDENCE_FAILED},     {"failed", EVIDENCE_FAILED},
    {"not_run", EVIDENCE_WARNED},    {"not_comparable", EVIDENCE_WARNED},
};

static int read_str(const struct json *at, const char *key, struct arena *arena,
                    struct str *ret_value, struct err *err)
{
    struct json member;
    if (json_member(at, key, &member, err) < 0) {
        return -1;
    }
    return json_str(&member, arena, ret_value, err);
}

static int read_cell(const struct json *at, struct arena *arena, struct evidence_cell *ret_cell,
                     size_t n_of[], struct err *err)
{
    struct json ignored;
    struct str verdict;
    const char *key = json_find(at, "cell", &ignored) ? "cell" : "case";
    if (read_str(at, key, arena, &ret_cell->name, err) < 0 ||
        read_str(at, "verdict", arena, &verdict, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(VERDICTS); idx++) {
        if (str_eq_z(verdict, VERDICTS[idx].verdict)) {
            ret_cell->outcome = VERDICTS[idx].outcome;
            n_of[idx]++;
            return 0;
        }
    }
    return json_fail(at, err, "unknown verdict \"%.40s\"", verdict.ptr);
}

static int read_cells(const struct json *at, struct arena *arena, struct evidence_facts *facts,
                      struct err *err)
{
    struct json list, item;
    size_t n_of[ARRAY_LEN(VERDICTS)] = {0};
    if (json_member(at, "cells", &list, err) < 0 ||
        json_expect_array(&list, EVIDENCE_CELLS_MAX, &facts->n_cells, err) < 0) {
        return -1;
    }
    if (facts->n_cells == 0) {
        return json_fail(&list, err, "expected at least one cell");
    }
    facts->cells = arena_array(arena, struct evidence_cell, facts->n_cells);
    facts->outcome = EVIDENCE_PASSED;
    facts->n_cells = 0;
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct evidence_cell *cell = &facts->cells[facts->n_cells++];
        if (read_cell(&item, arena, cell, n_of, err) < 0) {
            return -1;
        }
        facts->outcome = cell->outcome > facts->outcome ? cell->outcome : facts->outcome;
    }
    facts->counts = "";
    for (size_t idx = 0; idx < ARRAY_LEN(VERDICTS); idx++) {
        if (n_of[idx] && VERDICTS[idx].outcome != EVIDENCE_PASSED) {
            facts->counts =
                arena_printf(arena, "%s%s%zu %s", facts->counts, *facts->counts ? ", " : "",
                             n_of[idx], VERDICTS[idx].verdict);
        }
    }
    return 0;
}

int evidence_facts(struct arena *arena, struct str result_json, const char *name,
                   struct evidence_facts *ret_facts, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct evidence_facts facts = {0};
    struct json finished;
    if (json_parse(result_json, name, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    if (read_str(&root, "run_id", arena, &facts.run_id, err) < 0 ||
        read_str(&root, "report", arena, &facts.report, err) < 0 ||
        read_cells(&root, arena, &facts, err) < 0) {
        return -1;
    }
    if (json_find(&root, "finished_at", &finished) && !json_is_null(&finished) &&
        json_str(&finished, arena, &facts.finished_at, err) < 0) {
        return -1;
    }
    *ret_facts = facts;
    return 0;
}

/* --- SHA256SUMS ------------------------------------------------------------------------------- */

static void add_sum(struct strbuf *buf, const struct evidence_file *file)
{
    strbuf_printf(buf, "%s  %.*s\n", sha256_hex_of(file->sha256).text, STR_ARG(file->name));
}

void evidence_sums(struct strbuf *buf, const struct evidence_files *files)
{
    for (size_t idx = 0; idx < files->n; idx++) {
        if (ustar_closing_rank(files->items[idx].name) == 0) {
            add_sum(buf, &files->items[idx]);
        }
    }
}

static struct str name_of_line(struct str line)
{
    return str_sub(line, SHA256_HEX_SIZE - 1 + 2, line.len);
}

/* Describes how the line differs from what the file requires. */
static int line_differs(struct str line, size_t line_idx, struct str wanted, struct err *err)
{
    int order = str_cmp(name_of_line(line), name_of_line(wanted));
    struct str found = str_sub(line, 0, USTAR_NAME_MAX);
    if (line.len < SHA256_HEX_SIZE + 2) {
        return err_set(err, ERR_INTEGRITY, USTAR_SUMS " line %zu: expected a digest and a name",
                       line_idx + 1);
    }
    if (order < 0) {
        return err_set(err, ERR_INTEGRITY, "%.*s: missing, " USTAR_SUMS " line %zu names it",
                       STR_ARG(name_of_line(found)), line_idx + 1);
    }
    if (order > 0) {
        return err_set(err, ERR_INTEGRITY, "%.*s: added, " USTAR_SUMS " does not name it",
                       STR_ARG(name_of_line(wanted)));
    }
    return err_set(err, ERR_INTEGRITY,
                   "%.*s: its SHA-256 is %.*s, " USTAR_SUMS " line %zu says %.*s",
                   STR_ARG(name_of_line(wanted)), STR_ARG(str_sub(wanted, 0, SHA256_HEX_SIZE - 1)),
                   line_idx + 1, STR_ARG(str_sub(line, 0, SHA256_HEX_SIZE - 1)));
}

static int check_lines(struct str text, const struct evidence_files *files, struct strbuf *wanted,
                       struct err *err)
{
    struct str rest = text, line = STR_EMPTY;
    size_t line_idx = 0;
    for (size_t idx = 0; idx < files->n; idx++) {
        if (ustar_closing_rank(files->items[idx].name)) {
            continue;
        }
        strbuf_clear(wanted);
        add_sum(wanted, &files->items[idx]);
        struct str want = str_sub(strbuf_str(wanted), 0, wanted->len - 1);
        if (rest.len == 0) {
            return err_set(err, ERR_INTEGRITY, "%.*s: added, " USTAR_SUMS " does not name it",
                           STR_ARG(files->items[idx].name));
        }
        if (!str_next(&rest, '\n', &line) || !str_eq(line, want)) {
            return line_differs(line, line_idx, want, err);
        }
        line_idx++;
    }
    if (rest.len) {
        line = STR_EMPTY;
        return str_next(&rest, '\n', &line) && line.len > SHA256_HEX_SIZE + 1
                   ? err_set(err, ERR_INTEGRITY, "%.*s: missing, " USTAR_SUMS " line %zu names it",
                             STR_ARG(name_of_line(str_sub(line, 0, USTAR_NAME_MAX))), line_idx + 1)
                   : err_set(err, ERR_INTEGRITY, USTAR_SUMS " line %zu: too much", line_idx + 1);
    }
    return 0;
}

int evidence_sums_check(struct str text, const struct evidence_files *files, struct err *err)
{
    CLEANUP(strbuf) struct strbuf wanted = STRBUF(SHA256_HEX_SIZE + USTAR_NAME_MAX + 8);
    if (text.len == 0 || text.ptr[text.len - 1] != '\n') {
        return err_set(err, ERR_INTEGRITY, USTAR_SUMS ": expected a line end at the end");
    }
    return check_lines(text, files, &wanted, err);
}

/* --- statements ------------------------------------------------------------------------------- */

const char *evidence_statement_name(enum evidence_kind kind)
{
    return kind == EVIDENCE_TEST_RESULT ? USTAR_STATEMENT : USTAR_PROVENANCE;
}

/* Source: github.com/in-toto/attestation, spec/predicates/test-result.md (v0.1); slsa.dev/spec/v1.0/provenance. */
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

static void add_descriptors(struct json_out *out, const char *key,
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

static void add_test_result(struct json_out *out, const struct evidence_facts *facts,
                            const struct evidence_files *files)
{
    jw_z(out, "result", EVIDENCE_OUTCOME_NAMES[facts->outcome]);
    add_descriptors(out, "configuration", files, is_input);
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

static void add_provenance(struct json_out *out, const struct evidence_facts *facts,
                           const struct evidence_files *files, struct str version)
{
    JW(out,
       "'buildDefinition': {'buildType': 'urn:x-reperf:run:1', 'externalParameters': {'report': ?}",
       facts->report);
    add_descriptors(out, "resolvedDependencies", files, is_input);
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
    jw_z(&out, "_type", STATEMENT_TYPE);
    add_descriptors(&out, "subject", files, is_subject);
    jw_z(&out, "predicateType", predicate_type(kind));
    jw_object(&out, "predicate");
    if (kind == EVIDENCE_TEST_RESULT) {
        add_test_result(&out, facts, files);
    } else {
        add_provenance(&out, facts, files, version);
    }
    jw_end_object(&out);
    jw_end_object(&out);
}

/* The program that sealed it, which may be another than this one. */
static int read_version(const struct json *root, struct arena *arena, struct str *ret_version,
                        struct err *err)
{
    static const char *const WAY[] = {"predicate", "runDetails", "builder", "version"};
    struct json at[ARRAY_LEN(WAY) + 1];
    at[0] = *root;
    for (size_t idx = 0; idx < ARRAY_LEN(WAY); idx++) {
        if (json_member(&at[idx], WAY[idx], &at[idx + 1], err) < 0) {
            return -1;
        }
    }
    return read_str(&at[ARRAY_LEN(WAY)], "reperf", arena, ret_version, err);
}

/* Statements from before it was signed, and those of folders without a journal, have none. */
static int read_journal(const struct json *root, struct arena *arena, struct str *ret_hex,
                        struct err *err)
{
    struct json predicate, details, list, item, digest;
    uint8_t sha256[SHA256_BYTES];
    size_t n;
    if (json_member(root, "predicate", &predicate, err) < 0 ||
        json_member(&predicate, "runDetails", &details, err) < 0) {
        return -1;
    }
    if (!json_find(&details, "byproducts", &list)) {
        return 0;
    }
    if (json_expect_array(&list, 1, &n, err) < 0) {
        return -1;
    }
    if (!json_first(&list, &item)) {
        return json_fail(&list, err, "expected the journal");
    }
    return json_member(&item, "digest", &digest, err) < 0 ||
                   read_str(&digest, "sha256", arena, ret_hex, err) < 0
               ? -1
               : hex_decode(*ret_hex, SHA256_BYTES, sha256, err);
}

int evidence_version_check(struct str version, const char *name, struct err *err)
{
    for (size_t idx = 0; idx < version.len; idx++) {
        char c = version.ptr[idx];
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && c != '.' && c != '-' &&
            c != '+') {
            version.len = 0;
        }
    }
    return version.len > 0 && version.len <= VERSION_MAX
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
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf wanted = STRBUF(JSON_TEXT_MAX);
    const char *name = evidence_statement_name(kind);
    struct str version = STR_LIT(REPERF_VERSION);
    if (json_parse(payload, name, &doc, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    struct json root = json_root(&doc);
    if (kind == EVIDENCE_PROVENANCE && (read_version(&root, arena, &version, err) < 0 ||
                                        evidence_version_check(version, name, err) < 0 ||
                                        read_journal(&root, arena, &facts->journal, err) < 0)) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    evidence_statement(&wanted, kind, facts, files, version);
    return evidence_same_text(payload, strbuf_str(&wanted), name, err);
}
