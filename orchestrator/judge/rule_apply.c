/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/rule.h"
#include "judge/rule_impl.h"
#include "judge/stats.h"

#include <math.h>

#define US_PER_S 1e6

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

/* Derivations 1 and 2: the first sample of all counts for as many steps as the next; the first of another rank for 1. */
static void weigh_in_a_row(const struct picked *picked, double *weights)
{
    for (size_t idx = 0; idx < picked->n; idx++) {
        size_t from = idx ? idx - 1 : 0;
        size_t to = idx ? idx : (picked->n > 1 ? 1 : 0);
        int64_t delta = picked->items[to]->step - picked->items[from]->step;
        weights[idx] = delta > 0 ? (double)delta : 1;
    }
}

/* A sample counts for the steps since the one before it of its rank. The first sample of a rank, or one whose step does not increase,
   has no interval: it counts for as many steps as the next of its rank that has an interval, else the last before it, else (a rank
   with one sample) the first of any rank, else 1. items are sorted by rank. */
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
static void apply_time_weighted(const struct rule_case *of, const struct picked *picked,
                                struct rule_value *ret)
{
    CLEANUP(free) double *weights = xcalloc(picked->n, sizeof(*weights));
    double top = 0;
    double bottom = 0;
    if (of->derivation > 0 && of->derivation < DERIVATION_RANK_INTERVALS) {
        weigh_in_a_row(picked, weights);
    } else {
        picked_sort_by_rank(picked->items, picked->n);
        weigh_by_rank(picked, weights);
    }
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
        apply_time_weighted(of, picked, ret);
        return 0;
    case STAT_MIN:
        ret->value = stats_min(values, n);
        return 0;
    case STAT_MAX:
        ret->value = stats_max(values, n);
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
    case STAT_COUNT:
        break;
    }
    ASSERT(!"statistic");
    return -1;
}

/* Items per step, from a fact that the run states once; 0 if it does not. */
static double stated_items(const struct measurement *m, struct str fact, int32_t run)
{
    struct err ignored = {0};
    double items = 0;
    for (size_t idx = 0; idx < m->n_facts; idx++) {
        if (!str_eq(m->facts[idx].name, fact) || !fact_is_of(&m->facts[idx], run)) {
            continue;
        }
        if (items > 0 || str_to_f64(m->facts[idx].value, &items, &ignored) < 0 || !(items > 0)) {
            return 0;
        }
    }
    return items;
}

/* Sets ret->operand and scales the value by it. */
static int apply_scale(const struct rule *rule, const struct measurement *m,
                       const struct rule_case *of, struct rule_value *ret, struct err *err)
{
    double global_batch = (double)of->gpus * (double)of->batch_per_gpu;
    switch (rule->scale) {
    case SCALE_NONE:
        ret->operand = 1;
        return 0;
    case SCALE_GPUS:
        if (of->gpus <= 0) {
            break;
        }
        ret->operand = (double)of->gpus;
        ret->value *= ret->operand;
        return 0;
    case SCALE_NODES:
        if (of->nodes <= 0) {
            break;
        }
        ret->operand = (double)of->nodes;
        ret->value *= ret->operand;
        return 0;
    case SCALE_GLOBAL_BATCH_OVER:
        if (of->gpus <= 0 || of->batch_per_gpu <= 0) {
            break;
        }
        ret->operand = global_batch;
        ret->value = global_batch / ret->value;
        return 0;
    case SCALE_GLOBAL_BATCH:
        if (of->gpus <= 0 || of->batch_per_gpu <= 0) {
            break;
        }
        ret->operand = global_batch;
        ret->value *= global_batch;
        return 0;
    case SCALE_FACT_OVER:
    case SCALE_FACT:
        ret->operand = stated_items(m, rule->fact, rule_run(rule, m));
        if (!(ret->operand > 0)) {
            return err_set(err, ERR_PARSE, "rule %.*s: the log does not state one %.*s",
                           STR_ARG(rule->id), STR_ARG(rule->fact));
        }
        ret->value =
            rule->scale == SCALE_FACT ? ret->operand * ret->value : ret->operand / ret->value;
        return 0;
    }
    return err_set(err, ERR_PARSE, "rule %.*s has scale %s and needs to know the %s",
                   STR_ARG(rule->id), scale_name(rule->scale),
                   rule->scale == SCALE_NODES  ? "number of nodes"
                   : rule->scale == SCALE_GPUS ? "number of GPUs"
                                               : "batch and the number of GPUs");
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

int rule_apply(const struct rule *rule, const struct measurement *m, const struct rule_case *of,
               struct rule_value *ret_value, struct err *err)
{
    CLEANUP(picked) struct picked picked = {0};
    struct rule_value value = {0};
    if (rule_pick(rule, m, of, &picked, err) < 0 ||
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
    if (rule_pick(rule, m, of, &picked, err) < 0) {
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
