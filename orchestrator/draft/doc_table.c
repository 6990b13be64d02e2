/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/doc_table.h"

#include "codec/pattern.h"
#include "draft/csv.h"

#define SPAN_MAX   64
#define ROWS_FIRST 16   /* a power of two */
#define LINK_MAX   2048 /* bytes of a target */
#define CELL_MAX   4096 /* bytes */
#define DOC_LEVELS 6

struct doc_reader {
    struct arena *arena;
    struct str text;
    struct doc_tables *out;
    struct patterns patterns; /* owned */
    struct str heading;
    struct str levels[DOC_LEVELS + 1]; /* the headings that enclose it, by level */
    int level;                         /* of heading */
    size_t heading_end;
    size_t counted; /* lines are counted up to here */
    int64_t line;
};
/* ---- text of a cell ---- */

static size_t skip_tag(struct str text, size_t at)
{
    const char *end = memchr(text.ptr + at, '>', text.len - at);
    return end ? (size_t)(end - text.ptr) + 1 : text.len;
}

static bool looks_like_tag(struct str text, size_t at)
{
    char next = at + 1 < text.len ? text.ptr[at + 1] : ' ';
    return text.ptr[at] == '<' && (next == '/' || next == '!' || (next | 0x20) == 'a' ||
                                   ((next | 0x20) >= 'b' && (next | 0x20) <= 'z'));
}

/* The value of href="...". */
static struct str link_of_tag(struct str tag)
{
    int64_t at = str_find(tag, STR_LIT("href=\""));
    struct str rest = at < 0 ? STR_EMPTY : str_sub(tag, (size_t)at + 6, tag.len);
    struct str link = STR_EMPTY;
    return rest.len && str_next(&rest, '"', &link) ? link : STR_EMPTY;
}

/* "](target" after a Markdown link's text: the end of it, or `at`. */
static size_t skip_target(struct str text, size_t at, struct str *ret_link)
{
    if (!str_starts(str_sub(text, at, 2), STR_LIT("]("))) {
        return at;
    }
    const char *end =
        memchr(text.ptr + at, ')', text.len - at < LINK_MAX ? text.len - at : LINK_MAX);
    if (!end) {
        return at;
    }
    *ret_link = str_sub(text, at + 2, (size_t)(end - text.ptr) - at - 2);
    return (size_t)(end - text.ptr) + 1;
}

static struct doc_cell clean_cell(struct arena *arena, struct str text)
{
    struct doc_cell cell = {0};
    char *copy = arena_strndup(arena, text.ptr ? text.ptr : "", text.len);
    size_t len = 0;
    for (size_t at = 0; at < text.len;) {
        char c = text.ptr[at];
        struct str link = STR_EMPTY;
        if (looks_like_tag(text, at)) {
            size_t end = skip_tag(text, at);
            link = link_of_tag(str_sub(text, at, end - at));
            at = end;
            copy[len++] = ' ';
        } else if (c == ']' && skip_target(text, at, &link) > at) {
            at = skip_target(text, at, &link);
        } else if (c == '*' || c == '`' || c == '[' || c == '\\' ||
                   str_starts(str_sub(text, at, 6), STR_LIT("&nbsp;"))) {
            at += c == '&' ? 6 : 1;
        } else {
            copy[len++] = c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
            at++;
        }
        cell.link = cell.link.ptr ? cell.link : link;
    }
    cell.text = str_trim((struct str){copy, len});
    cell.link = cell.link.ptr ? str_dup(arena, cell.link) : STR_EMPTY;
    return cell;
}

/* ---- a table's place ---- */

static int64_t line_of(struct doc_reader *r, size_t at)
{
    for (; r->counted < at && r->counted < r->text.len; r->counted++) {
        r->line += r->text.ptr[r->counted] == '\n';
    }
    return r->line + 1;
}

/* NULL if there are too many. */
static struct doc_table *new_table(struct doc_reader *r, size_t at)
{
    size_t from = at - (at > DOC_BEFORE_MAX ? DOC_BEFORE_MAX : at);
    if (r->out->n == DOC_TABLES_MAX) {
        r->out->n_left_out++;
        return NULL;
    }
    struct doc_table *table = &r->out->items[r->out->n++];
    from = from > r->heading_end ? from : r->heading_end;
    table->heading = r->heading;
    for (int level = r->level - 1; level > 1 && !table->outer.ptr; level--) {
        table->outer = r->levels[level];
    }
    table->before = str_sub(r->text, from, at > from ? at - from : 0);
    table->line = line_of(r, at);
    return table;
}

static void add_row(struct doc_reader *r, struct doc_table *table, const struct doc_cell *cells,
                    size_t n)
{
    if (table->n_rows == DOC_ROWS_MAX) {
        r->out->n_left_out++;
        return;
    }
    if (table->n_rows == 0 ||
        (table->n_rows >= ROWS_FIRST && !(table->n_rows & (table->n_rows - 1)))) {
        size_t max = table->n_rows ? 2 * table->n_rows : ROWS_FIRST;
        struct doc_row *rows = arena_array(r->arena, struct doc_row, max);
        if (table->n_rows) {
            memcpy(rows, table->rows, table->n_rows * sizeof(rows[0]));
        }
        table->rows = rows;
    }
    struct doc_row *row = &table->rows[table->n_rows++];
    row->cells = arena_array(r->arena, struct doc_cell, n + 1);
    row->n = n;
    if (n) {
        memcpy(row->cells, cells, n * sizeof(cells[0]));
    }
}

/* ---- Markdown and CSV: a row a line ---- */

static struct str line_at(struct str text, size_t at)
{
    const char *end = at < text.len ? memchr(text.ptr + at, '\n', text.len - at) : NULL;
    return str_sub(text, at, end ? (size_t)(end - text.ptr) - at : text.len - at);
}

static bool is_rule(struct doc_reader *r, struct str line)
{
    return patterns_find(&r->patterns, "^(?=.*-)(?=.*[|+])[-|:+ \\t\r]+\\z", line, NULL, 0);
}

static size_t split_bars(struct doc_reader *r, struct str line, struct doc_cell *cells)
{
    size_t n = 0;
    size_t from = 0;
    line = str_trim(line);
    if (line.len && line.ptr[0] == '|') {
        line = str_sub(line, 1, line.len);
    }
    if (line.len && line.ptr[line.len - 1] == '|') {
        line.len--;
    }
    for (size_t at = 0; at <= line.len; at++) {
        bool is_bar = at == line.len || (line.ptr[at] == '|' && !(at && line.ptr[at - 1] == '\\'));
        if (!is_bar) {
            continue;
        }
        if (n == DOC_COLS_MAX) {
            r->out->n_left_out++;
            return n;
        }
        cells[n++] = clean_cell(r->arena, str_sub(line, from, at - from));
        from = at + 1;
    }
    return n;
}

/* The table whose header line is at `at`; returns where the text goes on. */
static size_t read_bars(struct doc_reader *r, size_t at, struct str head)
{
    struct doc_cell cells[DOC_COLS_MAX];
    struct doc_table *table = new_table(r, at);
    size_t next = at + head.len + 1;
    if (table) {
        add_row(r, table, cells, split_bars(r, head, cells));
    }
    next += line_at(r->text, next).len + 1; /* the rule below the header */
    while (next < r->text.len) {
        struct str line = line_at(r->text, next);
        if (!memchr(line.ptr, '|', line.len)) {
            break;
        }
        if (table) {
            add_row(r, table, cells, split_bars(r, line, cells));
        }
        next += line.len + 1;
    }
    return next;
}

static void read_csv(struct doc_reader *r)
{
    static const char DELIMITERS[] = ",;\t";
    struct str head = line_at(r->text, 0);
    struct csv csv = {.rest = r->text};
    struct doc_table *table = NULL;
    struct str fields[DOC_COLS_MAX];
    size_t n;
    for (const char *d = DELIMITERS; *d && !csv.delimiter; d++) {
        csv.delimiter = head.len && memchr(head.ptr, *d, head.len) ? *d : '\0';
    }
    table = csv.delimiter ? new_table(r, 0) : NULL;
    while (table && csv_row(&csv, r->arena, fields, DOC_COLS_MAX, &n)) {
        struct doc_cell cells[DOC_COLS_MAX];
        size_t n_kept = n < DOC_COLS_MAX ? n : DOC_COLS_MAX;
        r->out->n_left_out += n > DOC_COLS_MAX;
        for (size_t idx = 0; idx < n_kept; idx++) {
            cells[idx] = clean_cell(r->arena, fields[idx]);
        }
        if (n > 1 || fields[0].len) {
            add_row(r, table, cells, n_kept);
        }
    }
}

/* ---- HTML ---- */

/* The number after a tag's attribute; 1 where there is none. */
static size_t span_of(struct doc_reader *r, const char *attribute, struct str tag)
{
    struct str g[2];
    int64_t value = 1;
    return patterns_find(&r->patterns, attribute, tag, g, 2) &&
                   str_to_i64(g[1], 1, SPAN_MAX, &value, ERR_IGNORED) == 0
               ? (size_t)value
               : 1;
}

struct html_row {
    struct doc_cell cells[DOC_COLS_MAX];
    size_t n;
    bool is_open;
    struct doc_cell spanning[DOC_COLS_MAX]; /* into the rows below */
    size_t left[DOC_COLS_MAX];              /* so many of these */
};

static void carry_down(struct html_row *row)
{
    while (row->n < DOC_COLS_MAX && row->left[row->n] > 0) {
        row->left[row->n]--;
        row->cells[row->n] = row->spanning[row->n];
        row->n++;
    }
}

static void add_cell(struct doc_reader *r, struct html_row *row, struct str tag, struct str text)
{
    struct doc_cell cell = clean_cell(r->arena, text);
    size_t wide = span_of(r, "colspan[=\"']*(\\d+)", tag);
    size_t deep = span_of(r, "rowspan[=\"']*(\\d+)", tag);
    for (size_t idx = 0; idx < wide; idx++) {
        if (row->n == DOC_COLS_MAX) {
            r->out->n_left_out++;
            return;
        }
        row->spanning[row->n] = cell;
        row->left[row->n] = deep - 1;
        row->cells[row->n++] = cell;
    }
    carry_down(row);
}

/* The table whose tag is at `at`; returns where it ends. A cell ends where any tag of the table's structure stands. */
static size_t read_html(struct doc_reader *r, size_t at)
{
    static const char TAG[] = "(?i)<(/?(?:table|tr|td|th))(?![a-z])[^>]*>?";
    struct doc_table *table = new_table(r, at);
    struct html_row row = {.n = 0};
    struct str cell = STR_EMPTY; /* the tag of the one that is open */
    bool is_end = false;
    for (at++; !is_end;) {
        struct str rest = str_sub(r->text, at, SIZE_MAX);
        struct str g[2] = {str_sub(rest, rest.len, 0), STR_LIT("/table")};
        (void)patterns_find(&r->patterns, TAG, rest, g, 2);
        bool is_row = g[1].len == 2 && (g[1].ptr[1] | 0x20) == 'r';
        is_end = g[1].len == 6 && g[1].ptr[0] == '/';
        if (cell.ptr) {
            add_cell(r, &row, cell,
                     (struct str){cell.ptr + cell.len, (size_t)(g[0].ptr - cell.ptr) - cell.len});
        }
        cell = row.is_open && g[1].len == 2 && !is_row ? g[0] : STR_EMPTY;
        if (is_row || is_end) {
            if (table && row.n) {
                add_row(r, table, row.cells, row.n);
            }
            row.n = 0;
            row.is_open = true;
            carry_down(&row);
        }
        at = (size_t)(g[0].ptr - r->text.ptr) + (is_end ? 0 : g[0].len);
    }
    return at;
}

/* ---- reStructuredText ---- */

static void set_heading(struct doc_reader *r, size_t end, struct str line)
{
    r->heading = clean_cell(r->arena, line).text;
    r->heading_end = end;
    r->out->title = r->out->title.ptr ? r->out->title : r->heading;
}

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
        column->text = column->text.len
                           ? str_printf(r->arena, "%.*s %.*s", STR_ARG(column->text), STR_ARG(text))
                           : text;
    }
}

/* Emits the row collected so far, if it has text. */
static void flush(struct doc_reader *r, struct doc_table *table, struct rst_columns *columns)
{
    struct doc_cell cells[DOC_COLS_MAX];
    size_t n_text = 0;
    for (size_t c = 0; c < columns->n; c++) {
        cells[c] = clean_cell(r->arena, columns->items[c].text);
        n_text += columns->items[c].text.len > 0;
        columns->items[c].text = STR_EMPTY;
    }
    if (table && n_text) {
        add_row(r, table, cells, columns->n);
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
    struct str border = line_at(r->text, at);
    struct doc_table *table = new_table(r, at);
    struct str edge = str_rtrim(border, 0, " \t\r");
    for (size_t from = str_cspan(edge, 0, "+") + 1, to; from < edge.len; from = to + 1) {
        to = str_cspan(edge, from, "+");
        add_column(r, columns, from, to);
    }
    for (at += border.len + 1; at < r->text.len;) {
        struct str line = line_at(r->text, at);
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
    struct str border = line_at(r->text, at);
    struct doc_table *table = new_table(r, at);
    size_t n_borders = 1;
    for (size_t idx = 0; idx < border.len; idx++) {
        if (border.ptr[idx] == '=' && (idx == 0 || border.ptr[idx - 1] != '=')) {
            add_column(r, columns, idx, border.len);
        }
    }
    for (at += border.len + 1; at < r->text.len && n_borders < 3;) {
        struct str line = line_at(r->text, at);
        at += line.len + 1;
        if (is_simple_border(r, line)) {
            n_borders++;
            flush(r, table, columns);
            if (!str_trim(line_at(r->text, at)).len && n_borders == 2 && table &&
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
    struct doc_table *table = new_table(r, at);
    size_t n = 0;
    at += line_at(r->text, at).len + 1;
    while (at < r->text.len) {
        struct str line = line_at(r->text, at);
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
static bool is_underlined(struct doc_reader *r, struct str title, struct str under)
{
    return title.len >= 3 && under.len >= title.len &&
           is_like(r, "^([-=~^\"#*'`+.:_])\\g1*\\z", under) &&
           str_span(title, 0, (const char[]){under.ptr[0], '\0'}) < title.len;
}

static void read_rst(struct doc_reader *r)
{
    for (size_t at = 0; at < r->text.len;) {
        struct str line = line_at(r->text, at);
        struct rst_columns columns = {.n = 0};
        if (is_like(r, "^\\+[-+=]+\\+\\z", line)) {
            at = read_grid(r, &columns, at);
        } else if (is_simple_border(r, line)) {
            at = read_simple(r, &columns, at);
        } else if (str_find(line, STR_LIT(".. list-table::")) >= 0) {
            at = read_list(r, &columns, at);
        } else {
            struct str under = str_trim(line_at(r->text, at + line.len + 1));
            if (is_underlined(r, str_trim(line), under)) {
                set_heading(r, at + line.len, str_trim(line));
            }
            at += line.len + 1;
        }
    }
}

/* ---- notebooks: the strings of their JSON, one per line: the Markdown and the HTML of the outputs ---- */

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

static struct str notebook_text(struct arena *arena, struct str json)
{
    char *out = arena_strndup(arena, json.ptr ? json.ptr : "", json.len);
    size_t len = 0;
    for (size_t at = 0; at < json.len;) {
        struct str line = line_at(json, at);
        at += line.len + 1;
        len += unescape(line, out + len);
        out[len++] = '\n';
    }
    return (struct str){out, len < json.len ? len : json.len};
}

/* ---- a document ---- */

/* 1 to DOC_LEVELS; 0: not a heading. */
static int level_of(struct doc_reader *r, struct str line)
{
    struct str g[3];
    return !patterns_find(&r->patterns, "^(?!#\\z)(#{1,6})|<h([1-6])", line, g, 3) ? 0
           : g[1].ptr                                                              ? (int)g[1].len
                      : g[2].ptr[0] - '0';
}

static void note_heading(struct doc_reader *r, size_t at, struct str line)
{
    int level = level_of(r, line);
    if (level == 0) {
        return;
    }
    set_heading(r, at + line.len, line);
    r->level = level;
    r->levels[level] = r->heading;
    for (int below = level + 1; below <= DOC_LEVELS; below++) {
        r->levels[below] = STR_EMPTY;
    }
}

static void read_markup(struct doc_reader *r, bool is_markdown)
{
    for (size_t at = 0; at < r->text.len;) {
        struct str line = line_at(r->text, at);
        struct str below = line_at(r->text, at + line.len + 1);
        int64_t tag = str_find(line, STR_LIT("<table"));
        if (tag >= 0) {
            at = read_html(r, at + (size_t)tag);
        } else if (is_markdown && line.len && memchr(line.ptr, '|', line.len) &&
                   is_rule(r, below)) {
            at = read_bars(r, at, line);
        } else {
            note_heading(r, at, line);
            at += line.len + 1;
        }
    }
}

void doc_tables_read(struct arena *arena, struct str text, enum doc_kind kind,
                     struct doc_tables *ret)
{
    struct doc_reader r = {.arena = arena,
                           .text = kind == DOC_NOTEBOOK ? notebook_text(arena, text) : text,
                           .out = ret};
    *ret = (struct doc_tables){.items = arena_array(arena, struct doc_table, DOC_TABLES_MAX)};
    switch (kind) {
    case DOC_CSV:
        read_csv(&r);
        break;
    case DOC_RST:
        read_rst(&r);
        break;
    case DOC_MARKDOWN:
    case DOC_HTML:
    case DOC_NOTEBOOK:
        read_markup(&r, kind != DOC_HTML);
        break;
    }
    patterns_release(&r.patterns);
}
