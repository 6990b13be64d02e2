/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/stats.h"

#include "base/arena.h"

#include <math.h>

double stats_sum(const double *values, size_t n)
{
    double sum = 0;
    double lost = 0;
    for (size_t idx = 0; idx < n; idx++) {
        double next = sum + values[idx];
        lost += fabs(sum) >= fabs(values[idx]) ? (sum - next) + values[idx]
                                               : (values[idx] - next) + sum;
        sum = next;
    }
    return sum + lost;
}

double stats_mean(const double *values, size_t n)
{
    ASSERT(n > 0);
    return stats_sum(values, n) / (double)n;
}

double stats_harmonic_mean(const double *values, size_t n)
{
    double sum = 0;
    ASSERT(n > 0);
    for (size_t idx = 0; idx < n; idx++) {
        sum += 1.0 / values[idx];
    }
    return (double)n / sum;
}

static int compare_f64(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *values, size_t n)
{
    if (n > 1) {
        qsort(values, n, sizeof(*values), compare_f64);
    }
}

double stats_sorted_median(const double *sorted, size_t n)
{
    ASSERT(n > 0);
    return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

double stats_sorted_trimmed_mean(const double *sorted, size_t n, size_t n_each)
{
    ASSERT(n_each < n - n_each);
    return stats_mean(sorted + n_each, n - 2 * n_each);
}

double stats_std(const double *values, size_t n)
{
    double mean = stats_mean(values, n);
    double sum = 0;
    for (size_t idx = 0; idx < n; idx++) {
        sum += (values[idx] - mean) * (values[idx] - mean);
    }
    return n > 1 ? sqrt(sum / (double)(n - 1)) : 0;
}

/* Two-sided 95 % points of Student's t for 1 to 30 degrees of freedom; beyond, 1.96 + 2.4 / df is within 0.001.
   Source: NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2, column 0.975 (read 2026-11). */
static const double T_975[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306,
                               2.262,  2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120,
                               2.110,  2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064,
                               2.060,  2.056, 2.052, 2.048, 2.045, 2.042};

double stats_t975(double df)
{
    ASSERT(df >= 1);
    size_t n_known = ARRAY_LEN(T_975);
    size_t whole = df < (double)(n_known + 1) ? (size_t)df : n_known + 1;
    return whole <= n_known ? T_975[whole - 1] : 1.96 + 2.4 / floor(df);
}

double stats_half95(double std, size_t n)
{
    return n < 2 ? (double)NAN : stats_t975((double)(n - 1)) * (std / sqrt((double)n));
}

double stats_ci95(const double *values, size_t n)
{
    ASSERT(n > 0);
    return stats_half95(stats_std(values, n), n);
}

bool stats_change_ci95(const struct stats_sample *a, const struct stats_sample *b, double *ret_half)
{
    if (a->n < 2 || b->n < 2) {
        return false;
    }
    /* Relative variances of the two means; the variance of their ratio r is r^2 times the sum. */
    double u = a->std / a->mean * (a->std / a->mean) / (double)a->n;
    double v = b->std / b->mean * (b->std / b->mean) / (double)b->n;
    double bottom = u * u / (double)(a->n - 1) + v * v / (double)(b->n - 1);
    *ret_half =
        bottom > 0 ? stats_t975((u + v) * (u + v) / bottom) * b->mean / a->mean * sqrt(u + v) : 0;
    return true;
}

bool stats_batch_means(const double *values, size_t n, double ret_means[STATS_BATCHES])
{
    size_t length = n / STATS_BATCHES;
    if (length < 2) {
        return false;
    }
    for (size_t idx = 0; idx < STATS_BATCHES; idx++) {
        ret_means[idx] = stats_mean(&values[n % STATS_BATCHES + idx * length], length);
    }
    return true;
}

#define OUTLIER_Z       3.5
#define OUTLIER_REL_MIN 0.01
#define MAD_TO_STD      0.6745 /* 0.75 quantile of the normal distribution */

bool stats_is_outlier(const double *values, size_t n, size_t idx)
{
    CLEANUP(free) double *sorted = xcalloc(n, sizeof(*sorted));
    if (n < 3) {
        return false;
    }
    memcpy(sorted, values, n * sizeof(*sorted));
    stats_sort(sorted, n);
    double median = stats_sorted_median(sorted, n);
    for (size_t at = 0; at < n; at++) {
        sorted[at] = fabs(values[at] - median);
    }
    stats_sort(sorted, n);
    double mad = stats_sorted_median(sorted, n);
    double off = fabs(values[idx] - median);
    return off >= OUTLIER_REL_MIN * fabs(median) && MAD_TO_STD * off > OUTLIER_Z * mad;
}
