/* SPDX-License-Identifier: Apache-2.0 */
/* The page of many runs: each case over time. */
#include "base/base.h"

#include "view/chart.h"
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
    double ends[2] = {0, 0}; /* of what is drawn, which is a little more than what was measured */
    double low = INFINITY;
    double high = -INFINITY;
    struct spark spark = {.values = values, .level = (double)NAN};
    spark.title = textf(&page->arena, "%.*s over time", STR_ARG(points[first].case_id));
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
         textf(&page->arena, "%zu", spark.n), textf(&page->arena, "%.4g", low),
         textf(&page->arena, "%.4g", high), points[first].unit);
}

/* In one column, for phones: the run's name, and its time. */
static void add_run(struct page *page, const struct history_point *point)
{
    char *verdict = arena_strndup(&page->arena, point->verdict.ptr, point->verdict.len);
    for (size_t idx = 0; idx < point->verdict.len; idx++) {
        verdict[idx] = verdict[idx] == '_' ? ' ' : verdict[idx];
    }
    strbuf_add_z(page->out, "<tr class=\"run\"><th scope=\"row\">");
    if (point->name.len) {
        HTML(page->out, "{}<small>{}</small>", point->name, point->run);
    } else {
        HTML(page->out, "<code>{}</code>", point->run);
    }
    HTML(page->out, "<small>{}</small></th><td class=\"n\">{}</td><td>{}</td></tr>\n", point->time,
         isfinite(point->value) ? textf(&page->arena, "%.6g", point->value)
                                : STR_LIT("\xe2\x80\x93"),
         str_of(verdict));
}

static void add_case(struct page *page, const struct history_point *points, size_t n, size_t first)
{
    const struct history_point *head = &points[first];
    HTML(page->out, "<section class=\"card\"><h2 class=\"first\"><code>{}</code></h2>\n",
         head->case_id);
    HTML(page->out, "<p class=\"meta\">Report {}, profile {}.</p>\n", head->report,
         str_of(head->kind));
    add_chart(page, points, n, first);
    add_scroll_begin(page, head->case_id);
    HTML(page->out,
         "<caption>Each finished run{}{}</caption><thead><tr><th scope=\"col\">Run</th>"
         "<th scope=\"col\" class=\"n\">Value</th>"
         "<th scope=\"col\">Verdict</th></tr></thead>\n<tbody>\n",
         head->unit.len ? STR_LIT(", in ") : STR_EMPTY, head->unit);
    for (size_t idx = first; idx < n; idx++) {
        const struct history_point *point = &points[idx];
        if (is_alike(head, point)) {
            add_run(page, point);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</section>\n");
}

void page_history(struct strbuf *out, const struct history_point *points, size_t n)
{
    struct page page = {.out = out};
    size_t n_cases = 0;
    for (size_t idx = 0; idx < n; idx++) {
        n_cases += is_first(points, idx);
    }
    page_begin(&page, STR_LIT("Runs over time \xc2\xb7 reperf"));
    HTML(out,
         "<header><h1>Runs over time</h1>\n<p class=\"headline\">{} number{} of {} case{} from "
         "finished runs on this machine, oldest first.</p></header>\n<main id=\"main\">\n",
         textf(&page.arena, "%zu", n), n == 1 ? STR_EMPTY : STR_LIT("s"),
         textf(&page.arena, "%zu", n_cases), n_cases == 1 ? STR_EMPTY : STR_LIT("s"));
    for (size_t idx = 0; idx < n; idx++) {
        if (is_first(points, idx)) {
            add_case(&page, points, n, idx);
        }
    }
    page_end(&page);
    arena_release(&page.arena);
}
