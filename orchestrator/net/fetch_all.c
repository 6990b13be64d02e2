/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/fetch.h"

#include "base/progress.h"

#define WAIT_NS (200 * NS_PER_MS)

static int run_loop(const struct fetch_run *run, struct fetch *fetch, struct progress *progress,
                    struct err *err)
{
    for (;;) {
        if (run->should_stop && run->should_stop()) {
            return err_set(err, ERR_INTERRUPTED, "stopped; what was fetched is kept");
        }
        enum step step = fetch_step(fetch, err);
        if (step != STEP_AGAIN) {
            return step == STEP_DONE ? 0 : -1;
        }
        if (progress) {
            uint64_t done_bytes;
            fetch_progress(fetch, &done_bytes, &progress->total);
            progress_set(progress, done_bytes);
        }
        if (loop_once(run->loop, WAIT_NS, err) < 0) {
            return -1;
        }
    }
}

int fetch_all(const struct fetch_run *run, struct fetch *fetch, struct err *err)
{
    struct progress progress;
    if (!run->wants_progress) {
        return run_loop(run, fetch, NULL, err);
    }
    progress_start(&progress, run->loop->clock, "fetch", "bytes", 0);
    int result = run_loop(run, fetch, &progress, err);
    progress_end(&progress);
    return result;
}
