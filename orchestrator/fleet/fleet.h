/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of an inventory, reached: one remote each, all on one loop. Work on many nodes is a step function for one node,
   called for all of them in turn until each is done or has failed; one that fails does not stop the others, and is always
   counted. */
#pragma once

#include "fleet/remote.h"
#include "report/inventory.h"

#define FLEET_FANOUT_DEFAULT 64 /* nodes busy at one time */

struct fleet_node {
    const struct inventory_node *spec; /* borrowed from the inventory */
    struct remote *remote;             /* owned */
    struct err err;   /* why it failed in the last fleet_each; ERR_NONE: it did not */
    bool is_left_out; /* set by the caller: it is no longer used, its err stays */
    void *data;       /* the caller's own */
};

struct fleet {
    struct loop *loop; /* borrowed */
    const struct inventory *inventory;
    struct fleet_node *nodes; /* as many and in the order of the inventory; owned */
    size_t n_nodes;
    size_t fanout;
    const int *stop_signal;     /* borrowed; another value than 0 stops as well; may be NULL */
    void (*on_turn)(void *ctx); /* each time that fleet_each has looked at all nodes; may be NULL */
    void *turn_ctx;
};

struct fleet_opts {
    const char *work_folder; /* the local node's */
    struct clock_src clock;
    size_t fanout;          /* 0: FLEET_FANOUT_DEFAULT */
    int64_t outage_ns;      /* how long a lost connection is tried again; 0: the remote's default */
    const int *stop_signal; /* may be NULL */
};

/* Connects to nobody yet: the first operation does. */
MUST_CHECK int fleet_open(struct fleet *fleet, struct loop *loop, const struct inventory *inventory,
                          const struct fleet_opts *opts, struct err *err);
/* Another remote to a node over SSH, owned by the caller. NULL and *err where its configuration is wrong. */
struct remote *fleet_remote_new(struct loop *loop, const struct inventory *inventory,
                                const struct inventory_node *node, struct err *err);
void fleet_release(struct fleet *fleet);
CLEANUP_BY(fleet, struct fleet, fleet_release);

typedef enum step (*fleet_step_fn)(void *ctx, struct fleet_node *node, size_t node_idx,
                                   struct err *err);

/* Calls fn for each node until it says STEP_DONE or STEP_FAIL (then node->err is set). deadline_ns: span for each node, from its
   first call; past it: ERR_TIMEOUT. Returns the number of nodes that failed now, or -1 (the loop broke, or it was stopped). */
MUST_CHECK int fleet_each(struct fleet *fleet, int64_t deadline_ns, fleet_step_fn fn, void *ctx,
                          struct err *err);

/* "node2: connection refused": the first failed node's error as the caller's. */
MUST_CHECK int fleet_first_error(const struct fleet *fleet, struct err *err);
