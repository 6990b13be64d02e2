/* SPDX-License-Identifier: Apache-2.0 */
/* gzip (RFC 1952), read in portions: every member's CRC-32 and length are checked against its bytes; zeros after the last member
   are padding, anything else there is an error. codec/gunzip.c is the only home of zlib. One thread at a time. */
#ifndef CODEC_GUNZIP_H
#define CODEC_GUNZIP_H

#include "base/str.h"

#define GUNZIP_OUT_BYTES (256u << 10)

struct gunzip;
typedef int (*gunzip_read_fn)(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err);

MUST_CHECK int gunzip_new(gunzip_read_fn read, void *ctx, struct gunzip **ret_gunzip,
                          struct err *err);
/* *ret_len 0 at the end. The bytes stay until the next call. */
MUST_CHECK int gunzip_next(struct gunzip *gunzip, const void **ret_ptr, size_t *ret_len,
                           struct err *err);
void gunzip_free(struct gunzip *gunzip);

/* CRC-32 of gzip and zip (ISO 3309); 0 to begin with. */
uint32_t crc32_add(uint32_t crc, const void *ptr, size_t len);

#endif
