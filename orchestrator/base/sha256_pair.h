/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 of two streams at once on one core, where the processor has the instructions for it (x86 SHA-NI): each round depends on
   the one before, so that a second stream fits into the gaps. Without them, one stream in plain C. Any thread. */
#pragma once

#include "base/base.h"

#define SHA256_BLOCK    64
#define SHA256_BYTES    32
#define SHA256_HEX_SIZE (2 * SHA256_BYTES + 1) /* with the NUL */

struct sha256_lane { /* one stream */
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t part[SHA256_BLOCK]; /* n_bytes modulo the block of them are waiting */
    bool is_plain;              /* without the instructions: slower */
};

/* Whether the processor has the instructions: else only sha256_lane_start_any may be called. */
bool sha256_pair_is_there(void);
void sha256_lane_start(struct sha256_lane *lane);
/* On any processor; after it only the functions for one stream may be called. */
void sha256_lane_start_any(struct sha256_lane *lane);
/* Bytes of one, or of two different streams; any lengths. */
void sha256_lane_add(struct sha256_lane *lane, const void *ptr, size_t len);
void sha256_pair_add(struct sha256_lane *one, const void *one_ptr, size_t one_len,
                     struct sha256_lane *other, const void *other_ptr, size_t other_len);
void sha256_lane_finish(struct sha256_lane *lane, uint8_t *ret_sha256);
