/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution: forward, and the gradient of its input. Bytes an element of E bytes: 2E, 3E where it adds to its output. For
   chains a thread does 36 multiply-adds for 8 bytes read and 8 written in half precision: memory and arithmetic take about the same
   time. */
#include "backend_cuda/depthwise.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

/* filter (3, 3, channels); bias (channels) or NULL */
template <typename T>
static __global__ void __launch_bounds__(DW_THREADS)
    depthwise_chains(const T *in, const T *filter, const T *bias, T *out, struct dw d, int heads)
{
    unsigned i = blockIdx.x * DW_THREADS + threadIdx.x;
    unsigned channel = i % (unsigned)d.quads * QUAD;
    struct chain at = chain_at(d, heads, i / (unsigned)d.quads);
    int64_t width = (int64_t)d.quads * QUAD;
    float weights[3][3][QUAD], base[QUAD] = {0.0f}, sums[3][QUAD] = {};
    if (at.image >= d.n || at.length == 0) {
        return;
    }
#pragma unroll
    for (int r = 0; r < 3; r++) {
#pragma unroll
        for (int s = 0; s < 3; s++) {
            int tap = d.is_flipped ? 8 - (3 * r + s) : 3 * r + s;
            load_quad(filter + tap * width + channel, weights[r][s]);
        }
    }
    if (bias) {
        load_quad(bias + channel, base);
    }
#pragma unroll 2
    for (int k = 0; k < at.length + 2; k++) {
        float taps[3][QUAD];
        load_taps(in + channel, d, at, at.p - d.pad_h + k * d.dil_h, taps);
#pragma unroll
        for (int lane = 0; lane < QUAD; lane++) {
            sums[2][lane] = sums[1][lane];
            sums[1][lane] = sums[0][lane];
            sums[0][lane] = base[lane];
#pragma unroll
            for (int s = 0; s < 3; s++) {
#pragma unroll
                for (int r = 0; r < 3; r++) {
                    sums[r][lane] += weights[r][s][lane] * taps[s][lane];
                }
            }
        }
        if (k >= 2) {
            int64_t row = (int64_t)at.image * d.p + at.p + (k - 2) * d.dil_h;
            put_quad(out + (row * d.q + at.q) * width + channel, sums[2], d.has_sum);
        }
    }
}

/* Any filter and stride: a thread an output quad. */
template <typename T>
static __global__ void __launch_bounds__(DW_THREADS)
    depthwise_fwd(const T *x, const T *filter, const T *bias, T *y, struct dw d)
{
    unsigned i = blockIdx.x * DW_THREADS + threadIdx.x;
    unsigned channel = i % (unsigned)d.quads * QUAD;
    unsigned pixel = i / (unsigned)d.quads;
    unsigned line = pixel / (unsigned)d.q;
    int image = (int)(line / (unsigned)d.p);
    int top = (int)(line % (unsigned)d.p) * d.stride_h - d.pad_h;
    int left = (int)(pixel % (unsigned)d.q) * d.stride_w - d.pad_w;
    int64_t width = (int64_t)d.quads * QUAD;
    float sum[QUAD] = {0.0f};
    if (image >= d.n) {
        return;
    }
    if (bias) {
        load_quad(bias + channel, sum);
    }
    for (int r = 0; r < d.r; r++) {
        int h = top + r * d.dil_h;
        for (int s = 0; s < d.s && h >= 0 && h < d.h; s++) {
            int w = left + s * d.dil_w;
            if (w >= 0 && w < d.w) {
                float value[QUAD], weight[QUAD];
                load_quad(x + ((int64_t)(image * d.h + h) * d.w + w) * width + channel, value);
                load_quad(filter + (r * d.s + s) * width + channel, weight);
#pragma unroll
                for (int lane = 0; lane < QUAD; lane++) {
                    sum[lane] += value[lane] * weight[lane];
                }
            }
        }
    }
    put_quad(y + (int64_t)pixel * width + channel, sum, false);
}

/* An input pixel gathers from the outputs that it contributed to. */
template <typename T>
static __global__ void __launch_bounds__(DW_THREADS)
    depthwise_bwd_data(const T *dy, const T *filter, T *dx, struct dw d)
{
    unsigned i = blockIdx.x * DW_THREADS + threadIdx.x;
    unsigned channel = i % (unsigned)d.quads * QUAD;
    unsigned pixel = i / (unsigned)d.quads;
    unsigned line = pixel / (unsigned)d.w;
    int image = (int)(line / (unsigned)d.h);
    int down = (int)(line % (unsigned)d.h) + d.pad_h;
    int right = (int)(pixel % (unsigned)d.w) + d.pad_w;
    int64_t width = (int64_t)d.quads * QUAD;
    float sum[QUAD] = {0.0f};
    if (image >= d.n) {
        return;
    }
    for (int r = 0; r < d.r; r++) {
        int row = down - r * d.dil_h;
        if (row < 0 || row % d.stride_h != 0 || row / d.stride_h >= d.p) {
            continue;
        }
        for (int s = 0; s < d.s; s++) {
            int column = right - s * d.dil_w;
            if (column >= 0 && column % d.stride_w == 0 && column / d.stride_w < d.q) {
                int64_t from =
                    (int64_t)(image * d.p + row / d.stride_h) * d.q + column / d.stride_w;
                float grad[QUAD], weight[QUAD];
                load_quad(dy + from * width + channel, grad);
                load_quad(filter + (r * d.s + s) * width + channel, weight);
#pragma unroll
                for (int lane = 0; lane < QUAD; lane++) {
                    sum[lane] += grad[lane] * weight[lane];
                }
            }
        }
    }
    put_quad(dx + (int64_t)pixel * width + channel, sum, d.has_sum);
}

/* ---- calls ---- */

static dim3 threads_dim(int64_t threads)
{
    return dim3((unsigned)((threads + DW_THREADS - 1) / DW_THREADS));
}

template <typename T>
static void run_chains(struct cuda *cuda, const struct kernel_args *args, struct dw d,
                       const T *bias)
{
    dw_set_chains(&d);
    int heads = dw_heads(&d);
    CUDA_LAUNCH(depthwise_chains<T>, threads_dim((int64_t)d.n * heads * d.segments * d.q * d.quads),
                dim3(DW_THREADS), 0, cuda_stream(cuda, args), (const T *)args->in[0],
                (const T *)args->in[1], bias, (T *)args->out[0], d, heads);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct dw d = dw_of(cuda, args);
    const T *bias = args->has_bias ? (const T *)args->in[2] : NULL;
    d.has_sum = false;
    if (dw_has_chains(&d)) {
        run_chains<T>(cuda, args, d, bias);
        return;
    }
    CUDA_LAUNCH(depthwise_fwd<T>, threads_dim((int64_t)d.n * d.p * d.q * d.quads), dim3(DW_THREADS),
                0, cuda_stream(cuda, args), (const T *)args->in[0], (const T *)args->in[1], bias,
                (T *)args->out[0], d);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_bwd_data(struct cuda *cuda, const struct kernel_args *args)
{
    struct dw d = dw_of(cuda, args);
    if (dw_has_chains(&d)) {
        /* The same with input and output exchanged and the filter rotated by 180 degrees. */
        struct dw turned = d;
        turned.h = d.p;
        turned.w = d.q;
        turned.p = d.h;
        turned.q = d.w;
        turned.pad_h = 2 * d.dil_h - d.pad_h;
        turned.pad_w = 2 * d.dil_w - d.pad_w;
        turned.is_flipped = true;
        run_chains<T>(cuda, args, turned, (const T *)NULL);
        return;
    }
    CUDA_LAUNCH(depthwise_bwd_data<T>, threads_dim((int64_t)d.n * d.h * d.w * d.quads),
                dim3(DW_THREADS), 0, cuda_stream(cuda, args), (const T *)args->in[0],
                (const T *)args->in[1], (T *)args->out[0], d);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_depthwise_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_depthwise_bwd_data(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd_data, (struct cuda *)self, args);
}
