/* SPDX-License-Identifier: Apache-2.0 */
/* Many files by one thread: each lane has a file, all are fed the same number of blocks; a lane whose buffer is used up reads on,
   and one whose file has ended takes the next. MD5 has 16 lanes, SHA-256 two; where both are wanted, MD5 goes in lanes and
   SHA-256 through OpenSSL, file by file. */
#include "base/base.h"

#include "base/fs.h"
#include "base/sha256_pair.h"
#include "codec/md5_many.h"
#include "sys/tree_impl.h"

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
    size_t buf_bytes; /* of each lane; all together stay in a second-level cache */
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

bool tree_has_lanes(unsigned kinds)
{
    return choose(kinds) != NULL;
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

static int work(struct tree_lanes *lanes, struct err *err)
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

int tree_work_lanes(struct tree_worker *worker, struct err *err)
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
    int result = work(&lanes, err);
    for (size_t idx = 0; idx < way->n_lanes; idx++) {
        fd_close(&lanes.lane[idx].file.fd);
        digest_release(&lanes.lane[idx].other);
    }
    digest_release(&lanes.alone);
    return result;
}
