/* SPDX-License-Identifier: Apache-2.0 */
/* Many jobs on all cores whose results are taken in order, so that what is written does not depend on the number of threads.
   Each job has a slot (buffers, a decoder) that is used again; there are some more slots than threads. prepare and done run
   on the caller's thread, work on the pool's: it touches its slot and what the job alone owns. The first error in the jobs'
   order ends all. */
#pragma once

#include <stdatomic.h>

#include "base/err.h"

struct ordered {
    void *ctx; /* for all functions; borrowed */
    size_t n_jobs;
    size_t n_threads;
    size_t n_ahead; /* jobs under way at once; 0: some for each thread */
    size_t slot_bytes;
    void (*slot_release)(void *slot);                                   /* or NULL */
    int (*prepare)(void *ctx, size_t job, void *slot, struct err *err); /* or NULL */
    int (*work)(void *ctx, size_t job, void *slot, const atomic_bool *is_cancelled,
                struct err *err);
    int (*done)(void *ctx, size_t job, void *slot, struct err *err); /* or NULL */
};

MUST_CHECK int ordered_run(const struct ordered *spec, struct err *err);

/* The cores of this machine that this process may use; at most POOL_THREADS_MAX. */
size_t ordered_cores(void);
