/* SPDX-License-Identifier: Apache-2.0 */
/* What staging did, for people and programs; its progress. Shared by the verbs of `nodes` that bring files. */
#ifndef CMD_STAGE_OUT_H
#define CMD_STAGE_OUT_H

#include "base/progress.h"
#include "base/table.h"
#include "cmd/cmd.h"
#include "codec/json.h"
#include "fleet/stage.h"

struct stage_out {
    const struct cmd_ctx *ctx;
    struct progress progress;
    struct stage_opts opts; /* for stage_items */
};
void stage_out_init(struct stage_out *out, const struct cmd_ctx *ctx, bool must_copy);

/* stage_items with its progress. */
MUST_CHECK int stage_out_run(struct arena *arena, struct stage_out *out, struct fleet *fleet,
                             struct stage_list list, struct stage_report *ret_report,
                             struct err *err);

/* The members "items", "total_bytes", "head_bytes" and "nodes" of an open object. */
void stage_out_json(struct json_out *json, const struct fleet *fleet,
                    const struct stage_item *items, size_t n_items,
                    const struct stage_report *report);
void stage_out_text(struct strbuf *text, const struct fleet *fleet,
                    const struct stage_report *report);

/* Two cells of item idx on a node: the result, and where it is, or why not. */
void stage_out_row(struct table *table, const struct fleet_node *node,
                   const struct stage_node *staged, size_t idx);

#endif
