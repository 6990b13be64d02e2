/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/sha256.h"

void sha256_init(struct sha256 *sha)
{
    sha256_lane_start_any(&sha->lane);
}

void sha256_add(struct sha256 *sha, const void *ptr, size_t len)
{
    sha256_lane_add(&sha->lane, ptr, len);
}

void sha256_hex(struct sha256 *sha, char ret_hex[SHA256_HEX_LEN + 1])
{
    uint8_t bytes[SHA256_BYTES];
    sha256_lane_finish(&sha->lane, bytes);
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
    }
}
