/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of two messages at once: the processor's SHA instructions wait for each other within one message, so a second one is
   computed in the gaps. The caller feeds both the same number of 64-byte blocks. Source: FIPS 180-4. */
#ifndef CODEC_SHA256_MANY_H
#define CODEC_SHA256_MANY_H

#include "codec/digest.h"

#define SHA256_LANES       2
#define SHA256_BLOCK_BYTES 64

struct sha256_many {
    uint32_t state[SHA256_LANES][8];
};

/* False where the processor has no SHA instructions: use codec/digest.h. */
bool sha256_many_has(void);
/* A new message begins in a lane. */
void sha256_many_start(struct sha256_many *many, size_t lane);
/* The next n_blocks of each lane; ptrs[lane] has that many readable blocks, also of a lane that is not in use. */
void sha256_many_blocks(struct sha256_many *many, const uint8_t *const *ptrs, size_t n_blocks);
/* As md5_many_pad. */
size_t sha256_many_pad(uint8_t *tail, size_t tail_len, uint64_t message_bytes);
void sha256_many_value(const struct sha256_many *many, size_t lane, uint8_t *ret_sha256);

#endif
