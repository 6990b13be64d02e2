/* SPDX-License-Identifier: Apache-2.0 */
/* Heat maps: a report's cells, and the links between the nodes of a run. Each number stands in its place, and is shaded by how far it is off;
   colour adds nothing that the numbers do not say. */
#include "base/base.h"

#include <math.h>

#include "base/vec.h"
#include "report/each_node.h"
#include "view/page_parts.h"

#define SHADE_MAX 45.0 /* percent: text on it keeps a contrast of 4.5 */
#define DIFF_FULL 0.05 /* a difference from which a cell is shaded in full */

struct heat_cell {
    struct str row, column, text;
    double share; /* of the shade */
};

struct heat {
    struct page *page;
    VEC(struct heat_cell) cells;
};

static void heat_cleanup(struct heat *heat)
{
    VEC_RELEASE(&heat->cells);
}

static bool is_first(const struct heat *heat, size_t idx, bool is_row)
{
    for (size_t at = 0; at < idx; at++) {
        const struct heat_cell *a = &heat->cells.items[at], *b = &heat->cells.items[idx];
        if (is_row ? str_eq(a->row, b->row) : str_eq(a->column, b->column)) {
            return false;
        }
    }
    return true;
}

static void add_place(const struct heat *heat, struct str row, struct str column)
{
    const struct heat_cell *found = NULL;
    for (size_t idx = 0; idx < heat->cells.n && !found; idx++) {
        const struct heat_cell *cell = &heat->cells.items[idx];
        found = str_eq(cell->row, row) && str_eq(cell->column, column) ? cell : NULL;
    }
    HTML(heat->page->out, "<td style=\"--p:{}%\">{}</td>",
         text_of(heat->page, "%.0f", found ? SHADE_MAX * fmin(fmax(found->share, 0), 1) : 0.0),
         found ? found->text : STR_EMPTY);
}

static void write_heat(const struct heat *heat, struct str caption)
{
    struct strbuf *out = heat->page->out;
    HTML(out,
         "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table "
         "class=\"heat\"><caption>{}</caption>"
         "<thead><tr><td></td>",
         caption, caption);
    for (size_t idx = 0; idx < heat->cells.n; idx++) {
        if (is_first(heat, idx, false)) {
            HTML(out, "<th scope=\"col\">{}</th>", heat->cells.items[idx].column);
        }
    }
    strbuf_add_z(out, "</tr></thead>\n<tbody>\n");
    for (size_t row = 0; row < heat->cells.n; row++) {
        if (!is_first(heat, row, true)) {
            continue;
        }
        HTML(out, "<tr><th scope=\"row\">{}</th>", heat->cells.items[row].row);
        for (size_t idx = 0; idx < heat->cells.n; idx++) {
            if (is_first(heat, idx, false)) {
                add_place(heat, heat->cells.items[row].row, heat->cells.items[idx].column);
            }
        }
        strbuf_add_z(out, "</tr>\n");
    }
    strbuf_add_z(out, "</tbody></table></div>\n");
}

/* Of one model: other models have other frameworks. */
static void collect_cells(struct heat *heat, const struct report_audit *audit, struct str model)
{
    struct page *page = heat->page;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        const struct cell_audit *a = &audit->cells[idx];
        const struct report_case *c = a->of_case;
        if (a->cell->metric != METRIC_THROUGHPUT || !str_eq(c->model, model)) {
            continue;
        }
        struct heat_cell cell = {
            .row = text_of(page, "%.*s, %s, batch %" PRId64 "%s%.*s", STR_ARG(a->cell->table),
                           gpus_text(page, c->gpus).ptr, c->batch_per_gpu,
                           c->variant.len ? ", " : "", STR_ARG(c->variant)),
            .column = c->stack->label,
            .text = isnan(a->rel_diff) ? str_of(VERDICT_LOOKS[a->verdict].word)
                                       : percent_text(page, a->rel_diff),
            .share = a->verdict == AUDIT_DIFFERS
                         ? fmax(isnan(a->rel_diff) ? 1 : fabs(a->rel_diff) / DIFF_FULL, 0.2)
                         : 0};
        VEC_PUSH(&heat->cells, cell);
    }
}

void add_heat_of_cells(struct page *page, const struct report_audit *audit)
{
    bool has_any = false;
    for (size_t idx = 0; idx < audit->n_cells; idx++) {
        CLEANUP(heat) struct heat heat = {.page = page};
        struct str model = audit->cells[idx].of_case->model;
        size_t first = 0;
        while (!str_eq(audit->cells[first].of_case->model, model)) {
            first++;
        }
        if (first == idx) {
            collect_cells(&heat, audit, model);
        }
        if (heat.cells.n > 1 && !has_any) {
            page_section(page, "glance", STR_LIT("At a glance"));
            has_any = true;
        }
        if (heat.cells.n > 1) {
            write_heat(&heat, text_of(page,
                                      "%.*s: what each log gives, against the printed "
                                      "number; shaded where it differs, in full from 5 %%",
                                      STR_ARG(model)));
        }
    }
    if (has_any) {
        page_section_end(page);
    }
}

/* The links of one measure, in both directions where both were measured. */
static void add_links(struct page *page, const struct run_result *result, struct str measure)
{
    CLEANUP(heat) struct heat heat = {.page = page};
    struct str unit = STR_EMPTY;
    double best = 0;
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct cell_result *of = &result->cells[idx];
        if (of->of_case->n_on == 2 && str_eq(each_node_base(of->of_case), measure)) {
            VEC_PUSH(&heat.cells, ((struct heat_cell){of->of_case->on[0], of->of_case->on[1],
                                                      isfinite(of->value)
                                                          ? number_text(page, of->value)
                                                          : str_of(RUN_VERDICT_NAMES[of->verdict]),
                                                      of->value}));
            unit = isfinite(of->value) ? of->unit : unit;
            best = isfinite(of->value) && of->value > best ? of->value : best;
        }
    }
    for (size_t idx = 0; idx < heat.cells.n; idx++) {
        double value = heat.cells.items[idx].share;
        heat.cells.items[idx].share = isfinite(value) ? 1 - value / best : 1;
    }
    write_heat(&heat, text_of(page,
                              "%.*s, in %.*s: from the node at the left to the one above; "
                              "shaded by how much less it is than the best",
                              STR_ARG(measure), STR_ARG(unit)));
}

void add_heat_of_links(struct page *page, const struct run_result *result)
{
    bool has_any = false;
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        const struct report_case *c = result->cells[idx].of_case;
        bool is_new = c->n_on == 2;
        for (size_t at = 0; is_new && at < idx; at++) {
            const struct report_case *before = result->cells[at].of_case;
            is_new = before->n_on != 2 || !str_eq(each_node_base(before), each_node_base(c));
        }
        if (is_new && !has_any) {
            page_section(page, "links", STR_LIT("Between the nodes"));
            has_any = true;
        }
        if (is_new) {
            add_links(page, result, each_node_base(c));
        }
    }
    if (has_any) {
        page_section_end(page);
    }
}
