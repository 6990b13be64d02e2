/* SPDX-License-Identifier: Apache-2.0 */
/* What was sealed is judged as before: what a log shows counts from the derivation on that has learned to see it. */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "judge/rule.h"
#include "log/format.h"
#include "report/vocabulary.h"

struct row {
    const char *text, *first_by; /* NULL: not stated */
    int64_t since;
    enum parse_verdict verdict; /* from then on; PARSE_OK before, unless another is stated */
    enum parse_verdict before;
};

/* Rates of steps, and losses on lines of their own. */
static struct format *format_of(struct arena *arena, const char *first_by)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct err err = {0};
    struct format *format = NULL;
    const char *text = arena_printf(
        arena,
        "{\"schema_version\": 1, \"id\": \"t\", \"title\": \"T\", \"framework\": \"f\", "
        "\"source\": \"s\", \"prefixes\": [], \"series\": [{\"name\": \"ips\", \"literal\": "
        "\"ips: \", \"pattern\": \"^iter: (?<step>\\\\d+)(?:/(?<total>\\\\d+))?, ips: "
        "(?<value>\\\\S+)\", \"unit\": \"samples/s\", \"scope\": \"rank\", \"quantity\": \"rate\", "
        "\"primary\": true%s%s}, {\"name\": \"loss\", \"literal\": \"loss: \", \"pattern\": "
        "\"loss: (?<value>\\\\S+)\", \"unit\": \"\", \"scope\": \"rank\", \"quantity\": \"score\", "
        "\"primary\": false}], \"run_start\": null, \"end\": null, \"facts\": [], \"rules\": []}",
        first_by ? ", \"first_by\": " : "", first_by ? first_by : "");
    assert_int_equal(json_parse(str_of(text), "t.json", &doc, &err), 0);
    doc.context = vocabulary_builtin(arena);
    struct json root = json_root(&doc);
    assert_int_equal(format_read(&root, arena, &format, &err), 0);
    return format;
}

static void judges(const struct row *row, int64_t derivation)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct format *format = format_of(&arena, row->first_by);
    struct parser *parser = NULL;
    struct measurement m = {0};
    struct err err = {0};
    assert_int_equal(parser_new(format, &arena, &parser, &err), 0);
    parser_judge_by(parser, derivation);
    assert_int_equal(parser_feed(parser, row->text, strlen(row->text), &err), 0);
    assert_int_equal(parser_finish(parser, &m, &err), 0);
    assert_int_equal(m.verdict, derivation < row->since ? row->before : row->verdict);
    assert_int_equal(m.verdict == PARSE_OK, m.why.len == 0);
    parser_free(parser);
    format_release(format);
}

static void judge_all(const struct row *rows, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        for (int64_t derivation = DERIVATION_FIRST; derivation <= DERIVATION_NOW; derivation++) {
            judges(&rows[idx], derivation);
        }
    }
}

/* Derivation 3 ignores a repeated step, a gap and a step that goes back. */
static void causes_count_since_derivation_4(void **state UNUSED)
{
    static const struct row ROWS[] = {
        {"iter: 1, ips: 1\niter: 1, ips: 2\n", NULL, DERIVATION_WHOLE, PARSE_AMBIGUOUS, PARSE_OK},
        {"iter: 1, ips: 1\niter: 2, ips: 2\niter: 3, ips: 2\niter: 5, ips: 2\niter: 6, ips: 2\n",
         NULL, DERIVATION_WHOLE, PARSE_INCOMPLETE, PARSE_OK},
        {"iter: 1/2, ips: 1\niter: 3/2, ips: 2\n", NULL, DERIVATION_WHOLE, PARSE_AMBIGUOUS,
         PARSE_OK},
        {"iter: 1/2, ips: 1\niter: 2/2, ips: 2\n", NULL, DERIVATION_WHOLE, PARSE_OK, PARSE_OK},
        {"iter: 1/9, ips: 1\niter: 2/9, ips: 2\n", NULL, DERIVATION_WHOLE, PARSE_INCOMPLETE,
         PARSE_INCOMPLETE}};
    judge_all(ROWS, ARRAY_LEN(ROWS));
}

static void losses_on_any_line_count_since_derivation_9(void **state UNUSED)
{
    static const struct row ROWS[] = {{"iter: 1, ips: 1\nloss: nan\niter: 2, ips: 2\n", NULL,
                                       DERIVATION_LOSSES, PARSE_NAN, PARSE_OK},
                                      {"iter: 1, ips: 1\nloss: 0.5\niter: 2, ips: 2\n", NULL,
                                       DERIVATION_LOSSES, PARSE_OK, PARSE_OK},
                                      {"iter: 1, ips: 1 loss: nan\niter: 2, ips: 2\n", NULL,
                                       DERIVATION_WHOLE, PARSE_NAN, PARSE_OK}};
    judge_all(ROWS, ARRAY_LEN(ROWS));
}

/* The interval alone shows a late first line since derivation 6. */
static void first_lines_count_since_derivation_9(void **state UNUSED)
{
    static const struct row ROWS[] = {
        {"iter: 2, ips: 1\niter: 4, ips: 2\niter: 6, ips: 1\n", "1", DERIVATION_LOSSES,
         PARSE_INCOMPLETE, PARSE_OK},
        {"iter: 2, ips: 1\niter: 4, ips: 2\niter: 6, ips: 1\n", "2", DERIVATION_LOSSES, PARSE_OK,
         PARSE_OK},
        {"iter: 2, ips: 1\niter: 4, ips: 2\niter: 6, ips: 1\n", NULL, DERIVATION_LOSSES, PARSE_OK,
         PARSE_OK},
        {"iter: 4, ips: 1\n", "0", DERIVATION_LOSSES, PARSE_INCOMPLETE, PARSE_OK},
        {"iter: 0, ips: 1\niter: 4, ips: 1\n", "0", DERIVATION_LOSSES, PARSE_OK, PARSE_OK},
        {"iter: 3, ips: 1\niter: 4, ips: 2\niter: 5, ips: 1\niter: 6, ips: 1\n", "2",
         DERIVATION_RUNS, PARSE_INCOMPLETE, PARSE_OK}};
    judge_all(ROWS, ARRAY_LEN(ROWS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causes_count_since_derivation_4),
        cmocka_unit_test(losses_on_any_line_count_since_derivation_9),
        cmocka_unit_test(first_lines_count_since_derivation_9),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
