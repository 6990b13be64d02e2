/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "sys/pool_lanes.h"

#include <unistd.h>

#include "base/arena.h"
#include "sys/pool.h"

struct lane_job {
    struct pool_job job;
    lane_fn each;
    void *arg;
    size_t lane;
};

static int run_lane(void *arg, const atomic_bool *is_cancelled UNUSED, struct err *err)
{
    const struct lane_job *job = arg;
    return job->each(job->arg, job->lane, err);
}

static int run_lanes(void *ctx UNUSED, size_t n, lane_fn each, void *arg, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    CLEANUP(free) struct lane_job *jobs = xcalloc(n, sizeof(*jobs));
    struct err *first = err;
    struct err ignored = {0};
    int result = 0;
    if (pool_new(n, &pool, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        jobs[idx] = (struct lane_job){{.fn = run_lane, .arg = &jobs[idx]}, each, arg, idx};
        pool_submit(pool, &jobs[idx].job);
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (pool_wait(pool, &jobs[idx].job, first) < 0) {
            result = -1;
            ignored = (struct err){0};
            first = &ignored;
        }
    }
    return result;
}

struct lanes pool_lanes(void)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t n = cores < POOL_THREADS_MIN   ? POOL_THREADS_MIN
               : cores > POOL_THREADS_MAX ? POOL_THREADS_MAX
                                          : (size_t)cores;
    return (struct lanes){n, run_lanes, NULL};
}
