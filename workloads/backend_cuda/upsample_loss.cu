/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear upsampling of few-channel logits fused with softmax cross-entropy: the upsampled logits are computed twice and never
   stored. Bytes, with a small image of C stored channels of E bytes: forward 12 a large pixel (label, lse) and C E a small one;
   backward 12 a large pixel and 2 C E a small one. Bound by exponentials: C of them a large pixel each way (16 a clock and
   multiprocessor), times 1.3 in backward, where neighbouring tiles both compute the pixels between them. */
#include "backend_cuda/loss.cuh"
#include "backend_cuda/resize.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

struct span {
    int n, channels, stored;
    struct axis rows, columns;
    int64_t ignore_label;
    float smoothing, weight;
    bool has_sum;
    struct loss_ranks *ranks; /* where this rank's sums go; NULL with one rank */
};

CUDA_GLOBAL unsigned tickets[CUDA_STREAMS_MAX];

/* The four small pixels that a large one is made from. */
template <typename T> struct corners {
    const T *at[4];
    float down, right;
};

template <typename T>
static __device__ inline corners<T> corners_of(const T *image, const struct span &s, int p, int q)
{
    struct tap row = tap_at(s.rows, p);
    struct tap column = tap_at(s.columns, q);
    const T *low = image + (int64_t)row.low * s.columns.n_in * s.stored;
    const T *high = image + (int64_t)row.high * s.columns.n_in * s.stored;
    int left = column.low * s.stored;
    int right = column.high * s.stored;
    return {{low + left, low + right, high + left, high + right}, row.weight, column.weight};
}

/* Channels [c, c + LANES) of the large pixel: the same bits wherever they are made. */
template <typename T>
static __device__ inline void logits(const corners<T> &from, int c, float *lanes)
{
    pack<T> packs[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        packs[k] = load_pack(from.at[k] + c);
    }
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        float top = (float)packs[0].lane[lane];
        float left = __fmaf_rn(from.down, __fsub_rn((float)packs[2].lane[lane], top), top);
        top = (float)packs[1].lane[lane];
        float right = __fmaf_rn(from.down, __fsub_rn((float)packs[3].lane[lane], top), top);
        lanes[lane] = __fmaf_rn(from.right, __fsub_rn(right, left), left);
    }
}

/* ---- forward: a thread a large pixel ---- */

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    upsample_loss_fwd(const T *x, const int64_t *labels, float *loss, float *lse, float *n_labels,
                      struct loss_sum *partial, struct span s, int stream)
{
    struct loss_sum all = {0.0, 0};
    int64_t plane = (int64_t)s.rows.n_out * s.columns.n_out;
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < s.n * plane; i += step) {
        int image = (int)(i / plane);
        int pixel = (int)(i % plane);
        int64_t label = labels[i];
        const T *small = x + (int64_t)image * s.rows.n_in * s.columns.n_in * s.stored;
        corners<T> from = corners_of(small, s, pixel / s.columns.n_out, pixel % s.columns.n_out);
        float largest = -INFINITY, total = 0.0f, sum = 0.0f, own = 0.0f;
        for (int c = 0; c < s.channels; c += LANES<T>) {
            float lanes[LANES<T>];
            float top = largest;
            logits(from, c, lanes);
#pragma unroll
            for (int lane = 0; lane < LANES<T>; lane++) {
                lanes[lane] = c + lane < s.channels ? lanes[lane] : -INFINITY;
                top = fmaxf(top, lanes[lane]);
                sum += c + lane < s.channels ? lanes[lane] : 0.0f;
                own = c + lane == label ? lanes[lane] : own;
            }
            total *= expf(largest - top);
            largest = top;
#pragma unroll
            for (int lane = 0; lane < LANES<T>; lane++) {
                total += expf(lanes[lane] - largest);
            }
        }
        float log_total = largest + logf(total);
        lse[i] = log_total;
        if (label != s.ignore_label) {
            float mean = sum / (float)s.channels;
            float value = log_total - (1.0f - s.smoothing) * own - s.smoothing * mean;
            all.loss += is_class(label, s.channels) ? (double)value : (double)NAN;
            all.count++;
        }
    }
    if (!sum_grid(&all, partial, &tickets[stream]) || threadIdx.x != 0) {
        return;
    }
    if (s.ranks) {
        *s.ranks = {all.loss, (double)all.count};
    } else {
        *loss = mean_loss(all, s.weight) + (s.has_sum ? *loss : 0.0f);
        *n_labels = (float)all.count;
    }
}

/* ---- backward: a block a tile of small pixels ---- */

/* A block of BWD_THREADS computes TILE_H x TILE_W small pixels for CHUNK channels. It goes through the large rows that touch the tile,
   BWD_THREADS large pixels at a time: each thread computes the gradient of one of them, then all add them up, first along the row and
   then into the one or two small rows. Shared memory: 128 x 33 + 4 x 32 x 32 floats are 33 KiB, six blocks a multiprocessor. */
#define BWD_THREADS 128
#define TILE_H      4
#define TILE_W      32
#define CHUNK       32

/* Gradients of the large pixels (p, q to q + BWD_THREADS), channels from c0 on. */
template <typename T>
static __device__ inline void make_row(const T *small, const int64_t *labels, const float *lse,
                                       const struct span &s, int64_t image, int p, int q,
                                       int q_last, int c0, float *grads)
{
    float *mine = grads + threadIdx.x * (CHUNK + 1);
    int chunk = min(CHUNK, s.channels - c0);
    if (q >= q_last) {
        return;
    }
    int64_t i = (image * s.rows.n_out + p) * s.columns.n_out + q;
    int64_t label = labels[i];
    corners<T> from = corners_of(small, s, p, q);
    float log_total = lse[i];
    float smooth = s.smoothing / (float)s.channels;
    bool is_live = label != s.ignore_label;
    for (int c = 0; c < chunk; c += LANES<T>) {
        float lanes[LANES<T>];
        logits(from, c0 + c, lanes);
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            /* exp(x) - 1 where x is near 0 keeps the digits that 1 - exp(x) would lose */
            bool is_own = c0 + c + lane == label;
            float grad = is_own ? expm1f(lanes[lane] - log_total) + s.smoothing
                                : expf(lanes[lane] - log_total);
            mine[c + lane] = is_live ? grad - smooth : 0.0f;
        }
    }
}

/* The small pixels of a block's tile, and large columns [first[w], last[w]) that touch each. */
struct tile {
    int h0, h_last, w0, w_last, chunk;
    const int *first, *last;
};

/* Adds the large row's pixels from q0 on to the small pixels they touch. A thread has the same small pixels and channels in
   every row. */
static __device__ inline void add_row(const struct span &s, const struct tile &tile, int p, int q0,
                                      const float *grads, float *sums)
{
    struct tap row = tap_at(s.rows, p);
    int q_end = min(q0 + BWD_THREADS, tile.last[tile.w_last - tile.w0 - 1]);
    int down = BWD_THREADS / tile.chunk;
    int across = BWD_THREADS % tile.chunk;
    int w = (int)threadIdx.x / tile.chunk;
    int c = (int)threadIdx.x % tile.chunk;
    while (w < tile.w_last - tile.w0) {
        float along = 0.0f;
        for (int q = max(tile.first[w], q0); q < min(tile.last[w], q_end); q++) {
            along += tap_weight(s.columns, tile.w0 + w, q) * grads[(q - q0) * (CHUNK + 1) + c];
        }
        float *to = sums + w * CHUNK + c;
        if (row.low >= tile.h0 && row.low < tile.h_last) {
            to[(row.low - tile.h0) * TILE_W * CHUNK] += tap_weight(s.rows, row.low, p) * along;
        }
        if (row.high != row.low && row.high >= tile.h0 && row.high < tile.h_last) {
            to[(row.high - tile.h0) * TILE_W * CHUNK] += tap_weight(s.rows, row.high, p) * along;
        }
        w += down;
        c += across;
        w += c >= tile.chunk ? 1 : 0;
        c -= c >= tile.chunk ? tile.chunk : 0;
    }
}

template <typename T>
static __global__ void __launch_bounds__(BWD_THREADS)
    upsample_loss_bwd(const T *x, const int64_t *labels, const float *lse, const float *n_labels,
                      const float *loss_scale, T *dx, struct span s)
{
    __shared__ float grads[BWD_THREADS * (CHUNK + 1)];
    __shared__ float sums[TILE_H * TILE_W * CHUNK];
    __shared__ int first[TILE_W], last[TILE_W];
    int n_across = (s.columns.n_in + TILE_W - 1) / TILE_W;
    int n_down = (s.rows.n_in + TILE_H - 1) / TILE_H;
    int64_t image = (int)blockIdx.x / (n_across * n_down);
    int c0 = (int)blockIdx.y * CHUNK;
    struct tile t = {(int)blockIdx.x / n_across % n_down * TILE_H,
                     0,
                     (int)blockIdx.x % n_across * TILE_W,
                     0,
                     min(CHUNK, s.channels - c0),
                     first,
                     last};
    t.h_last = min(t.h0 + TILE_H, s.rows.n_in);
    t.w_last = min(t.w0 + TILE_W, s.columns.n_in);
    const T *small = x + image * s.rows.n_in * s.columns.n_in * s.stored;
    int p_first, p_last, unused;
    touched(s.rows, t.h0, &p_first, &unused);
    touched(s.rows, t.h_last - 1, &unused, &p_last);
    if ((int)threadIdx.x < t.w_last - t.w0) {
        touched(s.columns, t.w0 + (int)threadIdx.x, &first[threadIdx.x], &last[threadIdx.x]);
    }
    for (int i = (int)threadIdx.x; i < TILE_H * TILE_W * CHUNK; i += BWD_THREADS) {
        sums[i] = 0.0f;
    }
    __syncthreads();
    int q_last = last[t.w_last - t.w0 - 1];
    for (int p = p_first; p < p_last; p++) {
        for (int q0 = first[0]; q0 < q_last; q0 += BWD_THREADS) {
            make_row(small, labels, lse, s, image, p, q0 + (int)threadIdx.x, q_last, c0, grads);
            __syncthreads();
            add_row(s, t, p, q0, grads, sums);
            __syncthreads();
        }
    }
    float factor =
        *n_labels > 0.0f ? s.weight / *n_labels * (loss_scale ? *loss_scale : 1.0f) : 0.0f;
    /* the last sums are visible to all: the loop ends with a barrier */
    int vecs = min(CHUNK, s.stored - c0) / LANES<T>;
    int per_row = (t.w_last - t.w0) * vecs;
    for (int i = (int)threadIdx.x; i < (t.h_last - t.h0) * per_row; i += BWD_THREADS) {
        int h = i / per_row;
        int w = i % per_row / vecs;
        int c = i % vecs * LANES<T>;
        float lanes[LANES<T>];
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            float sum = sums[(h * TILE_W + w) * CHUNK + c + lane];
            lanes[lane] = c + lane < t.chunk ? sum * factor : 0.0f;
        }
        int64_t pixel = (image * s.rows.n_in + t.h0 + h) * s.columns.n_in + t.w0 + w;
        store(dx + pixel * s.stored + c0 + c, lanes, s.has_sum);
    }
}

/* ---- calls ---- */

static struct span span_of(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct resize_geom *r = &args->geom.upsample_loss.resize;
    const struct loss_geom *l = &args->geom.upsample_loss.loss;
    return {(int)r->n,
            (int)r->c,
            (int)cuda_channels(cuda, r->c),
            axis_of(r->h, r->p, r->is_aligned),
            axis_of(r->w, r->q, r->is_aligned),
            l->ignore_label,
            (float)l->smoothing,
            (float)l->weight,
            (args->accumulate & 1U) != 0,
            NULL};
}

static int blocks_of(const struct cuda *cuda, const struct resize_geom *r)
{
    return loss_blocks(cuda, r->n * r->p * r->q, THREADS);
}

extern "C" int64_t cuda_upsample_loss_workspace(const struct cuda *cuda,
                                                const struct kernel_args *args)
{
    /* one more: the ranks' sums */
    int64_t n = blocks_of(cuda, &args->geom.upsample_loss.resize) + 1;
    return args->id == K_UPSAMPLE_LOSS_FWD ? n * (int64_t)sizeof(struct loss_sum) : 0;
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct span s = span_of(cuda, args);
    unsigned blocks = (unsigned)blocks_of(cuda, &args->geom.upsample_loss.resize);
    struct loss_sum *partial = (struct loss_sum *)args->workspace;
    float *loss = (float *)args->out[LOSS_LOSS_OUT];
    float *n_labels = (float *)args->out[LOSS_N_LABELS_OUT];
    bool has_ranks = args->geom.upsample_loss.loss.n_ranks > 1;
    s.ranks = has_ranks ? (struct loss_ranks *)(partial + blocks) : NULL;
    CUDA_LAUNCH(upsample_loss_fwd<T>, dim3(blocks), dim3(THREADS), 0, cuda_stream(cuda, args),
                (const T *)args->in[LOSS_LOGITS_IN], (const int64_t *)args->in[LOSS_LABELS_IN],
                loss, (float *)args->out[LOSS_LSE_OUT], n_labels, partial, s, args->stream);
    CUDA_LAUNCHED(cuda);
    if (has_ranks) {
        loss_over_ranks(cuda, args, s.ranks, 2);
        CUDA_LAUNCH(loss_of_ranks, dim3(1), dim3(1), 0, cuda_stream(cuda, args), s.ranks, loss,
                    n_labels, s.weight, s.has_sum);
        CUDA_LAUNCHED(cuda);
    }
}

template <typename T> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct span s = span_of(cuda, args);
    int across = (s.columns.n_in + TILE_W - 1) / TILE_W;
    int down = (s.rows.n_in + TILE_H - 1) / TILE_H;
    dim3 grid((unsigned)(s.n * across * down), (unsigned)((s.stored + CHUNK - 1) / CHUNK));
    CUDA_LAUNCH(upsample_loss_bwd<T>, grid, dim3(BWD_THREADS), 0, cuda_stream(cuda, args),
                (const T *)args->in[LOSS_LOGITS_IN], (const int64_t *)args->in[LOSS_LABELS_IN],
                (const float *)args->in[LOSS_LSE_IN], (const float *)args->in[LOSS_N_LABELS_IN],
                args->loss_scale, (T *)args->out[0], s);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_upsample_loss_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_upsample_loss_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd, (struct cuda *)self, args);
}
