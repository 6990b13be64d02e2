/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for float. */
#include "base/base.h"

#include "backend_cpu/cpu.h"

#include <math.h>
#include <omp.h>

#define REAL float
#include "backend_cpu/conv.inc"
#include "backend_cpu/ops.inc"

const cpu_kernel_fn cpu_kernels_f32[K_COUNT] = KERNEL_TABLE;

void cpu_sgd_f32(const struct cpu *cpu, const struct sgd_args *args)
{
    sgd(cpu, args);
}
