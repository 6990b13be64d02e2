/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a fetch, for net/fetch*.c alone; all of it runs in one thread but run_read.

   fetch.c        life, who fetches what next, the end;    fetch_slot.c   one connection: head, body, how it ended
                  digests, computed by the pool
   fetch_disk.c   data, state, lock                         fetch_state.c  the state's bytes

   The file is cut into blocks, small ones, so that a cut costs little; a slot is one connection, which brings a span of blocks.
   Where digests of pieces are known, a piece is a whole number of blocks.

   MISSING -- plan --> TAKEN -- body --> DONE -- its piece is wrong, the file has changed --> MISSING
              TAKEN -- the connection ends --> MISSING;   KEPT: DONE by an earlier process, and read again for the digest

   Invariants: (1) n_missing counts the MISSING blocks, done_bytes the bytes of DONE and KEPT ones. (2) A block is DONE in the
   state only after its bytes were written. (3) The digest of the whole has only seen blocks that will not be written again:
   those in front of whole.pos, which are DONE or KEPT and of good pieces. (4) Where nothing can tell a wrong file, all bytes
   come from one mirror. */
#pragma once

#include "base/rng.h"
#include "net/fetch.h"
#include "net/fetch_state.h"

#define PIECE_TRIES_MAX 3 /* for each mirror */

struct mirror {
    const char *url, *shown;
    bool is_dead;
    struct err err; /* the last failure */
    bool is_known;  /* it has answered correctly in this attempt */
    bool no_ranges;
    /* The file to which our blocks belong has these; they are in the fetch's arena. */
    struct str etag, last_modified;
    int n_fails; /* one after the other */
    int64_t rest_until_ns;
    size_t n_active, max_active;
    uint64_t got_bytes;
};

/* Why a transfer ended, if not by an error of libcurl. */
enum why {
    WHY_NONE,
    WHY_ENOUGH,    /* all of its span is there */
    WHY_DEAD,      /* the mirror is of no use: gone, a login, another size, ... */
    WHY_BUSY,      /* 429, 5xx */
    WHY_CHANGED,   /* another file than before */
    WHY_NO_RANGES, /* 200 to a range */
    WHY_FATAL,     /* the disk: not the mirror's fault */
};

struct slot {
    struct fetch *fetch;
    struct http_transfer *transfer; /* NULL: idle */
    struct mirror *mirror;
    uint64_t pos, end;  /* the bytes that are still to come */
    uint64_t asked_end; /* what the request was for */
    bool is_whole_body; /* asked without a range */
    bool is_delimited;
    uint64_t came_bytes;
    int64_t retry_after_ns;
    enum why why;
    struct err fatal;
};

/* Bytes of the file, for digests. */
struct read_job {
    struct pool_job job;
    bool is_busy;
    int fd;
    const struct fetch_pieces *pieces; /* those that are known; NULL: none */
    uint64_t pos, until;               /* what is before pos is good, and in the digest */
    struct digest digest;              /* the whole file's */
    bool is_bad;                       /* the piece at pos is */
    bool syncs;                        /* the file, then */
    bool is_synced;
};

struct fetch {
    struct fetch_run run;
    const struct fetch_spec *spec; /* borrowed */
    struct arena arena;
    struct rng rng;
    bool is_done;

    const char *data_path, *state_path, *lock_path, *boot;
    int data_fd, state_fd, lock_fd;
    bool has_stale_head;          /* the state must be rewritten */
    uint64_t map_at;              /* where the map begins in it */
    size_t dirty_from, dirty_end; /* blocks whose byte there is old */

    struct mirror mirrors[FETCH_MIRRORS_MAX];
    size_t n_mirrors;
    const struct mirror *source; /* the first that answered in this attempt; NULL: none has yet */
    bool has_many_sources;       /* another one has, too: not all bytes are from source */
    bool is_strict; /* the file was wrong once: (4) holds, although a digest is known */
    struct slot slots[FETCH_CONNECTIONS_MAX];
    size_t n_slots, n_running;

    bool is_known;      /* a mirror has answered: several connections may be made */
    bool is_open_end;   /* no size before the end */
    bool is_ended;      /* the open end has come */
    int64_t size_bytes; /* -1 */
    uint64_t block_bytes;
    char *map; /* NULL: the size is not known */
    size_t n_blocks, n_missing;
    size_t first_missing; /* no block before it is MISSING */
    size_t frontier;      /* all blocks before it are there: the digests may read them */
    uint64_t done_bytes;

    uint64_t piece_bytes; /* 0: no pieces */
    uint8_t *n_bad;       /* how often each piece was wrong */

    struct read_job whole;
    unsigned kinds;   /* digests that are computed: those expected, and spec->kinds */
    size_t n_changed; /* how often it was another file than before */
    bool has_kept;    /* in this attempt: some blocks are an earlier process's */
    struct fetch_result result;
};

/* fetch_disk.c */
MUST_CHECK int disk_open(struct fetch *fetch, struct err *err);
/* Once the size is known: room, blocks, pieces, the file's length. */
MUST_CHECK int disk_set_size(struct fetch *fetch, uint64_t size_bytes, struct err *err);
MUST_CHECK int disk_write(struct fetch *fetch, uint64_t pos, const uint8_t *ptr, size_t len,
                          struct err *err);
/* Brings the state up to what is written. */
MUST_CHECK int disk_flush(struct fetch *fetch, struct err *err);
MUST_CHECK int disk_forget(struct fetch *fetch, struct err *err);
void disk_close(struct fetch *fetch);

/* fetch_slot.c */
MUST_CHECK int slot_start(struct slot *slot, struct mirror *mirror, uint64_t pos, uint64_t end,
                          struct err *err);
/* Checks the state of its transfer and acts on it. -1: the fetch is over. */
MUST_CHECK int slot_step(struct slot *slot, struct err *err);
/* Gives back what it has not fetched. */
void slot_drop(struct slot *slot);

/* fetch.c */
void fetch_mark(struct fetch *fetch, size_t block_idx, char state);
/* Starts again from the first byte. */
MUST_CHECK int fetch_restart(struct fetch *fetch, struct err *err);
/* Can anything tell that the whole is wrong? */
bool fetch_has_expectation(const struct fetch *fetch);

static inline int64_t fetch_now_ns(const struct fetch *fetch)
{
    return fetch->run.clock.mono_ns(fetch->run.clock.ctx);
}

static inline uint64_t block_start(const struct fetch *fetch, size_t block_idx)
{
    return (uint64_t)block_idx * fetch->block_bytes;
}

static inline uint64_t block_end(const struct fetch *fetch, size_t block_idx)
{
    uint64_t end = ((uint64_t)block_idx + 1) * fetch->block_bytes;
    return end < (uint64_t)fetch->size_bytes ? end : (uint64_t)fetch->size_bytes;
}

static inline size_t blocks_per_piece(const struct fetch *fetch)
{
    return (size_t)(fetch->piece_bytes / fetch->block_bytes);
}

static inline bool is_there(const struct fetch *fetch, size_t block_idx)
{
    return fetch->map[block_idx] == BLOCK_DONE || fetch->map[block_idx] == BLOCK_KEPT;
}
