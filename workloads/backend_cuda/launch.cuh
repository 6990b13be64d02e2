/* SPDX-License-Identifier: Apache-2.0 */
/* What every .cu file of this room starts with. Kernels are launched by CUDA_LAUNCH only, so that the same source also
   runs on a CPU, where tests/cuda_emu replaces the runtime's headers. A kernel name with a comma in it needs
   parentheses: CUDA_LAUNCH((add<float, 4>), grid, block, 0, stream, x). */
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

extern "C" {
#include "backend_cuda/cuda.h"
}

#ifndef CUDA_LAUNCH
#define CUDA_LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                \
    kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)
#endif

/* Inside a kernel: the launch's shared_bytes, as TYPE *NAME, aligned to 16 bytes. */
#ifndef CUDA_SHARED
#define CUDA_SHARED(type, name)                                                                    \
    extern __shared__ __align__(16) unsigned char cuda_shared_memory[];                            \
    type *name = (type *)cuda_shared_memory
#endif

/* In the host function that launched: the first failed launch sticks. */
#define CUDA_LAUNCHED(cuda) cuda_ok((cuda), cudaGetLastError(), __func__)
