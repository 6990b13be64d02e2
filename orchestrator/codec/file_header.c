/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/file_header.h"

#include <zlib.h>

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

/* JPEG and PNG. */

#define PNG_SIGNATURE "\x89PNG\r\n\x1a\n"
#define PNG_HEAD      8
#define CHUNK_EXTRA   12 /* length, type, checksum */
#define IHDR_BYTES    13

enum { M_SOF0 = 0xC0, M_DHT = 0xC4, M_JPG = 0xC8, M_DAC = 0xCC, M_SOF15 = 0xCF };
enum { M_RST0 = 0xD0, M_RST7 = 0xD7, M_SOI = 0xD8, M_EOI = 0xD9, M_SOS = 0xDA, M_TEM = 0x01 };

static uint32_t big16(const uint8_t *ptr)
{
    return (uint32_t)ptr[0] << 8 | ptr[1];
}

static uint32_t big32(const uint8_t *ptr)
{
    return big16(ptr) << 16 | big16(ptr + 2);
}

/* ---- JPEG ---- */

struct jpeg {
    const uint8_t *ptr;
    size_t len;
    size_t at;
    bool has_frame, has_scan;
    struct file_header header;
};

static int cut(const struct jpeg *jpeg, const char *what, struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "byte %zu: the file ends within %s", jpeg->len, what);
}

static bool is_frame(uint8_t marker)
{
    return marker >= M_SOF0 && marker <= M_SOF15 && marker != M_DHT && marker != M_JPG &&
           marker != M_DAC;
}

static int read_frame(struct jpeg *jpeg, size_t bytes, struct err *err)
{
    const uint8_t *ptr = jpeg->ptr + jpeg->at;
    if (jpeg->has_frame) {
        return err_set(err, ERR_INTEGRITY, "byte %zu: a second frame header", jpeg->at);
    }
    if (bytes < 8 || bytes != 8 + 3 * (size_t)ptr[7]) {
        return err_set(err, ERR_INTEGRITY, "byte %zu: a frame header of %zu bytes", jpeg->at,
                       bytes);
    }
    jpeg->header.height = big16(ptr + 3);
    jpeg->header.width = big16(ptr + 5);
    jpeg->header.channels = ptr[7];
    if (jpeg->header.height == 0 || jpeg->header.width == 0 || ptr[7] == 0 || ptr[7] > 4) {
        return err_set(err, ERR_INTEGRITY, "byte %zu: an image of %lld x %lld with %u channels",
                       jpeg->at, (long long)jpeg->header.width, (long long)jpeg->header.height,
                       ptr[7]);
    }
    jpeg->has_frame = true;
    return 0;
}

/* Moves past the marker, which goes to *ret_marker. */
static int next_marker(struct jpeg *jpeg, uint8_t *ret_marker, struct err *err)
{
    if (jpeg->len - jpeg->at < 2) {
        return cut(jpeg, "its markers", err);
    }
    if (jpeg->ptr[jpeg->at] != 0xFF) {
        return err_set(err, ERR_INTEGRITY, "byte %zu: expected a marker, found %02x", jpeg->at,
                       jpeg->ptr[jpeg->at]);
    }
    while (jpeg->at < jpeg->len && jpeg->ptr[jpeg->at] == 0xFF) {
        jpeg->at++;
    }
    if (jpeg->at == jpeg->len) {
        return cut(jpeg, "its markers", err);
    }
    *ret_marker = jpeg->ptr[jpeg->at++];
    return 0;
}

/* Skips the coded data of a scan, to the next marker that is not a restart. */
static int skip_scan(struct jpeg *jpeg, struct err *err)
{
    for (;;) {
        const uint8_t *hit =
            jpeg->len > jpeg->at ? memchr(jpeg->ptr + jpeg->at, 0xFF, jpeg->len - jpeg->at) : NULL;
        size_t at = hit ? (size_t)(hit - jpeg->ptr) : jpeg->len;
        if (!hit || at + 1 >= jpeg->len) {
            return cut(jpeg, "its picture, with no end marker", err);
        }
        if (hit[1] != 0x00 && hit[1] != 0xFF && !(hit[1] >= M_RST0 && hit[1] <= M_RST7)) {
            jpeg->at = at;
            return 0;
        }
        jpeg->at = at + (hit[1] == 0xFF ? 1 : 2);
    }
}

static int read_segment(struct jpeg *jpeg, uint8_t marker, struct err *err)
{
    if (marker == M_TEM || (marker >= M_RST0 && marker <= M_SOI)) {
        return 0;
    }
    if (jpeg->len - jpeg->at < 2) {
        return cut(jpeg, "a segment's length", err);
    }
    size_t bytes = big16(jpeg->ptr + jpeg->at);
    if (bytes < 2) {
        return err_set(err, ERR_INTEGRITY, "byte %zu: a segment of %zu bytes", jpeg->at, bytes);
    }
    if (bytes > jpeg->len - jpeg->at) {
        return cut(jpeg, "a segment", err);
    }
    if (is_frame(marker) && read_frame(jpeg, bytes, err) < 0) {
        return -1;
    }
    jpeg->at += bytes;
    if (marker == M_SOS) {
        jpeg->has_scan = true;
        if (!jpeg->has_frame) {
            return err_set(err, ERR_INTEGRITY, "byte %zu: a scan before the frame header",
                           jpeg->at);
        }
        return skip_scan(jpeg, err);
    }
    return 0;
}

int file_header_jpeg(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                     struct err *err)
{
    struct jpeg jpeg = {.ptr = ptr, .len = len, .at = 2, .header = {-1, -1, -1, -1}};
    bool ends_well = len >= 4 && ptr[len - 2] == 0xFF && ptr[len - 1] == M_EOI;
    if (len < 4 || ptr[0] != 0xFF || ptr[1] != M_SOI) {
        return err_set(err, ERR_INTEGRITY, "expected the first bytes of a JPEG, found %02x %02x",
                       len > 0 ? ptr[0] : 0, len > 1 ? ptr[1] : 0);
    }
    /* If the last two bytes are the end marker, only --deep reads through the picture. */
    for (uint8_t marker = 0; deep || !ends_well || !jpeg.has_frame;) {
        if (next_marker(&jpeg, &marker, err) < 0) {
            return -1;
        }
        if (marker == M_EOI) {
            break;
        }
        if (read_segment(&jpeg, marker, err) < 0) {
            return -1;
        }
    }
    if (!jpeg.has_frame || ((deep || !ends_well) && !jpeg.has_scan)) {
        return err_set(err, ERR_INTEGRITY, "byte %zu: the end marker comes before the picture",
                       jpeg.at);
    }
    *ret = jpeg.header;
    return 0;
}

/* ---- PNG ---- */

static int check_chunk(const uint8_t *ptr, size_t bytes, size_t at, struct err *err)
{
    uint32_t wanted = big32(ptr + 8 + bytes);
    uint32_t found = (uint32_t)crc32_z(0, ptr + 4, bytes + 4);
    return wanted == found ? 0
                           : err_set(err, ERR_INTEGRITY,
                                     "byte %zu: chunk %.4s has checksum %08x, expected %08x", at,
                                     (const char *)ptr + 4, found, wanted);
}

static int read_ihdr(const uint8_t *ptr, struct file_header *ret, struct err *err)
{
    static const int64_t CHANNELS[7] = {1, -1, 3, 1, 2, -1, 4};
    static const char *const DEPTHS[7] = {"\1\2\4\x8\x10", "", "\x8\x10", "\1\2\4\x8",
                                          "\x8\x10",       "", "\x8\x10"};
    uint32_t width = big32(ptr);
    uint32_t height = big32(ptr + 4);
    uint8_t depth = ptr[8];
    uint8_t colour = ptr[9];
    if (width == 0 || height == 0 || width > INT32_MAX || height > INT32_MAX) {
        return err_set(err, ERR_INTEGRITY, "byte 16: an image of %u x %u", width, height);
    }
    if (colour > 6 || CHANNELS[colour] < 0 || depth == 0 || !strchr(DEPTHS[colour], depth)) {
        return err_set(err, ERR_INTEGRITY, "byte 24: bit depth %u with colour type %u", depth,
                       colour);
    }
    if (ptr[10] != 0 || ptr[11] != 0 || ptr[12] > 1) {
        return err_set(err, ERR_INTEGRITY, "byte 26: compression %u, filter %u, interlace %u",
                       ptr[10], ptr[11], ptr[12]);
    }
    *ret = (struct file_header){width, height, CHANNELS[colour], -1};
    return 0;
}

int file_header_png(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                    struct err *err)
{
    struct file_header header = {-1, -1, -1, -1};
    bool has_data = false;
    if (len < PNG_HEAD || memcmp(ptr, PNG_SIGNATURE, PNG_HEAD) != 0) {
        return err_set(err, ERR_INTEGRITY, "expected the signature of a PNG, found none");
    }
    for (size_t at = PNG_HEAD;;) {
        size_t bytes;
        const uint8_t *chunk = ptr + at;
        if (len - at < CHUNK_EXTRA || (bytes = big32(chunk)) > len - at - CHUNK_EXTRA) {
            return err_set(err, ERR_INTEGRITY, "byte %zu: the file ends before its IEND chunk",
                           len);
        }
        bool is_head = memcmp(chunk + 4, "IHDR", 4) == 0;
        if (is_head != (at == PNG_HEAD) || (is_head && bytes != IHDR_BYTES)) {
            return err_set(err, ERR_INTEGRITY, "byte %zu: expected %s", at,
                           is_head ? "one IHDR chunk of 13 bytes" : "an IHDR chunk first");
        }
        if (((deep || is_head) && check_chunk(chunk, bytes, at, err) < 0) ||
            (is_head && read_ihdr(chunk + 8, &header, err) < 0)) {
            return -1;
        }
        has_data |= memcmp(chunk + 4, "IDAT", 4) == 0;
        if (memcmp(chunk + 4, "IEND", 4) == 0) {
            break;
        }
        at += CHUNK_EXTRA + bytes;
    }
    if (!has_data) {
        return err_set(err, ERR_INTEGRITY, "a PNG without a picture (no IDAT chunk)");
    }
    *ret = header;
    return 0;
}
