/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/page.h"
#include "view/page_parts.h"

#include <math.h>

void page_begin(struct page *page, struct str title)
{
    HTML(page->out,
         "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
         "style-src 'unsafe-inline'\">\n<title>{}</title>\n<style>",
         title);
    for (const char *const *piece = PAGE_CSS; *piece; piece++) {
        strbuf_add_z(page->out, *piece);
    }
    strbuf_add_z(page->out, "</style>\n</head>\n<body>\n"
                            "<a class=\"skip\" href=\"#main\">Skip to the results</a>\n");
}

void page_end(struct page *page)
{
    strbuf_add_z(
        page->out,
        "</main>\n<footer><p>Made by reperf " REPERF_VERSION
        ". This page is self-contained and requests nothing from the network.</p></footer>\n"
        "</body>\n</html>\n");
}

struct verdict_counts count_verdicts(const struct report_audit *audit)
{
    struct verdict_counts counts = {.n = audit->n_cells};
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *ca = &audit->cells[idx];
        counts.of[ca->verdict]++;
        bool is_good = ca->verdict == AUDIT_EXACT || ca->verdict == AUDIT_MATCH;
        counts.n_derived += is_good && ca->cell->derive != DERIVE_NONE;
        counts.n_proposed += is_good && ca->is_proposed;
        counts.n_inferred += is_good && ca->n_asked > 0;
        counts.n_asked += ca->n_asked > 0;
    }
    return counts;
}

struct str follow_text(struct page *page, const struct verdict_counts *counts, const char *whose)
{
    size_t n = counts->of[AUDIT_EXACT] + counts->of[AUDIT_MATCH] - counts->n_derived;
    return textf(
        &page->arena, "%zu follow from %s%s%s%s", n, whose,
        counts->n_derived
            ? arena_printf(&page->arena, ", %zu from other published numbers", counts->n_derived)
            : "",
        counts->n_proposed
            ? arena_printf(&page->arena, ", %zu of them by a proposed format", counts->n_proposed)
            : "",
        counts->n_inferred
            ? arena_printf(&page->arena, ", %zu of them by rules inferred from %zu numbers",
                           counts->n_inferred, counts->n_asked)
            : "");
}

const struct verdict_look VERDICT_LOOKS[AUDIT_NO_LOG + 1] = {
    [AUDIT_EXACT] = {"=", "exact", "equal at the printed digits"},
    [AUDIT_MATCH] = {"\xe2\x89\x88", "match", "within 0.05 %"},
    [AUDIT_DIFFERS] = {"\xe2\x89\xa0", "differs", "the logs give a different number"},
    [AUDIT_NO_LOG] = {"\xe2\x80\x93", "no log", "no log was published"}};

void add_verdict(struct page *page, enum audit_verdict verdict)
{
    strbuf_printf(page->out, "<span class=\"v %s\"><i aria-hidden=\"true\">%s</i> %s</span>",
                  audit_verdict_name(verdict), VERDICT_LOOKS[verdict].icon,
                  VERDICT_LOOKS[verdict].word);
}

void add_case_id(struct page *page, struct str id)
{
    strbuf_add_z(page->out, "<code>");
    for (size_t at = 0, from = 0; at < id.len; at++) {
        if (id.ptr[at] == '/' || at + 1 == id.len) {
            html_text(page->out, str_sub(id, from, at + 1 - from));
            strbuf_add_z(page->out, at + 1 < id.len ? "<wbr>" : "");
            from = at + 1;
        }
    }
    strbuf_add_z(page->out, "</code>");
}

void add_scroll_begin(struct page *page, struct str label)
{
    HTML(page->out,
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table>", label);
}

void add_scroll_end(struct page *page)
{
    strbuf_add_z(page->out, "</table></div>\n");
}

struct str percent_text(struct page *page, double share)
{
    double percent = share * 100;
    if (!isfinite(percent)) {
        return STR_LIT("");
    }
    if (fabs(percent) < 0.005) {
        return STR_LIT("0.00\xc2\xa0%");
    }
    return textf(&page->arena, "%s%.2f\xc2\xa0%%", percent < 0 ? "\xe2\x88\x92" : "+",
                 fabs(percent));
}

void add_condition_value(struct page *page, struct str value)
{
    static const struct {
        double least;
        const char *unit;
    } UNITS[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}};
    struct err ignored = {0};
    int64_t count = 0;
    if (str_to_i64(value, 0, INT64_MAX, &count, &ignored) < 0 || count < 1000000) {
        HTML(page->out, "{}", value);
        return;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(UNITS); idx++) {
        if ((double)count >= UNITS[idx].least) {
            HTML(page->out, "<span title=\"{}\">{}</span>", value,
                 textf(&page->arena, "%.3g\xc2\xa0%s", (double)count / UNITS[idx].least,
                       UNITS[idx].unit));
            return;
        }
    }
}

struct str number_text(struct page *page, double value, int decimals)
{
    return isfinite(value) ? textf(&page->arena, "%.*f", decimals, value) : STR_LIT("");
}

struct str case_text(struct page *page, const struct report_case *c)
{
    return textf(&page->arena, "%.*s, %.*s%s%.*s", STR_ARG(c->stack->label),
                 STR_ARG(row_text(page, c)), c->variant.len ? ", " : "", STR_ARG(c->variant));
}

struct str row_text(struct page *page, const struct report_case *c)
{
    struct str gpus =
        c->gpus    ? textf(&page->arena, "%" PRId64 " GPU%s", c->gpus, c->gpus == 1 ? "" : "s")
        : c->nodes ? STR_LIT("CPUs")
                   : STR_LIT("GPUs not printed");
    return c->batch_per_gpu
               ? textf(&page->arena, "%.*s, batch %" PRId64, STR_ARG(gpus), c->batch_per_gpu)
               : textf(&page->arena, "%.*s, batch not printed", STR_ARG(gpus));
}

struct str rounded_text(struct page *page, const struct cell_audit *ca)
{
    const struct rule *rule = ca->by;
    if (!isfinite(ca->recomputed)) {
        return STR_EMPTY;
    }
    return ca->verdict == AUDIT_EXACT
               ? ca->cell->printed
               : number_text(page,
                             rule_round(rule ? rule->rounding : ROUND_NEAREST, ca->recomputed,
                                        ca->cell->decimals),
                             ca->cell->decimals);
}

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
        add_link(page, address_commit(&page->arena, source), source->commit);
    }
    if (source->path.ptr && !is_clone) {
        strbuf_add_z(page->out, ", ");
        add_link(page, address_file(&page->arena, source, source->path, 0), source->path);
    }
    if (source->date.ptr) {
        HTML(page->out, ", <span class=\"v\" style=\"font-weight:400\">{}</span>", source->date);
    }
    strbuf_add_z(page->out, "</p>\n");
}

/* Links to the parts of one report; the parts' ids start with the report's. */
static void add_nav(struct page *page, struct str id, bool has_rates)
{
    static const char *const PARTS[][2] = {
        {"cells", "Cells"},           {"like", "Like for like"},        {"scaling", "Scaling"},
        {"series", "Step series"},    {"explanations", "Explanations"}, {"findings", "Findings"},
        {"conditions", "Conditions"}, {"provenance", "Provenance"}};
    enum { FIRST_OF_RATES = 1, LAST_OF_RATES = 4 }; /* the other sections of a table of rates */
    HTML(page->out, "<nav aria-label=\"Parts of {}\"><ul>", id);
    for (size_t idx = 0; idx < ARRAY_LEN(PARTS); idx++) {
        if (!has_rates && idx >= FIRST_OF_RATES && idx <= LAST_OF_RATES) {
            continue;
        }
        HTML(page->out, "<li><a href=\"#{}-{}\">{}</a></li>", id, str_of(PARTS[idx][0]),
             str_of(PARTS[idx][1]));
    }
    strbuf_add_z(page->out, "</ul></nav>\n");
}

static void add_report(struct page *page, const struct report_audit *audit, bool is_alone)
{
    const struct report *report = audit->report;
    HTML(page->out, "<h2 id=\"{}\" class=\"{}\">{}</h2>\n", report->id,
         is_alone ? STR_LIT("sub") : STR_LIT("title"), is_alone ? report->id : report->title);
    add_source(page, "Report", &report->source, false);
    add_source(page, "Logs", &report->logs_source, true);
    add_nav(page, report->id, audit->n_cells > 0 && !is_results(audit));
    if (audit->n_cells == 0) {
        HTML(page->out,
             "<section class=\"card\" id=\"{}-cells\"><p>Nobody published numbers for it: its "
             "cases are only measured.</p></section>\n",
             report->id);
        add_findings(page, audit);
        add_conditions(page, audit);
        add_provenance(page, audit);
        return;
    }
    add_summary(page, audit);
    if (is_results(audit)) {
        add_results(page, audit);
    } else {
        add_cells(page, audit);
        add_like(page, audit);
        add_scaling(page, audit);
        add_series(page, audit);
        add_explanations(page, audit);
    }
    add_findings(page, audit);
    add_conditions(page, audit);
    add_provenance(page, audit);
}

static struct str zu(struct page *page, size_t n)
{
    return textf(&page->arena, "%zu", n);
}

/* What the counts below it mean. */
static void add_meaning(struct page *page, const struct report_audit *audit)
{
    struct verdict_counts counts = count_verdicts(audit);
    size_t n_checked = counts.n - counts.of[AUDIT_NO_LOG];
    size_t n_good = counts.of[AUDIT_EXACT] + counts.of[AUDIT_MATCH];
    HTML(page->out, "<p class=\"headline\">{}{}</p>\n",
         counts.n == 0         ? STR_LIT("The report publishes no numbers: its cases are measured.")
         : n_checked == 0      ? STR_LIT("Nobody can check these numbers: no log is published.")
         : n_good == n_checked ? STR_LIT("Every number that has a log follows from it.")
         : 2 * n_good >= n_checked
             ? STR_LIT("Most of the numbers follow from the published logs, and some do not.")
             : STR_LIT("Most of the numbers do not follow from the published logs."),
         n_checked && counts.of[AUDIT_NO_LOG] ? STR_LIT(" For the others no log is published.")
                                              : STR_EMPTY);
}

/* The overall result in one sentence. */
static void add_headline(struct page *page, const struct report_audit *audits, size_t n)
{
    struct verdict_counts all = {0};
    if (n == 1) {
        add_meaning(page, &audits[0]);
        return;
    }
    for (size_t idx = 0; idx < n; idx++) {
        struct verdict_counts counts = count_verdicts(&audits[idx]);
        all.n += counts.n;
        all.n_derived += counts.n_derived;
        all.n_inferred += counts.n_inferred;
        all.n_asked += counts.n_asked;
        for (size_t verdict = 0; verdict <= AUDIT_NO_LOG; verdict++) {
            all.of[verdict] += counts.of[verdict];
        }
    }
    HTML(page->out,
         "<p class=\"headline\">Of {} published numbers{}, {}, {} differ{} and {} cannot be "
         "checked.</p>\n",
         zu(page, all.n), n > 1 ? textf(&page->arena, " in %zu reports", n) : STR_EMPTY,
         follow_text(page, &all, "the published logs"), zu(page, all.of[AUDIT_DIFFERS]),
         all.of[AUDIT_DIFFERS] == 1 ? STR_LIT("s") : STR_EMPTY, zu(page, all.of[AUDIT_NO_LOG]));
}

void page_audit(struct strbuf *out, const struct report_audit *audits, size_t n,
                const struct format_set *formats)
{
    struct page page = {.out = out, .formats = formats};
    struct str title = n == 1 ? audits[0].report->title
                              : STR_LIT("Published performance reports against their logs");
    ASSERT(n > 0);
    page_begin(&page, textf(&page.arena, "%.*s \xc2\xb7 reperf", STR_ARG(title)));
    HTML(out, "<header><h1>{}</h1>\n", title);
    add_headline(&page, audits, n);
    strbuf_add_z(out, "<p>Every published number, computed again from the published logs by the "
                      "rule that the manifest names.</p></header>\n<main id=\"main\">\n");
    if (n > 1) {
        add_overview(&page, audits, n);
    }
    for (size_t idx = 0; idx < n; idx++) {
        add_report(&page, &audits[idx], n == 1);
    }
    page_end(&page);
    arena_release(&page.arena);
}
