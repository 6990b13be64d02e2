/* SPDX-License-Identifier: Apache-2.0 */
/* The builder functions for rows: linear layers, and the operations of sequence networks. */
#include "base/base.h"

#include "graph/internal.h"

#include <math.h>

/* ---- linear ---- */

static void set_linear(struct op *op, const struct linear_geom *geom, int x, int y)
{
    op->geom.linear = *geom;
    op->in[0] = x;
    op->out[0] = y;
    op->macs = geom->n * geom->c * geom->k;
}

/* Source: PyTorch's Linear, reset_parameters: weight and bias uniform within 1/sqrt(fan-in). */
static struct init linear_init(const struct linear_opts *opts, int64_t fan_in, bool is_bias)
{
    if (opts->init_std > 0.0) {
        return is_bias ? (struct init){INIT_CONST, 0.0}
                       : (struct init){INIT_NORMAL, opts->init_std};
    }
    return (struct init){INIT_UNIFORM, 1.0 / sqrt((double)fan_in)};
}

static int linear_weight(struct graph *graph, const struct linear_opts *opts,
                         const struct linear_geom *geom)
{
    struct shape shape = SHAPE(geom->k, geom->c);
    if (!opts->is_tied) {
        return graph_owned_param(graph, opts->name, "weight", shape,
                                 geom->is_rounded ? ROLE_TABLE : ROLE_PLAIN,
                                 linear_init(opts, geom->c, false));
    }
    if (graph->err.code == ERR_NONE &&
        (!shape_eq(&graph->values[opts->weight].shape, &shape) ||
         graph->values[opts->weight].role != ROLE_TABLE || !geom->is_rounded)) {
        graph_fail(graph, ERR_INTERNAL, "%s: the tied weight is of another shape or role",
                   opts->name);
    }
    return opts->weight;
}

int graph_linear_with(struct graph *graph, int x, const struct linear_opts *opts)
{
    const struct shape *shape = graph_shape_of(graph, x, 2, opts->name);
    if (!shape) {
        return NO_VALUE;
    }
    struct linear_geom geom = {.n = shape->dim[0],
                               .c = shape->dim[1],
                               .k = opts->out_features,
                               .n_parts = 1,
                               .is_rounded = opts->is_rounded};
    int weight = linear_weight(graph, opts, &geom);
    int bias = graph_owned_param(graph, opts->name, "bias", SHAPE(geom.k),
                                 geom.is_rounded ? ROLE_CHANNEL : ROLE_PLAIN,
                                 linear_init(opts, geom.c, true));
    int y = graph_add_value(graph, (struct value){.shape = SHAPE(geom.n, geom.k),
                                                  .dtype = graph->dtype,
                                                  .role = geom.is_rounded ? ROLE_ROWS : ROLE_PLAIN,
                                                  .kind = VALUE_ACT,
                                                  .needs_grad = true});
    struct op *op = graph_add_op(graph, OP_LINEAR);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    set_linear(op, &geom, x, y);
    op->in[1] = weight;
    op->in[2] = bias;
    op->is_tied = opts->is_tied;
    return y;
}

int graph_linear(struct graph *graph, int x, const char *name, int64_t out_features)
{
    return graph_linear_with(graph, x,
                             &(struct linear_opts){.name = name, .out_features = out_features});
}

/* Weights one after the other, then biases: gradients that are complete with the same call keep this order in memory. */
static void joined_params(struct graph *graph, const char *const names[3],
                          const struct linear_opts *opts, int64_t fan_in, int ret_ids[6])
{
    for (int i = 0; i < 6; i++) {
        bool is_bias = i >= 3;
        struct value value = {
            .shape = is_bias ? SHAPE(opts->out_features) : SHAPE(opts->out_features, fan_in),
            .dtype = graph->dtype,
            .kind = VALUE_PARAM,
            .init = linear_init(opts, fan_in, is_bias),
            .is_joined = i % 3 > 0,
        };
        ret_ids[i] = graph_owned(graph, names[i % 3], is_bias ? "bias" : "weight", value);
    }
}

int graph_linear_joined(struct graph *graph, int x, const char *const names[3],
                        const struct linear_opts *opts)
{
    const struct shape *shape = graph_shape_of(graph, x, 2, names[0]);
    if (!shape) {
        return NO_VALUE;
    }
    struct linear_geom geom = {
        .n = shape->dim[0], .c = shape->dim[1], .k = 3 * opts->out_features, .n_parts = 3};
    int params[6];
    joined_params(graph, names, opts, geom.c, params);
    int y = graph_activation(graph, SHAPE(geom.n, geom.k), graph->dtype, true);
    struct op *op = graph_add_op(graph, OP_LINEAR);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    set_linear(op, &geom, x, y);
    const int rest[] = {params[0], params[3], params[1], params[2], params[4], params[5]};
    memcpy(&op->in[1], rest, sizeof(rest));
    return y;
}

/* ---- embedding ---- */

static int table(struct graph *graph, const struct embed_opts *opts, const char *field,
                 int64_t rows, enum role role)
{
    return graph_owned_param(graph, arena_printf(graph->arena, "%s.%s", opts->owner, field),
                             "weight", SHAPE(rows, opts->width), role,
                             (struct init){INIT_NORMAL, opts->init_std});
}

/* An int64 input of n_dims dimensions, or NULL with the graph's error set. */
static const struct shape *numbers(struct graph *graph, int id, int n_dims, const char *what)
{
    if (graph->err.code != ERR_NONE) {
        return NULL;
    }
    const struct value *value = &graph->values[id];
    if (value->dtype != DT_I64 || value->shape.n_dims != n_dims) {
        graph_fail(graph, ERR_INTERNAL, "%s: expected int64 of %d dimensions", what, n_dims);
        return NULL;
    }
    return &value->shape;
}

int graph_embed(struct graph *graph, int ids, int segments, const struct embed_opts *opts,
                int *ret_word)
{
    const struct shape *shape = numbers(graph, ids, 2, "ids");
    const struct shape *same = numbers(graph, segments, 2, "segments");
    if (!shape || !same) {
        return NO_VALUE;
    }
    struct embed_geom geom = {.n = shape->dim[0],
                              .s = shape->dim[1],
                              .d = opts->width,
                              .vocabulary = opts->vocabulary,
                              .positions = opts->positions,
                              .segments = opts->segments};
    if (!shape_eq(shape, same) || geom.s > geom.positions) {
        graph_fail(graph, ERR_USAGE, "%s: a sequence of %" PRId64 ", at most %" PRId64, opts->owner,
                   geom.s, geom.positions);
        return NO_VALUE;
    }
    int word = table(graph, opts, "word_embeddings", geom.vocabulary, ROLE_TABLE);
    int position = table(graph, opts, "position_embeddings", geom.positions, ROLE_PLAIN);
    int segment = table(graph, opts, "token_type_embeddings", geom.segments, ROLE_PLAIN);
    int y = graph_activation(graph, SHAPE(geom.n * geom.s, geom.d), graph->dtype, true);
    struct op *op = graph_add_op(graph, OP_EMBED);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.embed = geom;
    const int in[] = {ids, segments, word, position, segment};
    memcpy(op->in, in, sizeof(in));
    op->out[0] = y;
    *ret_word = word;
    return y;
}

/* ---- row by row ---- */

int graph_layer_norm(struct graph *graph, int x, const char *name, double eps)
{
    const struct shape *shape = graph_shape_of(graph, x, 2, name);
    if (!shape) {
        return NO_VALUE;
    }
    struct layer_norm_geom geom = {.rows = shape->dim[0], .c = shape->dim[1], .eps = eps};
    struct value param = {.shape = SHAPE(geom.c), .dtype = graph->types.norm, .kind = VALUE_PARAM};
    param.init = (struct init){INIT_CONST, 1.0};
    int gamma = graph_owned(graph, name, "weight", param);
    param.init = (struct init){INIT_CONST, 0.0};
    int beta = graph_owned(graph, name, "bias", param);
    int y = graph_activation(graph, SHAPE(geom.rows, geom.c), graph->dtype, true);
    int mean = graph_activation(graph, SHAPE(geom.rows), graph->types.stat, false);
    int rstd = graph_activation(graph, SHAPE(geom.rows), graph->types.stat, false);
    struct op *op = graph_add_op(graph, OP_LAYER_NORM);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.layer_norm = geom;
    op->in[0] = x;
    op->in[1] = gamma;
    op->in[2] = beta;
    op->out[0] = y;
    op->out[1] = mean;
    op->out[2] = rstd;
    return y;
}

static int curve(struct graph *graph, int x, enum op_kind kind)
{
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    struct shape shape = graph->values[x].shape;
    int y = graph_activation(graph, shape, graph->dtype, graph_needs_grad(graph, x));
    struct op *op = graph_add_op(graph, kind);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.elem = graph_elem_geom(&shape, false);
    op->in[0] = x;
    op->out[0] = y;
    return y;
}

int graph_gelu(struct graph *graph, int x)
{
    return curve(graph, x, OP_GELU);
}

int graph_tanh(struct graph *graph, int x)
{
    return curve(graph, x, OP_TANH);
}

/* ---- attention ---- */

static bool attention_geometry(struct graph *graph, int qkv, const struct attention_opts *opts,
                               struct attention_geom *ret_geom)
{
    const struct shape *rows = graph_shape_of(graph, qkv, 2, "attention");
    const struct shape *mask = numbers(graph, opts->mask, 2, "attention's mask");
    if (!rows || !mask) {
        return false;
    }
    int64_t n = mask->dim[0];
    int64_t s = mask->dim[1];
    bool has_dropout = opts->rate > 0.0;
    if (rows->dim[0] != n * s || rows->dim[1] % (3 * opts->heads) != 0 || opts->rate < 0.0 ||
        opts->rate >= 1.0 || (has_dropout && !numbers(graph, opts->step, 0, "attention's step"))) {
        graph_fail(graph, ERR_INTERNAL,
                   "attention: %" PRId64 " rows of %" PRId64 " for %" PRId64 " x %" PRId64
                   " tokens, %" PRId64 " heads, rate %g",
                   rows->dim[0], rows->dim[1], n, s, opts->heads, opts->rate);
        return false;
    }
    int64_t count = n * opts->heads * s * s;
    *ret_geom = (struct attention_geom){
        .n = n,
        .s = s,
        .heads = opts->heads,
        .d = rows->dim[1] / (3 * opts->heads),
        .dropout = {.count = count,
                    .run = 1,
                    .first = graph->ranks.rank * count,
                    .rate = opts->rate,
                    .stream = (uint64_t)graph->n_ops + 1},
    };
    return true;
}

int graph_attention(struct graph *graph, int qkv, const struct attention_opts *opts)
{
    struct attention_geom geom;
    if (!attention_geometry(graph, qkv, opts, &geom)) {
        return NO_VALUE;
    }
    ASSERT(!graph->is_inference || opts->rate <= 0.0); /* the model was told to have no dropout */
    int context = graph_activation(graph, SHAPE(geom.n * geom.s, geom.heads * geom.d), graph->dtype,
                                   graph_needs_grad(graph, qkv));
    int lse = graph_activation(graph, SHAPE(geom.n, geom.heads, geom.s), graph->types.stat, false);
    struct op *op = graph_add_op(graph, OP_ATTENTION);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.attention = geom;
    op->in[0] = qkv;
    op->in[1] = opts->mask;
    op->in[2] = geom.dropout.rate > 0.0 ? opts->step : NO_VALUE;
    op->out[0] = context;
    op->out[1] = lse;
    op->macs = 2 * geom.n * geom.heads * geom.s * geom.s * geom.d;
    return context;
}

/* ---- which rows, and the loss over them ---- */

int graph_gather(struct graph *graph, int x, int at, int64_t n)
{
    const struct shape *shape = graph_shape_of(graph, x, 2, "gather");
    const struct shape *places = at == NO_VALUE ? NULL : numbers(graph, at, 2, "gather");
    if (!shape || (at != NO_VALUE && !places)) {
        return NO_VALUE;
    }
    struct gather_geom geom = {
        .n = n, .s = shape->dim[0] / n, .p = places ? places->dim[1] : 1, .c = shape->dim[1]};
    if (geom.n * geom.s != shape->dim[0] || (places && places->dim[0] != n)) {
        graph_fail(graph, ERR_INTERNAL, "gather: %" PRId64 " rows in %" PRId64 " groups",
                   shape->dim[0], n);
        return NO_VALUE;
    }
    int y = graph_activation(graph, SHAPE(geom.n * geom.p, geom.c), graph->dtype,
                             graph_needs_grad(graph, x));
    struct op *op = graph_add_op(graph, OP_GATHER);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.gather = geom;
    op->in[0] = x;
    op->in[1] = at;
    op->out[0] = y;
    return y;
}

int graph_row_loss(struct graph *graph, int logits, int labels, const struct loss_opts *opts)
{
    const struct shape *shape = graph_shape_of(graph, logits, 2, "loss");
    if (!shape) {
        return NO_VALUE;
    }
    const struct value *label = &graph->values[labels];
    struct loss_geom geom = {.n = shape->dim[0],
                             .c = shape->dim[1],
                             .plane = 1,
                             .smoothing = opts->label_smoothing,
                             .ignore_label = opts->ignore_label,
                             .weight = opts->weight > 0.0 ? opts->weight : 1.0,
                             .n_ranks = graph->ranks.n_ranks,
                             .is_rounded = graph->values[logits].role == ROLE_ROWS};
    if (label->dtype != DT_I64 || shape_count(&label->shape) != geom.n) {
        graph_fail(graph, ERR_INTERNAL, "loss: labels do not fit the logits");
        return NO_VALUE;
    }
    int loss = graph->loss;
    if (loss == NO_VALUE) {
        loss = graph_activation(graph, SHAPE_SCALAR, graph->types.norm, true);
    }
    struct op *op = graph_add_op(graph, OP_ROW_LOSS);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.loss = geom;
    op->in[0] = logits;
    op->in[1] = labels;
    op->out[0] = loss;
    graph->loss = loss;
    return loss;
}
