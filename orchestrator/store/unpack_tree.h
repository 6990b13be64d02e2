/* SPDX-License-Identifier: Apache-2.0 */
/* An archive into a folder, in one pass over its bytes: read, digested, unpacked, each file digested as it is written,
   checked against the tree's list if there is one. On any failure nothing is left behind. Files are 0644, or 0755
   where the archive says executable; folders 0755; whatever the umask. The times are those of the writing, not the archive's:
   a digest cache keyed by inode, size and time must never mistake a new file for an old one. */
#pragma once

#include "codec/digest.h"
#include "codec/unpack.h"
#include "sys/tree.h"

struct unpack_tree_opts {
    const char *archive; /* path */
    /* It must not exist: the tree is made next to it under another name, synced and renamed. */
    const char *new_folder;
    /* Instead of new_folder: a folder of the caller's that exists and may hold files of other archives of the same dataset (none
       of the same path); then the caller syncs it, and removes it on failure. */
    const char *into;
    /* The files that are written, all of the archive's bytes being checked all the same; links are left out then. NULL: all. */
    bool (*wants)(void *ctx, const char *path);
    struct unpack_opts unpack;
    unsigned kinds;     /* digests of the archive, besides those expected; 0: DIGEST_SHA256 */
    const uint8_t *md5; /* expected of the archive; NULL: not known */
    const uint8_t *sha256;
    int64_t size_bytes;           /* expected of the archive; -1: not known */
    const struct tree_list *list; /* expected files, SHA-256 or MD5; NULL: not known */
    void (*on_progress)(void *ctx, uint64_t archive_bytes_done, uint64_t archive_bytes_total);
    void *ctx;
};

struct unpack_tree_result {
    struct digest_value archive; /* kinds that were made; the others are zeros */
    unsigned kinds;
    const char *format;    /* what the archive is: "tar", ...; static */
    struct tree_list list; /* what was written, sorted, a link as its file; in the arena */
    uint64_t n_folders, n_links, file_bytes;
    struct tree_differences differences; /* from the expected list; all else is zero then */
};

MUST_CHECK int unpack_tree(struct arena *arena, const struct unpack_tree_opts *opts,
                           struct unpack_tree_result *ret_result, struct err *err);
