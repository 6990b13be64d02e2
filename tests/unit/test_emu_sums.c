/* SPDX-License-Identifier: Apache-2.0 */
/* Sums around the libraries' calls against plain loops, and the timing of several ways to do one call, on the emulated device. */
#include "unit.h"

#include <math.h>

#include "backend_cuda/sums.h"
#include "backend_cuda/tune.h"
#include "base/log.h"
#include "base/rng.h"
#include "core/half.h"
#include "emu.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

static struct cuda cuda;

/* Numbers from -1 to 1 as they are stored; `values` gets what was stored. */
static void *random_on_device(enum dtype dtype, int64_t count, uint64_t seed, float *values)
{
    size_t bytes = (size_t)(count * dtype_bytes(dtype));
    void *host = calloc(1, bytes);
    void *device = NULL;
    struct rng rng;
    rng_init(&rng, seed);
    for (int64_t i = 0; i < count; i++) {
        values[i] = (float)(rng_f64(&rng) * 2.0 - 1.0);
        if (dtype == DT_F16) {
            ((uint16_t *)host)[i] = half_from_float(values[i]);
            values[i] = half_to_float(((uint16_t *)host)[i]);
        } else {
            ((float *)host)[i] = values[i];
        }
    }
    OK(cudaMalloc(&device, bytes));
    OK(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    free(host);
    return device;
}

static void read_back(enum dtype dtype, const void *device, int64_t count, float *values)
{
    size_t bytes = (size_t)(count * dtype_bytes(dtype));
    void *host = calloc(1, bytes);
    OK(cudaStreamSynchronize(cuda.streams[0]));
    OK(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    for (int64_t i = 0; i < count; i++) {
        values[i] = dtype == DT_F16 ? half_to_float(((uint16_t *)host)[i]) : ((float *)host)[i];
    }
    free(host);
}

TEST(adds)
{
    static const int64_t COUNTS[] = {1, 255, 256, 257, 1000};
    float from[1000];
    float to[1000];
    float sum[1000];
    for (int t = 0; t < 2; t++) {
        enum dtype dtype = t == 0 ? DT_F32 : DT_F16;
        for (size_t i = 0; i < ARRAY_LEN(COUNTS); i++) {
            void *a = random_on_device(dtype, COUNTS[i], 1, from);
            void *b = random_on_device(dtype, COUNTS[i], 2, to);
            struct add_args args = {dtype, COUNTS[i], a, b, cuda.streams[0]};
            cuda_add_to(&cuda, &args);
            read_back(dtype, b, COUNTS[i], sum);
            for (int64_t k = 0; k < COUNTS[i]; k++) {
                float expected = from[k] + to[k];
                expected = dtype == DT_F16 ? half_to_float(half_from_float(expected)) : expected;
                assert_true(sum[k] == expected);
            }
            OK(cudaFree(a));
            OK(cudaFree(b));
        }
    }
    assert_int_equal(cuda.err.code, ERR_NONE);
}

static void sum_columns(enum dtype dtype, int64_t rows, int64_t columns, bool is_added)
{
    float *x = calloc((size_t)(rows * columns), sizeof(float));
    float before[200];
    float after[200];
    void *x_device = random_on_device(dtype, rows * columns, 3, x);
    void *sums = random_on_device(dtype, columns, 4, before);
    void *partial = NULL;
    OK(cudaMalloc(&partial, (size_t)cuda_column_sum_bytes(rows, columns)));
    struct column_sum_args args = {.dtype = dtype,
                                   .rows = rows,
                                   .columns = columns,
                                   .x = x_device,
                                   .sums = sums,
                                   .is_added = is_added,
                                   .partial = partial,
                                   .stream = cuda.streams[0]};
    cuda_column_sum(&cuda, &args);
    read_back(dtype, sums, columns, after);
    for (int64_t c = 0; c < columns; c++) {
        double expected = is_added ? (double)before[c] : 0.0;
        double size = fabs(expected);
        for (int64_t r = 0; r < rows; r++) {
            expected += (double)x[r * columns + c];
            size += fabs((double)x[r * columns + c]);
        }
        /* A sum in float of rows numbers, rounded once more where it is stored as half. */
        double tolerance = size * 0x1p-23 * sqrt((double)rows) +
                           (dtype == DT_F16 ? fabs(expected) * 0x1p-11 + 0x1p-24 : 0.0);
        assert_true(fabs((double)after[c] - expected) <= tolerance);
    }
    OK(cudaFree(x_device));
    OK(cudaFree(sums));
    OK(cudaFree(partial));
    free(x);
}

TEST(sums_columns)
{
    static const int64_t SHAPES[][2] = {{1, 1}, {7, 24}, {513, 33}, {1030, 8}, {2000, 200}};
    for (size_t i = 0; i < ARRAY_LEN(SHAPES); i++) {
        for (int k = 0; k < 4; k++) {
            sum_columns(k < 2 ? DT_F32 : DT_F16, SHAPES[i][0], SHAPES[i][1], k % 2 == 1);
        }
    }
    assert_int_equal(cuda.err.code, ERR_NONE);
}

TEST(column_sum_is_the_same_each_time)
{
    float x[300 * 40];
    float first[40];
    float again[40];
    void *x_device = random_on_device(DT_F32, 300 * 40, 5, x);
    void *sums = random_on_device(DT_F32, 40, 6, first);
    void *partial = NULL;
    OK(cudaMalloc(&partial, (size_t)cuda_column_sum_bytes(300, 40)));
    struct column_sum_args args = {.dtype = DT_F32,
                                   .rows = 300,
                                   .columns = 40,
                                   .x = x_device,
                                   .sums = sums,
                                   .partial = partial,
                                   .stream = cuda.streams[0]};
    for (uint64_t seed = 1; seed <= 5; seed++) {
        emu_seed(seed);
        cuda_column_sum(&cuda, &args);
        read_back(DT_F32, sums, 40, seed == 1 ? first : again);
        assert_true(seed == 1 || memcmp(first, again, sizeof(first)) == 0);
    }
    OK(cudaFree(x_device));
    OK(cudaFree(sums));
    OK(cudaFree(partial));
}

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
    assert_int_equal(emu_stats().allocated_bytes, 0);
    tune.n_ways = 1;
    FAILS(tune_choose(&tune, ns, &best, ERR), ERR_ANY);
    SAYS("none of 1 works");
    assert_int_equal(emu_stats().allocated_bytes, 0);
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
    assert_int_equal(emu_stats().allocated_bytes, 0);
}

TEST(median_is_the_middle)
{
    int64_t odd[] = {5, 1, 9};
    int64_t even[] = {4, 1, 3, 2};
    assert_int_equal(tune_median(odd, 3), 5);
    assert_int_equal(tune_median(even, 4), 2);
}

static int open_stream(void **state UNUSED)
{
    cuda = (struct cuda){.channel_pad = 8, .n_streams = 1};
    return cudaStreamCreateWithFlags(&cuda.streams[0], cudaStreamNonBlocking) == cudaSuccess ? 0
                                                                                             : -1;
}

static int close_stream(void **state UNUSED)
{
    return cudaStreamDestroy(cuda.streams[0]) == cudaSuccess ? 0 : -1;
}

UNIT_MAIN(open_stream, close_stream)
