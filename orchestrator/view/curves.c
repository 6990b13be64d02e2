/* SPDX-License-Identifier: Apache-2.0 */
/* Step series. */
#include "base/base.h"

#include "view/curves.h"

#include <math.h>

#include "view/chart.h"

#define SHOWN_MIN 3 /* samples that make a curve */

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
         scale_text(page, low), scale_text(page, high), text_of(page, "%zu", n_used),
         text_of(page, "%zu", spark.n));
}

void series_begin(struct page *page, const char *whose)
{
    page_heading(page, 3, STR_EMPTY, STR_LIT("Step series"));
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
                              .name = ca->of_case->id,
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
    bool is_result = ca->by && ca->by->success.fact.ptr; /* of several runs */
    for (size_t log = 0; !is_result && log < ca->n_logs; log++) {
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
    for (size_t first = 0; first < audit->n_cells; first++) {
        const struct cell_audit *head = &audit->cells[first];
        bool is_first = has_series(head);
        for (size_t before = 0; before < first && is_first; before++) {
            is_first = !in_group(&audit->cells[before], head);
        }
        if (!is_first) {
            continue;
        }
        if (!has_any) {
            series_begin(page, "Each log's");
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
}
