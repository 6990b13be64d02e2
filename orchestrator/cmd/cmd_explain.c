/* SPDX-License-Identifier: Apache-2.0 */
/* What other commands print, in plain language: words and numbers, and how a cell or a rule comes to its number. */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/explain_names.h"

static const struct opt OPTS[] = {
    OPT(struct explain_args, logs_folder, "logs", "for cells: read the raw logs, as audit does",
        .value = "DIR"),
    OPT(struct explain_args, want_json, "json", "one JSON document"),
    OPT(struct explain_args, is_verbose, "verbose",
        "for cells: show every sample, and every fact in their logs", .letter = 'v'),
    OPT_END,
};

const struct cmd CMD_EXPLAIN = CMD("explain", "[CELL | GLOB | REPORT CELL | RULE | CODE]...",
                                   "how a cell follows from its log; what a rule or a term means",
                                   OPTS, explain_names, CMD_ARGS(struct explain_args));
