/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed run as a folder that others audit, and reproduce by its address. Its report's numbers are those of the run, its logs the raw
   ones, its recipes what ran; nothing is written that was not frozen or collected with the run. */
#pragma once

#include "base/command.h"
#include "judge/audit.h"

struct publication_opts {
    const struct cmd_ctx *ctx;
    const char *run;    /* id, name or archive */
    const char *output; /* a new or empty folder */
    const char *title;  /* of the report; NULL: the run's */
    const char *files;  /* that a command of one's own needs; NULL: none */
    void (*lint)(struct arena *arena, const struct report *report, struct findings *findings);
};

/* A failure leaves nothing there. ERR_USAGE where there is nothing to publish, or what looks like a secret is among it; ERR_INTEGRITY where
   the files are not those of the run. */
MUST_CHECK int publication_write(struct arena *arena, const struct publication_opts *opts,
                                 size_t *ret_n_numbers, struct err *err);
