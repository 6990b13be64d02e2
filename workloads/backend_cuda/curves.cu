/* SPDX-License-Identifier: Apache-2.0 */
/* GELU and tanh. Bytes an element of E bytes: forward 2E, backward 3E, one more where it adds to its output. erff is some 20
   instructions: in half precision about as long as the memory traffic. */
#include "backend_cuda/rows.cuh"

extern "C" {
#include "backend_cuda/kernels.h"
}

/* The normal distribution's share below x. 1 + erf loses digits of a small share, which half precision does not have
   anyway. */
template <typename T> static __device__ inline float share_below(float x)
{
    float at = x * 0.70710678f; /* 1 / sqrt(2) */
    return sizeof(T) == sizeof(__half) ? 0.5f + 0.5f * erff(at) : 0.5f * erfcf(-at);
}

template <typename T> struct gelu {
    static __device__ inline float at(float x)
    {
        return x * share_below<T>(x);
    }
    static __device__ inline float slope(float x)
    {
        return share_below<T>(x) + x * expf(-0.5f * x * x) * 0.39894228f; /* 1 / sqrt(2 pi) */
    }
};

/* slope() has y. */
template <typename T> struct hyperbolic {
    static __device__ inline float at(float x)
    {
        return tanhf(x);
    }
    static __device__ inline float slope(float y)
    {
        return 1.0f - y * y;
    }
};

/* dy is NULL forward; then x is what the curve is taken of. */
template <typename T, typename Curve>
static __device__ inline void one(const T *dy, const T *x, T *to, int64_t i, bool has_sum)
{
    float value = dy ? (float)dy[i] * Curve::slope((float)x[i]) : Curve::at((float)x[i]);
    store_one(&to[i], value, has_sum);
}

template <typename T, typename Curve>
static __global__ void __launch_bounds__(THREADS)
    curve(const T *dy, const T *x, T *to, int64_t count, bool has_sum)
{
    int64_t first = ((int64_t)blockIdx.x * THREADS + threadIdx.x) * LANES<T>;
    float lanes[LANES<T>];
    float slopes[LANES<T>];
    if (first + LANES < T >> count) {
        for (int64_t i = first; i < count; i++) {
            one<T, Curve>(dy, x, to, i, has_sum);
        }
        return;
    }
    load(x + first, lanes);
    if (dy) {
        load(dy + first, slopes);
    }
#pragma unroll
    for (int i = 0; i < LANES<T>; i++) {
        lanes[i] = dy ? slopes[i] * Curve::slope(lanes[i]) : Curve::at(lanes[i]);
    }
    store(to + first, lanes, has_sum);
}

template <typename T, typename Curve>
static void launch(struct cuda *cuda, const struct kernel_args *args, const void *dy, const void *x)
{
    int64_t count = args->geom.elem.count;
    bool has_sum = (args->accumulate & 1U) != 0;
    CUDA_LAUNCH((curve<T, Curve>), dim3(blocks_for(count, (int64_t)THREADS * LANES<T>)),
                dim3(THREADS), 0, cuda_stream(cuda, args), (const T *)dy, (const T *)x,
                (T *)args->out[0], count, has_sum);
    CUDA_LAUNCHED(cuda);
}

template <template <typename> typename Curve>
static void run(void *self, const struct kernel_args *args, const void *dy, const void *x)
{
    struct cuda *cuda = (struct cuda *)self;
    if (args->dtype == DT_F16) {
        launch<__half, Curve<__half>>(cuda, args, dy, x);
    } else {
        launch<float, Curve<float>>(cuda, args, dy, x);
    }
}

extern "C" void cuda_gelu_fwd(void *self, const struct kernel_args *args)
{
    run<gelu>(self, args, NULL, args->in[0]);
}

extern "C" void cuda_gelu_bwd(void *self, const struct kernel_args *args)
{
    run<gelu>(self, args, args->in[0], args->in[1]);
}

extern "C" void cuda_tanh_fwd(void *self, const struct kernel_args *args)
{
    run<hyperbolic>(self, args, NULL, args->in[0]);
}

extern "C" void cuda_tanh_bwd(void *self, const struct kernel_args *args)
{
    run<hyperbolic>(self, args, args->in[0], args->in[1]);
}
