/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear upsampling. Backward gathers: each input pixel adds up the outputs it has a share in, in their order. Bytes an element of E
   bytes, x being an input's and y an output's: E x + E y both ways. Bound by memory; what neighbours share comes from the caches
   (forward reads each x four times per y, backward each y four times). */
#include "backend_cuda/resize.cuh"
#include "backend_cuda/vec.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

struct resize_span {
    int n, cv;
    struct axis rows, columns;
    bool has_sum;
};

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    upsample_fwd(const T *x, T *y, struct resize_span s)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    unsigned vec = i % (unsigned)s.cv;
    unsigned pixel = i / (unsigned)s.cv;
    unsigned line = pixel / (unsigned)s.columns.n_out;
    unsigned image = line / (unsigned)s.rows.n_out;
    if (image >= (unsigned)s.n) {
        return;
    }
    struct tap row = tap_at(s.rows, (int)(line % (unsigned)s.rows.n_out));
    struct tap column = tap_at(s.columns, (int)(pixel % (unsigned)s.columns.n_out));
    const T *from = x + ((int64_t)image * s.rows.n_in * s.columns.n_in * s.cv + vec) * LANES<T>;
    int64_t width = (int64_t)s.cv * LANES<T>;
    const T *low = from + row.low * s.columns.n_in * width;
    const T *high = from + row.high * s.columns.n_in * width;
    pack<T> corners[4] = {load_pack(low + column.low * width), load_pack(low + column.high * width),
                          load_pack(high + column.low * width),
                          load_pack(high + column.high * width)};
    float out[LANES<T>];
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        float left = (float)corners[0].lane[lane];
        float right = (float)corners[1].lane[lane];
        left += row.weight * ((float)corners[2].lane[lane] - left);
        right += row.weight * ((float)corners[3].lane[lane] - right);
        out[lane] = left + column.weight * (right - left);
    }
    store(y + (int64_t)i * LANES<T>, out);
}

/* What input pixel (h, w) gets from every step-th of the output rows that it touches, from row number `start` on. */
template <typename T>
static __device__ inline void gather(const T *dy, const struct resize_span &s, int h, int w,
                                     int start, int step, float *sum)
{
    int p_first, p_last, q_first, q_last;
    int64_t width = (int64_t)s.cv * LANES<T>;
    touched(s.rows, h, &p_first, &p_last);
    touched(s.columns, w, &q_first, &q_last);
    for (int p = p_first + start; p < p_last; p += step) {
        float row_weight = tap_weight(s.rows, h, p);
        for (int q = q_first; q < q_last; q++) {
            float weight = row_weight * tap_weight(s.columns, w, q);
            float lanes[LANES<T>];
            load(dy + ((int64_t)p * s.columns.n_out + q) * width, lanes);
#pragma unroll
            for (int lane = 0; lane < LANES<T>; lane++) {
                sum[lane] += weight * lanes[lane];
            }
        }
    }
}

/* One thread computes an input vector. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    upsample_bwd(const T *dy, T *dx, struct resize_span s)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    unsigned vec = i % (unsigned)s.cv;
    unsigned pixel = i / (unsigned)s.cv;
    unsigned line = pixel / (unsigned)s.columns.n_in;
    unsigned image = line / (unsigned)s.rows.n_in;
    float sum[LANES<T>] = {0.0f};
    if (image >= (unsigned)s.n) {
        return;
    }
    const T *from = dy + ((int64_t)image * s.rows.n_out * s.columns.n_out * s.cv + vec) * LANES<T>;
    gather(from, s, (int)(line % (unsigned)s.rows.n_in), (int)(pixel % (unsigned)s.columns.n_in), 0,
           1, sum);
    store(dx + (int64_t)i * LANES<T>, sum, s.has_sum);
}

/* The same where an input pixel has a share in many output pixels: a block computes tx vectors of one, each by ty
   threads. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    upsample_wide_bwd(const T *dy, T *dx, struct rows_plan plan, struct resize_span s)
{
    __shared__ float shared[LANES<T> * THREADS];
    struct rows_at at = rows_here(plan);
    int pixel = (int)blockIdx.x;
    int line = pixel / s.columns.n_in;
    float sum[LANES<T>] = {0.0f};
    if (at.is_inside) {
        int64_t image = line / s.rows.n_in;
        const T *from = dy + (image * s.rows.n_out * s.columns.n_out * s.cv + at.vec) * LANES<T>;
        gather(from, s, line % s.rows.n_in, pixel % s.columns.n_in, at.line, plan.ty, sum);
    }
    sum_lines<LANES<T>>(sum, shared, plan, at.line);
    if (at.is_inside && at.line == 0) {
        store(dx + ((int64_t)pixel * s.cv + at.vec) * LANES<T>, sum, s.has_sum);
    }
}

/* ---- calls ---- */

/* From so many output pixels an input pixel on, several threads share the work. */
#define GATHER_ALONE_MAX 512

template <typename T>
static struct resize_span span_of(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct resize_geom *g = &args->geom.resize;
    struct resize_span s = {};
    s.n = (int)g->n;
    s.cv = (int)(cuda_channels(cuda, g->c) / LANES<T>);
    s.rows = axis_of(g->h, g->p, g->is_aligned);
    s.columns = axis_of(g->w, g->q, g->is_aligned);
    s.has_sum = (args->accumulate & 1U) != 0;
    return s;
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct resize_span s = span_of<T>(cuda, args);
    int64_t vectors = (int64_t)s.n * s.rows.n_out * s.columns.n_out * s.cv;
    CUDA_LAUNCH(upsample_fwd<T>, dim3((unsigned)((vectors + THREADS - 1) / THREADS)), dim3(THREADS),
                0, cuda_stream(cuda, args), (const T *)args->in[0], (T *)args->out[0], s);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    struct resize_span s = span_of<T>(cuda, args);
    const T *dy = (const T *)args->in[0];
    T *dx = (T *)args->out[0];
    int64_t pixels = (int64_t)s.n * s.rows.n_in * s.columns.n_in;
    int64_t shared_by =
        4 * ((int64_t)s.rows.n_out * s.columns.n_out) / ((int64_t)s.rows.n_in * s.columns.n_in);
    if (shared_by <= GATHER_ALONE_MAX) {
        int64_t vectors = pixels * s.cv;
        CUDA_LAUNCH(upsample_bwd<T>, dim3((unsigned)((vectors + THREADS - 1) / THREADS)),
                    dim3(THREADS), 0, cuda_stream(cuda, args), dy, dx, s);
    } else {
        struct rows_plan plan = rows_tiles(1, s.cv, (s.cv + 7) / 8);
        plan.n_blocks = (int)pixels;
        CUDA_LAUNCH(upsample_wide_bwd<T>, rows_dim(&plan), dim3(THREADS), 0,
                    cuda_stream(cuda, args), dy, dx, plan, s);
    }
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_upsample_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_upsample_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd, (struct cuda *)self, args);
}
