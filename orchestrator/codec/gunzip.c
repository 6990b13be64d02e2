/* SPDX-License-Identifier: Apache-2.0 */
/* First: its headers use words that base/banned.h poisons. */
#include <zlib.h>

#include "base/base.h"

#include "codec/gunzip.h"

#define WINDOW_GZIP                                                                                \
    31 /* the largest window, and gzip's header and trailer. Source: zlib.h, inflateInit2 */
#define CRC_PART (1u << 30)

struct gunzip {
    gunzip_read_fn read;
    void *ctx;
    z_stream z;
    uint64_t in_bytes; /* read so far */
    bool is_open;      /* z is to be ended */
    bool is_between;   /* between two members */
    bool is_first;
    bool is_at_end;
    uint8_t out[GUNZIP_OUT_BYTES];
};

int gunzip_new(gunzip_read_fn read, void *ctx, struct gunzip **ret_gunzip, struct err *err)
{
    struct gunzip *gunzip = xcalloc(1, sizeof(*gunzip));
    gunzip->read = read;
    gunzip->ctx = ctx;
    gunzip->is_between = true;
    gunzip->is_first = true;
    if (inflateInit2(&gunzip->z, WINDOW_GZIP) != Z_OK) {
        free(gunzip);
        return err_set(err, ERR_INTERNAL, "zlib cannot be initialised");
    }
    gunzip->is_open = true;
    *ret_gunzip = gunzip;
    return 0;
}

void gunzip_free(struct gunzip *gunzip)
{
    if (gunzip && gunzip->is_open) {
        inflateEnd(&gunzip->z);
    }
    free(gunzip);
}

/* Reads more input if none is left; false in *ret_has at the end. */
static int refill(struct gunzip *gunzip, bool *ret_has, struct err *err)
{
    const void *ptr;
    size_t len;
    *ret_has = true;
    if (gunzip->z.avail_in > 0) {
        return 0;
    }
    if (gunzip->read(gunzip->ctx, &ptr, &len, err) < 0) {
        return -1;
    }
    ASSERT(len <= UINT32_MAX);
    gunzip->z.next_in = (z_const Bytef *)(uintptr_t)ptr; /* zlib does not write there */
    gunzip->z.avail_in = (uInt)len;
    gunzip->in_bytes += len;
    *ret_has = len > 0;
    return 0;
}

/* Zeros to the end of the file. */
static int read_padding(struct gunzip *gunzip, struct err *err)
{
    bool has = true;
    while (has) {
        while (gunzip->z.avail_in > 0) {
            if (*gunzip->z.next_in != 0) {
                return err_set(err, ERR_INTEGRITY,
                               "bytes follow the end of its gzip data at byte %" PRIu64,
                               gunzip->in_bytes - gunzip->z.avail_in);
            }
            gunzip->z.next_in++;
            gunzip->z.avail_in--;
        }
        if (refill(gunzip, &has, err) < 0) {
            return -1;
        }
    }
    gunzip->is_at_end = true;
    return 0;
}

/* Between members: the end, padding, or another member. */
static int begin_member(struct gunzip *gunzip, struct err *err)
{
    bool has;
    if (refill(gunzip, &has, err) < 0) {
        return -1;
    }
    if (!gunzip->is_first && (!has || *gunzip->z.next_in != 0x1f)) {
        return read_padding(gunzip, err);
    }
    if (!gunzip->is_first && inflateReset(&gunzip->z) != Z_OK) {
        return err_set(err, ERR_INTERNAL, "zlib cannot be reset");
    }
    gunzip->is_first = false;
    gunzip->is_between = false;
    return 0;
}

int gunzip_next(struct gunzip *gunzip, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    bool has;
    gunzip->z.next_out = gunzip->out;
    gunzip->z.avail_out = GUNZIP_OUT_BYTES;
    while (!gunzip->is_at_end && gunzip->z.avail_out > 0) {
        int result;
        if (gunzip->is_between) {
            if (begin_member(gunzip, err) < 0) {
                return -1;
            }
            continue;
        }
        if (refill(gunzip, &has, err) < 0) {
            return -1;
        }
        if (!has) {
            return err_set(err, ERR_INTEGRITY, "its gzip data is truncated at byte %" PRIu64,
                           gunzip->in_bytes);
        }
        result = inflate(&gunzip->z, Z_NO_FLUSH);
        gunzip->is_between = result == Z_STREAM_END;
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
            return err_set(err, ERR_INTEGRITY, "its gzip data is damaged near byte %" PRIu64 ": %s",
                           gunzip->in_bytes - gunzip->z.avail_in,
                           gunzip->z.msg ? gunzip->z.msg : "zlib refuses it");
        }
    }
    *ret_ptr = gunzip->out;
    *ret_len = GUNZIP_OUT_BYTES - gunzip->z.avail_out;
    return 0;
}

uint32_t crc32_add(uint32_t crc, const void *ptr, size_t len)
{
    const uint8_t *at = ptr;
    while (len > 0) {
        size_t n = len < CRC_PART ? len : CRC_PART;
        crc = (uint32_t)crc32(crc, at, (uInt)n);
        at += n;
        len -= n;
    }
    return crc;
}
