/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed runs of one report as a folder that others audit, and reproduce by its address. Its report's numbers are those of the
   runs, its logs the raw ones, its recipes what ran; nothing is written that was not frozen or collected with the runs. */
#pragma once

#include "base/command.h"
#include "judge/audit.h"

#define PUBLICATION_RUNS_MAX 64

struct publication_opts {
    const struct cmd_ctx *ctx;
    const struct opt_list *runs; /* at most PUBLICATION_RUNS_MAX, by id, name or archive */
    const char *output;          /* a new or empty folder */
    const char *title;           /* of the report; NULL: the run's */
    const char *files;           /* that a command of one's own needs; NULL: none */
    const char *author;          /* of CITATION.cff; NULL: there is none */
    void (*lint)(struct arena *arena, const struct report *report, struct findings *findings);
};

/* A failure leaves nothing there. Of several runs the first that has a number for a case gives it. ERR_USAGE where there is
   nothing to publish, or what looks like a secret is among it; ERR_INTEGRITY where the files are not those of the run. */
MUST_CHECK int publication_write(struct arena *arena, const struct publication_opts *opts,
                                 size_t *ret_n_numbers, uint64_t *ret_bytes, struct err *err);
