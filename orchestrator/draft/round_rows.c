/* SPDX-License-Identifier: Apache-2.0 */
/* The table of a round's results, and whose result each row is: names narrow the folders down, and the score decides. */
#include "base/base.h"

#include "draft/round.h"

#include <math.h>
#include <stdlib.h>

#include "base/fs.h"
#include "draft/csv.h"

#define TABLE_BYTES_MAX (64u << 20)
#define ROWS_MAX        65536
#define FIELDS_MAX      64
#define NAME_PREFIX     "training_results_v"
/* Two computations of one mean in doubles; the scores of two submissions never differ by so little. */
#define SAME_REL 1e-6

/* ---- the table ---- */

static const struct {
    const char *name;
    size_t offset;
} COLUMNS[] = {{"round", offsetof(struct round_row, round)},
               {"submitter", offsetof(struct round_row, submitter)},
               {"system", offsetof(struct round_row, machine)},
               {"benchmark", offsetof(struct round_row, benchmark)},
               {"result_min", offsetof(struct round_row, minutes)}};

static int find_columns(const struct str *fields, size_t n, const char *path, size_t *ret_at,
                        struct err *err)
{
    for (size_t idx = 0; idx < ARRAY_LEN(COLUMNS); idx++) {
        size_t at = 0;
        while (at < n && !str_eq_z(fields[at], COLUMNS[idx].name)) {
            at++;
        }
        if (at == n) {
            return err_set(err, ERR_MANIFEST, "%s:1: expected a column \"%s\"", path,
                           COLUMNS[idx].name);
        }
        ret_at[idx] = at;
    }
    return 0;
}

static int take_row(const struct str *fields, const size_t *at, const char *path,
                    struct round_row *row, struct err *err)
{
    struct err why = {0};
    for (size_t idx = 0; idx < ARRAY_LEN(COLUMNS); idx++) {
        *(struct str *)(void *)((char *)row + COLUMNS[idx].offset) = fields[at[idx]];
    }
    return str_to_f64(row->minutes, &row->published, &why) == 0 && row->published > 0
               ? 0
               : err_set(err, ERR_MANIFEST,
                         "%s:%zu: result_min: expected a number over 0, found \"%.*s\"", path,
                         row->line, STR_ARG(str_sub(row->minutes, 0, 60)));
}

static int read_table(struct arena *arena, const char *path, struct round_rows *ret_rows,
                      struct err *err)
{
    struct csv csv = {.delimiter = ',', .line = 1};
    struct str fields[FIELDS_MAX];
    size_t at[ARRAY_LEN(COLUMNS)];
    size_t n_head = 0;
    size_t n = 0;
    if (fs_read(arena, path, TABLE_BYTES_MAX, &csv.rest, err) < 0) {
        return -1;
    }
    ret_rows->items = arena_array(arena, struct round_row, ROWS_MAX);
    (void)csv_row(&csv, arena, fields, FIELDS_MAX, &n_head);
    if (find_columns(fields, n_head < FIELDS_MAX ? n_head : FIELDS_MAX, path, at, err) < 0) {
        return -1;
    }
    for (struct round_row row = {.line = csv.line}; csv_row(&csv, arena, fields, FIELDS_MAX, &n);
         row = (struct round_row){.line = csv.line}) {
        if (n != n_head || n > FIELDS_MAX || csv.is_open || ret_rows->n == ROWS_MAX) {
            return err_set(err, ERR_MANIFEST, "%s:%zu: expected %zu fields, found %zu%s", path,
                           row.line, n_head, n, csv.is_open ? "; a quote is not closed" : "");
        }
        if (take_row(fields, at, path, &row, err) < 0) {
            return -1;
        }
        ret_rows->items[ret_rows->n++] = row;
    }
    return 0;
}

/* A table holds several rounds; which one a checkout is, its folder's name says. */
static int keep_round(const struct round *round, const char *path, struct round_rows *rows,
                      struct err *err)
{
    CLEANUP(free) char *whole = realpath(round->folder, NULL);
    const char *name = whole && strrchr(whole, '/') ? strrchr(whole, '/') + 1 : "";
    struct str which = str_of(name);
    size_t n = 0;
    if (!str_starts(which, STR_LIT(NAME_PREFIX))) {
        return err_set(err, ERR_MANIFEST,
                       "%s: expected a checkout named " NAME_PREFIX "N, found \"%s\"",
                       round->folder, name);
    }
    which = str_sub(which, sizeof(NAME_PREFIX) - 1, which.len);
    for (size_t idx = 0; idx < rows->n; idx++) {
        if (str_eq(rows->items[idx].round, which)) {
            rows->items[n++] = rows->items[idx];
        }
    }
    rows->n = n;
    return n ? 0 : err_set(err, ERR_MANIFEST, "%s: no result of round %.*s", path, STR_ARG(which));
}

/* ---- whose result a row is ---- */

/* The next letter or digit in lower case, or 0: "NVIDIA_CoreWeave" is "NVIDIA+CoreWeave". */
static char next_bare(struct str *text)
{
    while (text->len > 0) {
        char c = text->ptr[0];
        *text = str_sub(*text, 1, text->len);
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if ((c >= 'a' && c <= 'z') || is_digit(c)) {
            return c;
        }
    }
    return '\0';
}

/* One name, or one that goes on where the other ends. */
static bool is_alike(struct str a, struct str b)
{
    char x = next_bare(&a);
    char y = next_bare(&b);
    bool has_both = x && y;
    while (x && x == y) {
        x = next_bare(&a);
        y = next_bare(&b);
    }
    return has_both && (!x || !y);
}

static bool is_system(const struct submission *s, const struct round_row *row)
{
    return is_alike(s->machine, row->machine) || is_alike(s->machine_name, row->machine);
}

static bool may_be(const struct submission *s, const struct round_row *row)
{
    return str_eq(s->benchmark, row->benchmark) &&
           (is_alike(s->submitter, row->submitter) || is_alike(s->submitter_name, row->submitter));
}

static bool is_score(const struct submission *s, const struct round_row *row)
{
    return fabs(s->minutes / row->published - 1) <= SAME_REL; /* false where there is no score */
}

/* A folder whose score the row is, best under the row's own name of the system; or else one of that name alone. */
static void match(const struct round *round, struct round_row *row, bool by_score, bool *is_taken)
{
    bool has_name = false;
    for (size_t idx = 0; idx < round->n && !has_name; idx++) {
        const struct submission *s = &round->items[idx];
        bool is_named = is_system(s, row);
        if (!is_taken[idx] && may_be(s, row) && (by_score ? is_score(s, row) : is_named) &&
            (is_named || !row->of)) {
            has_name = is_named;
            row->of = s;
        }
    }
    row->is_score = by_score && row->of;
    row->how = !row->of         ? "no folder has this score, or these names"
               : !row->is_score ? "by its submitter, system and benchmark; its score is another"
               : has_name       ? "by its submitter, system, benchmark and score"
                          : "by its submitter, benchmark and score; the system has another name "
                            "there";
    if (row->of) {
        is_taken[row->of - round->items] = true;
    }
}

void round_rows_match(const struct round *round, struct round_rows *rows)
{
    CLEANUP(free) bool *is_taken = xcalloc(round->n, sizeof(*is_taken));
    for (size_t idx = 0; idx < rows->n; idx++) {
        match(round, &rows->items[idx], true, is_taken);
    }
    for (size_t idx = 0; idx < rows->n; idx++) { /* scores came first: fewer folders are left */
        if (!rows->items[idx].of) {
            match(round, &rows->items[idx], false, is_taken);
        }
    }
}

int round_rows_read(struct arena *arena, const struct round *round, const char *path,
                    struct round_rows *ret_rows, struct err *err)
{
    struct round_rows rows = {0};
    if (read_table(arena, path, &rows, err) < 0 || keep_round(round, path, &rows, err) < 0) {
        return -1;
    }
    round_rows_match(round, &rows);
    *ret_rows = rows;
    return 0;
}
