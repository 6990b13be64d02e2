/* SPDX-License-Identifier: Apache-2.0 */
/* Times several ways to perform a call on buffers of its size, in turn, each with a cold L2 cache, and selects the fastest. Allocates
   device memory while it works and frees it: to be called before a network's memory is allocated. */
#pragma once

#include "backend_cuda/cuda.h"

#define TUNE_WAYS_MAX    24
#define TUNE_BUFFERS_MAX 41

struct tune {
    int n_ways;
    /* Enqueues way `i` on the stream; false: it cannot, which is no error of the choice. */
    bool (*run)(void *ctx, int i, void *const *buffers, cudaStream_t stream);
    void *ctx;
    int64_t buffer_bytes
        [TUNE_BUFFERS_MAX]; /* filled with numbers of `dtype` from -1 to 1, the first at 0 */
    int n_buffers;
    enum dtype dtype;
    const enum dtype *dtypes; /* (n_buffers) where not all are of `dtype`; else NULL */
    cudaStream_t stream;      /* to be used; NULL: one of its own */
};

/* ret_ns (n_ways) = the median of each, -1 where it failed; *ret_best is the fastest. Where memory is short nothing is
   timed: a note is logged, all are 0, and way 0 is the best. Fails if all fail. */
MUST_CHECK int tune_choose(const struct tune *tune, int64_t *ret_ns, int *ret_best,
                           struct err *err);

/* The median of n >= 1 numbers, which it sorts; of an even number the lower one. */
int64_t tune_median(int64_t *values, int n);
