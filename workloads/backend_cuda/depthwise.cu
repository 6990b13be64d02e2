/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution: forward, and the gradient of its input. Bytes an element of E bytes: 2E, 3E where it adds to its output. A
   thread does 36 multiply-adds for 8 bytes read and 8 written in half precision: memory and arithmetic take about the same
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
            store_quad(out + (row * d.q + at.q) * width + channel, sums[2], d.has_sum);
        }
    }
}

/* ---- calls ---- */

extern "C" int cuda_depthwise_check(const struct cuda *cuda UNUSED, const struct kernel_args *args,
                                    struct err *err)
{
    const struct conv_geom *g = &args->geom.conv;
    return g->r == 3 && g->s == 3 && g->stride_h == 1 && g->stride_w == 1
               ? 0
               : err_set(err, ERR_WORKLOAD,
                         "a depthwise filter of %" PRId64 " x %" PRId64 " at stride %" PRId64
                         " x %" PRId64 ": expected 3 x 3 at stride 1",
                         g->r, g->s, g->stride_h, g->stride_w);
}

template <typename T>
static void run_chains(struct cuda *cuda, const struct kernel_args *args, struct dw d,
                       const T *bias)
{
    dw_set_chains(&d);
    int heads = dw_heads(&d);
    int64_t threads = (int64_t)d.n * heads * d.segments * d.q * d.quads;
    CUDA_LAUNCH(depthwise_chains<T>, dim3((unsigned)((threads + DW_THREADS - 1) / DW_THREADS)),
                dim3(DW_THREADS), 0, cuda_stream(cuda, args), (const T *)args->in[0],
                (const T *)args->in[1], bias, (T *)args->out[0], d, heads);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct dw d = dw_of(cuda, args);
    d.has_sum = false;
    run_chains<T>(cuda, args, d, args->has_bias ? (const T *)args->in[FWD_BIAS_IN] : NULL);
}

/* The same with input and output exchanged and the filter rotated by 180 degrees. */
template <typename T> static void run_bwd_data(struct cuda *cuda, const struct kernel_args *args)
{
    struct dw d = dw_of(cuda, args);
    struct dw turned = d;
    turned.h = d.p;
    turned.w = d.q;
    turned.p = d.h;
    turned.q = d.w;
    turned.pad_h = 2 * d.dil_h - d.pad_h;
    turned.pad_w = 2 * d.dil_w - d.pad_w;
    turned.is_flipped = true;
    run_chains<T>(cuda, args, turned, (const T *)NULL);
}

extern "C" void cuda_depthwise_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_depthwise_bwd_data(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd_data, (struct cuda *)self, args);
}
