/* SPDX-License-Identifier: Apache-2.0 */
/* The page of a run: its cells, the same side by side, what differs, where it ran, and what it left. */
#include "base/base.h"

#include "evidence/columns.h"
#include "judge/health.h"
#include "judge/stats.h"
#include "report/each_node.h"
#include "report/hostlist.h"
#include "report/source.h"
#include "view/page.h"
#include "view/page_parts.h"

#include <math.h>

#define COMMAND_MAX (16u << 20)
#define DASH        STR_LIT("\xe2\x80\x93")

/* ---- cells ---- */

static void add_verdict(struct page *page, enum run_verdict verdict)
{
    static const struct {
        const char *css; /* a class of page.css */
        const char *icon, *word;
    } LOOKS[] = {[RUN_REPRODUCED] = {"exact", "=", "reproduced"},
                 [RUN_FASTER] = {"match", "\xe2\x86\x91", "faster"},
                 [RUN_SLOWER] = {"differs", "\xe2\x86\x93", "slower"},
                 [RUN_NOT_COMPARABLE] = {"no_log", "\xe2\x80\x93", "not comparable"},
                 [RUN_FAILED] = {"differs", "\xc3\x97", "failed"},
                 [RUN_NOT_RUN] = {"warning", "\xe2\x88\x85", "not run"}};
    page_verdict(page, LOOKS[verdict].css, LOOKS[verdict].icon, LOOKS[verdict].word);
}

/* The time to the recipe's target and what its log is asked for also, next to the rate. */
static void add_beside(struct page *page, const struct cell_result *at)
{
    const struct extras *beside = &at->step->beside;
    const struct loss_target *target = &beside->target;
    if (target->series.ptr && at->target.step) {
        page_note(page, text_of(page, "%.*s at most %.6g after %.3g s, step %" PRId64,
                                STR_ARG(target->series), target->at_most, at->target.elapsed_s,
                                at->target.step));
    } else if (target->series.ptr && at->n_repeats) {
        page_note(page, at->target.why);
    }
    if (at->n_repeats && !beside->n_also && beside->why_not.ptr) {
        page_note(page, text_of(page, "no accuracy: %.*s", STR_ARG(beside->why_not)));
    }
    for (size_t idx = 0; at->also && idx < beside->n_also; idx++) {
        const struct also_result *also = &at->also[idx];
        bool has_value = isfinite(also->value);
        HTML(page->out, "<small data-rule=\"{}\">{} {}{}{}</small>", beside->also[idx],
             rule_id_name(beside->also[idx]),
             has_value ? number_text(page, also->value) : STR_LIT("\xe2\x80\x93, "),
             also->unit.len && has_value ? STR_LIT(" ") : STR_EMPTY,
             has_value ? also->unit : also->why);
    }
}

/* The one unit of all numbers, or empty. */
static struct str unit_of(const struct run_result *result)
{
    struct str unit = STR_EMPTY;
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        struct str own = result->cells[idx].unit;
        if (unit.ptr && own.ptr && !str_eq(unit, own)) {
            return STR_EMPTY;
        }
        unit = own.ptr ? own : unit;
    }
    return unit;
}

/* unit: of all numbers; without one each has its own. */
static void add_cell(struct page *page, const struct run_view *view, const struct cell_result *at,
                     struct str unit)
{
    const struct cell_audit *audited = columns_audited(view->audit, at->published);
    page_row(page, "cell", at->of_case->id);
    page_cell(page, STR_EMPTY);
    page_case_id(page, at->of_case->id);
    if (!view->frozen.report.is_unpublished) {
        PAGE_CELLS(page, at->published ? at->published->printed : DASH,
                   audited ? cell_number_words(&page->arena, audited) : DASH);
        page_note(page, audited ? str_of(cell_verdict_words(audited)) : STR_EMPTY);
    }
    bool has_unit = isfinite(at->value) && !unit.ptr;
    bool is_measured = view->frozen.report.is_unpublished && at->verdict == RUN_NOT_COMPARABLE;
    PAGE_CELLS(page,
               has_unit ? text_of(page, "%.*s %.*s", STR_ARG(number_text(page, at->value)),
                                  STR_ARG(at->unit))
                        : number_text(page, at->value),
               number_text(page, at->summary.std), count_text(page, at->summary.n), STR_EMPTY);
    if (is_measured) {
        page_verdict(page, "no_log", "\xe2\x80\x93", "measured");
    } else {
        add_verdict(page, at->verdict);
    }
    if (isfinite(at->value) && !view->frozen.report.is_unpublished) { /* one column on a phone */
        HTML(page->out, "<small class=\"phone\">{}{}measured {}</small>",
             percent_text(page, at->rel_diff), isfinite(at->rel_diff) ? STR_LIT(", ") : STR_EMPTY,
             number_text(page, at->value));
    }
    if (!view->frozen.report.is_unpublished) {
        page_cell(page, percent_text(page, at->rel_diff));
    }
    page_cell(page, is_measured ? STR_EMPTY : at->why);
    HTML(page->out, "<small><code>{}</code></small>", at->step->rule);
    add_beside(page, at);
}

static void add_cells(struct page *page, const struct run_view *view)
{
    const struct run_result *result = &view->result;
    bool is_alone = view->frozen.report.is_unpublished; /* there is nothing to compare it with */
    bool has_also = false;
    page_section(page, "cells",
                 is_alone ? STR_LIT("Measured") : STR_LIT("Published, audited and measured"));
    struct str unit = unit_of(result);
    page_table(
        page,
        text_of(page, "Rates of the whole job%s%.*s: %s", unit.len ? ", in " : "", STR_ARG(unit),
                is_alone ? "mean and standard deviation of the repeats"
                         : "published, recomputed from the published log, and measured "
                           "here (mean and standard deviation of the repeats)"),
        is_alone
            ? "Case|n:Measured|n desk:Std. dev.|n desk:Repeats|Verdict|rule:Why, and the rule"
            : "Case|n:Published|n desk:Audited|n desk:Measured|n desk:Std. dev.|n desk:Repeats|"
              "Verdict|n desk:Difference|rule:Why, and the rule");
    for (size_t idx = 0; idx < 2 * result->n_cells; idx++) { /* what has no number first */
        const struct cell_result *at = &result->cells[idx % result->n_cells];
        bool is_bad = at->verdict == RUN_FAILED || at->verdict == RUN_NOT_RUN;
        if (is_bad == (idx < result->n_cells)) {
            add_cell(page, view, at, unit);
        }
        has_also = has_also || (at->also && at->step->beside.n_also);
    }
    page_table_end(page);
    page_soft(page, has_also ? str_of(result_also_means(&view->frozen.plan)) : STR_EMPTY);
    page_soft(page, view->audit_note);
    page_section_end(page);
}

/* ---- links between nodes ---- */

/* The first cell of that measure from one node to another; a node without ptr is any. */
static const struct cell_result *find_link(const struct run_result *result, struct str measure,
                                           struct str from, struct str to)
{
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct report_case *c = result->cells[idx].of_case;
        if (c->n_on == 2 && str_eq(each_node_base(c), measure) &&
            (!from.ptr || str_eq(c->on[0], from)) && (!to.ptr || str_eq(c->on[1], to))) {
            return &result->cells[idx];
        }
    }
    return NULL;
}

/* The next cell that is the first to, or else from, its node; NULL after the last. */
static const struct cell_result *next_node(const struct run_result *result, struct str measure,
                                           bool is_to, size_t *at)
{
    while (*at < result->n_cells) {
        const struct cell_result *of = &result->cells[(*at)++];
        const struct str *on = of->of_case->on;
        if (of->of_case->n_on == 2 && of == find_link(result, measure, is_to ? STR_EMPTY : on[0],
                                                      is_to ? on[1] : STR_EMPTY)) {
            return of;
        }
    }
    return NULL;
}

/* Each rate in its place, shaded by how much less it is than the best. */
static void add_links_of(struct page *page, const struct run_result *result,
                         const struct cell_result *first)
{
    const struct cell_result *from, *to;
    struct str measure = each_node_base(first->of_case);
    struct str unit = STR_EMPTY;
    double best = 0;
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *of = &result->cells[idx];
        if (of->of_case->n_on == 2 && str_eq(each_node_base(of->of_case), measure) &&
            isfinite(of->value)) {
            unit = of->unit;
            best = fmax(best, of->value);
        }
    }
    page_table(page,
               text_of(page,
                       "%.*s, in %.*s: from the node at the left to the one above; shaded by how "
                       "much less it is than the best",
                       STR_ARG(measure), STR_ARG(unit)),
               "From");
    for (size_t at = 0; (to = next_node(result, measure, true, &at));) {
        page_column(page, to->of_case->on[1], NULL);
    }
    for (size_t row = 0; (from = next_node(result, measure, false, &row));) {
        page_row(page, NULL, STR_EMPTY);
        page_cell(page, from->of_case->on[0]);
        for (size_t at = 0; (to = next_node(result, measure, true, &at));) {
            const struct cell_result *of =
                find_link(result, measure, from->of_case->on[0], to->of_case->on[1]);
            page_shaded(page,
                        !of                   ? 0
                        : isfinite(of->value) ? 1 - of->value / best
                                              : 1,
                        !of                   ? STR_EMPTY
                        : isfinite(of->value) ? number_text(page, of->value)
                                              : str_of(RUN_VERDICT_NAMES[of->verdict]));
        }
    }
    page_table_end(page);
}

static void add_links(struct page *page, const struct run_result *result)
{
    bool has_any = false;
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *of = &result->cells[idx];
        if (of->of_case->n_on == 2 &&
            of == find_link(result, each_node_base(of->of_case), STR_EMPTY, STR_EMPTY)) {
            if (!has_any) {
                page_section(page, "links", STR_LIT("Between the nodes"));
            }
            has_any = true;
            add_links_of(page, result, of);
        }
    }
    if (has_any) {
        page_section_end(page);
    }
}

/* ---- side by side ---- */

static void add_column_cell(struct page *page, const struct column_cell *at)
{
    page_cell(page, columns_cell_text(&page->arena, at));
    if (at && at->ratio.why) {
        page_note(page, text_of(page, "no ratio: %s", at->ratio.why));
    }
    if (at && at->n_differs) {
        strbuf_add_z(page->out, "<small>other ");
        for (size_t idx = 0; idx < at->n_differs; idx++) {
            HTML(page->out, "{}{}", idx ? STR_LIT(", ") : STR_EMPTY, str_of(at->differs[idx]));
        }
        strbuf_add_z(page->out, "</small>");
    }
}

/* What the report claims of two columns, and what this run says of it. */
static void add_claims(struct page *page, const struct columns *columns)
{
    bool has_any = false;
    for (size_t idx = 0; idx < columns->n_rows; idx++) {
        const struct column_row *row = &columns->rows[idx];
        for (size_t at = 0; at < row->n_cells; at++) {
            const struct column_cell *one = &row->cells[at];
            if (!(one->claim.published > 0)) {
                continue;
            }
            strbuf_add_z(page->out, has_any ? ""
                                            : "<h3>What the report claims of them</h3>\n"
                                              "<ul class=\"claims\">");
            has_any = true;
            HTML(page->out, "<li>{} {}, {}: {} against {}: {}</li>\n", row->model, row->precision,
                 gpus_text(page, row->gpus), one->name, row->reference,
                 columns_claim_text(&page->arena, one));
        }
    }
    strbuf_add_z(page->out, has_any ? "</ul>\n" : "");
}

static void add_columns(struct page *page, const struct run_view *view)
{
    struct columns columns;
    columns_of(&page->arena, &view->frozen, &view->result, view->audit, &columns);
    if (columns.n_rows == 0) {
        return;
    }
    page_section(page, "columns", STR_LIT("Side by side"));
    page_table(page,
               text_of(page,
                       "Items per second of the whole job; in brackets the ratio to the row's "
                       "first framework that has a value, with the 95 %% interval of their "
                       "repeats; %s",
                       columns_order(&view->frozen)),
               "Model, precision, GPUs");
    for (size_t idx = 0; idx < columns.n_frameworks; idx++) {
        page_column(page, columns.frameworks[idx], "n");
    }
    for (size_t idx = 0; idx < columns.n_rows; idx++) {
        const struct column_row *row = &columns.rows[idx];
        page_row(page, "", STR_EMPTY);
        page_cell(page, text_of(page, "%.*s %.*s, %" PRId64, STR_ARG(row->model),
                                STR_ARG(row->precision), row->gpus));
        for (size_t at = 0; at < columns.n_frameworks; at++) {
            add_column_cell(page, columns_find(row, at));
        }
    }
    page_table_end(page);
    add_claims(page, &columns);
    page_section_end(page);
}

/* ---- conditions ---- */

static void add_names(struct page *page, const char *what, const struct str *names, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_printf(page->out, "%s%s", idx ? ", " : "<p class=\"soft\">", idx ? "" : what);
        HTML(page->out, "{}", names[idx]);
    }
    strbuf_add_z(page->out, n ? ".</p>\n" : "");
}

static void add_differences(struct page *page, const struct cell_result *of, bool is_open)
{
    HTML(page->out,
         "<details{}><summary><code>{}</code> <span class=\"soft\">against</span> "
         "<code>{}</code></summary>\n",
         is_open ? STR_LIT(" open") : STR_EMPTY, of->of_case->id, of->baseline->id);
    page_table(page, text_of(page, "Conditions that differ from %.*s", STR_ARG(of->baseline->id)),
               "Condition|Published|This run");
    for (size_t idx = 0; idx < of->n_differs; idx++) {
        const struct run_difference *d = &of->differs[idx];
        page_row(page, "wide", STR_EMPTY);
        PAGE_CELLS(page, d->name, d->published, d->run.ptr ? d->run : STR_LIT("none"));
    }
    page_table_end(page);
    add_names(page, "Not stated by the report: ", of->not_stated, of->n_not_stated);
    add_names(page, "By the nodes' own word alone: ", of->by_node, of->n_by_node);
    strbuf_add_z(page->out, "</details>\n");
}

static void add_conditions_of(struct page *page, const struct run_result *result)
{
    bool has_any = false;
    page_section(page, "conditions", STR_LIT("What differs from the published conditions"));
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        if (result->cells[idx].baseline && result->cells[idx].n_differs) {
            add_differences(page, &result->cells[idx], !has_any);
            has_any = true;
        }
    }
    strbuf_add_z(page->out, has_any ? "" : "<p>Nothing that is known.</p>");
    page_section_end(page);
}

/* ---- where it ran ---- */
/* A command of one's own as it was typed: where its folder lay is in the evidence. */
static void add_command(struct page *page, const struct cell_result *of)
{
    CLEANUP(strbuf) struct strbuf line = STRBUF(COMMAND_MAX);
    if (str_eq_z(of->of_case->stack_id, COMMAND_STACK) && of->of_case->stack->n_commands) {
        HTML(page->out, "<code>{}</code>", of->of_case->stack->commands[0].printed);
        return;
    }
    plan_step_command(of->step, &line);
    HTML(page->out, "<code>{}</code>", str_trim(strbuf_str(&line)));
}

/* Whose code it was, and what of its commit was left out. */
static void add_code(struct page *page, const struct plan_step *step)
{
    page_note(page, step->recipe);
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        const struct plan_mount *mount = &step->mounts[idx];
        if (mount->kind != MOUNT_SOURCE) {
            continue;
        }
        HTML(page->out, "<small>{} at {}", mount->name,
             str_sub(mount->version, 0, SOURCE_COMMIT_HEX));
        if (mount->part.tree.ptr) {
            HTML(page->out, ", of it {}: {} files; {} are left out",
                 str_sub(mount->version, SOURCE_COMMIT_HEX + 1, mount->version.len),
                 text_of(page, "%" PRId64, mount->part.n_files),
                 text_of(page, "%" PRId64, mount->part.n_left_out));
        }
        strbuf_add_z(page->out, "</small>");
    }
}

static void add_place(struct page *page, const struct cell_result *of)
{
    const struct plan_step *step = of->step;
    page_row(page, "", STR_EMPTY);
    page_cell(page, STR_EMPTY);
    page_case_id(page, of->of_case->id);
    PAGE_CELLS(page, text_of(page, "%" PRId64, step->n_ranks),
               text_of(page, "%" PRId64, plan_step_nodes(step)),
               step->image.ptr ? text_of(page, "%.*s@%.*s", STR_ARG(step->image_name),
                                         STR_ARG(step->image_digest))
                               : STR_LIT("none"),
               STR_EMPTY);
    add_command(page, of);
    add_code(page, step);
}

static struct str nodes_text(const struct repeat_result *repeat, struct page *page)
{
    size_t n = repeat->outcome.n_nodes;
    struct str *names = arena_array(&page->arena, struct str, n + 1);
    if (n == 0) {
        return STR_LIT("local");
    }
    for (size_t idx = 0; idx < n; idx++) {
        names[idx] = repeat->outcome.nodes[idx].name;
    }
    return hostlist_fold(&page->arena, names, n);
}

/* A raw log of a repeat; numbers are read from the first one. */
static void add_log(struct page *page, struct str path, int64_t n_bytes, struct str sha256)
{
    HTML(page->out,
         "<small class=\"log\"><code>{}</code>, {} bytes, SHA-256 <code>{}</code></small>", path,
         text_of(page, "%" PRId64, n_bytes), sha256);
}

static void add_repeat(struct page *page, const struct cell_result *of,
                       const struct repeat_result *repeat)
{
    const struct outcome_record *outcome = &repeat->outcome;
    page_row(page, "repeat", STR_EMPTY);
    page_cell(page, STR_EMPTY);
    page_case_id(page, of->of_case->id);
    PAGE_CELLS(page, text_of(page, "%" PRId64, repeat->repeat),
               text_of(page, "%" PRId64, outcome->attempt), nodes_text(repeat, page),
               text_of(page, "%" PRId64, outcome->exit_status),
               repeat->counts ? STR_LIT("it counts") : repeat->why);
    for (size_t idx = 0; idx < repeat->n_taints; idx++) {
        HTML(page->out, "<small class=\"taint\">doubt: {}</small>", repeat->taints[idx]);
    }
    if (outcome->n_nodes == 0) {
        add_log(page, repeat->log, outcome->log_bytes, outcome->log_sha256);
    }
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        const struct outcome_node *node = &outcome->nodes[idx];
        add_log(page, node->log, node->log_bytes, node->log_sha256);
    }
}

static void add_places(struct page *page, const struct run_view *view)
{
    const struct plan *plan = &view->frozen.plan;
    const struct inventory *inventory = &view->frozen.inventory;
    page_section(page, "places", STR_LIT("Where it ran"));
    HTML(page->out, "<p>{}: {}. {} node{}, runtime {}, launcher {}.</p>\n", inventory->id,
         inventory->title, count_text(page, inventory->n_nodes),
         inventory->n_nodes == 1 ? STR_EMPTY : STR_LIT("s"),
         str_of(runtime_kind_label(plan->runtime)), str_of(LAUNCHER_KIND_NAMES[plan->launcher]));
    page_table(page, STR_LIT("What was started, once per rank"),
               "Case|n desk:Ranks|n desk:Nodes|where mono:Image|where:Command");
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        if (view->result.cells[idx].verdict != RUN_NOT_RUN) {
            add_place(page, &view->result.cells[idx]);
        }
    }
    page_table_end(page);
    page_table(
        page, STR_LIT("Repeats; numbers are read from the first log of each"),
        "Case|n:Repeat|n desk:Attempt|mono desk:Nodes|n:Exit status|rule:Remarks, and its logs");
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        for (size_t at = 0; at < view->result.cells[idx].n_repeats; at++) {
            add_repeat(page, &view->result.cells[idx], &view->result.cells[idx].repeats[at]);
        }
    }
    page_table_end(page);
    HTML(page->out, "<p>The report's manifest has SHA-256 <code>{}</code>. {}</p>\n",
         view->frozen.report_sha256,
         view->is_archive
             ? STR_LIT("The archive's form, digests and statements were checked; who signed it "
                       "was not (reperf verify --key does that).")
             : STR_LIT("The result was derived from the raw logs again and is the same; the "
                       "folder's seal was not checked (reperf verify does that)."));
    page_section_end(page);
}

/* ---- machines ---- */

static void add_machines(struct page *page, const struct run_view *view)
{
    page_section(page, "machine", STR_LIT("The machines"));
    page_soft(page, STR_LIT("Everything that was recorded about each."));
    for (size_t idx = 0; idx < view->n_settings;) { /* those of a node stand together */
        struct str node = view->settings[idx].node;
        HTML(page->out, "<details class=\"machine\"><summary>{}{}</summary>\n", node,
             str_eq_z(node, "local") ? STR_LIT(": where reperf ran") : STR_EMPTY);
        page_table(page, text_of(page, "environment/%.*s.json", STR_ARG(node)),
                   "mono:Name|where mono:Value");
        for (; idx < view->n_settings && str_eq(view->settings[idx].node, node); idx++) {
            const struct setting *at = &view->settings[idx];
            page_row(page, "", STR_EMPTY);
            PAGE_CELLS(page, at->name, at->value.ptr ? at->value : STR_LIT("none"));
        }
        page_table_end(page);
        strbuf_add_z(page->out, "</details>\n");
    }
    page_section_end(page);
}

/* ---- series ---- */

static int add_cell_series(struct page *page, const struct run_view *view,
                           const struct cell_result *of, struct err *err)
{
    HTML(page->out, "<h3><code>{}</code></h3>\n<div class=\"grid3\">\n", of->of_case->id);
    for (size_t idx = 0; idx < of->n_repeats; idx++) {
        const struct repeat_result *repeat = &of->repeats[idx];
        struct measurement m;
        if (run_view_log(&page->arena, view, of, idx, &m, err) < 0) {
            return -1;
        }
        struct spark_of spark = {.rule = of->step->bound.rule,
                                 .rule_case = result_rule_case(&view->frozen, of->step),
                                 .m = &m,
                                 .name = text_of(page, "Repeat %" PRId64, repeat->repeat)};
        if (!repeat->counts) {
            spark.note = text_of(page, ": %.*s", STR_ARG(repeat->why));
        } else if (repeat->n_taints) {
            spark.note = text_of(page, ": tainted (%zu): %.*s", repeat->n_taints,
                                 STR_ARG(repeat->taints[0]));
        }
        add_spark_figure(page, &spark);
    }
    strbuf_add_z(page->out, "</div>\n");
    return 0;
}

static int add_run_series(struct page *page, const struct run_view *view, struct err *err)
{
    series_begin(page, "Each repeat's");
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        if (view->result.cells[idx].n_repeats &&
            add_cell_series(page, view, &view->result.cells[idx], err) < 0) {
            return -1;
        }
    }
    page_section_end(page);
    return 0;
}

/* ---- the page ---- */

static void add_health(struct page *page, const struct health *health, bool is_first)
{
    if (health->n_findings == 0) {
        HTML(page->out, "{}othing stands out among the nodes.</p>\n",
             is_first ? STR_LIT("N") : STR_LIT("n"));
    } else {
        HTML(page->out, "{} finding{} against the nodes:</p>\n<ul class=\"claims\">",
             count_text(page, health->n_findings),
             health->n_findings == 1 ? STR_EMPTY : STR_LIT("s"));
    }
    for (size_t idx = 0; idx < health->n_findings; idx++) {
        HTML(page->out, "<li>{}</li>\n", health->findings[idx].says);
    }
    strbuf_add_z(page->out, health->n_findings ? "</ul>\n" : "");
    page_soft(page, health->n_alone
                        ? text_of(page, "%zu figures could not be compared with others'.",
                                  health->n_alone)
                        : STR_EMPTY);
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
             count_text(page, n_bad), count_text(page, result->n_cells),
             count_text(page, n_of[RUN_FAILED]), count_text(page, n_of[RUN_NOT_RUN]));
    }
    struct str others = n_bad                  ? STR_LIT("the others")
                        : result->n_cells == 1 ? STR_LIT("Its case")
                                               : STR_LIT("All its cases");
    if (view->health) {
        add_health(page, view->health, n_bad == 0);
    } else if (n_bad == result->n_cells) {
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
    } else if (result->n_cells == 1 && view->frozen.report.is_unpublished) {
        const struct summary *summary = &result->cells[0].summary;
        HTML(page->out, "{} {}{}.</p>\n", number_text(page, result->cells[0].value),
             result->cells[0].unit,
             summary->n > 1
                 ? text_of(page, ", ± %.2g %% (95 %% interval of the mean of %zu repeats)",
                           100 * stats_half95(summary->std, summary->n) / fabs(summary->mean),
                           summary->n)
                 : STR_LIT(", from one repeat"));
    } else if (n_of[RUN_NOT_COMPARABLE] + n_bad == result->n_cells) {
        HTML(page->out, "{} measured; nothing comparable was published.</p>\n",
             count_text(page, n_of[RUN_NOT_COMPARABLE]));
    } else {
        HTML(page->out, "{} reproduced the published number, {} were faster and {} slower.</p>\n",
             count_text(page, n_of[RUN_REPRODUCED]), count_text(page, n_of[RUN_FASTER]),
             count_text(page, n_of[RUN_SLOWER]));
    }
}

int page_run(struct strbuf *out, const struct run_view *view, struct err *err)
{
    const struct plan *plan = &view->frozen.plan;
    struct page page = {.out = out};
    page_begin(&page, text_of(&page, "Run %.*s", STR_ARG(view->frozen.run_id)));
    HTML(out,
         "<p class=\"meta\">Report {} (<code>{}</code>), profile {}, {} repeat{} per case.</p>\n",
         view->frozen.report.title, plan->report,
         str_of(plan_kind_name(plan->profile, plan->is_rehearsal)),
         text_of(&page, "%" PRId64, plan->repeats), plan->repeats == 1 ? STR_EMPTY : STR_LIT("s"));
    add_headline(&page, view);
    strbuf_add_z(out, "</header>\n<main id=\"main\">\n");
    add_links(&page, &view->result);
    add_cells(&page, view);
    add_columns(&page, view);
    if (!view->frozen.report.is_unpublished) {
        add_conditions_of(&page, &view->result);
    }
    add_places(&page, view);
    int rc = add_run_series(&page, view, err);
    add_machines(&page, view);
    page_end(&page);
    return rc;
}
