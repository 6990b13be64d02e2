/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/log.h"
#include "cmd/cmd.h"
#include "run/run.h"

static const struct opt OPTS[] = {OPT_END};

static int cancel(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct rundir dir;
    char none = 0;
    const struct run_opts opts = {.state = ctx->state, .self = ctx->self, .clock = ctx->clock};
    if (opt_parse(OPTS, argc, argv, &none, &operands, err) < 0) {
        return -1;
    }
    if (operands.n != 1) {
        return err_set(err, ERR_USAGE, "expected one run");
    }
    if (rundir_find(&arena, ctx->state, operands.items[0], &dir, err) < 0 ||
        run_cancel(&arena, &opts, &dir, err) < 0) {
        return -1;
    }
    log_line(LOG_INFO, "run %.*s is cancelled", STR_ARG(dir.id));
    return 0;
}

const struct cmd CMD_CANCEL = {"cancel", "RUN",
                               "stop a run's jobs and give it up, whichever process started it",
                               OPTS, cancel};
