/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/chart.h"

#include <math.h>

#define SPARK_WIDTH  300.0
#define SPARK_HEIGHT 72.0
#define SPARK_BUCKETS                                                                              \
    300 /* more samples than this are drawn as the lowest and the highest of each bucket */
#define DOT_BUCKETS 600

#define RATIO_WIDTH  180.0
#define RATIO_HEIGHT 22.0

static void spark_range(const struct spark *s, double *ret_low, double *ret_high)
{
    double low = INFINITY;
    double high = -INFINITY;
    for (size_t idx = 0; idx < s->n; idx++) {
        if (isfinite(s->values[idx]) && (!s->is_used || s->is_used[idx])) {
            low = fmin(low, s->values[idx]);
            high = fmax(high, s->values[idx]);
        }
    }
    if (isfinite(s->level)) {
        low = fmin(low, s->level);
        high = fmax(high, s->level);
    }
    if (!isfinite(low)) {
        low = 0;
        high = 1;
    }
    /* A flat series stays a flat line in the middle: the range is at least 2 % of the value. */
    double margin = fmax((high - low) * 0.35, fabs(high) * 0.01);
    margin = margin > 0 ? margin : 1;
    *ret_low = low >= 0 ? fmax(0, low - margin) : low - margin;
    *ret_high = high + margin;
}

static double spark_x(const struct spark *s, size_t idx)
{
    return s->n < 2 ? SPARK_WIDTH / 2 : SPARK_WIDTH * (double)idx / (double)(s->n - 1);
}

static double spark_y(double value, double low, double high)
{
    double share = (value - low) / (high - low);
    share = share < 0 ? 0 : share > 1 ? 1 : share;
    return SPARK_HEIGHT - 2 - share * (SPARK_HEIGHT - 4);
}

static void add_shade(struct strbuf *out, const struct spark *s)
{
    double half = s->n < 2 ? SPARK_WIDTH / 2 : SPARK_WIDTH / (double)(s->n - 1) / 2;
    for (size_t from = 0; from < s->n;) {
        size_t to = from;
        while (to < s->n && s->is_used[to] == s->is_used[from]) {
            to++;
        }
        if (!s->is_used[from]) {
            double left = fmax(0, spark_x(s, from) - half);
            double right = fmin(SPARK_WIDTH, spark_x(s, to - 1) + half);
            strbuf_printf(out,
                          "<rect class=\"out\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%.0f\"/>",
                          left, right - left, SPARK_HEIGHT);
        }
        from = to;
    }
}

static void add_point(struct strbuf *out, const struct spark *s, size_t idx, double low,
                      double high, bool *is_open)
{
    double x = spark_x(s, idx);
    double y = spark_y(s->values[idx], low, high);
    if (s->is_dots || s->n == 1) {
        strbuf_printf(out, "M%.1f %.1fh0", x, y);
    } else {
        strbuf_printf(out, "%c%.1f %.1f", *is_open ? 'L' : 'M', x, y);
        *is_open = true;
    }
}

/* In each bucket the lowest and the highest, in the order in which they come. */
static void add_samples(struct strbuf *out, const struct spark *s, double low, double high)
{
    size_t n_buckets = s->is_dots ? DOT_BUCKETS : SPARK_BUCKETS;
    bool is_open = false;
    n_buckets = s->n < n_buckets ? s->n : n_buckets;
    for (size_t bucket = 0; bucket < n_buckets; bucket++) {
        size_t from = bucket * s->n / n_buckets;
        size_t to = (bucket + 1) * s->n / n_buckets;
        size_t low_idx = SIZE_MAX;
        size_t high_idx = SIZE_MAX;
        for (size_t idx = from; idx < to; idx++) {
            if (!isfinite(s->values[idx])) {
                continue;
            }
            low_idx = low_idx == SIZE_MAX || s->values[idx] < s->values[low_idx] ? idx : low_idx;
            high_idx =
                high_idx == SIZE_MAX || s->values[idx] > s->values[high_idx] ? idx : high_idx;
        }
        if (low_idx == SIZE_MAX) {
            is_open = false;
            continue;
        }
        size_t first = low_idx < high_idx ? low_idx : high_idx;
        size_t second = low_idx < high_idx ? high_idx : low_idx;
        add_point(out, s, first, low, high, &is_open);
        if (second != first) {
            add_point(out, s, second, low, high, &is_open);
        }
    }
}

void chart_spark(struct strbuf *out, const struct spark *spark, double *ret_low, double *ret_high)
{
    spark_range(spark, ret_low, ret_high);
    HTML(out,
         "<svg class=\"spark\" viewBox=\"0 0 300 72\" preserveAspectRatio=\"none\" role=\"img\">"
         "<title>{}</title>",
         spark->title);
    if (spark->is_used) {
        add_shade(out, spark);
    }
    if (isfinite(spark->level)) {
        double y = spark_y(spark->level, *ret_low, *ret_high);
        strbuf_printf(out, "<line class=\"level\" x1=\"0\" x2=\"300\" y1=\"%.1f\" y2=\"%.1f\"/>", y,
                      y);
    }
    strbuf_printf(out, "<path class=\"%s\" d=\"",
                  spark->is_dots || spark->n == 1 ? "dots" : "series");
    add_samples(out, spark, *ret_low, *ret_high);
    strbuf_add_z(out, "\"/></svg>");
}

static double ratio_x(double ratio, double low, double high)
{
    double share = (log(ratio) - log(low)) / (log(high) - log(low));
    return 8 + share * (RATIO_WIDTH - 16);
}

void chart_ratio(struct strbuf *out, double published, double like, double low, double high)
{
    bool has_published = isfinite(published) && published > 0;
    bool has_like = isfinite(like) && like > 0;
    double middle = RATIO_HEIGHT / 2;
    strbuf_add_z(out, "<svg class=\"ratio\" viewBox=\"0 0 180 22\" aria-hidden=\"true\">");
    strbuf_printf(out, "<line class=\"one\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" y2=\"%.0f\"/>",
                  ratio_x(1, low, high), ratio_x(1, low, high), RATIO_HEIGHT);
    if (has_published && has_like) {
        strbuf_printf(out, "<line class=\"bar\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\"/>",
                      ratio_x(published, low, high), ratio_x(like, low, high), middle, middle);
    }
    if (has_published) {
        strbuf_printf(out, "<circle class=\"was\" cx=\"%.1f\" cy=\"%.0f\" r=\"5\"/>",
                      ratio_x(published, low, high), middle);
    }
    if (has_like) {
        strbuf_printf(out, "<circle class=\"is\" cx=\"%.1f\" cy=\"%.0f\" r=\"5\"/>",
                      ratio_x(like, low, high), middle);
    }
    strbuf_add_z(out, "</svg>");
}
