/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/run_args.h"

static const struct opt OPTS[] = {RUN_OPT_KEY, RUN_OPT_JSON, OPT_END};

static int resume(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct run_args args = {0};
    struct run_opts opts = {.root = ctx->root,
                            .state = ctx->state,
                            .store = ctx->store,
                            .self = ctx->self,
                            .clock = ctx->clock};
    struct rundir dir;
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    if (operands.n != 1) {
        return err_set(err, ERR_USAGE, "expected one run");
    }
    opts.key_path = args.key;
    if (rundir_find(&arena, ctx->state, operands.items[0], &dir, err) < 0) {
        return -1;
    }
    return run_and_print(&opts, &dir, args.want_json, err);
}

const struct cmd CMD_RESUME = {"resume", "RUN",
                               "continue a run that was interrupted or whose orchestrator died",
                               OPTS, resume};
