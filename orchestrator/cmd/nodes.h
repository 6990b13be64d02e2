/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf nodes VERB INVENTORY`: each verb is a command of its own, with its own options and its own file cmd/nodes_VERB.c;
   cmd/commands.c lists them. A verb's `run` gets what follows the verb. Its first operand is what --nodes takes elsewhere. */
#pragma once

#include "base/progress.h"
#include "base/table.h"
#include "cmd/cmd.h"
#include "codec/json.h"
#include "fleet/fleet.h"
#include "fleet/stage.h"
#include "load/load_inventory.h"

/* One a line, sorted. */
extern const struct cmd NODES_CLEAN;
extern const struct cmd NODES_COPY;
extern const struct cmd NODES_DOCTOR;
extern const struct cmd NODES_EXEC;
extern const struct cmd NODES_LIST;
extern const struct cmd NODES_PROVISION;

/* The nodes that a verb works on: found by text, reached through one loop; unreachable ones are reported and determine the
   status. Must not be moved or copied between open and release. */
struct nodes_fleet {
    struct loop loop;
    struct inventory inventory;
    struct fleet fleet;
};

struct nodes_fleet_opts {
    const char *inventory; /* what inventory_load takes */
    const char *nodes;     /* a node set of it, or NULL: all */
    int64_t fanout;        /* 0: the default */
    int64_t outage_ns;     /* 0: the remote's default */
};

/* Holds ^C back (base/stop.h): it ends fleet_each. Connects to nobody yet. */
MUST_CHECK int nodes_open(struct arena *arena, const struct cmd_ctx *ctx,
                          const struct nodes_fleet_opts *opts, struct nodes_fleet *ret_nodes,
                          struct err *err);
void nodes_release(struct nodes_fleet *nodes);
CLEANUP_BY(nodes_fleet, struct nodes_fleet, nodes_release);

/* Logs each node that failed in the last fleet_each, those with one and the same reason in one line ("node[2-3]: ..."), and
   returns the exit status of the first of them, 0 where there is none. */
int nodes_log_failed(const struct nodes_fleet *nodes);

/* Groups the nodes by key_of, in the order of each group's first node: fn gets them as "node[1-3]" with the first one's index.
   key_of may return a str with ptr NULL: that node is left out. */
void nodes_each_group(const struct nodes_fleet *nodes, void *ctx,
                      struct str (*key_of)(void *ctx, size_t node_idx),
                      void (*fn)(void *ctx, struct str names, size_t node_idx));

/* What staging did, for people and programs; its progress. */
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
