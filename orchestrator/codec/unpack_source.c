/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_source.h"

/* The last bytes of tail and portion together become the new tail. */
static void keep_tail(struct unpack_source *source)
{
    size_t n = source->len < UNPACK_TAIL_BYTES ? source->len : UNPACK_TAIL_BYTES;
    size_t kept =
        source->tail_len < UNPACK_TAIL_BYTES - n ? source->tail_len : UNPACK_TAIL_BYTES - n;
    if (n == 0) {
        return;
    }
    memmove(source->tail, source->tail + source->tail_len - kept, kept);
    memcpy(source->tail + kept, source->ptr + source->len - n, n);
    source->tail_len = kept + n;
}

int unpack_source_next(struct unpack_source *source, const void **ret_ptr, size_t *ret_len,
                       struct err *err)
{
    const void *ptr = NULL;
    size_t len = 0;
    if (!source->is_at_end) {
        keep_tail(source);
        source->offset += source->len;
        source->len = 0;
        if (source->read(source->ctx, &ptr, &len, err) < 0) {
            return -1;
        }
        source->ptr = ptr;
        source->len = len;
        source->is_at_end = len == 0;
    }
    *ret_ptr = ptr;
    *ret_len = len;
    return 0;
}

/* The bytes from that offset on, portion by portion; *from moves past them. *ret_len 0 at the end. */
static int take_rest(struct unpack_source *source, uint64_t *from, const void **ret_ptr,
                     size_t *ret_len, struct err *err)
{
    const void *ptr;
    size_t len;
    if (*from < source->offset) {
        size_t back = (size_t)(source->offset - *from);
        if (source->offset - *from > source->tail_len) {
            return err_set(err, ERR_INTEGRITY, "bytes follow its end at byte %" PRIu64, *from);
        }
        *ret_ptr = source->tail + source->tail_len - back;
        *ret_len = back;
        *from = source->offset;
        return 0;
    }
    if (*from >= source->offset + source->len) {
        if (unpack_source_next(source, &ptr, &len, err) < 0) {
            return -1;
        }
    }
    if (*from > source->offset + source->len) {
        return err_set(err, ERR_INTEGRITY, "it ends at byte %" PRIu64 ": truncated",
                       source->offset + source->len);
    }
    *ret_len = (size_t)(source->offset + source->len - *from);
    *ret_ptr = source->ptr ? source->ptr + (*from - source->offset) : NULL;
    *from += *ret_len;
    return 0;
}

int unpack_source_pad(struct unpack_source *source, uint64_t from, struct err *err)
{
    const void *ptr = NULL;
    size_t len = 0;
    do {
        uint64_t at = from;
        if (take_rest(source, &from, &ptr, &len, err) < 0) {
            return -1;
        }
        const uint8_t *bytes = ptr;
        /* All bytes are zero if the first is and each equals the one before it. */
        if (len > 0 && (bytes[0] != 0 || memcmp(bytes, bytes + 1, len - 1) != 0)) {
            size_t first = 0;
            while (bytes[first] == 0) {
                first++;
            }
            return err_set(err, ERR_INTEGRITY, "bytes follow its end at byte %" PRIu64, at + first);
        }
    } while (len > 0);
    return 0;
}
