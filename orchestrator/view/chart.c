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

double chart_step(double value)
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
    double low = INFINITY;
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
    /* Half the range below, so that a small difference is not drawn as a large one; never below 0. */
    double span = fmax(high - low, high * 0.1);
    *ret_step = chart_step(span * 1.8 / 5);
    *x = (struct axis){gpus_low / 1.35, gpus_high * 1.35, LEFT, WIDTH - RIGHT};
    *y = (struct axis){fmax(0, low - span * 0.5), high + span * 0.3, HEIGHT - BOTTOM, TOP};
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

void chart_marker(struct strbuf *out, double x, double y, size_t color, bool is_hollow)
{
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
static void add_ideal(struct strbuf *out, const struct chart_line *line, const struct axis *x,
                      const struct axis *y)
{
    const struct chart_point *first = &line->points[0];
    double level = place_y(y, first->published / first->gpus);
    if (line->n < 2 || !isfinite(first->published)) {
        return;
    }
    strbuf_printf(out,
                  "<line class=\"c%zu ideal\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
                  line->color, place_x(x, first->gpus), level,
                  place_x(x, line->points[line->n - 1].gpus), level);
}

static void add_line(struct strbuf *out, const struct chart_line *line, const struct axis *x,
                     const struct axis *y)
{
    bool is_open = false;
    add_ideal(out, line, x, y);
    strbuf_printf(out, "<path class=\"c%zu line\" d=\"", line->color);
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
            chart_marker(out, place_x(x, p->gpus), place_y(y, p->published / p->gpus), line->color,
                         false);
        }
        if (isfinite(p->recomputed) && p->recomputed > 0) {
            chart_marker(out, place_x(x, p->gpus), place_y(y, p->recomputed / p->gpus), line->color,
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
            HTML(out, "{} GPUs {} published", textf(&arena, "%g", p->gpus),
                 textf(&arena, "%.6g", p->published));
            if (isfinite(p->recomputed)) {
                HTML(out, ", {} recomputed", textf(&arena, "%.6g", p->recomputed));
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
        add_line(out, &chart->lines[line], &x, &y);
    }
    strbuf_add_z(out, "</svg>");
}
