/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/guests.h"
#include "view/publication.h"

static const struct opt OPTS[] = {
    OPT(struct publication_opts, output, "output", "a new or empty folder to write to",
        .letter = 'o', .value = "FOLDER"),
    OPT(struct publication_opts, title, "title", "title of the report (default: the run's)",
        .value = "TEXT"),
    OPT(struct publication_opts, files, "files",
        "for a run of a command: the files that it needs, which are published too",
        .value = "FOLDER"),
    OPT_END,
};

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct publication_opts *opts = call->args;
    size_t n_numbers = 0;
    opts->ctx = ctx;
    opts->run = call->operands.items[0];
    opts->lint = GUESTS.lint;
    if (!opts->output) {
        return err_set(err, ERR_USAGE, "publish: -o FOLDER says where");
    }
    if (publication_write(call->arena, opts, &n_numbers, err) < 0) {
        return -1;
    }
    log_line(
        LOG_INFO,
        "%s: %zu number%s; commit and push it, and anybody reproduces it: reperf run URL@COMMIT",
        opts->output, n_numbers, plural_s(n_numbers));
    return 0;
}

const struct cmd CMD_PUBLISH =
    CMD("publish", "RUN", "a folder that others audit, and reproduce by its address", OPTS, run,
        CMD_ARGS(struct publication_opts), CMD_OPERANDS(1, 1, "publish: expected one run"));
