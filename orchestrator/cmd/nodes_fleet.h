/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes that a verb of `reperf nodes` works on: found by text, reached through one loop; unreachable ones are reported and
   determine the status. Must not be moved or copied between open and release. */
#ifndef CMD_NODES_FLEET_H
#define CMD_NODES_FLEET_H

#include "cmd/cmd.h"
#include "fleet/fleet.h"
#include "load/load_inventory.h"

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

/* Holds ^C back (cmd/stop.h): it ends fleet_each. Connects to nobody yet. */
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

#endif
