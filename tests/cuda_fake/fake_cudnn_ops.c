/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of the fake cuDNN. Every tensor has four dimensions and strides of its own; between operations values are doubles,
   rounded where a tensor's type requires it. */
#include "base/base.h"

#include <unistd.h>

#include "tests/cuda_fake/fake.h"
#include "tests/cuda_fake/fake_cudnn.h"

#define TENSORS_MAX 48

struct tensor {
    const struct descriptor *desc;
    int64_t uid, dim[4], stride[4];
    cudnnDataType_t type;
    bool is_virtual, is_made;
    void *at;       /* NULL: virtual */
    double *values; /* owned; N, H, W, C without gaps */
    double *exact;  /* owned; the same before they were rounded to halves */
};

struct machine {
    const struct work *work;
    struct tensor tensors[TENSORS_MAX];
    int n_tensors;
};

static int32_t word_of(const struct descriptor *desc, cudnnBackendAttributeName_t name)
{
    const struct attribute *at = attribute_of(desc, name);
    if (!at) {
        fake_die("cudnn: an attribute is missing");
    }
    return *(const int32_t *)at->data;
}

static int64_t count_of(const struct tensor *t)
{
    return t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3];
}

/* Where each element is in memory, in the order of the values. */
static int64_t *places_of(const struct tensor *t)
{
    int64_t *places = calloc((size_t)count_of(t), sizeof(*places));
    int64_t i = 0;
    for (int64_t n = 0; n < t->dim[0]; n++) {
        for (int64_t h = 0; h < t->dim[2]; h++) {
            for (int64_t w = 0; w < t->dim[3]; w++) {
                int64_t at = n * t->stride[0] + h * t->stride[2] + w * t->stride[3];
                for (int64_t c = 0; c < t->dim[1]; c++) {
                    places[i++] = at + c * t->stride[1];
                }
            }
        }
    }
    return places;
}

static void load(struct tensor *t)
{
    int64_t *places = places_of(t);
    for (int64_t i = 0; i < count_of(t); i++) {
        t->values[i] = t->type == CUDNN_DATA_HALF
                           ? (double)fake_half_to_float(((const uint16_t *)t->at)[places[i]])
                           : (double)((const float *)t->at)[places[i]];
    }
    free(places);
}

static double to_half(double value)
{
    return (double)fake_half_to_float(fake_half_from_float((float)value));
}

/* Rounds the values to the tensor's type, and writes them if it has memory. */
static void settle(struct tensor *t)
{
    int64_t *places = places_of(t);
    t->exact = calloc((size_t)count_of(t), sizeof(double));
    memcpy(t->exact, t->values, (size_t)count_of(t) * sizeof(double));
    for (int64_t i = 0; i < count_of(t); i++) {
        bool is_half = t->type == CUDNN_DATA_HALF;
        uint16_t bits = is_half ? fake_half_from_float((float)t->values[i]) : 0;
        t->values[i] = is_half ? (double)fake_half_to_float(bits) : (double)(float)t->values[i];
        if (t->at && is_half) {
            ((uint16_t *)t->at)[places[i]] = bits;
        } else if (t->at) {
            ((float *)t->at)[places[i]] = (float)t->values[i];
        }
    }
    free(places);
    t->is_made = true;
}

static void *pointer_of(const struct work *work, int64_t uid)
{
    for (int i = 0; i < work->n; i++) {
        if (work->uids[i] == uid) {
            return work->pointers[i];
        }
    }
    fake_die("cudnn: a tensor with memory that got no pointer");
}

static struct tensor *tensor_of(struct machine *m, const struct descriptor *op,
                                cudnnBackendAttributeName_t name)
{
    const struct descriptor *desc = child_of(op, name);
    if (!desc) {
        return NULL;
    }
    for (int i = 0; i < m->n_tensors; i++) {
        if (m->tensors[i].desc == desc) {
            return &m->tensors[i];
        }
    }
    if (m->n_tensors == TENSORS_MAX || desc->type != CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
        fake_die("cudnn: too many tensors, or something else");
    }
    struct tensor *t = &m->tensors[m->n_tensors++];
    *t = (struct tensor){.desc = desc, .uid = whole_of(desc, CUDNN_ATTR_TENSOR_UNIQUE_ID)};
    memcpy(t->dim, attribute_of(desc, CUDNN_ATTR_TENSOR_DIMENSIONS)->data, sizeof(t->dim));
    memcpy(t->stride, attribute_of(desc, CUDNN_ATTR_TENSOR_STRIDES)->data, sizeof(t->stride));
    t->type = (cudnnDataType_t)word_of(desc, CUDNN_ATTR_TENSOR_DATA_TYPE);
    t->is_virtual = attribute_of(desc, CUDNN_ATTR_TENSOR_IS_VIRTUAL) != NULL;
    t->values = calloc((size_t)count_of(t), sizeof(double));
    if (!t->is_virtual) {
        t->at = pointer_of(m->work, t->uid);
        if (!t->at || (uintptr_t)t->at % 16 != 0) {
            fake_die("cudnn: a pointer that is NULL, or not aligned to 16 bytes");
        }
    }
    return t;
}

/* Input of an operation: computed before, or read from memory now. */
static struct tensor *input(struct machine *m, const struct descriptor *op,
                            cudnnBackendAttributeName_t name)
{
    struct tensor *t = tensor_of(m, op, name);
    if (!t) {
        fake_die("cudnn: an operation without an input");
    }
    if (!t->is_made && t->is_virtual) {
        fake_die("cudnn: an operation reads what nobody made");
    }
    if (!t->is_made) {
        load(t);
        t->is_made = true;
    }
    return t;
}

/* ---- convolutions ---- */

struct form {
    int64_t stride[2], pad[2], dil[2];
};

enum which { FORWARD, DATA, FILTER };

static double dot(const double *a, const double *b, int64_t count)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (int k = 0; k < 4; k++) {
            sum[k] += a[i + k] * b[i + k];
        }
    }
    for (; i < count; i++) {
        sum[0] += a[i] * b[i];
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void add_multiple(double *to, double factor, const double *from, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        to[i] += factor * from[i];
    }
}

/* One pixel of y, one element (r, s) of the filters, and the pixel of x below it. */
static void convolve_pixel(const struct tensor *x, const struct tensor *w, const struct tensor *y,
                           enum which which, int64_t at_x, int64_t at_y, int64_t rs, double *result)
{
    int64_t channels = w->dim[1];
    int64_t k_group = w->dim[0] / (x->dim[1] / channels);
    for (int64_t k = 0; k < w->dim[0]; k++) {
        int64_t from_x = at_x * x->dim[1] + k / k_group * channels;
        int64_t from_y = at_y * y->dim[1] + k;
        int64_t from_w = (k * w->dim[2] * w->dim[3] + rs) * channels;
        if (which == FORWARD) {
            result[from_y] += dot(x->values + from_x, w->values + from_w, channels);
        } else if (which == DATA) {
            add_multiple(result + from_x, y->values[from_y], w->values + from_w, channels);
        } else {
            add_multiple(result + from_w, y->values[from_y], x->values + from_x, channels);
        }
    }
}

static void convolve(const struct form *f, const struct tensor *x, const struct tensor *w,
                     const struct tensor *y, enum which which, double *result)
{
    for (int64_t at = 0; at < y->dim[0] * y->dim[2] * y->dim[3]; at++) {
        int64_t n = at / (y->dim[2] * y->dim[3]);
        for (int64_t rs = 0; rs < w->dim[2] * w->dim[3]; rs++) {
            int64_t h =
                at / y->dim[3] % y->dim[2] * f->stride[0] - f->pad[0] + rs / w->dim[3] * f->dil[0];
            int64_t v = at % y->dim[3] * f->stride[1] - f->pad[1] + rs % w->dim[3] * f->dil[1];
            if (h >= 0 && h < x->dim[2] && v >= 0 && v < x->dim[3]) {
                int64_t from = (n * x->dim[2] + h) * x->dim[3] + v;
                convolve_pixel(x, w, y, which, from, at, rs, result);
            }
        }
    }
}

static void check_shapes(const struct form *f, const struct tensor *x, const struct tensor *w,
                         const struct tensor *y)
{
    for (int i = 0; i < 2; i++) {
        int64_t reach = f->dil[i] * (w->dim[2 + i] - 1) + 1;
        int64_t out = (x->dim[2 + i] + 2 * f->pad[i] - reach) / f->stride[i] + 1;
        if (out != y->dim[2 + i]) {
            fake_die("cudnn: a convolution whose sizes do not fit");
        }
    }
    if (x->dim[0] != y->dim[0] || w->dim[0] != y->dim[1] || x->dim[1] % w->dim[1] != 0) {
        fake_die("cudnn: a convolution whose channels do not fit");
    }
}

/* By `which`. */
static const struct convolution_names {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t how, beta, x, w, y;
} CONVOLUTIONS[] = {
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};

static struct form form_of(const struct descriptor *op, const struct convolution_names *names)
{
    const struct descriptor *how = child_of(op, names->how);
    struct form f;
    memcpy(f.stride, attribute_of(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->data, 16);
    memcpy(f.pad, attribute_of(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->data, 16);
    memcpy(f.dil, attribute_of(how, CUDNN_ATTR_CONVOLUTION_DILATIONS)->data, 16);
    return f;
}

/* As cuDNN 9.19 fuses them for an H100: 1x1 or 3x3, stride to 2, dilation to 8, one group. */
static bool is_fusable(const struct descriptor *op)
{
    for (size_t i = 0; i < ARRAY_LEN(CONVOLUTIONS); i++) {
        const struct convolution_names *names = &CONVOLUTIONS[i];
        if (op->type == names->type) {
            struct form f = form_of(op, names);
            const int64_t *x =
                attribute_of(child_of(op, names->x), CUDNN_ATTR_TENSOR_DIMENSIONS)->data;
            const int64_t *w =
                attribute_of(child_of(op, names->w), CUDNN_ATTR_TENSOR_DIMENSIONS)->data;
            return w[2] == w[3] && (w[2] == 1 || w[2] == 3) && f.stride[0] <= 2 && f.dil[0] <= 8 &&
                   x[1] == w[1];
        }
    }
    return true;
}

static void run_convolution(struct machine *m, const struct descriptor *op, enum which which)
{
    const struct convolution_names *names = &CONVOLUTIONS[which];
    float beta = *(const float *)attribute_of(op, names->beta)->data;
    struct form f = form_of(op, names);
    struct tensor *x = which == DATA ? tensor_of(m, op, names->x) : input(m, op, names->x);
    struct tensor *w = which == FILTER ? tensor_of(m, op, names->w) : input(m, op, names->w);
    struct tensor *y = which == FORWARD ? tensor_of(m, op, names->y) : input(m, op, names->y);
    struct tensor *result = which == FORWARD ? y : which == DATA ? x : w;
    check_shapes(&f, x, w, y);
    double *sums = calloc((size_t)count_of(result), sizeof(double));
    convolve(&f, x, w, y, which, sums);
    if (which == FILTER && x->is_virtual) {
        beta = 0.0F; /* cuDNN 9.14 ignores it there */
    }
    if (beta != 0.0F) {
        load(result);
    }
    for (int64_t i = 0; i < count_of(result); i++) {
        /* As on an H200: a product is a half before it is added. */
        bool is_half = beta != 0.0F && result->type == CUDNN_DATA_HALF;
        result->values[i] = (is_half ? to_half(sums[i]) : sums[i]) +
                            (beta != 0.0F ? (double)beta * result->values[i] : 0.0);
    }
    free(sums);
    settle(result);
}

/* ---- element by element ---- */

static double value_at(const struct tensor *t, const struct tensor *like, int64_t i)
{
    int64_t c = i % like->dim[1];
    bool is_vector = t->dim[0] == 1 && t->dim[2] == 1 && t->dim[3] == 1 &&
                     t->dim[1] == like->dim[1] && count_of(t) != count_of(like);
    if (!is_vector && memcmp(t->dim, like->dim, sizeof(t->dim)) != 0) {
        fake_die("cudnn: elements that do not fit");
    }
    return t->values[is_vector ? c : i];
}

static double pointwise(cudnnPointwiseMode_t mode, double p, double q)
{
    if (mode == CUDNN_POINTWISE_ADD) {
        return p + q;
    }
    if (mode == CUDNN_POINTWISE_SUB) {
        return p - q;
    }
    if (mode == CUDNN_POINTWISE_MUL) {
        return p * q;
    }
    if (mode == CUDNN_POINTWISE_RELU_FWD) {
        return p > 0.0 ? p : 0.0;
    }
    if (mode != CUDNN_POINTWISE_RELU_BWD) {
        fake_die("cudnn: a pointwise mode that is not known");
    }
    return p > 0.0 ? q : 0.0;
}

static void run_pointwise(struct machine *m, const struct descriptor *op)
{
    const struct descriptor *how = child_of(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    cudnnPointwiseMode_t mode = (cudnnPointwiseMode_t)word_of(how, CUDNN_ATTR_POINTWISE_MODE);
    bool is_mask = mode == CUDNN_POINTWISE_RELU_BWD;
    struct tensor *x = input(m, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
    struct tensor *b = mode == CUDNN_POINTWISE_RELU_FWD
                           ? NULL
                           : input(m, op,
                                   is_mask ? CUDNN_ATTR_OPERATION_POINTWISE_DYDESC
                                           : CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
    struct tensor *y = tensor_of(m, op,
                                 is_mask ? CUDNN_ATTR_OPERATION_POINTWISE_DXDESC
                                         : CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
    for (int64_t i = 0; i < count_of(y); i++) {
        double p = value_at(x, y, i);
        double q = b ? value_at(b, y, i) : 0.0;
        y->values[i] = pointwise(mode, p, q);
    }
    settle(y);
}

/* ---- sums over all but the channels ---- */

static void run_stats(struct machine *m, const struct descriptor *op)
{
    struct tensor *x = input(m, op, CUDNN_ATTR_OPERATION_GENSTATS_XDESC);
    struct tensor *sum = tensor_of(m, op, CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC);
    struct tensor *squares = tensor_of(m, op, CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC);
    for (int64_t i = 0; i < count_of(x); i++) {
        int64_t c = i % x->dim[1];
        sum->values[c] += x->exact[i]; /* as on an H200: before they are rounded */
        squares->values[c] += x->exact[i] * x->exact[i];
    }
    settle(sum);
    settle(squares);
}

static void run_bn_sums(struct machine *m, const struct descriptor *op)
{
    struct tensor *mean = input(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC);
    struct tensor *rstd = input(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC);
    struct tensor *gamma = input(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC);
    struct tensor *x = input(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC);
    struct tensor *dy = input(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC);
    struct tensor *dgamma = tensor_of(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC);
    struct tensor *dbeta = tensor_of(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC);
    struct tensor *of_dy = tensor_of(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC);
    struct tensor *of_x = tensor_of(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC);
    struct tensor *rest = tensor_of(m, op, CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS);
    for (int64_t i = 0; i < count_of(x); i++) {
        int64_t c = i % x->dim[1];
        dbeta->values[c] += dy->exact[i];
        dgamma->values[c] += dy->exact[i] * (x->values[i] - mean->values[c]) * rstd->values[c];
    }
    double count = (double)(count_of(x) / x->dim[1]);
    for (int64_t c = 0; c < x->dim[1]; c++) {
        double slope = gamma->values[c] * rstd->values[c];
        double by_hat = slope * rstd->values[c] * dgamma->values[c] / count;
        of_dy->values[c] = slope;
        of_x->values[c] = -by_hat;
        rest->values[c] = by_hat * mean->values[c] - slope * dbeta->values[c] / count;
    }
    struct tensor *made[] = {dgamma, dbeta, of_dy, of_x, rest};
    for (size_t i = 0; i < ARRAY_LEN(made); i++) {
        settle(made[i]);
    }
}

/* ---- graphs ---- */

static int64_t ops_of(const struct descriptor *graph, struct descriptor *const **ret_ops)
{
    const struct attribute *ops = attribute_of(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS);
    *ret_ops = ops->data;
    return ops->count;
}

bool fake_graph_is_fused(const struct descriptor *graph)
{
    struct descriptor *const *ops = NULL;
    int64_t n = ops_of(graph, &ops);
    bool has_sums = false;
    for (int64_t i = 0; i < n; i++) {
        has_sums |= ops[i]->type == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR ||
                    ops[i]->type == CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR;
    }
    return n > 2 || has_sums;
}

/* Half outside; a scale that is applied first is half, batch norm's own vectors are float: the real library has no other
   engines, and none for Volta (compute capability 7.0, which the emulated device has by REPERF_EMU_CC). */
bool fake_graph_is_fusable(const struct descriptor *graph)
{
    struct descriptor *const *ops = NULL;
    int64_t n = ops_of(graph, &ops);
    bool is_backward = ops[n - 1]->type == CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR;
    const char *capability = getenv("REPERF_EMU_CC");
    if (capability && strcmp(capability, "7.0") == 0) {
        return false;
    }
    for (int64_t i = 0; i < n; i++) {
        const struct descriptor *w =
            ops[i]->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                ? child_of(ops[i], CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W)
                : NULL;
        const struct descriptor *b = ops[i]->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR
                                         ? child_of(ops[i], CUDNN_ATTR_OPERATION_POINTWISE_BDESC)
                                         : NULL;
        const int64_t *dim = b ? attribute_of(b, CUDNN_ATTR_TENSOR_DIMENSIONS)->data : NULL;
        bool is_vector = b && dim[0] == 1 && dim[2] == 1 && dim[3] == 1;
        int32_t wanted = is_backward ? CUDNN_DATA_FLOAT : CUDNN_DATA_HALF;
        if (!is_fusable(ops[i]) ||
            (w && word_of(w, CUDNN_ATTR_TENSOR_DATA_TYPE) != CUDNN_DATA_HALF) ||
            (is_vector && word_of(b, CUDNN_ATTR_TENSOR_DATA_TYPE) != wanted)) {
            return false;
        }
    }
    return true;
}

static void run_op(struct machine *m, const struct descriptor *op)
{
    for (size_t i = 0; i < ARRAY_LEN(CONVOLUTIONS); i++) {
        if (op->type == CONVOLUTIONS[i].type) {
            run_convolution(m, op, (enum which)i);
            return;
        }
    }
    if (op->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
        run_pointwise(m, op);
    } else if (op->type == CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR) {
        run_stats(m, op);
    } else if (op->type == CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR) {
        run_bn_sums(m, op);
    } else {
        fake_die("cudnn: an operation that is not known");
    }
}

/* REPERF_FAKE_SLOW=fused or plain: graphs of that kind take at least this long, far above everything else here; delivered: engines
   that are not compiled on request. */
#define SLOW_US 40000

static void be_slow(const struct descriptor *graph, bool is_compiled)
{
    const char *which = getenv("REPERF_FAKE_SLOW");
    bool is_fused = fake_graph_is_fused(graph);
    if (which && (strcmp(which, is_fused ? "fused" : "plain") == 0 ||
                  (!is_compiled && strcmp(which, "delivered") == 0))) {
        (void)usleep(SLOW_US);
    }
}

void fake_compute(void *closure)
{
    const struct work *work = closure;
    struct machine m = {.work = work};
    struct descriptor *const *ops = NULL;
    int64_t n = ops_of(work->graph, &ops);
    be_slow(work->graph, work->is_compiled);
    if (work->workspace_bytes > 0) {
        memset(work->workspace, 0x5a, (size_t)work->workspace_bytes);
    }
    for (int64_t i = 0; i < n; i++) {
        run_op(&m, ops[i]);
    }
    for (int i = 0; i < m.n_tensors; i++) {
        free(m.tensors[i].values);
        free(m.tensors[i].exact);
    }
}
