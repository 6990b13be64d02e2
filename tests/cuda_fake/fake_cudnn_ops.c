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
    double *values; /* owned; N, C, H, W without gaps */
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

static int64_t place(const struct tensor *t, int64_t i)
{
    int64_t w = i % t->dim[3];
    int64_t h = i / t->dim[3] % t->dim[2];
    int64_t c = i / (t->dim[3] * t->dim[2]) % t->dim[1];
    int64_t n = i / (t->dim[3] * t->dim[2] * t->dim[1]);
    return n * t->stride[0] + c * t->stride[1] + h * t->stride[2] + w * t->stride[3];
}

static void load(struct tensor *t)
{
    for (int64_t i = 0; i < count_of(t); i++) {
        int64_t at = place(t, i);
        t->values[i] = t->type == CUDNN_DATA_HALF
                           ? (double)fake_half_to_float(((const uint16_t *)t->at)[at])
                           : (double)((const float *)t->at)[at];
    }
}

/* Rounds the values to the tensor's type, and writes them if it has memory. */
static void settle(struct tensor *t)
{
    for (int64_t i = 0; i < count_of(t); i++) {
        bool is_half = t->type == CUDNN_DATA_HALF;
        uint16_t bits = is_half ? fake_half_from_float((float)t->values[i]) : 0;
        t->values[i] = is_half ? (double)fake_half_to_float(bits) : (double)(float)t->values[i];
        if (t->at && is_half) {
            ((uint16_t *)t->at)[place(t, i)] = bits;
        } else if (t->at) {
            ((float *)t->at)[place(t, i)] = (float)t->values[i];
        }
    }
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

/* Calls add(x index, w index, y index) for every product of the sum. */
static void convolve(const struct form *f, const struct tensor *x, const struct tensor *w,
                     const struct tensor *y, enum which which, double *result)
{
    int64_t groups = x->dim[1] / w->dim[1];
    int64_t k_group = w->dim[0] / groups;
    for (int64_t n = 0; n < y->dim[0]; n++) {
        for (int64_t i = 0; i < w->dim[0] * w->dim[1] * w->dim[2] * w->dim[3]; i++) {
            int64_t s = i % w->dim[3];
            int64_t r = i / w->dim[3] % w->dim[2];
            int64_t cg = i / (w->dim[3] * w->dim[2]) % w->dim[1];
            int64_t k = i / (w->dim[3] * w->dim[2] * w->dim[1]);
            int64_t c = k / k_group * w->dim[1] + cg;
            for (int64_t pq = 0; pq < y->dim[2] * y->dim[3]; pq++) {
                int64_t h = pq / y->dim[3] * f->stride[0] - f->pad[0] + r * f->dil[0];
                int64_t v = pq % y->dim[3] * f->stride[1] - f->pad[1] + s * f->dil[1];
                if (h < 0 || h >= x->dim[2] || v < 0 || v >= x->dim[3]) {
                    continue;
                }
                int64_t xi = ((n * x->dim[1] + c) * x->dim[2] + h) * x->dim[3] + v;
                int64_t yi = (n * y->dim[1] + k) * y->dim[2] * y->dim[3] + pq;
                if (which == FORWARD) {
                    result[yi] += x->values[xi] * w->values[i];
                } else if (which == DATA) {
                    result[xi] += y->values[yi] * w->values[i];
                } else {
                    result[i] += x->values[xi] * y->values[yi];
                }
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

static void run_convolution(struct machine *m, const struct descriptor *op, enum which which)
{
    static const cudnnBackendAttributeName_t FIRST[] = {
        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA};
    static const cudnnBackendAttributeName_t X[] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X};
    static const cudnnBackendAttributeName_t W[] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW};
    static const cudnnBackendAttributeName_t Y[] = {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
    const struct descriptor *how =
        child_of(op, (cudnnBackendAttributeName_t)((int)FIRST[which] + 2));
    float beta =
        *(const float *)attribute_of(op, (cudnnBackendAttributeName_t)((int)FIRST[which] + 1))
             ->data;
    struct form f;
    memcpy(f.stride, attribute_of(how, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES)->data, 16);
    memcpy(f.pad, attribute_of(how, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS)->data, 16);
    memcpy(f.dil, attribute_of(how, CUDNN_ATTR_CONVOLUTION_DILATIONS)->data, 16);
    struct tensor *x = which == DATA ? tensor_of(m, op, X[which]) : input(m, op, X[which]);
    struct tensor *w = which == FILTER ? tensor_of(m, op, W[which]) : input(m, op, W[which]);
    struct tensor *y = which == FORWARD ? tensor_of(m, op, Y[which]) : input(m, op, Y[which]);
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
        result->values[i] = sums[i] + (beta != 0.0F ? (double)beta * result->values[i] : 0.0);
    }
    free(sums);
    settle(result);
}

/* ---- element by element ---- */

static double value_at(const struct tensor *t, const struct tensor *like, int64_t i)
{
    int64_t c = i / (like->dim[3] * like->dim[2]) % like->dim[1];
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
        int64_t c = i / (x->dim[3] * x->dim[2]) % x->dim[1];
        sum->values[c] += x->values[i];
        squares->values[c] += x->values[i] * x->values[i];
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
        int64_t c = i / (x->dim[3] * x->dim[2]) % x->dim[1];
        dbeta->values[c] += dy->values[i];
        dgamma->values[c] += dy->values[i] * (x->values[i] - mean->values[c]) * rstd->values[c];
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
        if ((w && word_of(w, CUDNN_ATTR_TENSOR_DATA_TYPE) != CUDNN_DATA_HALF) ||
            (is_vector && word_of(b, CUDNN_ATTR_TENSOR_DATA_TYPE) != wanted)) {
            return false;
        }
    }
    return true;
}

static void run_op(struct machine *m, const struct descriptor *op)
{
    if (op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR) {
        run_convolution(m, op, FORWARD);
    } else if (op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR) {
        run_convolution(m, op, DATA);
    } else if (op->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR) {
        run_convolution(m, op, FILTER);
    } else if (op->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR) {
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
    }
}
