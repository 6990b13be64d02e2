/* SPDX-License-Identifier: Apache-2.0 */
/* ReLU, addition, concatenation. Bytes an element of E bytes: relu_fwd 2E, add_fwd 3E, relu_bwd 3E, add_bwd 2E (3E with ReLU), E
   more where it adds to its output; concat 2E. All are bound by memory. */
#include "backend_cuda/vec.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

/* ---- element by element ---- */

/* Vectors a thread: two loads of each input are in flight at once; with 2048 threads a multiprocessor 64 KiB. */
#define EACH 2

struct elem_span {
    int64_t count; /* elements as they are stored */
    bool has_relu, has_sum;
};

static int64_t elem_stored(const struct cuda *cuda, const struct elem_geom *g)
{
    return g->plane > 0 ? g->count / g->c * cuda_channels(cuda, g->c) : g->count;
}

/* The vector that begins at element i, which may be the last and not whole. */
template <typename T>
static __device__ inline void load_part(const T *from, int64_t i, int64_t count, float *to)
{
    if (i + LANES<T> <= count) {
        load(from + i, to);
        return;
    }
    for (int lane = 0; lane < LANES<T>; lane++) {
        to[lane] = i + lane < count ? (float)from[i + lane] : 0.0f;
    }
}

template <typename T>
static __device__ inline void put_part(T *to, int64_t i, int64_t count, float *from, bool has_sum)
{
    if (i + LANES<T> <= count) {
        store(to + i, from, has_sum);
        return;
    }
    for (int lane = 0; lane < LANES<T> && i + lane < count; lane++) {
        to[i + lane] = (T)(from[lane] + (has_sum ? (float)to[i + lane] : 0.0f));
    }
}

static __device__ inline int64_t elem_first(int lanes)
{
    return ((int64_t)blockIdx.x * EACH * THREADS + threadIdx.x) * lanes;
}

/* a + b, or a alone */
template <typename T, bool HAS_B>
static __global__ void __launch_bounds__(THREADS)
    elem_fwd(const T *a, const T *b, T *y, struct elem_span span)
{
    float values[EACH][LANES<T>], more[EACH][LANES<T>];
    int64_t first = elem_first(LANES<T>);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int64_t i = first + (int64_t)k * THREADS * LANES<T>;
        load_part(a, i, span.count, values[k]);
        if (HAS_B) {
            load_part(b, i, span.count, more[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            float value = HAS_B ? values[k][lane] + more[k][lane] : values[k][lane];
            values[k][lane] = span.has_relu ? relu(value) : value;
        }
        put_part(y, first + (int64_t)k * THREADS * LANES<T>, span.count, values[k], false);
    }
}

/* dy where y > 0; dy alone without ReLU */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    elem_bwd(const T *dy, const T *y, T *dx, struct elem_span span)
{
    float grads[EACH][LANES<T>], mask[EACH][LANES<T>];
    int64_t first = elem_first(LANES<T>);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        int64_t i = first + (int64_t)k * THREADS * LANES<T>;
        load_part(dy, i, span.count, grads[k]);
        if (span.has_relu) {
            load_part(y, i, span.count, mask[k]);
        }
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) {
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            bool is_kept = !span.has_relu || mask[k][lane] > 0.0f;
            grads[k][lane] = is_kept ? grads[k][lane] : 0.0f;
        }
        put_part(dx, first + (int64_t)k * THREADS * LANES<T>, span.count, grads[k], span.has_sum);
    }
}

static dim3 elem_dim(int64_t count, int lanes)
{
    int64_t per_block = (int64_t)EACH * THREADS * lanes;
    return dim3((unsigned)((count + per_block - 1) / per_block));
}

template <typename T>
static void run_fwd(struct cuda *cuda, const struct kernel_args *args, bool has_relu)
{
    const struct elem_span span = {elem_stored(cuda, &args->geom.elem), has_relu, false};
    const T *b = args->id == K_ADD_FWD ? (const T *)args->in[1] : NULL;
    if (b) {
        CUDA_LAUNCH((elem_fwd<T, true>), elem_dim(span.count, LANES<T>), dim3(THREADS), 0,
                    cuda_stream(cuda, args), (const T *)args->in[0], b, (T *)args->out[0], span);
    } else {
        CUDA_LAUNCH((elem_fwd<T, false>), elem_dim(span.count, LANES<T>), dim3(THREADS), 0,
                    cuda_stream(cuda, args), (const T *)args->in[0], b, (T *)args->out[0], span);
    }
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct elem_span span = {elem_stored(cuda, &args->geom.elem), args->geom.elem.has_relu,
                                   (args->accumulate & 1U) != 0};
    CUDA_LAUNCH(elem_bwd<T>, elem_dim(span.count, LANES<T>), dim3(THREADS), 0,
                cuda_stream(cuda, args), (const T *)args->in[0], (const T *)args->in[1],
                (T *)args->out[0], span);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_relu_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args, true);
}

extern "C" void cuda_add_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args, args->geom.elem.has_relu);
}

extern "C" void cuda_elem_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd, (struct cuda *)self, args);
}

/* ---- concatenation ---- */

/* Parts need not begin at a vector: then a vector is assembled from two neighbours. */
struct concat_span {
    int64_t rows;
    int cv; /* vectors of a row that is written */
    int n_parts;
    int channels[CONCAT_IN_MAX]; /* of each part */
    int first[CONCAT_IN_MAX];    /* its first channel in the whole */
    bool has_sum;
};

struct concat_parts {
    const void *x[CONCAT_IN_MAX];
};

/* lanes[i] = lanes[i + by]: by < LANES<T>, in three steps so that all stays in registers */
template <typename T> static __device__ inline void slide(float *lanes, int by)
{
#pragma unroll
    for (int step = 1; step < LANES<T>; step *= 2) {
        bool moves = (by & step) != 0;
#pragma unroll
        for (int i = 0; i + step < 2 * LANES<T>; i++) {
            lanes[i] = moves ? lanes[i + step] : lanes[i];
        }
    }
}

/* LANES<T> channels of a row of `stored` ones, beginning at channel `first`; those outside are 0. */
template <typename T>
static __device__ inline void load_unaligned(const T *row, int stored, int first, float *lanes)
{
    int base = first >= 0 ? first / LANES<T> * LANES<T> : -LANES<T>;
#pragma unroll
    for (int i = 0; i < 2 * LANES<T>; i++) {
        lanes[i] = 0.0f;
    }
    if (base >= 0 && base < stored) {
        load(row + base, lanes);
    }
    if (first != base && base + LANES<T> < stored) {
        load(row + base + LANES<T>, lanes + LANES<T>);
    }
    slide<T>(lanes, first - base);
}

static __device__ inline int stored_channels(int channels, int lanes)
{
    return (channels + lanes - 1) / lanes * lanes;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    concat_fwd(struct concat_parts parts, T *y, struct concat_span span)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    int64_t row = i / (unsigned)span.cv;
    int channel = (int)(i % (unsigned)span.cv) * LANES<T>;
    float out[LANES<T>] = {0.0f};
    if (row >= span.rows) {
        return;
    }
#pragma unroll
    for (int part = 0; part < CONCAT_IN_MAX; part++) {
        int from = channel - span.first[part];
        if (part >= span.n_parts || from <= -LANES<T> || from >= span.channels[part]) {
            continue;
        }
        float lanes[2 * LANES<T>];
        int stored = stored_channels(span.channels[part], LANES<T>);
        load_unaligned((const T *)parts.x[part] + row * stored, stored, from, lanes);
#pragma unroll
        for (int lane = 0; lane < LANES<T>; lane++) {
            bool is_mine = from + lane >= 0 && from + lane < span.channels[part];
            out[lane] = is_mine ? lanes[lane] : out[lane];
        }
    }
    store(y + row * span.cv * LANES<T> + channel, out);
}

/* channels[0] and first[0] are those of the part whose gradient it is, channels[1] those of the whole */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    concat_bwd(const T *dy, T *dx, struct concat_span span)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    int64_t row = i / (unsigned)span.cv;
    int channel = (int)(i % (unsigned)span.cv) * LANES<T>;
    float lanes[2 * LANES<T>];
    if (row >= span.rows) {
        return;
    }
    int stored = stored_channels(span.channels[1], LANES<T>);
    load_unaligned(dy + row * stored, stored, span.first[0] + channel, lanes);
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        lanes[lane] = channel + lane < span.channels[0] ? lanes[lane] : 0.0f;
    }
    store(dx + row * span.cv * LANES<T> + channel, lanes, span.has_sum);
}

static dim3 concat_dim(const struct concat_span *span)
{
    return dim3((unsigned)((span->rows * span->cv + THREADS - 1) / THREADS));
}

template <typename T> static void run_concat_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct concat_geom *g = &args->geom.concat;
    struct concat_span span = {};
    span.rows = g->n * g->plane;
    span.cv = (int)(cuda_channels(cuda, g->c) / LANES<T>);
    struct concat_parts parts = {};
    int first = 0;
    for (int part = 0; part < CONCAT_IN_MAX && g->parts[part] > 0; part++) {
        parts.x[part] = args->in[part];
        span.channels[part] = (int)g->parts[part];
        span.first[part] = first;
        span.n_parts = part + 1;
        first += (int)g->parts[part];
    }
    CUDA_LAUNCH(concat_fwd<T>, concat_dim(&span), dim3(THREADS), 0, cuda_stream(cuda, args), parts,
                (T *)args->out[0], span);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_concat_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct concat_geom *g = &args->geom.concat;
    int64_t channels = g->parts[g->part];
    struct concat_span span = {};
    span.rows = g->n * g->plane;
    span.cv = (int)(cuda_channels(cuda, channels) / LANES<T>);
    span.channels[0] = (int)channels;
    span.channels[1] = (int)g->c;
    for (int part = 0; part < g->part; part++) {
        span.first[0] += (int)g->parts[part];
    }
    span.has_sum = (args->accumulate & 1U) != 0;
    CUDA_LAUNCH(concat_bwd<T>, concat_dim(&span), dim3(THREADS), 0, cuda_stream(cuda, args),
                (const T *)args->in[0], (T *)args->out[0], span);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_concat_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_concat_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_concat_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_concat_bwd, (struct cuda *)self, args);
}
