/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for double. */
#include "base/base.h"

#include "backend_cpu/cpu.h"

#include <math.h>
#include <omp.h>

#define REAL      double
#define IS_ORACLE 1
#define SPLIT(...)
#define LARGEST(of)
#include "backend_cpu/batch_norm.inc"
#include "backend_cpu/conv.inc"
#include "backend_cpu/linear.inc"
#include "backend_cpu/ops.inc"
#include "backend_cpu/rows.inc"
#include "backend_cpu/rows_attention.inc"

#include "backend_cpu/fused.inc"

const cpu_kernel_fn cpu_kernels_f64[K_COUNT] = KERNEL_TABLE;
