/* SPDX-License-Identifier: Apache-2.0 */
/* The page of reports: how many numbers are confirmed, the largest differences, each cell with how it follows from its logs, and
   rows of two frameworks by one rule. */
#include "base/base.h"

#include "judge/stats.h"
#include "judge/trace.h"
#include "view/page_parts.h"

#include <math.h>

#define SURPRISES_MAX   4
#define RESULT_DECIMALS 3
#define LINKS_MAX       3 /* logs of a cell that are linked; all are named */
/* A ratio of rows that are alike, this far from the published one, is worth a line. Source: ours; the spread that REPRODUCED_REL_MAX
   allows a single number. */
#define RATIO_SHIFT_MIN REPRODUCED_REL_MAX
#define DASH            STR_LIT("\xe2\x80\x93")

struct str follow_text(struct page *page, const struct verdict_counts *counts)
{
    size_t n = counts->of[AUDIT_EXACT] + counts->of[AUDIT_MATCH] - counts->n_derived;
    struct str text = text_of(page, "%zu follow from the published logs", n);
    if (counts->n_derived) {
        text = text_of(page, "%.*s, %zu from other published numbers", STR_ARG(text),
                       counts->n_derived);
    }
    if (counts->n_proposed) {
        text = text_of(page, "%.*s, %zu of them by a proposed format", STR_ARG(text),
                       counts->n_proposed);
    }
    if (counts->n_inferred) {
        text = text_of(page, "%.*s, %zu of them by rules inferred from %zu numbers", STR_ARG(text),
                       counts->n_inferred, counts->n_asked);
    }
    return text;
}

const struct verdict_look VERDICT_LOOKS[AUDIT_NO_LOG + 1] = {
    [AUDIT_EXACT] = {"=", "exact", "equal at the printed digits"},
    [AUDIT_MATCH] = {"\xe2\x89\x88", "match", "within 0.05 %"},
    [AUDIT_DIFFERS] = {"\xe2\x89\xa0", "differs", "the logs give a different number"},
    [AUDIT_NO_LOG] = {"\xe2\x80\x93", "no log", "no log was published"}};

static void add_verdict(struct page *page, enum audit_verdict verdict)
{
    page_verdict(page, AUDIT_VERDICT_NAMES[verdict], VERDICT_LOOKS[verdict].icon,
                 VERDICT_LOOKS[verdict].word);
}

static struct str row_text(struct page *page, const struct report_case *c)
{
    struct str gpus = c->gpus    ? gpus_text(page, c->gpus)
                      : c->nodes ? STR_LIT("CPUs")
                                 : STR_LIT("GPUs not printed");
    return c->batch_per_gpu ? text_of(page, "%.*s, batch %" PRId64, STR_ARG(gpus), c->batch_per_gpu)
                            : text_of(page, "%.*s, batch not printed", STR_ARG(gpus));
}

struct str case_text(struct page *page, const struct report_case *c)
{
    return text_of(page, "%.*s, %.*s%s%.*s", STR_ARG(c->stack->label), STR_ARG(row_text(page, c)),
                   c->variant.len ? ", " : "", STR_ARG(c->variant));
}

static const char *const METRIC_WORDS[] = {
    [METRIC_THROUGHPUT] = "throughput", [METRIC_RUN_THROUGHPUT] = "throughput of one run",
    [METRIC_SPEEDUP] = "speed-up",      [METRIC_TIME_TO_TRAIN] = "time to train",
    [METRIC_ACCURACY] = "accuracy",     [METRIC_OTHER] = "another figure"};

/* Where the rule counts runs that succeeded, a cell is the result of several runs. */
static bool is_results(const struct report_audit *audit)
{
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct rule *rule = audit->cells[idx].by;
        if (rule && rule->success.fact.ptr) {
            return true;
        }
    }
    return false;
}

/* ---- what one should know first ---- */

static void add_cell_surprise(struct page *page, const struct cell_audit *ca)
{
    HTML(page->out, "<li><b>{} {}, {}{}</b>: {} published, {} by {} ({}). {}</li>\n",
         ca->of_case->model, ca->of_case->precision, case_text(page, ca->of_case),
         ca->cell->metric == METRIC_THROUGHPUT
             ? STR_EMPTY
             : text_of(page, ", %s", METRIC_WORDS[ca->cell->metric]),
         ca->cell->printed, cell_number_words(&page->arena, ca),
         ca->cell->derive == DERIVE_NONE ? STR_LIT("its log")
                                         : STR_LIT("the other published numbers"),
         percent_text(page, ca->rel_diff), ca->note);
}

static void add_row_surprise(struct page *page, const struct like_row *row)
{
    HTML(page->out,
         "<li><b>{} {}, {} against {}, {}</b>: printed {}\xc3\x97, by one rule for both "
         "{}\xc3\x97.</li>\n",
         row->a->of_case->model, row->a->of_case->precision, row->a->of_case->stack->label,
         row->b->of_case->stack->label, gpus_text(page, row->a->of_case->gpus),
         fixed_text(page, row->published_ratio, 2), fixed_text(page, row->ratio, 2));
}

/* The place of the largest key, which is taken out; n where none is above 0. */
static size_t take_largest(double *keys, size_t n)
{
    size_t largest = n;
    for (size_t idx = 0; idx < n; idx++) {
        if (keys[idx] > 0 && (largest == n || keys[idx] > keys[largest])) {
            largest = idx;
        }
    }
    if (largest < n) {
        keys[largest] = 0;
    }
    return largest;
}

static void add_surprises(struct page *page, const struct report_audit *audit)
{
    double *cells = arena_array(&page->arena, double, audit->n_cells + 1);
    double *rows = arena_array(&page->arena, double, audit->n_rows + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *ca = &audit->cells[idx];
        cells[idx] =
            ca->verdict == AUDIT_DIFFERS && isfinite(ca->rel_diff) ? fabs(ca->rel_diff) : 0;
        n += cells[idx] > 0;
    }
    for (size_t idx = 0; idx < audit->n_rows; idx++) {
        const struct like_row *row = &audit->rows[idx];
        double shift = fabs(log(row->ratio / row->published_ratio));
        rows[idx] = shift >= RATIO_SHIFT_MIN && isfinite(shift) && !row->note.len ? shift : 0;
        n += rows[idx] > 0;
    }
    if (n == 0) {
        strbuf_add_z(page->out, "<p>No surprises: nothing that has a log differs.</p>\n");
        return;
    }
    strbuf_add_z(page->out, "<h4>The largest differences, published against recomputed</h4>\n"
                            "<ul class=\"surprises\">\n");
    for (size_t at = 0, idx; at < SURPRISES_MAX; at++) {
        if ((idx = take_largest(cells, audit->n_cells)) < audit->n_cells) {
            add_cell_surprise(page, &audit->cells[idx]);
        }
    }
    for (size_t at = 0, idx; at < SURPRISES_MAX; at++) {
        if ((idx = take_largest(rows, audit->n_rows)) < audit->n_rows) {
            add_row_surprise(page, &audit->rows[idx]);
        }
    }
    strbuf_add_z(page->out, "</ul>\n");
}

static void add_summary(struct page *page, const struct report_audit *audit)
{
    struct verdict_counts counts = {0};
    size_t n_of[LEVEL_ERROR + 1] = {0};
    count_verdicts(audit, &counts);
    for (size_t idx = 0; idx < audit->findings.n; idx++) {
        n_of[audit->findings.items[idx].level]++;
    }
    page_section(page, "summary",
                 text_of(page, "Of %zu published number%s, %.*s", counts.n, plural_s(counts.n),
                         STR_ARG(follow_text(page, &counts))));
    strbuf_add_z(page->out, "<ul class=\"tiles\">");
    for (size_t idx = 0; idx <= AUDIT_NO_LOG; idx++) {
        HTML(page->out, "<li class=\"{}\"><b>{}</b>",
             str_of(AUDIT_VERDICT_NAMES[(enum audit_verdict)idx]),
             count_text(page, counts.of[idx]));
        add_verdict(page, (enum audit_verdict)idx);
        HTML(page->out, "<br><span>{}</span></li>", str_of(VERDICT_LOOKS[idx].words));
    }
    strbuf_add_z(page->out, "</ul>\n");
    add_surprises(page, audit);
    HTML(page->out,
         "<p><a href=\"#{}-findings\">Findings</a>: {} error{}, {} warning{}, {} note{}.</p>\n",
         audit->report->id, count_text(page, n_of[LEVEL_ERROR]),
         str_of(plural_s(n_of[LEVEL_ERROR])), count_text(page, n_of[LEVEL_WARNING]),
         str_of(plural_s(n_of[LEVEL_WARNING])), count_text(page, n_of[LEVEL_NOTE]),
         str_of(plural_s(n_of[LEVEL_NOTE])));
    page_section_end(page);
}

/* ---- how a number follows ---- */

/* A fold with the cell's logs, samples, window and arithmetic. */
static void add_how(struct page *page, const struct report *report, const struct cell_audit *ca,
                    const struct trace *how)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(HTML_BYTES_MAX);
    if (ca->n_logs == 0) {
        return;
    }
    strbuf_add_z(page->out, "<details class=\"how\"><summary>log, samples, arithmetic</summary>\n");
    for (size_t log = 0; log < ca->n_logs && log < LINKS_MAX; log++) {
        struct str below = report_log_path(report, ca->logs[log].path);
        strbuf_add_z(page->out, "<p>");
        page_link(page, address_file(&page->arena, &report->logs_source, below, 0), below);
        HTML(page->out, "<br>SHA-256 <code>{}</code></p>\n", ca->logs[log].sha256);
    }
    audit_out_how(&page->arena, report, ca, how, "", &text);
    HTML(page->out, "<pre>{}</pre></details>", strbuf_str(&text));
}

/* ---- cells ---- */

/* "proof contradicted: batch; not proven: gpus, nodes", and what the log is where it is not whole. */
static void add_proof(struct page *page, const struct cell_audit *ca)
{
    if (ca->verdict == AUDIT_NO_LOG) {
        return;
    }
    HTML(page->out, "<small class=\"proof\">{}", audit_proof_words(&page->arena, ca));
    if (ca->log_state != LOG_WHOLE) {
        strbuf_printf(page->out, "; log %s", LOG_STATE_NAMES[ca->log_state]);
    }
    if (ca->digits.ptr) {
        HTML(page->out, "; {}", ca->digits);
    }
    if (*cell_cut_words(ca)) {
        HTML(page->out, "; exact{}", str_of(cell_cut_words(ca)));
    }
    if (ca->is_proposed) {
        strbuf_add_z(page->out, "; by a proposed format");
    }
    if (ca->n_asked) {
        strbuf_printf(page->out, "; inferred: the rule gives %zu of %zu", ca->n_given, ca->n_asked);
    }
    strbuf_add_z(page->out, "</small>");
}

/* "mean of ips, skip 2", the id, and the note. */
static void add_rule(struct page *page, const struct cell_audit *ca)
{
    CLEANUP(strbuf) struct strbuf words = STRBUF(4096);
    if (ca->by) {
        rule_describe(ca->by, &words);
        page_cell(page, strbuf_str(&words));
        HTML(page->out, "<small><code>{}</code>, {}: {}</small>", ca->rule, ca->by->origin,
             ca->by->source);
    } else {
        page_cell(page, STR_EMPTY);
        HTML(page->out, "<code>{}</code>", ca->rule);
    }
    page_note(page, ca->note);
}

/* How sure a mean of several logs is; empty where the number is none. */
static struct str interval_text(struct page *page, const struct cell_audit *ca,
                                const struct trace *how)
{
    bool is_mean = ca->by && (ca->bound->takes_mean || ca->by->repeats == REPEATS_MEAN);
    double *values = arena_array(&page->arena, double, ca->n_logs + 1);
    double sum = 0;
    for (size_t idx = 0; idx < ca->n_logs; idx++) {
        values[idx] = how->logs[idx].value;
        sum += values[idx];
    }
    return is_mean && ca->n_logs > 1 && isfinite(sum) && sum > 0
               ? text_of(page, "± %.2g %%: the 95 %% interval of the mean of %zu logs",
                         100 * stats_ci95(values, ca->n_logs) * (double)ca->n_logs / sum,
                         ca->n_logs)
               : STR_EMPTY;
}

static void add_cell(struct page *page, const struct report *report, const struct cell_audit *ca,
                     bool is_result)
{
    const struct report_case *c = ca->of_case;
    struct str number = is_result ? fixed_text(page, ca->recomputed, RESULT_DECIMALS)
                                  : cell_number_words(&page->arena, ca);
    struct trace how;
    trace_of(&page->arena, ca, &how);
    page_row(page, arena_printf(&page->arena, "cell row-%s", AUDIT_VERDICT_NAMES[ca->verdict]),
             ca->cell->id);
    page_cell(page, c->stack->label);
    page_note(page, is_result ? c->environment->title : c->variant);
    if (ca->cell->footnote.ptr) {
        HTML(page->out, "<small class=\"foot\">{}</small>", ca->cell->footnote);
    }
    HTML(page->out, "<small class=\"phone\">{}</small>", row_text(page, c));
    PAGE_CELLS(page, c->nodes ? text_of(page, "%" PRId64, c->gpus) : DASH,
               c->batch_per_gpu ? text_of(page, "%" PRId64, c->batch_per_gpu) : DASH,
               is_result ? STR_EMPTY : ca->cell->printed);
    if (is_result) {
        HTML(page->out, "<data value=\"{}\">{}</data>", ca->cell->printed,
             fixed_text(page, ca->cell->published, RESULT_DECIMALS));
    }
    page_cell(page, number);
    page_note(page, interval_text(page, ca, &how));
    page_cell(page, STR_EMPTY);
    add_verdict(page, ca->verdict);
    if (number.len) { /* on a phone these three stand in one column */
        HTML(page->out, "<small class=\"phone\">{}, logs {}</small>",
             percent_text(page, ca->rel_diff), number);
    }
    add_proof(page, ca);
    page_cell(page, percent_text(page, ca->rel_diff));
    add_rule(page, ca);
    add_how(page, report, ca, &how);
}

/* Cells of one table stand together: same model, heading and metric; of results: same model. */
static bool same_table(const struct cell_audit *a, const struct cell_audit *b, bool is_results)
{
    return str_eq(a->of_case->model, b->of_case->model) &&
           (is_results ||
            (str_eq(a->cell->table, b->cell->table) && a->cell->metric == b->cell->metric));
}

static void add_table(struct page *page, const struct report_audit *audit, size_t first,
                      bool is_results)
{
    const struct cell_audit *head = &audit->cells[first];
    size_t n = 0;
    size_t n_hold = 0;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        bool is_of = same_table(head, &audit->cells[idx], is_results);
        if (is_of && idx < first) {
            return; /* stands there already */
        }
        n += is_of;
        n_hold += is_of && (audit->cells[idx].verdict == AUDIT_EXACT ||
                            audit->cells[idx].verdict == AUDIT_MATCH);
    }
    if (is_results) {
        HTML(page->out, "<details><summary>{}: {} of {} results follow from their runs</summary>\n",
             head->of_case->model, count_text(page, n_hold), count_text(page, n));
    }
    page_table(page,
               text_of(page, "%.*s, %.*s: %s%s%.*s", STR_ARG(head->of_case->model),
                       STR_ARG(is_results ? STR_LIT("results and their runs") : head->cell->table),
                       METRIC_WORDS[head->cell->metric], head->cell->unit.len ? " in " : "",
                       STR_ARG(head->cell->unit)),
               "Framework|n desk:GPUs|n desk:Batch per GPU|n:Published|n desk:Recomputed|Verdict|"
               "n desk:Difference|rule:Rule");
    for (size_t idx = first; idx < audit->n_cells; idx++) {
        if (same_table(head, &audit->cells[idx], is_results)) {
            add_cell(page, audit->report, &audit->cells[idx], is_results);
        }
    }
    page_table_end(page);
    strbuf_add_z(page->out, is_results ? "</details>\n" : "");
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

static void add_cells(struct page *page, const struct report_audit *audit, bool is_results)
{
    page_section(page, "cells",
                 is_results ? STR_LIT("Results and their runs")
                            : STR_LIT("Published against recomputed"));
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        add_table(page, audit, idx, is_results);
    }
    add_not_printed(page, audit->report);
    page_section_end(page);
}

/* ---- like for like ---- */

static void add_like_row(struct page *page, const struct like_row *row)
{
    const struct report_case *a = row->a->of_case;
    const struct report_case *b = row->b->of_case;
    page_row(page, "like", STR_EMPTY);
    page_cell(page, text_of(page, "%.*s %.*s", STR_ARG(a->model), STR_ARG(a->precision)));
    page_note(page, text_of(page, "%.*s, batch %" PRId64 " against %" PRId64 "%s%.*s",
                            STR_ARG(gpus_text(page, a->gpus)), a->batch_per_gpu, b->batch_per_gpu,
                            b->variant.len ? ", " : "", STR_ARG(b->variant)));
    PAGE_CELLS(
        page,
        text_of(page, "%.*s against %.*s", STR_ARG(a->stack->label), STR_ARG(b->stack->label)),
        fixed_text(page, row->value_a, 2), fixed_text(page, row->value_b, 2),
        text_of(page, "%.2f\xc3\x97", row->published_ratio),
        isfinite(row->ratio) ? text_of(page, "%.2f\xc3\x97", row->ratio) : STR_LIT("no log"),
        row->rule);
    page_note(page, row->note);
}

static void add_like(struct page *page, const struct report_audit *audit)
{
    if (audit->n_rows == 0) {
        return;
    }
    page_section(page, "like", STR_LIT("Like for like"));
    page_soft(page, STR_LIT("One statistic over one window, applied to both logs of a row, next to "
                            "the ratio of the printed numbers."));
    page_table(page, STR_LIT("Ratio of two frameworks by one rule for both"),
               "Row|Frameworks|n:First|n:Second|n:Printed ratio|n:By one rule|rule:Rule, and "
               "what still differs");
    for (size_t idx = 0; idx < audit->n_rows; idx++) {
        add_like_row(page, &audit->rows[idx]);
    }
    page_table_end(page);
    page_section_end(page);
}

/* ---- the page ---- */

/* The path of logs is the folder of a clone, and nothing in the repository. */
static void add_source(struct page *page, const char *what, const struct source_ref *source,
                       bool is_clone)
{
    if (!source->repository.ptr) {
        return;
    }
    HTML(page->out, "<p class=\"meta\">{}: {}", str_of(what), source->repository);
    if (source->commit.ptr) {
        strbuf_add_z(page->out, " at ");
        page_link(page, address_commit(&page->arena, source), source->commit);
    }
    if (source->path.ptr && !is_clone) {
        strbuf_add_z(page->out, ", ");
        page_link(page, address_file(&page->arena, source, source->path, 0), source->path);
    }
    HTML(page->out, "{}{}</p>\n", source->date.ptr ? STR_LIT(", ") : STR_EMPTY, source->date);
}

/* What the summary leaves out, each section with its place in the list of them. */
static void add_sections(struct page *page, const struct report_audit *audit)
{
    bool has_results = is_results(audit);
    if (audit->n_cells > 0) {
        add_cells(page, audit, has_results);
    }
    if (audit->n_cells > 0 && !has_results) {
        add_like(page, audit);
        add_scaling(page, audit);
        add_series(page, audit);
    }
    add_findings(page, audit);
    add_conditions(page, audit->report);
}

static void add_report(struct page *page, const struct report_audit *audit, bool is_alone)
{
    CLEANUP(strbuf) struct strbuf sections = STRBUF(HTML_BYTES_MAX);
    CLEANUP(strbuf) struct strbuf nav = STRBUF(HTML_BYTES_MAX);
    const struct report *report = audit->report;
    struct strbuf *out = page->out;
    page->prefix = report->id;
    HTML(out, "<h2 id=\"{}\" class=\"{}\">{}</h2>\n", report->id,
         is_alone ? STR_LIT("sub") : STR_LIT("title"), is_alone ? report->id : report->title);
    add_source(page, "Report", &report->source, false);
    add_source(page, "Logs", &report->logs_source, true);
    HTML(out, "<p class=\"meta\">Manifest: <code>{}</code></p>\n", report->path);
    if (audit->n_cells > 0) {
        add_summary(page, audit);
    }
    page->out = &sections;
    page->nav = &nav;
    add_sections(page, audit);
    page->out = out;
    page->nav = NULL;
    HTML(out, "<nav aria-label=\"Parts of {}\"><ul>", report->id);
    strbuf_add_str(out, strbuf_str(&nav));
    strbuf_add_z(out, "</ul></nav>\n");
    strbuf_add_str(out, strbuf_str(&sections));
}

/* What the counts below it mean. */
static void add_meaning(struct page *page, const struct report_audit *audit)
{
    struct verdict_counts counts = {0};
    count_verdicts(audit, &counts);
    HTML(page->out, "<p class=\"headline\">{}</p>\n", audit_meaning(&page->arena, &counts));
}

static void add_overview_row(struct page *page, const struct verdict_counts *counts)
{
    page_cell(page, count_text(page, counts->n));
    for (size_t verdict = 0; verdict <= AUDIT_NO_LOG; verdict++) {
        page_cell(page, count_text(page, counts->of[verdict]));
    }
}

/* Of several reports: the result in one sentence, then a row for each. */
static void add_overview(struct page *page, const struct report_audit *audits, size_t n)
{
    struct verdict_counts all = {0};
    page_section(page, "reports", STR_LIT("All reports"));
    page_table(page,
               STR_LIT("How many published numbers follow from the published logs, and ratios and "
                       "means from other published numbers"),
               "Report|n:Numbers|n desk:Exact|n desk:Match|n:Differs|n:No log");
    for (size_t idx = 0; idx < n; idx++) {
        struct verdict_counts counts = {0};
        count_verdicts(&audits[idx], &counts);
        page_row(page, "", STR_EMPTY);
        page_cell(page, STR_EMPTY);
        HTML(page->out, "<a href=\"#{}\">{}</a>", audits[idx].report->id, audits[idx].report->id);
        add_overview_row(page, &counts);
        count_verdicts(&audits[idx], &all);
    }
    page_row(page, "", STR_EMPTY);
    page_cell(page, STR_LIT("all"));
    add_overview_row(page, &all);
    page_table_end(page);
    page_section_end(page);
}

void page_audit(struct strbuf *out, const struct report_audit *audits, size_t n)
{
    struct page page = {.out = out};
    ASSERT(n > 0);
    page_begin(&page, n == 1 ? audits[0].report->title
                             : STR_LIT("Published performance reports against their logs"));
    if (n == 1) {
        add_meaning(&page, &audits[0]);
    } else {
        struct verdict_counts all = {0};
        for (size_t idx = 0; idx < n; idx++) {
            count_verdicts(&audits[idx], &all);
        }
        HTML(out,
             "<p class=\"headline\">Of {} published numbers in {} reports, {}, {} differ{} and {} "
             "cannot be checked.</p>\n",
             count_text(&page, all.n), count_text(&page, n), follow_text(&page, &all),
             count_text(&page, all.of[AUDIT_DIFFERS]),
             all.of[AUDIT_DIFFERS] == 1 ? STR_LIT("s") : STR_EMPTY,
             count_text(&page, all.of[AUDIT_NO_LOG]));
    }
    strbuf_add_z(out, "<p>Every published number, computed again from the published logs by the "
                      "rule that the manifest names.</p>\n<details class=\"words\"><summary>What "
                      "the words mean</summary><dl>\n");
    for (size_t idx = 0; idx < N_AUDIT_WORDS; idx++) {
        HTML(out, "<dt>{}</dt><dd>{}</dd>\n", str_of(AUDIT_WORDS[idx].word),
             str_of(AUDIT_WORDS[idx].meaning));
    }
    strbuf_add_z(out, "</dl></details></header>\n<main id=\"main\">\n");
    if (n > 1) {
        add_overview(&page, audits, n);
    }
    for (size_t idx = 0; idx < n; idx++) {
        add_report(&page, &audits[idx], n == 1);
    }
    page_end(&page);
}
