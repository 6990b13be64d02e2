/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/measure_folder.h"

#include <math.h>

#include "base/table.h"
#include "codec/json_table.h"
#include "draft/round.h"
#include "judge/judgement.h"
#include "load/load.h"

#define TEXT_BYTES_MAX (64u << 20)
#define RUN_DIGITS     8 /* of minutes */
#define SCORE_DIGITS   10
#define STATUS_DIFFERS 1
#define STATUS_FAILED  9 /* parse */

static void add_check(struct submission *s, const char *rule, bool has_failed, const char *why)
{
    s->checks[s->n_checks++] = (struct round_check){rule, has_failed, str_of(why)};
    s->n_failed += has_failed;
}

static const struct fact *fact_of(const struct round_run *run, const char *name)
{
    return run->measurement ? measurement_fact(run->measurement, str_of(name), -1) : NULL;
}

/* ---- what the rules say ---- */

static void check_clock(struct arena *arena, const struct rule *rule, struct submission *s,
                        const struct round_run *of)
{
    const struct series *run = measurement_series(of->measurement, STR_LIT("run"));
    const struct judgement j = judgement_of(arena, of->measurement, rule, DEMAND_WHOLE);
    if (!j.gives) {
        add_check(s, "log-whole", true,
                  arena_printf(arena, "%s: %.*s", of->name.ptr, STR_ARG(j.why)));
    }
    if (!run || run->n != 2 || !(run->samples[0].time_s < run->samples[1].time_s)) {
        add_check(s, "start-before-stop", true,
                  arena_printf(
                      arena, "%s: expected one run_start and, later, one run_stop; found %zu lines",
                      of->name.ptr, run ? run->n : 0));
    }
}

/* The last evaluation against the target that the rule holds for this benchmark; a run that did not succeed need not reach it. */
static void check_target(struct arena *arena, const struct rule *rule, struct submission *s,
                         const struct round_run *of)
{
    const struct series *eval = measurement_series(of->measurement, STR_LIT("eval_accuracy"));
    const struct fact *model = fact_of(of, "model");
    const struct rule_target *target = model ? rule_target_for(rule, model->value) : NULL;
    bool is_known = target && eval && eval->n > 0;
    double last = is_known ? eval->samples[eval->n - 1].value : 0;
    if (isinf(of->value)) {
        return;
    }
    if (!is_known) {
        add_check(s, "target-reached", false,
                  arena_printf(arena, "%s: not checked: %s", of->name.ptr,
                               target ? "its evaluations are no plain numbers"
                                      : "no target is held for its benchmark"));
    } else if (!(target->is_most ? last <= target->value : last >= target->value)) {
        add_check(s, "target-reached", true,
                  arena_printf(arena, "%s: its last evaluation is %g, and the target is %s %g",
                               of->name.ptr, last, target->is_most ? "at most" : "at least",
                               target->value));
    }
}

static void check_seeds(struct arena *arena, struct submission *s, size_t idx)
{
    const struct fact *seed = fact_of(&s->runs[idx], "seed");
    if (!seed) {
        add_check(s, "seeds-differ", false,
                  arena_printf(arena, "%s: not checked: it states no seed", s->runs[idx].name.ptr));
    }
    for (size_t before = 0; seed && before < idx; before++) {
        const struct fact *other = fact_of(&s->runs[before], "seed");
        if (other && str_eq(seed->value, other->value)) {
            add_check(s, "seeds-differ", true,
                      arena_printf(arena, "%s and %s: both have seed %.*s",
                                   s->runs[before].name.ptr, s->runs[idx].name.ptr,
                                   STR_ARG(seed->value)));
        }
    }
}

static void check_count(struct arena *arena, const struct rule *rule, struct submission *s)
{
    const struct fact *first = fact_of(&s->runs[0], "model");
    int64_t required = first ? rule_required_for(rule, s->runs[0].measurement) : 0;
    for (size_t idx = 1; idx < s->n_runs; idx++) {
        const struct fact *model = fact_of(&s->runs[idx], "model");
        if (!first || !model || !str_eq(first->value, model->value)) {
            add_check(s, "one-benchmark", true,
                      arena_printf(arena, "%s: another benchmark than %s", s->runs[idx].name.ptr,
                                   s->runs[0].name.ptr));
        }
    }
    if (required != (int64_t)s->n_runs) {
        add_check(s, "required-runs", required > 0,
                  required > 0
                      ? arena_printf(arena, "%.*s asks for %" PRId64 " runs, and there are %zu",
                                     STR_ARG(first->value), required, s->n_runs)
                      : "not checked: how many runs the benchmark asks for is not known");
    }
}

static void check_rules(struct arena *arena, const struct rule *rule, struct submission *s)
{
    /* pairs of seeds, and some of each run */
    s->checks = arena_array(arena, struct round_check, s->n_runs * (s->n_runs + 5) + 1);
    for (size_t idx = 0; idx < s->n_runs; idx++) {
        const struct round_run *run = &s->runs[idx];
        if (run->measurement) {
            check_clock(arena, rule, s, run);
            check_target(arena, rule, s, run);
        } else {
            add_check(s, "log-whole", true, run->why.ptr);
        }
    }
    for (size_t idx = 0; idx < s->n_runs; idx++) {
        check_seeds(arena, s, idx);
    }
    check_count(arena, rule, s);
}

/* ---- the document ---- */

struct folders { /* every result at or below those that were named */
    struct submission *items;
    size_t n;
    struct round_rows rows;
};

static const struct json_field RUN_ROWS[] = {
    ROW("file", struct round_run, name, JSON_REQUIRED),
    ROW("minutes", struct round_run, minutes, JSON_NULLABLE),
    ROW("dropped", struct round_run, dropped, JSON_NULLABLE),
    ROW("why", struct round_run, why, JSON_TEXT),
};
static const struct json_field CHECK_ROWS[] = {
    ROW("rule", struct round_check, rule, JSON_REQUIRED),
    ROW("failed", struct round_check, has_failed, JSON_REQUIRED),
    ROW("why", struct round_check, why, JSON_REQUIRED),
};
static const struct json_field FOLDER_ROWS[] = {
    ROW("folder", struct submission, path, JSON_REQUIRED),
    ROW("rule", struct submission, rule, JSON_REQUIRED),
    ROW("value", struct submission, minutes, JSON_NULLABLE),
    ROW_SAYS("unit", "min"),
    ROW("factor", struct submission, factor, JSON_REQUIRED),
    ROW("why", struct submission, why, JSON_TEXT),
    ROW_LIST("runs", struct submission, runs, n_runs, RUN_ROWS, JSON_REQUIRED),
    ROW_LIST("checks", struct submission, checks, n_checks, CHECK_ROWS, JSON_REQUIRED),
};
static const struct json_field TABLE_ROWS[] = {
    ROW("line", struct round_row, line, JSON_REQUIRED),
    ROW("round", struct round_row, round, JSON_REQUIRED),
    ROW("submitter", struct round_row, submitter, JSON_REQUIRED),
    ROW("system", struct round_row, machine, JSON_REQUIRED),
    ROW("benchmark", struct round_row, benchmark, JSON_REQUIRED),
    ROW("published", struct round_row, published, JSON_REQUIRED),
    ROW_VIA("folder", struct round_row, of, folder, JSON_TEXT),
    ROW("holds", struct round_row, is_score, JSON_REQUIRED),
    ROW("matched", struct round_row, how, JSON_REQUIRED),
};
static const struct json_field ONE_ROWS[] = {ROW_NUMBER("schema_version", 1),
                                             ROW_THERE(struct folders, items, FOLDER_ROWS)};
static const struct json_field ALL_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW_LIST("results", struct folders, items, n, FOLDER_ROWS, JSON_REQUIRED),
    ROW_LIST("rows", struct folders, rows.items, rows.n, TABLE_ROWS, JSON_REQUIRED),
};

/* ---- for people ---- */

static void add_minutes(struct table *table, double minutes, int digits)
{
    table_add(table, table_text_if(table, isfinite(minutes), "%.*g", digits, minutes));
}

static void show_folder(const struct submission *s, struct strbuf *text)
{
    CLEANUP(table) struct table table;
    table = table_of("run|>min|dropped");
    for (size_t idx = 0; idx < s->n_runs; idx++) {
        const struct round_run *run = &s->runs[idx];
        table_add(&table, run->name);
        add_minutes(&table, run->minutes, RUN_DIGITS);
        table_addf(&table, "%s%s%.*s", run->dropped ? run->dropped : "", run->why.len ? ": " : "",
                   STR_ARG(run->why));
    }
    table_render(&table, text);
    if (isfinite(s->minutes)) {
        strbuf_printf(text, "\nscore: %.10g min", s->minutes);
        if (s->factor > 1) {
            strbuf_printf(text, ", with the factor %.10g of scaling.json", s->factor);
        }
    } else {
        strbuf_printf(text, "\nno score: %.*s", STR_ARG(s->why));
    }
    strbuf_printf(text, "\n%zu of the rules that a log can show do not hold\n", s->n_failed);
    for (size_t idx = 0; idx < s->n_checks; idx++) {
        strbuf_printf(text, "  %-17s %.*s\n", s->checks[idx].rule, STR_ARG(s->checks[idx].why));
    }
}

static void show_rows(const struct round_rows *rows, struct strbuf *text)
{
    CLEANUP(table) struct table table;
    size_t n = 0;
    table = table_of(">line|submitter|system|benchmark|>published|>score|folder");
    for (size_t idx = 0; idx < rows->n; idx++) {
        const struct round_row *row = &rows->items[idx];
        TABLE_ADD(&table, table_text(&table, "%zu", row->line), row->submitter, row->machine,
                  row->benchmark, row->minutes);
        add_minutes(&table, row->of ? row->of->minutes : (double)NAN, SCORE_DIGITS);
        table_addf(&table, "%.*s%s%s", STR_ARG(row->of ? row->of->folder : STR_EMPTY),
                   row->of ? ", " : "", row->how);
        n += row->is_score;
    }
    if (rows->n > 0) {
        strbuf_add_char(text, '\n');
        table_render(&table, text);
        strbuf_printf(text, "\n%zu of %zu results of the table are the score of their folder\n", n,
                      rows->n);
    }
}

static void show_folders(const struct folders *all, struct strbuf *text)
{
    CLEANUP(table) struct table table;
    table = table_of("folder|>runs|>min|rules that do not hold");
    for (size_t idx = 0; idx < all->n; idx++) {
        const struct submission *s = &all->items[idx];
        const struct round_check *first = s->checks;
        TABLE_ADD(&table, str_of(s->path), table_text(&table, "%zu", s->n_runs));
        add_minutes(&table, s->minutes, SCORE_DIGITS);
        while (s->n_failed && !first->has_failed) {
            first++;
        }
        if (s->n_failed) {
            table_addf(&table, "%zu: %s, %.*s", s->n_failed, first->rule, STR_ARG(first->why));
        } else {
            table_add(&table, s->why);
        }
    }
    table_render(&table, text);
    show_rows(&all->rows, text);
}

/* A folder without a score, or that breaks a rule, comes before a row that is not its folder's score. */
static int status_of(const struct folders *all)
{
    int status = 0;
    for (size_t idx = 0; idx < all->rows.n; idx++) {
        status = all->rows.items[idx].is_score ? status : STATUS_DIFFERS;
    }
    for (size_t idx = 0; idx < all->n; idx++) {
        const struct submission *s = &all->items[idx];
        status = isfinite(s->minutes) && s->n_failed == 0 ? status : STATUS_FAILED;
    }
    return status;
}

/* The rows of the table keep to the one round that is read beside it. */
static int read_all(struct arena *arena, const char *root, const struct folder_args *args,
                    const struct rule *rule, struct folders *all, struct err *err)
{
    for (size_t idx = 0; idx < args->folders->n; idx++) {
        struct round round;
        struct submission *items;
        if (round_read(arena, root, args->folders->items[idx], rule, &round, err) < 0 ||
            (args->results && round_rows_read(arena, &round, args->results, &all->rows, err) < 0)) {
            return -1;
        }
        items = arena_array(arena, struct submission, all->n + round.n);
        memcpy(items, all->n ? all->items : items, all->n * sizeof(items[0]));
        memcpy(items + all->n, round.items, round.n * sizeof(items[0]));
        all->items = items;
        all->n += round.n;
    }
    for (size_t idx = 0; idx < all->n; idx++) {
        check_rules(arena, rule, &all->items[idx]);
    }
    return 0;
}

int measure_folders(const struct cmd_ctx *ctx, const struct folder_args *args, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(format_set) struct format_set formats = {0};
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_BYTES_MAX);
    struct folders all = {0};
    const struct rule *rule;
    if (args->results && args->folders->n != 1) {
        return err_set(err, ERR_USAGE,
                       "measure: --results goes with the one checkout of its round");
    }
    if (load_rule(&arena, ctx->root, STR_LIT(ROUND_RULE), &formats, &rule, err) < 0 ||
        read_all(&arena, ctx->root, args, rule, &all, err) < 0) {
        return -1;
    }
    bool is_alone = all.n == 1 && all.rows.n == 0;
    if (args->want_json) {
        json_encode_document(&text, is_alone ? ONE_ROWS : ALL_ROWS,
                             is_alone ? ARRAY_LEN(ONE_ROWS) : ARRAY_LEN(ALL_ROWS), &all);
    } else if (is_alone) {
        show_folder(&all.items[0], &text);
    } else {
        show_folders(&all, &text);
    }
    return cmd_print(strbuf_str(&text), err) < 0 ? -1 : status_of(&all);
}
