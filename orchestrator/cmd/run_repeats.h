/* SPDX-License-Identifier: Apache-2.0 */
/* How far each repeat of a run is, as a table: for status and attach. */
#ifndef CMD_RUN_REPEATS_H
#define CMD_RUN_REPEATS_H

#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "run/runs.h"

void run_repeats_table(struct strbuf *buf, const struct run_info *info);

/* Prints each change of the one run among the operands until it ends, then its result: the run's exit status, or -1. */
int run_follow(const struct cmd_ctx *ctx, const struct opt_list *operands, struct err *err);

#endif
