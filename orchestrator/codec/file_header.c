/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5, TFRecord and text; images are in image_header.c. */
#include "base/base.h"

#include "codec/file_header.h"

#include "codec/proto.h"

#define HDF5_SIGNATURE "\x89HDF\r\n\x1a\n"
#define SIGNATURE_SIZE 8

static const struct file_header NOTHING = {-1, -1, -1, -1};

/* The superblock may be at offset 0, 512, 1024, 2048, ... */
static bool find_superblock(const uint8_t *ptr, size_t len, size_t *ret_at)
{
    for (size_t at = 0; at <= len && len - at >= SIGNATURE_SIZE; at = at ? at * 2 : 512) {
        if (memcmp(ptr + at, HDF5_SIGNATURE, SIGNATURE_SIZE) == 0) {
            *ret_at = at;
            return true;
        }
    }
    return false;
}

int file_header_hdf5(const uint8_t *ptr, size_t len, bool deep UNUSED, struct file_header *ret,
                     struct err *err)
{
    size_t at = 0;
    size_t width_at;
    size_t addresses_at;
    if (!find_superblock(ptr, len, &at)) {
        return err_set(err, ERR_INTEGRITY, "expected the signature of HDF5, found none");
    }
    if (len - at < 48) {
        return err_set(err, ERR_INTEGRITY, "byte %zu: the superblock is truncated", len);
    }
    switch (ptr[at + 8]) {
    case 0:
        width_at = 13;
        addresses_at = 24;
        break;
    case 1:
        width_at = 13;
        addresses_at = 28;
        break;
    case 2:
    case 3:
        width_at = 9;
        addresses_at = 12;
        break;
    default:
        return err_set(err, ERR_INTEGRITY,
                       "byte %zu: expected a superblock of version 0 to 3, found %u", at + 8,
                       ptr[at + 8]);
    }
    size_t size = ptr[at + width_at];
    if ((size != 4 && size != 8) || len - at < addresses_at + 3 * size) {
        return err_set(err, ERR_INTEGRITY,
                       "byte %zu: expected addresses of 4 or 8 bytes, found %zu", at + width_at,
                       size);
    }
    uint64_t base = little_endian(ptr + at + addresses_at, size);
    uint64_t end = little_endian(ptr + at + addresses_at + 2 * size, size);
    if (base != at || end > len || end < at) {
        return err_set(err, ERR_INTEGRITY,
                       "the superblock says that the file ends at byte %llu, but it ends at %zu",
                       (unsigned long long)end, len);
    }
    *ret = NOTHING;
    return 0;
}

static int check_crc(const uint8_t *ptr, size_t len, size_t at, const char *what, struct err *err)
{
    uint32_t wanted = (uint32_t)little_endian(ptr + len, 4);
    uint32_t found = record_crc(ptr, len);
    return wanted == found ? 0
                           : err_set(err, ERR_INTEGRITY,
                                     "byte %zu: the record's %s has checksum %08x, expected %08x",
                                     at, what, found, wanted);
}

int file_header_tfrecord(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                         struct err *err)
{
    int64_t n = 0;
    for (size_t at = 0; at < len; n++) {
        if (len - at < RECORD_HEAD_BYTES + RECORD_CRC_BYTES) {
            return err_set(err, ERR_INTEGRITY, "byte %zu: record %lld is truncated", at,
                           (long long)n);
        }
        if (check_crc(ptr + at, 8, at, "length", err) < 0) {
            return -1;
        }
        uint64_t bytes = little_endian(ptr + at, 8);
        if (bytes > len - at - RECORD_HEAD_BYTES - RECORD_CRC_BYTES) {
            return err_set(err, ERR_INTEGRITY,
                           "byte %zu: record %lld has %llu bytes, the file has %zu more", at,
                           (long long)n, (unsigned long long)bytes, len - at - RECORD_HEAD_BYTES);
        }
        if (deep && check_crc(ptr + at + RECORD_HEAD_BYTES, (size_t)bytes, at, "data", err) < 0) {
            return -1;
        }
        at += RECORD_HEAD_BYTES + (size_t)bytes + RECORD_CRC_BYTES;
    }
    if (n == 0) {
        return err_set(err, ERR_INTEGRITY, "expected records, found an empty file");
    }
    *ret = NOTHING;
    ret->n_records = n;
    return 0;
}

int file_header_text(const uint8_t *ptr, size_t len, bool deep UNUSED, struct file_header *ret,
                     struct err *err)
{
    const uint8_t *nul = len ? memchr(ptr, 0, len) : NULL;
    int64_t n = 0;
    if (nul) {
        return err_set(err, ERR_INTEGRITY, "byte %zu: expected text, found a NUL byte",
                       (size_t)(nul - ptr));
    }
    for (size_t at = 0; at < len; n++) {
        const uint8_t *feed = memchr(ptr + at, '\n', len - at);
        at = feed ? (size_t)(feed - ptr) + 1 : len;
    }
    *ret = NOTHING;
    ret->n_records = n;
    return 0;
}
