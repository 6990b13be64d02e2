/* SPDX-License-Identifier: Apache-2.0 */
/* A training program as one of several ranks: what they must agree on, and how any failure ends all. */
#pragma once

#include "core/mlog.h"
#include "dist/job.h"
#include "train/train.h"

/* Joins the ranks of `train` that would train the same network (train_graph); `extra` is one more word of facts, or "".
   A failure has been reported as a fatal line. */
struct team_opts {
    const struct train_opts *train; /* all borrowed for the call */
    const struct backend *backend;
    const struct graph *graph;
    const char *extra;
    const stop_flag *stop;
    const struct mlog *log;
};
MUST_CHECK int team_open(struct job *job, const struct team_opts *team, struct err *err);

/* train_plan_to_fit on every rank of the job, with the same outcome. Where plans are chosen by timing, the first rank of each kind of device does so, while the others
   wait, and they take its plans: none is timed twice, and all have the same. */
MUST_CHECK int team_plan(struct job *job, struct train_opts *opts, struct arena *arena,
                         const struct backend *backend, struct net *ret_net, struct err *err);

/* Checks that all ranks have opened the same data by that option: its digest is 64 hex digits. */
MUST_CHECK int team_agree_on_data(struct job *job, const char *option, const char *sha256_hex,
                                  struct err *err);

/* After a failure: if it came from another rank, prints a fatal line (where: "step 7") and fills *err; if it is our own, which is
   in *err, tells the others. Always -1. */
MUST_CHECK int team_fail(struct job *job, const struct mlog *log, const char *device,
                         const char *where, struct err *err);
