/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader should know first: how many numbers are confirmed, and the largest surprises. */
#include "base/base.h"

#include "view/page_parts.h"

#include <math.h>

#define SURPRISES_MAX 4
/* A ratio of rows that are alike, this far from the published one, is worth a line. Source: ours; the spread that REPRODUCED_REL_MAX
   allows a single number. */
#define RATIO_SHIFT_MIN REPRODUCED_REL_MAX

void add_verdict_bar(struct page *page, const struct verdict_counts *counts)
{
    double x = 0;
    if (counts->n == 0) {
        return;
    }
    strbuf_add_z(page->out, "<svg class=\"bar\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" "
                            "aria-hidden=\"true\">");
    for (size_t idx = 0; idx <= AUDIT_NO_LOG; idx++) {
        double width = 100.0 * (double)counts->of[idx] / (double)counts->n;
        if (width > 0) {
            strbuf_printf(page->out,
                          "<rect class=\"%s\" x=\"%.2f\" y=\"0\" width=\"%.2f\" height=\"4\"/>",
                          audit_verdict_name((enum audit_verdict)idx), x, width);
        }
        x += width;
    }
    strbuf_add_z(page->out, "</svg>\n");
}

static void add_tiles(struct page *page, const struct verdict_counts *counts)
{
    strbuf_add_z(page->out, "<ul class=\"tiles\">");
    for (size_t idx = 0; idx <= AUDIT_NO_LOG; idx++) {
        strbuf_printf(page->out, "<li class=\"%s\"><b>%zu</b>",
                      audit_verdict_name((enum audit_verdict)idx), counts->of[idx]);
        add_verdict(page, (enum audit_verdict)idx);
        HTML(page->out, "<br><span>{}</span></li>", str_of(VERDICT_LOOKS[idx].words));
    }
    strbuf_add_z(page->out, "</ul>\n");
}

/* Keeps the SURPRISES_MAX largest keys, in falling order; what is equal stays in the order in which it came. */
struct top {
    size_t idx[SURPRISES_MAX];
    double key[SURPRISES_MAX];
    size_t n;
};

static void top_add(struct top *top, size_t idx, double key)
{
    size_t at = top->n;
    while (at > 0 && top->key[at - 1] < key) {
        at--;
    }
    if (at == SURPRISES_MAX) {
        return;
    }
    for (size_t to = top->n < SURPRISES_MAX ? top->n++ : SURPRISES_MAX - 1; to > at; to--) {
        top->idx[to] = top->idx[to - 1];
        top->key[to] = top->key[to - 1];
    }
    top->idx[at] = idx;
    top->key[at] = key;
}

/* A bar from zero, as long as the value is of the longer one's. */
static void add_bar(struct page *page, const char *css, double value, double most, struct str words)
{
    HTML(page->out, "<span class=\"{}\" style=\"width:{}%\"></span>{}<br>", str_of(css),
         textf(&page->arena, "%.1f", most > 0 ? 45 * value / most : 0), words);
}

static void add_cell_surprise(struct page *page, const struct cell_audit *ca)
{
    const struct explanation *e = &ca->explanation;
    double most = fmax(ca->cell->published, ca->recomputed);
    HTML(page->out, "<li><b>{} {}, {}{}</b><div class=\"pair\">", ca->of_case->model,
         ca->of_case->precision, case_text(page, ca->of_case),
         ca->cell->metric == METRIC_THROUGHPUT
             ? STR_EMPTY
             : textf(&page->arena, ", %s", metric_words(ca->cell->metric)));
    add_bar(page, "was", ca->cell->published, most,
            textf(&page->arena, "%.*s published", STR_ARG(ca->cell->printed)));
    add_bar(page, "is", ca->recomputed, most,
            textf(&page->arena, "%.*s by %s (%.*s)", STR_ARG(cell_number_words(&page->arena, ca)),
                  ca->cell->derive == DERIVE_NONE ? "its log" : "the other published numbers",
                  STR_ARG(percent_text(page, ca->rel_diff))));
    strbuf_add_z(page->out, "</div>");
    if (explains(e)) {
        HTML(page->out, "All {} cells of its group follow from \xe2\x80\x9c{}\xe2\x80\x9d.",
             textf(&page->arena, "%zu", e->n_group), e->best);
    } else if (e->best.ptr) {
        HTML(page->out,
             "\xe2\x80\x9c{}\xe2\x80\x9d would give it, but holds for only {} of the {} cells of "
             "its group.",
             e->best, textf(&page->arena, "%zu", e->best_explains),
             textf(&page->arena, "%zu", e->n_group));
    } else if (ca->proof == PROOF_CONTRADICTED) {
        html_text(page->out, ca->note);
    } else if (e->n_tried > 0) {
        HTML(page->out, "None of {} statistics and windows gives it.",
             textf(&page->arena, "%zu", e->n_tried));
    }
    strbuf_add_z(page->out, "</li>\n");
}

static void add_row_surprise(struct page *page, const struct like_row *row)
{
    HTML(page->out,
         "<li><b>{} {}, {} against {}, {} GPU{}</b>: printed {}\xc3\x97, by one rule for both "
         "{}\xc3\x97.</li>\n",
         row->a->of_case->model, row->a->of_case->precision, row->a->of_case->stack->label,
         row->b->of_case->stack->label, textf(&page->arena, "%" PRId64, row->a->of_case->gpus),
         row->a->of_case->gpus == 1 ? STR_EMPTY : STR_LIT("s"),
         number_text(page, row->published_ratio, 2), number_text(page, row->ratio, 2));
}

static void add_surprises(struct page *page, const struct report_audit *audit)
{
    struct top cells = {0};
    struct top rows = {0};
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *ca = &audit->cells[idx];
        if (ca->verdict == AUDIT_DIFFERS && isfinite(ca->rel_diff)) {
            top_add(&cells, idx, fabs(ca->rel_diff));
        }
    }
    for (size_t idx = 0; idx < audit->n_rows; idx++) {
        double shift = fabs(log(audit->rows[idx].ratio / audit->rows[idx].published_ratio));
        if (isfinite(shift) && shift >= RATIO_SHIFT_MIN && audit->rows[idx].note.len == 0) {
            top_add(&rows, idx, shift);
        }
    }
    if (cells.n == 0 && rows.n == 0) {
        strbuf_add_z(page->out, "<p>No surprises: nothing that has a log differs.</p>\n");
        return;
    }
    strbuf_add_z(page->out, "<h4>The largest differences, published against recomputed; bars begin "
                            "at zero</h4>\n<ul class=\"surprises\">\n");
    for (size_t idx = 0; idx < cells.n; idx++) {
        add_cell_surprise(page, &audit->cells[cells.idx[idx]]);
    }
    for (size_t idx = 0; idx < rows.n; idx++) {
        add_row_surprise(page, &audit->rows[rows.idx[idx]]);
    }
    strbuf_add_z(page->out, "</ul>\n");
}

static size_t count_level(const struct report_audit *audit, enum finding_level level)
{
    size_t n = 0;
    for (size_t idx = 0; idx < audit->findings.n; idx++) {
        n += audit->findings.items[idx].level == level;
    }
    return n;
}

void add_summary(struct page *page, const struct report_audit *audit)
{
    struct verdict_counts counts = count_verdicts(audit);
    struct str id = audit->report->id;
    HTML(page->out,
         "<section class=\"card\" id=\"{}-summary\" aria-labelledby=\"{}-summary-h\">"
         "<h3 id=\"{}-summary-h\">Of {} published numbers, {}</h3>\n",
         id, id, id, textf(&page->arena, "%zu", counts.n), follow_text(page, &counts, "the logs"));
    add_verdict_bar(page, &counts);
    add_tiles(page, &counts);
    add_surprises(page, audit);
    HTML(page->out,
         "<p><a href=\"#{}-findings\">Findings</a>: {} errors, {} warnings, {} "
         "notes.</p></section>\n",
         id, textf(&page->arena, "%zu", count_level(audit, LEVEL_ERROR)),
         textf(&page->arena, "%zu", count_level(audit, LEVEL_WARNING)),
         textf(&page->arena, "%zu", count_level(audit, LEVEL_NOTE)));
}

/* On a phone there is room for what differs and what has no log. */
static void add_count(struct page *page, size_t verdict, size_t n)
{
    bool is_fine = verdict == AUDIT_EXACT || verdict == AUDIT_MATCH;
    strbuf_printf(page->out, "<td class=\"n%s\">%zu</td>", is_fine ? " desk" : "", n);
}

void add_overview(struct page *page, const struct report_audit *audits, size_t n)
{
    struct verdict_counts all = {0};
    strbuf_add_z(page->out, "<section class=\"card\"><h2 class=\"first\">All reports</h2>\n");
    add_scroll_begin(page, STR_LIT("All reports"));
    strbuf_add_z(
        page->out,
        "<caption>How many published numbers follow from the published logs, and ratios and means "
        "from other published numbers</caption>"
        "<thead><tr><th scope=\"col\">Report</th><th scope=\"col\" class=\"n\">Numbers</th>"
        "<th scope=\"col\" class=\"n desk\">Exact</th><th scope=\"col\" class=\"n desk\">Match</th>"
        "<th scope=\"col\" class=\"n\">Differs</th><th scope=\"col\" class=\"n\">No log</th>"
        "<th scope=\"col\" class=\"desk\">Share</th></tr></thead>\n<tbody>\n");
    for (size_t idx = 0; idx < n; idx++) {
        struct verdict_counts counts = count_verdicts(&audits[idx]);
        HTML(page->out, "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th>", audits[idx].report->id,
             audits[idx].report->id);
        strbuf_printf(page->out, "<td class=\"n\">%zu</td>", counts.n);
        for (size_t verdict = 0; verdict <= AUDIT_NO_LOG; verdict++) {
            add_count(page, verdict, counts.of[verdict]);
            all.of[verdict] += counts.of[verdict];
        }
        all.n += counts.n;
        strbuf_add_z(page->out, "<td class=\"desk\">");
        add_verdict_bar(page, &counts);
        strbuf_add_z(page->out, "</td></tr>\n");
    }
    strbuf_printf(page->out,
                  "</tbody><tfoot><tr><th scope=\"row\">all</th><td class=\"n\">%zu</td>", all.n);
    for (size_t verdict = 0; verdict <= AUDIT_NO_LOG; verdict++) {
        add_count(page, verdict, all.of[verdict]);
    }
    strbuf_add_z(page->out, "<td class=\"desk\">");
    add_verdict_bar(page, &all);
    strbuf_add_z(page->out, "</td></tr></tfoot>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</section>\n");
}
