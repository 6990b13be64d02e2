/* SPDX-License-Identifier: Apache-2.0 */
/* For tests on the emulated device: calls that must succeed, copies, and how far results may be off. */
#ifndef UNIT_EMU_UNIT_H
#define UNIT_EMU_UNIT_H

#include "unit.h"

#include <cuda_runtime_api.h>

#include "emu.h"

/* Relative norm of the difference, as in tests/cuda/held.c. */
#define TOLERANCE_F32 1e-5
#define TOLERANCE_F16 2e-3

#define OK(call) assert_int_equal(call, cudaSuccess)

static inline void *device_copy(const void *host, size_t bytes)
{
    void *ptr = NULL;
    OK(cudaMalloc(&ptr, bytes));
    OK(cudaMemcpy(ptr, host, bytes, cudaMemcpyHostToDevice));
    return ptr;
}

#endif
