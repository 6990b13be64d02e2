/* SPDX-License-Identifier: Apache-2.0 */
/* What one thread of the pool does: takes the next few files until there are none. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "engine/tree_impl.h"

/* Small enough to stay in a core's second-level cache between the copy and the hashing. */
#define READ_BYTES (128u << 10)

struct reading {
    struct tree_worker *worker;
    struct digest digest;
    uint8_t *buf;
};

MUST_CHECK static int file_fail(struct tree_worker *worker, const char *op, size_t idx,
                                struct err *err)
{
    worker->err_idx = idx;
    return err_set(err, err_code_of_errno(errno), "%s %s/%s: %s", op, worker->run->opts->folder,
                   worker->run->files[idx].path, err_errno_text(errno));
}

/* 1 where the file cannot be read and the run goes on. */
static int hash_file(struct reading *reading, size_t idx, struct err *err)
{
    struct tree_run *run = reading->worker->run;
    CLEANUP(fd)
    int fd =
        openat(run->root_fd, run->files[idx].path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct digest_value value;
    ssize_t got;
    if (fd < 0) {
        return run->on_unreadable ? 1 : file_fail(reading->worker, "open", idx, err);
    }
    if (digest_start(&reading->digest, run->kinds, err) < 0) {
        return -1;
    }
    while ((got = read(fd, reading->buf, READ_BYTES)) != 0) {
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return run->on_unreadable ? 1 : file_fail(reading->worker, "read", idx, err);
        }
        if (atomic_load_explicit(&run->must_stop, memory_order_relaxed)) {
            return 0; /* the owner has its reason already */
        }
        if (digest_update(&reading->digest, reading->buf, (size_t)got, err) < 0) {
            return -1;
        }
    }
    if (digest_finish(&reading->digest, &value, err) < 0) {
        return -1;
    }
    atomic_fetch_add_explicit(&run->bytes_read, value.size_bytes, memory_order_relaxed);
    run->on_value(run->ctx, idx, &value);
    return 0;
}

static int take_file(struct reading *reading, size_t idx, struct err *err)
{
    struct tree_run *run = reading->worker->run;
    int result;
    if (run->is_wanted && !run->is_wanted[idx]) {
        return 0;
    }
    result = hash_file(reading, idx, err);
    if (result == 1) {
        run->on_unreadable(run->ctx, idx);
    }
    return result < 0 ? -1 : 0;
}

int tree_work(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct tree_worker *worker = arg;
    struct tree_run *run = worker->run;
    CLEANUP(free) uint8_t *buf = xmalloc(READ_BYTES);
    struct reading reading = {.worker = worker, .buf = buf};
    int result = 0;
    while (result == 0 && !atomic_load(&run->must_stop)) {
        size_t first = atomic_fetch_add(&run->next_idx, run->chunk);
        size_t end = first + run->chunk < run->n ? first + run->chunk : run->n;
        if (first >= run->n) {
            break;
        }
        if (atomic_load(is_cancelled)) {
            result = err_set(err, ERR_INTERRUPTED, "%s: interrupted", run->opts->folder);
        }
        for (size_t idx = first; result == 0 && idx < end; idx++) {
            result = take_file(&reading, idx, err);
        }
        atomic_fetch_add(&run->n_done, end - first);
    }
    digest_release(&reading.digest);
    return result;
}
