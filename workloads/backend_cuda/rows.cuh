/* SPDX-License-Identifier: Apache-2.0 */
/* What the row kernels share. Rows are stored without padding: where a row is no whole number of vectors, elements are read one by
   one. */
#pragma once

#include "backend_cuda/vec.cuh"

#include <math.h>

#define WARP      32
#define ALL_LANES 0xffffffffU

/* In all lanes, in a fixed order. */
static __device__ inline float warp_sum(float value)
{
#pragma unroll
    for (int step = WARP / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(ALL_LANES, value, step);
    }
    return value;
}

template <typename T> static inline bool is_in_vectors(int64_t width)
{
    return width % LANES<T> == 0;
}

static inline unsigned blocks_for(int64_t items, int64_t per_block)
{
    return (unsigned)((items + per_block - 1) / per_block);
}

/* += where has_sum, else = */
template <typename T> static __device__ inline void store_one(T *to, float value, bool has_sum)
{
    *to = (T)(value + (has_sum ? (float)*to : 0.0f));
}

/* The last stage of sums over rows: out[i] (+)= sum over n_parts of parts (n_parts, width), in the order of the parts; a
   block has 32 columns and 8 lines. out[0] and out[1] are the halves of a row, of `half` elements; out[1] may be absent. */
template <typename T> struct part_sums {
    const float *parts;
    int n_parts;
    int width, half;
    T *out[2];
    bool has_sum[2];
};

#define PART_LINES (THREADS / WARP)

template <typename T>
static __global__ void __launch_bounds__(THREADS) sum_parts(struct part_sums<T> s)
{
    __shared__ float lines[PART_LINES][WARP];
    int lane = (int)threadIdx.x % WARP;
    int line = (int)threadIdx.x / WARP;
    int column = (int)blockIdx.x * WARP + lane;
    float sum = 0.0f;
    for (int part = line; part < s.n_parts && column < s.width; part += PART_LINES) {
        sum += s.parts[(int64_t)part * s.width + column];
    }
    lines[line][lane] = sum;
    __syncthreads();
    if (line == 0 && column < s.width) {
        for (int i = 1; i < PART_LINES; i++) {
            sum += lines[i][lane];
        }
        int side = column < s.half ? 0 : 1;
        store_one(&s.out[side][column - side * s.half], sum, s.has_sum[side]);
    }
}
