/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a run's batches: made here (train/data.c), or read from a packed dataset. */
#pragma once

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
    double *wide;           /* a batch of pixels for a net of f64; owned */
    struct image_cut *cuts; /* a batch of images for a device that cuts them out; owned */
    int64_t open_ns;
    int64_t first_batch_ns; /* from feed_open to the first batch; 0 before it */
    int64_t n_samples; /* of the last batch that count: all, except at the end of an evaluation */
    const char *name;  /* of the data, for run_start; in the pack's arena */
    int64_t bytes;     /* for the batches being read; 0 for data made here */
};

/* Opens the dataset and checks it against the model's inputs; nothing is read yet. With opts->is_inference its samples are read in order,
   once, cropped from their centre. */
MUST_CHECK int feed_open(struct feed *feed, const struct train_opts *opts,
                         const struct graph *graph, struct clock_src clock, struct err *err);

/* Before the network's memory is allocated: what a device needs in addition to process images itself. */
MUST_CHECK int feed_plan(const struct feed *feed, struct net *net, struct err *err);

/* Starts the reader's threads, and ends them; it may then be started again. */
MUST_CHECK int feed_start(struct feed *feed, struct err *err);
void feed_stop(struct feed *feed);

/* The batch of ret_step->step (from 1) into the net's inputs, or number `micro` (from 0) of a step of several; packed data is read and dropped
   where net is NULL. With packed data ret_step gets epoch and position of the first, and data_wait_ns is added to. */
MUST_CHECK int feed_next(struct feed *feed, struct net *net, int64_t micro, const stop_flag *stop,
                         struct mlog_step *ret_step, struct err *err);

/* Whether feed_next makes the batches of that step, which is then no part of its time. */
bool feed_makes(const struct feed *feed, int64_t step);

/* The fields of a packed dataset in run_start. */
struct mlog_data feed_facts(const struct feed *feed);

void feed_release(struct feed *feed);
static inline void feed_cleanup(struct feed *feed)
{
    feed_release(feed);
}
