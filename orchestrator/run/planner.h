/* SPDX-License-Identifier: Apache-2.0 */
/* From a report and what was asked to a plan (report/plan.h). Looks at this machine (GPUs, what reperf-train can do) and
   changes nothing. A case that cannot be run here stays in the plan with its cause. */
#ifndef RUN_PLANNER_H
#define RUN_PLANNER_H

#include "base/clock.h"
#include "report/plan.h"

#define REPEATS_DEFAULT  3
#define DEADLINE_SMOKE_S 600
#define DEADLINE_FULL_S  86400
#define TRAIN_PROGRAM    "reperf-train"
#define RUN_IMAGE_SMOKE  "reperf-cpu" /* of the bundled workload under the smoke profile */

struct plan_image { /* strings as in struct plan_step */
    struct str id, name, digest;
    struct str config; /* or NULL */
};

struct planner_opts {
    enum profile profile;
    int64_t repeats;
    int64_t deadline_s;                /* 0: the profile's default */
    const struct inventory *inventory; /* the nodes' GPUs are as it says */
    const struct plan_image *images;   /* pinned ones: from locks, descriptions and --image */
    size_t n_images;
    const char *const *globs;
    size_t n_globs;
    struct str report_sha256;
    const char *train_path; /* the bundled workload's program */
    struct plan_data data; /* for the bundled workload; folder NULL: as the report's commands say */
    struct clock_src clock;
};

/* ERR_USAGE where the globs select nothing. */
MUST_CHECK int plan_make(struct arena *arena, const struct report *report,
                         const struct planner_opts *opts, struct plan *ret_plan, struct err *err);

/* $REPERF_TRAIN, else reperf-train beside the program `self`. In the arena. */
const char *planner_train_path(struct arena *arena, const char *self);

#endif
