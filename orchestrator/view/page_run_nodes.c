/* SPDX-License-Identifier: Apache-2.0 */
/* Of the page of a run: nodes, commands, taints, machines and logs. */
#include "base/base.h"

#include "report/hostlist.h"
#include "report/source.h"
#include "view/page.h"
#include "view/page_parts.h"

#define COMMAND_MAX (16u << 20)

/* ---- where it ran ---- */

static void add_command(struct page *page, const struct plan_step *step)
{
    CLEANUP(strbuf) struct strbuf line;
    strbuf_init(&line, COMMAND_MAX);
    for (size_t idx = 0; idx < step->n_env; idx++) {
        strbuf_printf(&line, "%.*s=", STR_ARG(step->env[idx].name));
        shq_append(&line, step->env[idx].value);
        strbuf_add_char(&line, ' ');
    }
    for (size_t idx = 0; idx < step->n_argv; idx++) {
        if (idx) {
            strbuf_add_char(&line, ' ');
        }
        shq_append(&line, step->argv[idx]);
    }
    HTML(page->out, "<code>{}</code>", strbuf_str(&line));
}

/* Whose code it was, and what of its commit was left out. */
static void add_code(struct page *page, const struct plan_step *step)
{
    if (step->recipe.ptr) {
        HTML(page->out, "<small>{}</small>", step->recipe);
    }
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
                 textf(&page->arena, "%" PRId64, mount->part.n_files),
                 textf(&page->arena, "%" PRId64, mount->part.n_left_out));
        }
        strbuf_add_z(page->out, "</small>");
    }
}

static void add_place(struct page *page, const struct cell_result *cell)
{
    const struct plan_step *step = cell->step;
    int64_t n_nodes = plan_step_nodes(step);
    strbuf_add_z(page->out, "<tr><th scope=\"row\">");
    add_case_id(page, cell->of_case->id);
    HTML(page->out,
         "</th><td class=\"n\">{}</td>"
         "<td class=\"n\">{}</td><td class=\"where mono\">{}</td><td class=\"where\">",
         textf(&page->arena, "%" PRId64, step->n_ranks), textf(&page->arena, "%" PRId64, n_nodes),
         step->image.ptr ? textf(&page->arena, "%.*s@%.*s", STR_ARG(step->image_name),
                                 STR_ARG(step->image_digest))
                         : STR_LIT("none"));
    add_command(page, step);
    add_code(page, step);
    strbuf_add_z(page->out, "</td></tr>\n");
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

static void add_repeat(struct page *page, const struct cell_result *cell,
                       const struct repeat_result *repeat)
{
    strbuf_add_z(page->out, "<tr class=\"repeat\"><th scope=\"row\">");
    add_case_id(page, cell->of_case->id);
    HTML(page->out,
         "</th><td class=\"n\">{}</td>"
         "<td class=\"n\">{}</td><td class=\"where mono\">{}</td><td class=\"n\">{}</td>"
         "<td class=\"rule\">{}",
         textf(&page->arena, "%" PRId64, repeat->repeat),
         textf(&page->arena, "%" PRId64, repeat->outcome.attempt), nodes_text(repeat, page),
         textf(&page->arena, "%" PRId64, repeat->outcome.exit_status),
         repeat->counts ? STR_LIT("it counts") : repeat->why);
    for (size_t idx = 0; idx < repeat->n_taints; idx++) {
        HTML(page->out, "<small class=\"taint\">doubt: {}</small>", repeat->taints[idx]);
    }
    strbuf_add_z(page->out, "</td></tr>\n");
}

static void add_repeats(struct page *page, const struct run_result *result)
{
    add_scroll_begin(page, STR_LIT("Repeats"));
    strbuf_add_z(page->out, "<caption>Repeats</caption><thead><tr><th scope=\"col\">Case</th>"
                            "<th scope=\"col\" class=\"n\">Repeat</th><th scope=\"col\" "
                            "class=\"n\">Attempt</th><th scope=\"col\">Nodes</th><th scope=\"col\" "
                            "class=\"n\">Exit status</th><th scope=\"col\">Remarks</th></tr>"
                            "</thead>\n<tbody>\n");
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        for (size_t at = 0; at < result->cells[idx].n_repeats; at++) {
            add_repeat(page, &result->cells[idx], &result->cells[idx].repeats[at]);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
}

void add_run_places(struct page *page, const struct run_view *view)
{
    const struct plan *plan = &view->frozen.plan;
    const struct inventory *inventory = &view->frozen.inventory;
    HTML(page->out,
         "<section class=\"card\" id=\"places\"><h2 class=\"first\">Where it ran</h2>\n<p>{}: {}. "
         "{} node{}, runtime {}, launcher {}.</p>\n",
         inventory->id, inventory->title, textf(&page->arena, "%zu", inventory->n_nodes),
         inventory->n_nodes == 1 ? STR_EMPTY : STR_LIT("s"),
         str_of(runtime_kind_label(plan->runtime)), str_of(launcher_kind_name(plan->launcher)));
    add_scroll_begin(page, STR_LIT("Commands"));
    strbuf_add_z(page->out, "<caption>What was started, once a rank</caption><thead><tr>"
                            "<th scope=\"col\">Case</th><th scope=\"col\" class=\"n\">Ranks</th>"
                            "<th scope=\"col\" class=\"n\">Nodes</th><th scope=\"col\">Image</th>"
                            "<th scope=\"col\">Command</th></tr></thead>\n<tbody>\n");
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        if (view->result.cells[idx].verdict != RUN_NOT_RUN) {
            add_place(page, &view->result.cells[idx]);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    add_repeats(page, &view->result);
    strbuf_add_z(page->out, "</section>\n");
}

/* ---- machines ---- */

/* The settings of one node, which stand together; returns where the next one begins. */
static size_t add_machine(struct page *page, const struct run_view *view, size_t begin)
{
    struct str node = view->settings[begin].node;
    size_t idx = begin;
    HTML(page->out, "<details class=\"machine\"><summary>{}{}</summary>\n", node,
         str_eq_z(node, "local") ? STR_LIT(": where reperf ran") : STR_EMPTY);
    add_scroll_begin(page, node);
    HTML(page->out,
         "<caption>environment/{}.json</caption><thead><tr><th scope=\"col\">Name</th>"
         "<th scope=\"col\">Value</th></tr></thead>\n<tbody>\n",
         node);
    for (; idx < view->n_settings && str_eq(view->settings[idx].node, node); idx++) {
        const struct setting *at = &view->settings[idx];
        HTML(page->out,
             "<tr><th scope=\"row\" class=\"mono\">{}</th><td class=\"where mono\">{}</td></tr>\n",
             at->name, at->value.ptr ? at->value : STR_LIT("none"));
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</details>\n");
    return idx;
}

void add_run_machines(struct page *page, const struct run_view *view)
{
    size_t idx = 0;
    strbuf_add_z(page->out,
                 "<section class=\"card\" id=\"machine\"><h2 class=\"first\">The "
                 "machines</h2>\n<p class=\"soft\">Everything that was recorded about each.</p>\n");
    while (idx < view->n_settings) {
        idx = add_machine(page, view, idx);
    }
    strbuf_add_z(page->out, "</section>\n");
}

/* ---- logs ---- */

static void add_log(struct page *page, struct str node, struct str path, int64_t n_bytes,
                    struct str sha256)
{
    HTML(page->out,
         "<tr><th scope=\"row\" class=\"mono\">{}</th><td class=\"mono\">{}</td>"
         "<td class=\"n\">{}</td><td class=\"where mono\">{}</td></tr>\n",
         path, node, textf(&page->arena, "%" PRId64, n_bytes), sha256);
}

static void add_logs_of(struct page *page, const struct repeat_result *repeat)
{
    const struct outcome_record *outcome = &repeat->outcome;
    if (outcome->n_nodes == 0) {
        add_log(page, STR_LIT("local"), repeat->log, outcome->log_bytes, outcome->log_sha256);
    }
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        const struct outcome_node *node = &outcome->nodes[idx];
        add_log(page, node->name, node->log, node->log_bytes, node->log_sha256);
    }
}

void add_run_logs(struct page *page, const struct run_view *view)
{
    HTML(page->out,
         "<section class=\"card\" id=\"provenance\"><h2 class=\"first\">Provenance</h2>\n<p>The "
         "report's "
         "manifest has SHA-256 <code>{}</code>. {}</p>\n",
         view->frozen.report_sha256,
         view->is_archive
             ? STR_LIT("The archive's form, digests and statements were checked; who "
                       "signed it was not (reperf verify --key does that).")
             : STR_LIT("The result was derived from the raw logs again and is the same; "
                       "the folder's seal was not checked (reperf verify does that)."));
    add_scroll_begin(page, STR_LIT("Logs"));
    strbuf_add_z(page->out,
                 "<caption>Raw logs; numbers are read from the first one of a repeat"
                 "</caption><thead><tr><th scope=\"col\">Log</th><th scope=\"col\">Node</th>"
                 "<th scope=\"col\" class=\"n\">Bytes</th><th scope=\"col\">SHA-256</th></tr>"
                 "</thead>\n<tbody>\n");
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        for (size_t at = 0; at < view->result.cells[idx].n_repeats; at++) {
            add_logs_of(page, &view->result.cells[idx].repeats[at]);
        }
    }
    strbuf_add_z(page->out, "</tbody>");
    add_scroll_end(page);
    strbuf_add_z(page->out, "</section>\n");
}
