/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of unpacking that use the pool. The owner's thread reads the archive, decompresses and writes, as any tar does; the
   pool takes the digests: of each block of the archive while libarchive works on that block, and of files, many small ones a job,
   once they are written and still in the page cache. A large file is digested as it is written, so that none is read from the
   disk again. Owned by one thread. */
#ifndef STORE_UNPACK_WRITE_H
#define STORE_UNPACK_WRITE_H

#include "base/vec.h"
#include "codec/digest.h"
#include "sys/pool.h"
#include "sys/tree.h"

#define ARCHIVE_BLOCKS 2 /* one that libarchive reads, and the next */
#define HASHES_MAX     8 /* jobs that digest files */

struct archive_reader {
    struct pool *pool; /* borrowed */
    const char *name;  /* borrowed */
    int fd;            /* borrowed */
    uint8_t *blocks[ARCHIVE_BLOCKS];
    size_t next;
    struct pool_job job;
    struct digest digest;
    const uint8_t *hashing; /* the block that the job digests; NULL: no job runs */
    size_t hashing_len;
    uint64_t read_bytes;
};

void archive_reader_init(struct archive_reader *reader, int fd, const char *name, unsigned kinds,
                         struct pool *pool);
void archive_reader_release(struct archive_reader *reader);
/* *ret_len 0 at the end. The bytes stay until the call after the next. */
MUST_CHECK int archive_reader_next(struct archive_reader *reader, const void **ret_ptr,
                                   size_t *ret_len, struct err *err);
MUST_CHECK int archive_reader_finish(struct archive_reader *reader, struct digest_value *ret_value,
                                     struct err *err);

struct written { /* one file */
    const char *path;
    struct digest_value value;
};

struct hash_batch;

struct unpack_writer {
    int root_fd; /* borrowed */
    unsigned kinds;
    struct pool *pool; /* borrowed */
    VEC(struct written) files;
    struct hash_batch *batches[HASHES_MAX]; /* owned; a ring */
    size_t first, n_flying;
    size_t n_sent, waiting_bytes; /* files[n_sent...] are for the next batch */
    struct digest digest;
    int fd; /* of the file that is being written; -1: none */
    bool is_large;
};

void writer_init(struct unpack_writer *writer, int root_fd, unsigned kinds, struct pool *pool);
void writer_release(struct unpack_writer *writer);
/* size_bytes: 0 where it is not known. */
MUST_CHECK int writer_begin(struct unpack_writer *writer, const char *path, bool is_executable,
                            uint64_t size_bytes, struct err *err);
MUST_CHECK int writer_data(struct unpack_writer *writer, const void *ptr, size_t len,
                           struct err *err);
MUST_CHECK int writer_end(struct unpack_writer *writer, struct err *err);
/* Afterwards every file has its digests. */
MUST_CHECK int writer_finish(struct unpack_writer *writer, struct err *err);

#endif
