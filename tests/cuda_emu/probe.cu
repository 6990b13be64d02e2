/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with known faults, for tests/unit/test_emu_device.c and test_emu_queue.c. */
#include <cuda_runtime.h>

extern "C" {
#include "probe.h"
}

template <typename T> static __global__ void reverse(const T *x, T *y, int n, bool has_barrier)
{
    __shared__ T tile[256];
    int i = (int)threadIdx.x;
    tile[i] = x[i];
    if (has_barrier) {
        __syncthreads();
    }
    y[i] = tile[n - 1 - i];
}
extern "C" void probe_reverse(const float *x, float *y, bool has_barrier, cudaStream_t stream)
{
    CUDA_LAUNCH(reverse<float>, 1, 256, 0, stream, x, y, 256, has_barrier);
}

static __global__ void accumulate(const float *x, float *total)
{
    *total += *x;
}
extern "C" void probe_accumulate(const float *x, float *total, cudaStream_t stream)
{
    CUDA_LAUNCH(accumulate, 1, 1, 0, stream, x, total);
}

static __global__ void add(float *x, int n, float value)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        x[i] += value;
    }
}
extern "C" void probe_add(float *x, int n, float value, cudaStream_t stream)
{
    CUDA_LAUNCH(add, (unsigned)(n + 63) / 64, 64, 0, stream, x, n, value);
}

static __global__ void multiply(float *x, int n, float value)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) {
        x[i] *= value;
    }
}
extern "C" void probe_multiply(float *x, int n, float value, cudaStream_t stream)
{
    CUDA_LAUNCH(multiply, (unsigned)(n + 63) / 64, 64, 0, stream, x, n, value);
}

/* One thread of each fault. */
static __global__ void faulty(enum probe_fault fault, float *x, int n)
{
    CUDA_SHARED(float, dynamic);
    int i = (int)threadIdx.x;
    switch (fault) {
    case PROBE_PAST_END:
        if (i == 7) {
            x[n] = 1.0f;
        }
        break;
    case PROBE_SHARED_PAST_END:
        dynamic[i + 1] = 1.0f;
        break;
    case PROBE_BARRIER_DIVERGES:
        if (i < 5) {
            __syncthreads();
        } else {
            __syncthreads();
        }
        break;
    case PROBE_SHUFFLE_MISSES:
        if (i != 3) {
            x[i] = __shfl_sync(0xffffffffu, 1.0f, 0);
        }
        break;
    case PROBE_MASK_WITHOUT_SELF:
        x[i] = __shfl_sync(0x0000ffffu, 1.0f, 0);
        break;
    case PROBE_MISALIGNED:
        *(volatile float *)&((float4 *)(x + 1))->x = 1.0f;
        break;
    case PROBE_TRAP:
        __trap();
    default:
        x[i] = dynamic[i]; /* poison: nothing wrote it */
        break;
    }
}
extern "C" void probe_faulty(enum probe_fault fault, float *x, int n, int n_threads,
                             size_t shared_bytes, cudaStream_t stream)
{
    CUDA_LAUNCH(faulty, 1, (unsigned)n_threads, shared_bytes, stream, fault, x, n);
}
extern "C" cudaError_t probe_allow_shared(int bytes)
{
    return cudaFuncSetAttribute(faulty, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}
