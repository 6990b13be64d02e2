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
    double from, to; /* in the picture; what is beyond its ends is drawn at them */
    bool is_log;
};

static double place(const struct axis *axis, double value)
{
    double share = axis->is_log ? log(value / axis->low) / log(axis->high / axis->low)
                                : (value - axis->low) / (axis->high - axis->low);
    return axis->from + fmin(fmax(share, 0), 1) * (axis->to - axis->from);
}

/* A rounded step (1, 2 or 5 times a power of ten) of at least `value`. value > 0. */
static double step_of(double value)
{
    double power = pow(10.0, floor(log10(value)));
    double lead = value / power;
    return power * (lead <= 1.0 ? 1.0 : lead <= 2.0 ? 2.0 : lead <= 5.0 ? 5.0 : 10.0);
}

static void add_tick(struct strbuf *out, const struct axis *axis, bool is_x, double value)
{
    double at = place(axis, value);
    strbuf_printf(out,
                  "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                  "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%g</text>",
                  is_x ? at : LEFT, is_x ? at : WIDTH - RIGHT, is_x ? TOP : at,
                  is_x ? HEIGHT - BOTTOM : at, is_x ? at : LEFT - 8,
                  is_x ? HEIGHT - BOTTOM + 18 : at + 4, is_x ? "middle" : "end", value);
}

/* The axes of all points, drawn; false where there is nothing to draw. The upright one begins at zero: an axis that is cut makes a small
   difference look large. That of the GPUs is logarithmic. */
static bool add_axes(struct strbuf *out, const struct chart *chart, struct axis *x, struct axis *y)
{
    double high = 0, gpus_low = INFINITY, gpus_high = 0;
    for (size_t line = 0; line < chart->n; line++) {
        for (size_t idx = 0; idx < chart->lines[line].n; idx++) {
            const struct chart_point *p = &chart->lines[line].points[idx];
            high = isfinite(p->published) ? fmax(high, p->published / p->gpus) : high;
            high = isfinite(p->recomputed) ? fmax(high, p->recomputed / p->gpus) : high;
            gpus_low = fmin(gpus_low, p->gpus);
            gpus_high = fmax(gpus_high, p->gpus);
        }
    }
    *x = (struct axis){gpus_low / 1.35, gpus_high * 1.35, LEFT, WIDTH - RIGHT, true};
    *y = (struct axis){0, high * 1.1, HEIGHT - BOTTOM, TOP, false};
    for (double tick = 0; high > 0 && tick <= y->high; tick += step_of(high / 5)) {
        add_tick(out, y, false, tick);
    }
    for (double gpus = 1; high > 0 && gpus <= x->high; gpus *= 2) {
        if (gpus >= x->low) {
            add_tick(out, x, true, gpus);
        }
    }
    return high > 0;
}

void chart_marker(struct strbuf *out, double x, double y, size_t line, bool is_hollow)
{
    static const char *const SHAPES[] = {"M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
                                         "M-.9-.9h1.8v1.8h-1.8z", "M0-1.15l1.1 1.95h-2.2z",
                                         "M0-1.25l1.25 1.25l-1.25 1.25l-1.25-1.25z"};
    size_t color = line % COLORS;
    strbuf_printf(
        out, "<path class=\"c%zu %s\" d=\"%s\" transform=\"translate(%.1f %.1f) scale(%.1f)\"/>",
        color, is_hollow ? "hollow" : "solid", SHAPES[color % ARRAY_LEN(SHAPES)], x, y,
        is_hollow ? 6.5 : 4.0);
}

/* Every GPU as fast as at the line's first published point. */
static void add_ideal(struct strbuf *out, const struct chart_line *line, size_t color,
                      const struct axis *x, const struct axis *y)
{
    const struct chart_point *first = &line->points[0];
    double level = place(y, first->published / first->gpus);
    if (line->n < 2 || !isfinite(first->published)) {
        return;
    }
    strbuf_printf(
        out, "<line class=\"c%zu ideal\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", color,
        place(x, first->gpus), level, place(x, line->points[line->n - 1].gpus), level);
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
            strbuf_printf(out, "%c%.1f %.1f", is_open ? 'L' : 'M', place(x, p->gpus),
                          place(y, p->published / p->gpus));
            is_open = true;
        }
    }
    strbuf_add_z(out, is_open ? "\"/>" : "M0 0\"/>");
    for (size_t idx = 0; idx < line->n; idx++) {
        const struct chart_point *p = &line->points[idx];
        if (isfinite(p->published)) {
            chart_marker(out, place(x, p->gpus), place(y, p->published / p->gpus), color, false);
        }
        if (isfinite(p->recomputed) && p->recomputed > 0) {
            chart_marker(out, place(x, p->gpus), place(y, p->recomputed / p->gpus), color, true);
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
            HTML(out, "{} GPUs {} published", str_printf(&arena, "%g", p->gpus), p->printed);
            if (isfinite(p->recomputed)) {
                HTML(out, ", {} recomputed", p->computed);
            }
            strbuf_add_z(out, idx + 1 < chart->lines[line].n ? "; " : ". ");
        }
    }
}

void chart_scaling(struct strbuf *out, const struct chart *chart)
{
    CLEANUP(strbuf) struct strbuf axes = STRBUF(HTML_BYTES_MAX);
    struct axis x, y;
    if (!add_axes(&axes, chart, &x, &y)) {
        return;
    }
    HTML(
        out,
        "<svg class=\"scaling\" viewBox=\"0 0 440 300\" role=\"img\" aria-labelledby=\"{}-t {}-d\">"
        "<title id=\"{}-t\">{}</title><desc id=\"{}-d\">",
        str_of(chart->id), str_of(chart->id), str_of(chart->id), chart->title, str_of(chart->id));
    add_description(out, chart);
    HTML(out, "</desc><text class=\"tick\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">GPUs</text>",
         STR_LIT("242"), STR_LIT("292"));
    strbuf_add_str(out, strbuf_str(&axes));
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
    return (struct axis){low >= 0 ? fmax(0, low - margin) : low - margin, high + margin,
                         SPARK_HEIGHT - 2, 2, false};
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

/* In each bucket the lowest and the highest, in the order in which they come. */
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
