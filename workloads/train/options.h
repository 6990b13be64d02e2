/* SPDX-License-Identifier: Apache-2.0 */
/* The options of reperf-train, checked: no default replaces what this build cannot do. */
#pragma once

#include "backend_cpu/cpu.h"
#include "core/mlog.h"
#include "dist/ranks.h"
#include "graph/net.h"
#include "models/model.h"
#include "train/recipe.h"

enum train_mode {
    TRAIN_RUN,
    TRAIN_READ,
    TRAIN_DESCRIBE,
    TRAIN_CHECK,
    TRAIN_MAKE_CHECK,
    TRAIN_HELP,
    TRAIN_VERSION
};

struct train_opts {
    enum train_mode mode;
    const struct model *model;
    const char *device;    /* "cpu", "cuda" */
    const char *precision; /* "fp32", "fp64" with dtype f64, "amp" with dtype f16 */
    enum dtype dtype;
    enum cpu_flavour flavour; /* of device cpu */
    /* Of device cuda. */
    bool has_tf32;
    bool has_programs;            /* steps are recorded and replayed */
    bool is_tuned;                /* the libraries' plans are chosen by timing */
    int64_t tune_limit_s;         /* limit for that */
    bool allows_compiled;         /* cuDNN's engines that are compiled on request are timed, too */
    bool allows_nondeterministic; /* and fused convolutions, whose sums differ in their last bits */
    const char *plan_cache;  /* folder where those choices are kept, "none", or NULL: the user's */
    bool is_fused;           /* graph/fuse.h */
    int64_t n_streams;       /* graph/streams.h */
    int64_t ahead;           /* micro-batches in flight before the host waits for the oldest */
    int64_t batch;           /* of one rank and micro-batch; rule.n_micro of them are a step */
    struct sample_size size; /* 0 where the model's samples have none */
    int64_t steps, warmup_steps;
    int64_t turn_steps;          /* above 0: that many steps for each line of standard input */
    const char *data_path;       /* of a packed dataset; NULL: synthetic */
    bool is_fresh_data;          /* synthetic: a new batch each step; else the same one */
    bool is_learnable;           /* fresh, and pixels encode their labels */
    int64_t data_seed;           /* of order and crops */
    int64_t start_step;          /* the data's, from 0 */
    int64_t n_workers;           /* threads that read */
    bool is_augmented_on_device; /* images come to the device as bytes, and it processes them */
    bool has_mean, has_std;      /* otherwise the recipe's */
    double mean[3], std[3];
    double label_smoothing;
    const struct recipe *recipe; /* where the next three come from by default */
    struct opt_rule rule;        /* of the updates */
    enum net_decay decay;
    struct schedule schedule;
    bool has_schedule_steps; /* otherwise it spans the run, from step 1 to its last */
    int64_t seed;
    int64_t n_threads; /* 0: what OpenMP gives */
    struct ranks ranks;
    bool has_sync_bn;
    int64_t rendezvous_s, comm_timeout_s;
    const char *check_path, *out_path; /* of a --make-check it is out_path */
    bool is_inference;     /* forward only, with running statistics: a check, or an evaluation */
    int64_t eval_every;    /* steps; 0: nothing is evaluated */
    const char *eval_path; /* of a packed dataset; NULL: synthetic */
    struct sample_size eval_size; /* of its samples */
    bool has_target;
    double target;                     /* the run ends with the evaluation that reaches it */
    const char *save_path, *load_path; /* of checkpoints; may be NULL */
    int64_t save_every;                /* steps; 0: after the last only */
    const char *loaded_sha256; /* of the checkpoint that start_step comes from; NULL: none */
};

#define AHEAD_MAX 64

/* Samples of one step, those of all ranks and micro-batches. */
static inline int64_t samples_per_step(const struct train_opts *opts)
{
    return opts->batch * opts->ranks.n_ranks * opts->rule.n_micro;
}

/* Of data made here. */
static inline const char *synthetic_name(const struct train_opts *opts)
{
    return opts->is_learnable    ? "synthetic-learnable"
           : opts->is_fresh_data ? "synthetic-fresh"
                                 : "synthetic";
}

/* If the schedule depends on the run's length: to be called again after start_step has changed. */
void fit_schedule(struct train_opts *opts);

/* argv without the program's name. */
MUST_CHECK int train_options(int argc, char **argv, struct train_opts *ret_opts, struct err *err);
void train_print_help(FILE *out);
