/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of bytes in portions whose last bytes can be looked at again: those after the end that libarchive saw. */
#ifndef CODEC_UNPACK_SOURCE_H
#define CODEC_UNPACK_SOURCE_H

#include "codec/unpack.h"

#define UNPACK_TAIL_BYTES 4096 /* more than libarchive looks ahead in tar and zip */

struct unpack_source {
    unpack_read_fn read;
    void *ctx;
    const uint8_t *ptr; /* the portion that was read last; borrowed from read */
    size_t len;
    uint64_t offset; /* of ptr */
    uint8_t tail[UNPACK_TAIL_BYTES];
    size_t tail_len; /* bytes before ptr */
    bool is_at_end;
};

/* The next portion; *ret_len 0 at the end, any number of times. */
MUST_CHECK int unpack_source_next(struct unpack_source *source, const void **ret_ptr,
                                  size_t *ret_len, struct err *err);
/* Reads to the end: zeros are padding, anything else is ERR_INTEGRITY. */
MUST_CHECK int unpack_source_pad(struct unpack_source *source, uint64_t from, struct err *err);

#endif
