/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_repeats.h"

#include "base/table.h"

#define WHY_MAX 60

void run_repeats_table(struct strbuf *buf, const struct run_info *info)
{
    static const struct table_column COLUMNS[] = {
        {"case", false}, {"repeat", true}, {"state", false}, {"nodes", false},
        {"lost", true},  {"since", false}, {"why", false},
    };
    CLEANUP(table) struct table table;
    table_init(&table, COLUMNS, ARRAY_LEN(COLUMNS));
    if (info->n_total == 0) {
        strbuf_add_z(buf, "no repeat: no case of it could be run\n");
        return;
    }
    for (size_t idx = 0; idx < info->n_total; idx++) {
        const struct run_repeat *at = &info->repeats[idx];
        table_add(&table, at->case_id);
        table_addf(&table, "%lld", (long long)at->repeat);
        table_add(&table, str_of(at->state));
        table_add(&table, at->nodes.ptr ? at->nodes : STR_LIT("-"));
        table_addf(&table, "%zu", at->n_lost);
        table_add(&table, at->since.ptr ? at->since : STR_LIT("-"));
        table_add(&table, at->why.ptr ? str_sub(at->why, 0, WHY_MAX) : STR_EMPTY);
    }
    table_render(&table, buf);
}
