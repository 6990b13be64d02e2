/* SPDX-License-Identifier: Apache-2.0 */
/* A static training graph. A model builds it straight down the page; graph_finish checks it, adds the backward pass and
   leaves a list of kernel calls (graph/memplan.h then gives every value its memory, graph/net.h runs it).

   The first error sticks: builder functions then return NO_VALUE and take NO_VALUE, and graph_finish reports it. So a
   model needs no error handling of its own. Everything lives in the arena. Not thread-safe. */
#ifndef GRAPH_GRAPH_H
#define GRAPH_GRAPH_H

#include "base/arena.h"
#include "core/kernel.h"

#define NO_VALUE         (-1)
#define GRAPH_VALUES_MAX 65536
#define GRAPH_OPS_MAX    16384
#define GRAPH_NAME_MAX   200
#define OP_IN_MAX        5
#define OP_OUT_MAX       3
#define BN_EPS_DEFAULT                                                                             \
    1e-5 /* Source: PyTorch's BatchNorm2d, eps and momentum; all our models use them. */
#define BN_MOMENTUM 0.1

enum value_kind {
    VALUE_INPUT, /* written from outside before a step */
    VALUE_PARAM, /* trained */
    VALUE_STATE, /* kept from step to step, not trained: running statistics */
    VALUE_ACT,   /* made by a forward op */
    VALUE_GRAD_PARAM,
    VALUE_GRAD_ACT,
};

enum init_kind {
    INIT_CONST,
    INIT_NORMAL,  /* mean 0, standard deviation `scale` */
    INIT_UNIFORM, /* [-scale, scale) */
};

struct init {
    enum init_kind kind;
    double scale; /* the constant, deviation or bound */
};

struct value {
    const char *name; /* unique among inputs, parameters and states; NULL for most others */
    struct shape shape;
    enum dtype dtype;
    enum value_kind kind;
    struct init init;
    bool needs_grad;
    bool is_kept; /* readable after the step: never overwritten once written */
    int grad;     /* value holding its gradient, or NO_VALUE */
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
    OP_KIND_COUNT
};

struct op {
    enum op_kind kind;
    union geom geom;
    int in[OP_IN_MAX];   /* value ids in the order of the kernel's in[], states last */
    int out[OP_OUT_MAX]; /* out[0] is the result */
    int64_t macs;        /* multiply-accumulates of one forward call, whole batch */
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
};

struct graph {
    struct arena *arena; /* borrowed from graph_new's caller */
    enum dtype dtype;    /* of parameters and activations */
    struct err err;      /* the first error, or code ERR_NONE */
    struct value *values;
    int n_values, n_values_max;
    struct op *ops;
    int n_ops, n_ops_max;
    struct call *calls;
    int n_calls, n_calls_max;
    int *params; /* value ids of VALUE_PARAM in the order the model made them */
    int n_params;
    int *
        grad_order; /* the same parameters in the order in which backward completes their gradients */
    int *grad_ready; /* call index that completes grad_order[i] */
    int loss;        /* value id of the loss, set by graph_loss */
    bool is_finished;
};

struct graph *graph_new(struct arena *arena, enum dtype dtype);

struct conv_opts {
    const char *name; /* parameters are NAME.weight and NAME.bias */
    int64_t out_channels;
    int64_t kernel;
    int64_t stride; /* 0 is 1 */
    int64_t pad;
    int64_t dilation; /* 0 is 1 */
    int64_t groups;   /* 0 is 1 */
    bool has_bias;
    double init_std; /* deviation of the weights before training; 0: He's rule for ReLU networks */
};

struct bn_opts {
    const char *name; /* NAME.weight, .bias, .running_mean, .running_var */
    bool has_relu;
    bool has_paddle_names; /* the statistics are ._mean and ._variance, as in Paddle */
};

/* Each returns the id of its result. Shapes are inferred; what does not fit is the graph's error. */
int graph_input(struct graph *graph, const char *name, struct shape shape, enum dtype dtype);
int graph_param(struct graph *graph, const char *name, struct shape shape, struct init init);
int graph_conv(struct graph *graph, int x, const struct conv_opts *opts);
int graph_bn(struct graph *graph, int x, const struct bn_opts *opts);
int graph_relu(struct graph *graph, int x);
int graph_add(struct graph *graph, int a, int b, bool has_relu);
int graph_maxpool(struct graph *graph, int x, int64_t window, int64_t stride, int64_t pad);
int graph_global_avgpool(struct graph *graph, int x); /* (N, C) */

/* Windows side by side, those at the border as large as the image leaves them (PyTorch's ceil_mode). A window of the image or
   more makes (N, C, 1, 1). */
int graph_avgpool(struct graph *graph, int x, int64_t window);

/* Drops by the hash of K_DROPOUT_FWD; step is a scalar int64 input that the run counts up. */
int graph_dropout(struct graph *graph, int x, int step, double rate);
int graph_dropout_channels(struct graph *graph, int x, int step, double rate); /* whole planes */

struct upsample_opts {
    int64_t height, width; /* of the result; smaller than the input is allowed */
    bool is_aligned;       /* PyTorch's align_corners */
};
int graph_upsample(struct graph *graph, int x, const struct upsample_opts *opts);

/* Along the channels; n_values from 1 to CONCAT_IN_MAX. */
int graph_concat(struct graph *graph, const int *values, int n_values);
int graph_linear(struct graph *graph, int x, const char *name, int64_t out_features);

struct loss_opts {
    double label_smoothing;
    int64_t ignore_label; /* LOSS_IGNORE_NONE for none */
    double weight;        /* 0 is 1 */
};
/* logits (N, C) with labels (N), or (N, C, H, W) with (N, H, W): the mean over the labels that are not ignore_label, and 0
   with a gradient of 0 where there is none. Each further one adds weight times itself to the graph's one loss. */
int graph_loss(struct graph *graph, int logits, int labels, const struct loss_opts *opts);

/* Names a value that can be read after the step. */
void graph_output(struct graph *graph, const char *name, int value);

/* Builds the calls: forward in order, then backward. Needed before anything else is done with the graph. */
MUST_CHECK int graph_finish(struct graph *graph, struct err *err);

/* Id of a named value, or NO_VALUE. */
int graph_find(const struct graph *graph, const char *name);

int64_t graph_n_trainable(const struct graph *graph);
int64_t graph_n_running(const struct graph *graph); /* elements of all states */
int64_t graph_macs(const struct graph *graph);      /* one forward pass, whole batch */
const char *op_kind_name(enum op_kind kind);

#endif
