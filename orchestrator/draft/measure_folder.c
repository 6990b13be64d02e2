/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "draft/measure_folder.h"

#include <math.h>

#include "base/table.h"
#include "codec/json.h"
#include "draft/round.h"
#include "judge/judgement.h"
#include "load/load.h"

#define TEXT_BYTES_MAX (64u << 20)
#define STATUS_DIFFERS 1
#define STATUS_FAILED  9 /* parse */

struct folder_check { /* that failed, or could not be checked */
    const char *rule;
    bool has_failed;
    struct str why;
};

struct folder {
    struct arena *arena;
    const struct submission *s;
    const struct rule *rule;
    const char *path;
    size_t fastest, slowest;
    bool has_dropped;
    struct folder_check *checks; /* n_checks_max */
    size_t n_checks, n_checks_max;
};

static void add_check(struct folder *f, const char *rule, bool has_failed, const char *why)
{
    ASSERT(f->n_checks < f->n_checks_max);
    f->checks[f->n_checks++] = (struct folder_check){rule, has_failed, str_of(why)};
}

static const struct fact *fact_of(const struct measurement *m, const char *name)
{
    for (size_t idx = 0; m && idx < m->n_facts; idx++) {
        if (str_eq_z(m->facts[idx].name, name)) {
            return &m->facts[idx];
        }
    }
    return NULL;
}

static const char *name_of(const struct folder *f, size_t log)
{
    return f->s->logs[log].name.ptr;
}

/* ---- what the rules say ---- */

static void check_clock(struct folder *f, size_t log)
{
    const struct measurement *m = f->s->logs[log].measurement;
    const struct series *run = measurement_series(m, STR_LIT("run"));
    const struct judgement j = judgement_of(f->arena, m, f->rule, DEMAND_WHOLE);
    if (!j.gives) {
        add_check(f, "log-whole", true,
                  arena_printf(f->arena, "%s: %.*s", name_of(f, log), STR_ARG(j.why)));
    }
    if (!run || run->n != 2 || !(run->samples[0].time_s < run->samples[1].time_s)) {
        add_check(
            f, "start-before-stop", true,
            arena_printf(f->arena,
                         "%s: expected one run_start and, later, one run_stop; found %zu lines",
                         name_of(f, log), run ? run->n : 0));
    }
}

/* The last evaluation against the target that the rule holds for this benchmark. */
static void check_target(struct folder *f, size_t log)
{
    const struct measurement *m = f->s->logs[log].measurement;
    const struct series *eval = measurement_series(m, STR_LIT("eval_accuracy"));
    const struct fact *model = fact_of(m, "model");
    const struct rule_target *target = model ? rule_target_for(f->rule, model->value) : NULL;
    double last;
    if (isinf(f->s->logs[log].repeat.value)) {
        return; /* a run that did not succeed need not */
    }
    if (!target || !eval || eval->n == 0) {
        add_check(f, "target-reached", false,
                  arena_printf(f->arena, "%s: not checked: %s", name_of(f, log),
                               target ? "its evaluations are no plain numbers"
                                      : "no target is held for its benchmark"));
        return;
    }
    last = eval->samples[eval->n - 1].value;
    if (!(target->is_most ? last <= target->value : last >= target->value)) {
        add_check(f, "target-reached", true,
                  arena_printf(f->arena, "%s: its last evaluation is %g, and the target is %s %g",
                               name_of(f, log), last, target->is_most ? "at most" : "at least",
                               target->value));
    }
}

static void check_seeds(struct folder *f)
{
    for (size_t idx = 0; idx < f->s->n_logs; idx++) {
        const struct fact *seed = fact_of(f->s->logs[idx].measurement, "seed");
        if (!seed) {
            add_check(
                f, "seeds-differ", false,
                arena_printf(f->arena, "%s: not checked: it states no seed", name_of(f, idx)));
        }
        for (size_t before = 0; seed && before < idx; before++) {
            const struct fact *other = fact_of(f->s->logs[before].measurement, "seed");
            if (other && str_eq(seed->value, other->value)) {
                add_check(f, "seeds-differ", true,
                          arena_printf(f->arena, "%s and %s: both have seed %.*s",
                                       name_of(f, before), name_of(f, idx), STR_ARG(seed->value)));
            }
        }
    }
}

static void check_count(struct folder *f)
{
    const struct fact *first = fact_of(f->s->logs[0].measurement, "model");
    int64_t required =
        f->s->logs[0].measurement ? rule_required_for(f->rule, f->s->logs[0].measurement) : 0;
    for (size_t idx = 1; idx < f->s->n_logs; idx++) {
        const struct fact *model = fact_of(f->s->logs[idx].measurement, "model");
        if (!first || !model || !str_eq(first->value, model->value)) {
            add_check(f, "one-benchmark", true,
                      arena_printf(f->arena, "%s: another benchmark than %s", name_of(f, idx),
                                   name_of(f, 0)));
        }
    }
    if (required != (int64_t)f->s->n_logs) {
        add_check(f, "required-runs", required > 0,
                  required > 0
                      ? arena_printf(f->arena, "%.*s asks for %" PRId64 " runs, and there are %zu",
                                     STR_ARG(first->value), required, f->s->n_logs)
                      : "not checked: how many runs the benchmark asks for is not known");
    }
}

static void look(struct folder *f)
{
    struct rule_repeat repeats[LOGS_MAX];
    size_t n = 0;
    f->n_checks_max = f->s->n_logs * (f->s->n_logs + 5) + 1; /* pairs of seeds, and some of each */
    f->checks = arena_array(f->arena, struct folder_check, f->n_checks_max);
    for (size_t idx = 0; idx < f->s->n_logs; idx++) {
        const struct round_log *log = &f->s->logs[idx];
        if (!log->measurement) {
            add_check(f, "log-whole", true, log->why.ptr);
            continue;
        }
        repeats[n] = log->repeat;
        n += log->has_repeat;
        check_clock(f, idx);
        check_target(f, idx);
    }
    f->has_dropped = n == f->s->n_logs && n >= 3;
    if (f->has_dropped) {
        rule_dropped(repeats, n, &f->fastest, &f->slowest);
    }
    check_seeds(f);
    check_count(f);
}

/* ---- what is said ---- */

static const char *dropped_as(const struct folder *f, size_t log)
{
    return !f->has_dropped                       ? NULL
           : log == f->fastest                   ? "fastest"
           : log != f->slowest                   ? NULL
           : isinf(f->s->logs[log].repeat.value) ? "unsuccessful"
                                                 : "slowest";
}

static size_t count_failed(const struct folder *f)
{
    size_t n = 0;
    for (size_t idx = 0; idx < f->n_checks; idx++) {
        n += f->checks[idx].has_failed;
    }
    return n;
}

static void put_folder(const struct folder *f, struct json_out *out)
{
    jw_z(out, "folder", f->path);
    jw_str(out, "rule", f->rule->id);
    jw_f64(out, "value", f->s->minutes);
    jw_z(out, "unit", "min");
    jw_f64(out, "factor", f->s->factor.value > 0 ? f->s->factor.value : 1);
    jw_str(out, "why", f->s->why.ptr ? f->s->why : STR_LIT(""));
    jw_array(out, "runs");
    for (size_t idx = 0; idx < f->s->n_logs; idx++) {
        jw_object(out, NULL);
        jw_z(out, "file", name_of(f, idx));
        jw_f64(out, "minutes",
               f->s->logs[idx].has_repeat ? f->s->logs[idx].repeat.value : (double)NAN);
        jw_z(out, "dropped", dropped_as(f, idx));
        jw_str(out, "why",
               f->s->logs[idx].repeat.why.ptr ? f->s->logs[idx].repeat.why : STR_LIT(""));
        jw_end_object(out);
    }
    jw_end_array(out);
    jw_array(out, "checks");
    for (size_t idx = 0; idx < f->n_checks; idx++) {
        jw_object(out, NULL);
        jw_z(out, "rule", f->checks[idx].rule);
        jw_bool(out, "failed", f->checks[idx].has_failed);
        jw_str(out, "why", f->checks[idx].why);
        jw_end_object(out);
    }
    jw_end_array(out);
}

static void show_folder(const struct folder *f, struct strbuf *text)
{
    static const struct table_column COLUMNS[] = {
        {"run", false}, {"min", true}, {"dropped", false}};
    CLEANUP(table) struct table table;
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    for (size_t idx = 0; idx < f->s->n_logs; idx++) {
        const char *dropped = dropped_as(f, idx);
        table_add(&table, str_of(name_of(f, idx)));
        table_addf_if(&table, f->s->logs[idx].has_repeat && isfinite(f->s->logs[idx].repeat.value),
                      "%.4f", f->s->logs[idx].repeat.value);
        table_addf(&table, "%s%s%s", dropped ? dropped : "",
                   f->s->logs[idx].repeat.why.len ? ": " : "",
                   f->s->logs[idx].repeat.why.ptr ? f->s->logs[idx].repeat.why.ptr : "");
    }
    table_render(&table, text);
    if (isfinite(f->s->minutes)) {
        strbuf_printf(text, "\nscore: %.10g min", f->s->minutes);
        if (f->s->factor.value > 0) {
            strbuf_printf(text, ", with the factor %.10g of scaling.json", f->s->factor.value);
        }
    } else {
        strbuf_printf(text, "\nno score: %.*s", STR_ARG(f->s->why));
    }
    strbuf_printf(text, "\n%zu of the rules that a log can show do not hold\n", count_failed(f));
    for (size_t idx = 0; idx < f->n_checks; idx++) {
        strbuf_printf(text, "  %-17s %.*s\n", f->checks[idx].rule, STR_ARG(f->checks[idx].why));
    }
}

/* ---- a round, or several folders ---- */

struct folders { /* every result at or below those that were named */
    struct arena *arena;
    struct folder **items;
    size_t n;
    struct round_rows rows;
};

static int add_round(struct folders *all, const char *root, const char *path,
                     const struct rule *rule, const char *results, struct err *err)
{
    struct round round;
    struct folder **items;
    if (round_read(all->arena, root, path, rule, &round, err) < 0 ||
        (results && round_rows_read(all->arena, &round, results, &all->rows, err) < 0)) {
        return -1;
    }
    items = arena_array(all->arena, struct folder *, all->n + round.n);
    if (all->n) {
        memcpy(items, all->items, all->n * sizeof(items[0]));
    }
    all->items = items;
    for (size_t idx = 0; idx < round.n; idx++) {
        struct folder *f = arena_new(all->arena, struct folder);
        *f = (struct folder){.arena = all->arena, .s = &round.items[idx], .rule = rule};
        f->path = str_eq_z(f->s->folder, ".")
                      ? path
                      : arena_printf(all->arena, "%s/%.*s", path, STR_ARG(f->s->folder));
        look(f);
        all->items[all->n++] = f;
    }
    return 0;
}

static void put_rows(const struct round_rows *rows, struct json_out *out)
{
    jw_array(out, "rows");
    for (size_t idx = 0; idx < rows->n; idx++) {
        const struct round_row *row = &rows->items[idx];
        jw_object(out, NULL);
        jw_i64(out, "line", (int64_t)row->line);
        jw_str(out, "round", row->round);
        jw_str(out, "submitter", row->submitter);
        jw_str(out, "system", row->machine);
        jw_str(out, "benchmark", row->benchmark);
        jw_f64(out, "published", row->published);
        jw_str(out, "folder", row->of ? row->of->folder : STR_EMPTY);
        jw_bool(out, "holds", row->is_score);
        jw_z(out, "matched", row->how);
        jw_end_object(out);
    }
    jw_end_array(out);
}

static bool is_alone(const struct folders *all)
{
    return all->n == 1 && all->rows.n == 0;
}

static void write_json(const struct folders *all, struct strbuf *text)
{
    struct json_out out;
    jw_begin(&out, text, true);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", 1);
    if (is_alone(all)) {
        put_folder(all->items[0], &out);
    } else {
        jw_array(&out, "results");
        for (size_t idx = 0; idx < all->n; idx++) {
            jw_object(&out, NULL);
            put_folder(all->items[idx], &out);
            jw_end_object(&out);
        }
        jw_end_array(&out);
        put_rows(&all->rows, &out);
    }
    jw_end_object(&out);
    strbuf_add_char(text, '\n');
}

static void add_minutes(struct table *table, double minutes)
{
    table_addf_if(table, isfinite(minutes), "%.10g", minutes);
}

static void show_rows(const struct round_rows *rows, struct strbuf *text)
{
    static const struct table_column COLUMNS[] = {
        {"line", true},      {"submitter", false}, {"system", false}, {"benchmark", false},
        {"published", true}, {"score", true},      {"folder", false}};
    CLEANUP(table) struct table table;
    size_t n = 0;
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    for (size_t idx = 0; idx < rows->n; idx++) {
        const struct round_row *row = &rows->items[idx];
        table_addf(&table, "%zu", row->line);
        table_add(&table, row->submitter);
        table_add(&table, row->machine);
        table_add(&table, row->benchmark);
        table_add(&table, row->minutes);
        add_minutes(&table, row->of ? row->of->minutes : (double)NAN);
        table_addf(&table, "%.*s%s%s", STR_ARG(row->of ? row->of->folder : STR_EMPTY),
                   row->of ? ", " : "", row->how);
        n += row->is_score;
    }
    if (rows->n == 0) {
        return;
    }
    strbuf_add_char(text, '\n');
    table_render(&table, text);
    strbuf_printf(text, "\n%zu of %zu results of the table are the score of their folder\n", n,
                  rows->n);
}

static void show_folders(const struct folders *all, struct strbuf *text)
{
    static const struct table_column COLUMNS[] = {
        {"folder", false}, {"runs", true}, {"min", true}, {"rules that do not hold", false}};
    CLEANUP(table) struct table table;
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    for (size_t idx = 0; idx < all->n; idx++) {
        const struct folder *f = all->items[idx];
        size_t n = count_failed(f);
        table_add(&table, str_of(f->path));
        table_addf(&table, "%zu", f->s->n_logs);
        add_minutes(&table, f->s->minutes);
        if (n) {
            const struct folder_check *first = f->checks;
            while (!first->has_failed) {
                first++;
            }
            table_addf(&table, "%zu: %s, %.*s", n, first->rule, STR_ARG(first->why));
        } else {
            table_add(&table, f->s->why);
        }
    }
    table_render(&table, text);
}

/* A folder without a score, or that breaks a rule, comes before a row that is not its folder's score. */
static int status_of(const struct folders *all)
{
    int status = 0;
    for (size_t idx = 0; idx < all->rows.n; idx++) {
        status = all->rows.items[idx].is_score ? status : STATUS_DIFFERS;
    }
    for (size_t idx = 0; idx < all->n; idx++) {
        const struct folder *f = all->items[idx];
        status = isfinite(f->s->minutes) && count_failed(f) == 0 ? status : STATUS_FAILED;
    }
    return status;
}

int measure_folders(const struct cmd_ctx *ctx, const struct folder_args *args, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(format_set) struct format_set formats = {0};
    CLEANUP(strbuf) struct strbuf text;
    struct folders all = {.arena = &arena};
    const struct rule *rule;
    strbuf_init(&text, TEXT_BYTES_MAX);
    if (args->results && args->folders->n != 1) {
        return err_set(err, ERR_USAGE,
                       "measure: --results goes with the one checkout of its round");
    }
    if (load_rule(&arena, ctx->root, STR_LIT(ROUND_RULE), &formats, &rule, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < args->folders->n; idx++) {
        if (add_round(&all, ctx->root, args->folders->items[idx], rule, args->results, err) < 0) {
            return -1;
        }
    }
    if (args->want_json) {
        write_json(&all, &text);
    } else if (is_alone(&all)) {
        show_folder(all.items[0], &text);
    } else {
        show_folders(&all, &text);
        show_rows(&all.rows, &text);
    }
    return cmd_print(strbuf_str(&text), err) < 0 ? -1 : status_of(&all);
}
