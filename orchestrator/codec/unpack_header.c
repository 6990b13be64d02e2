/* SPDX-License-Identifier: Apache-2.0 */
/* The headers before a tar's entry, as they are in the archive: libarchive gives names as C strings, which end at a NUL, and so
   shows a different name than the one written. Source: POSIX.1-2017, pax, "pax Interchange Format"; tar(5) of libarchive. */
#include "base/base.h"

#include "codec/unpack_impl.h"

#define BLOCK_BYTES    512
#define SIZE_AT        124
#define SIZE_BYTES     12
#define TYPE_AT        156
#define RECORD_NUMBERS 12

void unpack_header_begin(struct layer *layer, uint64_t from)
{
    if (!layer->is_in_header) {
        strbuf_clear(&layer->header);
        layer->header_from = from;
        layer->is_in_header = true;
    }
}

int unpack_header_keep(struct layer *layer, uint64_t end, struct err *err)
{
    const struct unpack_source *source = &layer->source;
    uint64_t from = layer->header_from + layer->header.len;
    if (!layer->is_in_header || end <= from) {
        return 0;
    }
    if (from < source->offset && source->offset - from <= source->tail_len) {
        size_t back = (size_t)(source->offset - from);
        strbuf_add(&layer->header, source->tail + source->tail_len - back, back);
        from = source->offset;
    }
    if (from < source->offset || end > source->offset + source->len) {
        return err_set(err, ERR_INTERNAL, "a tar's header at byte %" PRIu64 " was not kept", from);
    }
    if (end > from) {
        strbuf_add(&layer->header, source->ptr + (from - source->offset), (size_t)(end - from));
    }
    return layer->header.is_full
               ? err_set(err, ERR_INTEGRITY, "its header is over %u bytes", UNPACK_HEADER_MAX)
               : 0;
}

/* Octal digits after blanks. A size in another notation counts as too large for a header before an entry. */
static size_t size_of(struct str block)
{
    struct str text = str_sub(block, SIZE_AT, SIZE_BYTES);
    size_t size = 0;
    size_t at = 0;
    while (at < text.len && text.ptr[at] == ' ') {
        at++;
    }
    for (; at < text.len && text.ptr[at] != ' ' && text.ptr[at] != '\0'; at++) {
        if (text.ptr[at] < '0' || text.ptr[at] > '7' || size > UNPACK_HEADER_MAX) {
            return SIZE_MAX;
        }
        size = 8 * size + (size_t)(text.ptr[at] - '0');
    }
    return size;
}

/* "LEN KEY=VALUE\n", LEN being the length of the whole record. */
static int check_records(struct str records, struct err *err)
{
    static const char *const NAMES[] = {"path", "linkpath", "GNU.sparse.name", NULL};
    while (records.len > 0) {
        struct str all = records;
        struct str number, key;
        int64_t len = 0;
        if (!str_next(&all, ' ', &number) || number.len > RECORD_NUMBERS ||
            str_to_i64(number, 1, (int64_t)records.len, &len, err) < 0) {
            *err = (struct err){0};
            return err_set(err, ERR_INTEGRITY, "a pax header that cannot be read");
        }
        struct str record = str_sub(records, number.len + 1, (size_t)len - number.len - 1);
        struct str value = record;
        if (str_next(&value, '=', &key) && memchr(record.ptr, '\0', record.len) &&
            str_eq_any(key, NAMES)) {
            return err_set(err, ERR_INTEGRITY, "its %.*s has a NUL", STR_ARG(key));
        }
        records = str_sub(records, (size_t)len, records.len);
    }
    return 0;
}

/* A name, then only NULs. */
static int check_long_name(struct str name, struct err *err)
{
    const char *nul = memchr(name.ptr, '\0', name.len);
    for (; nul && nul < name.ptr + name.len; nul++) {
        if (*nul != '\0') {
            return err_set(err, ERR_INTEGRITY, "its long name has a NUL");
        }
    }
    return 0;
}

int unpack_header_check(struct layer *layer, uint64_t from, uint64_t end, struct err *err)
{
    struct str rest;
    if (unpack_header_keep(layer, end, err) < 0) {
        return -1;
    }
    layer->is_in_header = false;
    ASSERT(from >= layer->header_from);
    rest = strbuf_str(&layer->header);
    rest = str_sub(rest, (size_t)(from - layer->header_from), rest.len);
    while (rest.len >= BLOCK_BYTES && rest.ptr[TYPE_AT] && strchr("AgKLVXx", rest.ptr[TYPE_AT])) {
        char type = rest.ptr[TYPE_AT];
        size_t size = size_of(rest);
        struct str data = str_sub(rest, BLOCK_BYTES, rest.len);
        if (size > data.len) {
            return err_set(err, ERR_INTEGRITY, "a header before it that does not end");
        }
        data = str_sub(data, 0, size);
        if ((type == 'x' || type == 'X' || type == 'g') && check_records(data, err) < 0) {
            return -1;
        }
        if ((type == 'L' || type == 'K') && check_long_name(data, err) < 0) {
            return -1;
        }
        size = BLOCK_BYTES + (size + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
        rest = str_sub(rest, size, rest.len);
    }
    return 0;
}
