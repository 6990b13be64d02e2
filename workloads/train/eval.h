/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluations between the steps of a run: the network as it is, forward only, on samples that it does not train on. Each rank
   evaluates its share, and all get the same number. */
#pragma once

#include "train/feed.h"
#include "train/metric.h"

struct run;

struct eval {
    struct train_opts opts; /* the run's, for a forward pass over other samples */
    struct net net;         /* borrows parameters and running statistics */
    struct feed feed;
    struct metric metric;
    int64_t *labels;      /* a batch on the host; owned */
    void *logits;         /* owned */
    int64_t bytes;        /* besides the network's */
    int64_t start_ns;     /* of the run's first step */
    int64_t elapsed_ns;   /* from there to the end of the last evaluation */
    double value;         /* of that one */
    bool is_target_there; /* it reaches the target */
};

/* Before memory is taken: opens the data and plans the network. `net` is trained, on the data of `feed`. */
MUST_CHECK int eval_open(struct eval *eval, struct arena *arena, const struct train_opts *opts,
                         const struct net *net, const struct feed *feed, struct err *err);
void eval_release(struct eval *eval);
static inline void eval_cleanup(struct eval *eval)
{
    eval_release(eval);
}

/* Its memory besides the run's own. */
int64_t eval_bytes(const struct eval *eval);

/* Called when the trained network has its memory. */
MUST_CHECK int eval_alloc(struct eval *eval, struct err *err);

/* Its fields in run_start. */
struct mlog_eval_setup eval_facts(const struct eval *eval);

/* After step `step` of the run, if one is due: an evaluation and its line. */
MUST_CHECK int eval_step(struct run *run, int64_t step, struct err *err);

/* After the last step, if there is a target: the line that says whether it was reached, and when; and, after all other lines, the error
   that it was not. */
MUST_CHECK int eval_say_target(const struct run *run, int64_t step, struct err *err);
MUST_CHECK int eval_end(const struct run *run, struct err *err);
