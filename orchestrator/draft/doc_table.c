/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/doc_table.h"

#include "codec/pattern.h"
#include "draft/csv.h"

#define SPAN_MAX   64
#define ROWS_FIRST 16 /* a power of two */
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

/* Tags become blanks; a link keeps its words, and marks go. */
static struct doc_cell clean_cell(struct doc_reader *r, struct str text)
{
    static const char MARK[] =
        "(?i)<[/!a-z](?:[^>]*?href=\"([^\"]*))?[^>]*>?|\\]\\(([^)]{0,2048})\\)|"
        "[*`\\[\\\\]|&nbsp;|[\\r\\n\\t]";
    struct doc_cell cell = {0};
    char *copy = arena_strndup(r->arena, text.ptr ? text.ptr : "", text.len);
    size_t len = 0;
    struct str g[3];
    while (patterns_find(&r->patterns, MARK, text, g, 3)) {
        size_t before = (size_t)(g[0].ptr - text.ptr);
        memcpy(copy + len, text.ptr, before);
        len += before;
        copy[len] = ' ';
        len += strchr("<\r\n\t", g[0].ptr[0]) != NULL;
        cell.link = cell.link.ptr ? cell.link : g[1].ptr ? g[1] : g[2];
        text = str_sub(text, before + g[0].len, SIZE_MAX);
    }
    memcpy(copy + len, text.len ? text.ptr : "", text.len);
    cell.text = str_trim((struct str){copy, len + text.len});
    cell.link = cell.link.ptr ? str_dup(r->arena, cell.link) : STR_EMPTY;
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
        cells[n++] = clean_cell(r, str_sub(line, from, at - from));
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
            cells[idx] = clean_cell(r, fields[idx]);
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
    struct doc_cell cell = clean_cell(r, text);
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
    r->heading = clean_cell(r, line).text;
    r->heading_end = at + line.len;
    r->out->title = r->out->title.ptr ? r->out->title : r->heading;
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
    struct doc_reader r = {.arena = arena, .text = text, .out = ret};
    *ret = (struct doc_tables){.items = arena_array(arena, struct doc_table, DOC_TABLES_MAX)};
    if (kind == DOC_CSV) {
        read_csv(&r);
    } else {
        read_markup(&r, kind == DOC_MARKDOWN);
    }
    patterns_release(&r.patterns);
}
