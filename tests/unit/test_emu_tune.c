/* SPDX-License-Identifier: Apache-2.0 */
/* The timing of several ways to do one call, on the emulated device. */
#include "unit.h"

#include "backend_cuda/tune.h"
#include "base/log.h"
#include "emu.h"

/* Ways that copy their first buffer into the second n times; one cannot. */
struct ways {
    int cannot;
    int n_runs[4];
};

static bool run_way(void *ctx, int i, void *const *buffers, cudaStream_t stream)
{
    struct ways *ways = ctx;
    ways->n_runs[i]++;
    if (i == ways->cannot) {
        return false;
    }
    return cudaMemcpyAsync(buffers[1], buffers[0], 1000, cudaMemcpyDeviceToDevice, stream) ==
           cudaSuccess;
}

TEST(the_fastest_that_works)
{
    struct ways ways = {.cannot = 0};
    struct tune tune = {.n_ways = 3,
                        .run = run_way,
                        .ctx = &ways,
                        .buffer_bytes = {1000, 1000, 0},
                        .n_buffers = 3,
                        .dtype = DT_F16};
    int64_t ns[3];
    int best = -1;
    PASSES(tune_choose(&tune, ns, &best, ERR));
    assert_true(best == 1 || best == 2);
    assert_int_equal(ns[0], -1);
    assert_true(ns[best] > 0 && ns[best] <= ns[1] && ns[best] <= ns[2]);
    assert_int_equal(ways.n_runs[0], 1); /* not asked again */
    assert_true(ways.n_runs[best] > 3);
    assert_int_equal(emu_allocated_bytes(), 0);
    tune.n_ways = 1;
    FAILS_WITH(tune_choose(&tune, ns, &best, ERR), ERR_ANY, "none of 1 works");
    assert_int_equal(emu_allocated_bytes(), 0);
}

TEST(without_memory_the_first_is_taken)
{
    struct ways ways = {.cannot = -1};
    struct tune tune = {.n_ways = 2,
                        .run = run_way,
                        .ctx = &ways,
                        .buffer_bytes = {1000, 1000},
                        .n_buffers = 2,
                        .dtype = DT_F32};
    int64_t ns[2] = {7, 7};
    int best = -1;
    log_set_level(LOG_ERROR);
    emu_plant("cudaMalloc", 2);
    PASSES(tune_choose(&tune, ns, &best, ERR));
    emu_unplant();
    log_set_level(LOG_INFO);
    assert_int_equal(best, 0);
    assert_int_equal(ns[0], 0);
    assert_int_equal(ns[1], 0);
    assert_int_equal(ways.n_runs[0], 0);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    assert_int_equal(emu_allocated_bytes(), 0);
}

TEST(median_is_the_middle)
{
    int64_t odd[] = {5, 1, 9};
    int64_t even[] = {4, 1, 3, 2};
    assert_int_equal(tune_median(odd, 3), 5);
    assert_int_equal(tune_median(even, 4), 2);
}
