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

/* All panels, one behind the other, of what `all` has of an operand. */
static void pack(gemm_pack_fn fill, const void *ctx, const struct gemm_panel *all)
{
    for (int64_t i = 0; i < all->count; i += GEMM_PANEL) {
        const struct gemm_panel one = {.group = all->group,
                                       .first = all->first + i,
                                       .count = smaller(GEMM_PANEL, all->count - i),
                                       .k0 = all->k0,
                                       .n_k = all->n_k,
                                       .to = all->to + i * all->n_k};
        fill(ctx, &one);
    }
}

static void run_tile(const struct gemm *gemm, gemm_micro_fn micro, struct gemm_tile tile,
                     struct scratch *scratch)
{
    tile.n_rows = smaller(TILE_M, gemm->m - tile.row);
    tile.n_cols = smaller(TILE_N, gemm->n - tile.col);
    tile.values = scratch->c;
    tile.ld = TILE_N;
    memset(scratch->c, 0, sizeof(scratch->c));
    for (int64_t k0 = 0; k0 < gemm->k; k0 += TILE_K) {
        int64_t n_k = smaller(TILE_K, gemm->k - k0);
        const struct gemm_panel a = {tile.group, tile.row, tile.n_rows, k0, n_k, scratch->a};
        const struct gemm_panel b = {tile.group, tile.col, tile.n_cols, k0, n_k, scratch->b};
        pack(gemm->pack_a, gemm->ctx, &a);
        pack(gemm->pack_b, gemm->ctx, &b);
        for (int64_t j = 0; j < tile.n_cols; j += GEMM_PANEL) {
            for (int64_t i = 0; i < tile.n_rows; i += GEMM_PANEL) {
                micro(n_k, scratch->a + i * n_k, scratch->b + j * n_k, scratch->c + i * TILE_N + j,
                      TILE_N);
            }
        }
    }
    gemm->store(gemm->ctx, &tile);
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
        run_tile(gemm, micro,
                 (struct gemm_tile){.group = job / n_tiles,
                                    .row = tile / n_col_tiles * TILE_M,
                                    .col = tile % n_col_tiles * TILE_N},
                 &scratch[omp_get_thread_num()]);
    }
}
