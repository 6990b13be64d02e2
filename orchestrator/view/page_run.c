/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run. */
#include "base/base.h"

#include "evidence/columns.h"
#include "view/page.h"
#include "view/page_parts.h"

#include <math.h>

static void add_run_verdict(struct page *page, enum run_verdict verdict)
{
    static const struct {
        const char *css; /* a class of page_css.c */
        const char *icon, *word;
    } LOOKS[] = {[RUN_REPRODUCED] = {"exact", "=", "reproduced"},
                 [RUN_FASTER] = {"match", "\xe2\x86\x91", "faster"},
                 [RUN_SLOWER] = {"differs", "\xe2\x86\x93", "slower"},
                 [RUN_NOT_COMPARABLE] = {"no_log", "\xe2\x80\x93", "not comparable"},
                 [RUN_FAILED] = {"differs", "\xc3\x97", "failed"},
                 [RUN_NOT_RUN] = {"warning", "\xe2\x88\x85", "not run"}};
    strbuf_printf(page->out, "<span class=\"v %s\"><i aria-hidden=\"true\">%s</i> %s</span>",
                  LOOKS[verdict].css, LOOKS[verdict].icon, LOOKS[verdict].word);
}

static struct str g_text(struct page *page, double value)
{
    return isfinite(value) ? textf(&page->arena, "%.6g", value) : STR_EMPTY;
}

/* The time to the recipe's target and what its log is asked for also, next to the rate. */
static void add_beside(struct page *page, const struct cell_result *cell)
{
    const struct beside *beside = &cell->step->beside;
    const struct loss_target *target = &beside->target;
    if (target->series.ptr && cell->target.step) {
        HTML(page->out, "<small>{} at most {} after {}</small>", target->series,
             g_text(page, target->at_most),
             textf(&page->arena, "%.3g s, step %" PRId64, cell->target.elapsed_s,
                   cell->target.step));
    } else if (target->series.ptr && cell->n_repeats) {
        HTML(page->out, "<small>{}</small>", cell->target.why);
    }
    if (cell->n_repeats && !beside->n_also && beside->why_not.ptr) {
        HTML(page->out, "<small>no accuracy: {}</small>", beside->why_not);
    }
    for (size_t idx = 0; cell->also && idx < beside->n_also; idx++) {
        const struct also_result *also = &cell->also[idx];
        HTML(page->out, "<small data-rule=\"{}\">{} {}{}{}</small>", beside->also[idx],
             rule_id_name(beside->also[idx]),
             isfinite(also->value) ? g_text(page, also->value) : STR_LIT("\xe2\x80\x93, "),
             also->unit.len && isfinite(also->value) ? STR_LIT(" ") : STR_EMPTY,
             isfinite(also->value) ? also->unit : also->why);
    }
}

/* What the published log gives by its rule, compared with the printed number. */
static void add_audited(struct page *page, const struct run_view *view,
                        const struct cell_result *cell)
{
    const struct cell_audit *audited = columns_audited(view->audit, cell->published);
    if (audited) {
        HTML(page->out, "<td class=\"n desk\">{}<small>{}</small></td>",
             cell_number_words(&page->arena, audited), str_of(cell_verdict_words(audited)));
    } else {
        strbuf_add_z(page->out, "<td class=\"n desk\">\xe2\x80\x93</td>");
    }
}

static void add_run_cell(struct page *page, const struct run_view *view,
                         const struct cell_result *cell)
{
    HTML(page->out, "<tr class=\"cell\" data-cell=\"{}\"><th scope=\"row\">", cell->of_case->id);
    add_case_id(page, cell->of_case->id);
    HTML(page->out, "</th><td class=\"n\">{}</td>",
         cell->published ? cell->published->printed : STR_LIT("\xe2\x80\x93"));
    add_audited(page, view, cell);
    HTML(page->out,
         "<td class=\"n desk\">{}</td><td class=\"n desk\">{}</td><td class=\"n desk\">{}</td><td>",
         g_text(page, cell->value), g_text(page, cell->summary.std),
         textf(&page->arena, "%zu", cell->summary.n));
    add_run_verdict(page, cell->verdict);
    if (isfinite(cell->value)) { /* on a phone these stand in one column */
        HTML(page->out, "<small class=\"phone\">{}{}measured {}</small>",
             percent_text(page, cell->rel_diff),
             isfinite(cell->rel_diff) ? STR_LIT(", ") : STR_EMPTY, g_text(page, cell->value));
    }
    HTML(page->out,
         "</td><td class=\"n desk\">{}</td><td class=\"rule\">{}<small><code>{}</code></small>",
         percent_text(page, cell->rel_diff), cell->why, cell->step->rule);
    add_beside(page, cell);
    strbuf_add_z(page->out, "</td></tr>\n");
}

static bool has_also(const struct run_result *result)
{
    bool has_some = false;
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        has_some = has_some || (result->cells[idx].also && result->cells[idx].step->beside.n_also);
    }
    return has_some;
}

static void add_run_cells(struct page *page, const struct run_view *view)
{
    const struct run_result *result = &view->result;
    strbuf_add_z(page->out,
                 "<section class=\"card\" id=\"cells\"><h2 class=\"first\">Published, audited and "
                 "measured</h2>\n");
    add_scroll_begin(page, STR_LIT("Cells"));
    strbuf_add_z(
        page->out,
        "<caption>Samples per second, whole job: published, recomputed from the published log, and "
        "measured here (mean and standard deviation of the repeats)</caption><thead><tr><th "
        "scope=\"col\">Case</th>"
        "<th scope=\"col\" class=\"n\">Published</th>"
        "<th scope=\"col\" class=\"n desk\">Audited</th>"
        "<th scope=\"col\" class=\"n desk\">Measured</th>"
        "<th scope=\"col\" class=\"n desk\">Std. dev.</th>"
        "<th scope=\"col\" class=\"n desk\">Repeats</th><th scope=\"col\">Verdict</th>"
        "<th scope=\"col\" class=\"n desk\">Difference</th><th scope=\"col\">Why, and the rule</th>"
        "</tr></thead>\n<tbody>\n");
    for (size_t at = 0; at < 2 * result->n_cells; at++) { /* what has no number first */
        const struct cell_result *cell = &result->cells[at % result->n_cells];
        bool is_bad = cell->verdict == RUN_FAILED || cell->verdict == RUN_NOT_RUN;
        if (is_bad == (at < result->n_cells)) {
            add_run_cell(page, view, cell);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    if (has_also(result)) {
        HTML(page->out, "<p class=\"soft\">{}</p>\n",
             str_of(result_also_means(&view->frozen.plan)));
    }
    if (view->audit_note.ptr) {
        HTML(page->out, "<p class=\"soft\">{}</p>\n", view->audit_note);
    }
    strbuf_add_z(page->out, "</section>\n");
}

static void add_column_cell(struct page *page, const struct run_view *view,
                            const struct column_cell *at)
{
    HTML(page->out, "<td class=\"n\">{}", columns_cell_text(&page->arena, at));
    if (!at) {
        strbuf_add_z(page->out, "</td>");
        return;
    }
    const struct cell *published = at->cell->published;
    const struct cell_audit *audited = columns_audited(view->audit, published);
    add_beside(page, at->cell);
    /* Our own case has no published number: it is checked against another's. */
    if (published && at->cell->baseline == at->cell->of_case) {
        HTML(page->out, "<small>published {}</small>", published->printed);
        if (audited) {
            HTML(page->out, "<small>its log gives {}</small>",
                 cell_number_words(&page->arena, audited));
        }
    }
    if (at->ratio.why) {
        HTML(page->out, "<small>no ratio: {}</small>", str_of(at->ratio.why));
    }
    strbuf_add_z(page->out, at->n_differs ? "<small>other " : "");
    for (size_t idx = 0; idx < at->n_differs; idx++) {
        HTML(page->out, "{}{}", idx ? STR_LIT(", ") : STR_EMPTY, str_of(at->differs[idx]));
    }
    strbuf_add_z(page->out, at->n_differs ? "</small></td>" : "</td>");
}

/* What the report claims of two columns, and what this run says of it. */
static void add_claims(struct page *page, const struct columns *columns)
{
    strbuf_add_z(page->out, "<ul class=\"claims\">");
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        const struct column_row *row = &columns->rows[idx];
        for (size_t at = 0; at < row->n_cells; at++) {
            const struct column_cell *cell = &row->cells[at];
            if (cell->claim.published > 0) {
                HTML(page->out, "<li>{} {}, {}: {} against {}: {}</li>\n", row->model,
                     row->precision,
                     textf(&page->arena, "%" PRId64 " GPU%s", row->gpus, row->gpus == 1 ? "" : "s"),
                     cell->name, row->reference, columns_claim_text(&page->arena, cell));
            }
        }
    }
    strbuf_add_z(page->out, "</ul>\n");
}

static void add_columns(struct page *page, const struct run_view *view)
{
    struct columns columns;
    bool has_claim = false;
    columns_of(&page->arena, &view->frozen, &view->result, view->audit, &columns);
    if (columns.n_rows == 0) {
        return;
    }
    strbuf_add_z(page->out,
                 "<section class=\"card\" id=\"columns\"><h2 class=\"first\">Side by side</h2>\n");
    add_scroll_begin(page, STR_LIT("Side by side"));
    HTML(page->out,
         "<caption>Items per second of the whole job; in brackets the ratio to the row's first "
         "framework that has a value, with the 95 % interval of their repeats; {}</caption>"
         "<thead><tr><th scope=\"col\">Model, precision, GPUs</th>",
         str_of(columns_order(&view->frozen)));
    for (size_t idx = 0; idx < columns.n_frameworks; idx++) {
        HTML(page->out, "<th scope=\"col\" class=\"n\">{}</th>", columns.frameworks[idx]);
    }
    strbuf_add_z(page->out, "</tr></thead>\n<tbody>\n");
    for (size_t idx = 0; idx < columns.n_rows; idx++) {
        const struct column_row *row = &columns.rows[idx];
        HTML(page->out, "<tr><th scope=\"row\">{} {}, {}</th>", row->model, row->precision,
             textf(&page->arena, "%" PRId64, row->gpus));
        for (size_t at = 0; at < columns.n_frameworks; at++) {
            const struct column_cell *cell = columns_find(row, at);
            add_column_cell(page, view, cell);
            has_claim = has_claim || (cell && cell->claim.published > 0);
        }
        strbuf_add_z(page->out, "</tr>\n");
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    if (has_claim) {
        strbuf_add_z(page->out, "<h3>What the report claims of them</h3>\n");
        add_claims(page, &columns);
    }
    strbuf_add_z(page->out, "</section>\n");
}

static void add_differences(struct page *page, const struct cell_result *cell, bool is_open)
{
    HTML(page->out,
         "<details{}><summary><code>{}</code> <span class=\"soft\">against</span> "
         "<code>{}</code></summary>\n",
         is_open ? STR_LIT(" open") : STR_EMPTY, cell->of_case->id, cell->baseline->id);
    add_scroll_begin(page, cell->of_case->id);
    HTML(page->out,
         "<caption>Conditions that differ from {}</caption><thead><tr><th "
         "scope=\"col\">Condition</th>"
         "<th scope=\"col\">Published</th><th scope=\"col\">This run</th></tr></thead>\n<tbody>\n",
         cell->baseline->id);
    for (size_t idx = 0; idx < cell->n_differs; idx++) {
        const struct run_difference *d = &cell->differs[idx];
        HTML(page->out, "<tr class=\"wide\"><th scope=\"row\">{}</th><td>", d->name);
        add_condition_value(page, d->published);
        strbuf_add_z(page->out, "</td><td>");
        add_condition_value(page, d->run.ptr ? d->run : STR_LIT("none"));
        strbuf_add_z(page->out, "</td></tr>\n");
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    if (cell->n_not_stated) {
        strbuf_add_z(page->out, "<p class=\"soft\">Not stated by the report: ");
        for (size_t idx = 0; idx < cell->n_not_stated; idx++) {
            HTML(page->out, "{}{}", idx ? STR_LIT(", ") : STR_EMPTY, cell->not_stated[idx]);
        }
        strbuf_add_z(page->out, ".</p>\n");
    }
    strbuf_add_z(page->out, "</details>\n");
}

static void add_run_conditions(struct page *page, const struct run_result *result)
{
    bool has_any = false;
    strbuf_add_z(page->out,
                 "<section class=\"card\" id=\"conditions\"><h2 class=\"first\">What differs "
                 "from the published conditions</h2>\n");
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        if (result->cells[idx].baseline && result->cells[idx].n_differs) {
            add_differences(page, &result->cells[idx], !has_any);
            has_any = true;
        }
    }
    strbuf_add_z(page->out, has_any ? "</section>\n" : "<p>Nothing that is known.</p></section>\n");
}

static struct str taints_of(struct page *page, const struct repeat_result *repeat)
{
    return repeat->n_taints == 0 ? STR_EMPTY
                                 : textf(&page->arena, ": tainted (%zu): %.*s", repeat->n_taints,
                                         STR_ARG(repeat->taints[0]));
}

static int add_cell_series(struct page *page, const struct run_view *view,
                           const struct cell_result *cell, struct err *err)
{
    HTML(page->out, "<h3><code>{}</code></h3>\n<div class=\"grid3\">\n", cell->of_case->id);
    for (size_t idx = 0; idx < cell->n_repeats; idx++) {
        struct measurement m;
        if (run_view_log(&page->arena, view, cell, idx, &m, err) < 0) {
            return -1;
        }
        struct spark_of of = {
            .rule = cell->step->bound.rule,
            .rule_case = result_rule_case(&view->frozen, cell->step),
            .m = &m,
            .name = textf(&page->arena, "Repeat %" PRId64, cell->repeats[idx].repeat),
            .note = cell->repeats[idx].counts
                        ? taints_of(page, &cell->repeats[idx])
                        : textf(&page->arena, ": %.*s", STR_ARG(cell->repeats[idx].why))};
        add_spark_figure(page, &of);
    }
    strbuf_add_z(page->out, "</div>\n");
    return 0;
}

static int add_run_series(struct page *page, const struct run_view *view, struct err *err)
{
    strbuf_add_z(
        page->out,
        "<section class=\"card\" id=\"series\"><h2 class=\"first\">Step series</h2>\n<p>Each "
        "repeat's samples in order. <span class=\"key shade\"></span> left out by the rule, "
        "<span class=\"key dash\"></span> the number the rule gives.</p>\n");
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        if (view->result.cells[idx].n_repeats &&
            add_cell_series(page, view, &view->result.cells[idx], err) < 0) {
            return -1;
        }
    }
    strbuf_add_z(page->out, "</section>\n");
    return 0;
}

/* One sentence of what it means: what failed first, then what holds, and what is not claimed. */
static void add_headline(struct page *page, const struct run_view *view)
{
    const struct run_result *result = &view->result;
    const struct plan *plan = &view->frozen.plan;
    size_t n_of[RUN_NOT_RUN + 1] = {0};
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        n_of[result->cells[idx].verdict]++;
    }
    size_t n_bad = n_of[RUN_FAILED] + n_of[RUN_NOT_RUN];
    strbuf_add_z(page->out, "<p class=\"headline\">");
    if (n_bad) {
        HTML(page->out, "{} of {} cases gave no number ({} failed, {} could not run); ",
             textf(&page->arena, "%zu", n_bad), textf(&page->arena, "%zu", result->n_cells),
             textf(&page->arena, "%zu", n_of[RUN_FAILED]),
             textf(&page->arena, "%zu", n_of[RUN_NOT_RUN]));
    }
    struct str others = n_bad                  ? STR_LIT("the others")
                        : result->n_cells == 1 ? STR_LIT("its case")
                                               : STR_LIT("all its cases");
    if (n_bad == result->n_cells) {
        strbuf_add_z(page->out, "so this run says nothing about the report.</p>\n");
    } else if (plan->profile == PROFILE_SMOKE) {
        HTML(page->out,
             "{} ran small and on the CPU: this smoke run shows that everything from manifest to "
             "sealed evidence works{}, and claims nothing about any published number.</p>\n",
             others, n_bad ? STR_LIT(" for them") : STR_EMPTY);
    } else if (plan->is_rehearsal) {
        HTML(
            page->out,
            "{} ran in a rehearsal: the commands were the report's, what they ran on was not (each "
            "case says what differs), so nothing is claimed about any published number.</p>\n",
            others);
    } else {
        HTML(page->out, "{} reproduced the published number, {} were faster and {} slower.</p>\n",
             textf(&page->arena, "%zu", n_of[RUN_REPRODUCED]),
             textf(&page->arena, "%zu", n_of[RUN_FASTER]),
             textf(&page->arena, "%zu", n_of[RUN_SLOWER]));
    }
}

int page_run(struct strbuf *out, const struct run_view *view, struct err *err)
{
    struct page page = {.out = out, .formats = &view->frozen.formats};
    int rc;
    page_begin(&page, textf(&page.arena, "Run %.*s \xc2\xb7 reperf", STR_ARG(view->frozen.run_id)));
    HTML(out,
         "<header><h1>Run {}</h1>\n<p class=\"meta\">Report {} (<code>{}</code>), profile {}, {} "
         "repeat{} per case.</p>\n",
         view->frozen.run_id, view->frozen.report.title, view->frozen.plan.report,
         str_of(plan_kind_name(view->frozen.plan.profile, view->frozen.plan.is_rehearsal)),
         textf(&page.arena, "%" PRId64, view->frozen.plan.repeats),
         view->frozen.plan.repeats == 1 ? STR_EMPTY : STR_LIT("s"));
    add_headline(&page, view);
    strbuf_add_z(out, "</header>\n<main id=\"main\">\n");
    add_run_cells(&page, view);
    add_columns(&page, view);
    add_run_conditions(&page, &view->result);
    add_run_places(&page, view);
    rc = add_run_series(&page, view, err);
    add_run_machines(&page, view);
    add_run_logs(&page, view);
    page_end(&page);
    arena_release(&page.arena);
    return rc;
}
