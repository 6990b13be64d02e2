/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf measure FOLDER`: the runs of one MLPerf Training result (result_*.txt, scaling.json), its score, and what the rules say that
   a log can show. */
#ifndef DRAFT_MEASURE_FOLDER_H
#define DRAFT_MEASURE_FOLDER_H

#include "base/command.h"

/* Exit status: 0 where there is a score and no check fails, 9 (parse) otherwise. */
MUST_CHECK int measure_folder(const struct cmd_ctx *ctx, const char *folder, bool want_json,
                              struct err *err);

#endif
