/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax cross-entropy of rows together with its gradient. Bytes a logit of E bytes: 2E from and to memory, and E from L2: a row of 30,522
   in half precision is 61 KB, a block goes over it twice, and the 4 blocks of each of 132 multiprocessors hold 32 MB at a time. Labels are
   counted first, for the mean. Rows that were rounded up are read in vectors; the padding is ignored, and is 0 in the gradient. */
#include "backend_cuda/loss.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

#define BLOCKS_PER_MULTIPROCESSOR 4

struct row_span {
    int64_t rows;
    int c, pitch; /* elements of a row, and from one row to the next */
    int64_t ignore_label;
    float smoothing, weight;
    bool has_loss_sum, has_grad_sum;
    struct loss_ranks *ranks; /* where this rank's sums go; NULL with one rank */
};

/* From the labels: the factor of each row's loss, and that of its gradient. */
struct row_scale {
    float loss, grad;
};

CUDA_GLOBAL unsigned tickets[CUDA_STREAMS_MAX];

static __device__ inline struct row_scale scale_of(double count, const float *loss_scale,
                                                   float weight)
{
    double mean = count > 0.0 ? (double)weight / count : 0.0;
    double factor = loss_scale ? (double)*loss_scale : 1.0;
    return {(float)mean, (float)(mean * factor)};
}

static __global__ void __launch_bounds__(THREADS)
    row_count(const int64_t *labels, const float *loss_scale, struct row_scale *scale,
              struct row_span s)
{
    struct loss_sum sum = {0.0, 0};
    for (int64_t i = threadIdx.x; i < s.rows; i += THREADS) {
        sum.count += labels[i] != s.ignore_label;
    }
    sum = sum_block(sum);
    if (threadIdx.x == 0) {
        if (s.ranks) {
            *s.ranks = {0.0, (double)sum.count};
        } else {
            *scale = scale_of((double)sum.count, loss_scale, s.weight);
        }
    }
}

static __global__ void row_count_of_ranks(const float *loss_scale, struct row_scale *scale,
                                          struct row_span s)
{
    *scale = scale_of(s.ranks->count, loss_scale, s.weight);
}

/* Elements that a thread moves at once. */
template <typename T, bool IN_VECTORS> constexpr int WIDTH = IN_VECTORS ? LANES<T> : 1;

template <typename T, bool IN_VECTORS>
static __device__ inline void load_some(const T *from, float *to)
{
    if constexpr (IN_VECTORS) {
        load(from, to);
    } else {
        *to = (float)*from;
    }
}

template <typename T, bool IN_VECTORS>
static __device__ inline void store_some(T *to, const float *from)
{
    if constexpr (IN_VECTORS) {
        store(to, from);
    } else {
        *to = (T)*from;
    }
}

/* What every element of a row needs. */
struct row_facts {
    float lse, smooth, scale;
    int label;  /* -1: no class */
    float keep; /* 1 - smoothing */
};

static __device__ inline float grad_of(float value, int c, const struct row_facts &f)
{
    float target = f.smooth + (c == f.label ? f.keep : 0.0f);
    return f.scale == 0.0f ? 0.0f : (expf(value - f.lse) - target) * f.scale;
}

/* One row by one block; its loss in all threads. */
template <typename T, bool IN_VECTORS>
static __device__ inline double one_row(const T *x, T *grad, int64_t label,
                                        const struct row_scale &scale, const struct row_span &s)
{
    constexpr int width = WIDTH<T, IN_VECTORS>;
    /* Longer stretches would spill registers. */
    [[maybe_unused]] constexpr int rounds = IN_VECTORS ? 2 : 1;
    struct soft soft = {-INFINITY, 0.0f, 0.0f};
    float value[width];
    float old[width] = {};
#pragma unroll rounds
    for (int c = width * (int)threadIdx.x; c < s.pitch; c += width * THREADS) {
        load_some<T, IN_VECTORS>(x + c, value);
#pragma unroll
        for (int i = 0; i < width; i++) {
            if (c + i < s.c) {
                soft_add(&soft, value[i]);
            }
        }
    }
    soft = soft_block(soft);
    bool is_ignored = label == s.ignore_label;
    bool is_known = is_class(label, s.c);
    float own = is_known ? (float)x[label] : 0.0f;
    struct row_facts f = {soft.largest + logf(soft.total), s.smoothing / (float)s.c,
                          is_ignored ? 0.0f : scale.grad, is_known ? (int)label : -1,
                          1.0f - s.smoothing};
    __syncthreads(); /* grad may alias x: `own` has been read by then */
#pragma unroll rounds
    for (int c = width * (int)threadIdx.x; c < s.pitch; c += width * THREADS) {
        load_some<T, IN_VECTORS>(x + c, value);
        if (s.has_grad_sum) {
            load_some<T, IN_VECTORS>(grad + c, old);
        }
#pragma unroll
        for (int i = 0; i < width; i++) {
            value[i] = c + i < s.c ? grad_of(value[i], c + i, f) + old[i] : 0.0f;
        }
        store_some<T, IN_VECTORS>(grad + c, value);
    }
    float loss = f.lse - f.keep * own - s.smoothing * soft.sum / (float)s.c;
    return is_ignored ? 0.0 : is_known ? (double)loss : (double)NAN;
}

template <typename T, bool IN_VECTORS>
static __global__ void __launch_bounds__(THREADS)
    row_loss(const T *x, const int64_t *labels, const struct row_scale *scale, float *loss, T *grad,
             struct loss_sum *partial, struct row_span s, int stream)
{
    struct row_scale factors = *scale;
    struct loss_sum sum = {0.0, 0};
    for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
        double one = one_row<T, IN_VECTORS>(x + row * s.pitch, grad + row * s.pitch, labels[row],
                                            factors, s);
        sum.loss += threadIdx.x == 0 ? one : 0.0;
    }
    if (!sum_grid(&sum, partial, &tickets[stream]) || threadIdx.x != 0) {
        return;
    }
    if (s.ranks) {
        s.ranks->loss = sum.loss; /* the count is already that of all ranks */
    } else {
        *loss = (float)(sum.loss * (double)factors.loss) + (s.has_loss_sum ? *loss : 0.0f);
    }
}

static int row_blocks(const struct cuda *cuda, int64_t rows)
{
    int64_t n_sm = cuda->n_multiprocessors > 0 ? cuda->n_multiprocessors : 1;
    int64_t most = BLOCKS_PER_MULTIPROCESSOR * n_sm;
    return (int)(rows < most ? rows : most);
}

/* Partial sums, then the factors and the ranks' sums. */
extern "C" int64_t cuda_row_loss_workspace(const struct cuda *cuda, const struct kernel_args *args)
{
    return (row_blocks(cuda, args->geom.loss.n) + 2) * (int64_t)sizeof(struct loss_sum);
}

template <typename T> static void run(struct cuda *cuda, const struct kernel_args *args)
{
    const struct loss_geom *g = &args->geom.loss;
    struct row_span s = {g->n,
                         (int)g->c,
                         (int)(g->is_rounded ? cuda_channels(cuda, g->c) : g->c),
                         g->ignore_label,
                         (float)g->smoothing,
                         (float)g->weight,
                         (args->accumulate & OPERAND_BIT(LOSS_LOSS_OUT)) != 0,
                         (args->accumulate & OPERAND_BIT(LOSS_GRAD_OUT)) != 0,
                         NULL};
    int blocks = row_blocks(cuda, g->n);
    const T *x = (const T *)args->in[LOSS_LOGITS_IN];
    const int64_t *labels = (const int64_t *)args->in[LOSS_LABELS_IN];
    struct loss_sum *partial = (struct loss_sum *)args->workspace;
    struct row_scale *scale = (struct row_scale *)(partial + blocks);
    float *loss = (float *)args->out[LOSS_LOSS_OUT];
    s.ranks = g->n_ranks > 1 ? (struct loss_ranks *)(partial + blocks + 1) : NULL;
    T *grad = (T *)args->out[LOSS_GRAD_OUT];
    CUDA_LAUNCH(row_count, dim3(1), dim3(THREADS), 0, cuda_stream(cuda, args), labels,
                args->loss_scale, scale, s);
    CUDA_LAUNCHED(cuda);
    if (s.ranks) {
        loss_over_ranks(cuda, args, s.ranks, 2);
        CUDA_LAUNCH(row_count_of_ranks, dim3(1), dim3(1), 0, cuda_stream(cuda, args),
                    args->loss_scale, scale, s);
        CUDA_LAUNCHED(cuda);
    }
    if (g->is_rounded) {
        CUDA_LAUNCH((row_loss<T, true>), dim3((unsigned)blocks), dim3(THREADS), 0,
                    cuda_stream(cuda, args), x, labels, scale, loss, grad, partial, s,
                    args->stream);
    } else {
        CUDA_LAUNCH((row_loss<T, false>), dim3((unsigned)blocks), dim3(THREADS), 0,
                    cuda_stream(cuda, args), x, labels, scale, loss, grad, partial, s,
                    args->stream);
    }
    CUDA_LAUNCHED(cuda);
    if (s.ranks) {
        loss_over_ranks(cuda, args, s.ranks, 1);
        CUDA_LAUNCH(loss_of_ranks, dim3(1), dim3(1), 0, cuda_stream(cuda, args), s.ranks, loss,
                    (float *)NULL, s.weight, s.has_loss_sum);
        CUDA_LAUNCHED(cuda);
    }
}

extern "C" void cuda_row_loss(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run, (struct cuda *)self, args);
}
