/* SPDX-License-Identifier: Apache-2.0 */
/* What options*.c share: the command line as typed, before it is understood. */
#pragma once

#include "train/options.h"

#define UNSET (-1) /* of a whole number; an unset number is NAN */

struct raw {
    const char *model, *device, *precision, *dtype, *backend, *data, *image, *mean, *std;
    const char *check, *out, *make_check, *plan_cache;
    const char *recipe, *optimizer, *decay, *schedule, *lr_drops, *loss_scale;
    const char *eval_image;
    double until;
    double lr, momentum, beta1, beta2, eps, weight_decay, label_smoothing;
    double lr_end, lr_power, lr_factor, warmup_lr_start;
    int64_t schedule_steps, warmup_lr_steps, accumulate, loss_scale_window;
    struct train_opts opts;
    bool is_describe, is_data_only, is_help, is_version, covers_warmup;
    bool has_no_graph, has_no_tune, has_no_fuse;
};

/* Before anything is parsed. */
struct raw raw_start(void);

/* Device, precision, backend; mode and model are known. */
MUST_CHECK int choose_device(struct raw *raw, struct err *err);

/* The time for choosing plans, once the ranks are known: the others wait meanwhile. */
MUST_CHECK int choose_tuning(struct train_opts *opts, struct err *err);

/* Where a folder's images are processed; device, model and data are known. */
void choose_augment(struct raw *raw);

/* Evaluation; the run and its data are known. */
MUST_CHECK int choose_eval(struct raw *raw, struct err *err);

/* "--name N" or "--name HxW" into height and width. */
MUST_CHECK int parse_image(const char *name, const char *text, const struct model *model,
                           struct sample_size *ret_size, struct err *err);

/* Recipe, optimiser, schedule, accumulation, loss scale; model, mode, batch, steps and ranks are known. */
MUST_CHECK int choose_training(struct raw *raw, struct err *err);

/* "--name value,value": up to n_max numbers into ret_values; *ret_n is n_max + 1 where there are more. */
MUST_CHECK int parse_numbers(const char *name, const char *text, int n_max, double *ret_values,
                             int *ret_n, struct err *err);
