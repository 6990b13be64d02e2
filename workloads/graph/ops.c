/* SPDX-License-Identifier: Apache-2.0 */
/* The builder functions: what each op requires of its inputs, the shape of its result, the parameters it owns. */
#include "base/base.h"

#include "graph/internal.h"

#include <math.h>

static int64_t or_one(int64_t value)
{
    return value == 0 ? 1 : value;
}

/* Output extent of a window that slides over `size` elements; below 1 where it does not fit. */
static int64_t slide(int64_t size, int64_t window, int64_t stride, int64_t pad, int64_t dilation)
{
    int64_t room = size + 2 * pad - dilation * (window - 1) - 1;
    return room < 0 ? 0 : room / stride + 1;
}

static bool conv_geometry(struct graph *graph, const struct shape *x, const struct conv_opts *opts,
                          struct conv_geom *ret_geom)
{
    struct conv_geom geom = {
        .n = x->dim[0],
        .c = x->dim[1],
        .h = x->dim[2],
        .w = x->dim[3],
        .k = opts->out_channels,
        .r = opts->kernel,
        .s = opts->kernel,
        .stride_h = or_one(opts->stride),
        .stride_w = or_one(opts->stride),
        .pad_h = opts->pad,
        .pad_w = opts->pad,
        .dil_h = or_one(opts->dilation),
        .dil_w = or_one(opts->dilation),
        .groups = or_one(opts->groups),
    };
    geom.p = slide(geom.h, geom.r, geom.stride_h, geom.pad_h, geom.dil_h);
    geom.q = slide(geom.w, geom.s, geom.stride_w, geom.pad_w, geom.dil_w);
    if (geom.p < 1 || geom.q < 1) {
        graph_fail(graph, ERR_USAGE,
                   "%s: a %" PRId64 "x%" PRId64 " input is too small for its %" PRId64 "x%" PRId64
                   " window",
                   opts->name, geom.h, geom.w, geom.r, geom.s);
        return false;
    }
    if (geom.r * geom.s > CONV_WINDOW_MAX) {
        graph_fail(graph, ERR_INTERNAL, "%s: a window of more than %d elements", opts->name,
                   CONV_WINDOW_MAX);
        return false;
    }
    if (geom.c % geom.groups != 0 || geom.k % geom.groups != 0) {
        graph_fail(graph, ERR_INTERNAL, "%s: channels do not divide into %" PRId64 " groups",
                   opts->name, geom.groups);
        return false;
    }
    *ret_geom = geom;
    return true;
}

/* By its groups, not by its filter's shape: an ordinary convolution of one channel has (K, 1, R, S), too. */
static bool is_depthwise(const struct conv_geom *geom)
{
    return geom->groups > 1 && geom->groups == geom->c && geom->k == geom->c;
}

int graph_conv(struct graph *graph, int x, const struct conv_opts *opts)
{
    const struct shape *shape = graph_shape_of(graph, x, 4, opts->name);
    struct conv_geom geom;
    if (!shape || !conv_geometry(graph, shape, opts, &geom)) {
        return NO_VALUE;
    }
    /* He initialisation, fan-out. Source: He et al., "Delving deep into rectifiers", eq. 14; torchvision's ResNet. */
    int64_t fan_out = geom.k / geom.groups * geom.r * geom.s;
    double he = sqrt(2.0 / (double)fan_out);
    double deviation = opts->init_std > 0.0 ? opts->init_std : he;
    int weight = graph_owned_param(graph, opts->name, "weight",
                                   SHAPE(geom.k, geom.c / geom.groups, geom.r, geom.s),
                                   is_depthwise(&geom) ? ROLE_FILTER_DEPTHWISE : ROLE_FILTER,
                                   (struct init){INIT_NORMAL, deviation});
    int bias = opts->has_bias ? graph_owned_param(graph, opts->name, "bias", SHAPE(geom.k),
                                                  ROLE_CHANNEL, (struct init){INIT_CONST, 0.0})
                              : NO_VALUE;
    int y = graph_activation(graph, SHAPE(geom.n, geom.k, geom.p, geom.q), graph->dtype, true);
    struct op *op = graph_add_op(graph, OP_CONV);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.conv = geom;
    op->in[0] = x;
    op->in[1] = weight;
    op->in[2] = bias;
    op->out[0] = y;
    op->macs = geom.n * geom.k * geom.p * geom.q * (geom.c / geom.groups) * geom.r * geom.s;
    return y;
}

int graph_bn(struct graph *graph, int x, const struct bn_opts *opts)
{
    const struct shape *shape = graph_shape_of(graph, x, 4, opts->name);
    if (!shape) {
        return NO_VALUE;
    }
    struct bn_geom geom = {
        .n = shape->dim[0],
        .c = shape->dim[1],
        .plane = shape->dim[2] * shape->dim[3],
        .eps = BN_EPS_DEFAULT,
        .momentum = BN_MOMENTUM,
        .has_relu = opts->has_relu,
        .is_running_biased = opts->is_paddles,
        .n_ranks = graph->ranks.has_sync_bn ? graph->ranks.n_ranks : 1,
    };
    if (geom.n * geom.plane * geom.n_ranks == 1 && !graph->is_inference) {
        graph_fail(graph, ERR_USAGE,
                   "%s: one value per channel has no variance; batch norm needs a larger batch or "
                   "image",
                   opts->name);
        return NO_VALUE;
    }
    struct shape full = *shape;
    int gamma = graph_owned_norm(graph, opts->name, "weight", VALUE_PARAM, geom.c, 1.0);
    int beta = graph_owned_norm(graph, opts->name, "bias", VALUE_PARAM, geom.c, 0.0);
    const char *mean_name = opts->is_paddles ? "_mean" : "running_mean";
    const char *var_name = opts->is_paddles ? "_variance" : "running_var";
    int mean = graph_owned_norm(graph, opts->name, mean_name, VALUE_STATE, geom.c, 0.0);
    int var = graph_owned_norm(graph, opts->name, var_name, VALUE_STATE, geom.c, 1.0);
    int y = graph_activation(graph, full, graph->dtype, true);
    int batch_mean = graph_channel_stat(graph, geom.c);
    int batch_rstd = graph_channel_stat(graph, geom.c);
    struct op *op = graph_add_op(graph, OP_BN);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.bn = geom;
    const int in[] = {x, gamma, beta, mean, var};
    memcpy(op->in, in, sizeof(in));
    memcpy(op->out, (int[]){y, batch_mean, batch_rstd}, sizeof(op->out));
    return y;
}

int graph_relu(struct graph *graph, int x)
{
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    struct shape shape = graph->values[x].shape;
    int y = graph_activation(graph, shape, graph->dtype, graph_needs_grad(graph, x));
    struct op *op = graph_add_op(graph, OP_RELU);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.elem = graph_elem_geom(&shape, true);
    op->in[0] = x;
    op->out[0] = y;
    return y;
}

int graph_add(struct graph *graph, int a, int b, bool has_relu)
{
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    struct shape shape = graph->values[a].shape;
    if (!shape_eq(&shape, &graph->values[b].shape)) {
        char text_a[SHAPE_TEXT_MAX];
        char text_b[SHAPE_TEXT_MAX];
        shape_text(&shape, text_a);
        shape_text(&graph->values[b].shape, text_b);
        graph_fail(graph, ERR_INTERNAL, "add: %s and %s differ", text_a, text_b);
        return NO_VALUE;
    }
    int y = graph_activation(graph, shape, graph->dtype,
                             graph_needs_grad(graph, a) || graph_needs_grad(graph, b));
    struct op *op = graph_add_op(graph, OP_ADD);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.elem = graph_elem_geom(&shape, has_relu);
    op->in[0] = a;
    op->in[1] = b;
    op->out[0] = y;
    return y;
}

int graph_maxpool(struct graph *graph, int x, int64_t window, int64_t stride, int64_t pad)
{
    const struct shape *shape = graph_shape_of(graph, x, 4, "maxpool");
    if (!shape) {
        return NO_VALUE;
    }
    struct pool_geom geom = {
        .n = shape->dim[0],
        .c = shape->dim[1],
        .h = shape->dim[2],
        .w = shape->dim[3],
        .p = slide(shape->dim[2], window, stride, pad, 1),
        .q = slide(shape->dim[3], window, stride, pad, 1),
        .window = window,
        .stride = stride,
        .pad = pad,
    };
    /* With 2 * pad <= window every window contains at least one element of the image. */
    if (geom.p < 1 || geom.q < 1 || 2 * pad > window || geom.h * geom.w > INT32_MAX) {
        graph_fail(graph, ERR_USAGE,
                   "maxpool: window %" PRId64 ", pad %" PRId64 " does not fit a %" PRId64
                   "x%" PRId64 " input",
                   window, pad, geom.h, geom.w);
        return NO_VALUE;
    }
    struct shape out = SHAPE(geom.n, geom.c, geom.p, geom.q);
    int y = graph_activation(graph, out, graph->dtype, graph_needs_grad(graph, x));
    int at = graph_activation(graph, out, DT_I32, false);
    struct op *op = graph_add_op(graph, OP_MAXPOOL);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.pool = geom;
    op->in[0] = x;
    op->out[0] = y;
    op->out[1] = at;
    return y;
}

static int avgpool(struct graph *graph, int x, int64_t window, bool is_flat)
{
    const struct shape *shape = graph_shape_of(graph, x, 4, "average pool");
    if (!shape) {
        return NO_VALUE;
    }
    ASSERT(window > 0);
    struct pool_geom geom = {.n = shape->dim[0],
                             .c = shape->dim[1],
                             .h = shape->dim[2],
                             .w = shape->dim[3],
                             .p = (shape->dim[2] + window - 1) / window,
                             .q = (shape->dim[3] + window - 1) / window,
                             .window = window,
                             .stride = window,
                             .is_flat = is_flat};
    struct shape out = is_flat ? SHAPE(geom.n, geom.c) : SHAPE(geom.n, geom.c, geom.p, geom.q);
    int y = graph_activation(graph, out, graph->dtype, graph_needs_grad(graph, x));
    struct op *op = graph_add_op(graph, OP_AVGPOOL);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.pool = geom;
    op->in[0] = x;
    op->out[0] = y;
    return y;
}

int graph_avgpool(struct graph *graph, int x, int64_t window)
{
    return avgpool(graph, x, window, false);
}

int graph_global_avgpool(struct graph *graph, int x)
{
    const struct shape *shape = graph_shape_of(graph, x, 4, "global average pool");
    if (!shape) {
        return NO_VALUE;
    }
    return avgpool(graph, x, shape->dim[2] > shape->dim[3] ? shape->dim[2] : shape->dim[3], true);
}

static int dropout(struct graph *graph, int x, int step, double rate, bool is_by_channel)
{
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    const struct value *counter = &graph->values[step];
    if (counter->dtype != DT_I64 || counter->shape.n_dims != 0 || !(rate > 0.0) || rate >= 1.0) {
        graph_fail(graph, ERR_INTERNAL, "dropout: rate %g, or a step that is no int64 scalar",
                   rate);
        return NO_VALUE;
    }
    struct shape shape = graph->values[x].shape;
    ASSERT(!is_by_channel || shape.n_dims == 4);
    ASSERT(!graph->is_inference); /* the model was told to have no dropout */
    int y = graph_activation(graph, shape, graph->dtype, graph_needs_grad(graph, x));
    struct op *op = graph_add_op(graph, OP_DROPOUT);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    const struct elem_geom whole = graph_elem_geom(&shape, false);
    op->geom.dropout = (struct dropout_geom){.count = whole.count,
                                             .c = whole.c,
                                             .plane = whole.plane,
                                             .run = is_by_channel ? shape.dim[2] * shape.dim[3] : 1,
                                             .first = graph->ranks.rank * shape_count(&shape),
                                             .rate = rate,
                                             .stream = (uint64_t)graph->n_ops};
    op->in[0] = x;
    op->in[1] = step;
    op->out[0] = y;
    return y;
}

int graph_dropout(struct graph *graph, int x, int step, double rate)
{
    return dropout(graph, x, step, rate, false);
}

int graph_dropout_channels(struct graph *graph, int x, int step, double rate)
{
    return dropout(graph, x, step, rate, true);
}

int graph_upsample(struct graph *graph, int x, const struct upsample_opts *opts)
{
    const struct shape *shape = graph_shape_of(graph, x, 4, "upsample");
    if (!shape) {
        return NO_VALUE;
    }
    struct resize_geom geom = {.n = shape->dim[0],
                               .c = shape->dim[1],
                               .h = shape->dim[2],
                               .w = shape->dim[3],
                               .p = opts->height,
                               .q = opts->width,
                               .is_aligned = opts->is_aligned};
    int y = graph_activation(graph, SHAPE(geom.n, geom.c, geom.p, geom.q), graph->dtype,
                             graph_needs_grad(graph, x));
    struct op *op = graph_add_op(graph, OP_UPSAMPLE);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.resize = geom;
    op->in[0] = x;
    op->out[0] = y;
    return y;
}

/* Computes the result's geometry. Each input must equal the first except in channels. */
static bool concat_geometry(struct graph *graph, const int *values, int n_values,
                            struct shape *ret_shape, struct concat_geom *ret_geom)
{
    ASSERT(n_values >= 1);
    ASSERT(n_values <= CONCAT_IN_MAX);
    struct concat_geom geom = {0};
    struct shape whole = {0};
    for (int i = 0; i < n_values; i++) {
        const struct shape *shape = graph_shape_of(graph, values[i], 4, "concat");
        if (!shape) {
            return false;
        }
        whole = i == 0 ? *shape : whole;
        struct shape part = *shape;
        part.dim[1] = whole.dim[1];
        if (!shape_eq(&part, &whole)) {
            char text[SHAPE_TEXT_MAX];
            char first[SHAPE_TEXT_MAX];
            shape_text(shape, text);
            shape_text(&whole, first);
            graph_fail(graph, ERR_INTERNAL, "concat: input %d is %s, the first is %s", i, text,
                       first);
            return false;
        }
        geom.parts[i] = shape->dim[1];
        geom.c += shape->dim[1];
    }
    whole.dim[1] = geom.c;
    geom.n = whole.dim[0];
    geom.plane = whole.dim[2] * whole.dim[3];
    *ret_shape = whole;
    *ret_geom = geom;
    return true;
}

int graph_concat(struct graph *graph, const int *values, int n_values)
{
    struct concat_geom geom;
    struct shape shape;
    if (!concat_geometry(graph, values, n_values, &shape, &geom)) {
        return NO_VALUE;
    }
    bool wants_grad = false;
    for (int i = 0; i < n_values; i++) {
        wants_grad = wants_grad || graph_needs_grad(graph, values[i]);
    }
    int y = graph_activation(graph, shape, graph->dtype, wants_grad);
    struct op *op = graph_add_op(graph, OP_CONCAT);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.concat = geom;
    memcpy(op->in, values, (size_t)n_values * sizeof(*values));
    op->out[0] = y;
    return y;
}

/* True if labels is logits without the channel dimension, int64. */
static bool labels_fit(const struct value *logits, const struct value *labels)
{
    bool fits = logits->shape.n_dims >= 2 && labels->dtype == DT_I64 &&
                labels->shape.n_dims == logits->shape.n_dims - 1 &&
                labels->shape.dim[0] == logits->shape.dim[0];
    for (int i = 2; fits && i < logits->shape.n_dims; i++) {
        fits = labels->shape.dim[i - 1] == logits->shape.dim[i];
    }
    return fits;
}

int graph_loss(struct graph *graph, int logits, int labels, const struct loss_opts *opts)
{
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    struct shape shape = graph->values[logits].shape;
    if (!labels_fit(&graph->values[logits], &graph->values[labels])) {
        graph_fail(graph, ERR_INTERNAL, "loss: labels do not fit the logits");
        return NO_VALUE;
    }
    struct loss_geom geom = {.n = shape.dim[0],
                             .c = shape.dim[1],
                             .plane = 1,
                             .smoothing = opts->label_smoothing,
                             .ignore_label = opts->ignore_label,
                             .weight = opts->weight > 0.0 ? opts->weight : 1.0,
                             .n_ranks = graph->ranks.n_ranks,
                             .is_image = shape.n_dims == 4};
    for (int i = 2; i < shape.n_dims; i++) {
        geom.plane *= shape.dim[i];
    }
    int loss = graph->loss == NO_VALUE
                   ? graph_activation(graph, SHAPE_SCALAR, graph->types.norm, true)
                   : graph->loss;
    int prob = graph_activation(graph, shape, graph->dtype, false);
    struct op *op = graph_add_op(graph, OP_LOSS);
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    op->geom.loss = geom;
    op->in[0] = logits;
    op->in[1] = labels;
    op->out[0] = loss;
    op->out[1] = prob;
    graph->loss = loss;
    return loss;
}
