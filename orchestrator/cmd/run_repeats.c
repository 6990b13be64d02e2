/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_repeats.h"

#include <math.h>

#include "base/table.h"

#define WHY_MAX 60

/* What the log gives, how far it is, and how long it will take at that pace. */
static void add_so_far(struct table *table, const struct run_repeat *at)
{
    table_addf_if(table, isfinite(at->value), "%.5g %.*s", at->value, STR_ARG(at->unit));
    if (at->step >= 0 && at->n_steps >= 0) {
        table_addf(table, "%lld/%lld", (long long)at->step, (long long)at->n_steps);
    } else
        table_addf_if(table, at->step >= 0, "%lld", (long long)at->step);
    table_addf_if(table, isfinite(at->left_s), at->left_s < 90 ? "%.0f s" : "%.0f min",
                  at->left_s < 90 ? at->left_s : at->left_s / 60);
}

void run_repeats_table(struct strbuf *buf, const struct run_info *info)
{
    static const struct table_column COLUMNS[] = {
        {"case", false},  {"repeat", true}, {"state", false}, {"nodes", false}, {"lost", true},
        {"so far", true}, {"step", true},   {"left", true},   {"since", false}, {"why", false},
    };
    CLEANUP(table) struct table table;
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    if (info->n_total == 0) {
        strbuf_add_z(buf, "no repeat: none of its cases could run\n");
        return;
    }
    for (size_t idx = 0; idx < info->n_total; idx++) {
        const struct run_repeat *at = &info->repeats[idx];
        table_add(&table, at->case_id);
        table_addf(&table, "%lld", (long long)at->repeat);
        table_add(&table, str_of(at->state));
        table_add_or_dash(&table, at->nodes);
        table_addf(&table, "%zu", at->n_lost);
        add_so_far(&table, at);
        table_add_or_dash(&table, at->since);
        table_add(&table, at->why.ptr ? str_sub(at->why, 0, WHY_MAX) : STR_EMPTY);
    }
    table_render(&table, buf);
}
