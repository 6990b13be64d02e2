/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of what was fetched: of each piece once its blocks are there, and of the whole behind the frontier. The pool reads the
   file again, from the page cache. */
#include "base/base.h"

#include "net/fetch_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/publish.h"

#define READ_BYTES      (256u << 10) /* stays in the core's own cache between the copy and the digest */
#define WHOLE_MIN_BYTES (4u << 20)
#define WHOLE_MAX_BYTES (32u << 20)

/* --- in the pool's threads ---------------------------------------------------------------------------- */

static int read_some(struct read_job *read, uint8_t *buf, struct err *err)
{
    uint64_t left = read->until - read->pos;
    ssize_t got =
        pread(read->fd, buf, left < READ_BYTES ? (size_t)left : READ_BYTES, (off_t)read->pos);
    if (got < 0 && errno == EINTR) {
        return 0;
    }
    if (got <= 0) {
        return err_set(err, got < 0 ? err_code_of_errno(errno) : ERR_IO,
                       "read what was fetched at byte %" PRIu64 ": %s", read->pos,
                       got < 0 ? err_errno_text(errno) : "the file became shorter");
    }
    read->pos += (uint64_t)got;
    digest_update(&read->digest, buf, (size_t)got);
    return 0;
}

static int run_read(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct read_job *read = arg;
    CLEANUP(free) uint8_t *buf = xmalloc(READ_BYTES);
    uint64_t from = read->pos;
    while (read->digest.kinds && read->pos < read->until) {
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "stopped");
        }
        if (read_some(read, buf, err) < 0) {
            return -1;
        }
    }
    read->pos = read->until;
    /* Lets the disk start writing what will be synced at the end anyway; if that is not possible, nothing is lost. */
    (void)sync_file_range(read->fd, (off_t)from, (off_t)(read->until - from),
                          SYNC_FILE_RANGE_WRITE);
    return read->syncs ? publish_data(read->fd, "what was fetched", err) : 0;
}

static void submit(struct fetch *fetch, struct read_job *read)
{
    read->fd = fetch->data_fd;
    read->job.fn = run_read;
    read->job.arg = read;
    read->is_busy = true;
    pool_submit(fetch->pool, &read->job);
}

/* 1: it has ended well, 0: it runs. */
static int poll_job(struct fetch *fetch, struct read_job *read, struct err *err)
{
    if (!pool_is_done(fetch->pool, &read->job)) {
        return 0;
    }
    read->is_busy = false;
    return pool_wait(fetch->pool, &read->job, err) < 0 ? -1 : 1;
}

/* --- pieces ------------------------------------------------------------------------------------------- */

void read_piece_is_there(struct fetch *fetch, size_t piece_idx)
{
    fetch->ready[fetch->n_ready++] = piece_idx;
}

static void start_piece(struct fetch *fetch, struct read_job *read)
{
    uint64_t size_bytes = (uint64_t)fetch->size_bytes;
    read->piece_idx = fetch->ready[--fetch->n_ready];
    read->pos = read->piece_idx * fetch->piece_bytes;
    read->until =
        size_bytes - read->pos < fetch->piece_bytes ? size_bytes : read->pos + fetch->piece_bytes;
    digest_start(&read->digest, DIGEST_SHA256);
    submit(fetch, read);
}

static int drop_piece(struct fetch *fetch, size_t piece_idx, struct err *err)
{
    struct piece *piece = &fetch->pieces[piece_idx];
    size_t from = piece_idx * blocks_per_piece(fetch);
    size_t end = from + blocks_per_piece(fetch);
    end = end < fetch->n_blocks ? end : fetch->n_blocks;
    fetch->result.n_bad_pieces++;
    for (size_t idx = from; idx < end; idx++) {
        fetch_mark(fetch, idx, BLOCK_MISSING);
    }
    return ++piece->n_bad < PIECE_TRIES_MAX * fetch->n_mirrors
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: bytes %" PRIu64 " to %" PRIu64
                         " do not have the SHA-256 of piece %zu, after %u tries",
                         fetch->spec->name, block_start(fetch, from), block_end(fetch, end - 1) - 1,
                         piece_idx, piece->n_bad);
}

static int step_piece(struct fetch *fetch, struct read_job *read, struct err *err)
{
    if (read->is_busy) {
        int ended = poll_job(fetch, read, err);
        if (ended <= 0) {
            return ended;
        }
        struct digest_value value = digest_finish(&read->digest);
        if (memcmp(value.sha256, fetch->spec->pieces->sha256[read->piece_idx], SHA256_BYTES) == 0) {
            fetch->pieces[read->piece_idx].is_good = true;
        } else if (drop_piece(fetch, read->piece_idx, err) < 0) {
            return -1;
        }
    }
    if (fetch->n_ready) {
        start_piece(fetch, read);
    }
    return 0;
}

/* --- the whole ---------------------------------------------------------------------------------------- */

/* Bytes from the start that will not be written again. */
static uint64_t sure_bytes(struct fetch *fetch)
{
    if (fetch->is_open_end || !fetch->map) {
        return fetch->is_open_end ? fetch->done_bytes : 0;
    }
    while (
        fetch->frontier < fetch->n_blocks && is_there(fetch, fetch->frontier) &&
        (!fetch->piece_bytes || fetch->pieces[fetch->frontier / blocks_per_piece(fetch)].is_good)) {
        fetch->frontier++;
    }
    return fetch->frontier == fetch->n_blocks ? (uint64_t)fetch->size_bytes
                                              : block_start(fetch, fetch->frontier);
}

static bool is_all_there(const struct fetch *fetch)
{
    return fetch->is_open_end ? fetch->is_ended : fetch->map && fetch->frontier == fetch->n_blocks;
}

static int step_whole(struct fetch *fetch, struct err *err)
{
    struct read_job *whole = &fetch->whole;
    uint64_t sure = sure_bytes(fetch);
    if (whole->is_busy) {
        int ended = poll_job(fetch, whole, err);
        if (ended <= 0) {
            return ended;
        }
        whole->is_synced = whole->syncs;
    }
    if (is_all_there(fetch) ? whole->is_synced : sure - whole->pos < WHOLE_MIN_BYTES) {
        return 0;
    }
    whole->until = sure - whole->pos < WHOLE_MAX_BYTES ? sure : whole->pos + WHOLE_MAX_BYTES;
    whole->syncs = is_all_there(fetch) && whole->until == sure;
    submit(fetch, whole);
    return 0;
}

int read_step(struct fetch *fetch, struct err *err)
{
    for (size_t idx = 0; idx < PIECE_JOBS; idx++) {
        if (step_piece(fetch, &fetch->piece_jobs[idx], err) < 0) {
            return -1;
        }
    }
    return step_whole(fetch, err);
}

bool read_is_over(const struct fetch *fetch)
{
    return is_all_there(fetch) && !fetch->whole.is_busy && fetch->whole.is_synced;
}

static void wait_job(struct fetch *fetch, struct read_job *read)
{
    struct err ignored = {0};
    if (read->is_busy) {
        (void)!pool_wait(fetch->pool, &read->job, &ignored);
        read->is_busy = false;
    }
}

static void wait_all(struct fetch *fetch)
{
    wait_job(fetch, &fetch->whole);
    for (size_t idx = 0; idx < PIECE_JOBS; idx++) {
        wait_job(fetch, &fetch->piece_jobs[idx]);
    }
}

void read_restart(struct fetch *fetch)
{
    wait_all(fetch);
    fetch->n_ready = fetch->frontier = 0;
    fetch->whole.pos = 0;
    fetch->whole.is_synced = false;
    if (fetch->kinds) {
        digest_start(&fetch->whole.digest, fetch->kinds);
    }
}

void read_release(struct fetch *fetch)
{
    wait_all(fetch);
    digest_release(&fetch->whole.digest);
    for (size_t idx = 0; idx < PIECE_JOBS; idx++) {
        digest_release(&fetch->piece_jobs[idx].digest);
    }
}
