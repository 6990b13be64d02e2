/* SPDX-License-Identifier: Apache-2.0 */
/* What run.c and run_ahead.c share: the state of one rank during its steps. */
#pragma once

#include "train/checkpoint.h"
#include "train/device.h"
#include "train/eval.h"
#include "train/feed.h"
#include "train/say.h"

struct run {
    struct train_opts *opts;
    struct net *net;
    struct feed *feed;
    struct eval *eval; /* NULL: nothing is evaluated */
    struct job *job;
    const struct mlog *log;
    const stop_flag *stop;
    const struct device *device;
    float loss_scale;             /* of the next step to be reported */
    int n_skipped;                /* updates in a row */
    struct mlog_stop total;       /* of the steps so far */
    struct checkpoint checkpoint; /* rank 0's, with opts->load_path */
    struct arena *arena;          /* memory of the checkpoint */
};

/* A step that was not finished: a signal, or another rank. */
MUST_CHECK int run_say_unfinished(const struct run *run, int64_t step, struct err *err);

/* Steps of programs that take turns are timed alone: before the first step of a turn each waits for its line. */
bool run_is_turn(const struct run *run, int64_t step);
MUST_CHECK int run_wait_turn(const struct run *run, int64_t step, struct err *err);

/* Called when loss and time of the step are known, and the state after the update: checks them, prints the line, adds to the
   total. */
MUST_CHECK int run_end_step(struct run *run, struct mlog_step *step, const struct opt_state *state,
                            struct err *err);

/* A checkpoint after step `step` of this run, if one is due; not part of the step's time. */
bool run_is_saved(const struct run *run, int64_t step);
MUST_CHECK int run_save(const struct run *run, int64_t step, struct err *err);

/* All steps on a device that runs asynchronously to the host. *ret_step is the step it has reached. */
MUST_CHECK int run_ahead(struct run *run, int64_t *ret_step, struct err *err);
