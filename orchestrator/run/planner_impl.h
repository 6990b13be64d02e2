/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of run/planner. */
#pragma once

#include "base/map.h"
#include "run/planner.h"

struct planner { /* common to all steps */
    struct arena *arena;
    const struct planner_opts *opts;
    const struct report *report;
    const struct plan *plan; /* that is being made */
    struct map probes;       /* argv as text -> struct probe: one probe for equal commands */
    struct map mounts;       /* name -> struct plan_found: looked for once */
    struct map images;       /* id -> struct plan_image: likewise */
};

/* One more thing that the step lacks. The first is the step's cause. */
void plan_lacks(struct plan_step *step, const struct step_need *need);
/* One that reperf cannot bring; command NULL: nothing brings it. */
void plan_cannot(struct plan_step *step, enum err_code cause, const char *why, const char *command);

/* How many ranks on how many nodes of the inventory. */
void plan_place_smoke(struct arena *arena, const struct planner_opts *opts,
                      const struct report_case *c, struct plan_step *step);
void plan_place_full(struct arena *arena, const struct planner_opts *opts,
                     const struct report_case *c, struct plan_step *step);
/* The image that the step runs in, if the inventory's runtime needs one: pinned by digest, or the step cannot be run. */
MUST_CHECK int plan_choose_image(struct planner *p, const struct report_case *c,
                                 const struct recipe *recipe, struct plan_step *step,
                                 struct err *err);
/* The folders that its container sees; what is not here becomes a need. */
MUST_CHECK int plan_find_mounts(struct planner *p, const struct report_case *c,
                                const struct recipe *recipe, struct plan_step *step,
                                struct err *err);
/* What the step needs from the store goes on the plan's list, once; offline it is why the step cannot be run. */
MUST_CHECK int plan_list_needs(struct planner *p, struct plan *plan, struct plan_step *step,
                               struct err *err);
/* Likewise what of a stack is not pinned. ERR_MANIFEST where it is too much. */
MUST_CHECK int plan_list_pins(struct planner *p, struct plan *plan, const struct stack *stack,
                              struct err *err);
