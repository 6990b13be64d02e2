/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf new REPORT --from CLONE`: a draft of a report from a repository's tables and logs. */
#pragma once

#include "base/command.h"

struct new_from {
    const char *id;         /* of the report */
    const char *clone;      /* a git repository, bare or not, or its URL */
    const char *repository; /* its address; NULL: as its remote origin says */
    const char *below;      /* only documents and logs below this folder; NULL: all */
    const char *folder;     /* where reports/, formats/ and series/ go */
    const char *unit;       /* of numbers of speed whose table names none; or NULL */
    /* Of rows that do not state it; NULL or 0: not given. */
    const char *model, *framework, *precision;
    int64_t gpus, batch, gpus_per_node;
};
extern const struct cmd CMD_NEW;

/* Prints what fits, what does not and what was not found. Returns 0, or 1 where no number has a row: then nothing is written. */
MUST_CHECK int new_from_clone(const struct cmd_ctx *ctx, const struct new_from *from,
                              struct err *err);
