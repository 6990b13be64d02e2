/* SPDX-License-Identifier: Apache-2.0 */
/* Which images a run's cases may use. Only what is pinned by digest: a tag is no image. */
#ifndef RUN_RUN_IMAGES_H
#define RUN_RUN_IMAGES_H

#include "run/planner.h"

/* given: "ID=NAME@sha256:DIGEST", as `--image` has them; they come before locks and descriptions. */
MUST_CHECK int run_images(struct arena *arena, const char *root, const struct report *report,
                          const char *const *given, size_t n_given, struct plan_image **ret_images,
                          size_t *ret_n, struct err *err);

#endif
