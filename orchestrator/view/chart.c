/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/chart.h"

#include <math.h>

#define SPARK_WIDTH  300.0
#define SPARK_HEIGHT 72.0
#define SPARK_BUCKETS                                                                              \
    300 /* more samples than this are drawn as the lowest and the highest of each bucket */
#define DOT_BUCKETS 600

/* The range of the values; what is beyond its ends is drawn at them. */
struct axis {
    double low, high;
};

static double place(const struct axis *axis, double value)
{
    double share = (value - axis->low) / (axis->high - axis->low);
    return SPARK_HEIGHT - 2 - fmin(fmax(share, 0), 1) * (SPARK_HEIGHT - 4);
}

/* Of the samples that are used, with a margin. */
static struct axis spark_axis(const struct spark *s)
{
    double low = isfinite(s->level) ? s->level : (double)INFINITY;
    double high = isfinite(s->level) ? s->level : -(double)INFINITY;
    for (size_t idx = 0; idx < s->n; idx++) {
        if (isfinite(s->values[idx]) && (!s->is_used || s->is_used[idx])) {
            low = fmin(low, s->values[idx]);
            high = fmax(high, s->values[idx]);
        }
    }
    if (!isfinite(low)) {
        low = 0;
        high = 1;
    }
    /* A flat series stays a flat line in the middle: the range is at least 2 % of the value. */
    double margin = fmax((high - low) * 0.35, fabs(high) * 0.01);
    margin = margin > 0 ? margin : 1;
    return (struct axis){low >= 0 ? fmax(0, low - margin) : low - margin, high + margin};
}

static double spark_x(const struct spark *s, size_t idx)
{
    return s->n < 2 ? SPARK_WIDTH / 2 : SPARK_WIDTH * (double)idx / (double)(s->n - 1);
}

static void add_shade(struct strbuf *out, const struct spark *s)
{
    double half = s->n < 2 ? SPARK_WIDTH / 2 : SPARK_WIDTH / (double)(s->n - 1) / 2;
    for (size_t from = 0, to; s->is_used && from < s->n; from = to) {
        for (to = from; to < s->n && s->is_used[to] == s->is_used[from]; to++) {
        }
        if (!s->is_used[from]) {
            double left = fmax(0, spark_x(s, from) - half);
            double right = fmin(SPARK_WIDTH, spark_x(s, to - 1) + half);
            strbuf_printf(out,
                          "<rect class=\"out\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%.0f\"/>",
                          left, right - left, SPARK_HEIGHT);
        }
    }
}

/* Of the samples from `from` up to `to`: where the lowest and the highest are. False where none is finite. */
static bool find_ends(const struct spark *s, size_t from, size_t to, size_t ends[2])
{
    bool is_found = false;
    for (size_t idx = from; idx < to; idx++) {
        if (isfinite(s->values[idx])) {
            ends[0] = !is_found || s->values[idx] < s->values[ends[0]] ? idx : ends[0];
            ends[1] = !is_found || s->values[idx] > s->values[ends[1]] ? idx : ends[1];
            is_found = true;
        }
    }
    return is_found;
}

/* In each bucket the lowest and the highest, in the order in which they come. */
static void add_samples(struct strbuf *out, const struct spark *s, const struct axis *y)
{
    bool is_dots = s->is_dots || s->n == 1;
    size_t n_max = s->is_dots ? DOT_BUCKETS : SPARK_BUCKETS;
    size_t n_buckets = s->n < n_max ? s->n : n_max;
    char move = 'M';
    for (size_t bucket = 0; bucket < n_buckets; bucket++) {
        size_t ends[2] = {0};
        bool has_ends =
            find_ends(s, bucket * s->n / n_buckets, (bucket + 1) * s->n / n_buckets, ends);
        bool is_falling = ends[1] < ends[0];
        for (size_t at = 0; has_ends && at < (ends[0] == ends[1] ? 1u : 2u); at++) {
            size_t idx = ends[at ^ is_falling];
            strbuf_printf(out, is_dots ? "%c%.1f %.1fh0" : "%c%.1f %.1f", move, spark_x(s, idx),
                          place(y, s->values[idx]));
            move = is_dots ? 'M' : 'L';
        }
        move = has_ends ? move : 'M';
    }
}

void chart_spark(struct strbuf *out, const struct spark *spark, double *ret_low, double *ret_high)
{
    struct axis y = spark_axis(spark);
    *ret_low = y.low;
    *ret_high = y.high;
    HTML(out,
         "<svg class=\"spark\" viewBox=\"0 0 300 72\" preserveAspectRatio=\"none\" role=\"img\">"
         "<title>{}</title>",
         spark->title);
    add_shade(out, spark);
    if (isfinite(spark->level)) {
        strbuf_printf(out, "<line class=\"level\" x1=\"0\" x2=\"300\" y1=\"%.1f\" y2=\"%.1f\"/>",
                      place(&y, spark->level), place(&y, spark->level));
    }
    strbuf_printf(out, "<path class=\"%s\" d=\"",
                  spark->is_dots || spark->n == 1 ? "dots" : "series");
    add_samples(out, spark, &y);
    strbuf_add_z(out, "\"/></svg>");
}
