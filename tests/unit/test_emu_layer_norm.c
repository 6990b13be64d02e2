/* SPDX-License-Identifier: Apache-2.0 */
/* The number of blocks of layer norm's backward pass: as many as the driver says run at once. Their sums are in the call's
   workspace. */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>
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

static void the_grid_follows_the_stated_occupancy(void **state UNUSED)
{
    static const enum dtype TYPES[] = {DT_F32, DT_F16};
    for (size_t i = 0; i < ARRAY_LEN(TYPES); i++) {
        assert_int_equal(blocks(TYPES[i], 96 * 128, 768, "2"), 2 * N_SM);
        assert_int_equal(blocks(TYPES[i], 96 * 128, 768, "3"), 3 * N_SM);
        assert_int_equal(blocks(TYPES[i], 96 * 128, 768, "1"), N_SM);
        /* If the driver does not say, one; few rows need no more blocks than they fill. */
        assert_int_equal(blocks(TYPES[i], 96 * 128, 768, "0"), N_SM);
        assert_int_equal(blocks(TYPES[i], 33, 768, "3"), 3);
        /* Rows that are no whole vectors: a block has 256 columns, and six of them share a multiprocessor. */
        assert_int_equal(blocks(TYPES[i], 96 * 128, 601, "6"), 2 * N_SM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_grid_follows_the_stated_occupancy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
