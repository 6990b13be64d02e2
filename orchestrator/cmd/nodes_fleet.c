/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/nodes.h"

#include "base/log.h"
#include "base/stop.h"

int nodes_open(struct arena *arena, const struct cmd_ctx *ctx, const struct nodes_fleet_opts *opts,
               struct nodes_fleet *ret_nodes, struct err *err)
{
    struct nodes_fleet *nodes = ret_nodes;
    struct fleet_opts fleet_opts = {.work_folder = ctx->state,
                                    .clock = ctx->clock,
                                    .fanout = (size_t)opts->fanout,
                                    .outage_ns = opts->outage_ns};
    if (inventory_load(arena, ctx->root, opts->inventory, &nodes->inventory, err) < 0 ||
        (opts->nodes && inventory_select(&nodes->inventory, arena, str_of(opts->nodes),
                                         &nodes->inventory, err) < 0)) {
        return -1;
    }
    stop_hold();
    loop_init(&nodes->loop, ctx->clock);
    if (fleet_open(&nodes->fleet, &nodes->loop, &nodes->inventory, &fleet_opts, err) < 0) {
        loop_release(&nodes->loop);
        return -1;
    }
    return 0;
}

void nodes_release(struct nodes_fleet *nodes)
{
    if (nodes->fleet.nodes) {
        fleet_release(&nodes->fleet);
        loop_release(&nodes->loop);
    }
}

void nodes_each_group(const struct nodes_fleet *nodes, void *ctx,
                      struct str (*key_of)(void *ctx, size_t node_idx),
                      void (*fn)(void *ctx, struct str names, size_t node_idx))
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    size_t n = nodes->inventory.n_nodes;
    struct str *keys = arena_array(&arena, struct str, n + 1);
    size_t *members = arena_array(&arena, size_t, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        keys[idx] = key_of(ctx, idx);
    }
    for (size_t idx = 0; idx < n; idx++) {
        size_t n_members = 0;
        struct str key = keys[idx];
        if (!key.ptr) {
            continue;
        }
        for (size_t at = idx; at < n; at++) {
            if (keys[at].ptr && str_eq(keys[at], key)) {
                members[n_members++] = at;
                keys[at] = STR_EMPTY;
            }
        }
        fn(ctx, inventory_fold(&arena, &nodes->inventory, members, n_members), idx);
    }
}

static struct str error_of(void *ctx, size_t node_idx)
{
    const struct nodes_fleet *nodes = ctx;
    const struct err *err = &nodes->fleet.nodes[node_idx].err;
    return err->code == ERR_NONE ? STR_EMPTY : str_of(err->msg);
}

static void log_error(void *ctx, struct str names, size_t node_idx)
{
    const struct nodes_fleet *nodes = ctx;
    log_line(LOG_ERROR, "%.*s: %s", STR_ARG(names), nodes->fleet.nodes[node_idx].err.msg);
}

int nodes_log_failed(const struct nodes_fleet *nodes)
{
    struct nodes_fleet view = *nodes; /* the callbacks' context is not const */
    nodes_each_group(nodes, &view, error_of, log_error);
    for (size_t idx = 0; idx < nodes->fleet.n_nodes; idx++) {
        if (nodes->fleet.nodes[idx].err.code != ERR_NONE) {
            return err_exit_status(nodes->fleet.nodes[idx].err.code);
        }
    }
    return 0;
}
