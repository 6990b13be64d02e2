/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/fleet.h"

#include "base/stop.h"

#define TICK_NS (50 * NS_PER_MS)

static struct remote *make_remote(struct loop *loop, const struct inventory *inventory,
                                  const struct inventory_node *node, const struct fleet_opts *opts,
                                  struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    if (inventory->is_local) {
        return remote_local_new(loop, opts->work_folder);
    }
    /* The remote copies what it keeps. */
    struct remote_ssh_opts ssh = {
        .host = str_z(&arena, node->address),
        .port = node->port,
        .user = node->user.ptr ? str_z(&arena, node->user) : NULL,
        .work_folder = node->work_folder.ptr ? str_z(&arena, node->work_folder) : NULL,
        .outage_ns = opts->outage_ns};
    return remote_ssh_new(loop, &ssh, err);
}

struct remote *fleet_remote_new(struct loop *loop, const struct inventory *inventory,
                                const struct inventory_node *node, struct err *err)
{
    const struct fleet_opts opts = {0};
    ASSERT(!inventory->is_local);
    return make_remote(loop, inventory, node, &opts, err);
}

int fleet_open(struct fleet *fleet, struct loop *loop, const struct inventory *inventory,
               const struct fleet_opts *opts, struct err *err)
{
    *fleet = (struct fleet){.loop = loop,
                            .inventory = inventory,
                            .fanout = opts->fanout ? opts->fanout : FLEET_FANOUT_DEFAULT,
                            .stop_signal = opts->stop_signal};
    fleet->nodes = xcalloc(inventory->n_nodes + 1, sizeof(*fleet->nodes));
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        const struct inventory_node *spec = &inventory->nodes[idx];
        struct remote *remote = make_remote(loop, inventory, spec, opts, err);
        if (!remote) {
            fleet_release(fleet);
            return err_wrap(err, "%.*s", STR_ARG(spec->name));
        }
        fleet->nodes[fleet->n_nodes++] = (struct fleet_node){.spec = spec, .remote = remote};
    }
    return 0;
}

void fleet_release(struct fleet *fleet)
{
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        remote_free(fleet->nodes[idx].remote);
    }
    free(fleet->nodes);
    *fleet = (struct fleet){0};
}

/* ---- the same on each ---- */

/* One call of fleet_each. */
struct fleet_round {
    struct fleet *fleet;
    int64_t deadline_ns; /* span */
    fleet_step_fn fn;
    void *ctx;
    int64_t *until_ns; /* for each node; 0: not begun, -1: over */
    size_t n_busy, n_over, n_failed;
};

static void end_node(struct fleet_round *round, size_t idx, const struct err *err)
{
    round->until_ns[idx] = -1;
    round->n_busy--;
    round->n_over++;
    if (err->code != ERR_NONE) {
        round->fleet->nodes[idx].err = *err;
        round->n_failed++;
    }
}

static void step_node(struct fleet_round *round, size_t idx, int64_t now_ns)
{
    struct fleet_node *node = &round->fleet->nodes[idx];
    struct err err = {0};
    if (round->until_ns[idx] == 0) {
        round->until_ns[idx] = round->deadline_ns ? now_ns + round->deadline_ns : INT64_MAX;
        round->n_busy++;
    }
    enum step step = round->fn(round->ctx, node, idx, &err);
    if (step == STEP_AGAIN && now_ns < round->until_ns[idx]) {
        return;
    }
    if (step == STEP_AGAIN) {
        node->remote->ops->abort(node->remote);
        step = step_fail(err_set(&err, ERR_TIMEOUT, "not done within %lld s",
                                 (long long)(round->deadline_ns / NS_PER_S)));
    }
    ASSERT((step == STEP_FAIL) == (err.code != ERR_NONE));
    end_node(round, idx, &err);
}

static void abort_round(struct fleet_round *round)
{
    for (size_t idx = 0; idx < round->fleet->n_nodes; idx++) {
        if (round->until_ns[idx] > 0) {
            struct remote *remote = round->fleet->nodes[idx].remote;
            remote->ops->abort(remote);
        }
    }
}

int fleet_each(struct fleet *fleet, int64_t deadline_ns, fleet_step_fn fn, void *ctx,
               struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct fleet_round round = {.fleet = fleet, .deadline_ns = deadline_ns, .fn = fn, .ctx = ctx};
    round.until_ns = arena_array(&arena, int64_t, fleet->n_nodes + 1);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        if (fleet->nodes[idx].is_left_out) {
            round.until_ns[idx] = -1;
            round.n_over++;
        } else {
            fleet->nodes[idx].err = (struct err){0};
        }
    }
    while (round.n_over < fleet->n_nodes) {
        int64_t now_ns = loop_now_ns(fleet->loop);
        size_t n_over = round.n_over;
        for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
            if (round.until_ns[idx] > 0 ||
                (round.until_ns[idx] == 0 && round.n_busy < fleet->fanout)) {
                step_node(&round, idx, now_ns);
            }
        }
        if (fleet->on_turn) {
            fleet->on_turn(fleet->turn_ctx);
        }
        if ((stop_is_asked()) || (fleet->stop_signal && *fleet->stop_signal)) {
            abort_round(&round);
            return err_set(err, ERR_INTERRUPTED, "stopped by a signal");
        }
        if (round.n_over == n_over && loop_once(fleet->loop, TICK_NS, err) < 0) {
            abort_round(&round);
            return -1;
        }
    }
    return (int)round.n_failed;
}

int fleet_first_error(const struct fleet *fleet, struct err *err)
{
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        const struct fleet_node *node = &fleet->nodes[idx];
        if (node->err.code != ERR_NONE) {
            return err_set(err, node->err.code, "%.*s: %s", STR_ARG(node->spec->name),
                           node->err.msg);
        }
    }
    return 0;
}
