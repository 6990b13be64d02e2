/* SPDX-License-Identifier: Apache-2.0 */
/* The audit for people: a table a report and heading, what the search for other rules found, findings, like for like. */
#include "base/base.h"

#include <math.h>

#include "base/table.h"
#include "judge/trace.h"
#include "view/address.h"
#include "view/audit_out.h"
#include "view/findings_out.h"

#define BOLD            "\033[1m"
#define PLAIN           "\033[0m"
#define WORD_BYTES      16
#define ITEM_INDENT_MAX 4
#define SAMPLES_SHOWN   8
#define COLUMNS                                                                                    \
    "model|framework|variant|>GPUs|>batch|metric|>published|>recomputed|>difference|verdict|proof" \
    "|log|rule"
#define LIKE_HEADING "like for like: one rule for both frameworks of a row"

typedef void (*table_writer)(const struct table *table, struct strbuf *out);

struct paint { /* a verdict's colour: green, yellow, red, grey */
    enum audit_verdict verdict;
    const char *code;
};
static const struct paint PAINTS[] = {{AUDIT_EXACT, "\033[32m"},
                                      {AUDIT_MATCH, "\033[33m"},
                                      {AUDIT_DIFFERS, "\033[31m"},
                                      {AUDIT_NO_LOG, "\033[90m"}};

/* Copies `text`; with colours on, verdict words between blanks are coloured. */
static void add_painted(struct strbuf *out, struct str text, bool is_colored)
{
    struct str line;
    struct str rest = text;
    while (is_colored && str_next(&rest, '\n', &line)) {
        size_t at = line.len;
        const char *code = "";
        struct str word = STR_EMPTY;
        for (size_t idx = 0; idx < ARRAY_LEN(PAINTS) && at == line.len; idx++) {
            char padded[WORD_BYTES];
            snprintf(padded, sizeof(padded), " %s ", AUDIT_VERDICT_NAMES[PAINTS[idx].verdict]);
            int64_t found = str_find(line, str_of(padded));
            if (found >= 0) {
                at = (size_t)found;
                code = PAINTS[idx].code;
                word = str_sub(line, at, strlen(padded));
            }
        }
        strbuf_add_str(out, str_sub(line, 0, at));
        if (word.ptr) {
            strbuf_printf(out, "%s%.*s" PLAIN, code, STR_ARG(word));
            strbuf_add_str(out, str_sub(line, at + word.len, SIZE_MAX));
        }
        if (rest.ptr) {
            strbuf_add_char(out, '\n');
        }
    }
    if (!is_colored) {
        strbuf_add_str(out, text);
    }
}

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

/* What a table says beside its numbers, and where it has none; of one table, or with heading NULL of all, as a list of Markdown. */
static void write_beside(const struct report_audit *audit, struct str heading, struct strbuf *out)
{
    const char *mark = heading.ptr ? "" : "\n- ";
    const char *end = heading.ptr ? "\n" : "";
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell *cell = audit->cells[idx].cell;
        if (cell->footnote.ptr && (!heading.ptr || str_eq(cell->table, heading))) {
            strbuf_printf(out, "%s* %.*s, %.*s: %.*s%s", mark, STR_ARG(cell->printed),
                          STR_ARG(audit->cells[idx].of_case->stack->label), STR_ARG(cell->footnote),
                          end);
        }
    }
    for (size_t idx = 0; idx < audit->report->n_not_printed; idx++) {
        const struct not_printed *at = &audit->report->not_printed[idx];
        if (!heading.ptr || str_eq(at->table, heading)) {
            strbuf_printf(out, "%s%.*s%s%.*s, %.*s: printed as \"%.*s\" (line %" PRId64 ")%s", mark,
                          STR_ARG(heading.ptr ? STR_EMPTY : at->table), heading.ptr ? "" : ", ",
                          STR_ARG(at->row), STR_ARG(at->column), STR_ARG(at->printed), at->line,
                          end);
        }
    }
}

static void write_table(const struct report_audit *audit, struct str heading,
                        const struct audit_text_opts *opts, struct strbuf *out)
{
    bool is_verbose = opts->level == TEXT_VERBOSE;
    CLEANUP(table) struct table table = table_of(is_verbose ? COLUMNS "|cell" : COLUMNS);
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, out->cap_bytes);
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        if (str_eq(audit->cells[idx].cell->table, heading)) {
            add_cell(&table.arena, &table, &audit->cells[idx], is_verbose);
        }
    }
    table_render(&table, &text);
    strbuf_printf(out, "\n%.*s\n", STR_ARG(heading));
    add_painted(out, strbuf_str(&text), opts->is_colored);
    write_beside(audit, heading, out);
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

static void write_steps(const struct trace_steps *steps, const char *indent, struct strbuf *out)
{
    for (size_t idx = 0; idx < steps->n; idx++) {
        strbuf_printf(out, "%s%.*s = %.9g\n", indent, STR_ARG(steps->items[idx].words),
                      steps->items[idx].value);
    }
}

/* The samples of a log, those that count among them, and what is made of them. */
static void write_log(struct arena *arena, const struct trace *how, size_t idx, struct str path,
                      const char *indent, struct strbuf *out)
{
    const struct trace_log *log = &how->logs[idx];
    size_t n_left = log->uses ? SAMPLES_SHOWN : 0;
    if (log->uses) {
        strbuf_printf(out, "%s%.*s: %.*s", indent, STR_ARG(path),
                      STR_ARG(trace_samples_words(arena, how->rule, log)));
    }
    for (size_t at = 0; n_left && at < log->series->n; at++) {
        if (log->uses[at] == USE_COUNTED && isfinite(log->series->samples[at].value)) {
            strbuf_printf(out, "%s%.9g", n_left == SAMPLES_SHOWN ? "; counted are " : ", ",
                          log->series->samples[at].value);
            n_left--;
        }
    }
    strbuf_add_z(out, log->uses ? n_left ? "\n" : ", ...\n" : "");
    write_steps(&log->steps, indent, out);
    if (log->why.len || log->is_dropped) {
        strbuf_printf(
            out, "%s%.*s\n", indent,
            STR_ARG(log->is_dropped ? STR_LIT("left out: the fastest or the slowest") : log->why));
    }
}

void audit_out_how(struct arena *arena, const struct report *report, const struct cell_audit *a,
                   const struct trace *how, const char *indent, struct strbuf *out)
{
    CLEANUP(strbuf) struct strbuf rule = STRBUF(4096);
    if (how->rule) {
        rule_describe(how->rule, &rule);
        strbuf_printf(out, "%srule %.*s: %s (%.*s: %.*s)\n", indent, STR_ARG(a->rule), rule.ptr,
                      STR_ARG(how->rule->origin), STR_ARG(how->rule->source));
    }
    for (size_t idx = 0; idx < a->n_logs; idx++) {
        write_log(arena, how, idx, report_log_path(report, a->logs[idx].path), indent, out);
    }
    write_steps(&how->steps, indent, out);
    strbuf_printf(out, "%s%.*s\n", indent, STR_ARG(audit_proof_words(arena, a)));
}

enum differing {
    DIFFERING_NAMES,
    DIFFERING_REASONS,
    DIFFERING_STEPS /* also how the recomputed number follows */
};

static void write_differing(const struct report_audit *audit, enum differing detail,
                            struct strbuf *out)
{
    bool is_brief = detail == DIFFERING_NAMES;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    bool has_any = false;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *a = &audit->cells[idx];
        if (a->verdict != AUDIT_DIFFERS && (is_brief || a->explanation.n_tried == 0)) {
            continue;
        }
        strbuf_printf(out, "%s  %s: %s printed, and %s gives %s\n",
                      has_any || is_brief ? "" : "\nnumbers that do not follow, and why\n",
                      a->cell->id.ptr, a->cell->printed.ptr,
                      a->cell->derive == DERIVE_NONE ? "its log" : "what it is made of",
                      cell_number_words(&arena, a).ptr);
        has_any = true;
        if (!is_brief) {
            audit_out_reasons(&arena, a, "      ", "\n", out);
        }
        if (detail == DIFFERING_STEPS) {
            struct trace how;
            trace_of(&arena, a, &how);
            audit_out_how(&arena, audit->report, a, &how, "      ", out);
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

struct str audit_meaning(struct arena *arena, const struct verdict_counts *counts)
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

struct str audit_proof_words(struct arena *arena, const struct cell_audit *a)
{
    struct str against = identity_facts(arena, &a->identity, ID_CONTRADICTED, ", ");
    struct str missing = identity_facts(arena, &a->identity, ID_UNPROVEN, ", ");
    return str_printf(arena, "proof %s%s%.*s%s%.*s", PROOF_NAMES[a->proof], against.len ? ": " : "",
                      STR_ARG(against), missing.len ? "; not proven: " : "", STR_ARG(missing));
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

static void write_inferred(const struct report_audit *audit, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    strbuf_add_str(out, audit_inferred_words(&arena, audit));
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

static void write_like(const struct report_audit *audit, table_writer render, struct strbuf *out)
{
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
    render(&table, out);
}

/* The audit's own in full; what lint finds in the manifest is counted, as `reperf lint` shows it, or told. */
static void write_findings(const struct report_audit *audit, const struct audit_text_opts *opts,
                           struct strbuf *out)
{
    struct findings own = {.items = audit->findings.items, .n = audit->n_from_logs};
    struct findings lint = {.items = audit->findings.items + own.n, .n = audit->findings.n - own.n};
    if (own.n) {
        strbuf_add_char(out, '\n');
        findings_out_text(&own, opts->is_colored, out);
    }
    if (lint.n && opts->level == TEXT_VERBOSE) {
        strbuf_add_z(out, "\nin the manifest, without its logs\n");
        findings_out_text(&lint, opts->is_colored, out);
    } else if (lint.n) {
        strbuf_add_z(out, "\nin the manifest, without its logs: ");
        findings_out_counts(&lint, out);
        strbuf_printf(out, "; reperf lint %s shows them\n", audit->report->id.ptr);
    }
}

static void write_head(const struct report_audit *audit, bool is_first, bool is_colored,
                       struct strbuf *out)
{
    strbuf_printf(out, "%s%s%s: %s%s\n", is_first ? "" : "\n", is_colored ? BOLD : "",
                  audit->report->id.ptr, audit->report->title.ptr, is_colored ? PLAIN : "");
}

static void write_report(const struct report_audit *audit, const struct audit_text_opts *opts,
                         struct strbuf *out)
{
    struct verdict_counts counts = {0};
    for (size_t cell = 0; !opts->is_brief && cell < audit->n_cells; cell++) {
        if (is_first_of_table(audit, cell)) {
            write_table(audit, audit->cells[cell].cell->table, opts, out);
        }
    }
    count_verdicts(audit, &counts);
    if (opts->is_brief && counts.n == 0) {
        strbuf_add_z(out, "no published numbers\n");
        return;
    }
    strbuf_add_z(out, opts->is_brief ? "" : "\n");
    write_counts("", &counts, out);
    write_inferred(audit, out);
    strbuf_add_char(out, '\n');
    write_differing(audit, opts->is_brief ? DIFFERING_NAMES : DIFFERING_REASONS, out);
    if (opts->is_brief) {
        strbuf_add_z(out, "findings: ");
        findings_out_counts(&audit->findings, out);
        strbuf_printf(out, "; reperf audit %s shows them, and each cell\n", audit->report->id.ptr);
        return;
    }
    write_matches(audit, out);
    write_unproven(audit, out);
    if (opts->want_like) {
        strbuf_add_z(out, "\n" LIKE_HEADING "\n");
        if (audit->n_rows) {
            write_like(audit, table_render, out);
        } else {
            strbuf_add_z(out, "no row of two frameworks\n");
        }
    }
    write_findings(audit, opts, out);
}

/* False where it has none of level error. */
static bool write_errors(const struct report_audit *audit, bool is_first,
                         const struct audit_text_opts *opts, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct findings errors = {.items = arena_array(&arena, struct finding, audit->findings.n + 1)};
    for (size_t idx = 0; idx < audit->findings.n; idx++) {
        if (audit->findings.items[idx].level == LEVEL_ERROR) {
            errors.items[errors.n++] = audit->findings.items[idx];
        }
    }
    if (errors.n) {
        write_head(audit, is_first, opts->is_colored, out);
        findings_out_blocks(&errors, opts->is_colored, out);
    }
    return errors.n > 0;
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
    size_t n_left_out = 0;
    bool is_first = true;
    for (size_t idx = 0; idx < set->n; idx++) {
        const struct report_audit *audit = &set->items[idx];
        n_left_out += audit->n_left_out;
        if (opts->level == TEXT_QUIET) {
            is_first = !write_errors(audit, is_first, opts, out) && is_first;
            continue;
        }
        write_head(audit, idx == 0, opts->is_colored, out);
        write_report(audit, opts, out);
    }
    if (n_left_out) {
        strbuf_printf(out, "\n%zu findings of cases that are not selected are left out\n",
                      n_left_out);
    }
    write_summary(set, out);
}

/* A section of the text as Markdown: a line without indent is a heading, a line below it an item, one that is indented further an item
   of that item. */
static void add_lists(struct strbuf *out, struct str text)
{
    struct str line;
    while (str_next(&text, '\n', &line)) {
        size_t indent = str_span(line, 0, " ");
        if (line.len) {
            strbuf_add_z(out, indent == 0 ? "\n### " : indent <= ITEM_INDENT_MAX ? "- " : "  - ");
            markdown_text(out, str_sub(line, indent, SIZE_MAX));
            strbuf_add_z(out, indent == 0 ? "\n\n" : "\n");
        }
    }
}

static void add_markdown_table(const struct report_audit *audit, struct str heading,
                               struct strbuf *out)
{
    CLEANUP(table) struct table table = table_of(COLUMNS "|cell");
    for (size_t cell = 0; cell < audit->n_cells; cell++) {
        if (str_eq(audit->cells[cell].cell->table, heading)) {
            add_cell(&table.arena, &table, &audit->cells[cell], true);
        }
    }
    strbuf_add_z(out, "\n### ");
    markdown_text(out, heading);
    strbuf_add_z(out, "\n\n");
    table_render_markdown(&table, out);
}

/* What the text says below its tables, and every finding, of the logs and of the manifest. */
static void add_reasons(const struct report_audit *audit, struct strbuf *out)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, out->cap_bytes);
    write_differing(audit, DIFFERING_STEPS, &text);
    write_matches(audit, &text);
    write_unproven(audit, &text);
    add_lists(out, strbuf_str(&text));
    if (audit->n_rows) {
        add_lists(out, STR_LIT(LIKE_HEADING));
        write_like(audit, table_render_markdown, out);
    }
    findings_out_markdown(&audit->findings, out);
}

/* Where it was printed and logged, and what the words of its tables mean: who gets this file may have no other. */
static void add_sources(const struct report *report, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct source_ref *page = &report->source;
    const struct source_ref *logs = &report->logs_source;
    bool has_page = report->n_cases > 0 && !report->cases[0].matched.ptr;
    if (page->repository.ptr) {
        struct str url =
            has_page ? address_file(&arena, page, page->path, 0) : address_commit(&arena, page);
        strbuf_printf(out, "\nPublished in <%.*s>, %.*s.",
                      STR_ARG(url.len ? url : page->repository), STR_ARG(page->date));
    }
    if (logs->repository.ptr) {
        struct str url = address_commit(&arena, logs);
        strbuf_printf(out, "%s <%.*s>, %.*s.", page->repository.ptr ? " Its logs:" : "\nLogs:",
                      STR_ARG(url.len ? url : logs->repository), STR_ARG(logs->date));
    }
    strbuf_add_z(out, page->repository.ptr || logs->repository.ptr ? "\n" : "");
    strbuf_add_z(out, "\n");
    for (size_t idx = 0; idx < N_AUDIT_WORDS; idx++) {
        strbuf_printf(out, "- `%s`: %s\n", AUDIT_WORDS[idx].word, AUDIT_WORDS[idx].meaning);
    }
}

void audit_out_markdown(const struct audit_set *set, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    for (size_t idx = 0; idx < set->n; idx++) {
        const struct report_audit *audit = &set->items[idx];
        struct verdict_counts counts = {0};
        strbuf_add_z(out, idx ? "\n## " : "## ");
        markdown_text(out, audit->report->title);
        count_verdicts(audit, &counts);
        strbuf_printf(out, "\n\n**%s** `%.*s`: ", audit_meaning(&arena, &counts).ptr,
                      STR_ARG(audit->report->id));
        write_counts("", &counts, out);
        write_inferred(audit, out);
        strbuf_add_z(out, ".\n");
        add_sources(audit->report, out);
        for (size_t cell = 0; cell < audit->n_cells; cell++) {
            if (is_first_of_table(audit, cell)) {
                add_markdown_table(audit, audit->cells[cell].cell->table, out);
            }
        }
        CLEANUP(strbuf) struct strbuf beside = STRBUF(1 << 20);
        write_beside(audit, STR_EMPTY, &beside);
        if (beside.len) {
            strbuf_printf(out, "%.*s\n", STR_ARG(strbuf_str(&beside)));
        }
        add_reasons(audit, out);
    }
}
