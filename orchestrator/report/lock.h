/* SPDX-License-Identifier: Apache-2.0 */
/* What was resolved the first time: manifests/locks/KIND/ID.json. A lock adds what the authors left open; everything fetched
   later is compared with it, and a difference is ERR_INTEGRITY. Strings live in the arena; NULL: not of this kind, or not known.
   Used for datasets (an item a file), images (an item a blob) and sources (an item a repository). */
#pragma once

#include "codec/digest.h"
#include "codec/json_table.h"
#include "report/dataset.h"

#define LOCK_ITEMS_MAX 4096

enum lock_kind { LOCK_DATASET, LOCK_IMAGE, LOCK_SOURCE };

struct lock_item {
    /* Of a dataset the file; of an image "PLATFORM" or a digest's role; of a source "." or a submodule's path. */
    struct str name;
    int64_t size_bytes; /* -1: not known */
    bool has_md5, has_sha256;
    uint8_t md5[MD5_BYTES];
    uint8_t sha256[SHA256_BYTES];
    int64_t piece_bytes;    /* 0: no digests of pieces */
    struct str pieces_path; /* below the lock's folder: one SHA-256 in hex a line */
    struct str ref;         /* the tag or branch that was resolved */
    struct str commit;      /* of a source: 40 hex digits */
    struct str tree;        /* likewise */
    struct str paths;       /* of a part of a source; NULL: all */
    struct str selection;   /* git's tree of only that part */
    struct str url;         /* where it came from, without secrets */
    struct str date;        /* RFC 3339, when it was first resolved */
};

struct lock {
    enum lock_kind kind;
    struct str id;
    struct lock_item *items;
    size_t n_items;
    bool has_list; /* of a dataset: the tree's list of files */
    uint8_t list_sha256[SHA256_BYTES];
    int64_t n_files, file_bytes; /* of the tree; -1: not known */
};

extern const struct json_document LOCK_DOCUMENT;
extern const char *const LOCK_KIND_NAMES[LOCK_SOURCE + 1];
MUST_CHECK int lock_decode(const struct json *root, struct arena *arena, struct lock *ret_lock,
                           struct err *err);
void lock_encode(const struct lock *lock, struct strbuf *out);

/* NULL if there is none. */
const struct lock_item *lock_find(const struct lock *lock, struct str name);

/* Compares two records of one item: ERR_INTEGRITY if anything that both know differs. what is for the message. */
MUST_CHECK int lock_check_item(const struct lock_item *known, const struct lock_item *found,
                               const char *what, struct err *err);
/* The same for all of found's items and the tree's list; a new item is not an error. */
MUST_CHECK int lock_check(const struct lock *known, const struct lock *found, struct err *err);

/* Adds what the description left open. ERR_MANIFEST if they contradict each other. */
MUST_CHECK int lock_merge_dataset(struct arena *arena, const struct lock *lock,
                                  struct dataset *dataset, struct err *err);
