/* SPDX-License-Identifier: Apache-2.0 */
/* A graph on a device: its memory, and one training step after another. net_plan decides and reports every size before
   net_alloc takes any memory; after net_alloc nothing is allocated. Borrows graph and backend. One thread drives it. */
#pragma once

#include "graph/memplan.h"

#include <signal.h>

/* A stretch of the gradients that is summed over all ranks as soon as the backward pass has completed it. */
#define NET_BUCKET_BYTES (4 << 20)
/* Between devices, whose links carry 100 GB/s and more, an operation must be larger to be worth its start-up cost. Source:
   research/cuda.md on NCCL's tests, 16 to 25 MB; not measured here. */
#define NET_BUCKET_DEVICE_BYTES (16 << 20)
struct net_bucket {
    int64_t offset_bytes, size_bytes;
    int first_param, n_params; /* in grad_order */
    int last_call;             /* that completes it */
};

#define NET_STREAMS_MAX 8

struct net {
    const struct graph *graph;  /* borrowed */
    struct comm *comm;          /* borrowed; NULL with one rank */
    struct net_bucket *buckets; /* in the arena, in the order of last_call */
    int n_buckets;
    struct comm_run *runs;         /* in the arena, for the current bucket: stretches of one type */
    const struct backend *backend; /* borrowed */
    struct memplan plan;
    struct call *calls;             /* the graph's calls with this device's pointers */
    void *mem[MEMPLAN_ARENA_COUNT]; /* owned, on the device */
    void *staging;                  /* owned; NULL if inputs are not written during a step */
    int64_t *staging_at; /* in the arena: where each value's staging begins; of inputs only */
    int64_t staging_bytes;
    void *workspace; /* owned; of all streams, one stretch for each stream */
    int64_t workspace_bytes;
    int64_t stream_at[NET_STREAMS_MAX]; /* where each stream's begins */
    int n_streams;
    bool has_optimizer, has_masters;
    struct opt_args update;  /* owned: what it points to on the device */
    int64_t wide_bytes;      /* of masters, of each moment, of the sums */
    int64_t n_micro_done;    /* micro-batches since the last update, where it takes several */
    const struct net *owner; /* borrowed: owner of the parameters and states; NULL: this net */
    int *owned;              /* in the arena, with an owner: their ids there, else NO_VALUE */
};

struct net_bytes {
    int64_t parameter_bytes, gradient_bytes, state_bytes;
    int64_t optimizer_bytes;  /* masters, moments, sums of gradients */
    int64_t activation_bytes; /* activations and their gradients, after sharing */
    int64_t workspace_bytes;
    int64_t staging_bytes; /* of inputs on their way */
    int64_t total_bytes;
};

/* The plan lives in the arena. On failure nothing is owned. */
MUST_CHECK int net_plan(struct net *net, struct arena *arena, const struct graph *graph,
                        const struct backend *backend, struct err *err);

/* The same for a graph of several ranks: comm has as many. It is not used before net_gradients and may be opened until
   then. */
MUST_CHECK int net_plan_ranks(struct net *net, struct arena *arena, const struct graph *graph,
                              const struct backend *backend, struct comm *comm, struct err *err);

/* Between net_plan of a graph for inference and net_alloc: parameters and states are those of the owner, a network of the same model on the
   same backend, whose memory must outlive this one. */
void net_share(struct net *net, struct arena *arena, const struct net *owner);

/* Which parameters weight decay applies to: all, or only those of two or more dimensions. */
enum net_decay { NET_DECAY_ALL, NET_DECAY_MATRICES };

/* Between net_plan and net_alloc; a network that only computes gradients needs none. */
MUST_CHECK int net_plan_optimizer(struct net *net, struct arena *arena, const struct opt_rule *rule,
                                  enum net_decay decay, struct err *err);

/* Between net_plan and net_alloc, for a run that writes inputs before each step: if the device can, they are then copied there during the
   previous step. */
void net_plan_staging(struct net *net, struct arena *arena);

struct net_bytes net_sizes(const struct net *net);
MUST_CHECK int net_alloc(struct net *net, struct err *err);
void net_release(struct net *net);
static inline void net_cleanup(struct net *net)
{
    net_release(net);
}

/* Whole value from or to a host buffer in PyTorch's order. A parameter with a master is written to both. */
void net_write(struct net *net, int value, const void *host);
void net_read(const struct net *net, int value, void *host);

/* A batch of images as bytes into the input (N, 3, H, W) and, where labels is not NO_VALUE, (N, H, W), processed by the device, if
   it can and staging was planned; open_images before net_alloc. */
bool net_takes_images(const struct net *net);
MUST_CHECK int net_open_images(struct net *net, int64_t image_bytes_max, struct err *err);
void net_write_images(struct net *net, int input, int labels, const struct image_batch *batch);

/* The same for an f32 or f64 value from doubles, rounded to its type. */
void net_write_f64(struct net *net, int value, const double *host);

/* Every parameter and state by its rule and the seed: the same on every device and in both types (up to rounding). */
void net_init_values(struct net *net, uint64_t seed);

/* Sends parameters and states of rank 0 to all; a failure is the comm's. */
void net_broadcast(struct net *net);

/* The same for the optimiser's masters, moments and state. */
void net_broadcast_optimizer(struct net *net);

/* For inference, before net_gradients: batch norms use the current running statistics; with a comm, whose failure it keeps, those of rank
   0. */
void net_take_running(struct net *net, struct comm *comm);

/* Forward and backward; for inference only forward. With several ranks the gradients are then the sums over all. If an update takes several micro-batches,
   each call is one of them, and the sum over them and the ranks is in update.sum after the last. Checks *stop and the comm between calls; true: one of them
   ended it and the step is unfinished. stop may be NULL. */
MUST_CHECK bool net_gradients(struct net *net, const volatile sig_atomic_t *stop);

/* The loss of the last net_gradients. */
double net_loss(const struct net *net);

/* After n_micro calls of net_gradients. Its two parts: the rate of the coming update, which the host sets, and the update, which
   runs on the device only and may be captured. */
void net_update(struct net *net, double lr);
void net_set_lr(struct net *net, double lr);
void net_apply_update(struct net *net);

/* What the optimiser keeps of a parameter: an array of its shape, f64 if the parameter is, else f32. */
enum net_opt_part { NET_MASTER, NET_MOMENT1, NET_MOMENT2 };
bool net_has_opt(const struct net *net, int param, enum net_opt_part part);
void net_write_opt(struct net *net, int param, enum net_opt_part part, const void *host);
void net_read_opt(const struct net *net, int param, enum net_opt_part part, void *host);
void net_write_opt_state(struct net *net, const struct opt_state *state);
void net_read_opt_state(const struct net *net, struct opt_state *ret_state);

/* For graph/ itself (net_optim.c). */
int64_t net_optimizer_bytes(const struct net *net);
MUST_CHECK int net_alloc_optimizer(struct net *net, struct err *err);
void net_release_optimizer(struct net *net);
void net_add_micro(struct net *net);
void net_broadcast_memory(struct net *net, void *data, int64_t bytes);
