/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that a run would start: each command of each node, quoted for a shell, by the launcher that starts the real
   ones. Starts nothing and contacts no node. If a node's work folder is only known there, its commands find it there. */
#ifndef RUN_DRY_RUN_H
#define RUN_DRY_RUN_H

#include "run/run.h"

struct dry_command {
    struct str case_id;
    struct str node;         /* its name */
    const char *shell;       /* the whole line, as it can be typed here */
    const char *const *argv; /* there; ended by NULL, as the others */
    const char *const *env;
    const char *const *cleanup; /* NULL: none */
};

struct dry_commands {
    struct dry_command *items;
    size_t n;
};

/* Of the first repeat of each case that can be run, on the first nodes that fit; in the arena. */
MUST_CHECK int dry_run(struct arena *arena, const struct run_opts *opts,
                       const struct run_prepared *prepared, struct dry_commands *ret_commands,
                       struct err *err);

#endif
