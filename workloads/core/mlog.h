/* SPDX-License-Identifier: Apache-2.0 */
/* Metric lines: what a run says, one JSON object a line on stdout, keys in this order. They are read like any other log
   (manifests/formats/), so a changed key is a changed format. One thread writes. A line is one write(2): lines of several
   ranks on one pipe do not mix. */
#ifndef CORE_MLOG_H
#define CORE_MLOG_H

#include "core/tensor.h"

struct mlog {
    int fd; /* borrowed; stdout */
    int rank;
};

/* What a run on a packed data set says of it. */
struct mlog_data {
    const char *split;
    int64_t n_samples;
    const char *pack_sha256; /* of pack.json */
    uint64_t seed;
    int n_workers;
    int64_t start_step, steps_per_epoch, epoch; /* counted from 0 */
    const char *augment;
    double mean[3], std[3];
};

struct mlog_start {
    const char *model, *device, *backend, *precision;
    enum dtype dtype;
    int64_t batch, height, width, steps, warmup_steps;
    int n_ranks, n_threads;
    uint64_t seed;
    int64_t parameters;
    const char *
        data; /* "synthetic", "synthetic-fresh", or the data set's id, with ".synthetic" if it is a twin */
    double lr, momentum, weight_decay, label_smoothing;
    bool is_synthetic;
    const struct mlog_data *packed; /* NULL for data made here */
};

struct mlog_step {
    int64_t step, steps; /* step counts from 1 */
    double loss;         /* nats */
    int64_t step_time_ns;
    double samples_per_s; /* of this rank */
    double lr;
    bool is_packed;
    int64_t data_wait_ns;    /* of step_time_ns: until the batch was there */
    int64_t epoch, position; /* of the global batch, from 0 */
};

struct mlog_stop {
    int64_t steps, warmup_steps;
    int64_t elapsed_ns;   /* sum of step_time_ns of the steps after the warm-up */
    double samples_per_s; /* of this rank, over those steps */
    double loss_first, loss_last;
    bool is_packed;
    int64_t data_wait_ns;   /* of elapsed_ns */
    int64_t first_batch_ns; /* from opening the data set to its first batch */
    int64_t next_step;      /* for --start-step */
};

MUST_CHECK int mlog_run_start(const struct mlog *log, const struct mlog_start *start,
                              struct err *err);
MUST_CHECK int mlog_step(const struct mlog *log, const struct mlog_step *step, struct err *err);
MUST_CHECK int mlog_run_stop(const struct mlog *log, const struct mlog_stop *stop, struct err *err);

/* Why a rank stops: no metric line follows it. `where` is file:line or a step. */
MUST_CHECK int mlog_fatal(const struct mlog *log, const char *device, const char *where,
                          const char *what, struct err *err);

/* A broken invariant or a library's refusal in the middle of a step: a fatal line, then _exit(70) (STYLE.md section 2). */
NORETURN void fatal_stop(int rank, const char *device, const char *where, const char *what);
#define FATAL_TEXT(x) #x
#define FATAL_LINE(x) FATAL_TEXT(x)
#define FATAL_WHERE   __FILE__ ":" FATAL_LINE(__LINE__)

#endif
