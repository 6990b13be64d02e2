/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "engine/chart.h"

#include <math.h>

/* The picture's own units; the page scales it. */
#define WIDTH  440.0
#define HEIGHT 300.0
#define LEFT   58.0
#define RIGHT  14.0
#define TOP    12.0
#define BOTTOM 44.0

#define TICKS_MAX 64

struct axis { /* logarithmic */
    double low, high;
    double from, to; /* in the picture */
};

static double place(const struct axis *axis, double value)
{
    double share = (log(value) - log(axis->low)) / (log(axis->high) - log(axis->low));
    return axis->from + share * (axis->to - axis->from);
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
static bool find_axes(const struct chart *chart, struct axis *x, struct axis *y)
{
    double low = INFINITY;
    double high = 0;
    double gpus_low = INFINITY;
    double gpus_high = 0;
    for (size_t line = 0; line < chart->n; line++) {
        for (size_t idx = 0; idx < chart->lines[line].n; idx++) {
            const struct chart_point *p = &chart->lines[line].points[idx];
            widen(p->published, &low, &high);
            widen(p->recomputed, &low, &high);
            widen(p->gpus, &gpus_low, &gpus_high);
        }
    }
    if (high <= 0) {
        return false;
    }
    *x = (struct axis){gpus_low / 1.35, gpus_high * 1.35, LEFT, WIDTH - RIGHT};
    *y = (struct axis){low / 1.5, high * 1.35, HEIGHT - BOTTOM, TOP};
    return true;
}

static void add_y_axis(struct strbuf *out, const struct axis *y)
{
    static const double LEADS[] = {1, 2, 5};
    size_t n_ticks = 0;
    for (double power = pow(10.0, floor(log10(y->low))); power <= y->high && n_ticks < TICKS_MAX;
         power *= 10) {
        for (size_t idx = 0; idx < ARRAY_LEN(LEADS); idx++) {
            double value = LEADS[idx] * power;
            if (value < y->low || value > y->high) {
                continue;
            }
            n_ticks++;
            strbuf_printf(
                out,
                "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>",
                LEFT, WIDTH - RIGHT, place(y, value), place(y, value), LEFT - 8,
                place(y, value) + 4, value);
        }
    }
}

static void add_x_axis(struct strbuf *out, const struct axis *x)
{
    for (double gpus = 1; gpus <= x->high; gpus *= 2) {
        if (gpus < x->low) {
            continue;
        }
        strbuf_printf(out,
                      "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
                      "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>",
                      place(x, gpus), place(x, gpus), TOP, HEIGHT - BOTTOM, place(x, gpus),
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

/* From the line's first published point on, as many times as there are GPUs more. */
static void add_ideal(struct strbuf *out, const struct chart_line *line, const struct axis *x,
                      const struct axis *y)
{
    double last = line->points[line->n - 1].gpus;
    const struct chart_point *first = &line->points[0];
    if (line->n < 2 || !isfinite(first->published)) {
        return;
    }
    double target = first->published * last / first->gpus;
    double end = last;
    if (target > y->high) { /* leaves the picture at its top */
        end = first->gpus * y->high / first->published;
        target = y->high;
    }
    strbuf_printf(out,
                  "<line class=\"c%zu ideal\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>",
                  line->color, place(x, first->gpus), place(y, first->published), place(x, end),
                  place(y, target));
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
            strbuf_printf(out, "%c%.1f %.1f", is_open ? 'L' : 'M', place(x, p->gpus),
                          place(y, p->published));
            is_open = true;
        }
    }
    strbuf_add_z(out, is_open ? "\"/>" : "M0 0\"/>");
    for (size_t idx = 0; idx < line->n; idx++) {
        const struct chart_point *p = &line->points[idx];
        if (isfinite(p->published)) {
            chart_marker(out, place(x, p->gpus), place(y, p->published), line->color, false);
        }
        if (isfinite(p->recomputed) && p->recomputed > 0) {
            chart_marker(out, place(x, p->gpus), place(y, p->recomputed), line->color, true);
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
    if (!find_axes(chart, &x, &y)) {
        return;
    }
    HTML(
        out,
        "<svg class=\"scaling\" viewBox=\"0 0 440 300\" role=\"img\" aria-labelledby=\"{}-t {}-d\">"
        "<title id=\"{}-t\">{}</title><desc id=\"{}-d\">",
        str_of(chart->id), str_of(chart->id), str_of(chart->id), chart->title, str_of(chart->id));
    add_description(out, chart);
    strbuf_add_z(out, "</desc>");
    add_y_axis(out, &y);
    add_x_axis(out, &x);
    for (size_t line = 0; line < chart->n; line++) {
        add_line(out, &chart->lines[line], &x, &y);
    }
    strbuf_add_z(out, "</svg>");
}
