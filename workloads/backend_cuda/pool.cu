/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling. Backward gathers: each input pixel reads the windows that contain it, so that sums have one order. Bytes an element of E
   bytes, x being an input's and y an output's: maxpool_fwd E x + (E + 4) y, maxpool_bwd E x + (E + 4) y, avgpool_fwd E x + E y,
   avgpool_bwd E x + E y. Bound by memory; what windows share comes from the caches. */
#include "backend_cuda/vec.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

struct pool_span {
    int n, h, w, p, q, window, stride, pad;
    int channels, cv;
    bool is_flat, has_sum;
};

/* A pixel's place and its vector, from the number of the thread. */
struct pixel {
    unsigned n, y, x, vec;
};

static __device__ inline struct pixel pixel_at(unsigned i, unsigned cv, unsigned height,
                                               unsigned width)
{
    unsigned at = i / cv;
    unsigned row = at / width;
    return {row / height, row % height, at % width, i % cv};
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    maxpool_fwd(const T *x, T *y, int32_t *where, struct pool_span s)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    struct pixel at = pixel_at(i, s.cv, s.p, s.q);
    float best[LANES<T>];
    int32_t best_at[LANES<T>];
    if (at.n >= (unsigned)s.n) {
        return;
    }
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        best_at[lane] = -1;
        best[lane] = 0.0f;
    }
    int top = (int)at.y * s.stride - s.pad;
    int left = (int)at.x * s.stride - s.pad;
    for (int h = max(top, 0); h < min(top + s.window, s.h); h++) {
        for (int w = max(left, 0); w < min(left + s.window, s.w); w++) {
            float lanes[LANES<T>];
            load(x + ((((int64_t)at.n * s.h + h) * s.w + w) * s.cv + at.vec) * LANES<T>, lanes);
#pragma unroll
            for (int lane = 0; lane < LANES<T>; lane++) {
                /* The first of equals wins, and a NaN wins over all: PyTorch's rule. */
                bool wins =
                    best_at[lane] < 0 || lanes[lane] > best[lane] || lanes[lane] != lanes[lane];
                best[lane] = wins ? lanes[lane] : best[lane];
                best_at[lane] = wins ? h * s.w + w : best_at[lane];
            }
        }
    }
    store(y + (int64_t)i * LANES<T>, best);
    int4 *to = (int4 *)(where + (int64_t)i * LANES<T>);
#pragma unroll
    for (int k = 0; k < LANES<T> / 4; k++) {
        to[k] =
            make_int4(best_at[4 * k], best_at[4 * k + 1], best_at[4 * k + 2], best_at[4 * k + 3]);
    }
}

/* Windows [first, last) of one axis that contain position `at`. */
static __device__ inline void holders(int at, int n_windows, const struct pool_span &s,
                                      int *ret_first, int *ret_last)
{
    int low = at + s.pad - s.window + 1; /* smallest start, in padded coordinates */
    *ret_first = low > 0 ? (low + s.stride - 1) / s.stride : 0;
    *ret_last = min((at + s.pad) / s.stride + 1, n_windows);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    maxpool_bwd(const T *dy, const int32_t *where, T *dx, struct pool_span s)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    struct pixel at = pixel_at(i, s.cv, s.h, s.w);
    float sum[LANES<T>] = {0.0f};
    int p_first, p_last, q_first, q_last;
    if (at.n >= (unsigned)s.n) {
        return;
    }
    holders((int)at.y, s.p, s, &p_first, &p_last);
    holders((int)at.x, s.q, s, &q_first, &q_last);
    int32_t me = (int32_t)(at.y * s.w + at.x);
    for (int p = p_first; p < p_last; p++) {
        for (int q = q_first; q < q_last; q++) {
            int64_t from = ((((int64_t)at.n * s.p + p) * s.q + q) * s.cv + at.vec) * LANES<T>;
            float lanes[LANES<T>];
            load(dy + from, lanes);
            const int4 *places = (const int4 *)(where + from);
#pragma unroll
            for (int k = 0; k < LANES<T> / 4; k++) {
                int4 place = places[k];
                sum[4 * k] += place.x == me ? lanes[4 * k] : 0.0f;
                sum[4 * k + 1] += place.y == me ? lanes[4 * k + 1] : 0.0f;
                sum[4 * k + 2] += place.z == me ? lanes[4 * k + 2] : 0.0f;
                sum[4 * k + 3] += place.w == me ? lanes[4 * k + 3] : 0.0f;
            }
        }
    }
    store(dx + (int64_t)i * LANES<T>, sum, s.has_sum);
}

/* ---- average ---- */

/* An output vector of pixel `row` (N*P*Q): of an image, or of (N, C) without padding. */
template <typename T>
static __device__ inline void put_pooled(T *y, int64_t row, int vec, const struct pool_span &s,
                                         const float *lanes)
{
    if (!s.is_flat) {
        store(y + (row * s.cv + vec) * LANES<T>, lanes);
        return;
    }
    for (int lane = 0; lane < LANES<T> && vec * LANES<T> + lane < s.channels; lane++) {
        y[row * s.channels + vec * LANES<T> + lane] = (T)lanes[lane];
    }
}

/* A block computes tx vectors of one output pixel, each by ty threads. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    avgpool_fwd(const T *x, T *y, struct rows_plan plan, struct pool_span s)
{
    __shared__ float shared[LANES<T> * THREADS];
    struct rows_at at = rows_here(plan);
    int out = (int)blockIdx.x;
    int top = out / s.q % s.p * s.stride;
    int left = out % s.q * s.stride;
    int height = min(s.window, s.h - top);
    int width = min(s.window, s.w - left);
    const T *image = x + (int64_t)(out / (s.p * s.q)) * s.h * s.w * s.cv * LANES<T>;
    float sum[LANES<T>] = {0.0f};
    for (int k = at.line; at.is_inside && k < height * width; k += plan.ty) {
        int64_t row = (int64_t)(top + k / width) * s.w + left + k % width;
        float lanes[LANES<T>];
        load(image + (row * s.cv + at.vec) * LANES<T>, lanes);
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            sum[lane] += lanes[lane];
        }
    }
    sum_lines<LANES<T>>(sum, shared, plan, at.line);
    if (at.is_inside && at.line == 0) {
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            sum[lane] /= (float)(height * width);
        }
        put_pooled(y, out, at.vec, s, sum);
    }
}

/* The same for small windows: one thread computes an output vector. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    avgpool_small_fwd(const T *x, T *y, struct pool_span s)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    struct pixel at = pixel_at(i, s.cv, s.p, s.q);
    float sum[LANES<T>] = {0.0f};
    if (at.n >= (unsigned)s.n) {
        return;
    }
    int top = (int)at.y * s.stride;
    int left = (int)at.x * s.stride;
    int bottom = min(top + s.window, s.h);
    int right = min(left + s.window, s.w);
    for (int h = top; h < bottom; h++) {
        for (int w = left; w < right; w++) {
            float lanes[LANES<T>];
            load(x + ((((int64_t)at.n * s.h + h) * s.w + w) * s.cv + at.vec) * LANES<T>, lanes);
#pragma unroll
            for (int lane = 0; lane < LANES<T>; lane++) {
                sum[lane] += lanes[lane];
            }
        }
    }
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        sum[lane] /= (float)((bottom - top) * (right - left));
    }
    put_pooled(y, i / (unsigned)s.cv, (int)at.vec, s, sum);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    avgpool_bwd(const T *dy, T *dx, struct pool_span s)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    struct pixel at = pixel_at(i, s.cv, s.h, s.w);
    float lanes[LANES<T>] = {0.0f};
    if (at.n >= (unsigned)s.n) {
        return;
    }
    int p = (int)at.y / s.stride;
    int q = (int)at.x / s.stride;
    int64_t row = ((int64_t)at.n * s.p + p) * s.q + q;
    int count = min(s.window, s.h - p * s.stride) * min(s.window, s.w - q * s.stride);
    if (!s.is_flat) {
        load(dy + (row * s.cv + at.vec) * LANES<T>, lanes);
    } else {
        int channel = (int)at.vec * LANES<T>;
        for (int lane = 0; lane < LANES<T> && channel + lane < s.channels; lane++) {
            lanes[lane] = (float)dy[row * s.channels + channel + lane];
        }
    }
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        lanes[lane] /= (float)count;
    }
    store(dx + (int64_t)i * LANES<T>, lanes, s.has_sum);
}

/* ---- calls ---- */

/* From so many pixels in a window on, several threads share one. */
#define POOL_ALONE_MAX 32

template <typename T>
static struct pool_span span_of(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct pool_geom *g = &args->geom.pool;
    struct pool_span s = {};
    s.n = (int)g->n;
    s.h = (int)g->h;
    s.w = (int)g->w;
    s.p = (int)g->p;
    s.q = (int)g->q;
    s.window = (int)g->window;
    s.stride = (int)g->stride;
    s.pad = (int)g->pad;
    s.channels = (int)g->c;
    s.cv = (int)(cuda_channels(cuda, g->c) / LANES<T>);
    s.is_flat = g->is_flat;
    s.has_sum = (args->accumulate & 1U) != 0;
    return s;
}

static dim3 vectors_dim(int64_t vectors)
{
    return dim3((unsigned)((vectors + THREADS - 1) / THREADS));
}

template <typename T> static void run_max_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct pool_span s = span_of<T>(cuda, args);
    CUDA_LAUNCH(maxpool_fwd<T>, vectors_dim((int64_t)s.n * s.p * s.q * s.cv), dim3(THREADS), 0,
                cuda_stream(cuda, args), (const T *)args->in[0], (T *)args->out[0],
                (int32_t *)args->out[1], s);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_max_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct pool_span s = span_of<T>(cuda, args);
    CUDA_LAUNCH(maxpool_bwd<T>, vectors_dim((int64_t)s.n * s.h * s.w * s.cv), dim3(THREADS), 0,
                cuda_stream(cuda, args), (const T *)args->in[0], (const int32_t *)args->in[1],
                (T *)args->out[0], s);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_avg_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct pool_span s = span_of<T>(cuda, args);
    const T *x = (const T *)args->in[0];
    T *y = (T *)args->out[0];
    if ((int64_t)s.window * s.window <= POOL_ALONE_MAX) {
        CUDA_LAUNCH(avgpool_small_fwd<T>, vectors_dim((int64_t)s.n * s.p * s.q * s.cv),
                    dim3(THREADS), 0, cuda_stream(cuda, args), x, y, s);
    } else {
        /* 128 bytes of channels and 32 threads a sum; there are few pixels, so tiles are narrow. */
        struct rows_plan plan = rows_tiles(1, s.cv, (s.cv + 7) / 8);
        plan.n_blocks = s.n * s.p * s.q;
        CUDA_LAUNCH(avgpool_fwd<T>, rows_dim(&plan), dim3(THREADS), 0, cuda_stream(cuda, args), x,
                    y, plan, s);
    }
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_avg_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct pool_span s = span_of<T>(cuda, args);
    CUDA_LAUNCH(avgpool_bwd<T>, vectors_dim((int64_t)s.n * s.h * s.w * s.cv), dim3(THREADS), 0,
                cuda_stream(cuda, args), (const T *)args->in[0], (T *)args->out[0], s);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_maxpool_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_max_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_maxpool_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_max_bwd, (struct cuda *)self, args);
}

extern "C" void cuda_avgpool_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_avg_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_avgpool_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_avg_bwd, (struct cuda *)self, args);
}
