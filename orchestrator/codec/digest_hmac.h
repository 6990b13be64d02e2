/* SPDX-License-Identifier: Apache-2.0 */
/* HMAC-SHA1, for the hashed names of known_hosts and nothing else. */
#ifndef CODEC_DIGEST_HMAC_H
#define CODEC_DIGEST_HMAC_H

#include "base/str.h"

#define SHA1_BYTES 20

MUST_CHECK int hmac_sha1(struct str key, struct str text, uint8_t *ret_mac, struct err *err);

#endif
