/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 in plain C, because this folder builds without a crypto library: for lists of a pack and pack.json, not for data
   in bulk. Source: FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1, 5.3.3 and 6.2.2. */
#ifndef CORE_SHA256_H
#define CORE_SHA256_H

#include "base/base.h"

#define SHA256_HEX_LEN 64

struct sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    uint8_t block[64]; /* the first n_bytes % 64 are waiting */
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *ptr, size_t len);

/* Lower-case and NUL-terminated; the state is used up. */
void sha256_hex(struct sha256 *sha, char ret_hex[SHA256_HEX_LEN + 1]);

#endif
