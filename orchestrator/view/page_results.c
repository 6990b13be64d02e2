/* SPDX-License-Identifier: Apache-2.0 */
/* Results of several runs each: a row a result with its runs as a strip of dots, by model under <details>. */
#include "base/base.h"

#include <math.h>

#include "view/page_parts.h"

#define STRIP_W  180.0
#define STRIP_H  16.0
#define DOT_R    3.0
#define SPREAD   0.15 /* of the result, to each side of it */
#define EDGE     6.0
#define DECIMALS 3

bool is_results(const struct report_audit *audit)
{
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct rule *rule = audit->cells[idx].by;
        if (rule && rule->success.fact.ptr) {
            return true;
        }
    }
    return false;
}

/* 1, the result, in the middle; values beyond the strip are at its edge. On a square-root scale, since most runs differ by less
   than one in a hundred and some by ten. */
static double x_of(double ratio)
{
    double off = fmin(fabs(ratio - 1) / SPREAD, 1);
    double share = copysign(sqrt(off), ratio - 1);
    return STRIP_W / 2 + share * (STRIP_W / 2 - EDGE);
}

static void add_dot(struct page *page, double ratio, bool is_dropped)
{
    if (isinf(ratio)) {
        strbuf_printf(page->out, "<path class=\"lost\" d=\"M%.1f 5l6 6m0-6l-6 6\"/>",
                      x_of(ratio) - DOT_R);
        return;
    }
    strbuf_printf(page->out, "<circle cx=\"%.1f\" cy=\"8\" r=\"%.0f\"%s/>", x_of(ratio), DOT_R,
                  is_dropped ? " class=\"out\"" : "");
}

struct result_runs {
    double values[LOGS_MAX];
    size_t n, n_failed, fastest, slowest;
};

/* False where a run gives no time. */
static bool runs_of(struct page *page, const struct cell_audit *ca, struct result_runs *ret)
{
    const struct rule *rule = ca->by;
    const struct rule_case of = {0};
    ret->n = ca->n_logs;
    ret->n_failed = 0;
    if (!rule || ca->n_logs < 3 || !isfinite(ca->recomputed)) {
        return false;
    }
    for (size_t idx = 0; idx < ca->n_logs; idx++) {
        struct err ignored = {0};
        struct rule_repeat repeat;
        if (!ca->measurements[idx] ||
            rule_repeat(rule, ca->measurements[idx], &of, &page->arena, &repeat, &ignored) < 0) {
            return false;
        }
        ret->values[idx] = repeat.value;
        ret->n_failed += isinf(repeat.value) != 0;
    }
    rule_dropped(ret->values, ret->n, &ret->fastest, &ret->slowest);
    return true;
}

static double factor_of_runs(const struct cell_audit *ca)
{
    return ca->of_case->factor.value > 0 ? ca->of_case->factor.value : 1;
}

static void add_strip(struct page *page, const struct cell_audit *ca,
                      const struct result_runs *runs)
{
    double scale = factor_of_runs(ca) / ca->recomputed;
    HTML(page->out,
         "<svg class=\"runs\" viewBox=\"0 0 180 16\" role=\"img\"><title>{} runs{}</title>"
         "<path class=\"mid\" d=\"M90 0v16\"/>",
         textf(&page->arena, "%zu", runs->n),
         runs->n_failed ? textf(&page->arena, ", %zu did not succeed", runs->n_failed) : STR_EMPTY);
    for (size_t idx = 0; idx < runs->n; idx++) {
        add_dot(page, runs->values[idx] * scale, idx == runs->fastest || idx == runs->slowest);
    }
    strbuf_add_z(page->out, "</svg>");
}

/* The folder of the runs' logs, each run's minutes, and what was made of them. */
static void add_minutes(struct page *page, const struct report *report, const struct cell_audit *ca,
                        const struct result_runs *runs)
{
    struct str folder = ca->logs[0].path;
    while (folder.len && folder.ptr[folder.len - 1] != '/') {
        folder.len--;
    }
    strbuf_add_z(page->out, "<details class=\"how\"><summary>runs, arithmetic</summary><p>");
    add_log_link(page, report, str_sub(folder, 0, folder.len - (folder.len > 0)));
    strbuf_add_z(page->out, "</p><p>");
    for (size_t idx = 0; idx < runs->n; idx++) {
        bool is_dropped = idx == runs->fastest || idx == runs->slowest;
        HTML(page->out, is_dropped ? "{}<s>{}</s>" : "{}{}", idx ? STR_LIT(", ") : STR_EMPTY,
             isinf(runs->values[idx]) ? STR_LIT("no success")
                                      : number_text(page, runs->values[idx], 3));
    }
    HTML(page->out, " min{}; their mean {}{} min. Published {}: {}.</p></details>",
         runs->fastest == runs->slowest ? STR_EMPTY
                                        : STR_LIT(", without the fastest and the slowest"),
         ca->of_case->factor.value > 0
             ? textf(&page->arena, "times the factor %.6g is ", ca->of_case->factor.value)
             : STR_LIT("is "),
         cell_number_words(&page->arena, ca), ca->cell->printed, percent_text(page, ca->rel_diff));
}

static void add_result(struct page *page, const struct report *report, const struct cell_audit *ca,
                       size_t idx)
{
    const struct report_case *c = ca->of_case;
    struct result_runs runs;
    bool has_runs = runs_of(page, ca, &runs);
    HTML(page->out,
         "<tr id=\"{}-cell-{}\" class=\"cell row-{}\" data-cell=\"{}\"><th scope=\"row\">{}"
         "<small>{}</small><small class=\"phone\">{}</small></th><td class=\"n desk\">{}</td>"
         "<td class=\"n\"><data value=\"{}\">{}</data></td><td class=\"n desk\">{}</td><td>",
         report->id, textf(&page->arena, "%zu", idx), str_of(audit_verdict_name(ca->verdict)),
         ca->cell->id, c->environment->title, c->stack->label,
         c->gpus ? textf(&page->arena, "%" PRId64 " accelerators", c->gpus) : STR_LIT("CPUs"),
         c->gpus ? textf(&page->arena, "%" PRId64, c->gpus) : STR_LIT("CPUs"), ca->cell->printed,
         number_text(page, ca->cell->published, DECIMALS),
         number_text(page, ca->recomputed, DECIMALS));
    add_verdict(page, ca->verdict);
    if (c->factor.value > 0) {
        HTML(page->out, "<small>factor {}</small>", number_text(page, c->factor.value, 6));
    }
    if (ca->verdict != AUDIT_EXACT) {
        HTML(page->out, "<small>{}</small>", ca->note.ptr ? ca->note : c->matched);
    }
    strbuf_add_z(page->out, "</td><td>");
    if (has_runs) {
        add_strip(page, ca, &runs);
        add_minutes(page, report, ca, &runs);
    } else {
        add_how(page, report, ca);
    }
    strbuf_add_z(page->out, "</td></tr>\n");
}

static void add_model(struct page *page, const struct report_audit *audit, struct str model)
{
    size_t n = 0;
    size_t n_hold = 0;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *ca = &audit->cells[idx];
        bool is_of = str_eq(ca->of_case->model, model);
        n += is_of;
        n_hold += is_of && (ca->verdict == AUDIT_EXACT || ca->verdict == AUDIT_MATCH);
    }
    HTML(page->out, "<details><summary>{}: {} of {} results follow from their runs</summary>\n",
         model, textf(&page->arena, "%zu", n_hold), textf(&page->arena, "%zu", n));
    add_scroll_begin(page, textf(&page->arena, "Results of %.*s", STR_ARG(model)));
    HTML(page->out,
         "<caption>{}: results and their runs</caption><thead><tr><th scope=\"col\">System</th>"
         "<th scope=\"col\" class=\"n desk\">Accelerators</th>"
         "<th scope=\"col\" class=\"n\">Published, min</th>"
         "<th scope=\"col\" class=\"n desk\">From the runs</th><th scope=\"col\">Verdict</th>"
         "<th scope=\"col\">Runs</th></tr></thead><tbody>\n",
         model);
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        if (str_eq(audit->cells[idx].of_case->model, model)) {
            add_result(page, audit->report, &audit->cells[idx], idx);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</details>\n");
}

void add_results(struct page *page, const struct report_audit *audit)
{
    HTML(page->out, "<section class=\"card\" id=\"{}-cells\"><h3>Results and their runs</h3>\n",
         audit->report->id);
    strbuf_add_z(page->out,
                 "<p class=\"soft\">A dot is a run, its time over the result: the line is 1, the "
                 "edges are 15 % off, halfway is 3.75 %. Hollow: dropped, as the fastest or the "
                 "slowest. A cross: it "
                 "did not succeed, and counts as the slowest.</p>\n");
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        struct str model = audit->cells[idx].of_case->model;
        bool is_first = true;
        for (size_t before = 0; before < idx && is_first; before++) {
            is_first = !str_eq(audit->cells[before].of_case->model, model);
        }
        if (is_first) {
            add_model(page, audit, model);
        }
    }
    strbuf_add_z(page->out, "</section>\n");
}
