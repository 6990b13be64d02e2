/* SPDX-License-Identifier: Apache-2.0 */
/* reperf new: a report made from what was published, nothing of it by hand. */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/new_round.h"

struct args {
    struct new_round_args round;
};

#define AT(member) offsetof(struct args, member)
static const struct opt OPTS[] = {
    {"mlperf", 0, OPT_TEXT, "FOLDER", "a round of MLPerf Training: its checked out repository",
     AT(round.folder), 0, 0},
    {"results", 0, OPT_TEXT, "CSV", "with --mlperf: the table of the results", AT(round.results), 0,
     0},
    OPT_END,
};
#undef AT

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list names = {0};
    struct args args = {0};
    if (opt_parse(OPTS, argc, argv, &args, &names, err) < 0) {
        return -1;
    }
    if (!args.round.folder || names.n > 0) {
        return err_set(err, ERR_USAGE, "new: expected --mlperf FOLDER --results CSV");
    }
    return new_round(ctx, &args.round, err);
}

const struct cmd CMD_NEW = {
    .name = "new",
    .operands = "",
    .summary = "make a report from what was published",
    .opts = OPTS,
    .run = run,
};
