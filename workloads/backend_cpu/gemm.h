/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix product in double: C (m, n) = A (m, k) B (k, n). The operands are never stored: callbacks pack small panels of
   them (a convolution gathers its windows there), another receives the finished tile. Every element of C is one sum over
   k in one fixed order, computed by one thread: the result does not depend on the number of threads. */
#pragma once

#include "base/base.h"

#define GEMM_PANEL 8 /* rows of A, or columns of B, in a panel */

struct gemm_panel {
    int64_t group, first, count, k0, n_k;
    double *to;
};
/* Element (first + i, k0 + kk) of A, or (k0 + kk, first + i) of B, goes to to[kk * GEMM_PANEL + i]; zero for i >= count. */
typedef void (*gemm_pack_fn)(const void *ctx, const struct gemm_panel *panel);

/* C from (row, col) on. */
struct gemm_tile {
    int64_t group, row, col, n_rows, n_cols;
    const double *values; /* (n_rows, n_cols), row stride ld */
    int64_t ld;
};
typedef void (*gemm_store_fn)(const void *ctx, const struct gemm_tile *tile);

/* Adds a panel product over n_k to c (GEMM_PANEL, GEMM_PANEL), row stride ld. */
typedef void (*gemm_micro_fn)(int64_t n_k, const double *a, const double *b, double *c, int64_t ld);

struct gemm {
    int64_t groups, m, n, k;
    gemm_pack_fn pack_a, pack_b;
    gemm_store_fn store;
    const void *ctx; /* borrowed for the call */
};

/* The fastest micro-kernel this processor runs. They differ in the last bits: with and without fused multiply-add. */
gemm_micro_fn gemm_micro_best(void);

int64_t gemm_workspace_bytes(int n_threads);
void gemm_run(const struct gemm *gemm, gemm_micro_fn micro, int n_threads, void *workspace);
