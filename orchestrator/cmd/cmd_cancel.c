/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/log.h"
#include "cmd/cmd.h"
#include "run/run.h"

static const struct opt OPTS[] = {OPT_END};

static int cancel(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct rundir dir;
    const struct run_opts opts = {.ctx = ctx};
    if (rundir_find(call->arena, ctx->state, call->operands.items[0], &dir, err) < 0 ||
        run_cancel(call->arena, &opts, &dir, err) < 0) {
        return -1;
    }
    log_line(LOG_INFO, "run %.*s is cancelled", STR_ARG(dir.id));
    return 0;
}

const struct cmd CMD_CANCEL =
    CMD("cancel", "RUN", "stop a run's jobs and give it up for good, whichever process started it",
        OPTS, cancel, CMD_OPERANDS(1, 1, "expected one run; reperf status lists them"));
