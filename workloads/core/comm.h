/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between the ranks of a job: what a network asks of its peers, and the table of functions that answers.
   Kernels and graph see only this; the implementation is in dist/ (and, with CUDA, also in the backend: then the data
   is on the device).

   Every rank calls the same operations in the same order with the same sizes. The first failure sticks, as in a graph:
   it is in `err`, every later operation returns at once and leaves its data as it is, and the caller checks `err`
   before it uses a number. Sums have a fixed order: the same bits on every rank and in every run with as many ranks. */
#pragma once

#include "core/tensor.h"

/* Numbers on a device, f16, f32 or f64. `to` may be `from`. */
struct comm_run {
    const void *from; /* (count) */
    void *to;         /* (count) = */
    int64_t count;
    enum dtype dtype;
};

/* The same for data on a device. Each operation is enqueued on `stream` (of the device's library) and returns at once; while the
   stream is being captured it becomes part of the program. All operations of a job go through one stream. */
struct comm_device {
    void *self; /* owned by the comm's creator */
    /* to = from + that of all other ranks, as one operation */
    int (*sum)(void *self, const struct comm_run *runs, int n_runs, void *stream, struct err *err);
    /* data (n_ranks, bytes): each rank has filled its own row. */
    int (*gather)(void *self, void *data, int64_t bytes, void *stream, struct err *err);
    int (*broadcast)(void *self, void *data, int64_t bytes, int root, void *stream,
                     struct err *err);
    /* Whether the job is still alive; the host has waited for the device since waited_ns. */
    int (*check)(void *self, int64_t waited_ns, struct err *err);
    /* A program with operations in it is launched. */
    void (*count)(void *self);
    /* Ends pending operations now, whatever becomes of their data. */
    void (*abort)(void *self);
};

struct comm {
    const char *name; /* "self", "tcp_ring", "nccl" */
    void *self;       /* owned by the comm's creator */
    int rank, n_ranks;
    struct err err;  /* the first failure, or code ERR_NONE */
    int64_t n_calls; /* operations that went over the wire */
    int64_t n_bytes; /* bytes of this rank's operations */

    /* data (count) += that of all other ranks, f32 or f64. */
    int (*all_reduce)(void *self, void *data, int64_t count, enum dtype dtype, struct err *err);
    /* data (n_ranks, bytes): each rank has filled its own row. */
    int (*all_gather)(void *self, void *data, int64_t bytes, struct err *err);
    int (*broadcast)(void *self, void *data, int64_t bytes, int root, struct err *err);
    /* Whether the job is still alive, without waiting. */
    int (*check)(void *self, struct err *err);
    struct comm_device device; /* all NULL without devices */
};

/* One rank: nothing to do. */
struct comm comm_self(void);

void comm_all_reduce(struct comm *comm, void *data, int64_t count, enum dtype dtype);
void comm_all_gather(struct comm *comm, void *data, int64_t bytes);
void comm_broadcast(struct comm *comm, void *data, int64_t bytes, int root);

/* Returns when every rank has called it. */
void comm_barrier(struct comm *comm);

/* True if the job has failed, here or elsewhere; comm->err has the reason. */
bool comm_has_failed(struct comm *comm);

/* For data on a device, where comm->device has the functions. */
void comm_device_sum(struct comm *comm, const struct comm_run *runs, int n_runs, void *stream);
void comm_device_gather(struct comm *comm, void *data, int64_t bytes, void *stream);
void comm_device_broadcast(struct comm *comm, void *data, int64_t bytes, int root, void *stream);

/* comm_has_failed for a host that waits for its device. */
bool comm_fails_waiting(struct comm *comm, int64_t waited_ns);

void comm_device_count(struct comm *comm);

/* After a failure, before the device's memory is freed. */
void comm_device_abort(struct comm *comm);
