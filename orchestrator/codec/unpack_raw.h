/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is compressed as a whole (gzip, zstd, xz, bzip2), by libarchive. */
#ifndef CODEC_UNPACK_RAW_H
#define CODEC_UNPACK_RAW_H

#include "base/err.h"

/* What the file holds, written to fd: at most max bytes, else ERR_PARSE. One that is not compressed, or damaged, is ERR_INTEGRITY. */
MUST_CHECK int unpack_raw(const char *path, uint64_t max, int fd, struct err *err);

/* Compresses a file with zstd into a new one. */
MUST_CHECK int pack_raw(const char *from, const char *to, struct err *err);

#endif
