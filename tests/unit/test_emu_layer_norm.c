/* SPDX-License-Identifier: Apache-2.0 */
/* The number of blocks of layer norm's backward pass: as many as the driver says run at once. Their sums are in the call's
   workspace. */
#include "unit.h"

#include <stdlib.h>

#include "backend_cuda/cuda.h"
#include "backend_cuda/kernels.h"

#define N_SM 132

static int64_t blocks(enum dtype dtype, int64_t rows, int64_t c, const char *stated)
{
    const struct cuda cuda = {.n_multiprocessors = N_SM};
    const struct kernel_args args = {.id = K_LAYER_NORM_BWD,
                                     .dtype = dtype,
                                     .geom.layer_norm = {.rows = rows, .c = c, .eps = 1e-12}};
    assert_int_equal(setenv("REPERF_EMU_OCCUPANCY", stated, 1), 0);
    int64_t bytes = cuda_layer_norm_workspace(&cuda, &args);
    assert_int_equal(bytes % (2 * c * (int64_t)sizeof(float)), 0);
    assert_int_equal(unsetenv("REPERF_EMU_OCCUPANCY"), 0);
    return bytes / (2 * c * (int64_t)sizeof(float));
}

TEST(the_grid_follows_the_stated_occupancy)
{
    static const enum dtype TYPES[] = {DT_F32, DT_F16};
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        assert_int_equal(blocks(TYPES[i], 96 * 128, 768, "2"), 2 * N_SM);
        assert_int_equal(blocks(TYPES[i], 96 * 128, 768, "3"), 3 * N_SM);
        assert_int_equal(blocks(TYPES[i], 96 * 128, 768, "1"), N_SM);
        /* If the driver does not say, one; few rows need no more blocks than they fill. */
        assert_int_equal(blocks(TYPES[i], 96 * 128, 768, "0"), N_SM);
        assert_int_equal(blocks(TYPES[i], 33, 768, "3"), 3);
    }
}

TEST(rows_that_are_no_vectors_or_too_long_are_refused)
{
    static const struct {
        enum dtype dtype;
        int64_t c;
        bool is_taken;
    } rows[] = {{DT_F32, 4, true},   {DT_F32, 6, false},   {DT_F16, 8, true},
                {DT_F16, 12, false}, {DT_F16, 1024, true}, {DT_F16, 1032, false},
                {DT_F32, 601, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct cuda cuda = {0};
        const struct kernel_args args = {.id = K_LAYER_NORM_FWD,
                                         .dtype = rows[i].dtype,
                                         .geom.layer_norm = {.rows = 1, .c = rows[i].c}};
        struct err err = {0};
        assert_int_equal(cuda_layer_norm_check(&cuda, &args, &err), rows[i].is_taken ? 0 : -1);
        assert_true(rows[i].is_taken || strstr(err.msg, "1024 at most"));
    }
}
