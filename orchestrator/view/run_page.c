/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run: what its text says, the nodes, and where each repeat ran. */
#include "base/base.h"

#include <math.h>

#include "report/hostlist.h"
#include "view/page.h"
#include "view/run_health.h"
#include "view/run_text.h"

/* ---- where it ran ---- */

static struct str nodes_text(struct arena *arena, const struct outcome_record *outcome)
{
    struct str *names = arena_array(arena, struct str, outcome->n_nodes + 1);
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        names[idx] = outcome->nodes[idx].name;
    }
    return outcome->n_nodes ? hostlist_fold(arena, names, outcome->n_nodes) : STR_LIT("local");
}

static void add_repeat(struct table *table, const struct cell_result *of,
                       const struct repeat_result *repeat)
{
    const struct outcome_record *outcome = &repeat->outcome;
    TABLE_ADD(table, of->of_case->id, table_text(table, "%" PRId64, repeat->repeat),
              table_text(table, "%" PRId64, outcome->attempt), nodes_text(&table->arena, outcome),
              table_text(table, "%" PRId64, outcome->exit_status),
              repeat->counts ? STR_LIT("it counts") : repeat->why);
}

static void add_repeats(struct page *page, const struct run_view *view)
{
    CLEANUP(table)
    struct table table = table_of("case|>repeat|>attempt|nodes|>exit status|remarks");
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        for (size_t at = 0; at < view->result.cells[idx].n_repeats; at++) {
            add_repeat(&table, &view->result.cells[idx], &view->result.cells[idx].repeats[at]);
        }
    }
    page_table(page, STR_LIT("Repeats"), &table);
}

/* ---- the page ---- */

/* What such a run claims. */
static struct str headline_of(struct page *page, const struct run_view *view)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(4096);
    const struct plan *plan = &view->frozen.plan;
    const struct run_result *result = &view->result;
    size_t n_of[RUN_NOT_RUN + 1] = {0};
    if (plan->profile == PROFILE_SMOKE) {
        return STR_LIT("A smoke run, small and on the CPU: it shows that everything from manifest "
                       "to sealed evidence works, and claims nothing about any published number.");
    }
    if (plan->is_rehearsal) {
        return STR_LIT("A rehearsal: the commands were the report's, what they ran on was not; it "
                       "claims nothing about any published number.");
    }
    if (result->n_cells == 1 && isfinite(result->cells[0].value)) {
        return text_of(page, "%.6g %.*s, from %zu repeat%s: %s.", result->cells[0].value,
                       STR_ARG(result->cells[0].unit), result->cells[0].summary.n,
                       plural_s(result->cells[0].summary.n),
                       view->frozen.report.is_unpublished
                           ? "measured"
                           : RUN_VERDICT_NAMES[result->cells[0].verdict]);
    }
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        n_of[result->cells[idx].verdict]++;
    }
    strbuf_printf(&text, "%zu cases", result->n_cells);
    run_out_counts(n_of, &text);
    return str_dup(&page->arena, strbuf_str(&text));
}

void run_out_page(const struct run_view *view, struct strbuf *out)
{
    const struct plan *plan = &view->frozen.plan;
    const struct inventory *inventory = &view->frozen.inventory;
    struct page page = {.form = PAGE_HTML, .out = out};
    page_begin(&page, text_of(&page, "Run %.*s", STR_ARG(view->frozen.run_id)),
               headline_of(&page, view));
    page_line(&page, 0,
              text_of(&page, "Report %.*s (%.*s), profile %s, %" PRId64 " repeat%s per case.",
                      STR_ARG(view->frozen.report.title), STR_ARG(plan->report),
                      plan_kind_name(plan->profile, plan->is_rehearsal), plan->repeats,
                      plan->repeats == 1 ? "" : "s"),
              STR_EMPTY);
    page_heading(&page, 2, STR_LIT("cells"), STR_LIT("Cases"));
    run_out(&page, &view->frozen, &view->result, view->audit, true);
    if (view->audit_note.len) {
        page_line(&page, 0, view->audit_note, STR_EMPTY);
    }
    if (view->health) {
        page_heading(&page, 2, STR_LIT("nodes"), STR_LIT("The nodes"));
        run_health_page(view->health, &page);
    }
    page_heading(&page, 2, STR_LIT("places"), STR_LIT("Where it ran"));
    page_line(&page, 0,
              text_of(&page, "%.*s: %.*s. %zu node%s, runtime %s, launcher %s.",
                      STR_ARG(inventory->id), STR_ARG(inventory->title), inventory->n_nodes,
                      plural_s(inventory->n_nodes), runtime_kind_label(plan->runtime),
                      LAUNCHER_KIND_NAMES[plan->launcher]),
              STR_EMPTY);
    add_repeats(&page, view);
    page_line(
        &page, 0,
        text_of(&page, "The report's manifest has SHA-256 %.*s. %s",
                STR_ARG(view->frozen.report_sha256),
                view->is_archive
                    ? "The archive's form, digests and statements were checked; who signed it was "
                      "not (reperf verify --key does that)."
                    : "The result was derived from the raw logs again and is the same; the "
                      "folder's seal was not checked (reperf verify does that)."),
        STR_EMPTY);
    page_end(&page);
}
