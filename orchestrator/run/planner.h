/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a plan (report/plan.h) from a report and the request: each case by the first recipe of its stack that has all it needs,
   with no framework known by name. Reads the store and changes nothing; asks the bundled program what it can do only if this
   machine itself is the node. A case that lacks something stays in the plan with what it needs. */
#pragma once

#include "base/clock.h"
#include "base/opt.h"
#include "report/plan.h"
#include "store/store.h"
#include "sys/tree.h"

#define REPEATS_DEFAULT  3
#define DEADLINE_SMOKE_S 600
#define DEADLINE_FULL_S  86400
#define TRAIN_PROGRAM    "reperf-train"

struct plan_image { /* strings as in struct plan_step */
    struct str id, name;
    struct str digest; /* NULL: it is described, and not pinned */
    struct str config; /* or NULL */
    /* What images/build.sh takes: its id, or its folder beside the user's manifests. */
    struct str source;
    struct str cuda;           /* or NULL */
    const struct str *instead; /* ids; as in report/image.h */
    size_t n_instead;
    bool is_built;           /* there is nothing to pull */
    bool is_given;           /* by --image */
    bool is_asked;           /* likewise, and a case or a stack names it */
    struct plan_need stored; /* name NULL: nothing is got */
};

struct planner_opts {
    /* What was asked of the plan; deadline_s 0: the profile's default, or three times the estimate. */
    struct plan asked;
    /* Of several recipes, one that lacks only what reperf can get is as good as one that lacks nothing. */
    bool counts_gettable;
    /* The frameworks of a row never take turns; without this and asked.takes_turns they do where a row has several. */
    bool is_packed;
    const char *root;
    const struct store *store;         /* NULL: there is none, and nothing in it */
    const struct inventory *inventory; /* the nodes' GPUs are as it says */
    /* By --image; others as locks and descriptions have them. */
    struct plan_image *images;
    size_t n_images;
    struct opt_list globs;
    const char *train_path; /* the bundled workload's program */
    bool is_offline;        /* a case whose needs are not all there is not run: ERR_FETCH */
    struct clock_src clock;
};

/* ERR_USAGE if the globs select nothing. */
MUST_CHECK int plan_make(struct arena *arena, const struct report *report,
                         const struct planner_opts *opts, struct plan *ret_plan, struct err *err);

/* Whether reperf itself can get all that the step lacks, by fetch or lock. */
bool plan_can_get(const struct plan_step *step);

/* $REPERF_TRAIN, else reperf-train next to the program `self`. In the arena. */
const char *planner_train_path(struct arena *arena, const char *self);
