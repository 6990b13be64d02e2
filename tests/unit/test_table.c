/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/table.h"

TEST(columns_line_up_and_numbers_go_right)
{
    static const struct table_column COLUMNS[] = {
        {"case", false}, {"value", true}, {"note", false}};
    CLEANUP(table) struct table table;
    CLEANUP(strbuf) struct strbuf out = {0};
    strbuf_init(&out, 4096);
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    table_add(&table, STR_LIT("resnet50"));
    table_addf(&table, "%.1f", 383.0);
    table_add(&table, STR_LIT("\xe4\xb8\x80 x"));
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
    static const struct table_column COLUMNS[] = {{"a", false}};
    CLEANUP(table) struct table table;
    CLEANUP(strbuf) struct strbuf out = {0};
    strbuf_init(&out, 4096);
    table_init(&table, COLUMNS, 1);
    table_add(&table, STR_LIT("\x1b[31mred\n"));
    table_render(&table, &out);
    assert_string_equal(out.ptr, "a\n---------\n?[31mred?\n");
}

TEST(width_counts_code_points)
{
    assert_int_equal(text_columns(STR_LIT("")), 0);
    assert_int_equal(text_columns(STR_LIT("\xc3\xa9\xe2\x80\x93")), 2);
    assert_int_equal(text_columns(STR_LIT("\xe5\x8d\xa1")), 2);
    assert_int_equal(text_columns(STR_LIT("\xe5\x8d")), 1);
}

TEST(forms_for_other_programs)
{
    static const struct table_column COLUMNS[] = {{"a", false}, {"b|c", true}};
    static const char *const CELLS[] = {"plain",           "-0.72",    "a,\"b\"", "=1+1",
                                        "@SUM(A1), again", "-2+3|cmd", "<b>*x*",  "+5"};
    CLEANUP(table) struct table table;
    CLEANUP(strbuf) struct strbuf csv = {0};
    CLEANUP(strbuf) struct strbuf markdown = {0};
    strbuf_init(&csv, 4096);
    strbuf_init(&markdown, 4096);
    table_init(&table, COLUMNS, 2);
    for (size_t idx = 0; idx < ARRAY_LEN(CELLS); idx++) {
        table_add(&table, str_of(CELLS[idx]));
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
