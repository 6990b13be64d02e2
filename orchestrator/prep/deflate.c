/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/deflate.h"

#include <zlib.h>

#include "base/arena.h"

/* Grows with the output, not with what a header claims. */
static int inflate_all(z_stream *stream, size_t max_bytes, uint8_t **out, size_t *len,
                       struct err *err)
{
    size_t size = 0;
    for (;;) {
        if (*len == size) {
            size = size ? 2 * size : 4096;
            *out = xrealloc(*out, size);
        }
        stream->next_out = *out + *len;
        stream->avail_out = (uInt)(size - *len);
        int status = inflate(stream, Z_NO_FLUSH);
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
    ASSERT(len <= UINT32_MAX && max_bytes < (1u << 30));
    if (inflateInit(&stream) != Z_OK) {
        return err_set(err, ERR_INTERNAL, "inflateInit failed");
    }
    int result = inflate_all(&stream, max_bytes, &out, &out_len, err);
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
