/* SPDX-License-Identifier: Apache-2.0 */
/* Every blob of a store against its name, and every reference against the blobs. Corrupt blobs are taken out of use at once:
   they move to quarantine/, so that nobody reads them and the next fetch gets them again; gc drops it there after its grace. */
#pragma once

#include "store/store.h"
#include "sys/tree.h"

enum store_fault {
    STORE_CORRUPT,    /* a blob whose bytes are not its name's */
    STORE_MISSING,    /* a reference names a missing blob */
    STORE_UNREADABLE, /* the disk cannot read it */
    STORE_FOREIGN, /* a file in blobs/sha256 that is not a blob: another tool's, perhaps abandoned */
};
extern const char *const STORE_FAULT_NAMES[4];

struct store_finding {
    enum store_fault fault;
    const char *name;  /* sha256:HEX, or the file's name */
    const char *where; /* the reference, KIND/NAME; the place in quarantine/; or NULL */
};

struct store_verify_opts {
    struct pool *pool;
    size_t n_threads;
    struct digest_cache *cache; /* filled; asked only where is_quick; or NULL */
    bool is_quick;
    int64_t now_ns; /* wall time, for the names in quarantine/ */
    void (*on_progress)(void *ctx, uint64_t bytes_done, uint64_t bytes_total); /* or NULL */
    void *progress_ctx;
};

struct store_verify_result {
    struct store_finding *findings; /* in the arena */
    size_t n;
    uint64_t n_blobs, blob_bytes; /* there before anything was taken out of use */
    uint64_t n_cached, bytes_read;
};

MUST_CHECK int store_verify(struct arena *arena, struct store *store,
                            const struct store_verify_opts *opts,
                            struct store_verify_result *ret_result, struct err *err);

/* Only the blobs that a reference names, none where there is no such reference: every byte of those that exist is read, and
   what is corrupt goes into quarantine. */
MUST_CHECK int store_verify_ref(struct arena *arena, struct store *store,
                                const struct store_verify_opts *opts, const struct store_ref *ref,
                                size_t *ret_n_bad, struct err *err);
