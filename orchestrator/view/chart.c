/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/chart.h"

#include <math.h>

/* The picture's own units; the page scales it. */
#define WIDTH  440.0
#define HEIGHT 300.0
#define LEFT   58.0
#define RIGHT  14.0
#define TOP    12.0
#define BOTTOM 44.0
#define COLORS 6 /* classes c0 .. c5 */

struct axis {
    double low, high;
    double from, to; /* in the picture */
};

/* GPUs: logarithmic. */
static double place_x(const struct axis *axis, double value)
{
    double share = (log(value) - log(axis->low)) / (log(axis->high) - log(axis->low));
    return axis->from + share * (axis->to - axis->from);
}

static double place_y(const struct axis *axis, double value)
{
    return axis->from + (value - axis->low) / (axis->high - axis->low) * (axis->to - axis->from);
}

/* A rounded step (1, 2 or 5 times a power of ten) of at least `value`. value > 0. */
static double step_of(double value)
{
    double power = pow(10.0, floor(log10(value)));
    double lead = value / power;
    return power * (lead <= 1.0 ? 1.0 : lead <= 2.0 ? 2.0 : lead <= 5.0 ? 5.0 : 10.0);
}

static void widen(double value, double *low, double *high)
{
    if (isfinite(value) && value > 0) {
        *low = value < *low ? value : *low;
        *high = value > *high ? value : *high;
    }
}

/* Ranges over all points; false where there is nothing to draw. */
static bool find_axes(const struct chart *chart, struct axis *x, struct axis *y, double *ret_step)
{
    double low = 0; /* an axis that is cut makes a small difference look large */
    double high = 0;
    double gpus_low = INFINITY;
    double gpus_high = 0;
    for (size_t line = 0; line < chart->n; line++) {
        for (size_t idx = 0; idx < chart->lines[line].n; idx++) {
            const struct chart_point *p = &chart->lines[line].points[idx];
            widen(p->published / p->gpus, &low, &high);
            widen(p->recomputed / p->gpus, &low, &high);
            widen(p->gpus, &gpus_low, &gpus_high);
        }
    }
    if (high <= 0) {
        return false;
    }
    *ret_step = step_of(high / 5);
    *x = (struct axis){gpus_low / 1.35, gpus_high * 1.35, LEFT, WIDTH - RIGHT};
    *y = (struct axis){low, high * 1.1, HEIGHT - BOTTOM, TOP};
    return true;
}

static void add_y_axis(struct strbuf *out, const struct axis *y, double step)
{
    for (int64_t tick = (int64_t)ceil(y->low / step); (double)tick * step <= y->high; tick++) {
        double value = (double)tick * step;
        strbuf_printf(out,
                      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>",
                      LEFT, WIDTH - RIGHT, place_y(y, value), place_y(y, value), LEFT - 8,
                      place_y(y, value) + 4, value);
    }
}

static void add_x_axis(struct strbuf *out, const struct axis *x)
{
    for (int power = 0; ldexp(1, power) <= x->high; power++) {
        double gpus = ldexp(1, power);
        if (gpus < x->low) {
            continue;
        }
        strbuf_printf(out,
                      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>",
                      place_x(x, gpus), place_x(x, gpus), TOP, HEIGHT - BOTTOM, place_x(x, gpus),
                      HEIGHT - BOTTOM + 18, gpus);
    }
    strbuf_printf(out,
                  "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">GPUs</text>",
                  (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8);
}

void chart_marker(struct strbuf *out, double x, double y, size_t line, bool is_hollow)
{
    size_t color = line % COLORS;
    double r = is_hollow ? 6.5 : 4.0;
    const char *fill = is_hollow ? "hollow" : "solid";
    switch (color % 4) {
    case 0:
        strbuf_printf(out, "<circle class=\"c%zu %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>", color,
                      fill, x, y, r);
        break;
    case 1:
        strbuf_printf(out,
                      "<rect class=\"c%zu %s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                      "height=\"%.1f\"/>",
                      color, fill, x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
        break;
    case 2:
        strbuf_printf(out, "<path class=\"c%zu %s\" d=\"M%.1f %.1fl%.1f %.1fh%.1fz\"/>", color,
                      fill, x, y - r * 1.15, r * 1.1, r * 1.95, -r * 2.2);
        break;
    default:
        strbuf_printf(
            out, "<path class=\"c%zu %s\" d=\"M%.1f %.1fl%.1f %.1fl%.1f %.1fl%.1f %.1fz\"/>", color,
            fill, x, y - r * 1.25, r * 1.25, r * 1.25, -r * 1.25, r * 1.25, -r * 1.25, -r * 1.25);
    }
}

/* Every GPU as fast as at the line's first published point. */
static void add_ideal(struct strbuf *out, const struct chart_line *line, size_t color,
                      const struct axis *x, const struct axis *y)
{
    const struct chart_point *first = &line->points[0];
    double level = place_y(y, first->published / first->gpus);
    if (line->n < 2 || !isfinite(first->published)) {
        return;
    }
    strbuf_printf(
        out, "<line class=\"c%zu ideal\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", color,
        place_x(x, first->gpus), level, place_x(x, line->points[line->n - 1].gpus), level);
}

static void add_line(struct strbuf *out, const struct chart_line *line, size_t color,
                     const struct axis *x, const struct axis *y)
{
    bool is_open = false;
    add_ideal(out, line, color, x, y);
    strbuf_printf(out, "<path class=\"c%zu line\" d=\"", color);
    for (size_t idx = 0; idx < line->n; idx++) {
        const struct chart_point *p = &line->points[idx];
        if (isfinite(p->published)) {
            strbuf_printf(out, "%c%.1f %.1f", is_open ? 'L' : 'M', place_x(x, p->gpus),
                          place_y(y, p->published / p->gpus));
            is_open = true;
        }
    }
    strbuf_add_z(out, is_open ? "\"/>" : "M0 0\"/>");
    for (size_t idx = 0; idx < line->n; idx++) {
        const struct chart_point *p = &line->points[idx];
        if (isfinite(p->published)) {
            chart_marker(out, place_x(x, p->gpus), place_y(y, p->published / p->gpus), color,
                         false);
        }
        if (isfinite(p->recomputed) && p->recomputed > 0) {
            chart_marker(out, place_x(x, p->gpus), place_y(y, p->recomputed / p->gpus), color,
                         true);
        }
    }
}

static void add_description(struct strbuf *out, const struct chart *chart)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    for (size_t line = 0; line < chart->n; line++) {
        HTML(out, "{}: ", chart->lines[line].label);
        for (size_t idx = 0; idx < chart->lines[line].n; idx++) {
            const struct chart_point *p = &chart->lines[line].points[idx];
            HTML(out, "{} GPUs {} published", str_of(arena_printf(&arena, "%g", p->gpus)),
                 p->printed);
            if (isfinite(p->recomputed)) {
                HTML(out, ", {} recomputed", p->computed);
            }
            strbuf_add_z(out, idx + 1 < chart->lines[line].n ? "; " : ". ");
        }
    }
}

void chart_scaling(struct strbuf *out, const struct chart *chart)
{
    struct axis x;
    struct axis y;
    double step;
    if (!find_axes(chart, &x, &y, &step)) {
        return;
    }
    HTML(
        out,
        "<svg class=\"scaling\" viewBox=\"0 0 440 300\" role=\"img\" aria-labelledby=\"{}-t {}-d\">"
        "<title id=\"{}-t\">{}</title><desc id=\"{}-d\">",
        str_of(chart->id), str_of(chart->id), str_of(chart->id), chart->title, str_of(chart->id));
    add_description(out, chart);
    strbuf_add_z(out, "</desc>");
    add_y_axis(out, &y, step);
    add_x_axis(out, &x);
    for (size_t line = 0; line < chart->n; line++) {
        add_line(out, &chart->lines[line], line % COLORS, &x, &y);
    }
    strbuf_add_z(out, "</svg>");
}

/* ---- one series ---- */

#define SPARK_WIDTH  300.0
#define SPARK_HEIGHT 72.0
#define SPARK_BUCKETS                                                                              \
    300 /* more samples than this are drawn as the lowest and the highest of each bucket */
#define DOT_BUCKETS 600

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
