/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf new --mlperf`: the report and the kept series of one round of MLPerf Training (draft/round.h). */
#ifndef DRAFT_NEW_ROUND_H
#define DRAFT_NEW_ROUND_H

#include "base/command.h"

struct new_round_args {
    const char *folder;  /* checked out from its repository */
    const char *results; /* the table */
};

MUST_CHECK int new_round(const struct cmd_ctx *ctx, const struct new_round_args *args,
                         struct err *err);

#endif
