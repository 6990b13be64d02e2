/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout, forward and backward alike. Bytes an element of E bytes: 2E, 3E where it adds to its output. The hash is some 20 integer
   instructions an element: in half precision about as long as the memory traffic. */
#include "backend_cuda/hash.cuh"
#include "backend_cuda/vec.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

struct dropout_span {
    int64_t count; /* as stored */
    int cv;        /* vectors of a row; 0: not an image, stored as its shape says */
    int64_t channels, plane;
    int64_t run, first;
    bool is_by_plane; /* run is the plane of a channel, and first whole ones */
    bool has_sum;
    uint64_t stream_hash, threshold;
    float scale;
};

/* The number of the run that lane `lane` of stored element i belongs to. */
static __device__ inline int64_t run_of(const struct dropout_span &span, int64_t image,
                                        int64_t pixel, int64_t channel)
{
    if (span.is_by_plane) {
        return span.first / span.plane + image * span.channels + channel;
    }
    int64_t number = span.first + (image * span.channels + channel) * span.plane + pixel;
    return span.run == 1 ? number : number / span.run;
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    dropout_image(const T *x, const int64_t *step, T *y, struct dropout_span span)
{
    unsigned i = blockIdx.x * THREADS + threadIdx.x;
    float lanes[LANES<T>];
    if ((int64_t)i * LANES<T> >= span.count) {
        return;
    }
    load(x + (int64_t)i * LANES<T>, lanes);
    uint64_t base = dropout_base(span.stream_hash, *step);
    unsigned row = i / (unsigned)span.cv;
    unsigned channel = i % (unsigned)span.cv * LANES<T>;
    unsigned image = row / (unsigned)span.plane;
    unsigned pixel = row % (unsigned)span.plane;
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        int64_t run = run_of(span, image, pixel, channel + lane);
        bool keeps = dropout_is_kept(base, span.threshold, run);
        lanes[lane] = keeps && channel + lane < span.channels ? lanes[lane] * span.scale : 0.0f;
    }
    store(y + (int64_t)i * LANES<T>, lanes, span.has_sum);
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    dropout_flat(const T *x, const int64_t *step, T *y, struct dropout_span span)
{
    int64_t first = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * LANES<T>;
    uint64_t base = dropout_base(span.stream_hash, *step);
    bool is_whole = first + LANES<T> <= span.count;
    float lanes[LANES<T>];
    if (is_whole) {
        load(x + first, lanes);
    }
#pragma unroll
    for (int lane = 0; lane < LANES<T>; lane++) {
        int64_t i = first + lane;
        if (i >= span.count) {
            break;
        }
        int64_t run = span.run == 1 ? span.first + i : (span.first + i) / span.run;
        float value = is_whole ? lanes[lane] : (float)x[i];
        lanes[lane] = dropout_is_kept(base, span.threshold, run) ? value * span.scale : 0.0f;
        if (!is_whole) {
            y[i] = (T)(lanes[lane] + (span.has_sum ? (float)y[i] : 0.0f));
        }
    }
    if (is_whole) {
        store(y + first, lanes, span.has_sum);
    }
}

template <typename T> static void run(struct cuda *cuda, const struct kernel_args *args)
{
    const struct dropout_geom *g = &args->geom.dropout;
    struct dropout_span span = {};
    bool is_image = g->plane > 0;
    int64_t stored = is_image ? cuda_channels(cuda, g->c) : 0;
    span.count = is_image ? g->count / g->c * stored : g->count;
    span.cv = (int)(stored / LANES<T>);
    span.channels = g->c;
    span.plane = g->plane;
    span.run = g->run;
    span.first = g->first;
    span.is_by_plane = is_image && g->run == g->plane && g->first % g->plane == 0;
    span.has_sum = (args->accumulate & 1U) != 0;
    span.stream_hash = hash_mix(g->stream);
    span.threshold = dropout_threshold(g->rate);
    span.scale = (float)(1.0 / (1.0 - g->rate));
    int64_t vectors = (span.count + LANES<T> - 1) / LANES<T>;
    dim3 grid((unsigned)((vectors + THREADS - 1) / THREADS));
    const T *x = (const T *)args->in[0];
    const int64_t *step = (const int64_t *)args->in[1];
    T *y = (T *)args->out[0];
    if (is_image) {
        CUDA_LAUNCH(dropout_image<T>, grid, dim3(THREADS), 0, cuda_stream(cuda, args), x, step, y,
                    span);
    } else {
        CUDA_LAUNCH(dropout_flat<T>, grid, dim3(THREADS), 0, cuda_stream(cuda, args), x, step, y,
                    span);
    }
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_dropout(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run, (struct cuda *)self, args);
}
