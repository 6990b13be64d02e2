/* SPDX-License-Identifier: Apache-2.0 */
/* What gzip or zstd has packed, in portions. zstd checks the checksums of its frames; gzip's CRC-32 is not compared, as in
   libarchive, so what is unpacked counts only by a digest. An end in the middle is an error. One thread at a time. */
#pragma once

#include "codec/unpack.h"

struct unpack_filter;

MUST_CHECK int unpack_filter_new(unpack_read_fn read, void *ctx, bool is_zstd,
                                 struct unpack_filter **ret_filter, struct err *err);
/* *ret_len 0 at the end. The bytes stay until the next call. */
MUST_CHECK int unpack_filter_next(struct unpack_filter *filter, const void **ret_ptr,
                                  size_t *ret_len, struct err *err);
/* The bytes that were taken in. At the end: those before whatever follows the last member or frame. */
uint64_t unpack_filter_bytes(const struct unpack_filter *filter);
void unpack_filter_free(struct unpack_filter *filter);
CLEANUP_POINTER(unpack_filter, struct unpack_filter, unpack_filter_free);

/* ---- a file that is compressed as a whole (gzip, zstd, xz, bzip2) ---- */

/* What the file holds, written to fd: at most max bytes, else ERR_PARSE. One that is not compressed, or damaged, is
   ERR_INTEGRITY. */
MUST_CHECK int unpack_raw(const char *path, uint64_t max, int fd, struct err *err);

/* Compresses a file with zstd into a new one. */
MUST_CHECK int pack_raw(const char *from, const char *to, struct err *err);
