/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with known faults and known answers, for tests/unit/test_emu_device.c: whether the emulator detects and computes them. */
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

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

/* Sums with shuffles within and dynamic shared memory between warps; each block adds its part. */
static __global__ void sum(const float *x, float *total, int n)
{
    CUDA_SHARED(float, parts);
    float value = 0.0f;
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n;
         i += (int)(gridDim.x * blockDim.x)) {
        value += x[i];
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        value += __shfl_down_sync(0xffffffffu, value, lanes);
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
        value = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0.0f;
        for (int lanes = 16; lanes > 0; lanes /= 2) {
            value += __shfl_xor_sync(0xffffffffu, value, lanes);
        }
        if (threadIdx.x == 0) {
            atomicAdd(total, value);
        }
    }
}
extern "C" void probe_sum(const float *x, float *total, int n, cudaStream_t stream)
{
    CUDA_LAUNCH(sum, 5, 256, 8 * sizeof(float), stream, x, total, n);
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

static __global__ void matrices(const __half *a, const __half *b, float *c)
{
    using namespace nvcuda;
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
}
extern "C" void probe_matrices(const void *a, const void *b, float *c, cudaStream_t stream)
{
    CUDA_LAUNCH(matrices, 1, 32, 0, stream, (const __half *)a, (const __half *)b, c);
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

extern "C" unsigned short probe_to_half(double value, bool from_double)
{
    return from_double ? __half_as_ushort(__double2half(value))
                       : __half_as_ushort(__float2half_rn((float)value));
}
extern "C" float probe_from_half(unsigned short bits)
{
    return __half2float(__ushort_as_half(bits));
}
