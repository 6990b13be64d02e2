/* SPDX-License-Identifier: Apache-2.0 */
/* The older calls of the fake cuDNN, as its manual defines them. Algorithms, best first: 3 sums in any order, 5 wants more workspace than there
   is, 1, and 2, which is offered and fails where plans are timed: not as the first, so that an untimed choice works. */
#include "base/base.h"

#include <cudnn_cnn.h>
#include <cudnn_ops.h>

#include "tests/cuda_fake/fake.h"
#include "tests/cuda_fake/fake_cudnn.h"

#define WORKSPACE_BYTES 700
#define TOO_LARGE       ((size_t)1 << 41)

struct shape {
    cudnnDataType_t type;
    int64_t dim[4];
};

struct how {
    int64_t stride[2], pad[2], dil[2];
    int groups;
    cudnnMathType_t math;
};

struct addition {
    struct shape a, c;
    const void *from;
    void *to;
};

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *desc)
{
    *desc = fake_alive(sizeof(struct shape));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc)
{
    return fake_gone(desc);
}

static cudnnStatus_t set_shape(void *desc, cudnnTensorFormat_t format, cudnnDataType_t type,
                               const int dim[4])
{
    struct shape *shape = desc;
    if (format != CUDNN_TENSOR_NHWC) {
        fake_die("cudnn: a tensor that is not laid out as N, H, W, C");
    }
    shape->type = type;
    for (int i = 0; i < 4; i++) {
        shape->dim[i] = dim[i];
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w)
{
    return set_shape(desc, format, type, (int[4]){n, c, h, w});
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *desc)
{
    *desc = fake_alive(sizeof(struct shape));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc)
{
    return fake_gone(desc);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w)
{
    return set_shape(desc, format, type, (int[4]){k, c, h, w});
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *desc)
{
    *desc = fake_alive(sizeof(struct how));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc)
{
    return fake_gone(desc);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int pad_h,
                                              int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute)
{
    struct how *how = (struct how *)desc;
    if (mode != CUDNN_CROSS_CORRELATION || compute != CUDNN_DATA_FLOAT) {
        fake_die("cudnn: a convolution that mirrors its filter, or sums in less than float");
    }
    *how = (struct how){{u, v}, {pad_h, pad_w}, {dilation_h, dilation_w}, 1, CUDNN_DEFAULT_MATH};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int groups)
{
    ((struct how *)desc)->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t math)
{
    ((struct how *)desc)->math = math;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- algorithms ---- */

static const struct {
    int algo;
    size_t memory;
    cudnnDeterminism_t determinism;
} ALGOS[] = {{3, 0, CUDNN_NON_DETERMINISTIC},
             {5, TOO_LARGE, CUDNN_DETERMINISTIC},
             {1, WORKSPACE_BYTES, CUDNN_DETERMINISTIC},
             {2, 0, CUDNN_DETERMINISTIC},
             {0, 0, CUDNN_DETERMINISTIC}};

/* REPERF_FAKE_ALGOS=none: there are none; failing: none of them runs. */
static bool algos_are(const char *what)
{
    const char *said = getenv("REPERF_FAKE_ALGOS");
    return said && strcmp(said, what) == 0;
}

#define FILL(results, type)                                                                        \
    do {                                                                                           \
        *ret_n = 0;                                                                                \
        for (size_t i = algos_are("none") ? ARRAY_LEN(ALGOS) : 0;                                  \
             i < ARRAY_LEN(ALGOS) && *ret_n < n_max; i++) {                                        \
            (results)[*ret_n].algo = (type)ALGOS[i].algo;                                          \
            (results)[*ret_n].status = CUDNN_STATUS_SUCCESS;                                       \
            (results)[*ret_n].memory = ALGOS[i].memory;                                            \
            (results)[*ret_n].determinism = ALGOS[i].determinism;                                  \
            (results)[*ret_n].mathType = ((struct how *)conv)->math;                               \
            *ret_n += 1;                                                                           \
        }                                                                                          \
    } while (0)

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t y, const int n_max,
    int *ret_n, cudnnConvolutionFwdAlgoPerf_t *results)
{
    (void)handle, (void)x, (void)w, (void)y;
    FILL(results, cudnnConvolutionFwdAlgo_t);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t x, const int n_max,
    int *ret_n, cudnnConvolutionBwdDataAlgoPerf_t *results)
{
    (void)handle, (void)x, (void)w, (void)y;
    FILL(results, cudnnConvolutionBwdDataAlgo_t);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t y,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t w, const int n_max,
    int *ret_n, cudnnConvolutionBwdFilterAlgoPerf_t *results)
{
    (void)handle, (void)x, (void)w, (void)y;
    FILL(results, cudnnConvolutionBwdFilterAlgo_t);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- running ---- */

/* What is the same in all three; x, w and y are the three descriptors in that order. */
static cudnnStatus_t start(cudnnHandle_t handle, int which, int algo, const void *const descs[3],
                           const cudnnConvolutionDescriptor_t conv, const void *const scalars[2],
                           const void *const in[2], void *out, void *workspace, size_t bytes)
{
    const struct shape *x = descs[0];
    const struct shape *w = descs[1];
    const struct shape *y = descs[2];
    const struct how *how = (const struct how *)conv;
    bool is_half = x->type == CUDNN_DATA_HALF;
    if (algo == 2 || algos_are("failing")) {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    if (algo != 1 && algo != 0) {
        fake_die("cudnn: an algorithm that must not be taken");
    }
    if (how->math != (is_half ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH) ||
        *(const float *)scalars[0] != 1.0F || x->dim[1] != w->dim[1] * how->groups ||
        (algo == 1 && bytes < WORKSPACE_BYTES)) {
        fake_die("cudnn: math, factor, groups or workspace are not what they must be");
    }
    struct fake_convolution *f = calloc(1, sizeof(*f));
    f->which = which == 0 ? FAKE_FORWARD : which == 1 ? FAKE_DATA : FAKE_FILTER;
    f->type = x->type;
    memcpy(f->x, x->dim, sizeof(f->x));
    memcpy(f->w, w->dim, sizeof(f->w));
    memcpy(f->y, y->dim, sizeof(f->y));
    memcpy(f->stride, how->stride, sizeof(f->stride));
    memcpy(f->pad, how->pad, sizeof(f->pad));
    memcpy(f->dil, how->dil, sizeof(f->dil));
    f->in[0] = in[0];
    f->in[1] = in[1];
    f->out = out;
    f->beta = *(const float *)scalars[1];
    f->workspace = workspace;
    f->workspace_bytes = algo == 1 ? WORKSPACE_BYTES : 0;
    fake_enqueue(fake_stream(handle), "cudnn-legacy", fake_convolve, f, free);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      const cudnnTensorDescriptor_t x_desc, const void *x,
                                      const cudnnFilterDescriptor_t w_desc, const void *w,
                                      const cudnnConvolutionDescriptor_t conv,
                                      cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes,
                                      const void *beta, const cudnnTensorDescriptor_t y_desc,
                                      void *y)
{
    return start(handle, 0, (int)algo, (const void *[3]){x_desc, w_desc, y_desc}, conv,
                 (const void *[2]){alpha, beta}, (const void *[2]){x, w}, y, workspace, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           const cudnnFilterDescriptor_t w_desc, const void *w,
                                           const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                           const cudnnConvolutionDescriptor_t conv,
                                           cudnnConvolutionBwdDataAlgo_t algo, void *workspace,
                                           size_t bytes, const void *beta,
                                           const cudnnTensorDescriptor_t dx_desc, void *dx)
{
    return start(handle, 1, (int)algo, (const void *[3]){dx_desc, w_desc, dy_desc}, conv,
                 (const void *[2]){alpha, beta}, (const void *[2]){w, dy}, dx, workspace, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             const cudnnTensorDescriptor_t x_desc, const void *x,
                                             const cudnnTensorDescriptor_t dy_desc, const void *dy,
                                             const cudnnConvolutionDescriptor_t conv,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void *workspace,
                                             size_t bytes, const void *beta,
                                             const cudnnFilterDescriptor_t dw_desc, void *dw)
{
    return start(handle, 2, (int)algo, (const void *[3]){x_desc, dw_desc, dy_desc}, conv,
                 (const void *[2]){alpha, beta}, (const void *[2]){x, dy}, dw, workspace, bytes);
}

static void add(void *closure)
{
    const struct addition *f = closure;
    int64_t channels = f->c.dim[1];
    int64_t count = f->c.dim[0] * channels * f->c.dim[2] * f->c.dim[3];
    for (int64_t i = 0; i < count; i++) {
        if (f->c.type == CUDNN_DATA_HALF) {
            uint16_t *to = f->to;
            to[i] =
                fake_half_from_float(fake_half_to_float(to[i]) +
                                     fake_half_to_float(((const uint16_t *)f->from)[i % channels]));
        } else {
            ((float *)f->to)[i] += ((const float *)f->from)[i % channels];
        }
    }
}

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha,
                             const cudnnTensorDescriptor_t a_desc, const void *a, const void *beta,
                             const cudnnTensorDescriptor_t c_desc, void *c)
{
    struct addition *f = calloc(1, sizeof(*f));
    memcpy(&f->a, a_desc, sizeof(f->a));
    memcpy(&f->c, c_desc, sizeof(f->c));
    if (*(const float *)alpha != 1.0F || *(const float *)beta != 1.0F ||
        f->a.dim[1] != f->c.dim[1] || f->a.dim[0] * f->a.dim[2] * f->a.dim[3] != 1) {
        fake_die("cudnn: an addition that is none of a bias");
    }
    f->from = a;
    f->to = c;
    fake_enqueue(fake_stream(handle), "cudnn-legacy", add, f, free);
    return CUDNN_STATUS_SUCCESS;
}
