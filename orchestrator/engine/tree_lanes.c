/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 of many files by one thread: each lane has a file, all are fed the same number of blocks; a lane whose buffer is used up
   reads on, and one whose file has ended takes the next. */
#include "base/base.h"

#include "base/fs.h"
#include "codec/md5_many.h"
#include "engine/tree_impl.h"

/* All lanes' buffers together stay in a second-level cache of 1 MiB. */
#define LANE_BYTES (32u << 10)
/* OpenSSL alone is faster for one large file than one lane of many: it goes first, the lanes wait. */
#define ALONE_BYTES (256u << 20)

struct lane {
    struct tree_open file; /* fd -1: free */
    uint8_t *buf;          /* LANE_BYTES and two blocks for the padding */
    size_t at, end;        /* whole blocks that are to be fed */
    bool is_padded;
    uint64_t size_bytes;
    struct digest sha256; /* where that is wanted too */
};

struct lanes {
    struct tree_worker *worker;
    bool wants_sha256;
    struct md5_many many;
    struct lane lane[MD5_LANES_MAX];
    uint8_t *buf;
    struct digest alone;
};

/* 1: unreadable, and noted: the lane is free. */
static int lane_read(struct lanes *lanes, struct lane *lane, struct err *err)
{
    size_t len;
    int result = tree_fill(lanes->worker, &lane->file, lane->buf, LANE_BYTES, &len, err);
    if (result != 0) {
        return result;
    }
    if (lanes->wants_sha256 && digest_update(&lane->sha256, lane->buf, len, err) < 0) {
        return -1;
    }
    lane->size_bytes += len;
    lane->at = 0;
    lane->end = len;
    if (len < LANE_BYTES) {
        size_t tail_len = len % MD5_BLOCK_BYTES;
        size_t n_blocks = md5_many_pad(lane->buf + (len - tail_len), tail_len, lane->size_bytes);
        lane->end = len - tail_len + n_blocks * MD5_BLOCK_BYTES;
        lane->is_padded = true;
    }
    return 0;
}

static int lane_finish(struct lanes *lanes, size_t idx, struct err *err)
{
    struct lane *lane = &lanes->lane[idx];
    struct digest_value value = {0};
    if (lanes->wants_sha256 && digest_finish(&lane->sha256, &value, err) < 0) {
        return -1;
    }
    value.size_bytes = lane->size_bytes;
    md5_many_value(&lanes->many, idx, value.md5);
    tree_done(lanes->worker, &lane->file, &value);
    return 0;
}

/* Gives the lane a file with at least one block to feed; leaves it free where there is none. */
static int lane_begin(struct lanes *lanes, size_t idx, struct err *err)
{
    struct lane *lane = &lanes->lane[idx];
    int result;
    while ((result = tree_next(lanes->worker, &lane->file, err)) == 1) {
        if (lane->file.key.size_bytes >= ALONE_BYTES) {
            if (tree_digest(lanes->worker, &lane->file, &lanes->alone, lanes->buf, err) < 0) {
                return -1;
            }
            continue;
        }
        lane->size_bytes = 0;
        lane->is_padded = false;
        md5_many_start(&lanes->many, idx);
        if (lanes->wants_sha256 && digest_start(&lane->sha256, DIGEST_SHA256, err) < 0) {
            return -1;
        }
        result = lane_read(lanes, lane, err);
        if (result <= 0) {
            return result;
        }
    }
    return result;
}

/* Brings a lane to where it has something to feed, or is free because there are no more files. */
static int lane_go_on(struct lanes *lanes, size_t idx, struct err *err)
{
    struct lane *lane = &lanes->lane[idx];
    if (lane->file.fd >= 0 && lane->at < lane->end) {
        return 0;
    }
    if (lane->file.fd >= 0 && !lane->is_padded) {
        int result = lane_read(lanes, lane, err);
        if (result <= 0) {
            return result;
        }
    } else if (lane->file.fd >= 0 && lane_finish(lanes, idx, err) < 0) {
        return -1;
    }
    return lane_begin(lanes, idx, err);
}

/* False when no lane has anything. */
static bool feed(struct lanes *lanes)
{
    const uint8_t *ptrs[MD5_LANES_MAX];
    const uint8_t *any = NULL;
    size_t bytes = SIZE_MAX;
    for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
        const struct lane *lane = &lanes->lane[idx];
        if (lane->file.fd >= 0 && lane->end - lane->at < bytes) {
            bytes = lane->end - lane->at;
            any = lane->buf + lane->at;
        }
    }
    if (!any) {
        return false;
    }
    for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
        struct lane *lane = &lanes->lane[idx];
        bool is_used = lane->file.fd >= 0;
        ptrs[idx] = is_used ? lane->buf + lane->at : any;
        lane->at += is_used ? bytes : 0;
    }
    md5_many_blocks(&lanes->many, ptrs, bytes / MD5_BLOCK_BYTES);
    return true;
}

static int work(struct lanes *lanes, struct err *err)
{
    do {
        if (atomic_load_explicit(&lanes->worker->run->must_stop, memory_order_relaxed)) {
            return 0;
        }
        for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
            if (lane_go_on(lanes, idx, err) < 0) {
                return -1;
            }
        }
    } while (feed(lanes));
    return 0;
}

int tree_work_lanes(struct tree_worker *worker, struct err *err)
{
    const size_t lane_room = LANE_BYTES + 2 * MD5_BLOCK_BYTES;
    struct lanes lanes = {.worker = worker,
                          .wants_sha256 = (worker->run->kinds & DIGEST_SHA256) != 0};
    CLEANUP(free) uint8_t *buf = xmalloc(MD5_LANES_MAX * lane_room + TREE_READ_BYTES);
    int result;
    md5_many_init(&lanes.many, md5_many_way());
    for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
        lanes.lane[idx].buf = buf + idx * lane_room;
        lanes.lane[idx].file.fd = -1;
    }
    lanes.buf = buf + MD5_LANES_MAX * lane_room;
    result = work(&lanes, err);
    for (size_t idx = 0; idx < MD5_LANES_MAX; idx++) {
        fd_close(&lanes.lane[idx].file.fd);
        digest_release(&lanes.lane[idx].sha256);
    }
    digest_release(&lanes.alone);
    return result;
}
