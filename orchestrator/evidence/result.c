/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/result.h"

#include <math.h>

#include "judge/identity.h"
#include "judge/stats.h"

#define RESULT_TEXT_MAX (256u << 20)
#define HELD_STATUS     1 /* a cell does not hold */

/* ---- conditions ---- */

struct named { /* what was in force when we measured */
    struct str name;
    struct str value;
};

struct result_names {
    struct named *items;
    size_t n;
    size_t n_max; /* upper bound, if all names were different */
};

static void put_name(struct result_names *names, struct str name, struct str value)
{
    for (size_t idx = 0; idx < names->n; idx++) {
        if (str_eq(names->items[idx].name, name)) {
            names->items[idx].value = value;
            return;
        }
    }
    ASSERT(names->n < names->n_max);
    names->items[names->n++] = (struct named){name, value};
}

/* The log says "ID.synthetic" of a synthetic dataset's shards; where that is the synthetic dataset that was planned with, it is said in words. */
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
    return str_of(arena_printf(arena, "%lld", (long long)value));
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
        *ret_value = number(arena, c->batch_per_gpu);
    } else if (str_eq_z(name, "device")) {
        *ret_value = c->gpus > 0 ? STR_LIT("gpu") : STR_LIT("cpu");
    } else {
        return case_condition(c, str_z(arena, name), ret_value);
    }
    return true;
}

/* "1e-4" and "0.0001" are one value. */
static bool same_value(struct str a, struct str b)
{
    struct err no_number = {0};
    struct err none_either = {0};
    double left = 0;
    double right = 0;
    if (str_eq(a, b)) {
        return true;
    }
    return str_to_f64(a, &left, &no_number) == 0 && str_to_f64(b, &right, &none_either) == 0 &&
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
    names->items = arena_array(arena, struct named, names->n_max + 1);
    conditions_of_run(arena, frozen, cell, names);
    cell->differs =
        arena_array(arena, struct run_difference, names->n + frozen->plan.n_overrides + 1);
    cell->not_stated = arena_array(arena, struct str, names->n + 1);
    for (size_t idx = 0; idx < names->n; idx++) {
        struct str ours = names->items[idx].value;
        struct str theirs = STR_EMPTY;
        bool is_named = published_value(arena, cell->baseline, names->items[idx].name, &theirs);
        if (!is_named || !theirs.ptr) {
            /* Neither has one: nothing to say. */
            if (ours.ptr) {
                cell->not_stated[cell->n_not_stated++] = names->items[idx].name;
            }
        } else if (!ours.ptr || !same_value(ours, theirs)) {
            cell->differs[cell->n_differs++] =
                (struct run_difference){names->items[idx].name, theirs, ours};
        }
    }
    /* Whether or not they affect this case, its report is not the published one. */
    for (size_t idx = 0; idx < frozen->plan.n_overrides; idx++) {
        const struct json_override *set = &frozen->plan.overrides[idx];
        cell->differs[cell->n_differs++] = (struct run_difference){
            set->path, set->was.ptr ? set->was : STR_LIT("absent"), set->value};
    }
}

/* ---- numbers ---- */

static struct summary summarise(struct arena *arena, const struct cell_result *cell)
{
    struct summary s = {0, (double)NAN, (double)NAN, (double)NAN, (double)NAN, (double)NAN};
    double *values = arena_array(arena, double, cell->n_repeats + 1);
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        if (cell->repeats[idx].counts) {
            values[s.n++] = cell->repeats[idx].value;
        }
    }
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
    const struct beside *beside = &cell->step->beside;
    double *values = arena_array(arena, double, cell->n_repeats + 1);
    cell->also = arena_array(arena, struct also_result, beside->n_also + 1);
    for (size_t idx = 0; idx < beside->n_also; idx++) {
        const struct rule *rule = cell->step->bound.also[idx];
        struct also_result *all = &cell->also[idx];
        *all = (struct also_result){.value = (double)NAN, .series = rule->series};
        for (size_t at = 0; at < cell->n_repeats && !all->why.len; at++) {
            const struct repeat_result *repeat = &cell->repeats[at];
            all->why = repeat->counts ? repeat->also[idx].why : repeat->why;
            all->unit = repeat->counts ? repeat->also[idx].unit : STR_EMPTY;
            values[at] = repeat->counts ? repeat->also[idx].value : (double)NAN;
        }
        enum repeats how = rule->repeats == REPEATS_SINGLE ? REPEATS_MEAN : rule->repeats;
        struct err err = {0};
        if (!all->why.len && rule_combine(how, values, cell->n_repeats, &all->value, &err) < 0) {
            all->why = str_of(arena_printf(arena, "%s", err.msg));
        }
    }
}

/* Across repeats as the rule says; a rule for a single log stands for their mean here. */
static int combine(struct arena *arena, struct cell_result *cell, struct err *err)
{
    const struct rule *rule = cell->step->bound.rule;
    double *values = arena_array(arena, double, cell->n_repeats + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        if (cell->repeats[idx].counts) {
            values[n++] = cell->repeats[idx].value;
        }
    }
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
            verdict_run(cell->value, cell->published->published,
                        frozen->plan.tolerance > 0 ? frozen->plan.tolerance : REPRODUCED_REL_MAX);
    }
}

/* What came of --within. */
static struct str interval_of(struct arena *arena, const struct frozen *frozen,
                              const struct cell_result *cell)
{
    double *values = arena_array(arena, double, cell->n_repeats + 1);
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        values[idx] = cell->repeats[idx].value;
    }
    double half = stats_ci95(values, cell->n_repeats) / fabs(cell->summary.mean);
    return str_of(arena_printf(arena,
                               "the 95 %% interval of the mean is +- %.2f %% after %zu repeats; "
                               "--within asked for %.4g %%%s",
                               100 * half, cell->n_repeats, 100 * frozen->plan.within,
                               half <= frozen->plan.within ? "" : ", which was not reached"));
}

static int judge(struct arena *arena, const struct frozen *frozen, struct cell_result *cell,
                 struct err *err)
{
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        const struct repeat_result *repeat = &cell->repeats[idx];
        if (!repeat->counts) {
            cell->verdict = RUN_FAILED;
            cell->cause = repeat->cause;
            cell->why =
                str_of(arena_printf(arena, "repeat %lld of %zu: %.*s", (long long)repeat->repeat,
                                    cell->n_repeats, STR_ARG(repeat->why)));
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
        cell->why = interval_of(arena, frozen, cell);
    }
    if (frozen->plan.n_overrides && !cell->why.len) {
        cell->why =
            str_of(arena_printf(arena, "with %zu settings of its own (-C), see what differs",
                                frozen->plan.n_overrides));
    }
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

static bool claims_none(const struct plan *plan)
{
    return plan->profile == PROFILE_SMOKE || plan->is_rehearsal;
}

const char *result_also_means(const struct plan *plan)
{
    return claims_none(plan)
               ? "What is read beside a rate comes from the same log and is not judged. After a "
                 "few "
                 "steps on synthetic data an accuracy shows that the evaluation works, and nothing "
                 "of the network: it is compared with nothing."
               : "What is read beside a rate comes from the same log and is not judged.";
}

static int exit_status_of(const struct run_result *result, const struct frozen *frozen)
{
    bool is_unclaimed = frozen->report.is_unpublished || claims_none(&frozen->plan);
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

static void encode_target(struct json_out *out, const struct target_result *target)
{
    jw_object(out, "time_to_target");
    jw_f64(out, "value", target->elapsed_s);
    jw_z(out, "unit", "s");
    jw_i64(out, "step", target->step);
    jw_str(out, "why", target->why.len ? target->why : STR_EMPTY);
    jw_end_object(out);
}

static void encode_beside(struct json_out *out, const struct beside *beside,
                          const struct target_result *target, const struct also_result *also)
{
    if (beside->target.series.ptr) {
        encode_target(out, target);
    }
    if (beside->n_also == 0) {
        return;
    }
    jw_array(out, "also");
    for (size_t idx = 0; idx < beside->n_also; idx++) {
        jw_object(out, NULL);
        jw_str(out, "rule", beside->also[idx]);
        jw_str(out, "series", also[idx].series);
        jw_f64(out, "value", also[idx].value);
        jw_str(out, "unit", also[idx].unit);
        jw_str(out, "why", also[idx].why.len ? also[idx].why : STR_EMPTY);
        jw_end_object(out);
    }
    jw_end_array(out);
}

static void encode_repeat(struct json_out *out, const struct beside *beside,
                          const struct repeat_result *repeat)
{
    jw_object(out, NULL);
    jw_i64(out, "repeat", repeat->repeat);
    jw_z(out, "outcome", outcome_name(repeat->outcome.outcome));
    jw_i64(out, "exit_status", repeat->outcome.exit_status);
    jw_z(out, "parse", parse_verdict_name(repeat->parse));
    jw_bool(out, "counts", repeat->counts);
    jw_f64(out, "value", repeat->value);
    jw_i64(out, "samples_used", (int64_t)repeat->n_used);
    jw_i64(out, "samples_in_window", (int64_t)repeat->n_window);
    jw_str(out, "why", repeat->why);
    if (repeat->counts) {
        encode_beside(out, beside, &repeat->target, repeat->also);
    }
    if (repeat->n_taints) {
        jw_array(out, "taints");
        for (size_t idx = 0; idx < repeat->n_taints; idx++) {
            jw_str(out, NULL, repeat->taints[idx]);
        }
        jw_end_array(out);
    }
    jw_object(out, "log");
    jw_str(out, "path", repeat->log);
    jw_str(out, "sha256", repeat->outcome.log_sha256);
    jw_i64(out, "bytes", repeat->outcome.log_bytes);
    jw_end_object(out);
    jw_end_object(out);
}

static void encode_summary(struct json_out *out, const struct summary *summary)
{
    jw_object(out, "summary");
    jw_i64(out, "n", (int64_t)summary->n);
    if (summary->n) {
        jw_f64(out, "mean", summary->mean);
        jw_f64(out, "median", summary->median);
        jw_f64(out, "std", summary->std);
        jw_f64(out, "min", summary->min);
        jw_f64(out, "max", summary->max);
    }
    jw_end_object(out);
}

static void encode_differences(struct json_out *out, const struct cell_result *cell)
{
    jw_array(out, "differs");
    for (size_t idx = 0; idx < cell->n_differs; idx++) {
        jw_object(out, NULL);
        jw_str(out, "name", cell->differs[idx].name);
        jw_str(out, "published", cell->differs[idx].published);
        jw_str(out, "run", cell->differs[idx].run);
        jw_end_object(out);
    }
    jw_end_array(out);
    jw_array(out, "not_stated");
    for (size_t idx = 0; idx < cell->n_not_stated; idx++) {
        jw_str(out, NULL, cell->not_stated[idx]);
    }
    jw_end_array(out);
}

void result_encode_cell(struct json_out *out, struct arena *arena UNUSED,
                        const struct cell_result *cell)
{
    const struct report_case *c = cell->of_case;
    const struct beside *beside = &cell->step->beside;
    jw_object(out, NULL);
    jw_str(out, "case", c->id);
    jw_str(out, "framework", c->framework);
    jw_str(out, "precision", c->precision);
    jw_i64(out, "gpus", c->gpus);
    jw_i64(out, "batch_per_gpu", c->batch_per_gpu);
    jw_z(out, "metric", metric_name(METRIC_THROUGHPUT));
    jw_str(out, "baseline", cell->baseline ? cell->baseline->id : STR_EMPTY);
    jw_str(out, "baseline_cell", cell->published ? cell->published->id : STR_EMPTY);
    jw_f64(out, "published", cell->published ? cell->published->published : (double)NAN);
    jw_str(out, "published_unit", cell->published ? cell->published->unit : STR_EMPTY);
    jw_f64(out, "value", cell->value);
    jw_str(out, "unit", cell->unit);
    jw_f64(out, "rel_diff", cell->rel_diff);
    jw_z(out, "verdict", run_verdict_name(cell->verdict));
    jw_z(out, "cause", cell->cause ? err_code_name(cell->cause) : NULL);
    jw_str(out, "why", cell->why.len ? cell->why : STR_EMPTY);
    jw_str(out, "rule", cell->step->rule);
    encode_summary(out, &cell->summary);
    if (cell->n_repeats) {
        encode_beside(out, beside, &cell->target, cell->also);
        if (beside->why_not.ptr) {
            jw_str(out, "also_why_not", beside->why_not);
        }
    }
    encode_differences(out, cell);
    jw_array(out, "repeats");
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        encode_repeat(out, beside, &cell->repeats[idx]);
    }
    jw_end_array(out);
    jw_end_object(out);
}

static void encode_result(struct arena *arena, const struct frozen *frozen,
                          const struct run_result *result, struct strbuf *buf)
{
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", 1);
    jw_str(&out, "run_id", frozen->run_id);
    jw_str(&out, "report", frozen->plan.report);
    jw_z(&out, "profile", profile_name(frozen->plan.profile));
    if (frozen->plan.is_rehearsal) {
        jw_bool(&out, "rehearsal", true);
    }
    jw_i64(&out, "exit_status", result->exit_status);
    jw_array(&out, "cells");
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        result_encode_cell(&out, arena, &result->cells[idx]);
    }
    jw_end_array(&out);
    jw_end_object(&out);
}

int result_combine(struct arena *arena, const struct frozen *frozen, struct repeat_result *repeats,
                   struct derived_to to, struct run_result *ret_result, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    struct run_result result = {.n_cells = frozen->plan.n_steps};
    strbuf_init(&text, RESULT_TEXT_MAX);
    result.cells = arena_array(arena, struct cell_result, result.n_cells + 1);
    for (size_t idx = 0; idx < result.n_cells; idx++) {
        if (make_cell(arena, frozen, &frozen->plan.steps[idx], repeats, &result.cells[idx], err) <
            0) {
            return -1;
        }
    }
    result.exit_status = exit_status_of(&result, frozen);
    encode_result(arena, frozen, &result, &text);
    if (text.is_full) {
        return err_set(err, ERR_INTERNAL, "result.json: more than %u bytes", RESULT_TEXT_MAX);
    }
    if (to.put(to.ctx, "result.json", strbuf_str(&text), err) < 0) {
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
