/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for other programs: comma-separated values and Markdown. */
#include "base/base.h"

#include "base/table.h"

static bool is_one_of(char byte, const char *bytes)
{
    return byte != '\0' && strchr(bytes, byte);
}

/* A spreadsheet takes such a cell for a formula unless a ' precedes it; a number stays a number. Source: OWASP, "CSV Injection" (read
   2026-11). */
static bool is_formula(struct str cell)
{
    struct err ignored = {0};
    double number;
    return cell.len > 0 && is_one_of(cell.ptr[0], "=+-@") &&
           str_to_f64(cell, &number, &ignored) < 0;
}

static void add_csv_cell(struct strbuf *out, struct str cell)
{
    bool is_guarded = is_formula(cell);
    bool is_quoted = false;
    for (size_t idx = 0; idx < cell.len; idx++) {
        is_quoted = is_quoted || is_one_of(cell.ptr[idx], ",;\"\r\n");
    }
    strbuf_add_z(out, is_quoted ? "\"" : "");
    strbuf_add_z(out, is_guarded ? "'" : "");
    for (size_t idx = 0; idx < cell.len; idx++) {
        strbuf_add_z(out, cell.ptr[idx] == '"' ? "\"" : "");
        strbuf_add_char(out, cell.ptr[idx]);
    }
    strbuf_add_z(out, is_quoted ? "\"" : "");
}

void table_render_csv(const struct table *table, struct strbuf *out)
{
    ASSERT(table->n_cells % table->n_columns == 0);
    for (size_t idx = 0; idx < table->n_columns; idx++) {
        strbuf_add_z(out, idx ? "," : "");
        add_csv_cell(out, table->columns[idx].head);
    }
    strbuf_add_z(out, "\r\n");
    for (size_t idx = 0; idx < table->n_cells; idx++) {
        bool is_last = (idx + 1) % table->n_columns == 0;
        add_csv_cell(out, table->cells[idx]);
        strbuf_add_z(out, is_last ? "\r\n" : ",");
    }
}

void markdown_text(struct strbuf *out, struct str text)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        if (is_one_of(text.ptr[idx], "\\`*_[]<>|~&")) {
            strbuf_add_char(out, '\\');
        }
        strbuf_add_char(out, text.ptr[idx]);
    }
}

void table_render_markdown(const struct table *table, struct strbuf *out)
{
    ASSERT(table->n_cells % table->n_columns == 0);
    for (size_t idx = 0; idx < table->n_columns; idx++) {
        strbuf_add_z(out, "| ");
        markdown_text(out, table->columns[idx].head);
        strbuf_add_char(out, ' ');
    }
    strbuf_add_z(out, "|\n");
    for (size_t idx = 0; idx < table->n_columns; idx++) {
        strbuf_add_z(out, table->columns[idx].is_right ? "| ---: " : "| --- ");
    }
    strbuf_add_z(out, "|\n");
    for (size_t idx = 0; idx < table->n_cells; idx++) {
        bool is_last = (idx + 1) % table->n_columns == 0;
        strbuf_add_z(out, "| ");
        markdown_text(out, table->cells[idx]);
        strbuf_add_z(out, is_last ? " |\n" : " ");
    }
}
