/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/ordered.h"

#include <sched.h>

#include "base/arena.h"
#include "base/stop.h"
#include "sys/pool.h"

#define AHEAD_PER_THREAD 4

/* The place of one job under way. */
struct order_place {
    const struct ordered *spec;
    void *slot;
    size_t job_idx;
    struct pool_job job;
};

static int run_job(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct order_place *place = arg;
    return place->spec->work(place->spec->ctx, place->job_idx, place->slot, is_cancelled, err);
}

static int submit(struct pool *pool, struct order_place *place, size_t job_idx, struct err *err)
{
    const struct ordered *spec = place->spec;
    place->job_idx = job_idx;
    if (spec->prepare && spec->prepare(spec->ctx, job_idx, place->slot, err) < 0) {
        return -1;
    }
    place->job = (struct pool_job){.fn = run_job, .arg = place};
    pool_submit(pool, &place->job);
    return 0;
}

/* The pool lives in here: it has ended, and no job runs, when the slots are released. */
static int run_places(const struct ordered *spec, struct order_place *places, size_t n_places,
                      struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    size_t n_submitted = 0;
    if (pool_new(spec->n_threads, &pool, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < spec->n_jobs; idx++) {
        struct order_place *place = &places[idx % n_places];
        while (n_submitted < spec->n_jobs && n_submitted < idx + n_places) {
            if (submit(pool, &places[n_submitted % n_places], n_submitted, err) < 0) {
                return -1;
            }
            n_submitted++;
        }
        if (stop_is_asked()) {
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        }
        if (pool_wait(pool, &place->job, err) < 0 ||
            (spec->done && spec->done(spec->ctx, idx, place->slot, err) < 0)) {
            return -1;
        }
    }
    return 0;
}

int ordered_run(const struct ordered *spec, struct err *err)
{
    size_t n_places = spec->n_ahead ? spec->n_ahead : spec->n_threads * AHEAD_PER_THREAD;
    struct order_place *places = xcalloc(n_places, sizeof(*places));
    for (size_t idx = 0; idx < n_places; idx++) {
        places[idx].spec = spec;
        places[idx].slot = xcalloc(1, spec->slot_bytes ? spec->slot_bytes : 1);
    }
    int result = run_places(spec, places, n_places, err);
    for (size_t idx = 0; idx < n_places; idx++) {
        if (spec->slot_release) {
            spec->slot_release(places[idx].slot);
        }
        free(places[idx].slot);
    }
    free(places);
    return result;
}

size_t ordered_cores(void)
{
    cpu_set_t cpus;
    int n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    return n < POOL_THREADS_MIN   ? POOL_THREADS_MIN
           : n > POOL_THREADS_MAX ? POOL_THREADS_MAX
                                  : (size_t)n;
}
