/* SPDX-License-Identifier: Apache-2.0 */
/* A static training graph. A model builds it straight down the page; graph_finish checks it, adds the backward pass and
   leaves a list of kernel calls (graph/memplan.h then gives every value its memory, graph/net.h runs it).

   The first error sticks: builder functions then return NO_VALUE and take NO_VALUE, and graph_finish reports it. So a
   model needs no error handling of its own. Everything lives in the arena. Not thread-safe. */
#pragma once

#include "base/arena.h"
#include "core/kernel.h"
#include "graph/build.h"

#define GRAPH_VALUES_MAX  65536
#define GRAPH_OPS_MAX     16384
#define GRAPH_NAME_MAX    200
#define OP_IN_MAX         7
#define OP_OUT_MAX        3
#define GRAPH_FUSIONS_MAX 8 /* patterns of graph/fuse.h */
#define GRAPH_STREAMS_MAX 8
#define CALL_WAITS_MAX                                                                             \
    (GRAPH_STREAMS_MAX - 1) /* of several events of one stream the last one is enough */

enum value_kind {
    VALUE_INPUT, /* written from outside before a step */
    VALUE_PARAM, /* trained */
    VALUE_STATE, /* kept from step to step, not trained: running statistics */
    VALUE_ACT,   /* written by a forward op */
    VALUE_GRAD_PARAM,
    VALUE_GRAD_ACT,
};

struct value {
    const char *name; /* unique among inputs, parameters and states; NULL for most others */
    struct shape shape;
    enum dtype dtype;
    enum role role;
    enum value_kind kind;
    struct init init;
    bool needs_grad;
    bool is_kept;   /* readable after the step: never overwritten once written */
    bool is_joined; /* adjacent to the previous parameter in memory, and so is its gradient */
    int grad;       /* value holding its gradient, or NO_VALUE */
};

enum op_kind {
    OP_CONV,
    OP_BN,
    OP_RELU,
    OP_ADD,
    OP_MAXPOOL,
    OP_AVGPOOL,
    OP_DROPOUT,
    OP_UPSAMPLE,
    OP_CONCAT,
    OP_LINEAR,
    OP_LOSS,
    OP_EMBED,
    OP_LAYER_NORM,
    OP_GELU,
    OP_TANH,
    OP_ATTENTION,
    OP_GATHER,
    OP_ROW_LOSS,
    OP_KIND_COUNT
};

struct op {
    enum op_kind kind;
    union geom geom;
    int in[OP_IN_MAX];   /* value ids in the order of the kernel's in[], states last */
    int out[OP_OUT_MAX]; /* out[0] is the result */
    int64_t macs;        /* multiply-accumulates of one forward call, whole batch */
    bool is_tied;        /* its weight, in[1], belongs to another op */
};

struct call {
    struct kernel_args args; /* id, dtype, geometry, accumulate; pointers are filled by graph/net */
    int op;                  /* index into ops: which op this call belongs to */
    bool is_backward;
    int in[KERNEL_IN_MAX];   /* value ids or NO_VALUE */
    int out[KERNEL_OUT_MAX]; /* value ids or NO_VALUE */
    unsigned reads_out;      /* bit i: out[i] is read as well (+= and running statistics) */
    unsigned
        inplace[KERNEL_OUT_MAX]; /* bit j: out[i] may take the memory of in[j] if that dies here */
    /* Only with several streams, graph/streams.h: events that its stream waits for before it, and one recorded after it. */
    int waits[CALL_WAITS_MAX];
    int n_waits;
    bool is_recorded;
    int event;
};

/* This graph's share of a batch that is spread evenly over several graphs. */
struct graph_ranks {
    int rank, n_ranks;
    bool has_sync_bn; /* batch norm over the batches of all ranks */
};

/* What is stored in which type. A CPU: all one type, statistics double; FP32 on a device: all float; AMP: {F16, F32, F32}. */
struct graph_types {
    enum dtype dtype; /* activations, filters, matrices, their biases and gradients */
    enum dtype norm;  /* gamma, beta, running statistics, and the loss */
    enum dtype stat;  /* mean and rstd of a batch */
};

struct graph {
    struct graph_ranks ranks;
    struct arena *arena; /* borrowed from graph_new_typed's caller */
    struct graph_types types;
    enum dtype dtype; /* types.dtype */
    struct err err;   /* the first error, or code ERR_NONE */
    struct value *values;
    int n_values, n_values_max;
    struct op *ops;
    int n_ops, n_ops_max;
    struct call *calls;
    int n_calls, n_calls_max;
    int *params; /* value ids of VALUE_PARAM in the order of their creation */
    int n_params;
    int *
        grad_order; /* the same parameters in the order in which backward completes their gradients */
    int *grad_ready;                /* call index that completes grad_order[i] */
    int loss;                       /* value id of the loss, set by graph_loss */
    int n_fused[GRAPH_FUSIONS_MAX]; /* sites by pattern that graph_fuse has fused */
    bool is_inference;              /* graph_set_inference */
    bool is_finished;
};

struct graph *graph_new_typed(struct arena *arena, const struct graph_types *types);

static inline struct tensor_desc value_desc(const struct value *value)
{
    return (struct tensor_desc){value->shape, value->dtype, value->role};
}

/* Before anything is built; without it there is one rank. Losses are then means over all ranks' labels, dropout uses the
   element's number in the whole batch, and parameter gradients are this rank's share: their sum is the gradient. */
void graph_set_ranks(struct graph *graph, const struct graph_ranks *ranks);

/* Before anything is built: only forward calls, and only those that the outputs need; the loss has no value. A batch norm uses its
   running statistics, from two unnamed inputs that net_take_running fills; there is no dropout. */
void graph_set_inference(struct graph *graph);

/* Builds the calls: forward in order, then backward. Everything else needs a finished graph. */
MUST_CHECK int graph_finish(struct graph *graph, struct err *err);

/* Id of a named value, or NO_VALUE. */
int graph_find(const struct graph *graph, const char *name);

int64_t graph_n_trainable(const struct graph *graph);
int64_t graph_n_running(const struct graph *graph); /* elements of all states */
int64_t graph_macs(const struct graph *graph);      /* one forward pass, whole batch */
const char *op_kind_name(enum op_kind kind);
