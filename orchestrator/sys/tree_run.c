/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's side of hashing on the pool. What is here and below (tree_worker, tree_lanes) is in reperf-node, too. */
#include "base/base.h"

#include <fcntl.h>

#include "base/fs.h"
#include "sys/pool.h"
#include "sys/tree_impl.h"

#define CHUNK_MAX 64

static int work(void *ctx, size_t idx UNUSED, const atomic_bool *is_stopped, struct err *err)
{
    struct tree_worker worker = {.run = ctx, .is_stopped = is_stopped};
    return tree_work(&worker, err);
}

static void show(void *ctx, size_t n_begun UNUSED)
{
    const struct tree_run *run = ctx;
    const struct tree_opts *opts = run->opts;
    if (opts->on_progress) {
        opts->on_progress(opts->progress_ctx, atomic_load(&run->n_done), run->n);
    }
    if (opts->on_bytes) {
        opts->on_bytes(opts->progress_ctx, atomic_load(&run->bytes_read));
    }
}

int tree_run(struct tree_run *run, struct err *err)
{
    const struct tree_opts *opts = run->opts;
    const struct pool_many many = {.pool = opts->pool,
                                   .n_threads = opts->n_threads,
                                   .n = opts->n_threads,
                                   .each = work,
                                   .on_tick = show,
                                   .ctx = run};
    CLEANUP(fd) int fd = open(opts->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT(opts->n_threads >= 1 && opts->n_threads <= POOL_THREADS_MAX);
    ASSERT(run->kinds != 0);
    if (fd < 0) {
        return err_errno(err, "open folder", opts->folder);
    }
    run->root_fd = fd;
    run->slack_ns = digest_cache_slack_ns(fd);
    /* Few files at a time, so that some large ones at the end do not wait for one thread. */
    run->chunk = run->n / (opts->n_threads * 16) + 1;
    run->chunk = run->chunk < CHUNK_MAX ? run->chunk : CHUNK_MAX;
    if (pool_many(&many, err) < 0) {
        return err->code == ERR_INTERRUPTED ? err_wrap(err, "%s", opts->folder) : -1;
    }
    show(run, opts->n_threads);
    return 0;
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
