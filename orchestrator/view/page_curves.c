/* SPDX-License-Identifier: Apache-2.0 */
/* Scaling curves and step series. */
#include "base/base.h"

#include "view/page_parts.h"

#include <math.h>

#define SHOWN_MIN 3 /* samples that make a curve */

/* The cells of a report that charts show, and the rank of each one's batch. */
struct scaling {
    const struct report_audit *audit;
    size_t *ranks;
    bool *is_shown;
};

static bool is_charted(const struct cell_audit *ca)
{
    return ca->cell->metric == METRIC_THROUGHPUT && ca->of_case->gpus > 0;
}

static bool same_chart(const struct scaling *s, size_t a, size_t b)
{
    const struct report_case *x = s->audit->cells[a].of_case;
    const struct report_case *y = s->audit->cells[b].of_case;
    return is_charted(&s->audit->cells[b]) && s->ranks[a] == s->ranks[b] &&
           str_eq(x->model, y->model) && str_eq(x->precision, y->precision);
}

static struct chart_line *find_line(struct page *page, struct chart *chart, size_t n_max,
                                    const struct report_case *c)
{
    struct str label = text_of(page, "%.*s%s%.*s", STR_ARG(c->stack->label),
                               c->variant.len ? ", " : "", STR_ARG(c->variant));
    size_t at = 0;
    while (at < chart->n && !str_eq(chart->lines[at].label, label)) {
        at++;
    }
    if (at == chart->n) {
        chart->lines[chart->n++] = (struct chart_line){
            .label = label, .points = arena_array(&page->arena, struct chart_point, n_max)};
    }
    return &chart->lines[at];
}

/* Points stay sorted by GPUs. */
static void add_chart_point(struct page *page, struct chart_line *line, const struct cell_audit *ca)
{
    size_t at = line->n++;
    for (; at > 0 && line->points[at - 1].gpus > (double)ca->of_case->gpus; at--) {
        line->points[at] = line->points[at - 1];
    }
    line->points[at] =
        (struct chart_point){(double)ca->of_case->gpus, ca->cell->published, ca->recomputed,
                             ca->cell->printed, cell_number_words(&page->arena, ca)};
}

/* Markers of the lines; and throughput per GPU at the most GPUs, as a share of that at the fewest. */
static void add_legend(struct page *page, const struct chart *chart)
{
    const char *before = "As published: ";
    strbuf_add_z(page->out, "<ul class=\"legend\">");
    for (size_t idx = 0; idx < chart->n; idx++) {
        strbuf_add_z(page->out, "<li><svg viewBox=\"0 0 18 18\" aria-hidden=\"true\">");
        chart_marker(page->out, 9, 9, idx, false);
        HTML(page->out, "</svg> {}</li>", chart->lines[idx].label);
    }
    strbuf_add_z(page->out, "</ul><figcaption><small>");
    for (size_t idx = 0; idx < chart->n; idx++) {
        const struct chart_line *line = &chart->lines[idx];
        const struct chart_point *first = &line->points[0];
        const struct chart_point *last = &line->points[line->n - 1];
        double share = last->published / last->gpus / (first->published / first->gpus);
        if (line->n > 1 && isfinite(share)) {
            HTML(page->out, "{}{} {} % of ideal at {} GPUs", str_of(before), line->label,
                 fixed_text(page, 100 * share, 0), number_text(page, last->gpus));
            before = "; ";
        }
    }
    strbuf_add_z(page->out, "</small></figcaption>");
}

/* The chart of this cell and of those that stand in one with it; false: all are of one number of GPUs, and nothing scales. */
static bool find_chart(struct page *page, struct scaling *s, size_t first, struct chart *ret_chart)
{
    const struct report_audit *audit = s->audit;
    const struct report_case *c = audit->cells[first].of_case;
    struct chart chart = {.lines = arena_array(&page->arena, struct chart_line, audit->n_cells)};
    bool scales = false;
    for (size_t idx = first; idx < audit->n_cells; idx++) {
        const struct cell_audit *ca = &audit->cells[idx];
        if (same_chart(s, first, idx)) {
            add_chart_point(page, find_line(page, &chart, audit->n_cells, ca->of_case), ca);
            s->is_shown[idx] = true;
            scales = scales || ca->of_case->gpus != c->gpus;
        }
    }
    chart.id = arena_printf(&page->arena, "chart-%zu", page->n_charts + 1);
    chart.unit = audit->cells[first].cell->unit;
    chart.title = text_of(page, "%.*s, %.*s%s", STR_ARG(c->model), STR_ARG(c->precision),
                          s->ranks[first] ? ", larger batch" : "");
    *ret_chart = chart;
    return scales;
}

void add_scaling(struct page *page, const struct report_audit *audit)
{
    struct scaling s = {audit, arena_array(&page->arena, size_t, audit->n_cells),
                        arena_array(&page->arena, bool, audit->n_cells)};
    bool has_any = false;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        s.ranks[idx] =
            is_charted(&audit->cells[idx]) ? audit_batch_rank(audit, &audit->cells[idx]) : 0;
    }
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        struct chart chart;
        if (s.is_shown[idx] || !is_charted(&audit->cells[idx]) ||
            !find_chart(page, &s, idx, &chart)) {
            continue;
        }
        if (!has_any) {
            page_section(page, "scaling", STR_LIT("Scaling"));
            strbuf_add_z(page->out,
                         "<p>Throughput per GPU over the number of GPUs: ideal scaling is level "
                         "(dotted). Filled: as published. Ring: computed from the log; where they "
                         "differ, the number does not follow.</p>\n<div class=\"grid2\">\n");
        }
        has_any = true;
        page->n_charts++;
        HTML(page->out,
             "<figure><figcaption><b>{}</b> <span class=\"soft\">{} per GPU</span></figcaption>\n",
             chart.title, chart.unit);
        chart_scaling(page->out, &chart);
        add_legend(page, &chart);
        strbuf_add_z(page->out, "</figure>\n");
    }
    if (has_any) {
        strbuf_add_z(page->out, "</div>");
        page_section_end(page);
    }
}

/* What the rule uses of its own series, and the number that it gives before it is scaled. */
static void take_window(struct page *page, const struct spark_of *of, const struct series *series,
                        struct spark *spark)
{
    struct rule plain = *of->rule;
    struct rule_value value;
    struct err err = {0};
    enum sample_use *uses = arena_array(&page->arena, enum sample_use, series->n);
    plain.scale = SCALE_NONE;
    if (rule_uses(of->rule, of->m, &of->rule_case, uses, &err) == 0) {
        bool *is_used = arena_array(&page->arena, bool, series->n);
        for (size_t idx = 0; idx < series->n; idx++) {
            is_used[idx] = use_is_in_window(uses[idx]);
        }
        spark->is_used = is_used;
    }
    err = (struct err){0};
    if (series->quantity != QTY_CLOCK &&
        rule_apply(&plain, of->m, &of->rule_case, &value, &err) == 0) {
        spark->level = value.value;
    }
}

/* The rule's own series; the log's primary series where the rule takes one number the tool printed. Seconds between one line and the next,
   where the series only says when a step was done. NULL: there is no curve. */
static const struct series *find_spark(struct page *page, const struct spark_of *of,
                                       struct spark *spark)
{
    const struct series *own = of->rule ? measurement_series(of->m, of->rule->series) : NULL;
    bool has_own = own && own->n > 1 && own->quantity != QTY_SUMMARY;
    const struct series *series = has_own ? own : measurement_primary(of->m);
    if (!series || series->n < SHOWN_MIN || series->quantity == QTY_SUMMARY) {
        return NULL;
    }
    double *values = arena_array(&page->arena, double, series->n);
    *spark = (struct spark){.values = values, .n = series->n, .level = (double)NAN};
    for (size_t idx = 0; idx < series->n; idx++) {
        const struct sample *at = &series->samples[idx];
        values[idx] = series->quantity != QTY_CLOCK ? at->value
                      : idx                         ? at->time_s - at[-1].time_s
                                                    : (double)NAN;
        spark->is_dots = spark->is_dots || at->rank != series->samples[0].rank;
    }
    if (has_own) {
        take_window(page, of, series, spark);
    }
    return series;
}

static struct str scale_text(struct page *page, double value)
{
    return text_of(page, fabs(value) >= 1000 ? "%.0f" : "%.4g", value);
}

void add_spark_figure(struct page *page, const struct spark_of *of)
{
    struct spark spark;
    const struct series *series = find_spark(page, of, &spark);
    size_t n_used = 0;
    double low, high;
    if (!series) {
        return;
    }
    for (size_t idx = 0; idx < spark.n; idx++) {
        n_used += !spark.is_used || spark.is_used[idx];
    }
    spark.title = text_of(page, "%.*s of %.*s over %zu samples, %zu of them used",
                          STR_ARG(series->name), STR_ARG(of->name), spark.n, n_used);
    HTML(page->out, "<figure class=\"step-series\"><figcaption><b>{}</b>{}</figcaption>\n",
         of->name, of->note);
    chart_spark(page->out, &spark, &low, &high);
    HTML(page->out,
         "<figcaption><small><code>{}</code> in {}, {} to {}; {} of {} samples used</small>"
         "</figcaption></figure>\n",
         series->name, series->quantity == QTY_CLOCK ? STR_LIT("s between lines") : series->unit,
         scale_text(page, low), scale_text(page, high), count_text(page, n_used),
         count_text(page, spark.n));
}

void series_begin(struct page *page, const char *whose)
{
    page_section(page, "series", STR_LIT("Step series"));
    HTML(page->out,
         "<p>{} samples in order. <span class=\"key shade\"></span> left out by the rule, "
         "<span class=\"key dash\"></span> the number the rule gives. The scale is that of the "
         "samples used; values beyond it are drawn at the edge.</p>\n",
         str_of(whose));
}

static void add_cell_sparks(struct page *page, const struct cell_audit *ca)
{
    for (size_t log = 0; log < ca->n_logs; log++) {
        struct spark_of of = {.rule = ca->by,
                              .rule_case = rule_case_of(ca->of_case),
                              .m = cell_measurement(ca, log),
                              .name = case_text(page, ca->of_case),
                              .note = ca->n_logs > 1
                                          ? text_of(page, ", log %zu of %zu", log + 1, ca->n_logs)
                                          : STR_EMPTY};
        if (of.m) {
            add_spark_figure(page, &of);
        }
    }
}

static bool has_series(const struct cell_audit *ca)
{
    bool has_any = false;
    for (size_t log = 0; log < ca->n_logs; log++) {
        has_any = has_any || cell_measurement(ca, log);
    }
    return has_any;
}

/* Those of one model and precision; `of` is the first of them that has some. */
static bool in_group(const struct cell_audit *ca, const struct cell_audit *of)
{
    return has_series(ca) && str_eq(ca->of_case->model, of->of_case->model) &&
           str_eq(ca->of_case->precision, of->of_case->precision);
}

void add_series(struct page *page, const struct report_audit *audit)
{
    bool has_any = false;
    series_begin(page, "Each log's");
    for (size_t first = 0; first < audit->n_cells; first++) {
        const struct cell_audit *head = &audit->cells[first];
        bool is_first = has_series(head);
        for (size_t before = 0; before < first && is_first; before++) {
            is_first = !in_group(&audit->cells[before], head);
        }
        if (!is_first) {
            continue;
        }
        HTML(page->out, "<details{}><summary>{}, {}</summary>\n<div class=\"grid3\">\n",
             has_any ? STR_EMPTY : STR_LIT(" open"), head->of_case->model,
             head->of_case->precision);
        has_any = true;
        for (size_t idx = first; idx < audit->n_cells; idx++) {
            if (in_group(&audit->cells[idx], head)) {
                add_cell_sparks(page, &audit->cells[idx]);
            }
        }
        strbuf_add_z(page->out, "</div></details>\n");
    }
    page_soft(page, has_any ? STR_EMPTY : STR_LIT("There is no log of this report."));
    page_section_end(page);
}
