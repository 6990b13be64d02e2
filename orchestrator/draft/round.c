/* SPDX-License-Identifier: Apache-2.0 */
/* The submissions of a round: their folders, logs, factors and scores; the table of its results, and whose result each row is:
   names narrow the folders down, and the score decides. */
#include "base/base.h"

#include "draft/round.h"

#include <math.h>
#include <stdlib.h>

#include "base/fs.h"
#include "codec/json_table.h"
#include "draft/csv.h"
#include "load/measure_many.h"
#include "sys/pool.h"

#define SMALL_BYTES_MAX (1u << 20) /* of scaling.json, and of a system's description */
#define TABLE_BYTES_MAX (64u << 20)
#define ROWS_MAX        65536
#define FIELDS_MAX      64
#define NAME_PREFIX     "training_results_v"
/* Two computations of one mean in doubles; the scores of two submissions never differ by so little. */
#define SAME_REL 1e-6

/* "FOLDER/result_0.txt": its folder, or "." for the round's own. */
static bool split_log(struct str path, struct str *ret_folder, struct str *ret_name)
{
    const char *slash = memrchr(path.ptr, '/', path.len);
    size_t len = slash ? (size_t)(slash - path.ptr) : 0;
    *ret_folder = slash ? str_sub(path, 0, len) : STR_LIT(".");
    *ret_name = slash ? str_sub(path, len + 1, path.len) : path;
    return str_starts(*ret_name, STR_LIT("result_")) && str_ends(*ret_name, STR_LIT(".txt"));
}

/* SUBMITTER/results/SYSTEM/BENCHMARK, wherever the round begins. */
static void name_parts(struct submission *s)
{
    enum { SUBMITTER, RESULTS, SYSTEM, BENCHMARK, PARTS };
    struct str last[PARTS] = {0};
    struct str rest = s->folder;
    struct str part;
    while (str_next(&rest, '/', &part)) {
        memmove(last, last + 1, sizeof(last) - sizeof(last[0]));
        last[BENCHMARK] = part;
    }
    if (str_eq_z(last[RESULTS], "results")) {
        s->submitter = last[SUBMITTER];
        s->machine = last[SYSTEM];
        s->benchmark = last[BENCHMARK];
    }
}

static struct str said(const struct json *at, const char *key, struct arena *arena)
{
    struct json member;
    struct str text = STR_EMPTY;
    return json_find(at, key, &member) && json_str(&member, arena, &text, ERR_IGNORED) == 0
               ? text
               : STR_EMPTY;
}

/* Descriptions are free-form, and some systems have none: then the folder's name is all that is known. */
static void read_description(struct arena *arena, const char *folder, struct submission *s)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *path = arena_printf(arena, "%s/%.*s/../../../systems/%.*s.json", folder,
                                    STR_ARG(s->folder), STR_ARG(s->machine));
    if (s->machine.len == 0 || json_read_file(path, &doc, ERR_IGNORED) < 0) {
        return;
    }
    s->machine_name = said(&doc.root, "system_name", arena);
    s->submitter_name = said(&doc.root, "submitter", arena);
}

/* It is published since 2.1 where a run converged in fewer samples than the reference. */
static int read_factor(struct arena *arena, const char *folder, struct submission *s,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("scaling_factor", struct factor, value, JSON_REQUIRED),
    };
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct err what = {0};
    struct factor factor = {0};
    struct str text;
    const char *path = arena_printf(arena, "%s/%.*s/scaling.json", folder, STR_ARG(s->folder));
    if (fs_read(arena, path, SMALL_BYTES_MAX, &text, &what) < 0) {
        return what.code == ERR_NOT_FOUND ? 0 : err_set(err, what.code, "%s", what.msg);
    }
    if (json_parse(text, path, &doc, err) < 0 ||
        json_decode(&doc.root, arena, FIELDS, ARRAY_LEN(FIELDS), &factor, err) < 0) {
        return -1;
    }
    s->factor = factor.value;
    return factor.value >= 1 /* it makes a time longer */
               ? 0
               : json_fail(&doc.root, err, "scaling_factor %g: expected 1 or more", factor.value);
}

/* Paths are sorted bytewise, so the logs of a folder stand together but for folders within it. */
static struct submission *submission_of(struct round *round, struct str folder)
{
    for (size_t idx = round->n; idx > 0; idx--) {
        if (str_eq(round->items[idx - 1].folder, folder)) {
            return &round->items[idx - 1];
        }
    }
    return NULL;
}

static int add_logs(struct arena *arena, const struct fs_names *files, struct round *round,
                    struct err *err)
{
    for (size_t idx = 0; idx < files->n; idx++) {
        struct str folder;
        struct str name;
        if (!split_log(str_of(files->items[idx]), &folder, &name)) {
            continue;
        }
        struct submission *s = submission_of(round, folder);
        if (!s) {
            s = &round->items[round->n++];
            *s = (struct submission){
                .folder = folder,
                .path = str_eq_z(folder, ".")
                            ? round->folder
                            : arena_printf(arena, "%s/%.*s", round->folder, STR_ARG(folder)),
                .runs = arena_array(arena, struct round_run, LOGS_MAX),
                .factor = 1};
            name_parts(s);
            read_description(arena, round->folder, s);
            if (read_factor(arena, round->folder, s, err) < 0) {
                return -1;
            }
        }
        if (s->n_runs == LOGS_MAX) {
            return err_set(err, ERR_PARSE, "%s/%.*s: more than %d logs", round->folder,
                           STR_ARG(folder), LOGS_MAX);
        }
        s->runs[s->n_runs++] = (struct round_run){.name = name};
    }
    return 0;
}

/* The rule is the one that judges the rows of published rounds, too. */
static void take_run(struct arena *arena, const struct rule *rule, const struct measure_job *job,
                     struct round_run *run)
{
    struct rule_repeat repeat = {.value = (double)NAN};
    struct err why = {0};
    run->measurement = job->measurement;
    if (!job->measurement) {
        run->why = str_dup(arena, str_of(job->err.msg));
    } else if (rule_repeat(rule, job->measurement, &(struct rule_case){0}, arena, &repeat, &why) <
               0) {
        run->why = str_dup(arena, str_of(why.msg));
    } else {
        run->why = repeat.why;
    }
    run->value = repeat.value;
    run->minutes = isfinite(repeat.value) ? repeat.value : (double)NAN;
}

static void score(struct arena *arena, const struct rule *rule, struct submission *s)
{
    double values[LOGS_MAX];
    struct err err = {0};
    size_t ends[2]; /* that the mean leaves out */
    s->minutes = (double)NAN;
    s->rule = rule->id;
    for (size_t idx = 0; idx < s->n_runs; idx++) {
        values[idx] = s->runs[idx].value;
        if (isnan(values[idx])) {
            s->why = s->runs[idx].why;
            return;
        }
    }
    if (s->n_runs >= 3) {
        rule_dropped(values, s->n_runs, &ends[0], &ends[1]);
        s->runs[ends[0]].dropped = "fastest";
        s->runs[ends[1]].dropped = isinf(values[ends[1]]) ? "unsuccessful" : "slowest";
    }
    if (rule_combine(rule->repeats, values, s->n_runs, &s->minutes, &err) < 0) {
        s->why = str_dup(arena, str_of(err.msg));
        return;
    }
    s->minutes *= s->factor;
}

static int read_logs(struct arena *arena, const char *root, const struct rule *rule,
                     struct round *round, size_t n_max, struct err *err)
{
    struct measure_job *jobs = arena_array(arena, struct measure_job, n_max + 1);
    const struct lanes lanes = pool_lanes();
    const struct measure_with with = {.root = root, .lanes = &lanes};
    size_t n = 0;
    for (size_t idx = 0; idx < round->n; idx++) {
        const struct submission *s = &round->items[idx];
        for (size_t run = 0; run < s->n_runs; run++) {
            jobs[n++] = (struct measure_job){
                .path = fs_join(arena, s->path, str_z(arena, s->runs[run].name)),
                .format = STR_LIT(ROUND_FORMAT)};
        }
    }
    if (measure_many(arena, &with, jobs, n, err) < 0) {
        return -1;
    }
    n = 0;
    for (size_t idx = 0; idx < round->n; idx++) {
        struct submission *s = &round->items[idx];
        for (size_t run = 0; run < s->n_runs; run++) {
            take_run(arena, rule, &jobs[n++], &s->runs[run]);
        }
        score(arena, rule, s);
    }
    return 0;
}

int round_read(struct arena *arena, const char *root, const char *folder, const struct rule *rule,
               struct round *ret_round, struct err *err)
{
    struct round round = {.folder = folder};
    struct fs_names files;
    if (fs_walk(arena, folder, &files, err) < 0) {
        return -1;
    }
    round.items = arena_array(arena, struct submission, files.n + 1);
    if (add_logs(arena, &files, &round, err) < 0 ||
        read_logs(arena, root, rule, &round, files.n, err) < 0) {
        return -1;
    }
    if (round.n == 0) {
        return err_set(err, ERR_NOT_FOUND,
                       "%s: a folder is taken for results of MLPerf, and no result_*.txt is at or "
                       "below it; a log is named by its file",
                       folder);
    }
    *ret_round = round;
    return 0;
}

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
    for (size_t idx = 0; idx < ARRAY_LEN(COLUMNS); idx++) {
        *(struct str *)(void *)((char *)row + COLUMNS[idx].offset) = fields[at[idx]];
    }
    return str_to_f64(row->minutes, &row->published, ERR_IGNORED) == 0 && row->published > 0
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
