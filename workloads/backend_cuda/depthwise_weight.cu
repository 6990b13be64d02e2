/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution: the gradients of its filter and bias, in two stages: each block sums over some of the pixels, then those
   sums are added in a fixed order. Bytes an element of E bytes: 2E (dy, x), not counting the filter. */
#include "backend_cuda/depthwise.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

/* A block is tx quads wide and ty high; n_blocks (x) share the pixels, n_tiles (y) the channels. */
static struct rows_plan weight_plan(const struct cuda *cuda, int quads, int64_t items)
{
    int64_t n_sm = cuda->n_multiprocessors > 0 ? cuda->n_multiprocessors : 1;
    struct rows_plan plan = {items, quads, 0, 0, (quads + 31) / 32, 1};
    plan.tx = (quads + plan.n_tiles - 1) / plan.n_tiles;
    plan.n_tiles = (quads + plan.tx - 1) / plan.tx;
    plan.ty = DW_THREADS / plan.tx;
    /* 5 blocks of 128 threads fit a multiprocessor at once (96 registers a thread) */
    int64_t wanted = (5 * n_sm + plan.n_tiles - 1) / plan.n_tiles;
    int64_t most = (items + plan.ty - 1) / plan.ty;
    plan.n_blocks = (int)(wanted < most ? wanted : most);
    return plan;
}

/* Adds up the lines' sums and leaves them at `to`, four channels by line 0. */
static __device__ inline void leave(float *sum, float *shared, const struct rows_plan &plan,
                                    const struct rows_at &at, float *to)
{
    sum_lines<QUAD>(sum, shared, plan, at.line);
    if (at.is_inside && at.line == 0) {
        put_quad(to, sum, false);
    }
}

/* partial (n_blocks, 9, channels) */
template <typename T>
static __global__ void __launch_bounds__(DW_THREADS)
    weight_chains(const T *dy, const T *x, float *partial, struct rows_plan plan, struct dw d,
                  int heads)
{
    __shared__ float shared[QUAD * THREADS];
    struct rows_at at = rows_here(plan);
    int64_t width = (int64_t)d.quads * QUAD;
    int channel = at.vec * QUAD;
    float sums[3][3][QUAD] = {};
    for (int64_t i = (int64_t)blockIdx.x * plan.ty + at.line; at.is_inside && i < plan.rows;
         i += (int64_t)gridDim.x * plan.ty) {
        struct chain chain = chain_at(d, heads, (unsigned)i);
        float grads[3][QUAD] = {};
#pragma unroll 2
        for (int k = 0; k < chain.length + 2 && chain.length > 0; k++) {
            float taps[3][QUAD];
            load_taps(x + channel, d, chain, chain.p - d.pad_h + k * d.dil_h, taps);
#pragma unroll
            for (int lane = 0; lane < QUAD; lane++) {
                grads[2][lane] = grads[1][lane];
                grads[1][lane] = grads[0][lane];
                grads[0][lane] = 0.0f;
            }
            if (k < chain.length) {
                int64_t row = (int64_t)chain.image * d.p + chain.p + k * d.dil_h;
                load_quad(dy + (row * d.q + chain.q) * width + channel, grads[0]);
            }
#pragma unroll
            for (int r = 0; r < 3; r++) {
#pragma unroll
                for (int s = 0; s < 3; s++) {
#pragma unroll
                    for (int lane = 0; lane < QUAD; lane++) {
                        sums[r][s][lane] += grads[r][lane] * taps[s][lane];
                    }
                }
            }
        }
    }
#pragma unroll
    for (int tap = 0; tap < 9; tap++) {
        leave(sums[tap / 3][tap % 3], shared, plan, at,
              partial + ((int64_t)blockIdx.x * 9 + tap) * width + channel);
    }
}

/* Tap number first_tap + blockIdx.z; the one after the last is the bias. partial (n_blocks, taps, channels) */
template <typename T>
static __global__ void __launch_bounds__(DW_THREADS)
    weight_taps(const T *dy, const T *x, float *partial, struct rows_plan plan, struct dw d,
                int first_tap)
{
    __shared__ float shared[QUAD * THREADS];
    struct rows_at at = rows_here(plan);
    int64_t width = (int64_t)d.quads * QUAD;
    int channel = at.vec * QUAD;
    int tap = first_tap + (int)blockIdx.z;
    bool is_bias = tap == d.r * d.s;
    float sum[QUAD] = {0.0f};
    for (int64_t i = (int64_t)blockIdx.x * plan.ty + at.line; at.is_inside && i < plan.rows;
         i += (int64_t)gridDim.x * plan.ty) {
        unsigned line = (unsigned)i / (unsigned)d.q;
        int h = (int)(line % (unsigned)d.p) * d.stride_h - d.pad_h + tap / d.s * d.dil_h;
        int w = (int)((unsigned)i % (unsigned)d.q) * d.stride_w - d.pad_w + tap % d.s * d.dil_w;
        int image = (int)(line / (unsigned)d.p);
        float grad[QUAD], value[QUAD] = {1.0f, 1.0f, 1.0f, 1.0f};
        if (!is_bias && (h < 0 || h >= d.h || w < 0 || w >= d.w)) {
            continue;
        }
        load_quad(dy + i * width + channel, grad);
        if (!is_bias) {
            load_quad(x + ((int64_t)(image * d.h + h) * d.w + w) * width + channel, value);
        }
#pragma unroll
        for (int lane = 0; lane < QUAD; lane++) {
            sum[lane] += grad[lane] * value[lane];
        }
    }
    leave(sum, shared, plan, at,
          partial + ((int64_t)blockIdx.x * gridDim.z + blockIdx.z) * width + channel);
}

/* to (columns) (+)= the sum of the rows of partial (n_rows, columns); a block has all rows of its columns. */
template <typename T>
static __global__ void __launch_bounds__(DW_THREADS)
    weight_sum(const float *partial, T *to, struct rows_plan plan, bool has_sum)
{
    __shared__ float shared[QUAD * THREADS];
    struct rows_at at = rows_here(plan);
    int64_t column = at.vec * QUAD;
    float sum[QUAD] = {0.0f};
    for (int64_t row = at.line; at.is_inside && row < plan.rows; row += plan.ty) {
        float more[QUAD];
        load_quad(partial + row * plan.cv * QUAD + column, more);
#pragma unroll
        for (int lane = 0; lane < QUAD; lane++) {
            sum[lane] += more[lane];
        }
    }
    sum_lines<QUAD>(sum, shared, plan, at.line);
    if (at.is_inside && at.line == 0) {
        put_quad(to + column, sum, has_sum);
    }
}

/* ---- calls ---- */

template <typename T>
static void add_up(struct cuda *cuda, const struct kernel_args *args, int n_rows, int quads,
                   int out)
{
    /* 8 quads, 128 bytes, wide: many blocks, and 16 lines share the rows */
    struct rows_plan plan = {n_rows, quads, 8, DW_THREADS / 8, (quads + 7) / 8, 1};
    CUDA_LAUNCH(weight_sum<T>, rows_dim(&plan), dim3(DW_THREADS), 0, cuda_stream(cuda, args),
                (const float *)args->workspace, (T *)args->out[out], plan,
                (args->accumulate >> out & 1U) != 0);
    CUDA_LAUNCHED(cuda);
}

template <typename T>
static void run_taps(struct cuda *cuda, const struct kernel_args *args, const struct dw &d,
                     int first_tap, int n_taps)
{
    struct rows_plan plan = weight_plan(cuda, d.quads, (int64_t)d.n * d.p * d.q);
    dim3 grid((unsigned)plan.n_blocks, (unsigned)plan.n_tiles, (unsigned)n_taps);
    CUDA_LAUNCH(weight_taps<T>, grid, dim3(DW_THREADS), 0, cuda_stream(cuda, args),
                (const T *)args->in[0], (const T *)args->in[1], (float *)args->workspace, plan, d,
                first_tap);
    CUDA_LAUNCHED(cuda);
    add_up<T>(cuda, args, plan.n_blocks, d.quads * n_taps, first_tap == 0 ? 0 : 1);
}

static int64_t chain_items(struct dw *d)
{
    dw_set_chains(d);
    return (int64_t)d->n * dw_heads(d) * d->segments * d->q;
}

template <typename T> static void run_weight(struct cuda *cuda, const struct kernel_args *args)
{
    struct dw d = dw_of(cuda, args);
    if (dw_has_chains(&d)) {
        int64_t items = chain_items(&d);
        struct rows_plan plan = weight_plan(cuda, d.quads, items);
        CUDA_LAUNCH(weight_chains<T>, rows_dim(&plan), dim3(DW_THREADS), 0, cuda_stream(cuda, args),
                    (const T *)args->in[0], (const T *)args->in[1], (float *)args->workspace, plan,
                    d, dw_heads(&d));
        CUDA_LAUNCHED(cuda);
        add_up<T>(cuda, args, plan.n_blocks, d.quads * 9, 0);
    } else {
        run_taps<T>(cuda, args, d, 0, d.r * d.s);
    }
    if (args->has_bias && args->out[1]) {
        run_taps<T>(cuda, args, d, d.r * d.s, 1);
    }
}

extern "C" int64_t cuda_depthwise_workspace(const struct cuda *cuda, const struct kernel_args *args)
{
    struct dw d = dw_of(cuda, args);
    if (args->id != K_CONV_BWD_WEIGHT) {
        return 0;
    }
    int64_t taps = weight_plan(cuda, d.quads, (int64_t)d.n * d.p * d.q).n_blocks;
    int64_t chains =
        dw_has_chains(&d) ? weight_plan(cuda, d.quads, chain_items(&d)).n_blocks : taps;
    int64_t most = chains * d.r * d.s > taps ? chains * d.r * d.s : taps;
    return most * d.quads * QUAD * (int64_t)sizeof(float);
}

extern "C" void cuda_depthwise_bwd_weight(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_weight, (struct cuda *)self, args);
}
