/* SPDX-License-Identifier: Apache-2.0 */
/* What was asked of reperf-train, checked: no default replaces what this build cannot do. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include "backend_cpu/cpu.h"
#include "models/model.h"

enum train_mode { TRAIN_RUN, TRAIN_READ, TRAIN_DESCRIBE, TRAIN_CHECK, TRAIN_HELP, TRAIN_VERSION };

struct train_opts {
    enum train_mode mode;
    const struct model *model;
    const char *device;    /* "cpu" */
    const char *precision; /* "fp32", or "fp64" with dtype f64 */
    enum dtype dtype;
    enum cpu_flavour flavour;
    int64_t batch, height, width;
    int64_t steps, warmup_steps;
    const char *data_path;  /* of a packed data set; NULL: synthetic */
    bool is_fresh_data;     /* synthetic: a new batch each step; else the same one */
    int64_t data_seed;      /* of order and crops */
    int64_t start_step;     /* the data's, from 0 */
    int64_t n_workers;      /* threads that read */
    bool has_mean, has_std; /* else the recipe's own */
    double mean[3], std[3];
    double lr, momentum, weight_decay, label_smoothing;
    int64_t seed;
    int64_t n_threads; /* 0: what OpenMP gives */
    int rank, n_ranks;
    const char *check_path, *out_path;
};

/* argv without the program's name. */
MUST_CHECK int train_options(int argc, char **argv, struct train_opts *ret_opts, struct err *err);
void train_print_help(FILE *out);

#endif
