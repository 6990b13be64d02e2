/* SPDX-License-Identifier: Apache-2.0 */
/* Small SVG pictures that stand inside a page and take its colours (classes c0 .. c5 and the variables of page.css). Each
   has a title and a description for those who cannot see it. Pure; equal data, equal bytes. */
#ifndef VIEW_CHART_H
#define VIEW_CHART_H

#include "view/html.h"

struct chart_point {
    double gpus;
    double published;  /* NAN: none */
    double recomputed; /* NAN: none */
};

struct chart_line {
    struct str label;
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

/* Throughput of one GPU over the number of GPUs (logarithmic): ideal scaling is a level line, dotted. Lines are told apart by
   their places. */
void chart_scaling(struct strbuf *out, const struct chart *chart);

/* The marker of a line by itself, for legends; `line` chooses colour and shape. is_hollow: the recomputed one. */
void chart_marker(struct strbuf *out, double x, double y, size_t line, bool is_hollow);

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

/* Ratios on a logarithmic scale between two places of a picture. */
struct chart_ratios {
    double low, high, from, to;
};
double chart_ratio_x(const struct chart_ratios *scale, double ratio);
/* A row of a dumbbell chart: two ratios at the height y, either of which may be missing. */
void chart_ratio(struct strbuf *out, const struct chart_ratios *scale, double published,
                 double like, double y);

struct chart_run {
    double ratio; /* of its time to the result; INFINITY: it did not succeed */
    bool is_dropped;
};
/* A strip of dots: 1, the result, is in the middle. */
void chart_runs(struct strbuf *out, const struct chart_run *runs, size_t n);

#endif
