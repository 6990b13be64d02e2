/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of run/planner. */
#ifndef RUN_PLANNER_IMPL_H
#define RUN_PLANNER_IMPL_H

#include "base/map.h"
#include "run/planner.h"

struct planner { /* common to all steps */
    struct arena *arena;
    const struct planner_opts *opts;
    const struct report *report;
    struct map probes; /* argv as text -> struct probe: one probe for equal commands */
    struct map mounts; /* name -> struct plan_found: looked for once */
};

void plan_set_condition(struct plan_step *step, const char *name, struct str value);
struct str plan_number(struct arena *arena, int64_t value);
/* One more thing that the step lacks. The first is the step's cause. */
void plan_lacks(struct plan_step *step, const struct step_need *need);
/* One that reperf cannot bring; command NULL: nothing brings it. */
void plan_cannot(struct plan_step *step, enum err_code cause, const char *why, const char *command);

/* The step as the recipe has it: command, environment, conditions, place, image, mounts. */
MUST_CHECK int plan_follow(struct planner *p, const struct report_case *c,
                           const struct recipe *recipe, struct plan_step *step, struct err *err);

/* As many training steps as --steps asks for, where the command takes a number. */
void plan_ask_steps(struct planner *p, const struct report_case *c, struct plan_step *step);
/* Its time by the published rate, and the deadline that follows. */
void plan_estimate(struct planner *p, struct plan_step *step);
/* 0: the condition is absent or no number. */
int64_t plan_condition_number(const struct plan_step *step, const char *name);

/* How many ranks on how many nodes of the inventory. */
void plan_place_smoke(struct arena *arena, const struct planner_opts *opts,
                      const struct report_case *c, struct plan_step *step);
void plan_place_full(struct arena *arena, const struct planner_opts *opts,
                     const struct report_case *c, struct plan_step *step);
/* The image that the step runs in, if the inventory's runtime needs one: pinned by digest, or the step cannot be run. */
void plan_choose_image(struct planner *p, const struct report_case *c, const struct recipe *recipe,
                       struct plan_step *step);
/* Whether an image of the report cannot be pulled. False if it is not described. */
bool plan_is_built(const struct planner_opts *opts, struct str id);
/* The folders that its container sees; what is not here becomes a need. */
MUST_CHECK int plan_find_mounts(struct planner *p, const struct report_case *c,
                                const struct recipe *recipe, struct plan_step *step,
                                struct err *err);

#endif
