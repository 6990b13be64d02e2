/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/table.h"

TEST(columns_line_up_and_numbers_go_right)
{
    CLEANUP(table) struct table table = table_of("case|>value|note");
    CLEANUP(strbuf) struct strbuf out = STRBUF(4096);
    TABLE_ADD(&table, STR_LIT("resnet50"), table_text(&table, "%.1f", 383.0),
              STR_LIT("\xe4\xb8\x80 x"));
    table_add(&table, STR_LIT("b"));
    table_addf(&table, "%.1f", 10715.3);
    table_add(&table, STR_EMPTY);
    table_render(&table, &out);
    assert_string_equal(out.ptr, "case        value  note\n"
                                 "--------  -------  ----\n"
                                 "resnet50    383.0  \xe4\xb8\x80 x\n"
                                 "b         10715.3\n");
}

TEST(outside_text_cannot_drive_the_terminal)
{
    CLEANUP(table) struct table table = table_of("a");
    CLEANUP(strbuf) struct strbuf out = STRBUF(4096);
    table_add(&table, STR_LIT("\x1b[31mred\n"));
    table_render(&table, &out);
    assert_string_equal(out.ptr, "a\n---------\n?[31mred?\n");
}

TEST(width_counts_code_points)
{
    assert_int_equal(text_columns(STR_LIT("")), 0);
    assert_int_equal(text_columns(STR_LIT("\xc3\xa9\xe2\x80\x93")), 2);
    assert_int_equal(text_columns(STR_LIT("\xe5\x8d\xa1")), 2);
    assert_int_equal(text_columns(STR_LIT("\xe5\x8d")), 2);
}

static void fill(struct table *table, const char *const *cells, size_t n_cells)
{
    for (size_t idx = 0; idx < n_cells; idx++) {
        table_add(table, str_of(cells[idx]));
    }
}

TEST(what_is_too_wide_is_folded_or_goes_below)
{
    static const char *const CELLS[] = {"resnet50/fp32",
                                        "images/s",
                                        "",
                                        "NGC PyTorch of upstream",
                                        "383",
                                        "mean, skip 2",
                                        "resnet50/amp",
                                        "images/s",
                                        "",
                                        "ours",
                                        "9.5",
                                        ""};
    CLEANUP(table) struct table table = table_of("case|unit|variant|who|>value|rule");
    CLEANUP(strbuf) struct strbuf out = STRBUF(4096);
    fill(&table, CELLS, ARRAY_LEN(CELLS));
    table_render_in(&table, 36, &out);
    assert_string_equal(out.ptr, "in every row: unit images/s; no variant\n"
                                 "case           who             value\n"
                                 "-------------  --------------  -----\n"
                                 "resnet50/fp32  NGC PyTorch of    383\n"
                                 "               upstream\n"
                                 "    rule mean, skip 2\n"
                                 "resnet50/amp   ours              9.5\n");
    strbuf_clear(&out);
    table_render_in(&table, 8, &out);
    assert_true(
        str_starts(strbuf_str(&out),
                   STR_LIT("in every row: unit images/s; no variant\n"
                           "case\n"
                           "--------\n"
                           "resnet50\n"
                           "/fp32\n"
                           "    who NGC PyTorch of upstream; value 383; rule mean, skip 2\n")));
    strbuf_clear(&out);
    table_render_in(&table, 0, &out);
    assert_non_null(strstr(out.ptr, "images/s           NGC PyTorch of upstream    383"));
}

TEST(equal_rows_keep_a_column)
{
    static const char *const CELLS[] = {"one", "two three", "one", "two three"};
    CLEANUP(table) struct table table = table_of("a|b");
    CLEANUP(strbuf) struct strbuf out = STRBUF(4096);
    fill(&table, CELLS, 4);
    table_render_in(&table, 10, &out);
    assert_string_equal(out.ptr, "in every row: b two three\na\n---\none\none\n");
}

static void wraps(const char *text, size_t columns, const char *expected)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(4096);
    text_wrap(str_of(text), columns, &out);
    assert_string_equal(out.ptr, expected);
}

TEST(long_lines_go_on_indented)
{
    wraps("", 10, "");
    wraps("\n\n", 10, "\n\n");
    wraps("ten letter\nno end", 10, "ten letter\nno end");
    wraps("  one two three four\n", 12, "  one two\n    three\n    four\n");
    wraps("a /very/long/path b\n", 6, "a\n  /very/long/path\n  b\n");
    wraps("$ reperf run one two\n", 6, "$ reperf run one two\n");
    wraps("\033[31mred\033[0m and on\n", 7, "\033[31mred\033[0m and\n  on\n");
    wraps("\xe4\xb8\x80\xe4\xb8\x80 x", 4, "\xe4\xb8\x80\xe4\xb8\x80\nx");
    assert_int_equal(text_fit(STR_LIT("fp32/n1g8"), 6, false), 5);
    assert_int_equal(text_fit(STR_LIT("abcdefgh"), 6, false), 6);
    assert_int_equal(text_fit(STR_LIT("\xe4\xb8\x80x"), 1, false), 3);
}

TEST(forms_for_other_programs)
{
    static const char *const CELLS[] = {"plain",           "-0.72",    "a,\"b\"", "=1+1",
                                        "@SUM(A1), again", "-2+3|cmd", "<b>*x*",  "+5"};
    CLEANUP(table) struct table table = table_of("a");
    CLEANUP(strbuf) struct strbuf csv = STRBUF(4096);
    CLEANUP(strbuf) struct strbuf markdown = STRBUF(4096);
    table_add_column(&table, STR_LIT("b|c"), true);
    for (EACH(row, CELLS)) {
        table_add(&table, str_of(*row));
    }
    table_render_csv(&table, &csv);
    table_render_markdown(&table, &markdown);
    assert_string_equal(csv.ptr, "a,b|c\r\n"
                                 "plain,-0.72\r\n"
                                 "\"a,\"\"b\"\"\",'=1+1\r\n"
                                 "\"'@SUM(A1), again\",'-2+3|cmd\r\n"
                                 "<b>*x*,'+5\r\n");
    assert_string_equal(markdown.ptr, "| a | b\\|c |\n"
                                      "| --- | ---: |\n"
                                      "| plain | -0.72 |\n"
                                      "| a,\"b\" | =1+1 |\n"
                                      "| @SUM(A1), again | -2+3\\|cmd |\n"
                                      "| \\<b\\>\\*x\\* | +5 |\n");
}
