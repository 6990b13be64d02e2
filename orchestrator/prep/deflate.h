/* SPDX-License-Identifier: Apache-2.0 */
/* zlib's only home: small streams in memory. */
#ifndef PREP_DEFLATE_H
#define PREP_DEFLATE_H

#include "base/err.h"

/* One zlib stream that fills `from` to its end. At most max_bytes come out, else ERR_INTEGRITY. From malloc. */
MUST_CHECK int zlib_inflate(const uint8_t *from, size_t len, size_t max_bytes, uint8_t **ret_bytes,
                            size_t *ret_len, struct err *err);
/* From malloc. */
MUST_CHECK int zlib_deflate(const uint8_t *from, size_t len, uint8_t **ret_bytes, size_t *ret_len,
                            struct err *err);

#endif
