/* SPDX-License-Identifier: Apache-2.0 */
/* The page of many runs: each case over time. */
#include "base/base.h"

#include "view/page_history.h"
#include "view/page_parts.h"

#include <math.h>

/* Runs of one case that may stand in one curve. */
static bool is_alike(const struct history_point *a, const struct history_point *b)
{
    return str_eq(a->case_id, b->case_id) && str_eq(a->report, b->report) &&
           str_eq(a->unit, b->unit) && strcmp(a->kind, b->kind) == 0;
}

static bool is_first(const struct history_point *points, size_t idx)
{
    for (size_t before = 0; before < idx; before++) {
        if (is_alike(&points[before], &points[idx])) {
            return false;
        }
    }
    return true;
}

static void add_chart(struct page *page, const struct history_point *points, size_t n, size_t first)
{
    double *values = arena_array(&page->arena, double, n);
    double ends[2]; /* of what is drawn, which is a little more than what was measured */
    double low = INFINITY;
    double high = -INFINITY;
    struct spark spark = {.values = values, .level = (double)NAN};
    spark.title = text_of(page, "%.*s over time", STR_ARG(points[first].case_id));
    for (size_t idx = first; idx < n; idx++) {
        if (is_alike(&points[first], &points[idx]) && isfinite(points[idx].value)) {
            values[spark.n++] = points[idx].value;
            low = fmin(low, points[idx].value);
            high = fmax(high, points[idx].value);
        }
    }
    if (spark.n < 2) {
        return; /* one number is no curve: the table has it */
    }
    strbuf_add_z(page->out, "<figure class=\"history\">");
    chart_spark(page->out, &spark, &ends[0], &ends[1]);
    HTML(page->out, "<figcaption>{} runs in order, between {} and {} {}</figcaption></figure>\n",
         count_text(page, spark.n), text_of(page, "%.4g", low), text_of(page, "%.4g", high),
         points[first].unit);
}

static void add_case(struct page *page, const struct history_point *points, size_t n, size_t first)
{
    static const struct page_column COLUMNS[] = {{"Run", NULL}, {"Value", "n"}, {"Verdict", NULL}};
    const struct history_point *head = &points[first];
    page_section(page, arena_printf(&page->arena, "case-%zu", first + 1), head->case_id);
    HTML(page->out, "<p class=\"meta\">Report {}, profile {}.</p>\n", head->report,
         str_of(head->kind));
    add_chart(page, points, n, first);
    page_table(page,
               text_of(page, "Each finished run%s%.*s", head->unit.len ? ", in " : "",
                       STR_ARG(head->unit)),
               COLUMNS, ARRAY_LEN(COLUMNS));
    for (size_t idx = first; idx < n; idx++) {
        const struct history_point *point = &points[idx];
        if (is_alike(head, point)) {
            page_row(page, "run", STR_EMPTY);
            page_cell(page, point->name.len ? point->name : point->run);
            page_note(page, point->name.len ? point->run : STR_EMPTY);
            page_note(page, point->time);
            page_cell(page, isfinite(point->value) ? number_text(page, point->value)
                                                   : STR_LIT("\xe2\x80\x93"));
            page_cell(page, point->verdict);
        }
    }
    page_table_end(page);
    page_section_end(page);
}

void page_history(struct strbuf *out, const struct history_point *points, size_t n)
{
    struct page page = {.out = out};
    size_t n_cases = 0;
    for (size_t idx = 0; idx < n; idx++) {
        n_cases += is_first(points, idx);
    }
    page_begin(&page, STR_LIT("Runs over time"));
    HTML(out,
         "<p class=\"headline\">{} number{} of {} case{} from finished runs on this machine, "
         "oldest first.</p></header>\n<main id=\"main\">\n",
         count_text(&page, n), n == 1 ? STR_EMPTY : STR_LIT("s"), count_text(&page, n_cases),
         n_cases == 1 ? STR_EMPTY : STR_LIT("s"));
    for (size_t idx = 0; idx < n; idx++) {
        if (is_first(points, idx)) {
            add_case(&page, points, n, idx);
        }
    }
    page_end(&page);
}
