/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of a staging: a canonical tar (codec/ustar.h) of regular files, written by the orchestrator and read by each relay
   while it passes it on.

   A member's name is FILE@OFFSET: bytes of the order's file number FILE (codec/relay.h), from OFFSET on. So no path arrives here at
   all. The reader accepts a header only if it is, byte for byte, the one that the writer makes for that number, offset and size:
   whatever else an archive can hold (absolute names, "..", links, devices, folders, long names, extensions) is refused by that.
   Which files and offsets are wanted is the receiver's business. Files of any size come as members of at most RELAY_MEMBER_MAX. */
#ifndef CODEC_RELAY_TAR_H
#define CODEC_RELAY_TAR_H

#include "codec/ustar.h"

#define RELAY_END_BYTES  ((size_t)2 * USTAR_BLOCK) /* of zeros, after the last member */
#define RELAY_MEMBER_MAX (4ULL << 30)

struct relay_member {
    uint64_t file, offset, size_bytes;
};

void relay_member_write(const struct relay_member *member, uint8_t ret_block[USTAR_BLOCK]);

/* What takes the members; each may fail, and the reader stops with that error. */
struct relay_sink {
    void *ctx;
    int (*begin)(void *ctx, const struct relay_member *member, struct err *err);
    int (*data)(void *ctx, const void *ptr, size_t len, struct err *err);
    int (*end)(void *ctx, struct err *err);
};

struct relay_tar { /* a reader; all zeros at first, nothing to release */
    struct ustar_reader reader;
    bool is_over; /* the end of the archive was there */
};

/* The next bytes of the stream, as they arrive. ERR_INTEGRITY for what the writer would not have written. */
MUST_CHECK int relay_tar_take(struct relay_tar *tar, const struct relay_sink *sink,
                              const uint8_t *bytes, size_t len, struct err *err);

#endif
