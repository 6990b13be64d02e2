/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of reStructuredText (grid, simple, list-table), and the text of notebooks. */
#include "base/base.h"

#include "draft/doc_table_impl.h"

#define CELL_MAX 4096 /* bytes */

struct rst_column {
    size_t from, to; /* of a line; the last reaches to its end */
    struct str text;
};
struct rst_columns {
    struct rst_column items[DOC_COLS_MAX];
    size_t n;
};

static bool is_like(struct doc_reader *r, const char *pattern, struct str line)
{
    return patterns_find(&r->patterns, pattern, str_trim(line), NULL, 0);
}

static bool is_simple_border(struct doc_reader *r, struct str line)
{
    return is_like(r, "^(?=.{5})(?=.* )[= ]+\\z", line);
}

static void add_column(struct doc_reader *r, struct rst_columns *columns, size_t from, size_t to)
{
    if (columns->n == DOC_COLS_MAX) {
        r->out->n_left_out++;
        return;
    }
    columns->items[columns->n++] = (struct rst_column){.from = from, .to = to};
}

static void append(struct doc_reader *r, struct rst_column *column, struct str text)
{
    text = str_trim(text);
    if (text.len && column->text.len + text.len + 1 <= CELL_MAX) {
        column->text =
            column->text.len
                ? str_of(arena_printf(r->arena, "%.*s %.*s", STR_ARG(column->text), STR_ARG(text)))
                : text;
    }
}

/* Emits the row collected so far, if it has text. */
static void flush(struct doc_reader *r, struct doc_table *table, struct rst_columns *columns)
{
    struct doc_cell cells[DOC_COLS_MAX];
    size_t n_text = 0;
    for (size_t c = 0; c < columns->n; c++) {
        cells[c] = doc_clean_cell(r->arena, columns->items[c].text);
        n_text += columns->items[c].text.len > 0;
        columns->items[c].text = STR_EMPTY;
    }
    if (table && n_text) {
        doc_add_row(r, table, cells, columns->n);
    }
}

/* A line of a grid: without a bar at a column's end, the cell spans on. */
static void take_grid_line(struct doc_reader *r, struct rst_columns *columns, struct str line)
{
    for (size_t c = 0; c < columns->n;) {
        size_t last = c;
        while (last + 1 < columns->n &&
               (columns->items[last].to >= line.len || line.ptr[columns->items[last].to] != '|')) {
            last++;
        }
        struct str text = str_sub(line, columns->items[c].from,
                                  columns->items[last].to > columns->items[c].from
                                      ? columns->items[last].to - columns->items[c].from
                                      : 0);
        for (; c <= last; c++) {
            append(r, &columns->items[c], text);
        }
    }
}

static size_t read_grid(struct doc_reader *r, struct rst_columns *columns, size_t at)
{
    struct str border = doc_line_at(r->text, at);
    struct doc_table *table = doc_new_table(r, at);
    struct str edge = str_rtrim(border, 0, " \t\r");
    for (size_t from = str_cspan(edge, 0, "+") + 1, to; from < edge.len; from = to + 1) {
        to = str_cspan(edge, from, "+");
        add_column(r, columns, from, to);
    }
    for (at += border.len + 1; at < r->text.len;) {
        struct str line = doc_line_at(r->text, at);
        struct str bare = str_trim(line);
        if (!bare.len || (bare.ptr[0] != '|' && bare.ptr[0] != '+')) {
            break;
        }
        at += line.len + 1;
        if (is_like(r, "^\\+[^-=]*\\z", line)) {
            break;
        }
        if (bare.ptr[0] == '+') {
            flush(r, table, columns);
        } else {
            take_grid_line(r, columns, line);
        }
    }
    flush(r, table, columns);
    return at;
}

static void take_simple_line(struct doc_reader *r, struct rst_columns *columns, struct str line)
{
    for (size_t c = 0; c < columns->n; c++) {
        size_t from = columns->items[c].from;
        size_t to = c + 1 < columns->n ? columns->items[c + 1].from : line.len;
        if (from < line.len) {
            append(r, &columns->items[c],
                   str_sub(line, from, (to < line.len ? to : line.len) - from));
        }
    }
}

static size_t read_simple(struct doc_reader *r, struct rst_columns *columns, size_t at)
{
    struct str border = doc_line_at(r->text, at);
    struct doc_table *table = doc_new_table(r, at);
    size_t n_borders = 1;
    for (size_t idx = 0; idx < border.len; idx++) {
        if (border.ptr[idx] == '=' && (idx == 0 || border.ptr[idx - 1] != '=')) {
            add_column(r, columns, idx, border.len);
        }
    }
    for (at += border.len + 1; at < r->text.len && n_borders < 3;) {
        struct str line = doc_line_at(r->text, at);
        at += line.len + 1;
        if (is_simple_border(r, line)) {
            n_borders++;
            flush(r, table, columns);
            if (!str_trim(doc_line_at(r->text, at)).len && n_borders == 2 && table &&
                table->n_rows > 1) {
                break; /* a table without a header */
            }
            continue;
        }
        if (columns->n && columns->items[0].from < line.len &&
            line.ptr[columns->items[0].from] != ' ' && n_borders > 1) {
            flush(r, table, columns); /* a line that begins in the first column begins a row */
        }
        take_simple_line(r, columns, line);
    }
    flush(r, table, columns);
    return at;
}

/* "* - a" begins a row, "- b" continues it. */
static size_t read_list(struct doc_reader *r, struct rst_columns *columns, size_t at)
{
    struct doc_table *table = doc_new_table(r, at);
    size_t n = 0;
    at += doc_line_at(r->text, at).len + 1;
    while (at < r->text.len) {
        struct str line = doc_line_at(r->text, at);
        struct str bare = str_trim(line);
        bool is_row = str_starts(bare, STR_LIT("* -"));
        if (bare.len && line.ptr[0] != ' ' && line.ptr[0] != '\t') {
            break;
        }
        at += line.len + 1;
        if (is_row) {
            columns->n = n;
            flush(r, table, columns);
            columns->n = 0;
            n = 0;
        }
        if (is_row || (str_starts(bare, STR_LIT("-")) && n > 0)) {
            add_column(r, columns, 0, 0);
            n = columns->n;
            if (n > 0) {
                append(r, &columns->items[n - 1], str_sub(bare, is_row ? 3 : 1, bare.len));
            }
        } else if (n > 0) {
            append(r, &columns->items[n - 1], bare);
        }
    }
    flush(r, table, columns);
    return at;
}

/* A heading is underlined by one character, as long as itself or longer. */
static void note_heading(struct doc_reader *r, size_t at, struct str line)
{
    struct str under = str_trim(doc_line_at(r->text, at + line.len + 1));
    struct str title = str_trim(line);
    if (title.len < 3 || under.len < title.len ||
        !is_like(r, "^([-=~^\"#*'`+.:_])\\g1*\\z", under) ||
        str_span(title, 0, (const char[]){under.ptr[0], '\0'}) == title.len) {
        return;
    }
    r->heading = doc_clean_cell(r->arena, title).text;
    r->heading_end = at + line.len;
    r->out->title = r->out->title.ptr ? r->out->title : r->heading;
}

void doc_read_rst(struct doc_reader *r)
{
    for (size_t at = 0; at < r->text.len;) {
        struct str line = doc_line_at(r->text, at);
        struct rst_columns columns = {.n = 0};
        if (is_like(r, "^\\+[-+=]+\\+\\z", line)) {
            at = read_grid(r, &columns, at);
        } else if (is_simple_border(r, line)) {
            at = read_simple(r, &columns, at);
        } else if (str_find(line, STR_LIT(".. list-table::")) >= 0) {
            at = read_list(r, &columns, at);
        } else {
            note_heading(r, at, line);
            at += line.len + 1;
        }
    }
}

/* Unescapes the string in a line of JSON into `out`; returns its length. */
static size_t unescape(struct str line, char *out)
{
    struct str text = str_trim(line);
    size_t len = 0;
    while (text.len && text.ptr[text.len - 1] != '"') {
        text.len--;
    }
    if (text.len < 2 || text.ptr[0] != '"') {
        return 0;
    }
    text = str_sub(text, 1, text.len - 2);
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (c == '\\' && idx + 1 < text.len) {
            c = text.ptr[++idx];
            c = c == 'n' && idx + 1 < text.len ? '\n' : c == 'n' || c == 't' ? ' ' : c;
        }
        out[len++] = c;
    }
    return len;
}

struct str doc_notebook_text(struct arena *arena, struct str json)
{
    char *out = arena_strndup(arena, json.ptr ? json.ptr : "", json.len);
    size_t len = 0;
    for (size_t at = 0; at < json.len;) {
        struct str line = doc_line_at(json, at);
        at += line.len + 1;
        len += unescape(line, out + len);
        out[len++] = '\n';
    }
    return (struct str){out, len < json.len ? len : json.len};
}
