/* SPDX-License-Identifier: Apache-2.0 */
/* What a log is asked for beside its case's number: decoded, written again, compared, and held against the format that reads it. */
#include "unit.h"

#include "base/strbuf.h"
#include "document_format.h"
#include "judge/bind.h"

static int decode(const char *text, struct extras *ret, struct err *err)
{
    const struct json *root = document(text, NULL, err);
    *ret = (struct extras){0};
    return root ? json_decode(root, ARENA, EXTRAS_ROWS, EXTRAS_N, ret, err) : -1;
}

static struct extras decoded(const char *text)
{
    struct extras beside;
    PASSES(decode(text, &beside, ERR));
    return beside;
}

TEST(test_refused)
{
    static const char *const ROWS[][2] = {
        {"{'also': 'f/a'}", "$.also"},
        {"{'also': ['f/a', 1]}", "$.also[1]"},
        {"{'also': ['f/a', 'miou']}", "$.also[1]"},
        {"{'also': ['/miou']}", "$.also[0]"},
        {"{'also': ['f/']}", "$.also[0]"},
        {"{'also': ['']}", "$.also[0]"},
        {"{'also': ['f/a\\u001b[2J']}", "$.also[0]"},
        {"{'also': ['f/a', 'f/b', 'f/a']}", "$.also[2]"},
        {"{'also': ['f/1', 'f/2', 'f/3', 'f/4', 'f/5', 'f/6', 'f/7', 'f/8', 'f/9']}", "$.also"},
        {"{'target': {'series': 'loss', 'at_most': 1}}", "mean_of"},
    };
    for (EACH(row, ROWS)) {
        struct extras beside;
        FAILS_WITH(decode((*row)[0], &beside, ERR), ERR_MANIFEST, (*row)[1] ? (*row)[1] : "");
    }
}

TEST(test_round_trip)
{
    static const char *const TEXTS[] = {
        "{}",
        "{'target':{'series':'loss','at_most':2.5,'mean_of':5}}",
        "{'also':['f/a']}",
        "{'also':['f/b','f/a']}",
        "{'target':{'series':'loss','at_most':2.5,'mean_of':5},'also':['f/a']}",
        "{'target':{'series':'loss','at_most':2.25,'mean_of':5},'also':['f/a']}",
    };
    for (EACH(row, TEXTS)) {
        CLEANUP(strbuf) struct strbuf buf = STRBUF(4096);
        struct json_out out;
        struct extras beside = decoded(*row);
        jw_begin(&out, &buf, true);
        jw_object(&out, NULL);
        json_encode(&out, EXTRAS_ROWS, EXTRAS_N, &beside);
        jw_end_object(&out);
        assert_string_equal(buf.ptr, json_text(*row));
        for (size_t at = 0; at < ARRAY_LEN(TEXTS); at++) {
            struct extras other = decoded(TEXTS[at]);
            assert_int_equal(extras_is_same(&beside, &other), TEXTS + at == row);
        }
    }
}

static const char FORMAT[] =
    "{'schema_version': 1, 'id': 'f', 'title': 'T', 'framework': 'f', 'source': 's', 'prefixes': "
    "[], 'series': [{'name': 'ips', 'literal': 'ips: ', 'pattern': 'ips: (?<value>\\\\S+)', "
    "'unit': 'samples/s', 'scope': 'rank', 'quantity': 'rate', 'primary': true}], 'run_start': "
    "null, 'facts': [], 'rules': [{'name': 'mean', 'series': 'ips', 'statistic': 'mean', 'origin': "
    "'own', 'source': 'x'}]}";

TEST(test_missing)
{
    static const struct {
        const char *rule, *text, *key; /* key NULL: it has all */
    } ROWS[] = {
        {"f/mean", "{}", NULL},
        {"f/mean", "{'also': ['f/mean']}", NULL},
        {NULL, "{'also': ['f/mean']}", NULL},
        {"f/max", "{'also': ['f/none']}", "rule"},
        {"f/mean", "{'target': {'series': 'loss', 'at_most': 1, 'mean_of': 1}}", "target.series"},
        {"f/mean", "{'also': ['f/mean', 'f/none']}", "also[1]"},
        {"f/mean", "{'also': ['g/mean']}", "also[0]"},
    };
    struct format *format = format_of(FORMAT);
    const struct format_set formats = {&format, 1};
    for (EACH(row, ROWS)) {
        struct extras beside = decoded(row->text);
        struct plan_step step = {
            .format = STR_LIT("f"), .rule = str_of(row->rule), .beside = beside};
        bind_step(ARENA, &formats, &step);
        assert_ptr_equal(step.bound.format, format);
        if (row->key) {
            assert_string_equal(step.bound.key, row->key);
            assert_non_null(step.bound.why);
        } else {
            assert_null(step.bound.why);
            assert_ptr_equal(step.bound.rule, row->rule ? format_rule(format, step.rule) : NULL);
            for (size_t at = 0; at < beside.n_also; at++) {
                assert_ptr_equal(step.bound.also[at], format_rule(format, beside.also[at]));
            }
        }
    }
    struct extras none = decoded("{}");
    struct extras also = decoded("{'also': ['f/mean']}");
    struct plan_step of_no_format = {
        .format = STR_LIT("g"), .rule = STR_LIT("g/mean"), .beside = none};
    bind_step(ARENA, &formats, &of_no_format);
    assert_null(of_no_format.bound.format);
    assert_string_equal(of_no_format.bound.key, "rule");
    of_no_format = (struct plan_step){.beside = also};
    bind_step(ARENA, &formats, &of_no_format);
    assert_string_equal(of_no_format.bound.key, "also[0]");
    format_release(format);
}
