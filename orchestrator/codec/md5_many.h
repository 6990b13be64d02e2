/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 of many messages at once, one in each lane of a vector register: MD5 is a chain in which each step waits for the one
   before, so a core computes 16 chains in the time of two. The caller feeds all lanes the same number of 64-byte blocks.
   Source: RFC 1321. */
#ifndef CODEC_MD5_MANY_H
#define CODEC_MD5_MANY_H

#include "codec/digest.h"

#define MD5_LANES_MAX   16
#define MD5_BLOCK_BYTES 64

enum md5_way {
    MD5_WAY_NONE,    /* no vectors here that are worth it: use codec/digest.h */
    MD5_WAY_AVX2,    /* two times 8 lanes, interleaved */
    MD5_WAY_AVX512F, /* 16 lanes */
};
/* The best that this processor has. */
enum md5_way md5_many_way(void);
bool md5_many_has(enum md5_way way);

struct md5_many {
    alignas(64) uint32_t state[4][MD5_LANES_MAX]; /* a, b, c, d of each lane */
    enum md5_way way;
};

/* way: one that md5_many_has, not MD5_WAY_NONE. */
void md5_many_init(struct md5_many *many, enum md5_way way);
/* A new message begins in a lane. */
void md5_many_start(struct md5_many *many, size_t lane);
/* The next n_blocks of each lane: ptrs[lane] has n_blocks * MD5_BLOCK_BYTES readable bytes, also that of a lane that is not in
   use (any bytes will do). Not changed. */
void md5_many_blocks(struct md5_many *many, const uint8_t *const *ptrs, size_t n_blocks);
/* Writes the end of a message behind its last tail_len bytes (less than a block) at tail, which has room for two blocks; gives
   the blocks that are then still to feed: 1 or 2. */
size_t md5_many_pad(uint8_t *tail, size_t tail_len, uint64_t message_bytes);
void md5_many_value(const struct md5_many *many, size_t lane, uint8_t *ret_md5);

#endif
