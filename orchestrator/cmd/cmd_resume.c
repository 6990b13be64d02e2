/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/run_args.h"

static const struct opt OPTS[] = {
    OPT(struct run_args, opts.reruns_failed, "rerun-failed",
        "make repeats that failed again; of a sealed run: into a new archive beside the old one"),
    RUN_OPT_RETRY, RUN_OPT_KEY, RUN_OPT_JSON, OPT_END};

static int resume(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct run_args *args = call->args;
    struct rundir dir;
    args->opts.ctx = ctx;
    if (rundir_find(call->arena, ctx->state, call->operands.items[0], &dir, err) < 0) {
        return -1;
    }
    return run_and_print(&args->opts, &dir, args->want_json, err);
}

const struct cmd CMD_RESUME = CMD(
    "resume", "RUN", "continue a run that was interrupted or whose orchestrator died", OPTS, resume,
    CMD_ARGS(struct run_args), CMD_OPERANDS(1, 1, "expected one run; reperf status lists them"));
