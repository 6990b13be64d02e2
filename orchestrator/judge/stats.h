/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of plain arrays. Sums are compensated (Neumaier), so the order of many values does not affect the digits that
   reports print. Every function needs n >= 1 unless stated otherwise. Pure. */
#pragma once

#include "base/base.h"

double stats_sum(const double *values, size_t n);
double stats_mean(const double *values, size_t n);
double stats_harmonic_mean(const double *values, size_t n); /* of values over 0 */

void stats_sort(double *values, size_t n); /* ascending */

/* These take values in ascending order. */
double stats_sorted_median(const double *sorted, size_t n);
double stats_sorted_trimmed_mean(const double *sorted, size_t n, size_t n_each); /* 2 n_each < n */

double stats_std(const double *values, size_t n); /* of the sample: n - 1; 0 for n = 1 */
/* Two-sided 95 % point of Student's t; fractional degrees of freedom are rounded down, so that no interval is too narrow. df >=
   1. */
double stats_t975(double df);
/* Half the width of the 95 % confidence interval of the mean by Student's t; NAN for n < 2. */
double stats_half95(double std, size_t n);
double stats_ci95(const double *values, size_t n);

/* Of repeats: n, their mean and standard deviation. */
struct stats_sample {
    size_t n;
    double mean, std;
};
/* 95 % confidence interval of b / a - 1 for two means, by Welch's t on the delta method: *ret_half is half its width. False if
   either has fewer than two repeats. Means over 0. */
bool stats_change_ci95(const struct stats_sample *a, const struct stats_sample *b,
                       double *ret_half);

/* Means of STATS_BATCHES batches of values that follow each other, of equal length; what does not fill them is left out at the
   beginning. False where a batch would have fewer than two. */
#define STATS_BATCHES 10
bool stats_batch_means(const double *values, size_t n, double ret_means[STATS_BATCHES]);

/* Whether values[idx] is an outlier: its modified z-score is over 3.5, and it is off the median by 1 % or more, which is more
   than the timing noise of two equal runs. False for fewer than three. Source of 3.5: Iglewicz and Hoaglin 1993, as given in
   NIST/SEMATECH e-Handbook 1.3.5.17 (read 2026-11). The 1 % is ours. */
bool stats_is_outlier(const double *values, size_t n, size_t idx);
