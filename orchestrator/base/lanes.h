/* SPDX-License-Identifier: Apache-2.0 */
/* Work on several threads at once, for rooms that have none: who owns threads (sys/pool.h) gives a struct lanes. Each lane works with
   what is its own; what lanes share is read only, or atomic. */
#ifndef BASE_LANES_H
#define BASE_LANES_H

#include "base/err.h"

typedef int (*lane_fn)(void *arg, size_t lane, struct err *err);

struct lanes {
    size_t n; /* 1 or more */
    /* Calls each(arg, 0 ... n - 1), each once, and returns when all have; the error is that of the first lane that failed. */
    int (*run)(void *ctx, size_t n, lane_fn each, void *arg, struct err *err);
    void *ctx;
};

#endif
