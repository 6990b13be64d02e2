/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/result.h"

#include <math.h>

#include "codec/json_table.h"
#include "judge/stats.h"
#include "report/extras.h"

#define RESULT_TEXT_MAX (256u << 20)
#define NULLABLE_FIELD  (JSON_REQUIRED | JSON_NULLABLE)
#define HELD_STATUS     1 /* a cell does not hold */

/* ---- conditions ---- */

struct run_condition { /* what was in force when we measured */
    struct str name;
    struct str value;
    bool is_of_node; /* it alone says so */
};

struct result_names {
    struct run_condition *items;
    size_t n;
    size_t n_max; /* upper bound, if all names were different */
};

static void put_name(struct result_names *names, struct str name, struct str value)
{
    for (size_t idx = 0; idx < names->n; idx++) {
        if (str_eq(names->items[idx].name, name)) {
            names->items[idx] = (struct run_condition){.name = name, .value = value};
            return;
        }
    }
    ASSERT(names->n < names->n_max);
    names->items[names->n++] = (struct run_condition){.name = name, .value = value};
}

/* The log says "ID.synthetic" of a synthetic dataset's shards; where that is the synthetic dataset that was planned with, it is
   said in words. */
static struct str said_value(struct arena *arena, const struct frozen *frozen, struct str name,
                             struct str value)
{
    const struct plan_data *data = &frozen->plan.data;
    if (data->folder.ptr && data->is_synthetic && str_eq_z(name, "dataset") &&
        str_eq_z(value, arena_printf(arena, "%s.synthetic", data->dataset.ptr))) {
        return str_of(plan_data_name(arena, data));
    }
    return value;
}

/* The plan's, overridden by the machine's, overridden by what the first log that counts states. */
static void conditions_of_run(struct arena *arena, const struct frozen *frozen,
                              const struct cell_result *cell, struct result_names *names)
{
    for (size_t idx = 0; idx < frozen->n_machine; idx++) {
        put_name(names, frozen->machine[idx].name, frozen->machine[idx].value);
        names->items[names->n - 1].is_of_node =
            !frozen->inventory.is_local && frozen->machine[idx].value.ptr;
    }
    for (size_t idx = 0; idx < cell->step->n_conditions; idx++) {
        put_name(names, cell->step->conditions[idx].name, cell->step->conditions[idx].value);
    }
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        const struct repeat_result *repeat = &cell->repeats[idx];
        for (size_t fact = 0; repeat->counts && fact < repeat->n_facts; fact++) {
            if (fact_is_of_row(repeat->facts[fact].name)) {
                continue; /* its row is not a condition */
            }
            put_name(
                names, repeat->facts[fact].name,
                said_value(arena, frozen, repeat->facts[fact].name, repeat->facts[fact].value));
        }
        if (repeat->counts) {
            return;
        }
    }
}

static struct str number(struct arena *arena, int64_t value)
{
    return str_printf(arena, "%lld", (long long)value);
}

/* False where the published case does not name it. */
static bool published_value(struct arena *arena, const struct report_case *c, struct str name,
                            struct str *ret_value)
{
    if (str_eq_z(name, "framework")) {
        *ret_value = c->framework;
    } else if (str_eq_z(name, "precision")) {
        *ret_value = c->precision;
    } else if (str_eq_z(name, "nodes")) {
        *ret_value = number(arena, c->nodes);
    } else if (str_eq_z(name, "gpus")) {
        *ret_value = number(arena, c->gpus);
    } else if (str_eq_z(name, "batch_per_gpu")) {
        *ret_value = c->batch_per_gpu ? number(arena, c->batch_per_gpu) : STR_EMPTY;
    } else if (str_eq_z(name, "device")) {
        *ret_value = c->gpus > 0 ? STR_LIT("gpu") : STR_LIT("cpu");
    } else {
        return case_condition(c, str_z(arena, name), ret_value);
    }
    return true;
}

/* A square's size is one number: "32,32" is "32". */
static struct str plain_size(struct str value)
{
    int64_t comma = str_find(value, STR_LIT(","));
    struct str side = comma > 0 ? str_sub(value, 0, (size_t)comma) : value;
    return comma > 0 && str_eq(side, str_sub(value, (size_t)comma + 1, value.len)) ? side : value;
}

bool result_same_value(struct str a, struct str b)
{
    a = plain_size(a);
    b = plain_size(b);
    double left = 0;
    double right = 0;
    if (str_eq(a, b)) {
        return true;
    }
    return str_to_f64(a, &left, ERR_IGNORED) == 0 && str_to_f64(b, &right, ERR_IGNORED) == 0 &&
           !(left < right) && !(left > right);
}

static void note_differences(struct arena *arena, const struct frozen *frozen,
                             struct cell_result *cell)
{
    struct result_names *names = arena_new(arena, struct result_names);
    names->n_max = frozen->n_machine + cell->step->n_conditions;
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        names->n_max += cell->repeats[idx].n_facts;
    }
    names->items = arena_array(arena, struct run_condition, names->n_max + 1);
    conditions_of_run(arena, frozen, cell, names);
    cell->differs =
        arena_array(arena, struct run_difference, names->n + frozen->plan.n_overrides + 1);
    cell->not_stated = arena_array(arena, struct str, names->n + 1);
    cell->by_node = arena_array(arena, struct str, names->n + 2);
    for (size_t idx = 0; idx < names->n; idx++) {
        struct str ours = names->items[idx].value;
        struct str theirs = STR_EMPTY;
        if (names->items[idx].is_of_node) {
            cell->by_node[cell->n_by_node++] = names->items[idx].name;
        }
        bool is_named = published_value(arena, cell->baseline, names->items[idx].name, &theirs);
        if (!is_named || !theirs.ptr) {
            /* Neither has one: nothing to say. */
            if (ours.ptr) {
                cell->not_stated[cell->n_not_stated++] = names->items[idx].name;
            }
        } else if (!ours.ptr || !result_same_value(ours, theirs)) {
            cell->differs[cell->n_differs++] =
                (struct run_difference){names->items[idx].name, theirs, ours};
        }
    }
    /* The nodes' engines say which of their images it is. */
    if (!frozen->inventory.is_local && cell->step->image_digest.ptr && !cell->step->image_id.ptr) {
        cell->by_node[cell->n_by_node++] = STR_LIT("image");
    }
    /* Whether or not they affect this case, its report is not the published one. */
    for (size_t idx = 0; idx < frozen->plan.n_overrides; idx++) {
        const struct json_override *set = &frozen->plan.overrides[idx];
        cell->differs[cell->n_differs++] = (struct run_difference){
            set->path, set->was.ptr ? set->was : STR_LIT("absent"), set->value};
    }
}

/* ---- numbers ---- */

/* Those of the repeats that count. */
static double *values_of(struct arena *arena, const struct cell_result *cell, size_t *ret_n)
{
    double *values = arena_array(arena, double, cell->n_repeats + 1);
    *ret_n = 0;
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        if (cell->repeats[idx].counts) {
            values[(*ret_n)++] = cell->repeats[idx].value;
        }
    }
    return values;
}

static struct summary summarise(struct arena *arena, const struct cell_result *cell)
{
    struct summary s = {0, (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    double *values = values_of(arena, cell, &s.n);
    if (s.n == 0) {
        return s;
    }
    stats_sort(values, s.n);
    s.mean = stats_mean(values, s.n);
    s.median = stats_sorted_median(values, s.n);
    s.std = s.n > 1 ? stats_std(values, s.n) : (double)NAN;
    s.min = values[0];
    s.max = values[s.n - 1];
    return s;
}

static struct target_result combine_targets(const struct cell_result *cell)
{
    struct target_result all = {.elapsed_s = 0};
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        const struct repeat_result *repeat = &cell->repeats[idx];
        if (!repeat->counts || repeat->target.step == 0) {
            return (struct target_result){.elapsed_s = (double)NAN,
                                          .why = repeat->counts ? repeat->target.why : repeat->why};
        }
        all.elapsed_s += repeat->target.elapsed_s / (double)cell->n_repeats;
        all.step = repeat->target.step > all.step ? repeat->target.step : all.step;
    }
    return all;
}

/* Across repeats as each rule says; a rule for a single log stands for their mean. Where a repeat has none, why. */
static void combine_also(struct arena *arena, struct cell_result *cell)
{
    const struct extras *beside = &cell->step->beside;
    double *values = arena_array(arena, double, cell->n_repeats + 1);
    cell->also = arena_array(arena, struct also_result, beside->n_also + 1);
    cell->n_also = beside->n_also;
    for (size_t idx = 0; idx < beside->n_also; idx++) {
        const struct rule *rule = cell->step->bound.also[idx];
        struct also_result *all = &cell->also[idx];
        *all = (struct also_result){
            .value = (double)NAN, .rule = beside->also[idx], .series = rule->series};
        for (size_t at = 0; at < cell->n_repeats && !all->why.len; at++) {
            const struct repeat_result *repeat = &cell->repeats[at];
            all->why = repeat->counts ? repeat->also[idx].why : repeat->why;
            all->unit = repeat->counts ? repeat->also[idx].unit : STR_EMPTY;
            values[at] = repeat->counts ? repeat->also[idx].value : (double)NAN;
        }
        enum repeats how = rule->repeats == REPEATS_SINGLE ? REPEATS_MEAN : rule->repeats;
        struct err err = {0};
        if (!all->why.len && rule_combine(how, values, cell->n_repeats, &all->value, &err) < 0) {
            all->why = str_printf(arena, "%s", err.msg);
        }
    }
}

/* Across repeats as the rule says; a rule for a single log stands for their mean here. */
static int combine(struct arena *arena, struct cell_result *cell, struct err *err)
{
    const struct rule *rule = cell->step->bound.rule;
    size_t n = 0;
    double *values = values_of(arena, cell, &n);
    if (!rule || rule->repeats == REPEATS_SINGLE) {
        cell->value = cell->summary.mean;
        return 0;
    }
    return rule_combine(rule->repeats, values, n, &cell->value, err);
}

/* ---- verdicts ---- */

static void judge_full(const struct frozen *frozen, struct cell_result *cell)
{
    if (!cell->published) {
        cell->verdict = RUN_NOT_COMPARABLE;
        cell->why = frozen->report.is_unpublished
                        ? STR_EMPTY
                        : STR_LIT("the report publishes no throughput for this case");
    } else if (!unit_is(frozen->vocabulary, cell->unit, "rate") ||
               !unit_is(frozen->vocabulary, cell->published->unit, "rate")) {
        cell->verdict = RUN_NOT_COMPARABLE;
        cell->why = STR_LIT("the units are not both items per second");
    } else {
        cell->rel_diff = rel_diff(cell->value, cell->published->published);
        cell->verdict =
            verdict_run(cell->value, cell->published->published, frozen_tolerance(frozen));
    }
}

static void add_why(struct arena *arena, struct cell_result *cell, const char *why)
{
    cell->why =
        cell->why.len ? str_printf(arena, "%.*s; %s", STR_ARG(cell->why), why) : str_of(why);
}

/* A number that is faster or slower, and whose interval reaches into what would be reproduced, may be so by chance. */
static void doubt_verdict(struct arena *arena, const struct frozen *frozen,
                          struct cell_result *cell)
{
    double half = stats_half95(cell->summary.std, cell->summary.n);
    double near = fabs(cell->rel_diff) * cell->published->published - half;
    bool is_judged = cell->verdict == RUN_FASTER || cell->verdict == RUN_SLOWER;
    if (is_judged && near <= frozen_tolerance(frozen) * cell->published->published) {
        add_why(arena, cell,
                arena_printf(arena,
                             "the 95 %% interval of the mean, +- %.3g %%, %s: more repeats would "
                             "tell",
                             100 * half / cell->value,
                             near <= 0 ? "contains the published number"
                                       : "reaches what would be reproduced"));
    }
}

/* A command runs on each node, and its number is one log's. */
static void note_other_logs(struct arena *arena, struct cell_result *cell)
{
    const struct outcome_record *outcome = &cell->repeats[0].outcome;
    const struct outcome_node *own = STR_NAMED(outcome->nodes, outcome->n_nodes, log, outcome->log);
    if (own && outcome->n_nodes > 1 && str_eq_z(cell->of_case->stack_id, COMMAND_STACK)) {
        add_why(arena, cell,
                arena_printf(arena, "the number is of the log of %.*s; %zu other log%s kept",
                             STR_ARG(own->name), outcome->n_nodes - 1,
                             outcome->n_nodes == 2 ? " is" : "s are"));
    }
}

/* What came of --within. */
static const char *interval_of(struct arena *arena, const struct frozen *frozen,
                               const struct cell_result *cell)
{
    size_t n = 0;
    double *values = values_of(arena, cell, &n); /* all count, or there is nothing to judge */
    double half = stats_ci95(values, n) / fabs(cell->summary.mean);
    return arena_printf(arena,
                        "the 95 %% interval of the mean is +- %.2f %% after %zu repeats; "
                        "--within asked for %.4g %%%s",
                        100 * half, cell->n_repeats, 100 * frozen->plan.within,
                        half <= frozen->plan.within ? "" : ", which was not reached");
}

static int judge(struct arena *arena, const struct frozen *frozen, struct cell_result *cell,
                 struct err *err)
{
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        const struct repeat_result *repeat = &cell->repeats[idx];
        if (!repeat->counts) {
            cell->verdict = RUN_FAILED;
            cell->cause = repeat->cause;
            cell->why = str_printf(arena, "repeat %lld of %zu: %.*s", (long long)repeat->repeat,
                                   cell->n_repeats, STR_ARG(repeat->why));
            return 0;
        }
    }
    cell->unit = cell->repeats[0].unit;
    for (size_t idx = 1; idx < cell->n_repeats; idx++) {
        if (!str_eq(cell->repeats[idx].unit, cell->unit)) {
            cell->verdict = RUN_FAILED;
            cell->cause = ERR_PARSE;
            cell->why = STR_LIT("the repeats' numbers are of different units");
            return 0;
        }
    }
    if (combine(arena, cell, err) < 0) {
        return -1;
    }
    if (frozen->plan.profile == PROFILE_SMOKE) {
        cell->verdict = RUN_NOT_COMPARABLE;
        cell->why = STR_LIT("the smoke profile shows that the way works; it claims no number");
        return 0;
    }
    if (frozen->plan.is_rehearsal) {
        cell->verdict = RUN_NOT_COMPARABLE;
        cell->why = STR_LIT("a rehearsal: the commands are the report's, what they run on is not; "
                            "it claims no number");
        return 0;
    }
    judge_full(frozen, cell);
    if (frozen->plan.within > 0 && !cell->why.len) {
        add_why(arena, cell, interval_of(arena, frozen, cell));
    }
    if (isfinite(cell->rel_diff) && cell->summary.n > 1) {
        doubt_verdict(arena, frozen, cell);
    }
    if (frozen->plan.n_overrides && !cell->why.len) {
        cell->why = str_printf(arena, "with %zu settings of its own (-C), see what differs",
                               frozen->plan.n_overrides);
    }
    note_other_logs(arena, cell);
    return 0;
}

size_t result_n_repeats(const struct plan *plan)
{
    return plan->n_steps * (size_t)plan_most_repeats(plan);
}

size_t result_repeat_at(const struct plan *plan, const struct plan_step *step, int64_t repeat)
{
    return (size_t)(step - plan->steps) * (size_t)plan_most_repeats(plan) + (size_t)repeat - 1;
}

bool result_has_enough(const struct plan *plan, const struct repeat_result *repeats, int64_t n)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    double *values = arena_array(&arena, double, (size_t)n + 1);
    if (n < plan->repeats || n >= plan_most_repeats(plan)) {
        return n >= plan->repeats;
    }
    for (int64_t idx = 0; idx < n; idx++) {
        if (!repeats[idx].counts) {
            return true; /* the case has failed */
        }
        values[idx] = repeats[idx].value;
    }
    return n > 1 &&
           stats_ci95(values, (size_t)n) <= plan->within * fabs(stats_mean(values, (size_t)n));
}

/* As many as were run: the same question about the same numbers. */
static size_t repeats_of(const struct plan *plan, const struct repeat_result *repeats)
{
    int64_t n = plan->repeats;
    while (!result_has_enough(plan, repeats, n)) {
        n++;
    }
    return (size_t)n;
}

static const struct cell *throughput_of(const struct report_case *c)
{
    for (size_t idx = 0; c && idx < c->n_cells; idx++) {
        if (c->cells[idx].metric == METRIC_THROUGHPUT) {
            return &c->cells[idx];
        }
    }
    return NULL;
}

static int make_cell(struct arena *arena, const struct frozen *frozen, const struct plan_step *step,
                     struct repeat_result *repeats, struct cell_result *cell, struct err *err)
{
    *cell = (struct cell_result){.step = step,
                                 .value = (double)NAN,
                                 .rel_diff = (double)NAN,
                                 .of_case = step->bound.of_case,
                                 .baseline = step->bound.baseline};
    if (!cell->of_case) {
        return err_set(err, ERR_INTEGRITY, "%s/manifest: plan.json has case %.*s, report.json not",
                       frozen->folder, STR_ARG(step->case_id));
    }
    cell->published = throughput_of(cell->baseline);
    if (step->cause != ERR_NONE) {
        cell->verdict = RUN_NOT_RUN;
        cell->cause = step->cause;
        cell->why = step->why;
        return 0;
    }
    cell->repeats = &repeats[result_repeat_at(&frozen->plan, step, 1)];
    cell->n_repeats = repeats_of(&frozen->plan, cell->repeats);
    cell->summary = summarise(arena, cell);
    cell->target = combine_targets(cell);
    combine_also(arena, cell);
    if (cell->baseline) {
        note_differences(arena, frozen, cell);
    }
    return judge(arena, frozen, cell, err);
}

const char *result_also_means(const struct plan *plan)
{
    return plan_claims_none(plan)
               ? "What is read beside a rate comes from the same log and is not judged. After a "
                 "few "
                 "steps on synthetic data an accuracy shows that the evaluation works, and nothing "
                 "of the network: it is compared with nothing."
               : "What is read beside a rate comes from the same log and is not judged.";
}

static int exit_status_of(const struct run_result *result, const struct frozen *frozen)
{
    bool is_unclaimed = frozen->report.is_unpublished || plan_claims_none(&frozen->plan);
    int held = 0;
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *cell = &result->cells[idx];
        if (cell->verdict == RUN_FAILED || cell->verdict == RUN_NOT_RUN) {
            return err_exit_status(cell->cause);
        }
        if (cell->verdict != RUN_REPRODUCED &&
            !(cell->verdict == RUN_NOT_COMPARABLE && is_unclaimed)) {
            held = HELD_STATUS;
        }
    }
    return held;
}

/* ---- result.json ---- */

static const struct json_form RUN_ID = {.pattern = "^[0-9]{8}T[0-9]{6}\\.[0-9]{3}Z-[0-9a-f]{8}$"};
static const struct json_form CASE_ID = {
    .pattern = "^[^/]+/[^/]+/[^/]+/n[0-9]+g[0-9]+/bs[0-9]+(/[^/]+)*$"};
static const struct json_field TARGET_ROWS[] = {
    ROW("value", struct target_result, elapsed_s, NULLABLE_FIELD),
    ROW_SAYS("unit", "s"),
    ROW("step", struct target_result, step, JSON_REQUIRED),
    ROW("why", struct target_result, why, NULLABLE_FIELD | JSON_BLANK),
};
static const struct json_field ALSO_ROWS[] = {
    ROW("rule", struct also_result, rule, JSON_REQUIRED),
    ROW("series", struct also_result, series, JSON_REQUIRED),
    ROW("value", struct also_result, value, NULLABLE_FIELD),
    ROW("unit", struct also_result, unit, NULLABLE_FIELD),
    ROW("why", struct also_result, why, NULLABLE_FIELD | JSON_BLANK),
};

static void put_target(struct json_out *out, const char *key, const struct target_result *target)
{
    json_encode_object(out, key, TARGET_ROWS, ARRAY_LEN(TARGET_ROWS), target);
}

static void put_target_of_repeat(struct json_out *out, const char *key, const void *of)
{
    const struct repeat_result *repeat = of;
    if (repeat->counts && repeat->has_target) {
        put_target(out, key, &repeat->target);
    }
}

static void put_target_of_cell(struct json_out *out, const char *key, const void *of)
{
    const struct cell_result *cell = of;
    if (cell->n_repeats && cell->step->beside.target.series.ptr) {
        put_target(out, key, &cell->target);
    }
}

static void put_why_not(struct json_out *out, const char *key, const void *of)
{
    const struct cell_result *cell = of;
    if (cell->n_repeats && cell->step->beside.why_not.ptr) {
        jw_str(out, key, cell->step->beside.why_not);
    }
}

#define ROW_TARGET(by)                                                                             \
    ROW_OUT("time_to_target", JSON_OBJECT, by, 0, ROW_ROWS(TARGET_ROWS),                           \
            .about = "of a smoke run whose recipe has a target: seconds from the start of the "    \
                     "first step until the running loss was low enough; value null and step 0: "   \
                     "why")
#define ROW_ALSO(T)                                                                                \
    ROW_LIST("also", T, also, n_also, ALSO_ROWS, JSON_OMIT, .max = ALSO_RULES_MAX,                 \
             .about = "what the recipe has read from the log beside the case's number, by rules "  \
                      "of its format, and what is not judged; value null: why")

static const struct json_field LOG_ROWS[] = {
    ROW("path", struct repeat_result, log, JSON_REQUIRED),
    ROW("sha256", struct repeat_result, outcome.log_sha256, JSON_REQUIRED, .form = &JSON_SHA256),
    ROW("bytes", struct repeat_result, outcome.log_bytes, JSON_REQUIRED),
};
static const struct json_field REPEAT_ROWS[] = {
    ROW("repeat", struct repeat_result, repeat, JSON_REQUIRED, .min = 1),
    ROW_WORD("outcome", struct repeat_result, outcome.outcome, OUTCOME_NAMES, JSON_REQUIRED),
    ROW("exit_status", struct repeat_result, outcome.exit_status, JSON_REQUIRED, .max = 255),
    ROW_WORD("parse", struct repeat_result, parse, PARSE_VERDICT_NAMES, JSON_REQUIRED),
    ROW("counts", struct repeat_result, counts, JSON_REQUIRED),
    ROW("value", struct repeat_result, value, NULLABLE_FIELD),
    ROW("samples_used", struct repeat_result, n_used, JSON_REQUIRED),
    ROW("samples_in_window", struct repeat_result, n_window, JSON_REQUIRED),
    ROW("why", struct repeat_result, why, NULLABLE_FIELD),
    ROW_TARGET(put_target_of_repeat),
    ROW_ALSO(struct repeat_result),
    ROW_STRS("taints", struct repeat_result, taints, n_taints, JSON_OMIT, .form = &JSON_FILLED),
    ROW("replaces", struct repeat_result, outcome.replaces, JSON_OMIT, .form = &JSON_SHA256,
        .about = "SHA-256 of the archive in which the attempt before this one counted"),
    ROW_INSIDE("log", LOG_ROWS, JSON_REQUIRED),
};

static const struct json_field SPREAD_ROWS[] = {
    ROW("mean", struct summary, mean, 0),
    ROW("median", struct summary, median, 0),
    ROW("std", struct summary, std, JSON_NULLABLE),
    ROW("min", struct summary, min, 0),
    ROW("max", struct summary, max, 0),
};
static const struct json_field SUMMARY_ROWS[] = {
    ROW("n", struct summary, n, JSON_REQUIRED),
    {.kind = JSON_HERE, ROW_ROWS(SPREAD_ROWS)},
};

static void put_summary(struct json_out *out, const char *key, const void *of)
{
    const struct cell_result *cell = of;
    size_t n_rows = cell->summary.n ? ARRAY_LEN(SUMMARY_ROWS) : 1;
    json_encode_object(out, key, SUMMARY_ROWS, n_rows, &cell->summary);
}

static const struct json_field DIFFERENCE_ROWS[] = {
    ROW("name", struct run_difference, name, JSON_REQUIRED),
    ROW("published", struct run_difference, published, JSON_REQUIRED),
    ROW("run", struct run_difference, run, NULLABLE_FIELD),
};
#define ROW_OF_CASE(name, member, ...)                                                             \
    ROW_VIA(name, struct cell_result, of_case, member, __VA_ARGS__)
static const struct json_field CELL_ROWS[] = {
    ROW_OF_CASE("case", id, JSON_REQUIRED, .form = &CASE_ID),
    ROW_OF_CASE("framework", framework, JSON_REQUIRED),
    ROW_OF_CASE("precision", precision, JSON_REQUIRED, .vocabulary = "precisions"),
    ROW_OF_CASE("gpus", gpus, JSON_REQUIRED),
    ROW_OF_CASE("batch_per_gpu", batch_per_gpu, JSON_REQUIRED),
    ROW_SAYS("metric", "throughput"),
    ROW_VIA("baseline", struct cell_result, baseline, id, NULLABLE_FIELD),
    ROW_VIA("baseline_cell", struct cell_result, published, id, NULLABLE_FIELD),
    ROW_VIA("published", struct cell_result, published, published, NULLABLE_FIELD),
    ROW_VIA("published_unit", struct cell_result, published, unit, NULLABLE_FIELD),
    ROW("value", struct cell_result, value, NULLABLE_FIELD),
    ROW("unit", struct cell_result, unit, NULLABLE_FIELD),
    ROW("rel_diff", struct cell_result, rel_diff, NULLABLE_FIELD),
    ROW_WORD("verdict", struct cell_result, verdict, RUN_VERDICT_NAMES, JSON_REQUIRED),
    ROW_WORD("cause", struct cell_result, cause, ERR_CODE_NAMES, NULLABLE_FIELD),
    ROW("why", struct cell_result, why, NULLABLE_FIELD | JSON_BLANK),
    ROW_VIA("rule", struct cell_result, step, rule, NULLABLE_FIELD),
    ROW_OUT("summary", JSON_OBJECT, put_summary, JSON_REQUIRED, ROW_ROWS(SUMMARY_ROWS)),
    ROW_TARGET(put_target_of_cell),
    ROW_ALSO(struct cell_result),
    ROW_OUT("also_why_not", JSON_STR, put_why_not, 0,
            .about = "why nothing is read by also: the recipe's reason, or that of --data"),
    ROW_LIST("differs", struct cell_result, differs, n_differs, DIFFERENCE_ROWS, JSON_REQUIRED),
    ROW_STRS("not_stated", struct cell_result, not_stated, n_not_stated, JSON_REQUIRED),
    ROW_STRS("by_node", struct cell_result, by_node, n_by_node, JSON_OMIT, .form = &JSON_FILLED,
             .about = "conditions that nothing but the nodes' own word supports"),
    ROW_LIST("repeats", struct cell_result, repeats, n_repeats, REPEAT_ROWS, JSON_REQUIRED),
};

#define CELL_RULES                                                                                 \
    "\"allOf\": [{\"if\": {\"properties\": {\"verdict\": {\"enum\": [\"failed\", \"not_run\"]}}"   \
    "}, \"then\": {\"properties\": {\"cause\": {\"type\": \"string\"}, \"value\": {\"type\": \"n"  \
    "ull\"}, \"why\": {\"type\": \"string\"}}}, \"else\": {\"properties\": {\"cause\": {\"type\""  \
    ": \"null\"}, \"value\": {\"type\": \"number\"}}}}, {\"if\": {\"properties\": {\"verdict\":"   \
    " {\"enum\": [\"reproduced\", \"faster\", \"slower\"]}}}, \"then\": {\"properties\": {\"re"    \
    "l_diff\": {\"type\": \"number\"}, \"published\": {\"type\": \"number\"}}}, \"else\": {\"pr"   \
    "operties\": {\"rel_diff\": {\"type\": \"null\"}}}}, {\"if\": {\"properties\": {\"verdict"     \
    "\": {\"const\": \"not_run\"}}}, \"then\": {\"properties\": {\"repeats\": {\"maxItems\": 0"    \
    "}}}, \"else\": {\"properties\": {\"repeats\": {\"minItems\": 1}}}}]"
const struct json_field RESULT_CELLS_ROWS[] = {
    ROW_LIST("cells", struct run_result, cells, n_cells, CELL_ROWS, JSON_REQUIRED,
             .rules = CELL_RULES),
};

struct result_document {
    const struct frozen *frozen;
    struct run_result *result;
};
static const struct json_field RESULT_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW_VIA("run_id", struct result_document, frozen, run_id, JSON_REQUIRED, .form = &RUN_ID),
    ROW_VIA("report", struct result_document, frozen, plan.report, JSON_REQUIRED),
    {ROW_AT("profile", JSON_WORD, struct frozen, plan.profile),
     .via = {1 + offsetof(struct result_document, frozen)}, .item_size = sizeof(enum profile),
     .names = PROFILE_NAMES, .n_names = ARRAY_LEN(PROFILE_NAMES), .flags = JSON_REQUIRED},
    ROW_VIA("rehearsal", struct result_document, frozen, plan.is_rehearsal, JSON_OMIT,
            .schema = "\"const\": true",
            .about = "of the full profile, and no number of it is compared with a published one; "
                     "absent: it is none"),
    ROW_VIA("exit_status", struct result_document, result, exit_status, JSON_REQUIRED, .max = 255),
    ROW_THERE(struct result_document, result, RESULT_CELLS_ROWS),
};
const struct json_document RESULT_DOCUMENT = {
    JSON_DOCUMENT("result.json", "result.json of a run", RESULT_ROWS)};

int result_combine(struct arena *arena, const struct frozen *frozen, struct repeat_result *repeats,
                   struct derived_to to, struct run_result *ret_result, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(RESULT_TEXT_MAX);
    struct run_result result = {.n_cells = frozen->plan.n_steps};
    result.cells = arena_array(arena, struct cell_result, result.n_cells + 1);
    for (size_t idx = 0; idx < result.n_cells; idx++) {
        if (make_cell(arena, frozen, &frozen->plan.steps[idx], repeats, &result.cells[idx], err) <
            0) {
            return -1;
        }
    }
    result.exit_status = exit_status_of(&result, frozen);
    json_encode_document(&text, RESULT_ROWS, ARRAY_LEN(RESULT_ROWS),
                         &(struct result_document){frozen, &result});
    if (text.is_full) {
        return err_set(err, ERR_INTERNAL, "result.json: more than %u bytes", RESULT_TEXT_MAX);
    }
    result.text = str_dup(arena, strbuf_str(&text));
    if (to.put(to.ctx, "result.json", result.text, err) < 0) {
        return -1;
    }
    *ret_result = result;
    return 0;
}

int result_derive(struct arena *arena, const struct frozen *frozen, struct derived_to to,
                  struct run_result *ret_result, struct err *err)
{
    const struct plan *plan = &frozen->plan;
    struct repeat_result *repeats =
        arena_array(arena, struct repeat_result, result_n_repeats(plan) + 1);
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        const struct plan_step *step = &plan->steps[idx];
        struct repeat_result *of_step = &repeats[result_repeat_at(plan, step, 1)];
        for (int64_t no = 1; step->cause == ERR_NONE && step->bound.of_case &&
                             !result_has_enough(plan, of_step, no - 1);
             no++) {
            if (result_repeat(arena, frozen, (struct repeat_of){step, no}, to, &of_step[no - 1],
                              err) < 0) {
                return -1;
            }
        }
    }
    return result_combine(arena, frozen, repeats, to, ret_result, err);
}
