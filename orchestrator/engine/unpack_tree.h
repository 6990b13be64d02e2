/* SPDX-License-Identifier: Apache-2.0 */
/* An archive into a new folder, in one pass over its bytes: read, digested, unpacked, each file digested as it is written (on the
   pool), held against the tree's list where there is one. On any failure nothing is left. */
#ifndef ENGINE_UNPACK_TREE_H
#define ENGINE_UNPACK_TREE_H

#include "codec/digest.h"
#include "codec/unpack.h"
#include "engine/tree.h"
#include "io/pool.h"

struct unpack_tree_opts {
    const char *archive; /* path */
    const char *
        new_folder; /* must not exist; made beside and renamed. NULL: into parent_fd's folder `into` */
    const char *
        into; /* instead of new_folder: a folder of the caller's that exists and may hold files of other
                                 archives of the same dataset; then the caller removes it on failure */
    struct unpack_opts unpack;
    const uint8_t *md5; /* of the archive, expected; NULL: not known */
    const uint8_t *sha256;
    const struct tree_list *list; /* expected files; NULL: not known */
    struct pool *pool;
    bool (*should_stop)(void);
    void (*on_progress)(void *ctx, uint64_t archive_bytes_done);
    void *progress_ctx;
};

struct unpack_tree_result {
    struct digest_value archive;
    struct tree_list list; /* of what was written, sorted; in the arena */
    uint64_t n_files, file_bytes;
};

MUST_CHECK int unpack_tree(struct arena *arena, const struct unpack_tree_opts *opts,
                           struct unpack_tree_result *ret_result, struct err *err);

#endif
