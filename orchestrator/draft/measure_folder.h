/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf measure FOLDER...`: the runs of each MLPerf Training result at or below the folders (result_*.txt, scaling.json), its
   score, and what the rules say that a log can show; and beside a round's table whose result each row is. */
#pragma once

#include "base/command.h"
#include "base/opt.h"

struct folder_args {
    const struct opt_list *folders;
    const char *results; /* the table; NULL: none is given */
    bool want_json;
};

/* Exit status: 9 (parse) where a folder has no score or a check fails; else 1 where a row is not its folder's score; else 0. */
MUST_CHECK int measure_folders(const struct cmd_ctx *ctx, const struct folder_args *args,
                               struct err *err);
