/* SPDX-License-Identifier: Apache-2.0 */
/* zstd frames, read in portions as codec/gunzip.h does for gzip: checksums of frames are checked against their bytes, and an end in the
   middle of a frame is an error. One thread at a time. */
#ifndef CODEC_UNPACK_ZSTD_H
#define CODEC_UNPACK_ZSTD_H

#include "codec/gunzip.h"

struct unzstd;

MUST_CHECK int unzstd_new(gunzip_read_fn read, void *ctx, struct unzstd **ret_unzstd,
                          struct err *err);
/* *ret_len 0 at the end. The bytes stay until the next call. */
MUST_CHECK int unzstd_next(struct unzstd *unzstd, const void **ret_ptr, size_t *ret_len,
                           struct err *err);
void unzstd_free(struct unzstd *unzstd);
static inline void unzstd_cleanup(struct unzstd **unzstd)
{
    unzstd_free(*unzstd);
}

#endif
