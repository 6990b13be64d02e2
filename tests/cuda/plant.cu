/* SPDX-License-Identifier: Apache-2.0 */
/* Faults that compute-sanitizer must find (gpu_sanitizer.sh): plant memory | race | none. If it finds neither, or a fault in
   the kernel that has none, its other results mean nothing. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

#define THREADS 64

/* past: elements beyond x that are written. */
static __global__ void write_past(float *x, int count, int past)
{
    int i = (int)threadIdx.x;
    if (i < count + past) {
        x[i] = (float)i;
    }
}

/* Each thread reads what its neighbour has written; without a barrier in between it is a race. */
template <bool has_barrier> static __global__ void neighbours(float *x)
{
    __shared__ volatile float shared[THREADS];
    int i = (int)threadIdx.x;
    shared[i] = x[i];
    if (has_barrier) {
        __syncthreads();
    }
    x[i] = shared[(i + 33) % THREADS];
}

int main(int argc, char **argv)
{
    const char *fault = argc > 1 ? argv[1] : "none";
    float *x = nullptr;
    if (cudaMalloc(&x, THREADS * sizeof(*x)) != cudaSuccess ||
        cudaMemset(x, 0, THREADS * sizeof(*x)) != cudaSuccess) {
        fprintf(stderr, "plant: %s\n", cudaGetErrorString(cudaGetLastError()));
        return 2;
    }
    if (strcmp(fault, "race") == 0) {
        neighbours<false><<<1, THREADS>>>(x);
    } else {
        neighbours<true><<<1, THREADS>>>(x);
    }
    write_past<<<1, 2 * THREADS>>>(x, THREADS, strcmp(fault, "memory") == 0 ? 1 : 0);
    cudaError_t status = cudaDeviceSynchronize();
    cudaFree(x);
    if (status != cudaSuccess) {
        fprintf(stderr, "plant: %s\n", cudaGetErrorString(status));
        return 1;
    }
    return 0;
}
