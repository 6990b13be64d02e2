/* SPDX-License-Identifier: Apache-2.0 */
/* A tree's list of digests, as sha256sum writes it, sorted by path; and files of the tree, read whole and checked against it. */
#ifndef PREP_LISTING_H
#define PREP_LISTING_H

#include <stdatomic.h>

#include "base/strbuf.h"
#include "codec/digest.h"

#define LISTING_BYTES_MAX (1u << 30)

struct listing {
    struct str text;    /* borrowed */
    const char **lines; /* owned: where each begins */
    size_t n;
    uint8_t sha256[SHA256_BYTES]; /* of the text */
};
#define LISTING_EMPTY ((struct listing){0})

/* Into the arena. ERR_INTEGRITY where it is not sorted, or a line is of another form. */
MUST_CHECK int listing_read(struct arena *arena, const char *path, struct listing *ret_listing,
                            struct err *err);
void listing_release(struct listing *listing);
static inline void listing_cleanup(struct listing *listing)
{
    listing_release(listing);
}
/* NULL where the path is not in it; else 64 hex digits. */
const char *listing_find(const struct listing *listing, struct str path);

/* Where files come from. listing NULL: their digests are not known. For many threads. */
struct tree_source {
    const char *folder;
    const struct listing *listing;
};

/* A file's bytes, in room that is used again. */
struct file_bytes {
    uint8_t *ptr; /* owned */
    size_t len, size;
    struct digest digest;
};
void file_bytes_release(struct file_bytes *bytes);

/* ERR_INTEGRITY where it is larger than max_bytes or has another digest than the list says; messages name the path. */
MUST_CHECK int tree_source_read(const struct tree_source *source, const char *path,
                                size_t max_bytes, struct file_bytes *bytes, struct err *err);
/* Only the first bytes, at most n, without checking the digest. ret_is_all: there are no more. */
MUST_CHECK int tree_source_head(const struct tree_source *source, const char *path, size_t n,
                                struct file_bytes *bytes, bool *ret_is_all, struct err *err);
/* A file of any size, checked against the list without keeping it. */
MUST_CHECK int tree_source_check(const struct tree_source *source, const char *path,
                                 struct err *err);

#endif
