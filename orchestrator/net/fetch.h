/* SPDX-License-Identifier: Apache-2.0 */
/* One file from one or more mirrors into a folder of its own: ranges over several connections, digests computed while
   writing, partial data kept if the process dies. The folder holds `data` and `state` (which blocks of it are there) and
   is locked while a fetch runs.

   Mirrors are asked in their order: the next one when one fails, and for a piece that was wrong. Order of trust: known digests of
   pieces (a piece that is wrong is fetched again), the digest of the whole, the size. A wrong file without known pieces is
   ERR_INTEGRITY after one try of each mirror. A file that has changed since the last time (ETag, Last-Modified, size), or whose
   mirror changes while nothing is known of it, is fetched from the start. If no mirror has ranges, one request at a time reads
   the file from the start. A file never counts as complete without a length, a digest, or an end marked by the protocol. */
#pragma once

#include "codec/digest.h"
#include "net/http.h"
#include "sys/pool.h"

#define FETCH_MIRRORS_MAX     16
#define FETCH_CONNECTIONS_MAX 16
#define FETCH_PIECES_MAX      (1u << 20)

/* The SHA-256 of each piece_bytes of the file; the last one is shorter. */
struct fetch_pieces {
    uint64_t piece_bytes;
    const uint8_t (*sha256)[SHA256_BYTES];
    size_t n;
};

struct fetch_spec {
    const char *name;        /* for messages: "cityscapes.tar" */
    const char *const *urls; /* mirrors, best first */
    size_t n_urls;
    const char *folder; /* created if missing */
    int64_t size_bytes; /* -1: not known */
    unsigned kinds;     /* digests wanted besides those expected */
    const uint8_t *md5; /* expected; NULL: not known */
    const uint8_t *sha256;
    const struct fetch_pieces *pieces; /* NULL: none are known */
    size_t n_connections;              /* 0: 8 */
    int n_retries;      /* for one piece and mirror after ERR_NET, ERR_TIMEOUT, 429, 5xx; 0: 5 */
    int64_t backoff_ns; /* before the first new try, then twice as long each time; 0: 0.5 s */
    uint64_t rate_bytes_per_s; /* all connections together; 0: no limit */
    uint64_t spare_bytes;      /* must be free on the disk besides the file, for what comes after */
};

struct fetch_result {
    struct digest_value value; /* size, and the digests that were wanted or expected */
    const char *data_path;     /* FOLDER/data, synced */
    const char *url;           /* the mirror that gave most of it */
    uint64_t received_bytes;   /* over the network in this process, headers not counted */
    uint64_t kept_bytes;       /* from an earlier process */
    uint64_t again_bytes;      /* received more than once: bad pieces, cut connections */
    size_t n_bad_pieces;
};

struct fetch;

/* What a fetch runs with; both outlive it. should_stop may be NULL. */
struct fetch_run {
    struct http *http; /* no other transfers are on it meanwhile */
    struct pool *pool;
    struct clock_src clock;
    bool wants_progress; /* a bar */
    bool (*should_stop)(void);
};

/* The spec is borrowed until fetch_free. ERR_DISK if it does not fit (or later, once the size is known); ERR_IO "is being fetched
   by another process" if the folder is locked. */
MUST_CHECK int fetch_new(const struct fetch_run *run, const struct fetch_spec *spec,
                         struct fetch **ret_fetch, struct err *err);
/* All of it, or ERR_FETCH (404, 410, gone everywhere), ERR_AUTH (401, 403), ERR_INTEGRITY, ERR_NET (silence, too), ERR_USAGE
   (URL), ERR_DISK, ERR_INTERRUPTED (a stop). Complete blocks stay for the next try, except after ERR_INTEGRITY of the whole
   file. */
MUST_CHECK int fetch_all(struct fetch *fetch, struct err *err);
void fetch_progress(const struct fetch *fetch, uint64_t *ret_done_bytes, uint64_t *ret_total_bytes);
/* Once it is all there; lives as long as the fetch. */
const struct fetch_result *fetch_result(const struct fetch *fetch);
/* Writes the state, gives up the lock. The folder stays. */
void fetch_free(struct fetch *fetch);
CLEANUP_POINTER(fetch, struct fetch, fetch_free);
