/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax cross-entropy. Bytes a pixel with C stored channels of E bytes: loss_fwd 2 C E + 8, loss_bwd 2 C E + 16 (labels are counted
   first). Bound by memory. prob is stored in E bytes: near 1 that says little about 1 - prob, so backward takes the gradient of the
   label's own class from the sum of the others. */
#include "backend_cuda/loss.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

struct loss_span {
    int64_t rows; /* pixels of all images, or rows */
    int channels;
    int64_t stride; /* elements from row to row */
    int64_t ignore_label;
    float smoothing, weight;
    bool has_sum;             /* of the loss, or of dlogits */
    struct loss_ranks *ranks; /* where this rank's sums go; NULL with one rank */
};

CUDA_GLOBAL unsigned tickets[CUDA_STREAMS_MAX];

/* The loss of one pixel, and its contribution to the count. own: the logit of its label. */
static __device__ inline void add_pixel(struct loss_sum *to, const struct loss_span &s,
                                        const struct soft &soft, float own, int64_t label)
{
    if (label == s.ignore_label) {
        return;
    }
    float lse = soft.largest + logf(soft.total);
    float mean = soft.sum / (float)s.channels;
    float loss = lse - (1.0f - s.smoothing) * own - s.smoothing * mean;
    to->loss += is_class(label, s.channels) ? (double)loss : (double)NAN;
    to->count++;
}

static __device__ inline void finish(struct loss_sum own, struct loss_sum *partial, float *loss,
                                     const struct loss_span &s, int stream)
{
    if (sum_grid(&own, partial, &tickets[stream]) && threadIdx.x == 0) {
        if (s.ranks) {
            *s.ranks = {own.loss, (double)own.count};
        } else {
            *loss = mean_loss(own, s.weight) + (s.has_sum ? *loss : 0.0f);
        }
    }
}

/* ---- images of few channels: a thread a pixel ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    loss_pixels_fwd(const T *x, const int64_t *labels, T *prob, float *loss,
                    struct loss_sum *partial, struct loss_span s, int stream)
{
    struct loss_sum sum = {0.0, 0};
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x; row < s.rows; row += step) {
        const T *from = x + row * s.stride;
        int64_t label = labels[row];
        struct soft soft = {-INFINITY, 0.0f, 0.0f};
        float lanes[LANES<T>];
        for (int c = 0; c < s.channels; c += LANES<T>) {
            load(from + c, lanes);
#pragma unroll
            for (int lane = 0; lane < LANES<T>; lane++) {
                if (c + lane < s.channels) {
                    soft_add(&soft, lanes[lane]);
                }
            }
        }
        float own = is_class(label, s.channels) ? (float)from[label] : 0.0f;
        float per_total = 1.0f / soft.total;
        for (int c = 0; c < s.stride; c += LANES<T>) {
            load(from + c, lanes);
#pragma unroll
            for (int lane = 0; lane < LANES<T>; lane++) {
                float prob = expf(lanes[lane] - soft.largest) * per_total;
                lanes[lane] = c + lane < s.channels ? prob : 0.0f;
            }
            store(prob + row * s.stride + c, lanes);
        }
        add_pixel(&sum, s, soft, own, label);
    }
    finish(sum, partial, loss, s, stream);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    loss_pixels_bwd(const T *prob, const int64_t *labels, T *dx, const float *scale,
                    struct loss_span s)
{
    int64_t row = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (row >= s.rows) {
        return;
    }
    const T *from = prob + row * s.stride;
    int64_t label = labels[row];
    float others = 0.0f;
    float lanes[LANES<T>];
    for (int c = 0; c < s.stride; c += LANES<T>) {
        load(from + c, lanes);
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            others += c + lane != label ? lanes[lane] : 0.0f;
        }
    }
    float smooth = s.smoothing / (float)s.channels;
    float factor = label == s.ignore_label ? 0.0f : *scale;
    for (int c = 0; c < s.stride; c += LANES<T>) {
        load(from + c, lanes);
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            float grad = c + lane == label ? s.smoothing - others : lanes[lane];
            lanes[lane] = c + lane < s.channels ? (grad - smooth) * factor : 0.0f;
            lanes[lane] = label == s.ignore_label ? 0.0f : lanes[lane];
        }
        store(dx + row * s.stride + c, lanes, s.has_sum);
    }
}

/* ---- rows of many channels: a block a row ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    loss_rows_fwd(const T *x, const int64_t *labels, T *prob, float *loss, struct loss_sum *partial,
                  struct loss_span s, int stream)
{
    struct loss_sum sum = {0.0, 0};
    for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
        const T *from = x + row * s.stride;
        T *to = prob + row * s.stride;
        int64_t label = labels[row];
        struct soft soft = {-INFINITY, 0.0f, 0.0f};
        for (int c = (int)threadIdx.x; c < s.channels; c += THREADS) {
            soft_add(&soft, (float)from[c]);
        }
        soft = soft_block(soft);
        float own = is_class(label, s.channels) ? (float)from[label] : 0.0f;
        float per_total = 1.0f / soft.total;
        __syncthreads(); /* prob may alias x: `own` has been read by then */
        for (int c = (int)threadIdx.x; c < s.stride; c += THREADS) {
            float prob = expf((float)from[c] - soft.largest) * per_total;
            to[c] = (T)(c < s.channels ? prob : 0.0f);
        }
        if (threadIdx.x == 0) {
            add_pixel(&sum, s, soft, own, label);
        }
    }
    finish(sum, partial, loss, s, stream);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    loss_rows_bwd(const T *prob, const int64_t *labels, T *dx, const float *scale,
                  struct loss_span s)
{
    int64_t row = blockIdx.x;
    const T *from = prob + row * s.stride;
    T *to = dx + row * s.stride;
    int64_t label = labels[row];
    struct loss_sum others = {0.0, 0};
    for (int c = (int)threadIdx.x; c < s.channels; c += THREADS) {
        others.loss += c != label ? (double)(float)from[c] : 0.0;
    }
    others = sum_block(others);
    float smooth = s.smoothing / (float)s.channels;
    for (int c = (int)threadIdx.x; c < s.stride; c += THREADS) {
        float grad = c == label ? s.smoothing - (float)others.loss : (float)from[c];
        bool is_live = c < s.channels && label != s.ignore_label;
        float value = is_live ? (grad - smooth) * *scale : 0.0f;
        to[c] = (T)(value + (s.has_sum ? (float)to[c] : 0.0f));
    }
}

/* ---- the factor of backward: weight / labels that count, times the loss scale ---- */

static __device__ inline float factor_of(double count, const float *loss_scale, float weight)
{
    float factor = loss_scale ? *loss_scale : 1.0f;
    return count > 0.0 ? (float)((double)weight / count * (double)factor) : 0.0f;
}

static __global__ void __launch_bounds__(THREADS)
    loss_scale_of(const int64_t *labels, const float *loss_scale, float *scale,
                  struct loss_sum *partial, struct loss_span s, int stream)
{
    struct loss_sum sum = {0.0, 0};
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < s.rows; i += step) {
        sum.count += labels[i] != s.ignore_label;
    }
    if (sum_grid(&sum, partial, &tickets[stream]) && threadIdx.x == 0) {
        if (s.ranks) {
            *s.ranks = {0.0, (double)sum.count};
        } else {
            *scale = factor_of((double)sum.count, loss_scale, s.weight);
        }
    }
}

static __global__ void loss_scale_of_ranks(const float *loss_scale, float *scale,
                                           struct loss_span s)
{
    *scale = factor_of(s.ranks->count, loss_scale, s.weight);
}

/* ---- calls ---- */

#define PIXEL_CHANNELS_MAX 64

static struct loss_span span_of(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct loss_geom *g = &args->geom.loss;
    int64_t stride = g->is_image ? cuda_channels(cuda, g->c) : g->c;
    return {g->n * g->plane,
            (int)g->c,
            stride,
            g->ignore_label,
            (float)g->smoothing,
            (float)g->weight,
            (args->accumulate & 1U) != 0,
            NULL};
}

static bool is_by_pixel(const struct loss_geom *g)
{
    return g->is_image && g->c <= PIXEL_CHANNELS_MAX;
}

static int blocks_of(const struct cuda *cuda, const struct loss_geom *g, bool is_by_block)
{
    return loss_blocks(cuda, g->n * g->plane, is_by_block ? 1 : THREADS);
}

extern "C" int cuda_loss_check(const struct cuda *cuda, const struct kernel_args *args,
                               struct err *err)
{
    bool is_fused = args->id == K_UPSAMPLE_LOSS_FWD || args->id == K_UPSAMPLE_LOSS_BWD;
    int n_ranks = is_fused ? args->geom.upsample_loss.loss.n_ranks : args->geom.loss.n_ranks;
    if (n_ranks > 1 && !cuda->ranks) {
        return err_set(err, ERR_WORKLOAD,
                       "mean over the labels of %d ranks: this backend was opened for one",
                       n_ranks);
    }
    return 0;
}

extern "C" int64_t cuda_loss_workspace(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct loss_geom *g = &args->geom.loss;
    bool is_by_block = args->id == K_LOSS_FWD && !is_by_pixel(g);
    /* two more: the scale, and the ranks' sums */
    return (blocks_of(cuda, g, is_by_block) + 2) * (int64_t)sizeof(struct loss_sum);
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct loss_span s = span_of(cuda, args);
    const T *x = (const T *)args->in[LOSS_LOGITS_IN];
    const int64_t *labels = (const int64_t *)args->in[LOSS_LABELS_IN];
    float *loss = (float *)args->out[LOSS_LOSS_OUT];
    T *prob = (T *)args->out[LOSS_PROB_OUT];
    struct loss_sum *partial = (struct loss_sum *)args->workspace;
    bool is_pixel = is_by_pixel(&args->geom.loss);
    dim3 grid((unsigned)blocks_of(cuda, &args->geom.loss, !is_pixel));
    bool has_ranks = args->geom.loss.n_ranks > 1;
    s.ranks = has_ranks ? (struct loss_ranks *)(partial + grid.x) : NULL;
    if (is_pixel) {
        CUDA_LAUNCH(loss_pixels_fwd<T>, grid, dim3(THREADS), 0, cuda_stream(cuda, args), x, labels,
                    prob, loss, partial, s, args->stream);
    } else {
        CUDA_LAUNCH(loss_rows_fwd<T>, grid, dim3(THREADS), 0, cuda_stream(cuda, args), x, labels,
                    prob, loss, partial, s, args->stream);
    }
    CUDA_LAUNCHED(cuda);
    if (has_ranks) {
        loss_over_ranks(cuda, args, s.ranks, 2);
        CUDA_LAUNCH(loss_of_ranks, dim3(1), dim3(1), 0, cuda_stream(cuda, args), s.ranks, loss,
                    (float *)NULL, s.weight, s.has_sum);
        CUDA_LAUNCHED(cuda);
    }
}

template <typename T> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct loss_span s = span_of(cuda, args);
    const T *prob = (const T *)args->in[0];
    const int64_t *labels = (const int64_t *)args->in[1];
    T *dx = (T *)args->out[0];
    struct loss_sum *partial = (struct loss_sum *)args->workspace;
    int blocks = blocks_of(cuda, &args->geom.loss, false);
    float *scale = (float *)(partial + blocks);
    bool has_ranks = args->geom.loss.n_ranks > 1;
    s.ranks = has_ranks ? (struct loss_ranks *)(partial + blocks + 1) : NULL;
    CUDA_LAUNCH(loss_scale_of, dim3((unsigned)blocks), dim3(THREADS), 0, cuda_stream(cuda, args),
                labels, args->loss_scale, scale, partial, s, args->stream);
    CUDA_LAUNCHED(cuda);
    if (has_ranks) {
        loss_over_ranks(cuda, args, s.ranks, 2);
        CUDA_LAUNCH(loss_scale_of_ranks, dim3(1), dim3(1), 0, cuda_stream(cuda, args),
                    args->loss_scale, scale, s);
        CUDA_LAUNCHED(cuda);
    }
    if (is_by_pixel(&args->geom.loss)) {
        CUDA_LAUNCH(loss_pixels_bwd<T>, dim3((unsigned)((s.rows + THREADS - 1) / THREADS)),
                    dim3(THREADS), 0, cuda_stream(cuda, args), prob, labels, dx, scale, s);
    } else {
        CUDA_LAUNCH(loss_rows_bwd<T>, dim3((unsigned)s.rows), dim3(THREADS), 0,
                    cuda_stream(cuda, args), prob, labels, dx, scale, s);
    }
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_loss_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_loss_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd, (struct cuda *)self, args);
}
