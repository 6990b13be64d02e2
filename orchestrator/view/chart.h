/* SPDX-License-Identifier: Apache-2.0 */
/* A small SVG picture that stands inside a page and takes its colours (the variables of page.css). It has a title for those who
   cannot see it. Pure; equal data, equal bytes. */
#pragma once

#include "view/html.h"

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
