/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm backward: two sums over all rows, then dx. Bytes an element of E bytes: bn_bwd 5E (dy and x twice, dx), 7E where the
   ReLU's mask is read from y; bn_add_bwd 7E (dy, y, x; da; da, x; dx), 8E where da is added to; bn_bwd_apply 3E. Bound by memory; the second
   kernel walks the rows backwards, for what the first left in the L2 cache. */
#include "backend_cuda/batch_norm.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

/* Where the ReLU passes the gradient: everywhere, where y > 0, or where y recomputed from x is > 0. */
enum mask { MASK_NONE, MASK_FROM_Y, MASK_FROM_X };

template <typename T> struct bn_grad {
    const T *dy, *x, *y;
    T *dx, *da;
    struct bn_affine norm; /* beta for MASK_FROM_X alone */
    bool has_dx_sum, has_da_sum;
    float count; /* rows of all ranks */
};

/* (C) each: what the two sums become */
struct bn_sums {
    float *dgamma, *dbeta; /* NULL: not wanted */
    bool has_dgamma_sum, has_dbeta_sum;
    const float *own, *own_hat; /* this rank's, where dx takes those of all ranks; for bn_bwd_dx */
};

CUDA_GLOBAL unsigned tickets[CUDA_STREAMS_MAX][BN_TILES_MAX];

template <typename T, enum mask MASK>
static __device__ inline bool mask_of(const bn_lanes<T> &norm, int lane, float x, float y)
{
    if (MASK == MASK_FROM_X) {
        return (float)(T)bn_value(norm, lane, x) > 0.0f;
    }
    return MASK == MASK_NONE || y > 0.0f;
}

template <typename T, enum mask MASK>
static __device__ inline void load_norm(const struct bn_affine &from, int channel, bn_lanes<T> *to)
{
    struct bn_affine some = from;
    some.beta = MASK == MASK_FROM_X ? from.beta : from.gamma; /* unused without a mask */
    bn_load(some, channel, to);
}

/* += or =, a few channels by one thread */
template <typename T>
static __device__ inline void put_channels(float *to, const float *from, bool has_sum)
{
    if (!to) {
        return;
    }
#pragma unroll
    for (int i = 0; i < LANES<T>; i++) {
        to[i] = from[i] + (has_sum ? to[i] : 0.0f);
    }
}

/* ---- sums ---- */

/* sums[0 to LANES): of the gradient; then: of the gradient times (x - mean) */
template <typename T, enum mask MASK>
static __device__ inline void thread_sums(const bn_grad<T> &g, const struct rows_plan &plan,
                                          const struct rows_at &at, float *sums)
{
    const int unroll = 4;
    int64_t step = (int64_t)plan.ty * gridDim.x;
    int64_t width = (int64_t)plan.cv * LANES<T>;
    int64_t channel = at.vec * LANES<T>;
    bn_lanes<T> norm;
    load_norm<T, MASK>(g.norm, (int)channel, &norm);
    for (int64_t row = (int64_t)blockIdx.x * plan.ty + at.line; row < plan.rows;
         row += unroll * step) {
        pack<T> dy[unroll], x[unroll], y[unroll];
#pragma unroll
        for (int k = 0; k < unroll; k++) {
            int64_t i = (row + k * step) * width + channel;
            if (row + k * step < plan.rows) {
                dy[k] = load_pack(g.dy + i);
                x[k] = load_pack(g.x + i);
                if (MASK == MASK_FROM_Y) {
                    y[k] = load_pack(g.y + i);
                }
            }
        }
#pragma unroll
        for (int k = 0; k < unroll; k++) {
            int64_t i = (row + k * step) * width + channel;
            if (row + k * step >= plan.rows) {
                break;
            }
            float grad[LANES<T>];
#pragma unroll
            for (int j = 0; j < LANES<T>; j++) {
                float value = (float)x[k].lane[j];
                float made = MASK == MASK_FROM_Y ? (float)y[k].lane[j] : 0.0f;
                grad[j] = mask_of<T, MASK>(norm, j, value, made) ? (float)dy[k].lane[j] : 0.0f;
                sums[j] += grad[j];
                sums[LANES<T> + j] += grad[j] * (value - norm.mean[j]);
            }
            if (g.da) {
                store(g.da + i, grad, g.has_da_sum);
            }
        }
    }
}

/* partial (n_blocks, 2, stored channels), total (2, stored channels): sum of the gradient, and of the gradient times hat */
template <typename T, enum mask MASK>
static __global__ void __launch_bounds__(THREADS)
    bn_bwd_sums(bn_grad<T> g, float *partial, struct rows_plan plan, struct bn_sums to, int stream)
{
    __shared__ float shared[2 * LANES<T> * THREADS];
    struct rows_at at = rows_here(plan);
    int stored = plan.cv * LANES<T>;
    int channel = at.vec * LANES<T>;
    float sums[2 * LANES<T>] = {0.0f};
    if (at.is_inside) {
        thread_sums<T, MASK>(g, plan, at, sums);
    }
    sum_lines<2 * LANES<T>>(sums, shared, plan, at.line);
    if (at.is_inside && at.line == 0) {
        float *mine = partial + (int64_t)blockIdx.x * 2 * stored + channel;
        store_channels<T>(mine, sums);
        store_channels<T>(mine + stored, sums + LANES<T>);
    }
    if (!is_last_block(&tickets[stream][blockIdx.y], gridDim.x)) {
        return;
    }
#pragma unroll
    for (int i = 0; i < 2 * LANES<T>; i++) {
        sums[i] = 0.0f;
    }
    for (int block = at.line; at.is_inside && block < (int)gridDim.x; block += plan.ty) {
        float other[2 * LANES<T>];
        const float *from = partial + (int64_t)block * 2 * stored + channel;
        load_channels<T>(from, other);
        load_channels<T>(from + stored, other + LANES<T>);
#pragma unroll
        for (int i = 0; i < 2 * LANES<T>; i++) {
            sums[i] += other[i];
        }
    }
    sum_lines<2 * LANES<T>>(sums, shared, plan, at.line);
    if (at.is_inside && at.line == 0) {
        float rstd[LANES<T>];
        load_channels<T>(g.norm.rstd + channel, rstd);
#pragma unroll
        for (int i = 0; i < LANES<T>; i++) {
            sums[LANES<T> + i] *= rstd[i];
        }
        float *total = partial + (int64_t)gridDim.x * 2 * stored + channel;
        store_channels<T>(total, sums);
        store_channels<T>(total + stored, sums + LANES<T>);
        put_channels<T>(to.dbeta ? to.dbeta + channel : NULL, sums, to.has_dbeta_sum);
        put_channels<T>(to.dgamma ? to.dgamma + channel : NULL, sums + LANES<T>, to.has_dgamma_sum);
    }
}

/* ---- dx ---- */

/* dx = gamma * rstd * (gradient - (sum + hat * sum_hat) / rows). The first block of a tile writes what `to` wants of the sums. */
template <typename T, enum mask MASK>
static __global__ void __launch_bounds__(THREADS)
    bn_bwd_dx(bn_grad<T> g, const float *sum, const float *sum_hat, struct rows_plan plan,
              struct bn_sums to)
{
    struct rows_at at = rows_here(plan);
    int64_t width = (int64_t)plan.cv * LANES<T>;
    int64_t channel = at.vec * LANES<T>;
    int64_t first = (int64_t)blockIdx.x * APPLY_ROWS * plan.ty + at.line;
    pack<T> dy[APPLY_ROWS], x[APPLY_ROWS], y[APPLY_ROWS];
    bn_lanes<T> norm;
    float base[LANES<T>], slope[LANES<T>], rstd[LANES<T>];
    if (!at.is_inside) {
        return;
    }
#pragma unroll
    for (int k = 0; k < APPLY_ROWS; k++) {
        int64_t row = plan.rows - 1 - first - k * plan.ty;
        if (row >= 0) {
            dy[k] = load_pack(g.dy + row * width + channel);
            x[k] = load_pack(g.x + row * width + channel);
            if (MASK == MASK_FROM_Y) {
                y[k] = load_pack(g.y + row * width + channel);
            }
        }
    }
    load_norm<T, MASK>(g.norm, (int)channel, &norm);
    load_channels<T>(sum + channel, base);
    load_channels<T>(sum_hat + channel, slope);
    load_channels<T>(g.norm.rstd + channel, rstd);
    if (blockIdx.x == 0 && at.line == 0 && to.own) {
        float own[LANES<T>];
        load_channels<T>(to.own + channel, own);
        put_channels<T>(to.dbeta ? to.dbeta + channel : NULL, own, to.has_dbeta_sum);
        load_channels<T>(to.own_hat + channel, own);
        put_channels<T>(to.dgamma ? to.dgamma + channel : NULL, own, to.has_dgamma_sum);
    }
    float per_count = 1.0f / g.count;
#pragma unroll
    for (int i = 0; i < LANES<T>; i++) {
        base[i] *= per_count;
        slope[i] *= per_count * rstd[i];
    }
#pragma unroll
    for (int k = 0; k < APPLY_ROWS; k++) {
        int64_t row = plan.rows - 1 - first - k * plan.ty;
        float out[LANES<T>];
#pragma unroll
        for (int i = 0; i < LANES<T>; i++) {
            float value = (float)x[k].lane[i];
            float made = MASK == MASK_FROM_Y ? (float)y[k].lane[i] : 0.0f;
            float grad = mask_of<T, MASK>(norm, i, value, made) ? (float)dy[k].lane[i] : 0.0f;
            out[i] = norm.scale[i] * (grad - base[i] - (value - norm.mean[i]) * slope[i]);
        }
        if (row >= 0 && g.dx) {
            store(g.dx + row * width + channel, out, g.has_dx_sum);
        }
    }
}

/* ---- calls ---- */

static int channel_vectors(const struct cuda *cuda, const struct kernel_args *args)
{
    return (int)(cuda_channels(cuda, args->geom.bn.c) * dtype_bytes(args->dtype) / 16);
}

static struct bn_affine norm_of(const struct kernel_args *args, const void *beta)
{
    return {(const float *)args->in[NORM_BWD_MEAN_IN], (const float *)args->in[NORM_BWD_RSTD_IN],
            (const float *)args->in[NORM_BWD_GAMMA_IN], (const float *)beta};
}

static struct bn_sums sums_of(const struct kernel_args *args)
{
    return {(float *)args->out[NORM_BWD_DGAMMA_OUT],
            (float *)args->out[NORM_BWD_DBETA_OUT],
            (args->accumulate & OPERAND_BIT(NORM_BWD_DGAMMA_OUT)) != 0,
            (args->accumulate & OPERAND_BIT(NORM_BWD_DBETA_OUT)) != 0,
            NULL,
            NULL};
}

static float count_of(const struct bn_geom *g)
{
    return (float)(g->n * g->plane * (g->n_ranks > 1 ? g->n_ranks : 1));
}

template <typename T, enum mask MASK>
static void sums(struct cuda *cuda, const struct kernel_args *args, const bn_grad<T> &g)
{
    struct rows_plan plan =
        rows_reduce(cuda, args->geom.bn.n * args->geom.bn.plane, channel_vectors(cuda, args));
    CUDA_LAUNCH((bn_bwd_sums<T, MASK>), rows_dim(&plan), dim3(THREADS), 0, cuda_stream(cuda, args),
                g, (float *)args->workspace, plan, sums_of(args), args->stream);
    CUDA_LAUNCHED(cuda);
}

template <typename T, enum mask MASK>
static void gradient(struct cuda *cuda, const struct kernel_args *args, const bn_grad<T> &g)
{
    int64_t rows = args->geom.bn.n * args->geom.bn.plane;
    int cv = channel_vectors(cuda, args);
    struct rows_plan summed = rows_reduce(cuda, rows, cv);
    struct rows_plan plan = rows_apply(rows, cv);
    int64_t stored = (int64_t)cv * LANES<T>;
    const float *total = (const float *)args->workspace + summed.n_blocks * 2 * stored;
    struct bn_sums to = {};
    if (args->geom.bn.n_ranks > 1) {
        const struct comm_run run = {total, (float *)total, 2 * stored, DT_F32};
        cuda_sum_over_ranks(cuda, args, &run, 1);
    }
    CUDA_LAUNCH((bn_bwd_dx<T, MASK>), rows_dim(&plan), dim3(THREADS), 0, cuda_stream(cuda, args), g,
                total, total + stored, plan, to);
    CUDA_LAUNCHED(cuda);
}

template <typename T, enum mask MASK>
static void both(struct cuda *cuda, const struct kernel_args *args, bn_grad<T> g)
{
    sums<T, MASK>(cuda, args, g);
    if (g.dx && g.da && !g.has_da_sum) {
        g.dy = g.da; /* masked already */
        gradient<T, MASK_NONE>(cuda, args, g);
    } else if (g.dx) {
        gradient<T, MASK>(cuda, args, g);
    }
}

template <typename T> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    bn_grad<T> g = {};
    bool has_add = args->id == K_BN_ADD_BWD;
    bool has_relu = args->geom.bn.has_relu;
    g.dy = (const T *)args->in[NORM_BWD_DY_IN];
    g.x = (const T *)args->in[NORM_BWD_X_IN];
    g.y = (const T *)args->in[NORM_BWD_Y_IN];
    g.dx = (T *)args->out[NORM_BWD_DX_OUT];
    g.da = has_add ? (T *)args->out[NORM_BWD_DA_OUT] : NULL;
    g.count = count_of(&args->geom.bn);
    g.norm = norm_of(args, has_add ? NULL : args->in[NORM_BWD_BETA_IN]);
    g.has_dx_sum = (args->accumulate & OPERAND_BIT(NORM_BWD_DX_OUT)) != 0;
    g.has_da_sum = (args->accumulate & OPERAND_BIT(NORM_BWD_DA_OUT)) != 0;
    if (!has_relu) {
        both<T, MASK_NONE>(cuda, args, g);
    } else if (g.norm.beta) {
        both<T, MASK_FROM_X>(cuda, args, g);
    } else {
        both<T, MASK_FROM_Y>(cuda, args, g);
    }
}

template <typename T> static void run_apply(struct cuda *cuda, const struct kernel_args *args)
{
    bn_grad<T> g = {};
    struct rows_plan plan =
        rows_apply(args->geom.bn.n * args->geom.bn.plane, channel_vectors(cuda, args));
    g.dy = (const T *)args->in[NORM_BWD_DZ_IN];
    g.x = (const T *)args->in[NORM_BWD_X_IN];
    g.dx = (T *)args->out[NORM_BWD_DX_OUT];
    g.norm = norm_of(args, NULL);
    g.count = count_of(&args->geom.bn);
    struct bn_sums to = sums_of(args);
    const float *sum = (const float *)args->in[NORM_BWD_SUM_DZ_IN];
    const float *sum_hat = (const float *)args->in[NORM_BWD_SUM_HAT_IN];
    to.own = sum;
    to.own_hat = sum_hat;
    if (args->geom.bn.n_ranks > 1) {
        int64_t stored = (int64_t)plan.cv * LANES<T>;
        float *all = (float *)args->workspace;
        const struct comm_run runs[2] = {{sum, all, stored, DT_F32},
                                         {sum_hat, all + stored, stored, DT_F32}};
        cuda_sum_over_ranks(cuda, args, runs, 2);
        sum = all;
        sum_hat = all + stored;
    }
    CUDA_LAUNCH((bn_bwd_dx<T, MASK_NONE>), rows_dim(&plan), dim3(THREADS), 0,
                cuda_stream(cuda, args), g, sum, sum_hat, plan, to);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_bn_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd, (struct cuda *)self, args);
}

extern "C" void cuda_bn_bwd_apply(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_apply, (struct cuda *)self, args);
}
