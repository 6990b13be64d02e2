/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a tree, read whole and checked against its list of digests. */
#pragma once

#include "sys/tree.h"

/* Where files come from. For many threads. */
struct tree_source {
    const char *folder;
    const struct tree_list *list;      /* NULL: the digests are not known */
    uint8_t list_sha256[SHA256_BYTES]; /* its text's */
};

/* Reads the list, as sha256sum writes it, sorted by path, into the arena. ERR_INTEGRITY where it is not like that. */
MUST_CHECK int tree_source_list(struct arena *arena, const char *path, struct tree_source *source,
                                struct err *err);

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
