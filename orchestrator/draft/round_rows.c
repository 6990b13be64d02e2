/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a round's results: CSV (RFC 4180). */
#include "base/base.h"

#include "base/strbuf.h"
#include "base/vec.h"
#include "draft/round.h"

#define ROWS_MAX    65536
#define FIELDS_MAX  64
#define FIELD_BYTES 4096
#define COUNT_MAX   1000000

struct row_cursor {
    struct str rest;
    size_t line;
    bool is_row_end;
};

/* One field; quotes may hold commas, line breaks and doubled quotes. */
static int next_field(struct arena *arena, struct row_cursor *at, const char *name,
                      struct str *ret_field, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    bool is_quoted = at->rest.len > 0 && at->rest.ptr[0] == '"';
    size_t idx = is_quoted;
    size_t line = at->line;
    strbuf_init(&text, FIELD_BYTES);
    for (; idx < at->rest.len; idx++) {
        char c = at->rest.ptr[idx];
        if (is_quoted && c == '"') {
            if (idx + 1 == at->rest.len || at->rest.ptr[idx + 1] != '"') {
                idx++;
                break;
            }
            idx++;
        } else if (!is_quoted && (c == ',' || c == '\n' || c == '\r')) {
            break;
        }
        at->line += c == '\n';
        strbuf_add_char(&text, c);
    }
    if (text.is_full) {
        return err_set(err, ERR_MANIFEST, "%s:%zu: a field of more than %d bytes", name, line,
                       FIELD_BYTES);
    }
    if (is_quoted && at->rest.ptr[idx - 1] != '"') {
        return err_set(err, ERR_MANIFEST, "%s:%zu: a quote is not closed", name, line);
    }
    at->rest = str_sub(at->rest, idx, SIZE_MAX);
    if (str_starts(at->rest, STR_LIT("\r\n"))) {
        at->rest = str_sub(at->rest, 1, SIZE_MAX);
    }
    at->is_row_end = at->rest.len == 0 || at->rest.ptr[0] == '\n';
    if (!at->is_row_end && at->rest.ptr[0] != ',') {
        return err_set(err, ERR_MANIFEST, "%s:%zu: expected a comma after a field", name, line);
    }
    at->line += at->rest.len > 0 && at->is_row_end;
    at->rest = str_sub(at->rest, 1, SIZE_MAX);
    *ret_field = str_dup(arena, strbuf_str(&text));
    return 0;
}

static int next_row(struct arena *arena, struct row_cursor *at, const char *name,
                    struct str *fields, size_t *ret_n, struct err *err)
{
    size_t n = 0;
    do {
        if (n == FIELDS_MAX) {
            return err_set(err, ERR_MANIFEST, "%s:%zu: more than %d fields", name, at->line,
                           FIELDS_MAX);
        }
        if (next_field(arena, at, name, &fields[n++], err) < 0) {
            return -1;
        }
    } while (!at->is_row_end);
    *ret_n = n;
    return 0;
}

struct row_column {
    const char *name;
    size_t offset;
    size_t at; /* in a row */
};

#define COL(name, member)                                                                          \
    {                                                                                              \
        name, offsetof(struct round_row, member), 0                                                \
    }
#define COLUMNS 10
static const struct row_column COLUMN_NAMES[COLUMNS] = {COL("round", round),
                                                        COL("division", division),
                                                        COL("availability", availability),
                                                        COL("submitter", submitter),
                                                        COL("system", machine),
                                                        COL("benchmark", benchmark),
                                                        COL("result_min", minutes),
                                                        COL("accelerators", accelerators),
                                                        COL("accelerator", accelerator),
                                                        COL("framework", framework)};

static int find_columns(const struct str *fields, size_t n, const char *name,
                        struct row_column *columns, struct err *err)
{
    for (size_t idx = 0; idx < COLUMNS; idx++) {
        columns[idx] = COLUMN_NAMES[idx];
        while (columns[idx].at < n && !str_eq_z(fields[columns[idx].at], columns[idx].name)) {
            columns[idx].at++;
        }
        if (columns[idx].at == n) {
            return err_set(err, ERR_MANIFEST, "%s:1: expected a column \"%s\"", name,
                           columns[idx].name);
        }
    }
    return 0;
}

static int take_row(const struct str *fields, const struct row_column *columns, const char *name,
                    struct round_row *row, struct err *err)
{
    struct err why = {0};
    for (size_t idx = 0; idx < COLUMNS; idx++) {
        struct str field = fields[columns[idx].at];
        if (columns[idx].offset != offsetof(struct round_row, accelerators)) {
            *(struct str *)(void *)((char *)row + columns[idx].offset) = field;
        } else if (str_to_i64(field, 0, COUNT_MAX, &row->accelerators, &why) < 0) {
            return err_set(err, ERR_MANIFEST, "%s:%zu: accelerators: %s", name, row->line, why.msg);
        }
    }
    if (str_to_f64(row->minutes, &row->published, &why) < 0 || !(row->published > 0)) {
        return err_set(err, ERR_MANIFEST,
                       "%s:%zu: result_min: expected a number over 0, found \"%.60s\"", name,
                       row->line, row->minutes.ptr);
    }
    return 0;
}

int round_rows_read(struct arena *arena, struct str text, const char *name,
                    struct round_rows *ret_rows, struct err *err)
{
    struct row_cursor at = {text, 1, false};
    struct str fields[FIELDS_MAX];
    struct row_column columns[COLUMNS];
    size_t n_head = 0;
    size_t n = 0;
    VEC(struct round_row) rows = {0};
    int result = next_row(arena, &at, name, fields, &n_head, err);
    result = result < 0 ? -1 : find_columns(fields, n_head, name, columns, err);
    while (result == 0 && at.rest.len > 0) {
        struct round_row row = {.line = at.line};
        result = next_row(arena, &at, name, fields, &n, err);
        if (result == 0 && (n != n_head || rows.n == ROWS_MAX)) {
            result = err_set(err, ERR_MANIFEST, "%s:%zu: expected %zu fields, found %zu", name,
                             row.line, n_head, n);
        }
        result = result < 0 ? -1 : take_row(fields, columns, name, &row, err);
        VEC_PUSH(&rows, row);
    }
    ret_rows->n = rows.n;
    ret_rows->items = arena_array(arena, struct round_row, rows.n + 1);
    if (rows.n) {
        memcpy(ret_rows->items, rows.items, rows.n * sizeof(rows.items[0]));
    }
    VEC_RELEASE(&rows);
    return result;
}
