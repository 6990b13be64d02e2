/* SPDX-License-Identifier: Apache-2.0 */
/* How a series becomes a number where no rule is named, and what in the log speaks against that number. It is the same for
   formats that are known and for those that are proposed: a format says what the columns mean, and nothing about this. Pure. */
#pragma once

#include "log/series.h"

enum figure_by {
    FIGURE_ITEMS_OVER_TIME, /* of rates: each line weighs its time */
    FIGURE_TIME_OVER_STEPS, /* of times: each line weighs its steps */
    FIGURE_LAST,            /* of running means: the last of each rank or epoch */
    FIGURE_STATED,          /* of summaries: as printed, the mean over the ranks that print it */
    FIGURE_CLOCK /* of moments: the time between the first and the last over the steps between */
};

struct figure {
    bool has_value;
    double value;
    enum figure_by by;
    size_t n_used;
    size_t n_skipped;     /* lines of each rank at the beginning: a slow start */
    size_t n_dropped;     /* at the end: a part of an interval */
    double plain, median; /* of the same lines, where they are far from the value; else 0 */
};

/* Of the series' only run. No value if it has no usable sample, or tables of several GPU counts. */
struct figure engine_figure(const struct series *series);
extern const char *const FIGURE_BY_NAMES[FIGURE_CLOCK + 1];

/* Into m->causes and its verdict: that something else in the log contradicts the number. */
void engine_contradict(struct measurement *m, int64_t line, struct str said);
/* What a series of rates or times holds against one number for all of it: two levels, or a clock that contradicts the times. The
   sentences live in the arena. */
void engine_doubt(struct arena *arena, struct measurement *m, const struct series *series);
