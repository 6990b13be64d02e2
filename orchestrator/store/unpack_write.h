/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and digests files on the pool, many small ones or a part of a large one a job. Owned by one thread. */
#ifndef STORE_UNPACK_WRITE_H
#define STORE_UNPACK_WRITE_H

#include "base/vec.h"
#include "store/unpack_blocks.h"
#include "sys/tree.h"

#define BATCHES_MAX 8

struct written { /* one file */
    const char *path;
    uint8_t sha256[SHA256_BYTES];
    uint8_t md5[MD5_BYTES]; /* where it was asked for */
};

struct write_span;
struct write_batch;

struct unpack_writer {
    int root_fd; /* borrowed */
    unsigned kinds;
    struct pool *pool;   /* borrowed */
    struct arena *arena; /* borrowed: paths */
    VEC(struct written) files;
    struct write_batch *batches[BATCHES_MAX]; /* owned; a ring */
    size_t first, n_flying;
    struct write_batch *filling; /* owned */
    struct write_span *spans;    /* owned: files that go over more than one batch */
    struct write_span *span;     /* of the file that is being added; or NULL */
    bool is_in_file, is_executable;
    atomic_bool is_stopping;
};

void writer_init(struct unpack_writer *writer, int root_fd, unsigned kinds, struct arena *arena,
                 struct pool *pool);
/* Waits for what runs; what has not begun is left out. */
void writer_release(struct unpack_writer *writer);
MUST_CHECK int writer_begin(struct unpack_writer *writer, const char *path, bool is_executable,
                            struct err *err);
/* block: the one the bytes lie in, which is then held; NULL: they are copied. */
MUST_CHECK int writer_data(struct unpack_writer *writer, const void *ptr, size_t len,
                           struct unpack_block *block, struct err *err);
MUST_CHECK int writer_end(struct unpack_writer *writer, struct err *err);
/* Waits for one batch, starting the one that is being filled where none runs. False where there is nothing to wait for. */
MUST_CHECK int writer_wait_one(struct unpack_writer *writer, bool *ret_waited, struct err *err);
MUST_CHECK int writer_finish(struct unpack_writer *writer, struct err *err);

#endif
