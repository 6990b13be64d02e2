/* SPDX-License-Identifier: Apache-2.0 */
/* How far each repeat of a run is, as a table: for status and attach. */
#ifndef CMD_RUN_REPEATS_H
#define CMD_RUN_REPEATS_H

#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "run/runs.h"

void run_repeats_table(struct strbuf *buf, const struct run_info *info);

#endif
