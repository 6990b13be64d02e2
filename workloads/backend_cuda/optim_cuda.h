/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser of core/optim.h on the device, for all parameters at once: optim.c has the tables, optim.cu the kernels. A segment
   is cut into chunks; a block of threads does one. */
#pragma once

#include "backend_cuda/cuda.h"

#define OPTIM_CHUNK 4096 /* elements: 256 threads times 16 */

struct optim_chunk {
    int32_t segment;
    int32_t first; /* in chunks, within the segment */
};

/* What one chunk contributes to the sums. */
struct optim_part {
    double grad_squares;
    int64_t n_infinite; /* gradients that are not finite */
};

/* What the update of every element needs. */
struct optim_step {
    int32_t is_skipped;
    float factor; /* of the stored gradients: 1 / (loss scale * n_micro) */
    float lr;
    float per_correct1, per_correct2; /* 1 / (1 - beta^t) */
};

/* Owned by opt_args.prepared. On the device, except for the counts. */
struct optim_table {
    struct opt_segment *segments;
    struct optim_chunk *chunks;
    int n_chunks;
};

/* In the workspace. */
struct optim_scratch {
    struct optim_step *step;
    struct optim_part *parts; /* (n_chunks) */
};

struct optim_scratch optim_scratch(const struct opt_args *args);
void cuda_fill_optim(struct backend *backend);

/* optim.cu. All on stream 0. */
void optim_set_lr(struct cuda *cuda, struct opt_state *state, double lr);
void optim_add_gradients(struct cuda *cuda, const struct opt_args *args, bool is_first);
void optim_update(struct cuda *cuda, const struct opt_args *args);
