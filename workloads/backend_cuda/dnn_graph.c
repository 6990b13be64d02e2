/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/dnn_graph.h"

#define ALIGN_BYTES 16 /* of every tensor: memory plans give 64 */

/* ---- the call ---- */

struct dnn_call dnn_call_of(const struct cuda *cuda, const struct kernel_args *args)
{
    struct dnn_call call = {.id = args->id,
                            .dtype = args->dtype,
                            .geom = args->geom.conv,
                            .has_bias = args->has_bias && args->id == K_CONV_FWD,
                            .is_added = (args->accumulate & 1U) != 0,
                            .has_tf32 = cuda->has_tf32 && args->dtype == DT_F32};
    call.geom.c = cuda_channels(cuda, call.geom.c);
    call.geom.k = cuda_channels(cuda, call.geom.k);
    call.has_norm = args->id == K_NORM_CONV_BWD_WEIGHT ||
                    (args->id == K_CONV_STATS_FWD && (args->has_in >> 2 & 1U) != 0);
    /* cuDNN 9.14 ignores beta behind a normalised operand, without a word (an H200). */
    call.is_aside = call.is_added && args->id == K_NORM_CONV_BWD_WEIGHT;
    call.has_da = args->id == K_CONV_BWD_DATA_BN && (args->has_in >> 7 & 1U) != 0;
    call.has_a = args->id == K_CONV_BWD_DATA_BN && (args->has_in >> 8 & 1U) != 0;
    return call;
}

void dnn_call_key(const struct dnn_call *call, char key[DNN_KEY_MAX])
{
    const struct conv_geom *g = &call->geom;
    int len = snprintf(
        key, DNN_KEY_MAX,
        "%s %s n%" PRId64 " c%" PRId64 " h%" PRId64 " w%" PRId64 " k%" PRId64 " r%" PRId64
        " s%" PRId64 " p%" PRId64 " q%" PRId64 " stride%" PRId64 "x%" PRId64 " pad%" PRId64
        "x%" PRId64 " dil%" PRId64 "x%" PRId64 " g%" PRId64 "%s%s%s%s%s%s",
        kernel_name(call->id), dtype_name(call->dtype), g->n, g->c, g->h, g->w, g->k, g->r, g->s,
        g->p, g->q, g->stride_h, g->stride_w, g->pad_h, g->pad_w, g->dil_h, g->dil_w, g->groups,
        call->has_bias ? " bias" : "", call->has_norm ? " norm" : "", call->has_da ? " da" : "",
        call->has_a ? " a" : "", call->is_added ? " added" : "", call->has_tf32 ? " tf32" : "");
    ASSERT(len > 0 && len < DNN_KEY_MAX);
}

/* ---- descriptors: the first failure sticks in graph->err, after it nothing is done ---- */

static bool passed(struct dnn_graph *graph, cudnnStatus_t status, const char *what)
{
    if (status != CUDNN_STATUS_SUCCESS) {
        dnn_api_error(graph->api, status, what, &graph->err);
    }
    return graph->err.code == ERR_NONE;
}

static cudnnBackendDescriptor_t make(struct dnn_graph *graph, cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t desc = NULL;
    ASSERT(graph->n_descs < DNN_DESCS_MAX);
    if (graph->err.code == ERR_NONE &&
        passed(graph, graph->api->cudnnBackendCreateDescriptor(type, &desc), "descriptor")) {
        graph->descs[graph->n_descs++] = desc;
    }
    return desc;
}

static void set(struct dnn_graph *graph, cudnnBackendDescriptor_t desc,
                cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                const void *values)
{
    if (graph->err.code == ERR_NONE) {
        char what[32];
        (void)snprintf(what, sizeof(what), "attribute %d", (int)name);
        (void)passed(graph, graph->api->cudnnBackendSetAttribute(desc, name, type, count, values),
                     what);
    }
}

static void set_desc(struct dnn_graph *graph, cudnnBackendDescriptor_t desc,
                     cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
    set(graph, desc, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void set_type(struct dnn_graph *graph, cudnnBackendDescriptor_t desc,
                     cudnnBackendAttributeName_t name, cudnnDataType_t type)
{
    set(graph, desc, name, CUDNN_TYPE_DATA_TYPE, 1, &type);
}

static void finish(struct dnn_graph *graph, cudnnBackendDescriptor_t desc, const char *what)
{
    if (graph->err.code == ERR_NONE) {
        (void)passed(graph, graph->api->cudnnBackendFinalize(desc), what);
    }
}

static void finish_op(struct dnn_graph *graph, cudnnBackendDescriptor_t op, const char *what)
{
    finish(graph, op, what);
    ASSERT(graph->n_ops < DNN_OPS_MAX);
    graph->ops[graph->n_ops++] = op;
}

/* ---- tensors ---- */

/* (N, C, H, W) that lies as N, H, W, C. A tensor that is bound has memory; the others are only between operations. */
struct operand_size {
    int64_t dim[4];
    cudnnDataType_t type;
};

static cudnnDataType_t type_of(const struct dnn_call *call)
{
    return call->dtype == DT_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

static struct operand_size form_x(const struct dnn_call *call)
{
    const struct conv_geom *g = &call->geom;
    return (struct operand_size){{g->n, g->c, g->h, g->w}, type_of(call)};
}

static struct operand_size form_y(const struct dnn_call *call)
{
    const struct conv_geom *g = &call->geom;
    return (struct operand_size){{g->n, g->k, g->p, g->q}, type_of(call)};
}

static struct operand_size form_w(const struct dnn_call *call)
{
    const struct conv_geom *g = &call->geom;
    return (struct operand_size){{g->k, g->c / g->groups, g->r, g->s}, type_of(call)};
}

static struct operand_size form_channel(int64_t channels, cudnnDataType_t type)
{
    return (struct operand_size){{1, channels, 1, 1}, type};
}

/* Between operations everything is float. */
static struct operand_size in_float(struct operand_size form)
{
    form.type = CUDNN_DATA_FLOAT;
    return form;
}

static cudnnBackendDescriptor_t tensor(struct dnn_graph *graph, struct operand_size form,
                                       bool is_virtual)
{
    const int64_t *d = form.dim;
    const int64_t stride[4] = {d[1] * d[2] * d[3], 1, d[1] * d[3], d[1]};
    const int64_t align = ALIGN_BYTES;
    const int64_t uid = graph->n_descs + 1;
    cudnnBackendDescriptor_t desc = make(graph, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set_type(graph, desc, CUDNN_ATTR_TENSOR_DATA_TYPE, form.type);
    set(graph, desc, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, d);
    set(graph, desc, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
    set(graph, desc, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
    set(graph, desc, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
    if (is_virtual) {
        set(graph, desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
    }
    finish(graph, desc, "tensor");
    return desc;
}

static cudnnBackendDescriptor_t between(struct dnn_graph *graph, struct operand_size form)
{
    return tensor(graph, form, true);
}

static cudnnBackendDescriptor_t bound(struct dnn_graph *graph, struct operand_size form,
                                      enum dnn_place place, int idx)
{
    int64_t size = form.dim[0] * form.dim[1] * form.dim[2] * form.dim[3] *
                   (form.type == CUDNN_DATA_HALF ? 2 : 4);
    struct dnn_binding binding = {graph->n_descs + 1, place, idx, 0, size};
    ASSERT(graph->n_bindings < DNN_BINDINGS_MAX);
    if (place == DNN_SCRATCH) {
        binding.offset_bytes = graph->scratch_bytes;
        graph->scratch_bytes += (size + 255) / 256 * 256;
    }
    graph->bindings[graph->n_bindings++] = binding;
    return tensor(graph, form, false);
}

/* ---- operations ---- */

/* y = mode(x, b), b may be NULL. */
static void pointwise(struct dnn_graph *graph, cudnnPointwiseMode_t mode,
                      cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                      cudnnBackendDescriptor_t y)
{
    cudnnBackendDescriptor_t how = make(graph, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    set(graph, how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    set_type(graph, how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    finish(graph, how, "pointwise");
    cudnnBackendDescriptor_t op = make(graph, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    bool is_mask = mode == CUDNN_POINTWISE_RELU_BWD; /* y = b where x is above 0 */
    set_desc(graph, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    if (b) {
        set_desc(graph, op,
                 is_mask ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC
                         : CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                 b);
    }
    set_desc(graph, op,
             is_mask ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC : CUDNN_ATTR_OPERATION_POINTWISE_YDESC,
             y);
    finish_op(graph, op, "pointwise operation");
}

static cudnnBackendDescriptor_t convolution(struct dnn_graph *graph, const struct conv_geom *g)
{
    const int64_t n_dims = 2;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t stride[2] = {g->stride_h, g->stride_w};
    const int64_t dil[2] = {g->dil_h, g->dil_w};
    const int64_t pad[2] = {g->pad_h, g->pad_w};
    cudnnBackendDescriptor_t how = make(graph, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set_type(graph, how, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    set(graph, how, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(graph, how, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n_dims);
    set(graph, how, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, dil);
    set(graph, how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, stride);
    set(graph, how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    set(graph, how, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, pad);
    finish(graph, how, "convolution");
    return how;
}

struct conv_names {
    cudnnBackendDescriptorType_t op;
    cudnnBackendAttributeName_t how, alpha, beta, x, w, y;
};

static const struct conv_names FORWARD = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
static const struct conv_names DATA = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
static const struct conv_names FILTER = {
    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};

/* The three tensors of one convolution, whichever of them is the result. */
struct conv_tensors {
    cudnnBackendDescriptor_t x, w, y;
};

static void convolve(struct dnn_graph *graph, const struct conv_names *names,
                     const struct dnn_call *call, const struct conv_tensors *t)
{
    const float alpha = 1.0f;
    const float beta = call->is_added && !call->is_aside ? 1.0f : 0.0f;
    cudnnBackendDescriptor_t how = convolution(graph, &call->geom);
    cudnnBackendDescriptor_t op = make(graph, names->op);
    set_desc(graph, op, names->how, how);
    set(graph, op, names->alpha, CUDNN_TYPE_FLOAT, 1, &alpha);
    set(graph, op, names->beta, CUDNN_TYPE_FLOAT, 1, &beta);
    set_desc(graph, op, names->x, t->x);
    set_desc(graph, op, names->w, t->w);
    set_desc(graph, op, names->y, t->y);
    finish_op(graph, op, "convolution operation");
}

/* relu(x * scale + shift); scale is in[first]. A half where x is one, since only such engines exist. */
static cudnnBackendDescriptor_t normalised(struct dnn_graph *graph, const struct dnn_call *call,
                                           cudnnBackendDescriptor_t x, int first)
{
    struct operand_size form = form_x(call);
    struct operand_size vector = form_channel(call->geom.c, form.type);
    cudnnBackendDescriptor_t scale = bound(graph, vector, DNN_IN, first);
    cudnnBackendDescriptor_t shift = bound(graph, vector, DNN_IN, first + 1);
    cudnnBackendDescriptor_t scaled = between(graph, in_float(form));
    cudnnBackendDescriptor_t shifted = between(graph, in_float(form));
    cudnnBackendDescriptor_t y = between(graph, form);
    pointwise(graph, CUDNN_POINTWISE_MUL, x, scale, scaled);
    pointwise(graph, CUDNN_POINTWISE_ADD, scaled, shift, shifted);
    pointwise(graph, CUDNN_POINTWISE_RELU_FWD, shifted, NULL, y);
    return y;
}

/* ---- the calls ---- */

static enum dnn_place place_of_result(const struct dnn_call *call)
{
    return call->is_aside ? DNN_SCRATCH : DNN_OUT;
}

static void conv_fwd(struct dnn_graph *graph, const struct dnn_call *call)
{
    struct operand_size form = form_y(call);
    struct conv_tensors t = {.x = bound(graph, form_x(call), DNN_IN, 0),
                             .w = bound(graph, form_w(call), DNN_IN, 1)};
    cudnnBackendDescriptor_t y = bound(graph, form, DNN_OUT, 0);
    t.y = call->has_bias ? between(graph, in_float(form)) : y;
    convolve(graph, &FORWARD, call, &t);
    if (call->has_bias) {
        pointwise(graph, CUDNN_POINTWISE_ADD, t.y,
                  bound(graph, form_channel(call->geom.k, form.type), DNN_IN, 2), y);
    }
}

static void conv_bwd_data(struct dnn_graph *graph, const struct dnn_call *call)
{
    struct conv_tensors t = {.y = bound(graph, form_y(call), DNN_IN, 0),
                             .w = bound(graph, form_w(call), DNN_IN, 1),
                             .x = bound(graph, form_x(call), place_of_result(call), 0)};
    convolve(graph, &DATA, call, &t);
}

static void conv_bwd_weight(struct dnn_graph *graph, const struct dnn_call *call)
{
    struct conv_tensors t = {.y = bound(graph, form_y(call), DNN_IN, 0),
                             .x = bound(graph, form_x(call), DNN_IN, 1),
                             .w = bound(graph, form_w(call), place_of_result(call), 0)};
    if (call->has_norm) {
        t.x = normalised(graph, call, t.x, 2);
    }
    convolve(graph, &FILTER, call, &t);
}

static void conv_stats_fwd(struct dnn_graph *graph, const struct dnn_call *call)
{
    const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    struct operand_size vector = form_channel(call->geom.k, CUDNN_DATA_FLOAT);
    struct conv_tensors t = {.x = bound(graph, form_x(call), DNN_IN, 0),
                             .w = bound(graph, form_w(call), DNN_IN, 1),
                             .y = bound(graph, form_y(call), DNN_OUT, 0)};
    cudnnBackendDescriptor_t sum = bound(graph, vector, DNN_OUT, 1);
    cudnnBackendDescriptor_t squares = bound(graph, vector, DNN_OUT, 2);
    if (call->has_norm) {
        t.x = normalised(graph, call, t.x, 2);
    }
    convolve(graph, &FORWARD, call, &t);
    cudnnBackendDescriptor_t op = make(graph, CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR);
    set(graph, op, CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
    set_type(graph, op, CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_GENSTATS_XDESC, t.y);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, sum);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, squares);
    finish_op(graph, op, "genstats operation");
}

/* The vectors of a batch norm, all float. */
struct norm_tensors {
    cudnnBackendDescriptor_t gamma, beta, mean, rstd;
};

/* (x - mean) * rstd * gamma + beta [+ a]: only this order has an engine. */
static cudnnBackendDescriptor_t before_relu(struct dnn_graph *graph, const struct dnn_call *call,
                                            cudnnBackendDescriptor_t x,
                                            const struct norm_tensors *norm)
{
    struct operand_size form = in_float(form_x(call));
    const struct {
        cudnnPointwiseMode_t mode;
        cudnnBackendDescriptor_t by;
    } steps[] = {{CUDNN_POINTWISE_SUB, norm->mean},
                 {CUDNN_POINTWISE_MUL, norm->rstd},
                 {CUDNN_POINTWISE_MUL, norm->gamma},
                 {CUDNN_POINTWISE_ADD, norm->beta}};
    cudnnBackendDescriptor_t at = x;
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        cudnnBackendDescriptor_t next = between(graph, form);
        pointwise(graph, steps[i].mode, at, steps[i].by, next);
        at = next;
    }
    if (call->has_a) {
        cudnnBackendDescriptor_t sum = between(graph, form);
        pointwise(graph, CUDNN_POINTWISE_ADD, at, bound(graph, form_x(call), DNN_IN, 8), sum);
        at = sum;
    }
    return at;
}

/* dgamma and dbeta of the batch norm are the sums. What cuDNN says of dx's coefficients next to them goes to the workspace unread:
   K_BN_BWD_APPLY makes dx from the sums of all ranks. */
static void bn_bwd_weights(struct dnn_graph *graph, const struct dnn_call *call,
                           cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t dz,
                           const struct norm_tensors *norm)
{
    struct operand_size vector = form_channel(call->geom.c, CUDNN_DATA_FLOAT);
    static const cudnnBackendAttributeName_t COEFFICIENTS[] = {
        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC,
        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC,
        CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS};
    cudnnBackendDescriptor_t sum_dz = bound(graph, vector, DNN_OUT, 1);
    cudnnBackendDescriptor_t sum_hat = bound(graph, vector, DNN_OUT, 2);
    cudnnBackendDescriptor_t unread[ARRAY_LEN(COEFFICIENTS)];
    for (size_t i = 0; i < ARRAY_LEN(COEFFICIENTS); i++) {
        unread[i] = bound(graph, vector, DNN_SCRATCH, 0);
    }
    cudnnBackendDescriptor_t op = make(graph, CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR);
    set_type(graph, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_DATA_FLOAT);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, norm->mean);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, norm->rstd);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, norm->gamma);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, x);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dz);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, sum_hat);
    set_desc(graph, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, sum_dz);
    for (size_t i = 0; i < ARRAY_LEN(COEFFICIENTS); i++) {
        set_desc(graph, op, COEFFICIENTS[i], unread[i]);
    }
    finish_op(graph, op, "batch norm's sums");
}

static void conv_bwd_data_bn(struct dnn_graph *graph, const struct dnn_call *call)
{
    struct operand_size form = form_x(call);
    struct operand_size vector = form_channel(call->geom.c, CUDNN_DATA_FLOAT);
    struct conv_tensors t = {.y = bound(graph, form_y(call), DNN_IN, 0),
                             .w = bound(graph, form_w(call), DNN_IN, 1),
                             .x = between(graph, in_float(form))};
    cudnnBackendDescriptor_t x = bound(graph, form, DNN_IN, 2);
    struct norm_tensors norm = {.gamma = bound(graph, vector, DNN_IN, 3),
                                .beta = bound(graph, vector, DNN_IN, 4),
                                .mean = bound(graph, vector, DNN_IN, 5),
                                .rstd = bound(graph, vector, DNN_IN, 6)};
    cudnnBackendDescriptor_t dz = bound(graph, form, DNN_OUT, 0);
    convolve(graph, &DATA, call, &t);
    cudnnBackendDescriptor_t upstream = t.x;
    if (call->has_da) {
        upstream = between(graph, in_float(form));
        pointwise(graph, CUDNN_POINTWISE_ADD, t.x, bound(graph, form, DNN_IN, 7), upstream);
    }
    pointwise(graph, CUDNN_POINTWISE_RELU_BWD, before_relu(graph, call, x, &norm), upstream, dz);
    bn_bwd_weights(graph, call, x, dz, &norm);
}

static void add_ops(struct dnn_graph *graph, const struct dnn_call *call)
{
    if (call->id == K_CONV_FWD) {
        conv_fwd(graph, call);
    } else if (call->id == K_CONV_BWD_DATA) {
        conv_bwd_data(graph, call);
    } else if (call->id == K_CONV_STATS_FWD) {
        conv_stats_fwd(graph, call);
    } else if (call->id == K_CONV_BWD_DATA_BN) {
        conv_bwd_data_bn(graph, call);
    } else {
        ASSERT(call->id == K_CONV_BWD_WEIGHT || call->id == K_NORM_CONV_BWD_WEIGHT);
        conv_bwd_weight(graph, call);
    }
}

int dnn_graph_make(struct dnn_graph *graph, const struct dnn_api *api, cudnnHandle_t handle,
                   const struct dnn_call *call, struct err *err)
{
    *graph = (struct dnn_graph){.api = api};
    add_ops(graph, call);
    cudnnBackendDescriptor_t all = make(graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (handle) {
        set(graph, all, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    }
    set(graph, all, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph->n_ops,
        graph->ops);
    finish(graph, all, "operation graph");
    graph->graph = all;
    if (graph->err.code != ERR_NONE) {
        *err = graph->err;
        dnn_graph_release(graph);
        return -1;
    }
    return 0;
}

void dnn_graph_release(struct dnn_graph *graph)
{
    for (int i = graph->n_descs - 1; i >= 0; i--) {
        (void)graph->api->cudnnBackendDestroyDescriptor(graph->descs[i]);
    }
    graph->n_descs = 0;
}
