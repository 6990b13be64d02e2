/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 as hex, for programs that have no crypto library. */
#pragma once

#include "base/sha256_pair.h"

#define SHA256_HEX_LEN 64

struct sha256 {
    struct sha256_lane lane;
};

void sha256_init(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *ptr, size_t len);

/* Lower-case and NUL-terminated; the state is used up. */
void sha256_hex(struct sha256 *sha, char ret_hex[SHA256_HEX_LEN + 1]);
