/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of a staging: a plain ustar archive of regular files, written by the orchestrator and read by each relay while it passes
   it on. reperf-node is static and has no library for it, so this is the one reader of archives beside libarchive.

   A member's name is FILE@OFFSET: bytes of the order's file number FILE (codec/relay.h), from OFFSET on. So no path arrives here at
   all. The reader accepts a header only if it is, byte for byte, the one that the writer makes for that number, offset and size:
   whatever else an archive can hold (absolute names, "..", links, devices, folders, long names, extensions) is refused by that.
   Which files and offsets are wanted is the receiver's business. Files of any size come as members of at most RELAY_MEMBER_MAX. */
#ifndef CODEC_RELAY_TAR_H
#define CODEC_RELAY_TAR_H

#include "base/err.h"
#include "base/str.h"

#define RELAY_BLOCK_BYTES 512u
#define RELAY_END_BYTES   ((size_t)2 * RELAY_BLOCK_BYTES) /* of zeros, after the last member */
#define RELAY_MEMBER_MAX  (4ULL << 30)

struct relay_member {
    uint64_t file, offset, size_bytes;
};

void relay_member_write(const struct relay_member *member, uint8_t ret_block[RELAY_BLOCK_BYTES]);
/* Zero bytes after a member of that size. */
static inline size_t relay_padding(uint64_t size_bytes)
{
    return (size_t)(-size_bytes % RELAY_BLOCK_BYTES);
}

/* What takes the members; each may fail, and the reader stops with that error. */
struct relay_sink {
    void *ctx;
    int (*begin)(void *ctx, const struct relay_member *member, struct err *err);
    int (*data)(void *ctx, const uint8_t *bytes, size_t len, struct err *err);
    int (*end)(void *ctx, struct err *err);
};

struct relay_tar { /* a reader; all zeros at first */
    uint8_t block[RELAY_BLOCK_BYTES];
    size_t have;         /* of a header */
    uint64_t left_bytes; /* of the member */
    size_t padding;      /* to come after it */
    size_t n_zero;       /* blocks of zeros */
    bool is_over;        /* both were there */
};

/* The next bytes of the stream, as they arrive. ERR_INTEGRITY for what the writer would not have written. */
MUST_CHECK int relay_tar_take(struct relay_tar *tar, const struct relay_sink *sink,
                              const uint8_t *bytes, size_t len, struct err *err);

#endif
