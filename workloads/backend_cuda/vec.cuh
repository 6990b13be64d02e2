/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels share: vectors of 16 bytes, how rows and channels of an image are spread over threads, sums over a block in
   a fixed order.

   An image is (N*H*W rows, channels); a row holds cv vectors of LANES<T> channels, the last of them filled up with zeros.
   Vectors of channels (gamma, mean, ...) are float and filled up likewise. Vectors of an image are counted in 32 bits: 64 GiB. */
#pragma once

#include "backend_cuda/launch.cuh"

#define THREADS 256

/* Device memory that a .cu file owns, 0 at the start. In the emulator a section tells it from shared memory. */
#ifdef CUDA_EMU
#define CUDA_GLOBAL static __attribute__((section(".data.device")))
#else
#define CUDA_GLOBAL static __device__
#endif

/* Calls fn<T>(...) with the T of the call's elements. */
#define CUDA_BY_TYPE(args, fn, ...)                                                                \
    do {                                                                                           \
        if ((args)->dtype == DT_F16) {                                                             \
            fn<__half>(__VA_ARGS__);                                                               \
        } else {                                                                                   \
            fn<float>(__VA_ARGS__);                                                                \
        }                                                                                          \
    } while (0)

template <typename T> constexpr int LANES = (int)(16 / sizeof(T));

/* One load or store instruction. */
template <typename T> struct alignas(16) pack {
    T lane[LANES<T>];
};

template <typename T> static __device__ inline pack<T> load_pack(const T *from)
{
    return *(const pack<T> *)from;
}

template <typename T> static __device__ inline void unpack(const pack<T> &from, float *to)
{
#pragma unroll
    for (int i = 0; i < LANES<T>; i++) {
        to[i] = (float)from.lane[i];
    }
}

template <typename T> static __device__ inline void load(const T *from, float *to)
{
    unpack(load_pack(from), to);
}

template <typename T> static __device__ inline void store(T *to, const float *from)
{
    pack<T> packed;
#pragma unroll
    for (int i = 0; i < LANES<T>; i++) {
        packed.lane[i] = (T)from[i];
    }
    *(pack<T> *)to = packed;
}

/* += where has_sum, else = */
template <typename T> static __device__ inline void store(T *to, float *from, bool has_sum)
{
    if (has_sum) {
        float old[LANES<T>];
        load(to, old);
#pragma unroll
        for (int i = 0; i < LANES<T>; i++) {
            from[i] += old[i];
        }
    }
    store(to, from);
}

/* (channels) float, from channel `first` on: LANES<T> of them */
template <typename T> static __device__ inline void load_channels(const float *from, float *to)
{
#pragma unroll
    for (int i = 0; i < LANES<T>; i += 4) {
        load(from + i, to + i);
    }
}

template <typename T> static __device__ inline void store_channels(float *to, const float *from)
{
#pragma unroll
    for (int i = 0; i < LANES<T>; i += 4) {
        store(to + i, from + i);
    }
}

static __device__ inline float relu(float x)
{
    return x < 0.0f ? 0.0f : x; /* NaN stays NaN */
}

/* ---- rows and channels over threads ---- */

/* A block of THREADS is tx vectors wide and ty rows high; the grid is n_blocks along the rows (x) and n_tiles along the
   channels (y). Neighbouring threads read neighbouring 16 bytes; where a tile spans all channels, across several rows. */
struct rows_plan {
    int64_t rows;
    int cv, tx, ty, n_tiles, n_blocks;
};

static inline struct rows_plan rows_tiles(int64_t rows, int cv, int n_tiles)
{
    struct rows_plan plan = {rows, cv, (cv + n_tiles - 1) / n_tiles, 1, 0, 1};
    plan.ty = THREADS / plan.tx;
    plan.n_tiles = (cv + plan.tx - 1) / plan.tx;
    return plan;
}

/* For a sum over all rows. A tile is up to 32 vectors (512 bytes) wide. 4 blocks of 256 threads a multiprocessor, each thread with 4 loads
   under way, are 64 KiB in flight a multiprocessor, where some 20 are needed for full bandwidth (3.3 TB/s times 0.7 us over 132). No
   fewer than 4 rows a thread; where that leaves multiprocessors idle, tiles get narrower down to 64 bytes. */
static inline struct rows_plan rows_reduce(const struct cuda *cuda, int64_t rows, int cv)
{
    int64_t n_sm = cuda->n_multiprocessors > 0 ? cuda->n_multiprocessors : 1;
    struct rows_plan plan = rows_tiles(rows, cv, (cv + 31) / 32);
    for (;;) {
        int64_t most = (rows + 4 * plan.ty - 1) / (4 * plan.ty);
        int64_t wanted = (4 * n_sm + plan.n_tiles - 1) / plan.n_tiles;
        plan.n_blocks = (int)(wanted < most ? wanted : most);
        if ((int64_t)plan.n_blocks * plan.n_tiles >= n_sm || plan.tx <= 4) {
            return plan;
        }
        plan = rows_tiles(rows, cv, 2 * plan.n_tiles);
    }
}

#define APPLY_ROWS 4

/* For element-wise work: APPLY_ROWS rows a thread, all loaded before the first is used. */
static inline struct rows_plan rows_apply(int64_t rows, int cv)
{
    struct rows_plan plan = rows_tiles(rows, cv, (cv + 31) / 32);
    int64_t per_block = (int64_t)APPLY_ROWS * plan.ty;
    plan.n_blocks = (int)((rows + per_block - 1) / per_block);
    return plan;
}

static inline dim3 rows_dim(const struct rows_plan *plan)
{
    return dim3((unsigned)plan->n_blocks, (unsigned)plan->n_tiles);
}

/* Where the calling thread is. */
struct rows_at {
    int line;       /* 0 to ty */
    int vec;        /* which vector of a row */
    bool is_inside; /* has any work at all */
};

static __device__ inline struct rows_at rows_here(const struct rows_plan &plan)
{
    int line = (int)threadIdx.x / plan.tx;
    int vec = (int)blockIdx.y * plan.tx + (int)threadIdx.x % plan.tx;
    return {line, vec, line < plan.ty && vec < plan.cv};
}

/* Rows that block `block` of a reduction sees: row r belongs to block (r / ty) % n_blocks. */
static __device__ inline int64_t rows_of_block(const struct rows_plan &plan, int block)
{
    int64_t round = (int64_t)plan.ty * plan.n_blocks;
    int64_t rest = plan.rows % round - (int64_t)block * plan.ty;
    rest = rest < 0 ? 0 : rest < plan.ty ? rest : plan.ty;
    return plan.rows / round * plan.ty + rest;
}

/* ---- sums over a block and over the grid ---- */

/* True in all threads of the block that is the last of n_blocks to reach `ticket`; what the others wrote before is then
   visible. The ticket is 0 before and after. Calls that share one must not run at the same time: one a stream and tile. */
static __device__ inline bool is_last_block(unsigned *ticket, unsigned n_blocks)
{
    __shared__ bool is_last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        is_last = atomicAdd(ticket, 1U) == n_blocks - 1;
        if (is_last) {
            *ticket = 0;
        }
    }
    __syncthreads();
    __threadfence();
    return is_last;
}

/* Adds value[i] of all lines to that of line 0, in a fixed order; shared has N * THREADS floats. */
template <int N>
static __device__ inline void sum_lines(float *value, float *shared, const struct rows_plan &plan,
                                        int line)
{
    int me = (int)threadIdx.x;
#pragma unroll
    for (int i = 0; i < N; i++) {
        shared[i * THREADS + me] = value[i];
    }
    int step = 1;
    while (2 * step < plan.ty) {
        step *= 2;
    }
    for (; step > 0; step /= 2) {
        __syncthreads();
        if (line < step && line + step < plan.ty) {
#pragma unroll
            for (int i = 0; i < N; i++) {
                shared[i * THREADS + me] += shared[i * THREADS + me + step * plan.tx];
            }
        }
    }
#pragma unroll
    for (int i = 0; i < N; i++) {
        value[i] = shared[i * THREADS + me];
    }
    __syncthreads();
}
