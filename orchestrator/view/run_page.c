/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run: what its text says, the nodes, where it ran, what it left, and its machines. */
#include "base/base.h"

#include <math.h>

#include "report/hostlist.h"
#include "report/source.h"
#include "view/page.h"
#include "view/run_health.h"
#include "view/run_text.h"

#define COMMAND_MAX (16u << 20)

/* ---- where it ran ---- */

/* As it was typed, where it is a command of one's own: where its folder lay is in the evidence. */
static void add_command(struct table *table, const struct cell_result *of)
{
    CLEANUP(strbuf) struct strbuf line = STRBUF(COMMAND_MAX);
    if (str_eq_z(of->of_case->stack_id, COMMAND_STACK) && of->of_case->stack->n_commands) {
        table_add(table, of->of_case->stack->commands[0].printed);
    } else {
        plan_step_command(of->step, &line);
        table_add(table, str_trim(strbuf_str(&line)));
    }
}

/* Whose code it was, and what of its commit was left out. */
static void add_code(struct table *table, const struct plan_step *step)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(COMMAND_MAX);
    strbuf_add_str(&text, step->recipe);
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        const struct plan_mount *mount = &step->mounts[idx];
        if (mount->kind == MOUNT_SOURCE) {
            strbuf_printf(&text, "%s%.*s at %.*s", text.len ? "; " : "", STR_ARG(mount->name),
                          STR_ARG(mount->version));
        }
        if (mount->kind == MOUNT_SOURCE && mount->part.tree.ptr) {
            strbuf_printf(&text, ", of it %" PRId64 " files; %" PRId64 " are left out",
                          mount->part.n_files, mount->part.n_left_out);
        }
    }
    table_add(table, strbuf_str(&text));
}

static void add_places(struct page *page, const struct run_view *view)
{
    CLEANUP(table) struct table table = table_of("case|>ranks|>nodes|image|command|code");
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        const struct cell_result *of = &view->result.cells[idx];
        const struct plan_step *step = of->step;
        if (of->verdict == RUN_NOT_RUN) {
            continue;
        }
        TABLE_ADD(&table, of->of_case->id, table_text(&table, "%" PRId64, step->n_ranks),
                  table_text(&table, "%" PRId64, plan_step_nodes(step)),
                  table_text_if(&table, step->image.ptr, "%.*s@%.*s", STR_ARG(step->image_name),
                                STR_ARG(step->image_digest)));
        add_command(&table, of);
        add_code(&table, step);
    }
    page_table(page, STR_LIT("What was started, once per rank"), &table);
}

static struct str nodes_text(struct arena *arena, const struct outcome_record *outcome)
{
    struct str *names = arena_array(arena, struct str, outcome->n_nodes + 1);
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        names[idx] = outcome->nodes[idx].name;
    }
    return outcome->n_nodes ? hostlist_fold(arena, names, outcome->n_nodes) : STR_LIT("local");
}

static void add_log(struct strbuf *text, struct str path, int64_t n_bytes, struct str sha256)
{
    strbuf_printf(text, "%s%.*s, %" PRId64 " bytes, SHA-256 %.*s", text->len ? "; " : "",
                  STR_ARG(path), n_bytes, STR_ARG(sha256));
}

static void add_repeat(struct table *table, const struct cell_result *of,
                       const struct repeat_result *repeat)
{
    CLEANUP(strbuf) struct strbuf logs = STRBUF(COMMAND_MAX);
    const struct outcome_record *outcome = &repeat->outcome;
    if (outcome->n_nodes == 0) {
        add_log(&logs, repeat->log, outcome->log_bytes, outcome->log_sha256);
    }
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        const struct outcome_node *node = &outcome->nodes[idx];
        add_log(&logs, node->log, node->log_bytes, node->log_sha256);
    }
    TABLE_ADD(table, of->of_case->id, table_text(table, "%" PRId64, repeat->repeat),
              table_text(table, "%" PRId64, outcome->attempt), nodes_text(&table->arena, outcome),
              table_text(table, "%" PRId64, outcome->exit_status),
              repeat->counts ? STR_LIT("it counts") : repeat->why, strbuf_str(&logs));
}

static void add_repeats(struct page *page, const struct run_view *view)
{
    CLEANUP(table)
    struct table table = table_of("case|>repeat|>attempt|nodes|>exit status|remarks|logs");
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        for (size_t at = 0; at < view->result.cells[idx].n_repeats; at++) {
            add_repeat(&table, &view->result.cells[idx], &view->result.cells[idx].repeats[at]);
        }
    }
    page_table(page, STR_LIT("Repeats; numbers are read from the first log of each"), &table);
}

/* ---- machines ---- */

/* Everything that was recorded about each. */
static void add_machines(struct page *page, const struct run_view *view)
{
    for (size_t idx = 0; idx < view->n_settings;) { /* those of a node stand together */
        CLEANUP(table) struct table table = table_of("name|value");
        struct str node = view->settings[idx].node;
        for (; idx < view->n_settings && str_eq(view->settings[idx].node, node); idx++) {
            TABLE_ADD(&table, view->settings[idx].name, table_or_dash(view->settings[idx].value));
        }
        page_fold(page, "machine", node, false);
        page_table(page, text_of(page, "environment/%.*s.json", STR_ARG(node)), &table);
        page_fold_end(page);
    }
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
    add_places(&page, view);
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
    page_heading(&page, 2, STR_LIT("machines"), STR_LIT("The machines"));
    add_machines(&page, view);
    page_end(&page);
}
