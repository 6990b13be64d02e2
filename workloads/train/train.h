/* SPDX-License-Identifier: Apache-2.0 */
/* The five modes of reperf-train. Each returns 0, or -1 with *err. */
#pragma once

#include "base/clock.h"
#include "graph/net.h"
#include "train/options.h"

#include <signal.h>

/* Set by a signal handler to the signal's number; checked between kernel calls. */
typedef volatile sig_atomic_t stop_flag;

/* Steps with metric lines on fd. A loss that is not finite ends in a fatal line and ERR_WORKLOAD; a stop in
   ERR_INTERRUPTED, without run_stop. */
MUST_CHECK int train_run(const struct train_opts *opts, struct clock_src clock, int fd,
                         const stop_flag *stop, struct err *err);

/* One JSON document on fd. Packed data is opened and checked against the model. */
MUST_CHECK int train_describe(const struct train_opts *opts, struct clock_src clock, int fd,
                              struct err *err);

/* Reads the batches of opts->steps steps of a packed dataset and trains nothing; one JSON document on fd. */
MUST_CHECK int train_read(const struct train_opts *opts, struct clock_src clock, int fd,
                          const stop_flag *stop, struct err *err);

/* DESIGN.md section 7, --check. */
MUST_CHECK int train_check(const struct train_opts *opts, const stop_flag *stop, struct err *err);

/* --make-check: what train_check reads, made from opts->seed. */
MUST_CHECK int train_make_check(const struct train_opts *opts, struct err *err);

/* The network of opts as the model has it, one rank's of opts->ranks: what ranks compare before their devices choose. In the arena. */
MUST_CHECK int train_graph(const struct train_opts *opts, struct arena *arena,
                           struct graph **ret_graph, struct err *err);

/* The network of opts, planned on the backend; memory not yet allocated. With a comm it is one rank's of opts->ranks, else a
   network on its own. The graph lives in the arena. */
MUST_CHECK int train_plan(const struct train_opts *opts, struct arena *arena,
                          const struct backend *backend, struct comm *comm, struct net *ret_net,
                          struct err *err);

/* How a network is planned, and how ranks agree whether all have room for it; NULL: this one alone. */
struct train_planner {
    void *self;
    int (*plan)(void *self, const struct train_opts *opts, struct arena *arena,
                const struct backend *backend, struct net *ret_net, struct err *err);
    int (*agree)(void *self, bool *is_room, struct err *err);
};
extern const struct train_planner train_planner_alone;

/* Plans with fewer streams, then with less workspace, where the device has no room for more, and says so; opts has the streams that
   were taken. Where even the least does not fit, train_alloc refuses it. */
MUST_CHECK int train_plan_to_fit(struct train_opts *opts, struct arena *arena,
                                 const struct backend *backend, const struct train_planner *planner,
                                 struct net *ret_net, struct err *err);

/* If the network and its data do not fit: an error with the bytes needed, the bytes available and the largest batch that fits;
   otherwise allocates the network's memory. */
MUST_CHECK int train_alloc(const struct train_opts *opts, struct net *net, int64_t data_bytes,
                           struct err *err);

/* Bytes this process may still allocate, by /proc/meminfo and the limits of its control group and its ancestors;
   INT64_MAX where none can be read. */
int64_t memory_available(void);
/* The same with other paths: for tests. */
int64_t memory_available_by(const char *proc, const char *cgroups);

/* The rank's part of batch number `idx` of the seed into the net's inputs: normal pixels, uniform labels; pixels are labelled in patches, some of
   them with the model's ignored label. */
void synthetic_batch(struct net *net, const struct model *model, uint64_t seed, int64_t idx);

/* The same for micro-batch `micro` of n_micro, of a batch that many times as large: together they are its samples. */
struct synthetic {
    uint64_t seed;
    int64_t idx, micro, n_micro;
    bool is_learnable; /* images: of few classes, encoded in the colour of the pixels */
};
void synthetic_micro(struct net *net, const struct model *model, const struct synthetic *what);

/* Sets the net's input "step" to the number of the coming step, if it has one: dropout depends on it. */
void set_step(struct net *net, int64_t step);
