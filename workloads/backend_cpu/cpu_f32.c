/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for float. */
#include "base/base.h"

#include "backend_cpu/cpu.h"

#include <math.h>
#include <omp.h>

#define REAL      float
#define IS_ORACLE 0
/* The sums of the loop that follows: the compiler may split each into as many parts as a vector has. */
#define SPLIT(...)   PRAGMA(omp simd reduction(+ : __VA_ARGS__))
#define LARGEST(of)  PRAGMA(omp simd reduction(max : of))
#define PRAGMA(text) _Pragma(#text)
#include "backend_cpu/batch_norm.inc"
#include "backend_cpu/conv.inc"
#include "backend_cpu/linear.inc"
#include "backend_cpu/ops.inc"
#include "backend_cpu/rows.inc"
#include "backend_cpu/rows_attention.inc"

#include "backend_cpu/fused.inc"

const cpu_kernel_fn CPU_NAME(cpu_kernels_f32)[K_COUNT] = KERNEL_TABLE;
