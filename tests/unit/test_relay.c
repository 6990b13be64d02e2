/* SPDX-License-Identifier: Apache-2.0 */
/* The relays' messages as bytes: what is written is read again, and what no relay writes is refused. */
#include "unit.h"

#include "codec/relay.h"
#include "scratch.h"

#define TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define HEX   "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static const char *const ORDER[] = {
    TOKEN,        "1",
    "4",          "2",
    "3", /* part 1 of 4, 2 items, 3 files */
    "/disk/data", "/home/u/a b/.m",
    "2", /* 5: an item with a mark */
    "5",          "x",
    HEX,          "a",
    "0",          "-",
    HEX,          "b/c d", /* 8, 12: its files */
    "/disk/bin",  "",
    "1", /* 16: one without */
    "7",          "-",
    HEX,          "tool", /* 19 */
};

/* With another text for one field (SIZE_MAX: none). */
static struct str order_with(size_t at, const char *text)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(1u << 16);
    for (size_t idx = 0; idx < ARRAY_LEN(ORDER); idx++) {
        const char *field = idx == at ? text : ORDER[idx];
        strbuf_add(&out, field, strlen(field) + 1);
    }
    return str_dup(&scratch_arena, strbuf_str(&out));
}

TEST(orders_are_read_as_written)
{
    struct str text = order_with(SIZE_MAX, NULL);
    struct relay_order order;
    struct strbuf out;
    strbuf_init(&out, 1u << 16);
    PASSES(relay_order_parse(&scratch_arena, text, &order, ERR));
    assert_int_equal(order.n_items, 2);
    assert_int_equal(order.n_files, 3);
    assert_int_equal(order.part, 1);
    assert_int_equal(order.n_parts, 4);
    assert_int_equal(order.token[1], 0x11);
    assert_string_equal(order.items[0].mark, "/home/u/a b/.m");
    assert_string_equal(order.items[1].mark, "");
    assert_int_equal(order.items[1].first, 2);
    assert_true(order.files[0].is_executable);
    assert_string_equal(order.files[1].path, "b/c d");
    assert_int_equal(order.files[2].item, 1);
    PASSES(relay_order_write(&order, &out, ERR));
    struct str head = strbuf_str(&out);
    uint64_t size_bytes = 0;
    head.len -= text.len;
    assert_true(str_eq(str_sub(strbuf_str(&out), head.len, out.len), text));
    assert_true(relay_order_head(head, &size_bytes));
    assert_int_equal(size_bytes, text.len);
    assert_false(relay_order_head(str_sub(head, 0, head.len - 1), &size_bytes));
    assert_false(relay_order_head(STR_LIT("reperf-relay 2 000000000001\n"), &size_bytes));
    assert_false(relay_order_head(STR_LIT("reperf-relay 3 000000000000\n"), &size_bytes));
    assert_false(relay_order_head(STR_LIT("reperf-relay 3 999999999999\n"), &size_bytes));
    strbuf_release(&out);
}

static void expect_refused(struct str text, const char *what)
{
    struct relay_order order;
    struct err err = {0};
    if (relay_order_parse(&scratch_arena, text, &order, &err) == 0) {
        fail_msg("accepted: %s", what);
    }
    assert_int_equal(err.code, ERR_PARSE);
}

TEST(hostile_orders_are_refused)
{
    static const struct {
        size_t at;
        const char *text;
    } BAD[] = {
        {0, "00"},
        {0, TOKEN "00"},
        {1, "4"},
        {1, "-1"},
        {1, ""},
        {2, "5000"},
        {3, "0"},
        {3, "1"},
        {3, "3"},
        {3, "257"},
        {4, "2"},
        {4, "4"},
        {4, "2000001"},
        {4, "3 "},
        {5, "w"},
        {5, "/"},
        {5, "/w/../x"},
        {5, "/w//x"},
        {5, "/w/"},
        {5, ""},
        {6, "a/b"},
        {6, "/"},
        {6, "/home/../.m"},
        {6, "/home/"},
        {7, "1"},
        {7, "3"},
        {7, "4"},
        {8, "-1"},
        {8, "9223372036854775808"},
        {8, "5 "},
        {8, "x"},
        {9, "w"},
        {9, ""},
        {10, "00"},
        {10, HEX "0"},
        {11, "../a"},
        {11, "a/../../b"},
        {11, "/etc/passwd"},
        {11, "a//b"},
        {11, "a/"},
        {11, "."},
        {11, ""},
        {11, "a\nb"},
        {11, "b/d"} /* out of order */,
        {11, "b/c d"} /* twice */,
        {18, "2"},
        {18, "0"},
    };
    for (EACH(row, BAD)) {
        expect_refused(order_with(row->at, row->text), row->text);
    }
    struct str text = order_with(SIZE_MAX, NULL);
    for (size_t len = 0; len < text.len; len++) {
        expect_refused(str_dup(&scratch_arena, str_sub(text, 0, len)), "a part of it");
    }
    CLEANUP(strbuf) struct strbuf more = STRBUF(1u << 16);
    strbuf_add_str(&more, text);
    strbuf_add_char(&more, 'x');
    expect_refused(strbuf_str(&more), "something after it");
}

TEST(names_that_cannot_be_sent_are_refused_here)
{
    struct relay_file file = {.path = "a\nend", .size_bytes = 1};
    struct relay_item item = {.root = "/w", .mark = "", .n = 1};
    struct relay_order order = {
        .n_parts = 1, .items = &item, .n_items = 1, .files = &file, .n_files = 1};
    struct strbuf out;
    strbuf_init(&out, 1u << 16);
    FAILS(relay_order_write(&order, &out, ERR), ERR_USAGE);
    strbuf_release(&out);
}

TEST(lines_are_told_from_noise)
{
    static const char *const NOISE[] = {"",          "Last login: today", "ready",
                                        "ready 1",   "ready x 0",         "ready -1 0",
                                        "hello 1 0", " ready 1 0"};
    struct relay_line line = {.word = RELAY_LOST, .a = 3, .b = 0, .text = STR_LIT("no route")};
    struct relay_line again;
    struct strbuf out;
    strbuf_init(&out, RELAY_LINE_MAX);
    for (int word = 0; word < RELAY_WORD_COUNT; word++) {
        line.word = (enum relay_word)word;
        strbuf_clear(&out);
        relay_line_write(&line, &out);
        assert_true(relay_line_parse(str_sub(strbuf_str(&out), 0, out.len - 1), &again));
        assert_int_equal(again.word, word);
        assert_true(again.a == 3 && again.b == 0 && str_eq_z(again.text, "no route"));
    }
    for (EACH(row, NOISE)) {
        assert_false(relay_line_parse(str_of(*row), &again));
    }
    strbuf_release(&out);
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
