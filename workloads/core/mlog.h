/* SPDX-License-Identifier: Apache-2.0 */
/* Metric lines: the output of a run, one JSON object a line on stdout, keys in this order. They are read like any other
   log (manifests/formats/), so a changed key is a changed format. One thread writes. A line is one write(2): lines of
   several ranks on one pipe do not mix. Of several ranks rank 0 prints for the job; the others print only fatal. */
#pragma once

#include "core/tensor.h"

struct mlog {
    int fd; /* borrowed; stdout */
    int rank;
};

/* What one sample is: "image": [height, width], or, where sequence is not 0, "sequence" and "predictions". */
struct sample_size {
    int64_t height, width, sequence, predictions;
};
struct json_out;
void mlog_put_size(struct json_out *out, const struct sample_size *size);

/* Fields of a run on a packed dataset. */
struct mlog_data {
    const char *split;
    int64_t n_samples;
    const char *pack_sha256; /* of pack.json */
    uint64_t seed;
    int n_workers;
    int64_t start_step, steps_per_epoch, epoch; /* counted from 0 */
    const char *augment;                        /* NULL: no images, and no mean and std either */
    const char *augment_on;                     /* "host", "device" */
    double mean[3], std[3];
};

/* How a run trains. A number without meaning for the optimiser or schedule is NAN, and left out. */
#define MLOG_DROPS_MAX 16
struct mlog_training {
    const char *recipe, *optimizer, *decay;
    double beta1, beta2, eps;
    const char *schedule;
    int64_t schedule_steps; /* 0: left out */
    double lr_end, lr_power, lr_factor;
    int64_t lr_drops[MLOG_DROPS_MAX];
    int n_lr_drops;
    bool covers_warmup;
    int64_t warmup_lr_steps;
    double warmup_lr_start;
    int64_t accumulate;
    const char *loss_scaling; /* "none" */
    double loss_scale;
    int64_t loss_scale_window; /* 0: left out */
    int64_t start_step;        /* steps done before this run */
    const char *loaded_sha256; /* of the checkpoint it goes on from; NULL: none */
};

/* How a run is evaluated. */
struct mlog_eval_setup {
    const char *metric; /* "top1", "miou", "masked_lm_accuracy" */
    int64_t every;      /* steps */
    bool has_target;
    double target;
    const char *data;                /* as in mlog_start */
    const char *split, *pack_sha256; /* NULL for data made here, */
    uint64_t seed;                   /* which has a seed */
    struct sample_size size;
};

/* Fields of a run on a GPU. */
struct mlog_gpu {
    const char *name, *driver, *runtime, *libraries;
    int64_t memory_bytes; /* all of the GPU's */
    bool has_tf32;
    bool has_programs; /* steps are recorded and replayed */
    bool is_tuned;     /* the libraries' plans were chosen by timing, */
    int64_t n_late;    /* except for so many, for which no time was left */
    int n_streams;
    int64_t ahead; /* micro-batches given to the GPU before the first one's loss is read */
    /* Places where several operations became one kernel, by kind. */
    const struct mlog_count {
        const char *name;
        int64_t n;
    } * fusions;
    int n_fusions;
};

struct mlog_start {
    const char *model, *device, *backend, *precision;
    enum dtype dtype;
    int64_t batch; /* of one rank and micro-batch */
    int64_t global_batch;
    struct sample_size size;
    int64_t steps, warmup_steps;
    int n_ranks;
    const char *comm; /* how the ranks reach each other: "self", "tcp_ring" */
    bool has_sync_bn;
    int64_t gradient_bytes; /* that are summed over all ranks in each step */
    int n_threads;
    uint64_t seed;
    int64_t parameters;
    const char *
        data; /* "synthetic", "synthetic-fresh", or the dataset's id, with ".synthetic" for a synthetic dataset */
    double lr, momentum, weight_decay, label_smoothing;
    bool is_synthetic;
    const struct mlog_data *packed; /* NULL for data made here */
    struct mlog_training training;
    const struct mlog_eval_setup *eval; /* NULL: nothing is evaluated */
    const struct mlog_gpu *gpu;         /* NULL on a CPU */
};

struct mlog_step {
    int64_t step, steps; /* step counts from 1 */
    double loss;         /* nats */
    int64_t step_time_ns;
    double samples_per_s; /* of the job */
    double lr;
    bool is_packed;
    int64_t data_wait_ns;    /* of step_time_ns: until the batch was there */
    int64_t epoch, position; /* of the global batch, from 0 */
    bool is_scaled;
    double loss_scale; /* of this step */
    bool is_skipped;   /* its gradients were not finite: nothing was updated */
};

struct mlog_stop {
    int64_t steps, warmup_steps;
    int64_t elapsed_ns;   /* sum of step_time_ns of the steps after the warm-up */
    double samples_per_s; /* of the job, over those steps */
    double loss_first, loss_last;
    bool is_packed;
    int64_t data_wait_ns;      /* of elapsed_ns */
    int64_t first_batch_ns;    /* from opening the dataset to its first batch */
    int64_t next_step;         /* for --start-step */
    int64_t peak_memory_bytes; /* of a GPU's; 0: on a CPU */
};

MUST_CHECK int mlog_run_start(const struct mlog *log, const struct mlog_start *start,
                              struct err *err);
MUST_CHECK int mlog_step(const struct mlog *log, const struct mlog_step *step, struct err *err);
MUST_CHECK int mlog_run_stop(const struct mlog *log, const struct mlog_stop *stop, struct err *err);

struct mlog_checkpoint {
    int64_t step; /* done, in all runs together */
    const char *sha256;
    int64_t n_bytes; /* of its tensors */
    int64_t elapsed_ns;
};
MUST_CHECK int mlog_checkpoint(const struct mlog *log, const struct mlog_checkpoint *checkpoint,
                               struct err *err);

/* An evaluation after a step; the step's time does not include it. */
struct mlog_eval {
    int64_t step;
    const char *metric;
    double value;                 /* from 0 to 1 */
    int64_t n_samples, n_counted; /* samples; labels of theirs that count */
    int64_t n_unanswered;         /* of those: a logit is not finite */
    int64_t eval_time_ns;
    int64_t elapsed_ns; /* by the clock, from the start of the first step to the evaluation's end */
};
MUST_CHECK int mlog_eval(const struct mlog *log, const struct mlog_eval *eval, struct err *err);

/* The end of a run with a target. */
struct mlog_time_to_train {
    int64_t step; /* the last */
    const char *metric;
    double target;
    bool is_reached;
    double value;      /* of the last evaluation */
    int64_t n_samples; /* trained on */
    int64_t
        elapsed_ns; /* as the last evaluation's: where the target was reached, the time to train */
};
MUST_CHECK int mlog_time_to_train(const struct mlog *log, const struct mlog_time_to_train *end,
                                  struct err *err);

/* Why a rank stops: no metric line follows it. `where` is file:line or a step. */
MUST_CHECK int mlog_fatal(const struct mlog *log, const char *device, const char *where,
                          const char *what, struct err *err);

/* A broken invariant or a library's refusal in the middle of a step: a fatal line, then _exit(70) (STYLE.md section 2). */
NORETURN void fatal_stop(int rank, const char *device, const char *where, const char *what);
#define FATAL_TEXT(x) #x
#define FATAL_LINE(x) FATAL_TEXT(x)
#define FATAL_WHERE   __FILE__ ":" FATAL_LINE(__LINE__)
