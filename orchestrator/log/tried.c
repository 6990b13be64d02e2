/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/tried.h"

#include "base/sha256_pair.h"
#include "codec/pattern.h"

/* The beginning of the SHA-256 of the id, a NUL and the text. */
void tried_key(struct str id, struct str text, uint8_t *ret_key)
{
    struct sha256_lane lane;
    uint8_t sha256[SHA256_BYTES];
    sha256_lane_start_any(&lane);
    sha256_lane_add(&lane, id.ptr, id.len);
    sha256_lane_add(&lane, "", 1);
    sha256_lane_add(&lane, text.ptr, text.len);
    sha256_lane_finish(&lane, sha256);
    memcpy(ret_key, sha256, TRIED_KEY_BYTES);
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, TRIED_KEY_BYTES);
}

bool format_is_tried(const struct tried *tried, struct str id, struct str text)
{
    uint8_t key[TRIED_KEY_BYTES];
    if (tried->n == 0 || !str_eq_z(pattern_library(), tried->library)) {
        return false;
    }
    tried_key(id, text, key);
    return bsearch(key, tried->keys, tried->n, TRIED_KEY_BYTES, compare_keys) != NULL;
}
