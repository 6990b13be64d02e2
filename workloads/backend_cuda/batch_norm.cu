/* SPDX-License-Identifier: Apache-2.0 */
/* Batch norm forward: moments over all rows of an image, then normalisation by them. Bytes an element of E bytes: bn_fwd 3E (x twice,
   y), bn_add_fwd 4E, bn_apply 2E to 3E, bn_finalize next to nothing. Bound by memory; if x fits the L2 cache, its second read comes
   from there, so the second kernel walks the rows backwards. */
#include "backend_cuda/batch_norm.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

/* (C) each; what a batch's moments become */
struct bn_stats {
    float *mean, *rstd, *running_mean, *running_var;
    float eps, momentum;
    int channels;
    double count; /* rows, of all ranks */
    double
        running_one; /* subtracted from count for the running variance: 1, or 0 where it is biased */
    float *
        own; /* (2, stored): with several ranks only this one's mean and squares, to be joined; else NULL */
};

CUDA_GLOBAL unsigned tickets[CUDA_STREAMS_MAX][BN_TILES_MAX];

/* ---- moments ---- */

/* How many values, their mean, and the sum of squared distances from it. */
template <typename T> struct moments {
    float count;
    float mean[LANES<T>], squares[LANES<T>];
};

/* Source: Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979). */
template <typename T>
static __device__ inline void join(moments<T> *to, float count, const float *mean,
                                   const float *squares)
{
    float total = to->count + count;
    float weight = total > 0.0f ? count / total : 0.0f;
#pragma unroll
    for (int i = 0; i < LANES<T>; i++) {
        float delta = mean[i] - to->mean[i];
        to->mean[i] += delta * weight;
        to->squares[i] += squares[i] + delta * delta * to->count * weight;
    }
    to->count = total;
}

/* All lines' moments into those of line 0, in a fixed order. */
template <typename T>
static __device__ inline void join_lines(moments<T> *own, const struct rows_plan &plan, int line)
{
    __shared__ float counts[THREADS];
    __shared__ float means[LANES<T> * THREADS];
    __shared__ float squares[LANES<T> * THREADS];
    int me = (int)threadIdx.x;
    int step = 1;
    while (2 * step < plan.ty) {
        step *= 2;
    }
    for (; step > 0; step /= 2) {
        if (line >= step && line < 2 * step) {
            counts[me] = own->count;
#pragma unroll
            for (int i = 0; i < LANES<T>; i++) {
                means[i * THREADS + me] = own->mean[i];
                squares[i * THREADS + me] = own->squares[i];
            }
        }
        __syncthreads();
        if (line < step && line + step < plan.ty) {
            int other = me + step * plan.tx;
            float mean[LANES<T>], square[LANES<T>];
#pragma unroll
            for (int i = 0; i < LANES<T>; i++) {
                mean[i] = means[i * THREADS + other];
                square[i] = squares[i * THREADS + other];
            }
            join(own, counts[other], mean, square);
        }
        __syncthreads();
    }
}

/* Sums of distances from one of the thread's own values: the digits lost are bounded by how far that value is from the mean,
   squared, which is itself part of the sum. */
template <typename T>
static __device__ inline void thread_moments(const T *x, const struct rows_plan &plan,
                                             const struct rows_at &at, moments<T> *own)
{
    const int unroll = 4;
    int64_t step = (int64_t)plan.ty * gridDim.x;
    int64_t row = (int64_t)blockIdx.x * plan.ty + at.line;
    int64_t width = (int64_t)plan.cv * LANES<T>;
    const T *from = x + at.vec * LANES<T>;
    float shift[LANES<T>], sum[LANES<T>] = {0.0f}, squares[LANES<T>] = {0.0f};
    if (row >= plan.rows) {
        return;
    }
    load(from + row * width, shift);
    own->count = (float)((plan.rows - row + step - 1) / step);
    for (; row < plan.rows; row += unroll * step) {
        pack<T> packs[unroll];
#pragma unroll
        for (int k = 0; k < unroll; k++) {
            if (row + k * step < plan.rows) {
                packs[k] = load_pack(from + (row + k * step) * width);
            }
        }
#pragma unroll
        for (int k = 0; k < unroll; k++) {
            if (row + k * step < plan.rows) {
#pragma unroll
                for (int i = 0; i < LANES<T>; i++) {
                    float delta = (float)packs[k].lane[i] - shift[i];
                    sum[i] += delta;
                    squares[i] += delta * delta;
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < LANES<T>; i++) {
        float delta = sum[i] / own->count;
        own->mean[i] = shift[i] + delta;
        own->squares[i] = relu(squares[i] - sum[i] * delta);
    }
}

/* One channel's statistics; 0 in the padding channels. */
static __device__ inline void finish_channel(const struct bn_stats &to, int channel, double mean,
                                             double variance)
{
    bool is_real = channel < to.channels;
    double kept = variance * to.count / (to.count - to.running_one);
    to.mean[channel] = is_real ? (float)mean : 0.0f;
    to.rstd[channel] = is_real ? (float)(1.0 / sqrt(variance + (double)to.eps)) : 0.0f;
    if (is_real) {
        float keep = 1.0f - to.momentum;
        to.running_mean[channel] = keep * to.running_mean[channel] + to.momentum * (float)mean;
        to.running_var[channel] = keep * to.running_var[channel] + to.momentum * (float)kept;
    }
}

/* partial (n_blocks, 2, stored channels) */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    bn_moments(const T *x, float *partial, struct rows_plan plan, struct bn_stats to, int stream)
{
    struct rows_at at = rows_here(plan);
    int stored = plan.cv * LANES<T>;
    int channel = at.vec * LANES<T>;
    moments<T> own = {};
    if (at.is_inside) {
        thread_moments(x, plan, at, &own);
    }
    join_lines(&own, plan, at.line);
    if (at.is_inside && at.line == 0) {
        float *mine = partial + (int64_t)blockIdx.x * 2 * stored + channel;
        store_channels<T>(mine, own.mean);
        store_channels<T>(mine + stored, own.squares);
    }
    if (!is_last_block(&tickets[stream][blockIdx.y], gridDim.x)) {
        return;
    }
    own = {};
    for (int block = at.line; at.is_inside && block < (int)gridDim.x; block += plan.ty) {
        float mean[LANES<T>], squares[LANES<T>];
        const float *other = partial + (int64_t)block * 2 * stored + channel;
        load_channels<T>(other, mean);
        load_channels<T>(other + stored, squares);
        join(&own, (float)rows_of_block(plan, block), mean, squares);
    }
    join_lines(&own, plan, at.line);
    if (at.is_inside && at.line == 0) {
#pragma unroll
        for (int i = 0; i < LANES<T>; i++) {
            if (to.own) {
                to.own[channel + i] = own.mean[i];
                to.own[stored + channel + i] = own.squares[i];
            } else {
                finish_channel(to, channel + i, own.mean[i], (double)own.squares[i] / to.count);
            }
        }
    }
}

/* rows (n_ranks, 2, stored): every rank's mean and squares, each of as many values. The same bits on all ranks. */
static __global__ void __launch_bounds__(THREADS)
    bn_join_ranks(const float *rows, int n_ranks, int stored, struct bn_stats to)
{
    int channel = (int)(blockIdx.x * THREADS + threadIdx.x);
    double mean = 0.0, squares = 0.0;
    if (channel >= stored) {
        return;
    }
    for (int rank = 0; rank < n_ranks; rank++) {
        const float *row = rows + (int64_t)rank * 2 * stored + channel;
        double delta = (double)row[0] - mean;
        mean += delta / (double)(rank + 1);
        squares += (double)row[stored] +
                   delta * delta * (to.count / n_ranks) * (double)rank / (double)(rank + 1);
    }
    finish_channel(to, channel, mean, squares / to.count);
}

/* ---- applying ---- */

/* y = (x - mean) * scale + beta, with `a`, itself normalised or not, added */
template <typename T, bool HAS_ADD>
static __global__ void __launch_bounds__(THREADS)
    bn_apply(const T *x, const T *a, T *y, struct rows_plan plan, struct bn_affine of_x,
             struct bn_affine of_a, bool has_relu)
{
    struct rows_at at = rows_here(plan);
    int64_t width = (int64_t)plan.cv * LANES<T>;
    int64_t channel = at.vec * LANES<T>;
    int64_t first = (int64_t)blockIdx.x * APPLY_ROWS * plan.ty + at.line;
    pack<T> packs[APPLY_ROWS], added[APPLY_ROWS];
    bn_lanes<T> norm, norm_a;
    if (!at.is_inside) {
        return;
    }
#pragma unroll
    for (int k = 0; k < APPLY_ROWS; k++) {
        int64_t row = plan.rows - 1 - first - k * plan.ty;
        if (row >= 0) {
            packs[k] = load_pack(x + row * width + channel);
            if (HAS_ADD) {
                added[k] = load_pack(a + row * width + channel);
            }
        }
    }
    bn_load(of_x, (int)channel, &norm);
    if (HAS_ADD && of_a.gamma) {
        bn_load(of_a, (int)channel, &norm_a);
    }
#pragma unroll
    for (int k = 0; k < APPLY_ROWS; k++) {
        int64_t row = plan.rows - 1 - first - k * plan.ty;
        float out[LANES<T>];
#pragma unroll
        for (int i = 0; i < LANES<T>; i++) {
            out[i] = bn_value(norm, i, (float)packs[k].lane[i]);
            if (HAS_ADD) {
                float more = (float)added[k].lane[i];
                out[i] += of_a.gamma ? bn_value(norm_a, i, more) : more;
            }
            out[i] = has_relu ? relu(out[i]) : out[i];
        }
        if (row >= 0) {
            store(y + row * width + channel, out);
        }
    }
}

/* From sums over x and x * x, made by a convolution's epilogue in float. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    bn_finalize(const float *sum, const float *squares, struct bn_affine in, struct bn_stats to,
                T *scale, T *shift, int stored)
{
    int channel = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (channel >= stored) {
        return;
    }
    double mean = (double)sum[channel] / to.count;
    double variance = (double)squares[channel] / to.count - mean * mean;
    finish_channel(to, channel, mean,
                   variance > 0.0         ? variance
                   : variance == variance ? 0.0
                                          : variance);
    bool is_real = channel < to.channels;
    float slope = in.gamma[channel] * to.rstd[channel];
    float base = in.beta[channel] - (float)mean * slope;
    if (scale) {
        scale[channel] = (T)(is_real ? slope : 0.0f);
        shift[channel] = (T)(is_real ? base : 0.0f);
    }
}

/* ---- calls ---- */

static int channel_vectors(const struct cuda *cuda, const struct kernel_args *args, int64_t c)
{
    return (int)(cuda_channels(cuda, c) * dtype_bytes(args->dtype) / 16);
}

extern "C" int64_t cuda_bn_workspace(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct bn_geom *g = &args->geom.bn;
    struct rows_plan plan = rows_reduce(cuda, g->n * g->plane, channel_vectors(cuda, args, g->c));
    int64_t stored = cuda_channels(cuda, g->c);
    int64_t rows = g->n_ranks > 1 ? 2 * stored * g->n_ranks : 0; /* of all ranks */
    return (bn_scratch(&plan, stored) + rows) * (int64_t)sizeof(float);
}

/* The ranks' sums, where the call does not compute its own. */
extern "C" int64_t cuda_bn_sums_workspace(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct bn_geom *g = &args->geom.bn;
    return g->n_ranks > 1 ? 2 * cuda_channels(cuda, g->c) * (int64_t)sizeof(float) : 0;
}

extern "C" int cuda_bn_check(const struct cuda *cuda, const struct kernel_args *args,
                             struct err *err)
{
    const struct bn_geom *g = &args->geom.bn;
    if (g->n_ranks > 1 && !cuda->ranks) {
        return err_set(err, ERR_WORKLOAD,
                       "norm over the batches of %d ranks: this backend was opened for one",
                       g->n_ranks);
    }
    if (rows_reduce(cuda, g->n * g->plane, channel_vectors(cuda, args, g->c)).n_tiles >
        BN_TILES_MAX) {
        return err_set(err, ERR_WORKLOAD, "%" PRId64 " channels are too many", g->c);
    }
    return 0;
}

/* gamma and beta are in[first], in[first + 1] */
static struct bn_affine affine_of(const struct kernel_args *args, int first, const float *mean,
                                  const float *rstd)
{
    return {mean, rstd, (const float *)args->in[first], (const float *)args->in[first + 1]};
}

static struct bn_stats stats_of(const struct kernel_args *args, int first)
{
    const struct bn_geom *g = &args->geom.bn;
    struct bn_stats to = {};
    to.mean = (float *)args->out[first];
    to.rstd = (float *)args->out[first + 1];
    to.eps = (float)g->eps;
    to.momentum = (float)g->momentum;
    to.channels = (int)g->c;
    to.count = (double)(g->n * g->plane) * (g->n_ranks > 1 ? g->n_ranks : 1);
    to.running_one = g->is_running_biased ? 0.0 : 1.0;
    return to;
}

template <typename T>
static void apply(struct cuda *cuda, const struct kernel_args *args, const T *a,
                  struct bn_affine of_x, struct bn_affine of_a)
{
    const struct bn_geom *g = &args->geom.bn;
    struct rows_plan plan = rows_apply(g->n * g->plane, channel_vectors(cuda, args, g->c));
    if (a) {
        CUDA_LAUNCH((bn_apply<T, true>), rows_dim(&plan), dim3(THREADS), 0, cuda_stream(cuda, args),
                    (const T *)args->in[NORM_X_IN], a, (T *)args->out[NORM_Y_OUT], plan, of_x, of_a,
                    g->has_relu);
    } else {
        CUDA_LAUNCH((bn_apply<T, false>), rows_dim(&plan), dim3(THREADS), 0,
                    cuda_stream(cuda, args), (const T *)args->in[NORM_X_IN], a,
                    (T *)args->out[NORM_Y_OUT], plan, of_x, of_a, g->has_relu);
    }
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct bn_geom *g = &args->geom.bn;
    struct rows_plan plan = rows_reduce(cuda, g->n * g->plane, channel_vectors(cuda, args, g->c));
    struct bn_stats to = stats_of(args, NORM_MEAN_OUT);
    to.running_mean = (float *)args->out[NORM_RUNNING_MEAN_OUT];
    to.running_var = (float *)args->out[NORM_RUNNING_VAR_OUT];
    int stored = (int)cuda_channels(cuda, g->c);
    float *rows = (float *)args->workspace + bn_scratch(&plan, stored);
    if (g->n_ranks > 1) {
        to.own = rows + (int64_t)args->comm->rank * 2 * stored;
    }
    CUDA_LAUNCH(bn_moments<T>, rows_dim(&plan), dim3(THREADS), 0, cuda_stream(cuda, args),
                (const T *)args->in[NORM_X_IN], (float *)args->workspace, plan, to, args->stream);
    CUDA_LAUNCHED(cuda);
    if (g->n_ranks > 1) {
        cuda_gather_ranks(cuda, args, rows, 2 * stored * (int64_t)sizeof(float));
        CUDA_LAUNCH(bn_join_ranks, dim3((unsigned)((stored + THREADS - 1) / THREADS)),
                    dim3(THREADS), 0, cuda_stream(cuda, args), rows, g->n_ranks, stored, to);
        CUDA_LAUNCHED(cuda);
    }
    struct bn_affine of_x = affine_of(args, NORM_GAMMA_IN, to.mean, to.rstd);
    struct bn_affine of_a = {};
    apply<T>(cuda, args, args->id == K_BN_ADD_FWD ? (const T *)args->in[NORM_A_IN] : NULL, of_x,
             of_a);
}

template <typename T> static void run_apply(struct cuda *cuda, const struct kernel_args *args)
{
    struct bn_affine of_x = affine_of(args, APPLY_GAMMA_IN, (const float *)args->in[APPLY_MEAN_IN],
                                      (const float *)args->in[APPLY_RSTD_IN]);
    struct bn_affine of_a =
        affine_of(args, APPLY_A_GAMMA_IN, (const float *)args->in[APPLY_A_MEAN_IN],
                  (const float *)args->in[APPLY_A_RSTD_IN]);
    apply<T>(cuda, args, (const T *)args->in[APPLY_A_IN], of_x, of_a);
}

extern "C" void cuda_bn_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_bn_apply(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_apply, (struct cuda *)self, args);
}

template <typename T> static void run_finalize(struct cuda *cuda, const struct kernel_args *args)
{
    struct bn_stats to = stats_of(args, FINALIZE_MEAN_OUT);
    to.running_mean = (float *)args->out[FINALIZE_RUNNING_MEAN_OUT];
    to.running_var = (float *)args->out[FINALIZE_RUNNING_VAR_OUT];
    struct bn_affine in = affine_of(args, FINALIZE_GAMMA_IN, NULL, NULL);
    int stored = (int)cuda_channels(cuda, args->geom.bn.c);
    const float *sum = (const float *)args->in[FINALIZE_SUM_IN];
    const float *squares = (const float *)args->in[FINALIZE_SQUARES_IN];
    if (args->geom.bn.n_ranks > 1) {
        float *all = (float *)args->workspace;
        const struct comm_run runs[2] = {{sum, all, stored, DT_F32},
                                         {squares, all + stored, stored, DT_F32}};
        cuda_sum_over_ranks(cuda, args, runs, 2);
        sum = all;
        squares = all + stored;
    }
    CUDA_LAUNCH(bn_finalize<T>, dim3((unsigned)((stored + THREADS - 1) / THREADS)), dim3(THREADS),
                0, cuda_stream(cuda, args), sum, squares, in, to,
                (T *)args->out[FINALIZE_SCALE_OUT], (T *)args->out[FINALIZE_SHIFT_OUT], stored);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_bn_finalize(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_finalize, (struct cuda *)self, args);
}
