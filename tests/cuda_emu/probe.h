/* SPDX-License-Identifier: Apache-2.0 */
/* See probe.cu. */
#pragma once

#include "cuda_runtime_api.h"

#include <stdbool.h>

enum probe_fault {
    PROBE_NONE,
    PROBE_PAST_END,
    PROBE_SHARED_PAST_END,
    PROBE_BARRIER_DIVERGES,
    PROBE_SHUFFLE_MISSES,
    PROBE_MASK_WITHOUT_SELF,
    PROBE_MISALIGNED,
    PROBE_TRAP,
};

void probe_reverse(const float *x, float *y, bool has_barrier, cudaStream_t stream); /* 256 */
void probe_accumulate(const float *x, float *total, cudaStream_t stream);
void probe_add(float *x, int n, float value, cudaStream_t stream);
void probe_multiply(float *x, int n, float value, cudaStream_t stream);
void probe_faulty(enum probe_fault fault, float *x, int n, int n_threads, size_t shared_bytes,
                  cudaStream_t stream);
cudaError_t probe_allow_shared(int bytes);
