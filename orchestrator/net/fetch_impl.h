/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a fetch, for net/fetch*.c alone. The file is cut into blocks; a slot is one connection, which carries a span of
   blocks from one mirror; jobs on the pool check blocks and feed the digests of the whole in order.

   fetch.c        life and steps            fetch_slot.c   one connection: head, body, how it ended
   fetch_plan.c   who fetches what next     fetch_check.c  jobs
   fetch_disk.c   data, state, lock         fetch_state.c  the state's bytes */
#ifndef NET_FETCH_IMPL_H
#define NET_FETCH_IMPL_H

#include "base/rng.h"
#include "net/fetch.h"
#include "net/fetch_state.h"

#define CHECK_JOBS         2
#define PROBE_BYTES        (4u << 20)
#define CHUNK_MIN_BYTES    (256u << 10)
#define CHUNK_MAX_BYTES    (64u << 20)
#define PROGRESS_BYTES     (64u << 10) /* this much progress makes a try a success */
#define PIECE_TRIES_MAX    3           /* of one mirror */
#define RESTARTS_MAX       2
#define RETRY_AFTER_MAX_NS (300 * NS_PER_S)
#define NO_MIRROR          0xFFu

enum block_state {
    BLOCK_MISSING,
    BLOCK_TAKEN,   /* of a span */
    BLOCK_CLAIMED, /* from an earlier process: its CRC is to be checked */
    BLOCK_WRITTEN, /* just received: its piece is to be checked */
    BLOCK_GOOD,
};

struct block {
    uint32_t crc;
    uint8_t state;
    uint8_t mirror;
};

struct piece {
    uint32_t n_missing; /* blocks that are MISSING or TAKEN */
    uint16_t bad_from;  /* mirrors, a bit each */
    uint8_t n_bad;
};

/* [pos, end); pos may be inside a block, whose first bytes are written and in crc. */
struct fetch_span {
    uint64_t pos, end;
    uint32_t crc;
};

struct mirror {
    const char *url, *shown;
    bool is_dead;
    struct err err;  /* the last failure */
    bool is_known;   /* it has answered correctly in this process */
    bool has_ranges; /* it gave a 206 */
    bool no_ranges;
    bool no_if_range;
    bool is_off;    /* left out in this attempt, because the file was wrong */
    bool was_used;  /* in this attempt */
    bool was_alone; /* an attempt was from it alone */
    struct str etag,
        last_modified; /* in the fetch's arena; of the file to which our blocks belong */
    int n_fails;       /* one after the other */
    int64_t rest_until_ns, failed_ns;
    size_t n_active, max_active;
    double rate; /* bytes/s of one connection; 0: not known */
    uint64_t got_bytes;
};

enum why { /* why a transfer ended, if not by an error of libcurl */
           WHY_NONE,
           WHY_ENOUGH,    /* the span is full */
           WHY_GONE,      /* 404, 410 */
           WHY_AUTH,      /* 401, 403 */
           WHY_BUSY,      /* 429, 5xx */
           WHY_CHANGED,   /* another file than before */
           WHY_NO_RANGES, /* 200 to a range */
           WHY_USELESS,   /* wrong size, encoding, status: this mirror is useless */
           WHY_FATAL,     /* disk: fetch->err is set */
};

struct slot {
    struct fetch *fetch;
    struct http_transfer *transfer; /* NULL: idle */
    struct mirror *mirror;
    struct fetch_span span;
    bool is_whole_body; /* asked without a range: the body starts at 0 */
    bool sent_if_range;
    uint64_t body_pos;    /* of the next byte of the body in the file */
    uint64_t asked_end;   /* what the request was for */
    uint64_t came_bytes;  /* in this request */
    uint64_t fresh_bytes; /* of them, those that were missing */
    bool is_delimited;
    int64_t retry_after_ns;
    enum why why;
    int64_t start_ns, window_ns;
    uint64_t window_bytes;
    double rate;
    int64_t rest_until_ns;
};

struct check_job {
    struct pool_job job;
    bool is_busy;
    int fd;
    uint64_t first_byte, n_bytes, block_bytes;
    size_t first_block, n_blocks;
    uint32_t *crcs;
    bool *has_crc;
    bool *is_bad; /* result */
    bool wants_sha256;
    uint8_t sha256[SHA256_BYTES]; /* result */
    size_t n_max;
    uint8_t *buf;
};

struct fetch_chain { /* one digest of the whole, fed in order */
    struct pool_job job;
    bool is_busy;
    unsigned kind;
    struct digest digest;
    int fd;
    uint64_t pos, until; /* of the job */
    uint8_t *buf;
};

struct sync_job {
    struct pool_job job;
    bool is_busy;
    int fd;
};

struct fetch {
    struct http *http; /* these are borrowed */
    struct pool *pool;
    struct loop *loop;
    const struct fetch_spec *spec;
    struct arena arena;
    struct rng rng;
    struct err err; /* the error that ends it */
    bool is_done;
    bool is_attached;

    const char *data_path, *state_path, *lock_path;
    int data_fd, state_fd, lock_fd;
    uint32_t state_seed;
    struct strbuf records; /* not yet appended */
    bool has_stale_head;   /* the state must be rewritten */

    struct mirror mirrors[FETCH_MIRRORS_MAX];
    size_t n_mirrors;
    struct slot slots[FETCH_CONNECTIONS_MAX];
    size_t n_slots;
    struct { /* the rest periods of failed slots */
        struct fetch_span *items;
        size_t n, n_max;
    } orphans;

    bool is_known;      /* a mirror has answered: the others may start */
    bool is_open_end;   /* no size before the end */
    bool is_ended;      /* of an open end */
    int64_t size_bytes; /* -1 */
    uint64_t block_bytes;
    struct block *blocks;
    size_t n_blocks;
    size_t first_missing; /* no block before it is MISSING */
    size_t frontier;      /* all blocks before it are GOOD */
    uint64_t missing_bytes;
    uint64_t done_bytes;

    uint64_t piece_bytes; /* 0: no pieces */
    size_t n_pieces;
    struct piece *pieces;
    uint8_t (*piece_sha256)[SHA256_BYTES];
    size_t next_claim; /* no block before it is CLAIMED; if there are no pieces */
    struct {           /* pieces whose blocks are all present, to be checked */
        size_t *items;
        size_t n, n_max;
    } ready;

    struct fetch_chain chains[DIGEST_KINDS];
    struct check_job checks[CHECK_JOBS];
    struct sync_job sync;
    bool is_synced;
    unsigned kinds;
    size_t n_changed; /* times that it was another file */
    bool has_kept;    /* blocks of an earlier process are in this attempt */
    int64_t tick_ns;
    uint64_t timer;
    size_t n_running; /* as the rate was shared out */
    struct fetch_result result;
};

#endif
