/* SPDX-License-Identifier: Apache-2.0 */
/* A graph on a device: its memory, and one training step after another. net_plan decides and reports every size before
   net_alloc takes any memory; after net_alloc nothing is allocated. Borrows graph and backend. One thread drives it. */
#ifndef GRAPH_NET_H
#define GRAPH_NET_H

#include "graph/memplan.h"

#include <signal.h>

struct net {
    const struct graph *graph;     /* borrowed */
    const struct backend *backend; /* borrowed */
    struct memplan plan;
    struct call *calls;             /* the graph's calls, with this device's pointers in them */
    void *mem[MEMPLAN_ARENA_COUNT]; /* owned, on the device */
    void *velocity;                 /* owned; laid out like the parameters */
    void *workspace;                /* owned; shared by all calls */
    int64_t workspace_bytes;
};

struct net_bytes {
    int64_t parameter_bytes, gradient_bytes, velocity_bytes, state_bytes;
    int64_t activation_bytes; /* activations and their gradients, after sharing */
    int64_t workspace_bytes;
    int64_t total_bytes;
};

/* The plan lives in the arena. On failure nothing is owned. */
MUST_CHECK int net_plan(struct net *net, struct arena *arena, const struct graph *graph,
                        const struct backend *backend, struct err *err);
struct net_bytes net_sizes(const struct net *net);
MUST_CHECK int net_alloc(struct net *net, struct err *err);
void net_release(struct net *net);
static inline void net_cleanup(struct net *net)
{
    net_release(net);
}

/* Whole value from or to a host buffer in PyTorch's order. */
void net_write(struct net *net, int value, const void *host);
void net_read(const struct net *net, int value, void *host);

/* The same for an f32 or f64 value from doubles, rounded to its type. */
void net_write_f64(struct net *net, int value, const double *host);

/* Every parameter and state by its rule and the seed: the same on every device and in both types (up to rounding). */
void net_init_values(struct net *net, uint64_t seed);

/* Forward and backward. Looks at *stop between calls; true: it was set and the step is unfinished. stop may be NULL. */
MUST_CHECK bool net_gradients(struct net *net, const volatile sig_atomic_t *stop);

/* The loss of the last net_gradients. */
double net_loss(const struct net *net);

struct net_sgd {
    double lr, momentum, weight_decay;
};
void net_update(struct net *net, const struct net_sgd *sgd);

#endif
