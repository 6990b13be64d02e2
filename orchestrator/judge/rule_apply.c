/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/rule.h"
#include "log/engine.h"

#include <math.h>

#include "judge/rule_impl.h"
#include "judge/stats.h"

struct picked {                  /* samples in the window, in file order */
    const struct sample **items; /* owned, or a part of the kept ones */
    size_t n;
    const struct series *series;
    enum sample_use *uses; /* borrowed: one for each sample of the series; NULL: not asked for */
    const struct rule_memo *kept; /* borrowed; NULL: the items are its own */
};

#define US_PER_S 1e6

/* ---- samples in the window ---- */

static void picked_cleanup(struct picked *picked)
{
    if (!picked->kept) {
        free(picked->items);
    }
}

struct runs { /* that a series has samples of */
    int32_t first, last;
};

/* Taken from the series itself, so that a table after two runs belongs to one run. */
static struct runs runs_of(const struct series *series)
{
    struct runs runs = {INT32_MAX, -1};
    for (size_t idx = 0; idx < series->n; idx++) {
        int32_t run = series->samples[idx].run;
        runs.first = run < runs.first ? run : runs.first;
        runs.last = run > runs.last ? run : runs.last;
    }
    return runs;
}

static bool is_choice(const struct rule *rule, struct runs runs)
{
    return rule->run != RUN_ONLY || runs.first == runs.last;
}

int32_t rule_run_of(const struct rule *rule, const struct series *series)
{
    struct runs runs = runs_of(series);
    return rule->run == RUN_LAST ? runs.last : runs.first;
}

int32_t rule_run(const struct rule *rule, const struct measurement *m)
{
    const struct series *series = measurement_series(m, rule->series);
    struct runs runs = series ? runs_of(series) : (struct runs){0};
    return !series || series->n == 0 || rule->match_gpus || !is_choice(rule, runs)
               ? -1
               : rule_run_of(rule, series);
}

static int choose_run(const struct rule *rule, const struct series *series, int32_t *ret_run,
                      struct err *err)
{
    struct runs runs = runs_of(series);
    if (!is_choice(rule, runs)) {
        return err_set(err, ERR_PARSE, "the log holds %d runs and rule %.*s does not choose one",
                       runs.last - runs.first + 1, STR_ARG(rule->id));
    }
    *ret_run = rule_run_of(rule, series);
    return 0;
}

/* Warm-up steps that the run states, -1: none; for a log of one run also those that a kept series states. */
static int64_t warmup_of(const struct measurement *m, int32_t run)
{
    const struct fact *fact = m->n_runs > 1 ? measurement_fact(m, STR_LIT("warmup"), run) : NULL;
    int64_t steps;
    return fact && str_to_i64(fact->value, 0, INT64_MAX, &steps, ERR_IGNORED) == 0 ? steps
           : m->n_runs > 1                                                         ? -1
                           : m->warmup_steps;
}

static void picked_note(const struct picked *picked, const struct sample *s, enum sample_use use)
{
    if (picked->uses) {
        picked->uses[s - picked->series->samples] = use;
    }
}

static enum sample_use use_of(const struct rule *rule, const struct sample *s, int32_t run,
                              int64_t gpus, int64_t warmup_steps)
{
    const struct window *w = &rule->window;
    bool is_outside = w->has_steps && (s->step < w->step_from || s->step > w->step_to);
    return s->run != run                                ? USE_OTHER_RUN
           : rule->match_gpus && s->gpus != gpus        ? USE_OTHER_GPUS
           : is_outside                                 ? USE_OUTSIDE_STEPS
           : w->skips_warmup && s->step <= warmup_steps ? USE_WARMUP
                                                        : USE_COUNTED;
}

static int compare_ranks(const void *a, const void *b)
{
    const struct sample *x = *(const struct sample *const *)a;
    const struct sample *y = *(const struct sample *const *)b;
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return (x > y) - (x < y); /* same array: keeps file order */
}

/* Most logs have one rank and are already in order. */
static void picked_sort_by_rank(const struct sample **items, size_t n)
{
    size_t n_sorted = n ? 1 : 0;
    while (n_sorted < n && items[n_sorted - 1]->rank <= items[n_sorted]->rank) {
        n_sorted++;
    }
    if (n_sorted < n) {
        qsort(items, n, sizeof(items[0]), compare_ranks);
    }
}

struct cut { /* what a window leaves of n samples in a row */
    size_t skip, drop, before_last, keep;
};

static struct cut cut_of(const struct window *w, size_t n)
{
    size_t skip = (size_t)w->skip < n ? (size_t)w->skip : n;
    size_t drop = (size_t)w->drop_last < n - skip ? (size_t)w->drop_last : n - skip;
    size_t left = n - skip - drop;
    size_t keep = w->last > 0 && (size_t)w->last < left ? (size_t)w->last : left;
    return (struct cut){skip, drop, left - keep, keep};
}

/* Cuts items[from, to), one rank's or all; the rest moves to items[at...]. Returns their number. */
static size_t cut_window(const struct window *w, const struct picked *picked, size_t from,
                         size_t to, size_t at)
{
    const struct sample **items = picked->items;
    size_t n = to - from;
    struct cut cut = cut_of(w, n);
    for (size_t idx = 0; idx < n; idx++) {
        picked_note(picked, items[from + idx],
                    idx < cut.skip                     ? USE_SKIPPED
                    : idx >= n - cut.drop              ? USE_DROPPED
                    : idx < cut.skip + cut.before_last ? USE_BEFORE_LAST
                                                       : USE_COUNTED);
    }
    if (cut.keep > 0) {
        memmove(&items[at], &items[from + cut.skip + cut.before_last], cut.keep * sizeof(items[0]));
    }
    return cut.keep;
}

static bool has_one_rank(const struct picked *picked)
{
    for (size_t idx = 1; idx < picked->n; idx++) {
        if (picked->items[idx]->rank != picked->items[0]->rank) {
            return false;
        }
    }
    return true;
}

/* Usually the whole log is one sequence; with scope rank and several ranks, each rank is. */
static void cut_windows(const struct rule *rule, struct picked *picked)
{
    const struct sample **items = picked->items;
    size_t at = 0;
    if (picked->kept) {
        struct cut cut = cut_of(&rule->window, picked->n);
        picked->items += cut.skip + cut.before_last;
        picked->n = cut.keep;
        return;
    }
    if (picked->series->scope != SCOPE_RANK || has_one_rank(picked)) {
        picked->n = cut_window(&rule->window, picked, 0, picked->n, 0);
        return;
    }
    picked_sort_by_rank(items, picked->n);
    for (size_t from = 0, to; from < picked->n; from = to) {
        for (to = from + 1; to < picked->n && items[to]->rank == items[from]->rank; to++) {
        }
        at += cut_window(&rule->window, picked, from, to, at);
    }
    picked->n = at;
}

/* The samples that the window is cut from. */
static int gather(const struct rule *rule, const struct measurement *m, const struct rule_case *of,
                  struct picked *picked, struct err *err)
{
    const struct series *series = picked->series;
    int32_t run = 0;
    if (rule->match_gpus && of->gpus <= 0) {
        return err_set(err, ERR_PARSE, "rule %.*s needs to know how many GPUs", STR_ARG(rule->id));
    }
    if (choose_run(rule, series, &run, err) < 0) {
        return -1;
    }
    int64_t warmup_steps = warmup_of(m, run);
    if (rule->window.skips_warmup && warmup_steps < 0) {
        return err_set(err, ERR_PARSE, "rule %.*s: the log does not state its warm-up steps",
                       STR_ARG(rule->id));
    }
    picked->items = xcalloc(series->n, sizeof(picked->items[0]));
    for (size_t idx = 0; idx < series->n; idx++) {
        const struct sample *s = &series->samples[idx];
        enum sample_use use = use_of(rule, s, run, of->gpus, warmup_steps);
        picked_note(picked, s, use);
        if (use == USE_COUNTED) {
            picked->items[picked->n++] = s;
        }
    }
    return 0;
}

/* NULL: every sample has a usable value. */
static const struct sample *find_unusable(const struct picked *picked)
{
    for (size_t idx = 0; idx < picked->n; idx++) {
        if (!isfinite(picked->items[idx]->value)) {
            return picked->items[idx];
        }
    }
    return NULL;
}

static int check_usable(const struct rule *rule, const struct picked *picked, struct err *err)
{
    bool is_timed = rule->statistic == STAT_TIMESTAMPS || rule->statistic == STAT_ELAPSED;
    const struct sample *sample = is_timed || picked->kept ? NULL : find_unusable(picked);
    return sample ? err_set(err, ERR_PARSE, "step %" PRId64 " in the window has no usable value",
                            sample->step)
                  : 0;
}

/* ---- samples that are kept ---- */

struct rule_kept {
    double value;
    size_t at; /* in file order */
};

static int compare_kept(const void *a, const void *b)
{
    const struct rule_kept *x = a;
    const struct rule_kept *y = b;
    return x->value != y->value ? (x->value > y->value) - (x->value < y->value)
                                : (x->at > y->at) - (x->at < y->at);
}

void rule_memo_release(struct rule_memo *memo)
{
    free(memo->items);
    free(memo->values);
    free(memo->ordered);
    *memo = (struct rule_memo){0};
}

static bool is_kept(const struct rule_memo *memo, const struct rule *rule,
                    const struct rule_case *of, const struct series *series)
{
    return memo->series == series && memo->run == rule->run &&
           memo->gpus == (rule->match_gpus ? of->gpus : -1);
}

/* Keeps one sequence of numbers, which most logs are; others are gathered each time. */
static void keep(struct rule_memo *memo, const struct rule *rule, const struct rule_case *of,
                 struct picked *picked)
{
    rule_memo_release(memo);
    if (!has_one_rank(picked) || find_unusable(picked)) {
        return;
    }
    *memo = (struct rule_memo){.series = picked->series,
                               .run = rule->run,
                               .gpus = rule->match_gpus ? of->gpus : -1,
                               .items = picked->items,
                               .values = xcalloc(picked->n, sizeof(*memo->values)),
                               .ordered = xcalloc(picked->n, sizeof(*memo->ordered)),
                               .n = picked->n};
    for (size_t idx = 0; idx < memo->n; idx++) {
        memo->values[idx] = memo->items[idx]->value;
        memo->ordered[idx] = (struct rule_kept){memo->values[idx], idx};
    }
    qsort(memo->ordered, memo->n, sizeof(*memo->ordered), compare_kept);
    picked->kept = memo;
}

/* The rule's series, and its samples in the window; picked->uses is set. */
static int pick(const struct rule *rule, const struct measurement *m, const struct rule_case *of,
                struct picked *picked, struct err *err)
{
    const struct window *w = &rule->window;
    struct rule_memo *memo = picked->uses || w->has_steps || w->skips_warmup ? NULL : of->memo;
    picked->series = measurement_series(m, rule->series);
    if (!picked->series || picked->series->n == 0) {
        return err_set(err, ERR_PARSE, "the log has no series \"%.*s\"", STR_ARG(rule->series));
    }
    if (memo && is_kept(memo, rule, of, picked->series)) {
        picked->kept = memo;
        picked->items = memo->items;
        picked->n = memo->n;
    } else if (gather(rule, m, of, picked, err) < 0) {
        return -1;
    } else if (memo) {
        keep(memo, rule, of, picked);
    }
    cut_windows(rule, picked);
    if (picked->n == 0) {
        return err_set(err, ERR_PARSE,
                       "rule %.*s leaves none of the %zu samples of series \"%.*s\"",
                       STR_ARG(rule->id), picked->series->n, STR_ARG(picked->series->name));
    }
    return check_usable(rule, picked, err);
}

/* Their values, in file order; *own: freed by the caller, NULL where they are kept ones. */
static const double *picked_values(const struct picked *picked, double **own)
{
    if (picked->kept) {
        return picked->kept->values + (picked->items - picked->kept->items);
    }
    *own = xcalloc(picked->n, sizeof(**own));
    for (size_t idx = 0; idx < picked->n; idx++) {
        (*own)[idx] = picked->items[idx]->value;
    }
    return *own;
}

/* The same in ascending order. */
static const double *picked_sorted(const struct picked *picked, double **own)
{
    if (!picked->kept) {
        stats_sort(*own, picked->n);
        return *own;
    }
    const struct rule_memo *kept = picked->kept;
    size_t first = (size_t)(picked->items - kept->items);
    size_t n = 0;
    *own = xcalloc(picked->n, sizeof(**own));
    for (size_t idx = 0; idx < kept->n; idx++) {
        if (kept->ordered[idx].at - first < picked->n) {
            (*own)[n++] = kept->ordered[idx].value;
        }
    }
    return *own;
}

static int apply_timestamps(const struct rule *rule, const struct rule_case *of,
                            const struct picked *picked, double *ret_value, struct err *err)
{
    const struct sample *first = picked->items[0];
    const struct sample *last = first;
    for (size_t idx = 1; idx < picked->n; idx++) {
        last = picked->items[idx]->rank == first->rank ? picked->items[idx] : last;
    }
    if (of->gpus <= 0 || of->batch_per_gpu <= 0) {
        return err_set(err, ERR_PARSE, "rule %.*s needs to know the batch and how many GPUs",
                       STR_ARG(rule->id));
    }
    if (!(last->time_s > first->time_s) || last->step <= first->step) {
        return err_set(err, ERR_PARSE,
                       "rule %.*s: no time passes between steps %" PRId64 " and %" PRId64,
                       STR_ARG(rule->id), first->step, last->step);
    }
    *ret_value = (double)of->gpus * (double)of->batch_per_gpu * (double)(last->step - first->step) /
                 (last->time_s - first->time_s);
    return 0;
}

static int apply_elapsed(const struct rule *rule, const struct picked *picked, double *ret_value,
                         struct err *err)
{
    double first = picked->items[0]->time_s;
    double last = picked->items[picked->n - 1]->time_s;
    if (!(last > first)) {
        return err_set(err, ERR_PARSE, "rule %.*s: no time passes between the %zu lines",
                       STR_ARG(rule->id), picked->n);
    }
    /* Logs give whole microseconds at best; in a double since 1970 anything finer is noise. */
    *ret_value = (nearbyint(last * US_PER_S) - nearbyint(first * US_PER_S)) / US_PER_S;
    if (rule->unit.len) {
        *ret_value /= rule_unit_s(rule->unit);
    }
    return 0;
}

/* A sample counts for the steps since the one before it of its rank. The first sample of a rank, or one whose step does not
   increase, has no interval: it counts for as many steps as the next of its rank that has an interval, else the last before it,
   else (a rank with one sample) the first of any rank, else 1. items are sorted by rank. */
static void weigh_by_rank(const struct picked *picked, double *weights)
{
    const struct sample *const *items = picked->items;
    double first_of_any = 0;
    for (size_t idx = 0; idx < picked->n; idx++) {
        bool is_first = idx == 0 || items[idx]->rank != items[idx - 1]->rank;
        int64_t delta = is_first ? 0 : items[idx]->step - items[idx - 1]->step;
        weights[idx] = delta > 0 ? (double)delta : 0;
        first_of_any = first_of_any > 0 ? first_of_any : weights[idx];
    }
    for (size_t idx = picked->n - 1; idx-- > 0;) {
        bool is_one_rank = items[idx]->rank == items[idx + 1]->rank;
        weights[idx] = weights[idx] <= 0 && is_one_rank ? weights[idx + 1] : weights[idx];
    }
    for (size_t idx = 0; idx < picked->n; idx++) {
        bool is_one_rank = idx > 0 && items[idx]->rank == items[idx - 1]->rank;
        weights[idx] = weights[idx] > 0   ? weights[idx]
                       : is_one_rank      ? weights[idx - 1]
                       : first_of_any > 0 ? first_of_any
                                          : 1;
    }
}

/* All items over all time, each sample by the steps that it counts for. Rates: steps / sum(steps / rate). Step times: sum(steps x
   time) / steps. */
static void apply_time_weighted(const struct picked *picked, struct rule_value *ret)
{
    CLEANUP(free) double *weights = xcalloc(picked->n, sizeof(*weights));
    double top = 0;
    double bottom = 0;
    picked_sort_by_rank(picked->items, picked->n);
    weigh_by_rank(picked, weights);
    for (size_t idx = 0; idx < picked->n; idx++) {
        double value = picked->items[idx]->value;
        if (picked->series->quantity == QTY_STEP_TIME) {
            top += weights[idx] * value;
            bottom += weights[idx];
        } else {
            top += weights[idx];
            bottom += weights[idx] / value;
        }
    }
    ret->top = top;
    ret->bottom = bottom;
    ret->value = top / bottom;
}

static int apply_tool(const struct rule *rule, const struct picked *picked, const double *values,
                      double *ret_value, struct err *err)
{
    for (size_t idx = 1; idx < picked->n; idx++) {
        if (picked->items[idx]->rank == picked->items[idx - 1]->rank) {
            return err_set(err, ERR_PARSE,
                           "rule %.*s expects one value of series \"%.*s\", found %zu",
                           STR_ARG(rule->id), STR_ARG(rule->series), picked->n);
        }
    }
    *ret_value = stats_mean(values, picked->n);
    return 0;
}

/* How many of n samples are dropped at each end. */
static size_t trimmed_each(const struct rule *rule, size_t n)
{
    size_t share = (size_t)floor(rule->trim_share * (double)n + 1e-9);
    size_t count = (size_t)rule->trim_count;
    return rule->statistic == STAT_OLYMPIC_MEAN ? 1 : share > count ? share : count;
}

static int apply_trimmed(const struct rule *rule, const struct picked *picked, double **own,
                         struct rule_value *ret, struct err *err)
{
    size_t n = picked->n;
    size_t each = trimmed_each(rule, n);
    if (2 * each >= n) {
        return err_set(err, ERR_PARSE, "rule %.*s drops %zu at each end, and there are %zu samples",
                       STR_ARG(rule->id), each, n);
    }
    ret->value = stats_sorted_trimmed_mean(picked_sorted(picked, own), n, each);
    ret->n_used = n - 2 * each;
    return 0;
}

static int apply_statistic(const struct rule *rule, const struct rule_case *of,
                           const struct picked *picked, struct rule_value *ret, struct err *err)
{
    size_t n = picked->n;
    CLEANUP(free) double *own = NULL;
    const double *values = picked_values(picked, &own);
    ret->n_window = n;
    ret->n_used = n;
    switch (rule->statistic) {
    case STAT_MEAN:
        ret->value = stats_mean(values, n);
        return 0;
    case STAT_MEDIAN:
        ret->value = stats_sorted_median(picked_sorted(picked, &own), n);
        return 0;
    case STAT_TRIMMED_MEAN:
    case STAT_OLYMPIC_MEAN:
        return apply_trimmed(rule, picked, &own, ret, err);
    case STAT_HARMONIC_MEAN:
        ret->value = stats_harmonic_mean(values, n);
        return 0;
    case STAT_TIME_WEIGHTED_MEAN:
        apply_time_weighted(picked, ret);
        return 0;
    case STAT_MIN:
        ret->value = picked_sorted(picked, &own)[0];
        return 0;
    case STAT_MAX:
        ret->value = picked_sorted(picked, &own)[n - 1];
        return 0;
    case STAT_FIRST:
        ret->value = values[0];
        ret->n_used = 1;
        return 0;
    case STAT_LAST:
        ret->value = rule->window.last > 1 ? stats_mean(values, n) : values[n - 1];
        ret->n_used = rule->window.last > 1 ? n : 1;
        return 0;
    case STAT_TIMESTAMPS:
        ret->n_used = n > 1 ? 2 : 1;
        return apply_timestamps(rule, of, picked, &ret->value, err);
    case STAT_ELAPSED:
        ret->n_used = n > 1 ? 2 : 1;
        return apply_elapsed(rule, picked, &ret->value, err);
    case STAT_TOOL:
        return apply_tool(rule, picked, values, &ret->value, err);
    case STAT_ENGINE: /* by_engine */
    case STAT_COUNT:
        break;
    }
    ASSERT(!"statistic");
    return -1;
}

/* Items per step, from a fact that the run states once; 0 if it does not. */
static double stated_items(const struct measurement *m, struct str name, int32_t run)
{
    const struct fact *fact = rule_one_fact(m, name, run);
    double items;
    return fact && str_to_f64(fact->value, &items, ERR_IGNORED) == 0 && items > 0 ? items : 0;
}

/* Sets ret->operand and scales the value by it. */
static int apply_scale(const struct rule *rule, const struct measurement *m,
                       const struct rule_case *of, struct rule_value *ret, struct err *err)
{
    static const char *const NEEDS[] = {[SCALE_GPUS] = "number of GPUs",
                                        [SCALE_NODES] = "number of nodes",
                                        [SCALE_GLOBAL_BATCH_OVER] = "batch and the number of GPUs",
                                        [SCALE_GLOBAL_BATCH] = "batch and the number of GPUs"};
    bool is_fact = rule_is_by_fact(rule);
    bool is_over = rule->scale == SCALE_GLOBAL_BATCH_OVER || rule->scale == SCALE_FACT_OVER;
    bool is_known = of->gpus > 0 && of->batch_per_gpu > 0;
    double operand = is_fact                      ? stated_items(m, rule->fact, rule_run(rule, m))
                     : rule->scale == SCALE_NONE  ? 1
                     : rule->scale == SCALE_GPUS  ? (double)of->gpus
                     : rule->scale == SCALE_NODES ? (double)of->nodes
                     : is_known                   ? (double)of->gpus * (double)of->batch_per_gpu
                                                  : 0;
    if (!(operand > 0)) {
        return is_fact ? err_set(err, ERR_PARSE, "rule %.*s: the log does not state one %.*s",
                                 STR_ARG(rule->id), STR_ARG(rule->fact))
                       : err_set(err, ERR_PARSE, "rule %.*s has scale %s and needs to know the %s",
                                 STR_ARG(rule->id), SCALE_NAMES[rule->scale], NEEDS[rule->scale]);
    }
    ret->operand = operand;
    ret->value = is_over ? operand / ret->value : operand * ret->value;
    return 0;
}

struct str rule_unit(const struct rule *rule, struct str series_unit)
{
    bool is_timed = rule->scale == SCALE_GLOBAL_BATCH_OVER || rule->scale == SCALE_GLOBAL_BATCH ||
                    rule->statistic == STAT_TIMESTAMPS;
    return is_timed                          ? STR_LIT("samples/s")
           : rule_is_by_fact(rule)           ? rule->unit
           : rule->statistic == STAT_ELAPSED ? (rule->unit.len ? rule->unit : STR_LIT("s"))
                                             : series_unit;
}

static int by_engine(const struct rule *rule, const struct measurement *m,
                     struct rule_value *ret_value, struct err *err)
{
    const struct series *series = measurement_series(m, rule->series);
    struct figure figure = series ? engine_figure(series) : (struct figure){0};
    if (!figure.has_value) {
        return err_set(err, ERR_PARSE, "no number follows from series %.*s", STR_ARG(rule->series));
    }
    *ret_value = (struct rule_value){.value = figure.value,
                                     .statistic = figure.value,
                                     .n_used = figure.n_used,
                                     .n_window = series->n};
    return 0;
}

int rule_apply(const struct rule *rule, const struct measurement *m, const struct rule_case *of,
               struct rule_value *ret_value, struct err *err)
{
    if (rule->statistic == STAT_ENGINE) {
        return by_engine(rule, m, ret_value, err);
    }
    CLEANUP(picked) struct picked picked = {0};
    struct rule_value value = {0};
    if (pick(rule, m, of, &picked, err) < 0 ||
        apply_statistic(rule, of, &picked, &value, err) < 0) {
        return -1;
    }
    value.statistic = value.value;
    if (apply_scale(rule, m, of, &value, err) < 0) {
        return -1;
    }
    if (!isfinite(value.value)) {
        return err_set(err, ERR_PARSE, "rule %.*s gives no finite number", STR_ARG(rule->id));
    }
    *ret_value = value;
    return 0;
}

static int compare_values(const void *a, const void *b)
{
    const struct sample *x = *(const struct sample *const *)a;
    const struct sample *y = *(const struct sample *const *)b;
    return x->value != y->value ? (x->value > y->value) - (x->value < y->value) : (x > y) - (x < y);
}

/* Notes what the statistic does with the samples of the window. */
static void note_statistic(const struct rule *rule, struct picked *picked)
{
    size_t n = picked->n;
    bool is_trimmed = rule->statistic == STAT_TRIMMED_MEAN || rule->statistic == STAT_OLYMPIC_MEAN;
    bool has_first = rule->statistic == STAT_TIMESTAMPS || rule->statistic == STAT_ELAPSED ||
                     rule->statistic == STAT_FIRST;
    bool has_last = rule->statistic == STAT_TIMESTAMPS || rule->statistic == STAT_ELAPSED ||
                    (rule->statistic == STAT_LAST && rule->window.last <= 1);
    size_t each = is_trimmed ? trimmed_each(rule, n) : 0;
    size_t last = n - 1;
    if (is_trimmed) {
        qsort(picked->items, n, sizeof(picked->items[0]), compare_values);
    }
    while (rule->statistic == STAT_TIMESTAMPS &&
           picked->items[last]->rank != picked->items[0]->rank) {
        last--;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (idx < each || idx + each >= n) {
            picked_note(picked, picked->items[idx], USE_TRIMMED);
        } else if ((has_first || has_last) && !(has_first && idx == 0) &&
                   !(has_last && idx == last)) {
            picked_note(picked, picked->items[idx], USE_BETWEEN);
        }
    }
}

int rule_uses(const struct rule *rule, const struct measurement *m, const struct rule_case *of,
              enum sample_use *ret_uses, struct err *err)
{
    CLEANUP(picked) struct picked picked = {.uses = ret_uses};
    if (pick(rule, m, of, &picked, err) < 0) {
        return -1;
    }
    note_statistic(rule, &picked);
    return 0;
}

int rule_combine(enum repeats how, const double *values, size_t n, double *ret_value,
                 struct err *err)
{
    ASSERT(n > 0);
    if (how == REPEATS_SINGLE && n > 1) {
        return err_set(err, ERR_PARSE, "the rule is for one log, and there are %zu", n);
    }
    if (how == REPEATS_OLYMPIC && n < 3) {
        return err_set(err, ERR_PARSE, "an olympic mean needs 3 repeats, and there are %zu", n);
    }
    if (how == REPEATS_SINGLE || how == REPEATS_MEAN) {
        *ret_value = stats_mean(values, n);
        return 0;
    }
    CLEANUP(free) double *sorted = xcalloc(n, sizeof(*sorted));
    memcpy(sorted, values, n * sizeof(*sorted));
    stats_sort(sorted, n);
    if (how == REPEATS_OLYMPIC && !isfinite(sorted[n - 2])) {
        return err_set(err, ERR_PARSE,
                       "more than one of %zu repeats did not succeed, and one can be dropped", n);
    }
    *ret_value = how == REPEATS_MEDIAN ? stats_sorted_median(sorted, n)
                                       : stats_sorted_trimmed_mean(sorted, n, 1);
    return 0;
}

double rule_round(enum rounding rounding, double value, int decimals)
{
    double power = pow(10.0, decimals);
    double scaled = value * power;
    double nearest = round(scaled);
    /* 6.13 x 100 is 612.9999...: a value this near to a whole number is that number. */
    bool is_whole = fabs(scaled - nearest) < 1e-9 * fmax(1.0, fabs(scaled));
    return (rounding == ROUND_NEAREST || is_whole ? nearest : trunc(scaled)) / power;
}
