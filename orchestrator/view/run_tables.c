/* SPDX-License-Identifier: Apache-2.0 */
/* A run as tables for other programs: a row a cell. */
#include "base/base.h"

#include <math.h>

#include "base/table.h"
#include "judge/stats.h"
#include "view/run_view.h"

static void add_cells(const struct run_view *view, struct table *table)
{
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        const struct cell_result *cell = &view->result.cells[idx];
        size_t n = cell->summary.n;
        table_add(table, view->frozen.run_id);
        table_add(table, view->frozen.plan.report);
        table_addf(table, "%s",
                   plan_kind_name(view->frozen.plan.profile, view->frozen.plan.is_rehearsal));
        table_add(table, cell->of_case->id);
        table_addf(table, "%zu", n);
        table_add_f64(table, cell->value);
        table_add_f64(table, n > 1 ? cell->summary.std : (double)NAN);
        table_add_f64(table, stats_half95(cell->summary.std, n));
        table_add_f64(table, n ? cell->summary.min : (double)NAN);
        table_add_f64(table, n ? cell->summary.max : (double)NAN);
        table_add(table, cell->unit.ptr ? cell->unit : STR_EMPTY);
        table_add(table, cell->published ? cell->published->printed : STR_EMPTY);
        table_add_f64(table, cell->rel_diff);
        table_addf(table, "%s", run_verdict_name(cell->verdict));
        table_add(table, cell->why.ptr ? cell->why : STR_EMPTY);
    }
}

static const struct table_column COLUMNS[] = {
    {"run", false},  {"report", false},   {"profile", false}, {"case", false},    {"n", true},
    {"value", true}, {"std", true},       {"ci95", true},     {"min", true},      {"max", true},
    {"unit", false}, {"published", true}, {"rel_diff", true}, {"verdict", false}, {"why", false}};

void run_out_table(const struct run_view *view, bool is_csv, struct strbuf *out)
{
    CLEANUP(table) struct table table = TABLE(COLUMNS);
    add_cells(view, &table);
    (is_csv ? table_render_csv : table_render_markdown)(&table, out);
}
