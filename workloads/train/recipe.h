/* SPDX-License-Identifier: Apache-2.0 */
/* How a report trains a model: what stands where the command line names nothing else. run_start says all of it. */
#pragma once

#include "graph/net.h"
#include "train/schedule.h"

#define RECIPE_MODELS_MAX 3

struct recipe {
    const char *name;
    const char *models[RECIPE_MODELS_MAX]; /* NULL past the last */
    struct opt_rule rule;                  /* loss_scale and scale_window: with half precision */
    enum net_decay decay;
    struct schedule
        schedule; /* steps 0: those of the run; drops and warm-up are made from what stands below */
    double lr_per_sample; /* above 0: schedule.lr is this times the samples of a step */
    double drop_images[SCHEDULE_DROPS_MAX]; /* a drop comes after so many samples */
    double warmup_images;
    double label_smoothing;
};

/* The idx-th recipe of a model, the first is what it has by default; NULL past the last. */
const struct recipe *recipe_of(const char *model, int idx);

/* The schedule of a run with so many samples in a step; what depends on its length is left at 0. */
struct schedule recipe_schedule(const struct recipe *recipe, int64_t n_samples);
