/* SPDX-License-Identifier: Apache-2.0 */
/* Which images a run's cases may use. Only what is pinned by digest: a tag is no image. */
#ifndef RUN_RUN_IMAGES_H
#define RUN_RUN_IMAGES_H

#include "run/planner.h"
#include "run/run.h"

/* Of opts->images, "ID=NAME@sha256:DIGEST", as `--image` has them, then of locks and descriptions. */
MUST_CHECK int run_images(struct arena *arena, const struct run_opts *opts,
                          const struct report *report, struct planner_opts *ret_plan,
                          struct err *err);

#endif
