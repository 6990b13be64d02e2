/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run's batches come from: made here (train/data.c), or read from a packed data set. */
#ifndef TRAIN_FEED_H
#define TRAIN_FEED_H

#include "core/mlog.h"
#include "data/reader.h"
#include "train/train.h"

struct feed {
    const struct train_opts *opts; /* borrowed */
    struct clock_src clock;
    bool is_packed;
    struct pack pack;
    struct augment_recipe recipe;
    struct reader_opts reader_opts;
    struct reader *reader;
    double *wide; /* a batch of pixels for a net of f64; owned */
    int64_t open_ns;
    int64_t first_batch_ns; /* from feed_open to the first batch; 0 before it */
    const char *name;       /* of the data, for run_start; in the pack's arena */
    int64_t bytes;          /* what the batches being read take; 0 for data made here */
};

/* Opens the data set and holds it against the model's inputs; nothing is read yet. */
MUST_CHECK int feed_open(struct feed *feed, const struct train_opts *opts,
                         const struct graph *graph, struct clock_src clock, struct err *err);

/* Starts the reader's threads. */
MUST_CHECK int feed_start(struct feed *feed, struct err *err);

/* The batch of a step (from 1) into the net's inputs; packed data is read and dropped where net is NULL. For packed data ret_step gets data_wait_ns, epoch and position. */
MUST_CHECK int feed_next(struct feed *feed, struct net *net, int64_t step, const stop_flag *stop,
                         struct mlog_step *ret_step, struct err *err);

/* What run_start says of a packed data set. */
struct mlog_data feed_facts(const struct feed *feed);

void feed_release(struct feed *feed);
static inline void feed_cleanup(struct feed *feed)
{
    feed_release(feed);
}

#endif
