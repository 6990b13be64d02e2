/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing on the pool: each thread takes the next few files until there are none. It is in reperf-node, too. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/sha256_pair.h"
#include "codec/md5_many.h"
#include "sys/pool.h"
#include "sys/tree_impl.h"

#define CHUNK_MAX       64
#define TREE_READ_BYTES (128u << 10)

struct tree_worker {
    struct tree_run *run;
    const atomic_bool *is_stopped; /* it ends early, with what it has; borrowed */
    size_t at, end;                /* its part of the files */
};

/* A file that is being read. */
struct tree_open {
    int fd;
    size_t idx;
    struct digest_key key;
    bool is_settled; /* its digest may be cached */
};

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

/* The next file that must be read; files that are cached, not wanted or cannot be opened are handled on the way. 1: *ret_open
   is open; 0: there is none (for this job). */
static int tree_next(struct tree_worker *worker, struct tree_open *ret_open, struct err *err)
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

/* Fills buf unless the file ends. 0, or 1: it cannot be read, which is noted, and the file is closed. */
static int tree_fill(struct tree_worker *worker, struct tree_open *open, uint8_t *buf, size_t size,
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

static void tree_done(struct tree_worker *worker, struct tree_open *open,
                      const struct digest_value *value)
{
    struct tree_run *run = worker->run;
    fd_close(&open->fd);
    /* Where the size is another than before, it grew or shrank meanwhile: its times are new, and it would not be found. */
    if (open->is_settled && value->size_bytes == open->key.size_bytes) {
        digest_cache_add(run->opts->cache, &open->key, run->kinds, value);
    }
    run->on_value(run->ctx, open->idx, value);
}

/* All of an open file by OpenSSL. */
static int tree_digest(struct tree_worker *worker, struct tree_open *open, struct digest *digest,
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

/* ---- lanes ---- */

/* Many files by one thread: each lane has a file, all are fed the same number of blocks; a lane whose buffer is used up reads on,
   and one whose file has ended takes the next. MD5 has 16 lanes, SHA-256 two; where both are wanted, MD5 goes in lanes and
   SHA-256 through OpenSSL, file by file. */

#define LANES_MAX   MD5_LANES_MAX
#define BLOCK_BYTES 64
_Static_assert(BLOCK_BYTES == MD5_BLOCK_BYTES, "one size for both");
_Static_assert(BLOCK_BYTES == SHA256_BLOCK, "one size for both");

/* For one large file OpenSSL alone is as fast as one lane of many, or faster: it goes first, the lanes wait. */
#define ALONE_BYTES (256u << 20)

struct tree_lane {
    struct tree_open file; /* fd -1: free */
    uint8_t *buf;          /* way->buf_bytes and two blocks for the padding */
    size_t at, end;        /* whole blocks that are to be fed */
    size_t tail_len;       /* behind `end`, where the way has no padding of its own */
    bool is_last;          /* the file has ended in this buffer */
    uint64_t size_bytes;
    struct digest other; /* the kind that does not go in lanes, where it is wanted too */
};

struct tree_lanes {
    struct tree_worker *worker;
    const struct lane_way *way;
    unsigned other_kinds;
    struct md5_many md5;
    struct sha256_lane sha256[2];
    struct tree_lane lane[LANES_MAX];
    uint8_t *buf;
    struct digest alone;
};

/* ---- the two ways ---- */

struct lane_way {
    unsigned kind;
    size_t n_lanes;
    size_t buf_bytes; /* each lane's; all together stay in a second-level cache */
    void (*start)(struct tree_lanes *lanes, size_t idx);
    void (*blocks)(struct tree_lanes *lanes, const uint8_t *const *ptrs, size_t n_blocks);
    size_t (*pad)(uint8_t *tail, size_t tail_len, uint64_t message_bytes); /* NULL: value does */
    void (*value)(struct tree_lanes *lanes, size_t idx, struct digest_value *value);
};

static void md5_start(struct tree_lanes *lanes, size_t idx)
{
    md5_many_start(&lanes->md5, idx);
}

static void md5_blocks(struct tree_lanes *lanes, const uint8_t *const *ptrs, size_t n_blocks)
{
    md5_many_blocks(&lanes->md5, ptrs, n_blocks);
}

static void md5_value(struct tree_lanes *lanes, size_t idx, struct digest_value *value)
{
    md5_many_value(&lanes->md5, idx, value->md5);
}

static void sha256_start(struct tree_lanes *lanes, size_t idx)
{
    sha256_lane_start(&lanes->sha256[idx]);
}

static void sha256_blocks(struct tree_lanes *lanes, const uint8_t *const *ptrs, size_t n_blocks)
{
    size_t len = n_blocks * BLOCK_BYTES;
    bool is_first = lanes->lane[0].file.fd >= 0;
    if (is_first && lanes->lane[1].file.fd >= 0) {
        sha256_pair_add(&lanes->sha256[0], ptrs[0], len, &lanes->sha256[1], ptrs[1], len);
    } else {
        sha256_lane_add(&lanes->sha256[!is_first], ptrs[!is_first], len);
    }
}

static void sha256_value(struct tree_lanes *lanes, size_t idx, struct digest_value *value)
{
    const struct tree_lane *lane = &lanes->lane[idx];
    sha256_lane_add(&lanes->sha256[idx], lane->buf + lane->end, lane->tail_len);
    sha256_lane_finish(&lanes->sha256[idx], value->sha256);
}

static const struct lane_way MD5_WAY = {DIGEST_MD5, MD5_LANES_MAX, 32u << 10, md5_start,
                                        md5_blocks, md5_many_pad,  md5_value};
static const struct lane_way SHA256_WAY = {DIGEST_SHA256, 2,    128u << 10,  sha256_start,
                                           sha256_blocks, NULL, sha256_value};

static const struct lane_way *choose(unsigned kinds)
{
    if ((kinds & DIGEST_MD5) && md5_many_way() != MD5_WAY_NONE) {
        return &MD5_WAY;
    }
    return kinds == DIGEST_SHA256 && sha256_pair_is_there() ? &SHA256_WAY : NULL;
}

/* ---- one lane ---- */

/* 1: unreadable, and noted: the lane is free. */
static int lane_read(struct tree_lanes *lanes, struct tree_lane *lane, struct err *err)
{
    size_t len;
    int result = tree_fill(lanes->worker, &lane->file, lane->buf, lanes->way->buf_bytes, &len, err);
    if (result != 0) {
        return result;
    }
    if (lanes->other_kinds) {
        digest_update(&lane->other, lane->buf, len);
    }
    lane->size_bytes += len;
    lane->at = 0;
    lane->end = len;
    if (len < lanes->way->buf_bytes) {
        lane->is_last = true;
        lane->tail_len = len % BLOCK_BYTES;
        lane->end = len - lane->tail_len;
        if (lanes->way->pad) {
            lane->end += BLOCK_BYTES *
                         lanes->way->pad(lane->buf + lane->end, lane->tail_len, lane->size_bytes);
        }
    }
    return 0;
}

static void lane_finish(struct tree_lanes *lanes, size_t idx)
{
    struct tree_lane *lane = &lanes->lane[idx];
    struct digest_value value = {0};
    if (lanes->other_kinds) {
        value = digest_finish(&lane->other);
    }
    value.size_bytes = lane->size_bytes;
    lanes->way->value(lanes, idx, &value);
    tree_done(lanes->worker, &lane->file, &value);
}

/* 1: the lane has a file, of which nothing is read yet; 0: there is none for it. */
static int lane_begin(struct tree_lanes *lanes, size_t idx, struct err *err)
{
    struct tree_lane *lane = &lanes->lane[idx];
    int result;
    while ((result = tree_next(lanes->worker, &lane->file, err)) == 1) {
        if (lane->file.key.size_bytes < ALONE_BYTES) {
            break;
        }
        if (tree_digest(lanes->worker, &lane->file, &lanes->alone, lanes->buf, err) < 0) {
            return -1;
        }
    }
    if (result != 1) {
        return result;
    }
    lane->size_bytes = 0;
    lane->at = lane->end = 0;
    lane->is_last = false;
    lanes->way->start(lanes, idx);
    if (lanes->other_kinds) {
        digest_start(&lane->other, lanes->other_kinds);
    }
    return 1;
}

/* Brings a lane to where it has something to feed, or is free because there are no more files. */
static int lane_go_on(struct tree_lanes *lanes, size_t idx, struct err *err)
{
    struct tree_lane *lane = &lanes->lane[idx];
    int result = 0;
    while (result >= 0 && (lane->file.fd < 0 || lane->at == lane->end)) {
        if (lane->file.fd < 0) {
            result = lane_begin(lanes, idx, err);
            if (result == 0) {
                return 0;
            }
        } else if (lane->is_last) {
            lane_finish(lanes, idx);
        } else {
            result = lane_read(lanes, lane, err);
        }
    }
    return result < 0 ? -1 : 0;
}

/* ---- all lanes ---- */

/* False when no lane has anything. */
static bool feed(struct tree_lanes *lanes)
{
    const uint8_t *ptrs[LANES_MAX];
    const uint8_t *any = NULL;
    size_t bytes = SIZE_MAX;
    for (size_t idx = 0; idx < lanes->way->n_lanes; idx++) {
        const struct tree_lane *lane = &lanes->lane[idx];
        if (lane->file.fd >= 0 && lane->end - lane->at < bytes) {
            bytes = lane->end - lane->at;
            any = lane->buf + lane->at;
        }
    }
    if (!any) {
        return false;
    }
    for (size_t idx = 0; idx < lanes->way->n_lanes; idx++) {
        struct tree_lane *lane = &lanes->lane[idx];
        bool is_used = lane->file.fd >= 0;
        ptrs[idx] = is_used ? lane->buf + lane->at : any;
        lane->at += is_used ? bytes : 0;
    }
    lanes->way->blocks(lanes, ptrs, bytes / BLOCK_BYTES);
    return true;
}

static int work_lanes(struct tree_lanes *lanes, struct err *err)
{
    do {
        if (atomic_load_explicit(lanes->worker->is_stopped, memory_order_relaxed)) {
            return 0;
        }
        for (size_t idx = 0; idx < lanes->way->n_lanes; idx++) {
            if (lane_go_on(lanes, idx, err) < 0) {
                return -1;
            }
        }
    } while (feed(lanes));
    return 0;
}

/* The job where the processor computes several files at once: MD5 in vectors, SHA-256 with its own instructions. */
static int tree_work_lanes(struct tree_worker *worker, struct err *err)
{
    const struct lane_way *way = choose(worker->run->kinds);
    ASSERT(way != NULL);
    struct tree_lanes lanes = {.worker = worker, .way = way};
    const size_t lane_room = way->buf_bytes + 2 * (size_t)BLOCK_BYTES;
    CLEANUP(free) uint8_t *buf = xmalloc(way->n_lanes * lane_room + TREE_READ_BYTES);
    lanes.other_kinds = worker->run->kinds & ~way->kind;
    if (way == &MD5_WAY) {
        md5_many_init(&lanes.md5, md5_many_way());
    }
    for (size_t idx = 0; idx < way->n_lanes; idx++) {
        lanes.lane[idx].buf = buf + idx * lane_room;
        lanes.lane[idx].file.fd = -1;
    }
    lanes.buf = buf + way->n_lanes * lane_room;
    int result = work_lanes(&lanes, err);
    for (size_t idx = 0; idx < way->n_lanes; idx++) {
        fd_close(&lanes.lane[idx].file.fd);
        digest_release(&lanes.lane[idx].other);
    }
    digest_release(&lanes.alone);
    return result;
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

static int tree_work(struct tree_worker *worker, struct err *err)
{
    return choose(worker->run->kinds) ? tree_work_lanes(worker, err) : work_plainly(worker, err);
}

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
