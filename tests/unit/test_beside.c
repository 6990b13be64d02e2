/* SPDX-License-Identifier: Apache-2.0 */
/* What a log is asked for beside its case's number: decoded, written again, compared, and held against the format that reads it. */
#include "unit.h"

#include "base/strbuf.h"
#include "judge/bind.h"
#include "judge/rule.h"
#include "report/vocabulary.h"

static struct arena arena;

static int decode(const char *text, struct beside *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (json_parse(str_of(text), "t.json", &doc, err) < 0) {
        fail_msg("%s", err->msg);
    }
    struct json root = json_root(&doc);
    *ret = (struct beside){0};
    return json_decode(&root, &arena, BESIDE_ROWS, BESIDE_N, ret, err);
}

static struct beside decoded(const char *text)
{
    struct beside beside;
    struct err err = {0};
    if (decode(text, &beside, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    return beside;
}

TEST(test_refused)
{
    static const struct {
        const char *text, *says;
    } ROWS[] = {
        {"{\"also\": \"f/a\"}", "$.also: expected an array"},
        {"{\"also\": [\"f/a\", 1]}", "$.also[1]"},
        {"{\"also\": [\"f/a\", \"miou\"]}", "$.also[1]: expected FORMAT/NAME, found \"miou\""},
        {"{\"also\": [\"/miou\"]}", "$.also[0]: expected FORMAT/NAME"},
        {"{\"also\": [\"f/\"]}", "$.also[0]: expected FORMAT/NAME"},
        {"{\"also\": [\"\"]}", "$.also[0]: also: expected one line"},
        {"{\"also\": [\"f/a\\u001b[2J\"]}", "$.also[0]: also: expected text"},
        {"{\"also\": [\"f/a\", \"f/b\", \"f/a\"]}", "$.also[2]: \"f/a\" is there twice"},
        {"{\"also\": [\"f/1\", \"f/2\", \"f/3\", \"f/4\", \"f/5\", \"f/6\", \"f/7\", \"f/8\", "
         "\"f/9\"]}",
         "$.also"},
        {"{\"target\": {\"series\": \"loss\", \"at_most\": 1}}", "mean_of"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        struct beside beside;
        struct err err = {0};
        if (decode(ROWS[idx].text, &beside, &err) == 0 || !strstr(err.msg, ROWS[idx].says)) {
            fail_msg("%s: %s", ROWS[idx].text, err.msg);
        }
        assert_int_equal(err.code, ERR_MANIFEST);
    }
}

TEST(test_round_trip)
{
    static const char *const TEXTS[] = {
        "{}",
        "{\"target\":{\"series\":\"loss\",\"at_most\":2.5,\"mean_of\":5}}",
        "{\"also\":[\"f/a\"]}",
        "{\"also\":[\"f/b\",\"f/a\"]}",
        "{\"target\":{\"series\":\"loss\",\"at_most\":2.5,\"mean_of\":5},\"also\":[\"f/a\"]}",
        "{\"target\":{\"series\":\"loss\",\"at_most\":2.25,\"mean_of\":5},\"also\":[\"f/a\"]}",
    };
    for (size_t idx = 0; idx < ARRAY_LEN(TEXTS); idx++) {
        CLEANUP(strbuf) struct strbuf buf;
        strbuf_init(&buf, 4096);
        struct json_out out;
        struct beside beside = decoded(TEXTS[idx]);
        jw_begin(&out, &buf, true);
        jw_object(&out, NULL);
        json_encode(&out, BESIDE_ROWS, BESIDE_N, &beside);
        jw_end_object(&out);
        assert_true(str_eq_z(strbuf_str(&buf), TEXTS[idx]));
        for (size_t at = 0; at < ARRAY_LEN(TEXTS); at++) {
            struct beside other = decoded(TEXTS[at]);
            assert_int_equal(beside_is_same(&beside, &other), at == idx);
        }
    }
}

static const char FORMAT[] =
    "{\"schema_version\": 1, \"id\": \"f\", \"title\": \"T\", \"framework\": \"f\", \"source\": "
    "\"s\", \"prefixes\": [], \"series\": [{\"name\": \"ips\", \"literal\": \"ips: \", "
    "\"pattern\": \"ips: (?<value>\\\\S+)\", \"unit\": \"samples/s\", \"scope\": \"rank\", "
    "\"quantity\": \"rate\", \"primary\": true}], \"run_start\": null, \"facts\": [], \"rules\": "
    "[{\"name\": \"mean\", \"series\": \"ips\", \"statistic\": \"mean\", \"origin\": \"own\", "
    "\"source\": \"x\"}]}";

TEST(test_missing)
{
    static const struct {
        const char *rule, *text, *key, *why; /* key NULL: it has all */
    } ROWS[] = {
        {"f/mean", "{}", NULL, NULL},
        {"f/mean", "{\"also\": [\"f/mean\"]}", NULL, NULL},
        {NULL, "{\"also\": [\"f/mean\"]}", NULL, NULL},
        {"f/max", "{\"also\": [\"f/none\"]}", "rule", "there is no rule f/max"},
        {"f/mean", "{\"target\": {\"series\": \"loss\", \"at_most\": 1, \"mean_of\": 1}}",
         "target.series", "series \"loss\", which format f does not have"},
        {"f/mean", "{\"also\": [\"f/mean\", \"f/none\"]}", "also[1]", "there is no rule f/none"},
        {"f/mean", "{\"also\": [\"g/mean\"]}", "also[0]",
         "g/mean is no rule of format f, which reads the log"},
    };
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct format *format = NULL;
    PASSES(json_parse(str_of(FORMAT), "f.json", &doc, ERR));
    doc.context = vocabulary_builtin(&arena);
    struct json root = json_root(&doc);
    PASSES(format_read(&root, &arena, &format, ERR));
    const struct format_set formats = {&format, 1};
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        struct beside beside = decoded(ROWS[idx].text);
        struct plan_step step = {
            .format = STR_LIT("f"), .rule = str_of(ROWS[idx].rule), .beside = beside};
        bind_step(&arena, &formats, &step);
        assert_ptr_equal(step.bound.format, format);
        if (ROWS[idx].key) {
            assert_string_equal(step.bound.key, ROWS[idx].key);
            assert_non_null(strstr(step.bound.why, ROWS[idx].why));
        } else {
            assert_null(step.bound.why);
            assert_ptr_equal(step.bound.rule,
                             ROWS[idx].rule ? format_rule(format, step.rule) : NULL);
            for (size_t at = 0; at < beside.n_also; at++) {
                assert_ptr_equal(step.bound.also[at], format_rule(format, beside.also[at]));
            }
        }
    }
    struct beside none = decoded("{}");
    struct beside also = decoded("{\"also\": [\"f/mean\"]}");
    struct plan_step of_no_format = {
        .format = STR_LIT("g"), .rule = STR_LIT("g/mean"), .beside = none};
    bind_step(&arena, &formats, &of_no_format);
    assert_null(of_no_format.bound.format);
    assert_string_equal(of_no_format.bound.key, "rule");
    of_no_format = (struct plan_step){.beside = also};
    bind_step(&arena, &formats, &of_no_format);
    assert_string_equal(of_no_format.bound.key, "also[0]");
    format_release(format);
}
