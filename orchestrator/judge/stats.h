/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of plain arrays. Sums are compensated (Neumaier), so the order of many values does not show in the digits that
   reports print. Every function needs n >= 1 unless it says more. Pure. */
#ifndef JUDGE_STATS_H
#define JUDGE_STATS_H

#include "base/base.h"

double stats_sum(const double *values, size_t n);
double stats_mean(const double *values, size_t n);
double stats_harmonic_mean(const double *values, size_t n); /* of values over 0 */
double stats_weighted_mean(const double *values, const double *weights, size_t n); /* weights > 0 */
double stats_min(const double *values, size_t n);
double stats_max(const double *values, size_t n);

void stats_sort(double *values, size_t n); /* ascending */

/* These take values in ascending order. */
double stats_sorted_median(const double *sorted, size_t n);
double stats_sorted_percentile(const double *sorted, size_t n,
                               double share); /* linear between neighbours */
double stats_sorted_trimmed_mean(const double *sorted, size_t n, size_t n_each); /* 2 n_each < n */

double stats_std(const double *values, size_t n); /* of the sample: n - 1; 0 for n = 1 */
double stats_sem(const double *values, size_t n); /* standard error of the mean */
double stats_cv(const double *values, size_t n);  /* std over mean */
/* Half the width of the 95 % confidence interval of the mean by Student's t; NAN for n = 1. */
double stats_ci95(const double *values, size_t n);

#endif
