/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/run_attempt.h"

#include "base/log.h"

/* Failures here are only logged: whether the leases are still ours is checked before the first job. */
static void renew(struct run_keeper *keeper, size_t idx)
{
    struct runner *r = keeper->r;
    struct run_keeper_node *node = &keeper->nodes[idx];
    const struct inventory_node *spec = r->fleet.nodes[idx].spec;
    struct str holder = STR_EMPTY;
    struct err err = {0};
    enum step step = STEP_FAIL;
    if (!node->remote) {
        node->remote = keeper->open(&r->loop, r->fleet.inventory, spec, &err);
    }
    if (node->remote) {
        step = lease_step(&node->lease, node->remote, r->dir.id.ptr, LEASE_TAKE, &holder, &err);
    }
    if (step == STEP_AGAIN) {
        return;
    }
    if (step == STEP_FAIL) {
        log_line(LOG_DEBUG, "%.*s: its lease: %s", STR_ARG(spec->name), err.msg);
    } else if (holder.len) {
        log_line(LOG_WARN, "%.*s: its lease was taken over by run %.*s", STR_ARG(spec->name),
                 STR_ARG(str_sub(holder, 0, 60)));
    }
    node->is_due = false;
    lease_op_release(&node->lease);
}

static void on_turn(void *ctx)
{
    struct run_keeper *keeper = ctx;
    struct runner *r = keeper->r;
    int64_t now_ns = loop_now_ns(&r->loop);
    bool is_time = now_ns >= keeper->due_ns;
    if (is_time) {
        keeper->due_ns = now_ns + LEASE_RENEW_NS;
    }
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        struct run_keeper_node *node = &keeper->nodes[idx];
        node->is_due = (node->is_due || is_time) && !r->fleet.nodes[idx].is_left_out;
        if (node->is_due) {
            renew(keeper, idx);
        }
    }
}

void run_keep_begin(struct run_keeper *keeper, struct runner *r)
{
    *keeper = (struct run_keeper){.r = r, .open = fleet_remote_new};
    keeper->nodes = xcalloc(r->fleet.n_nodes + 1, sizeof(*keeper->nodes));
    keeper->due_ns = loop_now_ns(&r->loop) + LEASE_RENEW_NS;
    r->fleet.on_turn = on_turn;
    r->fleet.turn_ctx = keeper;
}

void run_keep_end(struct run_keeper *keeper)
{
    struct fleet *fleet = &keeper->r->fleet;
    fleet->on_turn = NULL;
    fleet->turn_ctx = NULL;
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        lease_op_release(&keeper->nodes[idx].lease);
        remote_free(keeper->nodes[idx].remote);
    }
    free(keeper->nodes);
    *keeper = (struct run_keeper){0};
}
