/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's side of hashing on the pool. What is here and below (tree_worker, tree_lanes) is in reperf-node, too. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "sys/pool.h"
#include "sys/tree_impl.h"

#define TICK_MS   100
#define CHUNK_MAX 64

/* ---- on the pool ---- */

struct tree_failure {
    struct err err;
    size_t idx; /* of the file */
};

static void drain(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR) {
        continue;
    }
}

static void submit(struct tree_worker *worker)
{
    worker->state = WORKER_RUNNING;
    worker->job.fn = tree_work;
    worker->job.arg = worker;
    pool_submit(worker->run->opts->pool, &worker->job);
}

/* Its job has ended: what it read goes to the cache. Either all is done, or it pauses because it had enough for that. */
static void gather(struct tree_worker *worker, struct tree_failure *failure)
{
    struct tree_run *run = worker->run;
    bool was_full = worker->fresh.n >= TREE_FRESH_MAX;
    struct err err = {0};
    int result = pool_wait(run->opts->pool, &worker->job, &err);
    for (size_t idx = 0; idx < worker->fresh.n; idx++) {
        digest_cache_add(run->opts->cache, &worker->fresh.items[idx].key, run->kinds,
                         &worker->fresh.items[idx].value);
    }
    worker->fresh.n = 0;
    worker->state = result == 0 && was_full ? WORKER_PAUSED : WORKER_OVER;
    /* The error of the file that comes first, whichever thread met it. */
    if (result < 0 && (failure->err.code == ERR_NONE || worker->err_idx < failure->idx)) {
        *failure = (struct tree_failure){err, worker->err_idx};
    }
    if (result < 0) {
        atomic_store(&run->must_stop, true);
    }
}

/* The cache may only be saved while no worker looks into it. A cache that cannot be written only costs time. */
static void go_on(struct tree_run *run, struct tree_worker *workers, size_t n_running)
{
    struct digest_cache *cache = run->opts->cache;
    struct err err = {0};
    bool wants_save = cache && digest_cache_n_pending(cache) >= DIGEST_CACHE_PENDING_MAX;
    if (wants_save && n_running > 0) {
        return;
    }
    if (wants_save && digest_cache_save(cache, &err) < 0) {
        log_line(LOG_WARN, "%s", err.msg);
        digest_cache_forget_pending(cache);
    }
    for (size_t idx = 0; idx < run->opts->n_threads; idx++) {
        if (workers[idx].state == WORKER_PAUSED) {
            submit(&workers[idx]);
        }
    }
}

/* One round over the workers; false when all are over. */
static bool tend(struct tree_run *run, struct tree_worker *workers, struct tree_failure *failure)
{
    size_t n_running = 0;
    bool is_over = true;
    for (size_t idx = 0; idx < run->opts->n_threads; idx++) {
        if (workers[idx].state == WORKER_RUNNING &&
            pool_is_done(run->opts->pool, &workers[idx].job)) {
            gather(&workers[idx], failure);
        }
        n_running += workers[idx].state == WORKER_RUNNING;
        is_over = is_over && workers[idx].state == WORKER_OVER;
    }
    if (!is_over) {
        go_on(run, workers, n_running);
    }
    return !is_over;
}

/* Between the workers' reports the owner shows progress and asks whether to stop. */
static void run_to_end(struct tree_run *run, struct tree_worker *workers,
                       struct tree_failure *failure)
{
    const struct tree_opts *opts = run->opts;
    bool is_on;
    do {
        struct pollfd ready = {.fd = pool_fd(opts->pool), .events = POLLIN};
        if (poll(&ready, 1, TICK_MS) > 0) {
            drain(ready.fd);
        }
        is_on = tend(run, workers, failure);
        if (opts->should_stop && opts->should_stop()) {
            atomic_store(&run->must_stop, true);
        }
        if (opts->on_progress && !atomic_load(&run->must_stop)) {
            opts->on_progress(opts->progress_ctx, atomic_load(&run->n_done), run->n);
        }
        if (opts->on_bytes && !atomic_load(&run->must_stop)) {
            opts->on_bytes(opts->progress_ctx, atomic_load(&run->bytes_read));
        }
    } while (is_on);
}

int tree_run(struct tree_run *run, struct err *err)
{
    struct tree_worker workers[POOL_THREADS_MAX] = {0};
    struct tree_failure failure = {.idx = SIZE_MAX};
    size_t n_workers = run->opts->n_threads;
    CLEANUP(fd) int fd = open(run->opts->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT(n_workers >= 1 && n_workers <= POOL_THREADS_MAX);
    ASSERT(run->kinds != 0);
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "open folder %s: %s", run->opts->folder,
                       err_errno_text(errno));
    }
    run->root_fd = fd;
    run->slack_ns = digest_cache_slack_ns(fd);
    /* Few files at a time, so that some large ones at the end do not wait for one thread. */
    run->chunk = run->n / (n_workers * 16) + 1;
    run->chunk = run->chunk < CHUNK_MAX ? run->chunk : CHUNK_MAX;
    for (size_t idx = 0; idx < n_workers; idx++) {
        workers[idx].run = run;
        workers[idx].err_idx = SIZE_MAX;
        submit(&workers[idx]);
    }
    run_to_end(run, workers, &failure);
    for (size_t idx = 0; idx < n_workers; idx++) {
        VEC_RELEASE(&workers[idx].fresh);
    }
    run->root_fd = -1;
    if (failure.err.code != ERR_NONE) {
        *err = failure.err;
        return -1;
    }
    return atomic_load(&run->must_stop)
               ? err_set(err, ERR_INTERRUPTED, "%s: interrupted", run->opts->folder)
               : 0;
}

/* ---- some files, wherever others are ---- */

struct picking {
    const struct tree_file *files;
    uint8_t *is_right;
};

static void pick_value(void *ctx, size_t idx, const struct digest_value *value)
{
    struct picking *picking = ctx;
    picking->is_right[idx] = memcmp(picking->files[idx].sha256, value->sha256, SHA256_BYTES) == 0;
}

static void pick_unreadable(void *ctx, size_t idx)
{
    struct picking *picking = ctx;
    picking->is_right[idx] = 0;
}

int tree_pick(const struct tree_opts *opts, const struct tree_file *files, size_t n,
              uint8_t *is_right, struct err *err)
{
    /* The workers read what is wanted while is_right is written. */
    uint8_t *is_wanted CLEANUP(free) = xcalloc(n + 1, 1);
    struct picking picking = {files, is_right};
    struct tree_run run = {.opts = opts,
                           .kinds = DIGEST_SHA256,
                           .files = files,
                           .n = n,
                           .is_wanted = is_wanted,
                           .on_value = pick_value,
                           .on_unreadable = pick_unreadable,
                           .ctx = &picking};
    memcpy(is_wanted, is_right, n);
    return n ? tree_run(&run, err) : 0;
}
