/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of run/planner share. */
#ifndef RUN_PLANNER_IMPL_H
#define RUN_PLANNER_IMPL_H

#include "run/planner.h"

void plan_set_condition(struct plan_step *step, const char *name, struct str value);
struct str plan_number(struct arena *arena, int64_t value);
/* The first cause stays. */
void plan_cannot(struct plan_step *step, enum err_code cause, const char *why);

/* How many ranks on how many nodes of the inventory. */
void plan_place_smoke(struct arena *arena, const struct planner_opts *opts,
                      const struct report_case *c, struct plan_step *step);
void plan_place_full(struct arena *arena, const struct planner_opts *opts,
                     const struct report_case *c, struct plan_step *step);
/* The image that the step runs in, where the inventory's runtime wants one: pinned by digest, or the step cannot be run. */
void plan_choose_image(struct arena *arena, const struct planner_opts *opts,
                       const struct report_case *c, struct plan_step *step);

#endif
