/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for double. */
#include "base/base.h"

#include "backend_cpu/cpu.h"

#include <math.h>
#include <omp.h>

#define REAL double
#include "backend_cpu/conv.inc"
#include "backend_cpu/ops.inc"

const cpu_kernel_fn cpu_kernels_f64[K_COUNT] = KERNEL_TABLE;

void cpu_sgd_f64(const struct cpu *cpu, const struct sgd_args *args)
{
    sgd(cpu, args);
}
