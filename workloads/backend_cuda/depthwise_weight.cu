/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution: the gradients of its filter and bias, in two stages: each block sums over some of the pixels, then those
   sums are added in a fixed order. Bytes an element of E bytes: 2E (dy, x), not counting the filter. */
#include "backend_cuda/depthwise.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
#include "backend_cuda/sums.h"
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
        store_quad(to, sum, false);
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
        store_quad(to + column, sum, has_sum);
    }
}

/* ---- calls ---- */

static int64_t chain_items(struct dw *d)
{
    dw_set_chains(d);
    return (int64_t)d->n * dw_heads(d) * d->segments * d->q;
}

template <typename T> static void run_weight(struct cuda *cuda, const struct kernel_args *args)
{
    struct dw d = dw_of(cuda, args);
    struct rows_plan plan = weight_plan(cuda, d.quads, chain_items(&d));
    CUDA_LAUNCH(weight_chains<T>, rows_dim(&plan), dim3(DW_THREADS), 0, cuda_stream(cuda, args),
                (const T *)args->in[WEIGHT_DY_IN], (const T *)args->in[WEIGHT_X_IN],
                (float *)args->workspace, plan, d, dw_heads(&d));
    CUDA_LAUNCHED(cuda);
    /* 8 quads, 128 bytes, wide: many blocks, and 16 lines share the rows */
    int quads = d.quads * 9;
    struct rows_plan sums = {plan.n_blocks, quads, 8, DW_THREADS / 8, (quads + 7) / 8, 1};
    CUDA_LAUNCH(weight_sum<T>, rows_dim(&sums), dim3(DW_THREADS), 0, cuda_stream(cuda, args),
                (const float *)args->workspace, (T *)args->out[WEIGHT_DW_OUT], sums,
                (args->accumulate & OPERAND_BIT(WEIGHT_DW_OUT)) != 0);
    CUDA_LAUNCHED(cuda);
}

extern "C" int64_t cuda_depthwise_workspace(const struct cuda *cuda, const struct kernel_args *args)
{
    struct dw d = dw_of(cuda, args);
    if (args->id != K_CONV_BWD_WEIGHT) {
        return 0;
    }
    int64_t channels = d.quads * QUAD;
    int64_t bytes = (int64_t)weight_plan(cuda, d.quads, chain_items(&d)).n_blocks * 9 * channels *
                    (int64_t)sizeof(float);
    int64_t bias = args->has_bias ? cuda_column_sum_bytes((int64_t)d.n * d.p * d.q, channels) : 0;
    return bytes > bias ? bytes : bias;
}

extern "C" void cuda_depthwise_bwd_weight(void *self, const struct kernel_args *args)
{
    struct cuda *cuda = (struct cuda *)self;
    CUDA_BY_TYPE(args, run_weight, cuda, args);
    if (args->has_bias && args->out[WEIGHT_DBIAS_OUT]) {
        const struct conv_geom *g = &args->geom.conv;
        struct column_sum_args sum = {};
        sum.dtype = args->dtype;
        sum.rows = g->n * g->p * g->q;
        sum.columns = cuda_channels(cuda, g->k);
        sum.x = args->in[WEIGHT_DY_IN];
        sum.sums = args->out[WEIGHT_DBIAS_OUT];
        sum.is_added = (args->accumulate & OPERAND_BIT(WEIGHT_DBIAS_OUT)) != 0;
        sum.partial = (float *)args->workspace;
        sum.stream = cuda_stream(cuda, args);
        cuda_column_sum(cuda, &sum);
    }
}
