/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/node_bench.h"

#include <math.h>

#include "judge/stats.h"

/* Of a normal distribution: standard deviation over median absolute deviation, and standard error of the median over that of the
   mean. Source: P. J. Rousseeuw, C. Croux, "Alternatives to the Median Absolute Deviation", JASA 88 (1993), section 1. */
#define SIGMA_OF_MAD    1.4826
#define MEDIAN_OVER_SEM 1.2533
#define LOOPS_OF_ONE    20
#define LEAVE_OUT_MAX   64 /* in a larger group a single node does not matter */

size_t bench_values(const struct bench_series *series, double *ret_values)
{
    const struct bench_measure *measure = series->measure;
    size_t n = 0;
    if (measure->kind == BENCH_JITTER) {
        for (size_t at = 0; at < series->n; at += LOOPS_OF_ONE) {
            double sorted[LOOPS_OF_ONE];
            size_t len = series->n - at < LOOPS_OF_ONE ? series->n - at : LOOPS_OF_ONE;
            double median;
            memcpy(sorted, series->ns + at, len * sizeof(*sorted));
            stats_sort(sorted, len);
            median = stats_sorted_median(sorted, len);
            ret_values[n++] =
                measure->scale * (stats_sorted_percentile(sorted, len, 0.95) - median) / median;
        }
        return n;
    }
    for (; n < series->n; n++) {
        ret_values[n] = measure->kind == BENCH_TIME
                            ? measure->scale * series->ns[n] / (double)series->work
                            : measure->scale * (double)series->work / series->ns[n];
    }
    return n;
}

static double *sorted_copy(struct arena *arena, const double *values, size_t n)
{
    double *sorted = arena_array(arena, double, n + 1);
    memcpy(sorted, values, n * sizeof(*sorted));
    stats_sort(sorted, n);
    return sorted;
}

static double mad_of(struct arena *arena, const double *values, size_t n, double median)
{
    double *deviations = arena_array(arena, double, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        deviations[idx] = fabs(values[idx] - median);
    }
    stats_sort(deviations, n);
    return stats_sorted_median(deviations, n);
}

double bench_drift(struct arena *arena, const struct bench_tick *ticks, size_t n,
                   double *ret_spread)
{
    double *slopes = arena_array(arena, double, n *n + 1);
    double median;
    size_t n_slopes = 0;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = a + 1; b < n; b++) {
            double span_ns = (double)(ticks[b].here_ns - ticks[a].here_ns);
            if (span_ns > 0) {
                slopes[n_slopes++] =
                    1e6 * (double)(ticks[b].ahead_ns - ticks[a].ahead_ns) / span_ns;
            }
        }
    }
    *ret_spread = (double)NAN;
    if (n < 3 || n_slopes < 3) {
        return (double)NAN;
    }
    stats_sort(slopes, n_slopes);
    median = stats_sorted_median(slopes, n_slopes);
    *ret_spread = mad_of(arena, slopes, n_slopes, median);
    return median;
}

void bench_figure_sum(struct arena *arena, struct bench_figure *figure)
{
    double *sorted = sorted_copy(arena, figure->values, figure->n);
    size_t n = figure->n;
    ASSERT(n > 0);
    figure->median = stats_sorted_median(sorted, n);
    figure->mad = isnan(figure->spread_given) ? mad_of(arena, sorted, n, figure->median)
                                              : figure->spread_given;
    figure->q1 = stats_sorted_percentile(sorted, n, 0.25);
    figure->q3 = stats_sorted_percentile(sorted, n, 0.75);
    figure->best = figure->measure->is_higher_better ? sorted[n - 1] : sorted[0];
}

double bench_peers_median(struct arena *arena, const struct bench_measure *measure,
                          const double *values, size_t n)
{
    const double *sorted = sorted_copy(arena, values, n);
    ASSERT(n > 0);
    return n % 2 || !measure->is_higher_better ? sorted[(n - 1) / 2] : sorted[n / 2];
}

/* ---- a group ---- */

/* The uncertainty of a figure's median by its repeats. */
static double open_of(const struct bench_figure *figure)
{
    double sigma = SIGMA_OF_MAD * figure->mad;
    return isnan(figure->spread_given) ? sigma * MEDIAN_OVER_SEM / sqrt((double)figure->n) : sigma;
}

/* Rates and times vary by factors: they are compared as logarithms, so that a node at a fiftieth of the rate stands out even among
   noisy ones. */
static bool is_by_factor(const struct bench_measure *measure)
{
    return measure->kind == BENCH_RATE || measure->kind == BENCH_TIME;
}

static double place_of(const struct bench_measure *measure, double value)
{
    return is_by_factor(measure) ? log(value) : value;
}

/* On the scale of place_of. */
static double open_place_of(const struct bench_figure *figure)
{
    return is_by_factor(figure->measure) ? open_of(figure) / figure->median : open_of(figure);
}

struct group_figures { /* what a figure is compared with */
    double median;
    double sigma; /* on the scale of place_of */
};

static bool is_worse(const struct bench_figure *figure, const struct bench_limits *limits,
                     const struct group_figures *group)
{
    const struct bench_measure *measure = figure->measure;
    const struct bench_limit *limit = &limits->of[measure - BENCH_MEASURE];
    double worse =
        measure->is_higher_better ? group->median - figure->median : figure->median - group->median;
    double far = fabs(place_of(measure, figure->median) - place_of(measure, group->median));
    return worse > limit->share * group->median && worse > limit->amount &&
           far > limits->deviations * group->sigma;
}

/* Compared with a fixed bound, without a group. */
static bool is_beyond(const struct bench_figure *figure, const struct bench_limits *limits)
{
    double bound = limits->of[figure->measure - BENCH_MEASURE].bound;
    return bound > 0 && figure->median - limits->deviations * open_of(figure) > bound;
}

/* Of all but one, so that a sick node among four does not widen the spread that it is compared with. */
static double sigma_of_others(struct bench_figure *const *figures, size_t n, size_t but)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    double *places = arena_array(&arena, double, n);
    size_t n_others = 0;
    for (size_t idx = 0; idx < n; idx++) {
        if (idx != but) {
            places[n_others++] = place_of(figures[idx]->measure, figures[idx]->median);
        }
    }
    stats_sort(places, n_others);
    return SIGMA_OF_MAD * mad_of(&arena, places, n_others, stats_sorted_median(places, n_others));
}

static void compare(struct arena *arena, const struct bench_limits *limits,
                    struct bench_figure *const *figures, size_t n)
{
    double *medians = arena_array(arena, double, n);
    double *opens = arena_array(arena, double, n);
    double open, sigma = 0;
    for (size_t idx = 0; idx < n; idx++) {
        medians[idx] = figures[idx]->median;
        opens[idx] = open_place_of(figures[idx]);
    }
    stats_sort(medians, n);
    stats_sort(opens, n);
    open =
        stats_sorted_median(opens, n); /* of the group: a sick node's own noise is not an excuse */
    for (size_t idx = 0; idx < n; idx++) {
        struct bench_figure *figure = figures[idx];
        if (n <= LEAVE_OUT_MAX || idx == 0) {
            sigma = sigma_of_others(figures, n, n <= LEAVE_OUT_MAX ? idx : n);
        }
        struct group_figures group = {stats_sorted_median(medians, n), sigma > open ? sigma : open};
        figure->group_median = group.median;
        figure->group_spread =
            is_by_factor(figure->measure) ? group.median * group.sigma : group.sigma;
        figure->verdict = is_worse(figure, limits, &group) ? BENCH_OUTLIER : BENCH_WITHIN;
    }
}

static void leave_alone(const struct bench_limits *limits, struct bench_figure *const *figures,
                        size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        figures[idx]->verdict = BENCH_NOT_COMPARED;
        figures[idx]->why = limits->of[figures[idx]->measure - BENCH_MEASURE].origin;
    }
}

void bench_compare(struct arena *arena, const struct bench_limits *limits,
                   struct bench_figure *const *figures, size_t n)
{
    struct bench_figure **measured = arena_array(arena, struct bench_figure *, n + 1);
    size_t n_measured = 0;
    for (size_t idx = 0; idx < n; idx++) {
        figures[idx]->group_median = figures[idx]->group_spread = (double)NAN;
        figures[idx]->verdict = BENCH_NOT_MEASURED;
        if (figures[idx]->n) {
            measured[n_measured++] = figures[idx];
        }
    }
    if (n_measured && isnan(limits->of[measured[0]->measure - BENCH_MEASURE].share)) {
        leave_alone(limits, measured, n_measured);
        return;
    }
    if (n_measured >= (size_t)limits->nodes_min) {
        compare(arena, limits, measured, n_measured);
    }
    for (size_t idx = 0; idx < n_measured; idx++) {
        struct bench_figure *figure = measured[idx];
        bool is_bounded = limits->of[figure->measure - BENCH_MEASURE].bound > 0;
        if (is_beyond(figure, limits)) {
            figure->verdict = BENCH_OUTLIER;
        } else if (n_measured < (size_t)limits->nodes_min) {
            figure->verdict = is_bounded ? BENCH_WITHIN : BENCH_NOT_COMPARED;
            figure->why = is_bounded
                              ? STR_EMPTY
                              : str_of(arena_printf(arena,
                                                    "its group has %zu measured; with fewer than "
                                                    "%lld an outlier cannot be told",
                                                    n_measured, (long long)limits->nodes_min));
        }
    }
}

/* ---- words ---- */

const char *bench_verdict_name(enum bench_verdict verdict)
{
    static const char *const NAMES[] = {"within", "outlier", "not_compared", "not_measured"};
    return NAMES[verdict];
}

struct str bench_says(struct arena *arena, const struct bench_figure *figure)
{
    const struct bench_measure *measure = figure->measure;
    if (figure->verdict != BENCH_OUTLIER) {
        return STR_EMPTY;
    }
    if (!(figure->group_median > 0)) {
        return str_of(
            arena_printf(arena, "%s %.4g %s", measure->head, figure->median, measure->unit));
    }
    return str_of(arena_printf(arena, "%s %.0f %% of its group's median (%.4g of %.4g %s)",
                               measure->head, 100 * figure->median / figure->group_median,
                               figure->median, figure->group_median, measure->unit));
}
