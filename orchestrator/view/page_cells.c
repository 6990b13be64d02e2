/* SPDX-License-Identifier: Apache-2.0 */
/* The tables: published against recomputed, like for like, and what would explain a difference. */
#include "base/base.h"

#include "view/chart.h"
#include "view/page_parts.h"

#include <math.h>

const char *metric_words(enum metric metric)
{
    static const char *const WORDS[] = {
        [METRIC_THROUGHPUT] = "throughput", [METRIC_RUN_THROUGHPUT] = "throughput of one run",
        [METRIC_SPEEDUP] = "speed-up",      [METRIC_TIME_TO_TRAIN] = "time to train",
        [METRIC_ACCURACY] = "accuracy",     [METRIC_OTHER] = "another figure"};
    return WORDS[metric];
}

static struct str whole_text(struct page *page, int64_t value)
{
    return textf(&page->arena, "%" PRId64, value);
}

/* Cells of one table stand together: same model, heading and metric. */
static bool same_table(const struct cell_audit *a, const struct cell_audit *b)
{
    return str_eq(a->of_case->model, b->of_case->model) && str_eq(a->cell->table, b->cell->table) &&
           a->cell->metric == b->cell->metric;
}

static bool is_first_of_table(const struct report_audit *audit, size_t idx)
{
    for (size_t before = 0; before < idx; before++) {
        if (same_table(&audit->cells[before], &audit->cells[idx])) {
            return false;
        }
    }
    return true;
}

/* "mean of ips, skip 2", the id, and the note. */
static void add_rule(struct page *page, const struct report *report, const struct cell_audit *ca)
{
    const struct rule *rule = ca->by;
    strbuf_add_z(page->out, "<td class=\"rule\">");
    if (rule) {
        CLEANUP(strbuf) struct strbuf words = {0};
        strbuf_init(&words, 4096);
        rule_describe(rule, &words);
        HTML(page->out, "{}<small><code>{}</code>, {}</small>", strbuf_str(&words), ca->rule,
             rule->origin);
    } else if (ca->rule.ptr) {
        HTML(page->out, "<code>{}</code>", ca->rule);
    }
    if (ca->note.len) {
        HTML(page->out, "<small>{}</small>", ca->note);
    }
    add_how(page, report, ca);
    strbuf_add_z(page->out, "</td>");
}

/* "proof partial: gpus, nodes", and what the log is where it is not whole. */
static void add_proof(struct page *page, const struct cell_audit *ca)
{
    const char *before = ": ";
    if (ca->verdict == AUDIT_NO_LOG) {
        return;
    }
    HTML(page->out, "<small class=\"proof\">proof {}", str_of(proof_name(ca->proof)));
    for (size_t fact = 0; fact < IDENTITY_FACTS; fact++) {
        if (ca->identity.items[fact].state != ID_PROVEN) {
            HTML(page->out, "{}{}", str_of(before),
                 str_of(identity_name((enum identity_fact)fact)));
            before = ", ";
        }
    }
    if (ca->log_state != LOG_WHOLE) {
        HTML(page->out, "; log {}", str_of(log_state_name(ca->log_state)));
    }
    if (ca->digits.ptr) {
        HTML(page->out, "; {}", ca->digits);
    }
    if (ca->is_proposed) {
        strbuf_add_z(page->out, "; by a proposed format");
    }
    if (ca->n_asked) {
        HTML(page->out, "; inferred: the rule gives {} of {}",
             textf(&page->arena, "%zu", ca->n_given), textf(&page->arena, "%zu", ca->n_asked));
    }
    strbuf_add_z(page->out, "</small>");
}

static void add_cell(struct page *page, const struct cell_audit *ca, const struct report *report,
                     size_t idx)
{
    const struct report_case *c = ca->of_case;
    HTML(page->out,
         "<tr id=\"{}-cell-{}\" class=\"cell row-{}\" data-cell=\"{}\"><th scope=\"row\">{}",
         report->id, textf(&page->arena, "%zu", idx), str_of(audit_verdict_name(ca->verdict)),
         ca->cell->id, c->stack->label);
    if (c->variant.len) {
        HTML(page->out, "<small>{}</small>", c->variant);
    }
    if (ca->cell->footnote.ptr) {
        HTML(page->out, "<small class=\"foot\">{}</small>", ca->cell->footnote);
    }
    HTML(page->out,
         "<small class=\"phone\">{}</small></th><td class=\"n desk\">{}</td>"
         "<td class=\"n desk\">{}</td><td class=\"n\">{}",
         row_text(page, c), c->nodes ? whole_text(page, c->gpus) : STR_LIT("\xe2\x80\x93"),
         c->batch_per_gpu ? whole_text(page, c->batch_per_gpu) : STR_LIT("\xe2\x80\x93"),
         ca->cell->printed);
    HTML(page->out, "</td><td class=\"n desk\">{}</td><td>", cell_number_words(&page->arena, ca));
    add_verdict(page, ca->verdict);
    /* On a phone these three stand in one column. */
    if (isfinite(ca->recomputed)) {
        HTML(page->out, "<small class=\"phone\">{}, logs {}</small>",
             percent_text(page, ca->rel_diff), cell_number_words(&page->arena, ca));
    }
    add_proof(page, ca);
    HTML(page->out, "</td><td class=\"n desk\">{}</td>", percent_text(page, ca->rel_diff));
    add_rule(page, report, ca);
    strbuf_add_z(page->out, "</tr>\n");
}

static void add_table(struct page *page, const struct report_audit *audit, size_t first)
{
    const struct cell_audit *head = &audit->cells[first];
    struct str name = textf(&page->arena, "%.*s, %.*s: %s", STR_ARG(head->of_case->model),
                            STR_ARG(head->cell->table), metric_words(head->cell->metric));
    add_scroll_begin(page, name);
    HTML(page->out, "<caption>{}{}</caption>", name,
         head->cell->unit.len ? textf(&page->arena, " in %.*s", STR_ARG(head->cell->unit))
                              : STR_LIT(""));
    strbuf_add_z(page->out,
                 "<thead><tr><th scope=\"col\">Framework</th>"
                 "<th scope=\"col\" class=\"n desk\">GPUs</th>"
                 "<th scope=\"col\" class=\"n desk\">Batch<br>per GPU</th>"
                 "<th scope=\"col\" class=\"n\">Published</th>"
                 "<th scope=\"col\" class=\"n desk\">Recomputed</th><th scope=\"col\">Verdict</th>"
                 "<th scope=\"col\" class=\"n desk\">Difference</th>"
                 "<th scope=\"col\">Rule</th></tr></thead>\n<tbody>\n");
    for (size_t idx = first; idx < audit->n_cells; idx++) {
        if (same_table(head, &audit->cells[idx])) {
            add_cell(page, &audit->cells[idx], audit->report, idx);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
}

/* Where the report's tables have no number. */
static void add_not_printed(struct page *page, const struct report *report)
{
    strbuf_add_z(page->out,
                 report->n_not_printed ? "<p class=\"soft\">No number is printed for: " : "");
    for (size_t idx = 0; idx < report->n_not_printed; idx++) {
        const struct not_printed *at = &report->not_printed[idx];
        HTML(page->out, "{}{}, {}, {}: \xe2\x80\x9c{}\xe2\x80\x9d", idx ? STR_LIT("; ") : STR_EMPTY,
             at->table, at->row, at->column, at->printed);
    }
    strbuf_add_z(page->out, report->n_not_printed ? ".</p>\n" : "");
}

void add_cells(struct page *page, const struct report_audit *audit)
{
    struct str id = audit->report->id;
    HTML(page->out,
         "<section class=\"card\" id=\"{}-cells\"><h3>Published against recomputed</h3>\n", id);
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        if (is_first_of_table(audit, idx)) {
            add_table(page, audit, idx);
        }
    }
    add_not_printed(page, audit->report);
    strbuf_add_z(page->out, "</section>\n");
}

/* The common scale of all rows' ratios; 1 is always on it. */
static void ratio_range(const struct report_audit *audit, double *ret_low, double *ret_high)
{
    double low = 0.8;
    double high = 1.25;
    for (size_t idx = 0; idx < audit->n_rows; idx++) {
        const double values[] = {audit->rows[idx].ratio, audit->rows[idx].published_ratio};
        for (size_t at = 0; at < ARRAY_LEN(values); at++) {
            if (isfinite(values[at]) && values[at] > 0) {
                low = fmin(low, values[at]);
                high = fmax(high, values[at]);
            }
        }
    }
    *ret_low = low / 1.05;
    *ret_high = high * 1.05;
}

static void add_like_row(struct page *page, const struct like_row *row, double low, double high)
{
    const struct report_case *a = row->a->of_case;
    const struct report_case *b = row->b->of_case;
    HTML(
        page->out,
        "<tr class=\"like\"><th scope=\"row\">{} {}<small>{} GPU{}, batch {} against {}{}{}</small>"
        "</th><td>{} against {}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>",
        a->model, a->precision, whole_text(page, a->gpus), a->gpus == 1 ? STR_EMPTY : STR_LIT("s"),
        whole_text(page, a->batch_per_gpu), whole_text(page, b->batch_per_gpu),
        b->variant.len ? STR_LIT(", ") : STR_EMPTY, b->variant, a->stack->label, b->stack->label,
        number_text(page, row->value_a, 2), number_text(page, row->value_b, 2));
    HTML(page->out, "<td class=\"n\">{}\xc3\x97</td><td class=\"n\">{}{}</td><td>",
         number_text(page, row->published_ratio, 2), number_text(page, row->ratio, 2),
         isfinite(row->ratio) ? STR_LIT("\xc3\x97") : STR_LIT("no log"));
    chart_ratio(page->out, row->published_ratio, row->ratio, low, high);
    HTML(page->out, "</td><td class=\"rule\">{}", row->rule);
    if (row->note.len) {
        HTML(page->out, "<small>{}</small>", row->note);
    }
    strbuf_add_z(page->out, "</td></tr>\n");
}

void add_like(struct page *page, const struct report_audit *audit)
{
    double low;
    double high;
    HTML(page->out, "<section class=\"card\" id=\"{}-like\"><h3>Like for like</h3>\n",
         audit->report->id);
    if (audit->n_rows == 0) {
        strbuf_add_z(page->out, "<p>No row of this report has two frameworks.</p></section>\n");
        return;
    }
    ratio_range(audit, &low, &high);
    strbuf_add_z(
        page->out,
        "<p>One statistic over one window, applied to both logs of a row, next to the ratio of the "
        "printed numbers. <span class=\"dot was\"></span> printed, "
        "<span class=\"dot is\"></span> by one rule; the upright line is 1\xc3\x97, the scale is "
        "logarithmic.</p>\n");
    add_scroll_begin(page, STR_LIT("Like for like"));
    strbuf_add_z(page->out,
                 "<caption>Ratio of two frameworks by one rule for both</caption>"
                 "<thead><tr><th scope=\"col\">Row</th><th scope=\"col\">Frameworks</th>"
                 "<th scope=\"col\" class=\"n\">First</th><th scope=\"col\" class=\"n\">Second</th>"
                 "<th scope=\"col\" class=\"n\">Printed<br>ratio</th>"
                 "<th scope=\"col\" class=\"n\">By one<br>rule</th>"
                 "<th scope=\"col\">Shift</th><th scope=\"col\">Rule, and what still differs</th>"
                 "</tr></thead>\n<tbody>\n");
    for (size_t idx = 0; idx < audit->n_rows; idx++) {
        add_like_row(page, &audit->rows[idx], low, high);
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</section>\n");
}

static void add_explanation(struct page *page, const struct cell_audit *ca)
{
    const struct explanation *e = &ca->explanation;
    HTML(
        page->out,
        "<tr><th scope=\"row\">{} {}<small>{}</small></th><td class=\"n\">{}</td><td class=\"n\">{}"
        "</td><td class=\"n\">{}</td>",
        ca->of_case->model, ca->of_case->precision, case_text(page, ca->of_case), ca->cell->printed,
        textf(&page->arena, "%zu", e->n_tried), textf(&page->arena, "%zu", e->n_matching));
    if (!e->best.ptr) {
        strbuf_add_z(page->out, "<td class=\"rule\">none gives this number</td><td></td></tr>\n");
        return;
    }
    HTML(page->out, "<td class=\"rule\">{}</td><td>{} of {}{}</td></tr>\n", e->best,
         textf(&page->arena, "%zu", e->best_explains), textf(&page->arena, "%zu", e->n_group),
         explains(e) ? STR_LIT(": explains the group") : STR_LIT(": not an explanation"));
}

void add_explanations(struct page *page, const struct report_audit *audit)
{
    size_t n = 0;
    HTML(page->out,
         "<section class=\"card\" id=\"{}-explanations\"><h3>Searching for the rule</h3>\n",
         audit->report->id);
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        n += audit->cells[idx].explanation.n_tried > 0;
    }
    if (n == 0) {
        HTML(page->out, "<p>{}</p></section>\n",
             count_verdicts(audit).of[AUDIT_DIFFERS]
                 ? STR_LIT("No search was made.")
                 : STR_LIT("Not needed: the named rules give every number that has a log."));
        return;
    }
    strbuf_add_z(
        page->out,
        "<p>Where the named rule does not give the printed number, named statistics are tried "
        "over many windows. Something always fits by chance; a candidate counts as an "
        "explanation only if it gives every cell of its group.</p>\n");
    add_scroll_begin(page, STR_LIT("Searching for the rule"));
    strbuf_add_z(
        page->out,
        "<caption>Candidates tried and what they give</caption><thead><tr>"
        "<th scope=\"col\">Cell</th><th scope=\"col\" class=\"n\">Published</th>"
        "<th scope=\"col\" class=\"n\">Tried</th><th scope=\"col\" class=\"n\">Matching</th>"
        "<th scope=\"col\">Best candidate</th><th scope=\"col\">Cells of the group</th></tr>"
        "</thead>\n<tbody>\n");
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        if (audit->cells[idx].explanation.n_tried > 0) {
            add_explanation(page, &audit->cells[idx]);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</section>\n");
}
