/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of a packed dataset, prepared by threads of its own while the caller computes. What is in the batch of a global step
   depends on (pack, seed, step, batch, ranks, recipe) and on nothing else: not on the number of threads, not on the step at which
   the reader started. Rank r of R takes samples r * batch to (r + 1) * batch - 1 of each global batch of R * batch. One thread
   calls; the reader's own threads stay behind this header. */
#pragma once

#include "data/augment.h"
#include "data/order.h"
#include "data/pack.h"

#include <signal.h>

#define READER_WORKERS_MAX 256
#define READER_BATCHES     4 /* in the caller's hands, ready or being prepared */

struct reader_opts {
    const struct pack *pack;             /* borrowed */
    const struct augment_recipe *recipe; /* borrowed; images only */
    int64_t batch;                       /* of this rank */
    int64_t height, width;               /* of the output; images only */
    int64_t rank, n_ranks;
    uint64_t seed;
    int64_t first_step; /* global, from 0: step / steps_per_epoch is the epoch */
    int64_t n_steps;    /* that will be asked for */
    int n_workers;
    bool is_raw; /* images as they were packed, with their plans, for a device that executes them */
    bool
        is_evaluation; /* in the order of the pack, once; the last batch may be short, even empty */
};

/* An image, and the arguments with which resample_pixels and resample_labels process it. */
struct reader_image {
    struct augment_plan plan;
    struct augment_size size;
    const uint8_t *pixels; /* (size, 3) */
    const uint8_t *labels; /* segments: (size), else NULL */
};

struct reader_batch {
    int64_t step; /* global */
    struct order_place place;
    int64_t n_samples;      /* batch, except at the end of an evaluation */
    const int64_t *samples; /* (n_samples): numbers in the pack */
    const float *input;     /* images: (batch, 3, height, width); NULL if is_raw */
    const int64_t *labels;  /* classes (batch), segments (batch, height, width), NULL if is_raw */
    const struct reader_image *images; /* if is_raw: (n_samples) */
    /* tokens: (batch, S), (batch, S), (batch, S), (batch, P), (batch, P), (batch), in the order of data/shard.h */
    const int32_t *tokens[6];
};

struct reader;

/* Steps of one epoch: the incomplete global batch at its end is dropped in training. */
int64_t reader_steps_per_epoch(const struct reader_opts *opts);

/* Memory that a reader of these options will take for its batches, without the threads' own. */
MUST_CHECK int reader_bytes(const struct reader_opts *opts, int64_t *ret_bytes, struct err *err);

/* Checks the options and starts the threads. */
MUST_CHECK int reader_open(struct reader **ret_reader, const struct reader_opts *opts,
                           struct err *err);

/* The next batch, valid until the next call. An error is that of the first bad sample in order, whichever thread met it,
   after all batches before it; it stays. *stop is checked while waiting: set, it is ERR_INTERRUPTED. stop may be NULL. */
MUST_CHECK int reader_next(struct reader *reader, const volatile sig_atomic_t *stop,
                           struct reader_batch *ret_batch, struct err *err);

/* Ends the threads; NULL does nothing. */
void reader_close(struct reader *reader);
