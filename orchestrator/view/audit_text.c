/* SPDX-License-Identifier: Apache-2.0 */
/* The audit for people, as text, Markdown or a page: a table a report and heading, what the search for other rules found, like
   for like, findings; on the page also how each number follows. */
#include "base/base.h"

#include <math.h>

#include "base/table.h"
#include "judge/trace.h"
#include "view/address.h"
#include "view/audit_out.h"
#include "view/explain_out.h"
#include "view/findings_out.h"

#define LINKS_MAX 3 /* logs of a cell that are linked; all are named */
#define COLUMNS                                                                                    \
    "model|framework|variant|>GPUs|>batch|metric|>published|>recomputed|>difference|verdict|proof" \
    "|log|rule"

static void add_cell(struct arena *arena, struct table *table, const struct cell_audit *a,
                     bool is_verbose)
{
    const struct report_case *c = a->of_case;
    TABLE_ADD(
        table, c->model, c->stack->label, c->variant,
        table_text_if(table, c->nodes > 0, "%" PRId64, c->gpus),
        table_text_if(table, c->batch_per_gpu > 0, "%" PRId64, c->batch_per_gpu),
        a->cell->metric_name,
        table_text(table, "%.*s%s", STR_ARG(a->cell->printed), a->cell->footnote.ptr ? " *" : ""),
        isnan(a->recomputed) ? STR_LIT("-") : cell_number_words(arena, a),
        isnan(a->rel_diff) ? STR_LIT("-") : cell_diff_words(arena, a),
        table_text(table, "%s%s", cell_verdict_words(a), cell_cut_words(a)),
        str_of(PROOF_NAMES[a->proof]), str_of(LOG_STATE_NAMES[a->log_state]),
        a->rule.ptr ? cell_rule_words(arena, a) : STR_LIT("-"));
    if (is_verbose) {
        table_add(table, a->cell->id);
    }
}

static bool is_first_of_table(const struct report_audit *audit, size_t idx)
{
    for (size_t before = 0; before < idx; before++) {
        if (str_eq(audit->cells[before].cell->table, audit->cells[idx].cell->table)) {
            return false;
        }
    }
    return true;
}

/* What a table says beside its numbers, and where it has none. */
static void write_beside(struct page *page, const struct report_audit *audit, struct str heading)
{
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell *cell = audit->cells[idx].cell;
        if (cell->footnote.ptr && str_eq(cell->table, heading)) {
            page_line(page, 0,
                      text_of(page, "* %.*s, %.*s: %.*s", STR_ARG(cell->printed),
                              STR_ARG(audit->cells[idx].of_case->stack->label),
                              STR_ARG(cell->footnote)),
                      STR_EMPTY);
        }
    }
    for (size_t idx = 0; idx < audit->report->n_not_printed; idx++) {
        const struct not_printed *at = &audit->report->not_printed[idx];
        if (str_eq(at->table, heading)) {
            page_line(page, 0,
                      text_of(page, "%.*s, %.*s: printed as \"%.*s\" (line %" PRId64 ")",
                              STR_ARG(at->row), STR_ARG(at->column), STR_ARG(at->printed),
                              at->line),
                      STR_EMPTY);
        }
    }
}

static void write_table(struct page *page, const struct report_audit *audit, struct str heading,
                        bool is_verbose)
{
    CLEANUP(table) struct table table = table_of(is_verbose ? COLUMNS "|cell" : COLUMNS);
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        if (str_eq(audit->cells[idx].cell->table, heading)) {
            add_cell(&table.arena, &table, &audit->cells[idx], is_verbose);
        }
    }
    page_heading(page, 3, STR_EMPTY, heading);
    page_table(page, heading, &table);
    write_beside(page, audit, heading);
}

void audit_out_reasons(struct arena *arena, const struct cell_audit *a, const char *before,
                       const char *after, struct strbuf *out)
{
    const struct explanation *e = &a->explanation;
    for (size_t idx = 0; idx < a->cell->n_also; idx++) {
        const struct also_printed *also = &a->cell->also[idx];
        strbuf_printf(out, "%sit is printed as %.*s in %.*s%s", before, STR_ARG(also->printed),
                      STR_ARG(also->source.path), after);
    }
    if (a->note.len) {
        strbuf_printf(out, "%s%.*s%s", before, STR_ARG(a->note), after);
    }
    if (!a->note.len || a->proof == PROOF_CONTRADICTED) { /* else the note is about other rules */
        strbuf_printf(
            out, "%s%zu of %zu other rules give it%s%s", before, e->n_matching, e->n_tried,
            explains(e) ? arena_printf(arena, ", and %.*s gives its whole group", STR_ARG(e->best))
                        : "",
            after);
    }
}

static void write_differing(const struct report_audit *audit, bool is_brief, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    bool has_any = false;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *a = &audit->cells[idx];
        if (a->verdict != AUDIT_DIFFERS && (is_brief || a->explanation.n_tried == 0)) {
            continue;
        }
        strbuf_printf(out, "%s  %s: %s printed, and %s gives %s\n",
                      has_any || is_brief ? ""
                                          : "\nnumbers that do not follow to the digit, and why\n",
                      a->cell->id.ptr, a->cell->printed.ptr,
                      a->cell->derive == DERIVE_NONE ? "its log" : "what it is made of",
                      cell_number_words(&arena, a).ptr);
        has_any = true;
        if (!is_brief) {
            audit_out_reasons(&arena, a, "      ", "\n", out);
        }
    }
}

void count_verdicts(const struct report_audit *audit, struct verdict_counts *counts)
{
    counts->n += audit->n_cells;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *a = &audit->cells[idx];
        bool is_good = a->verdict == AUDIT_EXACT || a->verdict == AUDIT_MATCH;
        counts->of[a->verdict]++;
        counts->n_full += is_good && a->proof == PROOF_FULL;
        counts->n_partial += is_good && a->proof == PROOF_PARTIAL;
        counts->n_derived += is_good && a->cell->derive != DERIVE_NONE;
        counts->n_proposed += is_good && a->is_proposed;
        counts->n_inferred += is_good && a->n_asked > 0;
        counts->n_asked += a->n_asked > 0;
    }
}

/* What the counts mean, in a sentence or two. */
static struct str meaning_of(struct arena *arena, const struct verdict_counts *counts)
{
    size_t n_good = counts->of[AUDIT_EXACT] + counts->of[AUDIT_MATCH];
    size_t n_checked = counts->n - counts->of[AUDIT_NO_LOG];
    const char *meaning = counts->n == 0
                              ? "The report publishes no numbers: its cases are measured."
                          : n_checked == 0 ? "Nobody can check these numbers: no log is published."
                          : n_good == n_checked ? "Every number that has a log follows from it."
                          : 2 * n_good >= n_checked
                              ? "Most of the numbers follow from the published logs, and some do "
                                "not."
                              : "Most of the numbers do not follow from the published logs.";
    return str_printf(arena, "%s%s", meaning,
                      n_checked && n_checked < counts->n ? " For the others no log is published."
                                                         : "");
}

const struct audit_word AUDIT_WORDS[N_AUDIT_WORDS] = {
    {"exact",
     "equal at the printed digits; \"as truncated\" where rounding would give another digit"},
    {"match", "within 0.05 %"},
    {"differs", "the log gives another number, or is of another row"},
    {"no_log", "no log was published from which the number follows"},
    {"proof full",
     "the log states all that the row says of itself: GPUs, nodes, precision, batch, model"},
    {"proof partial", "nothing in the log differs from the row, but it does not state all of it"},
    {"proof contradicted",
     "the log states something else than the row, so that it is of another row"},
    {"not proven", "the log does not state this of the row; it says nothing against it"},
    {"log", "whether the log is whole: one run from its beginning to its end"},
    {"rule", "how the lines of the log become the number"},
    {"inferred",
     "nobody says how the number was made: the rule was chosen for the numbers it gives"},
    {"group", "numbers that one rule must give together, for their logs were made alike"},
    {"not alike",
     "two rows did not do the same work, so that their ratio compares more than speed"},
};

static void write_counts(const char *what, const struct verdict_counts *c, struct strbuf *out)
{
    strbuf_printf(
        out,
        "%s%zu cell%s: %zu exact, %zu match, %zu differ, %zu without log; of the exact and "
        "matching %zu are proven in full, %zu in part",
        what, c->n, plural_s(c->n), c->of[AUDIT_EXACT], c->of[AUDIT_MATCH], c->of[AUDIT_DIFFERS],
        c->of[AUDIT_NO_LOG], c->n_full, c->n_partial);
    if (c->n_proposed) {
        strbuf_printf(out, "; %zu stand on a proposed format", c->n_proposed);
    }
}

static bool is_unproven_by(const struct cell_audit *a, size_t fact, struct str why)
{
    return a->n_logs > 0 && (a->verdict == AUDIT_EXACT || a->verdict == AUDIT_MATCH) &&
           a->identity.items[fact].state == ID_UNPROVEN && str_eq(a->identity.items[fact].why, why);
}

/* What the logs of exact and matching cells do not show, each reason once. */
static void write_unproven(const struct report_audit *audit, struct strbuf *out)
{
    bool has_any = false;
    for (size_t fact = 0; fact < IDENTITY_FACTS; fact++) {
        for (size_t idx = 0; idx < audit->n_cells; idx++) {
            struct str why = audit->cells[idx].identity.items[fact].why;
            size_t first = 0;
            size_t n = 0;
            if (!is_unproven_by(&audit->cells[idx], fact, why)) {
                continue;
            }
            while (!is_unproven_by(&audit->cells[first], fact, why)) {
                first++;
            }
            for (size_t cell = 0; first == idx && cell < audit->n_cells; cell++) {
                n += is_unproven_by(&audit->cells[cell], fact, why);
            }
            if (n > 0) {
                strbuf_printf(out, "%s  %s of %zu cell%s: %.*s\n",
                              has_any ? "" : "\nnot proven by the logs of cells that hold\n",
                              IDENTITY_NAMES[(enum identity_fact)fact], n, n == 1 ? "" : "s",
                              STR_ARG(why));
                has_any = true;
            }
        }
    }
}

/* The digits of cells that are close but not equal. */
static void write_matches(const struct report_audit *audit, struct strbuf *out)
{
    bool has_any = false;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *a = &audit->cells[idx];
        if (a->digits.ptr) {
            strbuf_printf(out, "%s  %s: %s\n", has_any ? "" : "\nnear, but not equal\n",
                          a->cell->id.ptr, a->digits.ptr);
            has_any = true;
        }
    }
}

static void write_like(struct page *page, const struct report_audit *audit)
{
    static const char HEADING[] = "like for like: one rule for both frameworks of a row";
    CLEANUP(table)
    struct table table =
        table_of("row|against|>rate|>other's|>ratio|>published|rule for both|still differs");
    for (size_t idx = 0; idx < audit->n_rows; idx++) {
        const struct like_row *row = &audit->rows[idx];
        TABLE_ADD(&table, row->a->of_case->id, row->b->of_case->stack->label,
                  table_text_if(&table, !isnan(row->value_a), "%.1f", row->value_a),
                  table_text_if(&table, !isnan(row->value_b), "%.1f", row->value_b),
                  table_text_if(&table, !isnan(row->ratio), "%.3f", row->ratio),
                  table_text_if(&table, !isnan(row->published_ratio), "%.3f", row->published_ratio),
                  row->rule, row->note);
    }
    page_heading(page, 3, STR_EMPTY, str_of(HEADING));
    if (audit->n_rows) {
        page_table(page, str_of(HEADING), &table);
    } else {
        page_line(page, 0, STR_LIT("no row of two frameworks"), STR_EMPTY);
    }
}

/* The audit's own in full; what lint finds in the manifest is counted, as `reperf lint` shows it, or told. */
static void write_findings(struct page *page, const struct report_audit *audit, bool wants_lint)
{
    struct findings own = {.items = audit->findings.items, .n = audit->n_from_logs};
    struct findings lint = {.items = audit->findings.items + own.n, .n = audit->findings.n - own.n};
    const char *heading = "in the manifest, without its logs";
    if (own.n) {
        strbuf_add_char(page->out, '\n');
        findings_out_text(&own, page->is_colored, page->out);
    }
    if (lint.n && wants_lint) {
        page_heading(page, 3, STR_EMPTY, str_of(heading));
        findings_out_text(&lint, page->is_colored, page->out);
    } else if (lint.n) {
        strbuf_printf(page->out, "\n%s: ", heading);
        findings_out_counts(&lint, page->out);
        strbuf_printf(page->out, "; reperf lint %s shows them\n", audit->report->id.ptr);
    }
}

/* Where it was printed and logged. */
static void write_sources(struct page *page, const struct report *report)
{
    const struct source_ref *printed = &report->source;
    const struct source_ref *logs = &report->logs_source;
    bool has_page = report->n_cases > 0 && !report->cases[0].matched.ptr;
    if (printed->repository.ptr) {
        page_line(page, 2,
                  text_of(page, "Published in %.*s, %.*s", STR_ARG(printed->repository),
                          STR_ARG(printed->date)),
                  has_page ? address_file(&page->arena, printed, printed->path, 0)
                           : address_commit(&page->arena, printed));
    }
    if (logs->repository.ptr) {
        page_line(
            page, 2,
            text_of(page, "Its logs: %.*s, %.*s", STR_ARG(logs->repository), STR_ARG(logs->date)),
            address_commit(&page->arena, logs));
    }
}

static void write_counts_of(struct page *page, const struct report_audit *audit, const char *what,
                            const struct verdict_counts *counts)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(4096);
    write_counts(what, counts, &text);
    strbuf_add_str(&text, audit_inferred_words(&page->arena, audit));
    page_line(page, 0, strbuf_str(&text), STR_EMPTY);
}

static void write_tables(struct page *page, const struct report_audit *audit, bool is_verbose)
{
    for (size_t cell = 0; cell < audit->n_cells; cell++) {
        if (is_first_of_table(audit, cell)) {
            write_table(page, audit, audit->cells[cell].cell->table, is_verbose);
        }
    }
}

/* What the search for other rules found, what is near, and what is not proven. */
static void write_reasons(struct page *page, const struct report_audit *audit)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(page->out->cap_bytes);
    write_differing(audit, false, &text);
    write_matches(audit, &text);
    write_unproven(audit, &text);
    page_lines(page, strbuf_str(&text));
}

static void write_text_of(struct page *page, const struct report_audit *audit,
                          const struct audit_text_opts *opts)
{
    struct verdict_counts counts = {0};
    count_verdicts(audit, &counts);
    if (opts->is_brief && counts.n == 0) {
        page_line(page, 0, STR_LIT("no published numbers"), STR_EMPTY);
        return;
    }
    if (opts->is_brief) {
        write_counts_of(page, audit, "", &counts);
        write_differing(audit, true, page->out);
        strbuf_add_z(page->out, "findings: ");
        findings_out_counts(&audit->findings, page->out);
        strbuf_printf(page->out, "; reperf audit %s shows them, and each cell\n",
                      audit->report->id.ptr);
        return;
    }
    write_tables(page, audit, opts->level == TEXT_VERBOSE);
    page_lines(page, STR_LIT("\n"));
    write_counts_of(page, audit, "", &counts);
    write_reasons(page, audit);
    if (opts->want_like) {
        write_like(page, audit);
    }
    write_findings(page, audit, opts->level == TEXT_VERBOSE);
}

static void write_title(struct page *page, const struct report *report)
{
    page_heading(page, 2, report->id,
                 text_of(page, "%.*s: %.*s", STR_ARG(report->id), STR_ARG(report->title)));
}

/* What is of level error. */
static void write_errors(struct page *page, const struct report_audit *audit)
{
    struct findings errors = {.items =
                                  arena_array(&page->arena, struct finding, audit->findings.n + 1)};
    for (size_t idx = 0; idx < audit->findings.n; idx++) {
        if (audit->findings.items[idx].level == LEVEL_ERROR) {
            errors.items[errors.n++] = audit->findings.items[idx];
        }
    }
    if (errors.n) {
        write_title(page, audit->report);
        findings_out(page, &errors);
    }
}

static void write_summary(const struct audit_set *set, struct strbuf *out)
{
    struct verdict_counts all = {0};
    size_t n_of[LEVEL_ERROR + 1] = {0};
    for (size_t idx = 0; idx < set->n; idx++) {
        count_verdicts(&set->items[idx], &all);
        for (int level = LEVEL_NOTE; level <= LEVEL_ERROR; level++) {
            n_of[level] += findings_count(&set->items[idx].findings, (enum finding_level)level);
        }
    }
    strbuf_add_char(out, '\n');
    write_counts(set->n > 1 ? "all reports: " : "summary: ", &all, out);
    strbuf_add_z(out, "; findings: ");
    findings_out_levels(n_of, out);
    strbuf_add_char(out, '\n');
}

void audit_out_text(const struct audit_set *set, const struct audit_text_opts *opts,
                    struct strbuf *out)
{
    struct page page = {.out = out, .is_colored = opts->is_colored};
    size_t n_left_out = 0;
    for (size_t idx = 0; idx < set->n; idx++) {
        const struct report_audit *audit = &set->items[idx];
        n_left_out += audit->n_left_out;
        if (opts->level == TEXT_QUIET) {
            write_errors(&page, audit);
        } else {
            write_title(&page, audit->report);
            write_text_of(&page, audit, opts);
        }
    }
    if (n_left_out) {
        strbuf_printf(out, "\n%zu findings of cases that are not selected are left out\n",
                      n_left_out);
    }
    write_summary(set, out);
    page_end(&page);
}

/* ---- to be kept: who gets this file may have no other ---- */

struct str audit_follow_words(struct arena *arena, const struct verdict_counts *counts)
{
    size_t n = counts->of[AUDIT_EXACT] + counts->of[AUDIT_MATCH] - counts->n_derived;
    struct str text = str_printf(arena, "%zu follow from the published logs", n);
    if (counts->n_derived) {
        text = str_printf(arena, "%.*s, %zu from other published numbers", STR_ARG(text),
                          counts->n_derived);
    }
    if (counts->n_proposed) {
        text = str_printf(arena, "%.*s, %zu of them by a proposed format", STR_ARG(text),
                          counts->n_proposed);
    }
    if (counts->n_inferred) {
        text = str_printf(arena, "%.*s, %zu of them by rules inferred from %zu numbers",
                          STR_ARG(text), counts->n_inferred, counts->n_asked);
    }
    return text;
}

/* How each number follows, as `reperf explain` says it, and links to its logs: for a reader who cannot ask. In Markdown those
   that differ. */
static void write_hows(struct page *page, const struct report_audit *audit)
{
    const struct explain_opts opts = {.is_page = true};
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *a = &audit->cells[idx];
        CLEANUP(strbuf) struct strbuf text = STRBUF(HTML_BYTES_MAX);
        struct explain_cell of = {.report = audit->report, .cell = a};
        if (a->n_logs == 0 || (page->form != PAGE_HTML && a->verdict != AUDIT_DIFFERS)) {
            continue;
        }
        page_fold(page, "how", a->cell->id, false);
        for (size_t log = 0; log < a->n_logs && log < LINKS_MAX; log++) {
            struct str path = report_log_path(audit->report, a->logs[log].path);
            page_line(page, 2, path,
                      address_file(&page->arena, &audit->report->logs_source, path, 0));
        }
        trace_of(&page->arena, a, &of.how);
        explain_cell_text(&page->arena, &of, &opts, &text);
        page_lines(page, strbuf_str(&text));
        page_fold_end(page);
    }
}

static void write_kept(struct page *page, const struct report_audit *audit)
{
    struct verdict_counts counts = {0};
    count_verdicts(audit, &counts);
    write_title(page, audit->report);
    page_line(page, 0, meaning_of(&page->arena, &counts), STR_EMPTY);
    write_counts_of(page, audit, "", &counts);
    write_sources(page, audit->report);
    write_tables(page, audit, true);
    write_reasons(page, audit);
    if (audit->n_rows) {
        write_like(page, audit);
    }
    if (page->form == PAGE_HTML ? audit->n_cells > 0 : counts.of[AUDIT_DIFFERS] > 0) {
        page_heading(page, 3, STR_EMPTY,
                     page->form == PAGE_HTML ? STR_LIT("How each number follows")
                                             : STR_LIT("How the numbers that differ follow"));
        write_hows(page, audit);
    }
    page_heading(page, 3, STR_EMPTY, STR_LIT("Findings"));
    findings_out(page, &audit->findings);
}

/* A row a report, and a link to each. */
static void write_overview(struct page *page, const struct audit_set *set)
{
    CLEANUP(table)
    struct table table = table_of("report|>numbers|>exact|>match|>differs|>no log");
    for (size_t idx = 0; idx < set->n; idx++) {
        struct verdict_counts counts = {0};
        count_verdicts(&set->items[idx], &counts);
        table_add(&table, set->items[idx].report->id);
        table_addf(&table, "%zu", counts.n);
        for (size_t verdict = 0; verdict <= AUDIT_NO_LOG; verdict++) {
            table_addf(&table, "%zu", counts.of[verdict]);
        }
        page_line(page, 2, set->items[idx].report->title,
                  text_of(page, "#%.*s", STR_ARG(set->items[idx].report->id)));
    }
    page_table(page, STR_LIT("How many published numbers follow from the published logs"), &table);
}

void audit_out_page(const struct audit_set *set, bool is_markdown, struct strbuf *out)
{
    struct page page = {.form = is_markdown ? PAGE_MARKDOWN : PAGE_HTML, .out = out};
    struct verdict_counts all = {0};
    for (size_t idx = 0; idx < set->n; idx++) {
        count_verdicts(&set->items[idx], &all);
    }
    page_begin(&page,
               set->n == 1 ? set->items[0].report->title
                           : STR_LIT("Published performance reports against their logs"),
               text_of(&page,
                       "Of %zu published number%s in %zu report%s, %.*s, %zu differ and %zu cannot "
                       "be checked.",
                       all.n, plural_s(all.n), set->n, plural_s(set->n),
                       STR_ARG(audit_follow_words(&page.arena, &all)), all.of[AUDIT_DIFFERS],
                       all.of[AUDIT_NO_LOG]));
    if (!is_markdown && set->n > 1) {
        write_overview(&page, set);
    }
    for (size_t idx = 0; idx < set->n; idx++) {
        write_kept(&page, &set->items[idx]);
    }
    page_fold(&page, "words", STR_LIT("and what they mean"), false);
    for (size_t idx = 0; idx < N_AUDIT_WORDS; idx++) {
        page_line(&page, 2,
                  text_of(&page, "%s: %s", AUDIT_WORDS[idx].word, AUDIT_WORDS[idx].meaning),
                  STR_EMPTY);
    }
    page_fold_end(&page);
    page_end(&page);
}
