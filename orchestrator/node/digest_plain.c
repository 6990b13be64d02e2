/* SPDX-License-Identifier: Apache-2.0 */
/* codec/digest.h without OpenSSL, which is too large for this static program: only SHA-256, by base/sha256_pair.h. */
#include "base/base.h"

#include "codec/digest.h"

#include "base/sha256_pair.h"

enum { OF_SHA256 = 1 }; /* its index in struct digest: bit 1 of the kinds */

void digest_release(struct digest *digest)
{
    free(digest->ctx[OF_SHA256]);
    *digest = DIGEST_EMPTY;
}

void digest_start(struct digest *digest, unsigned kinds)
{
    ASSERT(kinds == DIGEST_SHA256);
    if (!digest->ctx[OF_SHA256]) {
        digest->ctx[OF_SHA256] = xcalloc(1, sizeof(struct sha256_lane));
    }
    sha256_lane_start_any(digest->ctx[OF_SHA256]);
    digest->kinds = kinds;
    digest->size_bytes = 0;
}

void digest_update(struct digest *digest, const void *ptr, size_t len)
{
    ASSERT(digest->kinds == DIGEST_SHA256);
    sha256_lane_add(digest->ctx[OF_SHA256], ptr, len);
    digest->size_bytes += len;
}

struct digest_value digest_finish(struct digest *digest)
{
    struct digest_value value = {.size_bytes = digest->size_bytes};
    ASSERT(digest->kinds == DIGEST_SHA256);
    sha256_lane_finish(digest->ctx[OF_SHA256], value.sha256);
    digest->kinds = 0;
    return value;
}
