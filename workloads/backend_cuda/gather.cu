/* SPDX-License-Identifier: Apache-2.0 */
/* Chosen rows. Bytes an element of E bytes of the chosen rows: 2E; backward writes zeros to all rows first unless it adds to them. */
#include "backend_cuda/rows.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

struct gather_span {
    int s, p, c;
    bool has_sum;
};

static __device__ inline int64_t place_of(const int64_t *at, int64_t idx)
{
    return at ? at[idx] : 0;
}

/* A block a chosen row. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    gather_fwd(const T *x, const int64_t *at, T *y, struct gather_span g)
{
    int64_t idx = blockIdx.x;
    const T *from = x + (idx / g.p * g.s + place_of(at, idx)) * g.c;
    T *to = y + idx * g.c;
    for (int c = (int)threadIdx.x; c < g.c; c += THREADS) {
        to[c] = from[c];
    }
}

/* A block a chosen row: the first one of a place adds up all rows that chose it, in order. */
template <typename T>
static __global__ void __launch_bounds__(THREADS)
    gather_bwd(const T *dy, const int64_t *at, T *dx, struct gather_span g)
{
    int64_t idx = blockIdx.x;
    int64_t first = idx / g.p * g.p;
    int64_t place = place_of(at, idx);
    T *to = dx + (idx / g.p * g.s + place) * g.c;
    bool is_later = false;
    for (int64_t i = first + threadIdx.x; i < idx; i += THREADS) {
        is_later = is_later || place_of(at, i) == place;
    }
    if (__syncthreads_or(is_later)) {
        return;
    }
    for (int c = (int)threadIdx.x; c < g.c; c += THREADS) {
        float sum = 0.0f;
        for (int64_t i = idx; i < first + g.p; i++) {
            sum += place_of(at, i) == place ? (float)dy[i * g.c + c] : 0.0f;
        }
        store_one(&to[c], sum, g.has_sum);
    }
}

template <typename T> static void run_fwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct gather_geom *g = &args->geom.gather;
    struct gather_span span = {(int)g->s, (int)g->p, (int)g->c, false};
    CUDA_LAUNCH(gather_fwd<T>, dim3((unsigned)(g->n * g->p)), dim3(THREADS), 0,
                cuda_stream(cuda, args), (const T *)args->in[0], (const int64_t *)args->in[1],
                (T *)args->out[0], span);
    CUDA_LAUNCHED(cuda);
}

template <typename T> static void run_bwd(struct cuda *cuda, const struct kernel_args *args)
{
    const struct gather_geom *g = &args->geom.gather;
    bool has_sum = (args->accumulate & 1U) != 0;
    struct gather_span span = {(int)g->s, (int)g->p, (int)g->c, has_sum};
    size_t bytes = (size_t)(g->n * g->s * g->c) * sizeof(T);
    if (!has_sum && !cuda_ok(cuda, cudaMemsetAsync(args->out[0], 0, bytes, cuda_stream(cuda, args)),
                             "cudaMemsetAsync")) {
        return;
    }
    CUDA_LAUNCH(gather_bwd<T>, dim3((unsigned)(g->n * g->p)), dim3(THREADS), 0,
                cuda_stream(cuda, args), (const T *)args->in[0], (const int64_t *)args->in[1],
                (T *)args->out[0], span);
    CUDA_LAUNCHED(cuda);
}

extern "C" void cuda_gather_fwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_fwd, (struct cuda *)self, args);
}

extern "C" void cuda_gather_bwd(void *self, const struct kernel_args *args)
{
    CUDA_BY_TYPE(args, run_bwd, (struct cuda *)self, args);
}
