/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/table.h"

#include <math.h>

#include "base/log.h"
#include "base/vec.h"

#define GAP_COLUMNS    2
#define FOLDED_COLUMNS 12 /* what a column of text may be folded to */
#define FOLDED_LINES   3  /* as long as its longest cell then takes no more lines */

struct table table_of(const char *heads)
{
    struct table table = {.n_columns = 0};
    struct str rest = str_of(heads), head;
    while (str_next(&rest, '|', &head)) {
        bool is_right = str_starts(head, STR_LIT(">"));
        table_add_column(&table, str_sub(head, is_right, SIZE_MAX), is_right);
    }
    return table;
}

void table_add_column(struct table *table, struct str head, bool is_right)
{
    ASSERT(table->n_columns < TABLE_COLUMNS_MAX);
    table->columns[table->n_columns++] = (struct table_column){head, is_right};
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

void table_add_all(struct table *table, const struct str *cells, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        table_add(table, cells[idx]);
    }
}

void table_addf(struct table *table, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    table_add(table, str_vprintf(&table->arena, fmt, args));
    va_end(args);
}

struct str table_text(struct table *table, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct str text = str_vprintf(&table->arena, fmt, args);
    va_end(args);
    return text;
}

struct str table_text_if(struct table *table, bool is_known, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct str text = is_known ? str_vprintf(&table->arena, fmt, args) : STR_LIT("-");
    va_end(args);
    return text;
}

struct str table_or_dash(struct str text)
{
    return text.len ? text : STR_LIT("-");
}

struct str table_f64(struct table *table, double value)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(64);
    if (isfinite(value)) {
        strbuf_add_f64(&text, value);
    }
    return text.len ? str_dup(&table->arena, strbuf_str(&text)) : STR_EMPTY;
}

/* One code point and its length; a byte that begins none counts as one. */
static size_t code_point(struct str text, size_t at, uint32_t *ret_code)
{
    *ret_code = (unsigned char)text.ptr[at];
    size_t len = utf8_at(str_sub(text, at, text.len), ret_code);
    return len ? len : 1;
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

/* Bytes and columns of what stands at `at`: a code point, or a colour to its "m", which takes no room. */
static size_t take_sign(struct str text, size_t at, uint32_t *ret_code, size_t *columns)
{
    size_t len = code_point(text, at, ret_code);
    if (*ret_code == 0x1b) {
        const char *end = memchr(text.ptr + at, 'm', text.len - at);
        return end ? (size_t)(end - text.ptr) - at + 1 : len;
    }
    *columns += is_wide(*ret_code) ? 2 : 1;
    return len;
}

size_t text_fit(struct str text, size_t columns_max, bool keeps_words)
{
    size_t columns = 0, blank = 0, mark = 0, len;
    for (size_t at = 0; at < text.len; at += len) {
        uint32_t code;
        len = take_sign(text, at, &code, &columns);
        if (code == ' ') {
            blank = at;
        }
        if (columns > columns_max && at > 0 && (blank || !keeps_words)) {
            return blank ? blank : mark ? mark : at;
        }
        if (code && code < 0x80 && strchr("/-_,:;=#", (int)code)) {
            mark = at + len;
        }
    }
    return text.len;
}

static struct str without_blanks(struct str text)
{
    size_t n = str_span(text, 0, " ");
    return str_sub(text, n, SIZE_MAX);
}

void text_wrap(struct str text, size_t columns_max, struct strbuf *out)
{
    struct str line;
    while (str_next(&text, '\n', &line)) {
        struct str rest = without_blanks(line);
        size_t indent = line.len - rest.len;
        bool is_first = true;
        bool is_command = str_find(line, STR_LIT("$ ")) >= 0; /* it is to be copied */
        do {
            size_t room = columns_max > indent ? columns_max - indent : 1;
            size_t n = is_command ? rest.len : text_fit(rest, room, true);
            pad(out, ' ', n ? indent : 0);
            strbuf_add_str(out, str_sub(rest, 0, n));
            rest = without_blanks(str_sub(rest, n, SIZE_MAX));
            if (rest.len || text.ptr) {
                strbuf_add_char(out, '\n');
            }
            indent += is_first && indent + 2 < columns_max / 2 ? 2 : 0;
            is_first = false;
        } while (rest.len);
    }
}

/* Which columns stand beside each other, and how wide. The others are the same in every row, or stand below theirs. */
struct table_layout {
    size_t shown[TABLE_COLUMNS_MAX], widths[TABLE_COLUMNS_MAX]; /* of each shown one */
    size_t n_shown;
    bool is_same[TABLE_COLUMNS_MAX]; /* of each column: said once, above */
};

/* One line; the last column gets no trailing blanks if it is left-aligned. */
static void add_line(const struct table *table, const struct table_layout *l,
                     const struct str *cells, struct strbuf *out)
{
    size_t n_last = l->n_shown;
    while (n_last > 0 && cells[n_last - 1].len == 0) {
        n_last--;
    }
    for (size_t idx = 0; idx < n_last; idx++) {
        size_t gap = l->widths[idx] - text_columns(cells[idx]);
        bool is_right = table->columns[l->shown[idx]].is_right;
        pad(out, ' ', (idx ? GAP_COLUMNS : 0) + (is_right ? gap : 0));
        strbuf_add_str(out, cells[idx]);
        pad(out, ' ', is_right || idx + 1 == n_last ? 0 : gap);
    }
    strbuf_add_char(out, '\n');
}

static void add_named(const struct table *table, const struct table_layout *l, size_t row,
                      bool is_above, struct strbuf *out)
{
    const char *between = is_above ? "in every row: " : "    ";
    for (size_t column = 0, at = 0; column < table->n_columns; column++) {
        struct str cell = table->cells[row + column];
        bool is_shown = at < l->n_shown && l->shown[at] == column;
        at += is_shown;
        bool has_text = cell.len && !str_eq_z(cell, "-");
        if (is_shown || l->is_same[column] != is_above || !(is_above || has_text)) {
            continue;
        }
        strbuf_printf(out, has_text ? "%s%.*s %.*s" : "%sno %.*s", between,
                      STR_ARG(table->columns[column].head), STR_ARG(cell));
        between = "; ";
    }
    if (*between == ';') {
        strbuf_add_char(out, '\n');
    }
}

/* The shown cells of a row, folded to their columns; then the others. */
static void add_row(const struct table *table, const struct table_layout *l, size_t row,
                    struct strbuf *out)
{
    struct str rest[TABLE_COLUMNS_MAX];
    size_t n_left;
    for (size_t idx = 0; idx < l->n_shown; idx++) {
        rest[idx] = table->cells[row + l->shown[idx]];
    }
    do {
        struct str line[TABLE_COLUMNS_MAX];
        n_left = 0;
        for (size_t idx = 0; idx < l->n_shown; idx++) {
            line[idx] = str_sub(rest[idx], 0, text_fit(rest[idx], l->widths[idx], false));
            rest[idx] = without_blanks(str_sub(rest[idx], line[idx].len, SIZE_MAX));
            n_left += rest[idx].len;
        }
        add_line(table, l, line, out);
    } while (n_left);
    add_named(table, l, row, false, out);
}

static void measure_columns(const struct table *table, size_t *widths, bool *is_same)
{
    size_t n_rows = table->n_cells / table->n_columns;
    for (size_t column = 0; column < table->n_columns; column++) {
        widths[column] = text_columns(table->columns[column].head);
        is_same[column] = n_rows > 1;
        for (size_t at = column; at < table->n_cells; at += table->n_columns) {
            size_t width = text_columns(table->cells[at]);
            widths[column] = width > widths[column] ? width : widths[column];
            is_same[column] = is_same[column] && str_eq(table->cells[at], table->cells[column]);
        }
    }
}

/* Numbers, and what identifies a row, are never folded. */
static size_t least_width(const struct table *table, size_t column, size_t width)
{
    size_t head = text_columns(table->columns[column].head);
    size_t least = (width + FOLDED_LINES - 1) / FOLDED_LINES;
    least = least > FOLDED_COLUMNS ? least : FOLDED_COLUMNS;
    least = least > head ? least : head;
    return table->columns[column].is_right || column == 0 || least > width ? width : least;
}

/* As many columns as fit, from the left; what room is left goes to those that are folded most. */
static void fit_columns(const struct table *table, const size_t *widths, size_t columns_max,
                        struct table_layout *l)
{
    size_t used = 0;
    /* Where all rows are equal one column stands for them. */
    l->is_same[0] = l->is_same[0] && memchr(l->is_same, false, table->n_columns);
    for (size_t column = 0; column < table->n_columns; column++) {
        size_t least = least_width(table, column, widths[column]);
        if (l->is_same[column]) {
            continue;
        }
        if (l->n_shown == 0 && least > columns_max) {
            least = columns_max;
        } else if (used + least > columns_max) {
            break;
        }
        used += least + GAP_COLUMNS;
        l->shown[l->n_shown] = column;
        l->widths[l->n_shown++] = least;
    }
    for (size_t room = columns_max + GAP_COLUMNS - used; l->n_shown && room > 0; room--) {
        size_t most = 0;
        for (size_t idx = 1; idx < l->n_shown; idx++) {
            most = widths[l->shown[idx]] - l->widths[idx] > widths[l->shown[most]] - l->widths[most]
                       ? idx
                       : most;
        }
        l->widths[most] += widths[l->shown[most]] > l->widths[most];
    }
}

/* columns_max 0: as wide as it is. */
static void choose_layout(const struct table *table, size_t columns_max, struct table_layout *l)
{
    size_t widths[TABLE_COLUMNS_MAX];
    size_t whole = 0;
    *l = (struct table_layout){0};
    measure_columns(table, widths, l->is_same);
    for (size_t column = 0; column < table->n_columns; column++) {
        whole += widths[column] + (column ? GAP_COLUMNS : 0);
    }
    if (columns_max && whole > columns_max) {
        fit_columns(table, widths, columns_max, l);
        return;
    }
    memset(l->is_same, 0, sizeof(l->is_same));
    for (size_t column = 0; column < table->n_columns; column++) {
        l->shown[column] = column;
        l->widths[column] = widths[column];
    }
    l->n_shown = table->n_columns;
}

void table_render_in(const struct table *table, size_t columns_max, struct strbuf *out)
{
    struct table_layout layout;
    struct str heads[TABLE_COLUMNS_MAX] = {0};
    ASSERT(table->n_columns > 0);
    ASSERT(table->n_columns <= TABLE_COLUMNS_MAX);
    ASSERT(table->n_cells % table->n_columns == 0);
    choose_layout(table, columns_max, &layout);
    if (table->n_cells) {
        add_named(table, &layout, 0, true, out);
    }
    for (size_t idx = 0; idx < layout.n_shown; idx++) {
        heads[idx] = table->columns[layout.shown[idx]].head;
    }
    add_line(table, &layout, heads, out);
    for (size_t idx = 0; idx < layout.n_shown; idx++) {
        pad(out, ' ', idx ? GAP_COLUMNS : 0);
        pad(out, '-', layout.widths[idx]);
    }
    strbuf_add_char(out, '\n');
    for (size_t row = 0; row < table->n_cells; row += table->n_columns) {
        add_row(table, &layout, row, out);
    }
}

void table_render(const struct table *table, struct strbuf *out)
{
    table_render_in(table, (size_t)log_output_columns(), out);
}

/* Tables for other programs: comma-separated values and Markdown. */

static bool is_one_of(char byte, const char *bytes)
{
    return byte != '\0' && strchr(bytes, byte);
}

/* A spreadsheet takes such a cell for a formula unless a ' precedes it; a number stays a number. Source: OWASP, "CSV Injection"
   (read 2026-11). */
static bool is_formula(struct str cell)
{
    double number;
    return cell.len > 0 && is_one_of(cell.ptr[0], "=+-@") &&
           str_to_f64(cell, &number, ERR_IGNORED) < 0;
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
