/* SPDX-License-Identifier: Apache-2.0 */
/* Leases while the nodes are given what the steps need: images and data may take longer than a lease lasts, and a node does one thing
   at a time. So they are renewed over connections of their own, which are opened only once the first renewal is due. Only
   run/run*.c include it. */
#ifndef RUN_RUN_KEEP_H
#define RUN_RUN_KEEP_H

#include "run/run_impl.h"

struct run_keeper_node {
    struct remote *remote; /* owned; NULL: not needed yet */
    struct lease_op lease;
    bool is_due;
};

struct run_keeper {
    struct runner *r;
    struct run_keeper_node *nodes; /* as the fleet's; owned */
    int64_t due_ns;
    /* fleet_remote_new; tests have their own nodes */
    struct remote *(*open)(struct loop *loop, const struct inventory *inventory,
                           const struct inventory_node *node, struct err *err);
};

/* Until run_keep_end each turn of fleet_each looks after the leases. */
void run_keep_begin(struct run_keeper *keeper, struct runner *r);
void run_keep_end(struct run_keeper *keeper);

#endif
