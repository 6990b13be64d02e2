/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that a run needs to continue as if it had not stopped, in one sealed tensor file: parameters (masters, where there
   are any), running statistics, the optimiser's state, and as texts the step, the data and the loss scale. Parameters and
   statistics are under their own names, so that any program that reads safetensors can use them. */
#pragma once

#include "core/safetensors.h"
#include "train/train.h"

#define CHECKPOINT_FORMAT  "reperf-checkpoint"
#define CHECKPOINT_VERSION 1

/* A file that was read and found whole. */
struct checkpoint {
    struct st_file file;
    char sha256[SHA256_HEX_LEN + 1];
    int64_t step;           /* steps done */
    struct opt_state state; /* lr, grad_norm and found_inf are not kept: they belong to one step */
};

/* ERR_INTEGRITY if it is damaged, ERR_PARSE if it is no checkpoint, or not one that this run can continue. The file stays in
   the arena. */
MUST_CHECK int checkpoint_read(struct arena *arena, const struct train_opts *opts,
                               const struct net *net, const char *path,
                               struct checkpoint *ret_checkpoint, struct err *err);

/* The data of a run that continues from it, once opened: "synthetic", "synthetic-fresh" or the SHA-256 of pack.json. */
MUST_CHECK int checkpoint_check_data(const struct checkpoint *checkpoint,
                                     const struct train_opts *opts, const char *data,
                                     struct err *err);

/* Into the network's memory. */
void checkpoint_fill(const struct checkpoint *checkpoint, struct net *net);

/* Detects a path that cannot be written before the first step instead of after the last. */
MUST_CHECK int checkpoint_try_path(const char *path, struct err *err);

struct checkpoint_saved {
    char sha256[SHA256_HEX_LEN + 1];
    int64_t n_bytes;
};

/* To opts->save_path, after `step` steps of all runs together. Afterwards either the whole file is there or what was there before. */
MUST_CHECK int checkpoint_write(const struct train_opts *opts, const struct net *net,
                                const char *data, int64_t step, struct checkpoint_saved *ret_saved,
                                struct err *err);
