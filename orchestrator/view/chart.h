/* SPDX-License-Identifier: Apache-2.0 */
/* Small SVG pictures that stand inside a page and take its colours (classes c0 .. c5 and the variables of page_css.c). Each
   has a title and a description for those who cannot see it. Pure; equal data, equal bytes. */
#ifndef VIEW_CHART_H
#define VIEW_CHART_H

#include "view/html.h"

#define CHART_COLORS 6

struct chart_point {
    double gpus;
    double published;  /* NAN: none */
    double recomputed; /* NAN: none */
};

struct chart_line {
    struct str label;
    size_t color; /* below CHART_COLORS; also chooses the marker */
    struct chart_point *points;
    size_t n;
};

struct chart {
    struct str title;
    struct str unit;
    const char *id; /* unique on the page */
    struct chart_line *lines;
    size_t n;
};

/* Throughput of one GPU over the number of GPUs (logarithmic): ideal scaling is a level line, dotted. */
void chart_scaling(struct strbuf *out, const struct chart *chart);

/* The marker of a line by itself, for legends. is_hollow: the recomputed one. */
void chart_marker(struct strbuf *out, double x, double y, size_t color, bool is_hollow);

struct spark {
    struct str title;
    const double *values;
    const bool *is_used; /* in the rule's window; NULL: all */
    size_t n;
    double level; /* the number the rule gives, in the series' unit; NAN: none */
    bool is_dots; /* several ranks: points, not a line */
};

/* One series over its samples. What the rule leaves out is shaded. The range covers the used samples, with a margin;
   others outside are drawn at the edge. ret_low and ret_high are the ends of the range. */
void chart_spark(struct strbuf *out, const struct spark *spark, double *ret_low, double *ret_high);

/* One row of a dumbbell chart: two ratios on a common logarithmic scale, with a line at 1. */
void chart_ratio(struct strbuf *out, double published, double like, double low, double high);

/* A rounded step (1, 2 or 5 times a power of ten) of at least `value`. value > 0. */
double chart_step(double value);

#endif
