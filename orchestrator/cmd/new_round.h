/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf new --mlperf`: the report and the kept series of one round of MLPerf Training (load/round.h). */
#ifndef CMD_NEW_ROUND_H
#define CMD_NEW_ROUND_H

#include "cmd/cmd.h"

struct new_round_args {
    const char *folder;  /* checked out from its repository */
    const char *results; /* the table */
};

MUST_CHECK int new_round(const struct cmd_ctx *ctx, const struct new_round_args *args,
                         struct err *err);

#endif
