/* SPDX-License-Identifier: Apache-2.0 */
/* zlib's only home: gzip streams being written, and small zlib streams in memory. */
#ifndef PREP_DEFLATE_H
#define PREP_DEFLATE_H

#include "base/err.h"

typedef int (*deflate_sink)(void *ctx, const void *ptr, size_t len, struct err *err);

/* One gzip member without name and time: the same input gives the same bytes for one version of zlib. */
struct gzip_writer {
    void *stream; /* owned */
    uint8_t *out; /* owned */
    deflate_sink sink;
    void *sink_ctx;
};
#define GZIP_WRITER_EMPTY ((struct gzip_writer){0})
MUST_CHECK int gzip_writer_init(struct gzip_writer *w, deflate_sink sink, void *sink_ctx,
                                struct err *err);
MUST_CHECK int gzip_writer_data(struct gzip_writer *w, const void *ptr, size_t len,
                                struct err *err);
MUST_CHECK int gzip_writer_end(struct gzip_writer *w, struct err *err);
void gzip_writer_release(struct gzip_writer *w);

/* One zlib stream that fills `from` to its end. At most max_bytes come out, else ERR_INTEGRITY. From malloc. */
MUST_CHECK int zlib_inflate(const uint8_t *from, size_t len, size_t max_bytes, uint8_t **ret_bytes,
                            size_t *ret_len, struct err *err);
/* From malloc. */
MUST_CHECK int zlib_deflate(const uint8_t *from, size_t len, uint8_t **ret_bytes, size_t *ret_len,
                            struct err *err);

#endif
