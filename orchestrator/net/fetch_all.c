/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch.h"

#include "base/progress.h"

#define WAIT_NS (200 * NS_PER_MS)

/* Steps all that are not finished; ret_left: how many are left. */
static int step_each(struct fetch **fetches, size_t n, bool *is_over, size_t *ret_left,
                     struct err *err)
{
    size_t n_left = 0;
    for (size_t idx = 0; idx < n; idx++) {
        enum step step = is_over[idx] ? STEP_DONE : fetch_step(fetches[idx], err);
        if (step == STEP_FAIL) {
            return -1;
        }
        is_over[idx] = step == STEP_DONE;
        n_left += !is_over[idx];
    }
    *ret_left = n_left;
    return 0;
}

static void show(struct progress *progress, struct fetch **fetches, size_t n)
{
    uint64_t done = 0;
    uint64_t total = 0;
    bool is_total_known = true;
    for (size_t idx = 0; idx < n; idx++) {
        uint64_t done_one, total_one;
        fetch_progress(fetches[idx], &done_one, &total_one);
        done += done_one;
        total += total_one;
        is_total_known &= total_one > 0 || done_one == 0;
    }
    progress->total = is_total_known ? total : 0;
    progress_set(progress, done);
}

static int run_loop(const struct fetch_run *run, struct fetch **fetches, size_t n,
                    struct progress *progress, struct err *err)
{
    CLEANUP(free) bool *is_over = xcalloc(n + 1, sizeof(*is_over));
    size_t n_left;
    for (;;) {
        if (run->should_stop && run->should_stop()) {
            return err_set(err, ERR_INTERRUPTED, "stopped; what was fetched is kept");
        }
        if (step_each(fetches, n, is_over, &n_left, err) < 0) {
            return -1;
        }
        if (n_left == 0) {
            return 0;
        }
        if (progress) {
            show(progress, fetches, n);
        }
        if (loop_once(run->loop, WAIT_NS, err) < 0) {
            return -1;
        }
    }
}

int fetch_all(const struct fetch_run *run, struct fetch **fetches, size_t n, struct err *err)
{
    struct progress progress;
    int result;
    if (!run->wants_progress) {
        return run_loop(run, fetches, n, NULL, err);
    }
    progress_start(&progress, run->loop->clock, "fetch", "bytes", 0);
    result = run_loop(run, fetches, n, &progress, err);
    progress_end(&progress);
    return result;
}
