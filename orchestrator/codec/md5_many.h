/* SPDX-License-Identifier: Apache-2.0 */
/* MD5 of many messages at once, one in each lane of a vector register: MD5 is a chain in which each step depends on the
   one before, so a core computes 16 chains in the time of two. The caller feeds all lanes the same number of 64-byte
   blocks. Source: RFC 1321. */
#pragma once

#include "codec/digest.h"

#define MD5_LANES_MAX   16
#define MD5_BLOCK_BYTES 64

enum md5_way {
    MD5_WAY_NONE,    /* no vector unit that would be faster: use codec/digest.h */
    MD5_WAY_AVX2,    /* two times 8 lanes, interleaved */
    MD5_WAY_AVX512F, /* 16 lanes */
};
/* The fastest that this processor has. */
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
/* The next n_blocks of each lane: ptrs[lane] has n_blocks * MD5_BLOCK_BYTES readable bytes, for an unused lane too (any bytes
   will do). Not changed. */
void md5_many_blocks(struct md5_many *many, const uint8_t *const *ptrs, size_t n_blocks);
/* Pads a message whose last tail_len bytes (less than a block) are at tail, which has room for two blocks; returns the number
   of blocks still to feed: 1 or 2. */
size_t md5_many_pad(uint8_t *tail, size_t tail_len, uint64_t message_bytes);
void md5_many_value(const struct md5_many *many, size_t lane, uint8_t *ret_md5);
