/* SPDX-License-Identifier: Apache-2.0 */
/* Work on several threads, for rooms that have none: the owner of threads (sys/pool.h) provides a struct lanes. Each lane has
   its own data; what lanes share is read-only or atomic. */
#pragma once

#include "base/err.h"

typedef int (*lane_fn)(void *arg, size_t lane, struct err *err);

struct lanes {
    size_t n; /* 1 or more */
    /* Calls each(arg, i) once for i = 0 ... n - 1 and returns when all have returned; the error is that of the lowest failed
       i. */
    int (*run)(void *ctx, size_t n, lane_fn each, void *arg, struct err *err);
    void *ctx;
};
