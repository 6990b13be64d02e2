/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/deflate.h"

#include <zlib.h>

#include "base/arena.h"

#define OUT_BYTES   (256u << 10)
#define GZIP_WINDOW (15 + 16) /* zlib.h: 16 more writes a gzip header */
#define GZIP_LEVEL  1         /* most of what is packed are images */
#define MEMORY      8

int gzip_writer_init(struct gzip_writer *w, deflate_sink sink, void *sink_ctx, struct err *err)
{
    z_stream *stream = xcalloc(1, sizeof(*stream));
    *w = (struct gzip_writer){stream, xmalloc(OUT_BYTES), sink, sink_ctx};
    if (deflateInit2(stream, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        return err_set(err, ERR_INTERNAL, "deflateInit2 failed");
    }
    return 0;
}

static int run(struct gzip_writer *w, int flush, struct err *err)
{
    z_stream *stream = w->stream;
    int status;
    do {
        stream->next_out = w->out;
        stream->avail_out = OUT_BYTES;
        status = deflate(stream, flush);
        ASSERT(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR);
        if (w->sink(w->sink_ctx, w->out, OUT_BYTES - stream->avail_out, err) < 0) {
            return -1;
        }
    } while (stream->avail_out == 0);
    return 0;
}

int gzip_writer_data(struct gzip_writer *w, const void *ptr, size_t len, struct err *err)
{
    z_stream *stream = w->stream;
    const uint8_t *at = ptr;
    while (len) {
        size_t n = len < (1u << 30) ? len : (1u << 30); /* avail_in has 32 bits */
        stream->next_in = (Bytef *)(uintptr_t)at;       /* zlib only reads it */
        stream->avail_in = (uInt)n;
        if (run(w, Z_NO_FLUSH, err) < 0) {
            return -1;
        }
        at += n;
        len -= n;
    }
    return 0;
}

int gzip_writer_end(struct gzip_writer *w, struct err *err)
{
    return run(w, Z_FINISH, err);
}

void gzip_writer_release(struct gzip_writer *w)
{
    if (w->stream) {
        (void)deflateEnd(w->stream);
    }
    free(w->stream);
    free(w->out);
    *w = GZIP_WRITER_EMPTY;
}

/* Grows with the output, not with what a header claims. */
static int inflate_all(z_stream *stream, size_t max_bytes, uint8_t **out, size_t *len,
                       struct err *err)
{
    size_t size = 0;
    for (;;) {
        int status;
        if (*len == size) {
            size = size ? 2 * size : 4096;
            *out = xrealloc(*out, size);
        }
        stream->next_out = *out + *len;
        stream->avail_out = (uInt)(size - *len);
        status = inflate(stream, Z_NO_FLUSH);
        *len = size - stream->avail_out;
        if (*len > max_bytes) {
            return err_set(err, ERR_INTEGRITY, "zlib: more than %zu bytes", max_bytes);
        }
        if (status == Z_STREAM_END) {
            return stream->avail_in == 0
                       ? 0
                       : err_set(err, ERR_INTEGRITY, "zlib: %u bytes after the end",
                                 stream->avail_in);
        }
        if (status != Z_OK || (stream->avail_in == 0 && stream->avail_out != 0)) {
            return err_set(err, ERR_INTEGRITY, "zlib: %s",
                           stream->msg ? stream->msg : "the stream is truncated");
        }
    }
}

int zlib_inflate(const uint8_t *from, size_t len, size_t max_bytes, uint8_t **ret_bytes,
                 size_t *ret_len, struct err *err)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)from, .avail_in = (uInt)len};
    uint8_t *out = NULL;
    size_t out_len = 0;
    int result;
    ASSERT(len <= UINT32_MAX && max_bytes < (1u << 30));
    if (inflateInit(&stream) != Z_OK) {
        return err_set(err, ERR_INTERNAL, "inflateInit failed");
    }
    result = inflate_all(&stream, max_bytes, &out, &out_len, err);
    (void)inflateEnd(&stream);
    if (result < 0) {
        free(out);
        return -1;
    }
    *ret_bytes = out;
    *ret_len = out_len;
    return 0;
}

int zlib_deflate(const uint8_t *from, size_t len, uint8_t **ret_bytes, size_t *ret_len,
                 struct err *err)
{
    uLongf out_len = compressBound((uLong)len);
    uint8_t *out = xmalloc(out_len);
    if (compress(out, &out_len, from, (uLong)len) != Z_OK) {
        free(out);
        return err_set(err, ERR_INTERNAL, "zlib: compress failed");
    }
    *ret_bytes = out;
    *ret_len = out_len;
    return 0;
}
