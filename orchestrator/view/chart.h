/* SPDX-License-Identifier: Apache-2.0 */
/* Small SVG pictures that stand inside a page and take its colours (classes c0 .. c5 and the variables of page.css). Each
   has a title and a description for those who cannot see it. Pure; equal data, equal bytes. */
#ifndef VIEW_CHART_H
#define VIEW_CHART_H

#include "view/html.h"

struct chart_point {
    double gpus;
    double published;             /* NAN: none */
    double recomputed;            /* NAN: none */
    struct str printed, computed; /* the same as they are spelled elsewhere */
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

#endif
