/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of run_read and run_plan that are files of their own. Only run/run*.c include it. */
#ifndef RUN_RUN_PREPARE_H
#define RUN_RUN_PREPARE_H

#include "codec/json_override.h"
#include "run/run.h"

/* -C PATH=VALUE on a report: what a run may set differently, and what was published and may not be changed. The report's text with all settings, one after the other. */
MUST_CHECK int run_override(struct arena *arena, const char *const *settings, size_t n,
                            struct str *text, struct json_override **ret_overrides,
                            struct err *err);

/* Which images a run's cases may use. Only what is pinned by digest: a tag is no image. Of opts->images, "ID=NAME@sha256:DIGEST", as `--image` has them, then of locks and descriptions. */
MUST_CHECK int run_images(struct arena *arena, const struct run_opts *opts,
                          const struct report *report, struct planner_opts *ret_plan,
                          struct err *err);

/* What the cases of a plan need from the store, and how much of it is there: what their recipes name, without one all that their
   stacks do. Changes nothing. */
struct run_needs_opts {
    const char *root;
    const struct store *store; /* NULL: there is none */
    bool is_offline;           /* a case whose needs are not all there is not run: ERR_FETCH */
    struct clock_src clock;
};

MUST_CHECK int run_needs(struct arena *arena, const struct run_needs_opts *opts,
                         const struct report *report, struct plan *plan, struct err *err);

#endif
