/* SPDX-License-Identifier: Apache-2.0 */
/* Two launches a batch: the weights of each row and column, in double as the CPU makes them, then a thread a pixel of the result. Bytes
   a pixel of the result: 16 written, 8 more for its label; 3 (or 4) a pixel of the source, as its neighbours' reads are found in the
   caches. */
#include "backend_cuda/vec.cuh"

#include <math.h>

extern "C" {
#include "backend_cuda/augment.h"
}

/* One axis of one image. */
struct stretch {
    int src_at, src_len, res_len, off, out_len;
    bool is_flipped;
    double spread; /* half the width of the triangle, in source pixels */
    int n_taps;
};

static __host__ __device__ inline struct stretch stretch_of(const struct augment_image &image,
                                                            bool is_x, int out_len)
{
    struct stretch s = {image.src_y, image.src_h, image.res_h, image.off_y, out_len, false, 1.0, 0};
    if (is_x) {
        s.src_at = image.src_x;
        s.src_len = image.src_w;
        s.res_len = image.res_w;
        s.off = image.off_x;
        s.is_flipped = image.is_flipped != 0;
    }
    double scale = (double)s.src_len / (double)s.res_len;
    s.spread = image.is_antialiased && scale > 1.0 ? scale : 1.0;
    int wanted = (int)ceil(2.0 * s.spread);
    s.n_taps = wanted < s.src_len ? wanted : s.src_len;
    return s;
}

/* Where position `out` of the result lies in the resized image; outside of [0, res_len) is padding. */
static __device__ inline int resized_at(const struct stretch &s, int out)
{
    return (s.is_flipped ? s.out_len - 1 - out : out) + s.off;
}

/* Start values outside the image. Where there is no room for an axis's weights the result is NaN: the caller did not call
   augment_taps. */
#define PADDING (-1)
#define NO_ROOM (-2)

/* starts (n, height + width), weights (n, height + width, n_taps). The weights are those of weigh() in
   data/resample.c. */
static __global__ void __launch_bounds__(THREADS)
    augment_weights(struct augment_batch batch, int *starts, float *weights)
{
    int lines = batch.height + batch.width;
    int i = (int)(blockIdx.x * THREADS + threadIdx.x);
    if (i >= batch.n * lines) {
        return;
    }
    bool is_x = i % lines >= batch.height;
    int out = is_x ? i % lines - batch.height : i % lines;
    const struct augment_image image = batch.images[i / lines];
    struct stretch s = stretch_of(image, is_x, is_x ? batch.width : batch.height);
    int at = resized_at(s, out);
    float *mine = weights + (int64_t)i * batch.n_taps;
    if (at < 0 || at >= s.res_len || s.n_taps > batch.n_taps) {
        starts[i] = s.n_taps > batch.n_taps ? NO_ROOM : PADDING;
        return;
    }
    double centre = (double)s.src_len / (double)s.res_len * ((double)at + 0.5);
    int start = (int)floor(centre - s.spread + 0.5);
    start = min(max(start, 0), s.src_len - s.n_taps);
    double sum = 0.0;
    for (int t = 0; t < s.n_taps; t++) {
        double distance = fabs((double)(start + t) + 0.5 - centre) / s.spread;
        sum += distance < 1.0 ? 1.0 - distance : 0.0;
    }
    for (int t = 0; t < s.n_taps; t++) {
        double distance = fabs((double)(start + t) + 0.5 - centre) / s.spread;
        mine[t] = (float)(distance < 1.0 ? (1.0 - distance) / sum : 0.0);
    }
    starts[i] = s.src_at + start;
}

struct colours {
    float factor[3], base[3];
};

static __device__ inline int64_t label_at(const struct augment_batch &batch,
                                          const struct augment_image &image, int y, int x)
{
    struct stretch in_y = stretch_of(image, false, batch.height);
    struct stretch in_x = stretch_of(image, true, batch.width);
    int row = in_y.src_at + (int)((int64_t)resized_at(in_y, y) * in_y.src_len / in_y.res_len);
    int column = in_x.src_at + (int)((int64_t)resized_at(in_x, x) * in_x.src_len / in_x.res_len);
    return image.labels[(int64_t)row * image.width + column];
}

template <typename T>
static __global__ void __launch_bounds__(THREADS)
    augment_pixels(struct augment_batch batch, const int *starts, const float *weights,
                   struct colours colours, T *out, int64_t *labels)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    int64_t plane = (int64_t)batch.height * batch.width;
    if (i >= batch.n * plane) {
        return;
    }
    int n = (int)(i / plane);
    int y = (int)(i % plane) / batch.width;
    int x = (int)(i % plane) % batch.width;
    const struct augment_image image = batch.images[n];
    int64_t line_y = (int64_t)n * (batch.height + batch.width) + y;
    int64_t line_x = (int64_t)n * (batch.height + batch.width) + batch.height + x;
    int top = starts[line_y];
    int left = starts[line_x];
    bool is_inside = top >= 0 && left >= 0;
    float lanes[LANES<T>] = {0.0f};
    if (top == NO_ROOM || left == NO_ROOM) {
        lanes[0] = lanes[1] = lanes[2] = NAN;
    } else if (is_inside) {
        int down = stretch_of(image, false, batch.height).n_taps;
        int across = stretch_of(image, true, batch.width).n_taps;
        const float *weight_y = weights + line_y * batch.n_taps;
        const float *weight_x = weights + line_x * batch.n_taps;
        for (int r = 0; r < down; r++) {
            const uint8_t *row = image.pixels + ((int64_t)(top + r) * image.width + left) * 3;
            float sum[3] = {0.0f};
            for (int s = 0; s < across; s++) {
#pragma unroll
                for (int c = 0; c < 3; c++) {
                    sum[c] += weight_x[s] * (float)row[3 * s + c];
                }
            }
#pragma unroll
            for (int c = 0; c < 3; c++) {
                lanes[c] += weight_y[r] * sum[c];
            }
        }
#pragma unroll
        for (int c = 0; c < 3; c++) {
            lanes[c] = colours.base[c] + colours.factor[c] * lanes[c];
        }
    }
    store(out + i * LANES<T>, lanes); /* 3 channels are stored as LANES */
    if (labels) {
        labels[i] = is_inside && image.labels ? label_at(batch, image, y, x) : batch.ignored;
    }
}

/* ---- calls ---- */

extern "C" int augment_taps(const struct augment_image *image)
{
    int down = stretch_of(*image, false, 0).n_taps;
    int across = stretch_of(*image, true, 0).n_taps;
    return down > across ? down : across;
}

static int64_t n_lines(const struct augment_batch *batch)
{
    return (int64_t)batch->n * (batch->height + batch->width);
}

extern "C" int64_t cuda_augment_workspace(const struct augment_batch *batch)
{
    return n_lines(batch) * (int64_t)(sizeof(int) + (size_t)batch->n_taps * sizeof(float));
}

static dim3 threads_dim(int64_t threads)
{
    return dim3((unsigned)((threads + THREADS - 1) / THREADS));
}

extern "C" void cuda_augment(struct cuda *cuda, const struct augment_batch *batch, void *workspace,
                             void *out, int64_t *labels)
{
    int *starts = (int *)workspace;
    float *weights = (float *)(starts + n_lines(batch));
    struct colours colours;
    cudaStream_t stream = batch->stream;
    int64_t pixels = (int64_t)batch->n * batch->height * batch->width;
    for (int c = 0; c < 3; c++) {
        colours.factor[c] = (float)(1.0 / (255.0 * batch->std[c]));
        colours.base[c] = (float)(-batch->mean[c] / batch->std[c]);
    }
    CUDA_LAUNCH(augment_weights, threads_dim(n_lines(batch)), dim3(THREADS), 0, stream, *batch,
                starts, weights);
    CUDA_LAUNCHED(cuda);
    if (cuda->is_amp) {
        CUDA_LAUNCH(augment_pixels<__half>, threads_dim(pixels), dim3(THREADS), 0, stream, *batch,
                    (const int *)starts, (const float *)weights, colours, (__half *)out, labels);
    } else {
        CUDA_LAUNCH(augment_pixels<float>, threads_dim(pixels), dim3(THREADS), 0, stream, *batch,
                    (const int *)starts, (const float *)weights, colours, (float *)out, labels);
    }
    CUDA_LAUNCHED(cuda);
}
