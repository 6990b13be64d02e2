/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "codec/json.h"
#include "codec/json_override.h"
#include "codec/json_table.h"

static const char *const BAD[] = {
    "",
    " ",
    "{",
    "[",
    "{}x",
    "{} {}",
    "[1,]",
    "{\"a\":1,}",
    "{\"a\":1,\"a\":2}",
    "[{\"b\":{\"c\":1,\"c\":1}}]",
    "{'a':1}",
    "{a:1}",
    "[01]",
    "[1.]",
    "[.5]",
    "[+1]",
    "[-]",
    "[1e]",
    "[1e+]",
    "[1e999]",
    "[NaN]",
    "[Infinity]",
    "nul",
    "[\"\\x\"]",
    "[\"\\u12\"]",
    "[\"a\nb\"]",
    "[\"\xff\"]",
    "[\"\xc0\x80\"]",
    "[\"\xed\xa0\x80\"]",
    "[\"a]",
    "// c\n{}",
    "[\"\\u0000\"]",
    "{\"a\" 1}",
    "[1 2]",
    "]",
    "{\"a\":}",
    "[\"\\ud800\"]",
};

TEST(bad_grammar_is_refused)
{
    for (EACH(row, BAD)) {
        CLEANUP(json_doc) struct json_doc doc = {0};
        struct err err = {0};
        if (json_parse(str_of(*row), "f.json", &doc, &err) == 0) {
            fail_msg("taken: %s", *row);
        }
        assert_int_equal(err.code, ERR_MANIFEST);
        assert_non_null(strstr(err.msg, "f.json"));
    }
}

TEST(depth_is_capped)
{
    char text[2 * JSON_DEPTH_MAX + 2];
    CLEANUP(json_doc) struct json_doc doc = {0};
    size_t depth = JSON_DEPTH_MAX - 1;
    memset(text, '[', depth);
    memset(text + depth, ']', depth);
    PASSES(json_parse((struct str){text, 2 * depth}, "f", &doc, ERR));
    json_doc_release(&doc);
    memset(text, '[', depth + 1);
    memset(text + depth + 1, ']', depth + 1);
    FAILS(json_parse((struct str){text, 2 * depth + 2}, "f", &doc, ERR), ERR_ANY);
}

struct thing {
    struct str name;
    int64_t count;
    double rate;
    bool is_on;
};

static const struct json_field THING[] = {
    ROW("name", struct thing, name, JSON_REQUIRED | JSON_NULLABLE),
    ROW("count", struct thing, count, JSON_REQUIRED, .min = 1, .max = 9),
    ROW("rate", struct thing, rate, 0),
    ROW("on", struct thing, is_on, 0),
};

static int decode(const char *text, struct arena *arena, struct thing *thing, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    struct json list;
    struct json item;
    if (json_parse(str_of(text), "f.json", &doc, err) < 0) {
        return -1;
    }
    root = doc.root;
    if (json_member(&root, "list", &list, err) < 0 || !json_first(&list, &item)) {
        return -1;
    }
    return json_decode(&item, arena, THING, ARRAY_LEN(THING), thing, err);
}

TEST(tables_decode_and_name_the_place)
{
    static const char *const WRONG[][2] = {
        {"{\"list\":[{\"name\":\"x\",\"count\":10}]}",
         "f.json:$.list[0].count: expected 1 to 9, found 10"},
        {"{\"list\":[{\"name\":\"x\",\"count\":1.5}]}", "$.list[0].count"},
        {"{\"list\":[{\"name\":\"x\"}]}", "\"count\""},
        {"{\"list\":[{\"name\":\"x\",\"count\":1,\"Rate\":2}]}", "unknown key \"Rate\""},
        {"{\"list\":[{\"name\":7,\"count\":1}]}", "expected a string, found a number"},
        {"{\"list\":[{\"name\":\"x\",\"count\":null}]}", "may not be null"},
        {"{\"list\":[{\"name\":\"x\",\"count\":1,\"on\":1}]}", "expected true or false"},
        {"{\"list\":[7]}", "expected an object"},
        {"{\"List\":[]}", "expected a member \"list\""},
    };
    struct thing thing = {0};
    PASSES(decode("{\"list\":[{\"name\":null,\"count\":9,\"rate\":-2.5,\"on\":true}]}", ARENA,
                  &thing, ERR));
    assert_null(thing.name.ptr);
    assert_true(thing.count == 9 && thing.rate == -2.5 && thing.is_on);
    for (EACH(row, WRONG)) {
        FAILS(decode((*row)[0], ARENA, &thing, ERR), ERR_ANY);
        if (!strstr(ERR->msg, (*row)[1])) {
            fail_msg("%s: %s", (*row)[0], ERR->msg);
        }
    }
}

TEST(whole_numbers_beyond_2_53_are_refused)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    int64_t value;
    PASSES(json_parse(STR_LIT("9007199254740994"), "f", &doc, ERR));
    root = doc.root;
    FAILS(json_i64(&root, INT64_MIN, INT64_MAX, &value, ERR), ERR_ANY);
}

TEST(output_keeps_order_and_escapes)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(1000);
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json_out out;
    jw_begin(&out, &buf, true);
    jw_object(&out, NULL);
    jw_z(&out, "z", "a\"\\\n\x01\xff");
    jw_array(&out, "a");
    jw_f64(&out, NULL, 117.205);
    jw_f64(&out, NULL, 0.0 / 0.0);
    jw_i64(&out, NULL, 9007199254740993);
    jw_object(&out, NULL);
    jw_end_object(&out);
    jw_end_array(&out);
    jw_bool(&out, "b", false);
    jw_end_object(&out);
    assert_string_equal(buf.ptr, "{\"z\":\"a\\\"\\\\\\n\\u0001\\ufffd\",\"a\":[117.205,null,"
                                 "\"9007199254740993\",{}],\"b\":false}");
    PASSES(json_parse(strbuf_str(&buf), "out", &doc, ERR));
}

/* A backslash, escaped, and then u0000 is six characters, not U+0000. */
TEST(an_escaped_backslash_is_no_escape)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct str value;
    PASSES(json_parse(str_of("\"\\\\u0000\""), "t", &doc, ERR));
    PASSES(json_str(&doc.root, ARENA, &value, ERR));
    assert_true(str_eq_z(value, "\\u0000"));
}

static void assert_region(const char *place, int64_t line, int64_t column, int64_t end_line,
                          int64_t end_column)
{
    const struct str text = STR_LIT("{\n\"a\": [1, {\"}\": 2},\n {\"b\": \"\\\"]\",\n "
                                    "\"\xc3\xa9\": \"\xe2\x82\xac\", \"c\": [\n7 ]}],"
                                    "\n\"d\": true}\n");
    struct json_region got = json_region_of(text, str_of(place));
    assert_int_equal(got.line, line);
    assert_int_equal(got.column, column);
    assert_int_equal(got.end_line, end_line);
    assert_int_equal(got.end_column, end_column);
}

TEST(places_have_regions)
{
    assert_region("$", 1, 1, 1, 2);
    assert_region("$.a", 2, 6, 2, 19);
    assert_region("$.a[1]", 2, 10, 2, 18);
    assert_region("$.a[2].b", 3, 8, 3, 13);
    assert_region("$.a[2].\xc3\xa9", 4, 7, 4, 10);
    assert_region("$.a[2].c", 4, 17, 4, 18);
    assert_region("$.a[2].c[0]", 5, 1, 5, 2);
    assert_region("$.d", 6, 6, 6, 10);
    assert_region("$.a[9].c", 2, 6, 2, 19);
    assert_region("$.nothing", 1, 1, 1, 2);
}
