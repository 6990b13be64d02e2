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
        TABLE_ADD(table, view->frozen.run_id, view->frozen.plan.report,
                  str_of(plan_kind_name(view->frozen.plan.profile, view->frozen.plan.is_rehearsal)),
                  cell->of_case->id, table_text(table, "%zu", n), table_f64(table, cell->value),
                  table_f64(table, n > 1 ? cell->summary.std : (double)NAN),
                  table_f64(table, stats_half95(cell->summary.std, n)),
                  table_f64(table, n ? cell->summary.min : (double)NAN),
                  table_f64(table, n ? cell->summary.max : (double)NAN),
                  cell->unit.ptr ? cell->unit : STR_EMPTY,
                  cell->published ? cell->published->printed : STR_EMPTY,
                  table_f64(table, cell->rel_diff), str_of(RUN_VERDICT_NAMES[cell->verdict]),
                  cell->why.ptr ? cell->why : STR_EMPTY);
    }
}

void run_out_table(const struct run_view *view, bool is_csv, struct strbuf *out)
{
    CLEANUP(table)
    struct table table = table_of("run|report|profile|case|>n|>value|>std|>ci95|>min|>max|unit|>"
                                  "published|>rel_diff|verdict|why");
    add_cells(view, &table);
    (is_csv ? table_render_csv : table_render_markdown)(&table, out);
}
