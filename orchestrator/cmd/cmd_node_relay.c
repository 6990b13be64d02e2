/* SPDX-License-Identifier: Apache-2.0 */
/* What the orchestrator starts on a node; people have no use for it, so no list of commands shows it. */
#include "base/base.h"

#include <unistd.h>

#include "base/arena.h"
#include "base/fs.h"
#include "cmd/cmd.h"
#include "fleet/relay_server.h"

static const struct opt OPTS[] = {OPT_END};

static int run_node_relay(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct relay_opts opts = {.in_fd = STDIN_FILENO, .out_fd = STDOUT_FILENO, .clock = ctx->clock};
    int unused;
    if (opt_parse(OPTS, argc, argv, &unused, &operands, err) < 0) {
        return -1;
    }
    if (operands.n != 1) {
        return err_set(err, ERR_USAGE, "node-relay: expected the node's work folder");
    }
    if (fs_mkdir_p(fs_join(&arena, operands.items[0], "cache"), err) < 0) {
        return -1;
    }
    opts.cache_path = fs_join(&arena, operands.items[0], "cache/digests");
    return relay_serve(&opts, err);
}

const struct cmd CMD_NODE_RELAY = {"node-relay", "WORK", "one end of staging, on a node", OPTS,
                                   run_node_relay};
