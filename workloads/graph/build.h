/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that a model is written in (graph/graph.h has what they build). */
#pragma once

#include "core/tensor.h"

struct graph;

#define NO_VALUE (-1)
#define BN_EPS_DEFAULT                                                                             \
    1e-5 /* Source: PyTorch's BatchNorm2d, eps and momentum; all our models use them. */
#define BN_MOMENTUM 0.1

enum init_kind {
    INIT_CONST,
    INIT_NORMAL,  /* mean 0, standard deviation `scale` */
    INIT_UNIFORM, /* [-scale, scale) */
};

struct init {
    enum init_kind kind;
    double scale; /* the constant, deviation or bound */
};

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
    /* As in Paddle: the statistics are ._mean and ._variance, and the running variance averages each batch's variance divided by
       n; otherwise as in PyTorch: divided by n - 1. */
    bool is_paddles;
};

/* Each returns the id of its result. Shapes are inferred; what does not fit is the graph's error. */
int graph_input(struct graph *graph, const char *name, struct shape shape, enum dtype dtype);
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

struct linear_opts {
    const char *name; /* parameters are NAME.weight and NAME.bias */
    int64_t out_features;
    double
        init_std; /* above 0: deviation of the weights before training, biases 0; 0: PyTorch's rule */
    bool is_tied; /* the weight is another op's: */
    int weight;   /* (out_features, C), ROLE_TABLE */
    /* The result's rows and the matrix have a length that suits the backend, whatever out_features is: for graph_row_loss, the
       only reader of such rows. A tied matrix must have it. */
    bool is_rounded;
};
int graph_linear_with(struct graph *graph, int x, const struct linear_opts *opts); /* x (N, C) */
int graph_linear(struct graph *graph, int x, const char *name, int64_t out_features);

/* Three in one matrix product: (N, 3 * out_features), the columns of names[0] first. opts->name is ignored. */
int graph_linear_joined(struct graph *graph, int x, const char *const names[3],
                        const struct linear_opts *opts);

struct loss_opts {
    double label_smoothing;
    int64_t ignore_label; /* LOSS_IGNORE_NONE for none */
    double weight;        /* 0 is 1 */
};
/* logits (N, C) with labels (N), or (N, C, H, W) with (N, H, W): the mean over the labels that are not ignore_label, and 0
   with a gradient of 0 where there is none. Each further one adds weight times itself to the graph's one loss. */
int graph_loss(struct graph *graph, int logits, int labels, const struct loss_opts *opts);

/* ---- sequences: T = N * S tokens in rows ---- */

/* Tables OWNER.word_embeddings.weight, .position_embeddings.weight and .token_type_embeddings.weight. */
struct embed_opts {
    const char *owner;
    int64_t width, vocabulary, positions, segments;
    double init_std;
};
/* ids and segments are inputs (N, S), int64, below vocabulary and segments; S is at most positions. *ret_word is the first table. */
int graph_embed(struct graph *graph, int ids, int segments, const struct embed_opts *opts,
                int *ret_word);

/* Parameters NAME.weight and NAME.bias. */
int graph_layer_norm(struct graph *graph, int x, const char *name, double eps);
int graph_gelu(struct graph *graph, int x);
int graph_tanh(struct graph *graph, int x);

struct attention_opts {
    int64_t heads;
    int mask;    /* input (N, S), int64: 0 where attention must not look */
    double rate; /* of the dropout of probabilities; 0: none */
    int step;    /* as graph_dropout's, where rate is not 0 */
};
int graph_attention(struct graph *graph, int qkv, const struct attention_opts *opts);

/* Of n groups of rows of x those that the int64 input `at` (n, P) selects, (n * P, C); with NO_VALUE the first of each, (n,
   C). */
int graph_gather(struct graph *graph, int x, int at, int64_t n);

/* graph_loss for logits (R, C) whose gradient is computed in the same call; labels have R elements. */
int graph_row_loss(struct graph *graph, int logits, int labels, const struct loss_opts *opts);

/* Names a value that can be read after the step. */
void graph_output(struct graph *graph, const char *name, int value);
