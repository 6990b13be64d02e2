/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include <math.h>

#include "base/vec.h"

#define CELL_BYTES_MAX 4096

void table_init(struct table *table, const struct table_column *columns, size_t n_columns)
{
    ASSERT(n_columns > 0);
    ASSERT(n_columns <= TABLE_COLUMNS_MAX);
    *table = (struct table){.columns = columns, .n_columns = n_columns};
}

void table_release(struct table *table)
{
    arena_release(&table->arena);
    free(table->cells);
    *table = (struct table){0};
}

void table_add(struct table *table, struct str text)
{
    char *copy = arena_strndup(&table->arena, text.ptr ? text.ptr : "", text.len);
    text_plain_line(copy, text.len);
    if (table->n_cells == table->n_max) {
        table->cells = vec_grow(table->cells, &table->n_max, sizeof(table->cells[0]));
    }
    table->cells[table->n_cells++] = (struct str){copy, text.len};
}

static void PRINTF_LIKE(2, 0) add_args(struct table *table, const char *fmt, va_list args)
{
    char text[CELL_BYTES_MAX];
    int len = vsnprintf(text, sizeof(text), fmt, args);
    ASSERT(len >= 0);
    table_add(table, str_of(text));
}

void table_addf(struct table *table, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_args(table, fmt, args);
    va_end(args);
}

void table_addf_if(struct table *table, bool is_known, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (is_known) {
        add_args(table, fmt, args);
    } else {
        table_add(table, STR_LIT("-"));
    }
    va_end(args);
}

void table_add_or_dash(struct table *table, struct str text)
{
    table_add(table, text.len ? text : STR_LIT("-"));
}

void table_add_f64(struct table *table, double value)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, 64);
    if (isfinite(value)) {
        strbuf_add_f64(&text, value);
    }
    table_add(table, strbuf_str(&text));
}

/* One code point's first byte and length; a byte that begins none counts as one. */
static size_t code_point(struct str text, size_t at, uint32_t *ret_code)
{
    unsigned char c = (unsigned char)text.ptr[at];
    size_t len = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    uint32_t code = len == 1 ? c : (uint32_t)(c & (0xff >> (len + 1)));
    if (at + len > text.len) {
        len = text.len - at;
    }
    for (size_t idx = 1; idx < len; idx++) {
        code = code << 6 | ((unsigned char)text.ptr[at + idx] & 0x3f);
    }
    *ret_code = code;
    return len;
}

/* Source: Unicode EastAsianWidth, the blocks that are W or F throughout. */
static bool is_wide(uint32_t code)
{
    return (code >= 0x1100 && code <= 0x115f) || (code >= 0x2e80 && code <= 0xa4cf) ||
           (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) ||
           (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) ||
           (code >= 0xffe0 && code <= 0xffe6) || (code >= 0x20000 && code <= 0x3fffd);
}

size_t text_columns(struct str text)
{
    size_t columns = 0;
    for (size_t at = 0; at < text.len;) {
        uint32_t code;
        at += code_point(text, at, &code);
        columns += is_wide(code) ? 2 : 1;
    }
    return columns;
}

static void pad(struct strbuf *out, char c, size_t count)
{
    while (count--) {
        strbuf_add_char(out, c);
    }
}

/* One line; the last column gets no trailing blanks if it is left-aligned. */
static void add_line(const struct table *table, const size_t *widths, const struct str *cells,
                     struct strbuf *out)
{
    size_t n_last = table->n_columns;
    while (n_last > 0 && cells[n_last - 1].len == 0) {
        n_last--;
    }
    for (size_t idx = 0; idx < n_last; idx++) {
        size_t gap = widths[idx] - text_columns(cells[idx]);
        if (idx) {
            strbuf_add_z(out, "  ");
        }
        if (table->columns[idx].is_right) {
            pad(out, ' ', gap);
        }
        strbuf_add_str(out, cells[idx]);
        if (!table->columns[idx].is_right && idx + 1 < n_last) {
            pad(out, ' ', gap);
        }
    }
    strbuf_add_char(out, '\n');
}

void table_render(const struct table *table, struct strbuf *out)
{
    size_t widths[TABLE_COLUMNS_MAX] = {0};
    struct str heads[TABLE_COLUMNS_MAX];
    ASSERT(table->n_cells % table->n_columns == 0);
    for (size_t idx = 0; idx < table->n_columns; idx++) {
        heads[idx] = str_of(table->columns[idx].head);
        widths[idx] = text_columns(heads[idx]);
    }
    for (size_t idx = 0; idx < table->n_cells; idx++) {
        size_t width = text_columns(table->cells[idx]);
        size_t column = idx % table->n_columns;
        widths[column] = width > widths[column] ? width : widths[column];
    }
    add_line(table, widths, heads, out);
    for (size_t idx = 0; idx < table->n_columns; idx++) {
        strbuf_add_z(out, idx ? "  " : "");
        pad(out, '-', widths[idx]);
    }
    strbuf_add_char(out, '\n');
    for (size_t row = 0; row < table->n_cells; row += table->n_columns) {
        add_line(table, widths, table->cells + row, out);
    }
}
