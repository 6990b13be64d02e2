/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cpu/gemm.h"

#include <omp.h>

/* Tile sizes: A, B and C of one thread are 128 + 256 + 64 KiB, which a second-level cache of 512 KiB holds. */
#define TILE_M 64
#define TILE_N 128
#define TILE_K 256

struct scratch {
    alignas(64) double a[TILE_M * TILE_K];
    alignas(64) double b[TILE_N * TILE_K];
    alignas(64) double c[TILE_M * TILE_N];
};

int64_t gemm_workspace_bytes(int n_threads)
{
    return (int64_t)sizeof(struct scratch) * n_threads;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void pack(gemm_pack_fn fill, const struct gemm *gemm, const int64_t at[2], int64_t count,
                 int64_t group, double *panels)
{
    int64_t n_k = smaller(TILE_K, gemm->k - at[1]);
    for (int64_t i = 0; i < count; i += GEMM_PANEL) {
        fill(gemm->ctx, group, at[0] + i, smaller(GEMM_PANEL, count - i), at[1], n_k,
             panels + i * n_k);
    }
}

static void run_tile(const struct gemm *gemm, gemm_micro_fn micro, int64_t group, int64_t row,
                     int64_t col, struct scratch *scratch)
{
    int64_t n_rows = smaller(TILE_M, gemm->m - row);
    int64_t n_cols = smaller(TILE_N, gemm->n - col);
    memset(scratch->c, 0, sizeof(scratch->c));
    for (int64_t k0 = 0; k0 < gemm->k; k0 += TILE_K) {
        int64_t n_k = smaller(TILE_K, gemm->k - k0);
        pack(gemm->pack_a, gemm, (int64_t[2]){row, k0}, n_rows, group, scratch->a);
        pack(gemm->pack_b, gemm, (int64_t[2]){col, k0}, n_cols, group, scratch->b);
        for (int64_t j = 0; j < n_cols; j += GEMM_PANEL) {
            for (int64_t i = 0; i < n_rows; i += GEMM_PANEL) {
                micro(n_k, scratch->a + i * n_k, scratch->b + j * n_k, scratch->c + i * TILE_N + j,
                      TILE_N);
            }
        }
    }
    gemm->store(gemm->ctx, group, (int64_t[2]){row, col}, (int64_t[2]){n_rows, n_cols}, scratch->c,
                TILE_N);
}

void gemm_run(const struct gemm *gemm, gemm_micro_fn micro, int n_threads, void *workspace)
{
    struct scratch *scratch = workspace;
    int64_t n_row_tiles = (gemm->m + TILE_M - 1) / TILE_M;
    int64_t n_col_tiles = (gemm->n + TILE_N - 1) / TILE_N;
    int64_t n_tiles = n_row_tiles * n_col_tiles;
#pragma omp parallel for schedule(dynamic) num_threads(n_threads)
    for (int64_t job = 0; job < gemm->groups * n_tiles; job++) {
        int64_t tile = job % n_tiles;
        run_tile(gemm, micro, job / n_tiles, tile / n_col_tiles * TILE_M,
                 tile % n_col_tiles * TILE_N, &scratch[omp_get_thread_num()]);
    }
}
