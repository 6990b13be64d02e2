/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the CUDA toolkit's header of this name (README.md): CUDA C++ kernels as C++17, run by emu_block.c. */
#pragma once

#ifndef __cplusplus
#include "cuda_runtime_api.h"
#else

#include "cuda_runtime_api.h"
#include "emu.h"
#include "emu_vector.h"

#include <stdlib.h>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
/* One block runs at a time. The linker script emu.ld gathers these so that each block finds them poisoned. */
#define __shared__   static
#ifndef __restrict__
#define __restrict__ __restrict
#endif
#define CUDA_SHARED(type, name) type *name = (type *)emu_shared

struct dim3 : emu_dim {
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1)
    {
        x = x_, y = y_, z = z_;
    }
};

#define threadIdx emu_thread_idx
#define blockIdx  emu_block_idx
#define blockDim  emu_block_dim
#define gridDim   emu_grid_dim
#define warpSize  32

/* The parameters are copied when the kernel is launched, as the runtime does. */
template <typename... Params> struct emu_closure {
    void (*kernel)(Params...);
    std::tuple<Params...> params;

    static void call(void *self)
    {
        emu_closure *closure = (emu_closure *)self;
        std::apply(closure->kernel, closure->params);
    }
    static void drop(void *self)
    {
        delete (emu_closure *)self;
    }
};

template <typename... Params, typename... Args>
static inline void emu_launch_kernel(const char *name, void (*kernel)(Params...), dim3 grid,
                                     dim3 block, size_t shared_bytes, cudaStream_t stream,
                                     Args... args)
{
    static_assert(sizeof...(Params) == sizeof...(Args), "as many arguments as parameters");
    typedef emu_closure<Params...> closure_t;
    emu_launch((const void *)kernel, name, &grid, &block, shared_bytes, stream, closure_t::call,
               new closure_t{kernel, std::tuple<Params...>(args...)}, closure_t::drop);
}

#define CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                \
    emu_launch_kernel(#kernel, kernel, grid, block, shared_bytes, stream, ##__VA_ARGS__)

template <typename T> static inline cudaError_t cudaMalloc(T **ptr, size_t bytes)
{
    return cudaMalloc((void **)ptr, bytes);
}
template <typename T>
static inline cudaError_t cudaFuncSetAttribute(T *function, cudaFuncAttribute attr, int value)
{
    return cudaFuncSetAttribute((const void *)function, attr, value);
}
template <typename T>
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n_blocks, T *function,
                                                                        int n_threads,
                                                                        size_t shared_bytes)
{
    const char *stated = getenv("REPERF_EMU_OCCUPANCY"); /* as registers would have it */
    (void)function;
    if (stated) {
        *n_blocks = (int)strtol(stated, NULL, 10);
        return cudaSuccess;
    }
    int by_shared = shared_bytes > 0 ? (int)(227 * 1024 / shared_bytes) : 32;
    *n_blocks = by_shared < 2048 / n_threads ? by_shared : 2048 / n_threads;
    return cudaSuccess;
}

#include "emu_device.h"

#endif
