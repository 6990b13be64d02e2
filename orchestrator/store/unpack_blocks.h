/* SPDX-License-Identifier: Apache-2.0 */
/* The archive's bytes, read in blocks that are shared by libarchive, the digests of the archive and the files that are written
   from them, without a copy. Counted and read by the one thread that owns it; the digests run on the pool. */
#ifndef STORE_UNPACK_BLOCKS_H
#define STORE_UNPACK_BLOCKS_H

#include "codec/digest.h"
#include "sys/pool.h"

#define BLOCK_BYTES (1u << 20)
#define BLOCKS_MAX  24

struct unpack_block {
    uint8_t *ptr; /* owned */
    size_t len;
    unsigned n_refs;
};

/* One kind of digest: its blocks in order, at most one job at a time. */
struct block_chain {
    struct pool_job job;
    struct digest digest;
    struct unpack_block *waiting[BLOCKS_MAX], *working[BLOCKS_MAX];
    size_t n_waiting, n_working;
    bool is_active;
};

struct blocks {
    struct pool *pool; /* borrowed */
    const char *name;  /* borrowed */
    int fd;            /* borrowed */
    struct unpack_block blocks[BLOCKS_MAX];
    struct unpack_block *current; /* what libarchive reads */
    struct block_chain chains[DIGEST_KINDS];
    unsigned kinds;
    uint64_t read_bytes;
};

void blocks_init(struct blocks *blocks, int fd, const char *name, unsigned kinds,
                 struct pool *pool);
/* Waits for what runs. */
void blocks_release(struct blocks *blocks);
/* A block that nobody uses; NULL: all are in use, and some work must be waited for. */
struct unpack_block *blocks_find_free(struct blocks *blocks);
/* Fills it and makes it the current one; it goes to the digests, too. *ret_len 0 at the end. */
MUST_CHECK int blocks_read(struct blocks *blocks, struct unpack_block *block, size_t *ret_len,
                           struct err *err);
/* The block that those bytes lie in, or NULL. */
struct unpack_block *blocks_find(struct blocks *blocks, const void *ptr);
/* Starts and ends jobs of the digests; with should_wait, ends one at least where one runs. */
MUST_CHECK int blocks_step(struct blocks *blocks, bool should_wait, struct err *err);
MUST_CHECK int blocks_finish(struct blocks *blocks, struct digest_value *ret_value,
                             struct err *err);

#endif
