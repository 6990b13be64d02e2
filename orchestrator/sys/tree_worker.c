/* SPDX-License-Identifier: Apache-2.0 */
/* What one thread of the pool does: takes the next few files until there are none. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "sys/tree_impl.h"

/* ---- which file ---- */

/* The next index of this worker; false when the job is to end. */
static bool take_idx(struct tree_worker *worker, size_t *ret_idx)
{
    struct tree_run *run = worker->run;
    if (atomic_load_explicit(worker->is_stopped, memory_order_relaxed)) {
        return false;
    }
    if (worker->at == worker->end) {
        size_t first = atomic_fetch_add(&run->next_idx, run->chunk);
        if (first >= run->n) {
            return false;
        }
        worker->at = first;
        worker->end = first + run->chunk < run->n ? first + run->chunk : run->n;
        atomic_fetch_add_explicit(&run->n_done, worker->end - first, memory_order_relaxed);
    }
    *ret_idx = worker->at++;
    return true;
}

/* -1 with the error, or 0 where the run takes note and goes on. */
MUST_CHECK static int unreadable(struct tree_worker *worker, const char *op, size_t idx,
                                 struct err *err)
{
    struct tree_run *run = worker->run;
    if (run->on_unreadable) {
        run->on_unreadable(run->ctx, idx);
        return 0;
    }
    return err_set(err, err_code_of_errno(errno), "%s %s/%s: %s", op, run->opts->folder,
                   run->files[idx].path, err_errno_text(errno));
}

static bool find_cached(struct tree_worker *worker, size_t idx)
{
    struct tree_run *run = worker->run;
    struct digest_key key;
    struct digest_value value;
    struct stat info;
    if (fstatat(run->root_fd, run->files[idx].path, &info, 0) < 0 || !S_ISREG(info.st_mode)) {
        return false; /* opening it will say what is wrong */
    }
    digest_key_of(&info, &key);
    if (!digest_cache_find(run->opts->cache, &key, run->kinds, &value)) {
        return false;
    }
    atomic_fetch_add_explicit(&run->n_cached, 1, memory_order_relaxed);
    run->on_value(run->ctx, idx, &value);
    return true;
}

/* 1: open; 0: noted as unreadable. */
static int open_file(struct tree_worker *worker, size_t idx, struct tree_open *ret_open,
                     struct err *err)
{
    struct tree_run *run = worker->run;
    CLEANUP(fd)
    int fd =
        openat(run->root_fd, run->files[idx].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        return unreadable(worker, "open", idx, err);
    }
    if (!S_ISREG(info.st_mode)) { /* it was one when the folder was listed */
        errno = S_ISDIR(info.st_mode) ? EISDIR : ENXIO;
        return unreadable(worker, "open", idx, err);
    }
    *ret_open = (struct tree_open){.idx = idx};
    digest_key_of(&info, &ret_open->key);
    ret_open->is_settled = run->opts->cache &&
                           digest_cache_is_settled(run->opts->cache, &ret_open->key, run->slack_ns);
    ret_open->fd = take_fd(&fd);
    return 1;
}

int tree_next(struct tree_worker *worker, struct tree_open *ret_open, struct err *err)
{
    struct tree_run *run = worker->run;
    size_t idx;
    while (take_idx(worker, &idx)) {
        if ((run->is_wanted && !run->is_wanted[idx]) ||
            (run->opts->cache && !run->opts->is_deep && find_cached(worker, idx))) {
            continue;
        }
        int result = open_file(worker, idx, ret_open, err);
        if (result != 0) {
            return result;
        }
    }
    return 0;
}

/* ---- its bytes ---- */

int tree_fill(struct tree_worker *worker, struct tree_open *open, uint8_t *buf, size_t size,
              size_t *ret_len, struct err *err)
{
    size_t len = 0;
    while (len < size) {
        ssize_t got = read(open->fd, buf + len, size - len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            int result = unreadable(worker, "read", open->idx, err);
            fd_close(&open->fd);
            return result < 0 ? -1 : 1;
        }
        if (got == 0) {
            break;
        }
        len += (size_t)got;
    }
    atomic_fetch_add_explicit(&worker->run->bytes_read, len, memory_order_relaxed);
    *ret_len = len;
    return 0;
}

void tree_done(struct tree_worker *worker, struct tree_open *open, const struct digest_value *value)
{
    struct tree_run *run = worker->run;
    fd_close(&open->fd);
    /* Where the size is another than before, it grew or shrank meanwhile: its times are new, and it would not be found. */
    if (open->is_settled && value->size_bytes == open->key.size_bytes) {
        digest_cache_add(run->opts->cache, &open->key, run->kinds, value);
    }
    run->on_value(run->ctx, open->idx, value);
}

int tree_digest(struct tree_worker *worker, struct tree_open *open, struct digest *digest,
                uint8_t *buf, struct err *err)
{
    size_t len = TREE_READ_BYTES;
    digest_start(digest, worker->run->kinds);
    while (len == TREE_READ_BYTES) {
        int result = tree_fill(worker, open, buf, TREE_READ_BYTES, &len, err);
        if (result != 0) {
            return result < 0 ? -1 : 0;
        }
        if (atomic_load_explicit(worker->is_stopped, memory_order_relaxed)) {
            fd_close(&open->fd); /* the owner has its reason already */
            return 0;
        }
        digest_update(digest, buf, len);
    }
    struct digest_value value = digest_finish(digest);
    tree_done(worker, open, &value);
    return 0;
}

static int work_plainly(struct tree_worker *worker, struct err *err)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    CLEANUP(free) uint8_t *buf = xmalloc(TREE_READ_BYTES);
    struct tree_open open = {.fd = -1};
    int result;
    while ((result = tree_next(worker, &open, err)) == 1) {
        if (tree_digest(worker, &open, &digest, buf, err) < 0) {
            fd_close(&open.fd);
            return -1;
        }
    }
    return result;
}

int tree_work(struct tree_worker *worker, struct err *err)
{
    return tree_has_lanes(worker->run->kinds) ? tree_work_lanes(worker, err)
                                              : work_plainly(worker, err);
}

int tree_batch_digest(const struct tree_batch *batch, const atomic_bool *is_stopped,
                      struct err *err)
{
    const struct tree_opts opts = {.folder = "."};
    struct tree_run run = {.opts = &opts,
                           .kinds = batch->kinds,
                           .files = batch->files,
                           .n = batch->n,
                           .on_value = batch->on_value,
                           .ctx = batch->ctx,
                           .root_fd = batch->root_fd,
                           .chunk = batch->n};
    struct tree_worker worker = {.run = &run, .is_stopped = is_stopped};
    if (tree_work(&worker, err) < 0) {
        return -1;
    }
    return atomic_load(is_stopped) ? err_set(err, ERR_INTERRUPTED, "interrupted") : 0;
}
