/* SPDX-License-Identifier: Apache-2.0 */
/* Drops from a store what nothing names: blobs that no reference names, aliases of blobs that are gone, trees and shards of
   datasets that no reference names, remains in tmp/, abandoned fetches, corrupt files in quarantine. Nothing that is
   referenced, nothing younger than its grace, and nothing at all while another process has the store open or a reference
   cannot be read. */
#pragma once

#include "store/store.h"

#define STORE_GRACE_S         INT64_C(86400) /* a blob's reference may come from a later process */
#define STORE_PARTIAL_GRACE_S (7 * STORE_GRACE_S) /* a fetch may be continued next week */

struct store_gc_opts {
    bool is_dry_run; /* says what would go; needs no lock */
    int64_t now_ns;  /* wall time */
    int64_t grace_s; /* for blobs, trees, shards, tmp, quarantine */
    int64_t partial_grace_s;
};

enum store_gc_kind { GC_BLOB, GC_ALIAS, GC_TREE, GC_PACKED, GC_TMP, GC_PARTIAL, GC_QUARANTINE };
#define STORE_GC_KINDS 7

struct store_gc_item {
    enum store_gc_kind kind;
    const char *name; /* relative to the store, in the arena */
    uint64_t size_bytes;
};

struct store_gc_result {
    struct store_gc_item *items; /* what went, by kind, then by name; in the arena */
    size_t n;
    uint64_t bytes;
    uint64_t n_kept, kept_bytes; /* blobs that are referenced */
    uint64_t n_young;            /* unreferenced blobs and the like, within their grace period */
    uint64_t n_busy;             /* fetches that a process is working on */
};

/* "blob", "alias", ... */
extern const char *const STORE_GC_KIND_NAMES[STORE_GC_KINDS];

MUST_CHECK int store_gc(struct arena *arena, struct store *store, const struct store_gc_opts *opts,
                        struct store_gc_result *ret_result, struct err *err);
