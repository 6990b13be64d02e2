/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/str.h"
#include "codec/file_header.h"
#include "tfrecord.h"

#define S(lit) ((const uint8_t *)(lit)), (sizeof(lit) - 1)

/* 3 x 2 pixels, 1 channel, one scan of two bytes. */
#define SOI       "\xff\xd8"
#define APP0      "\xff\xe0\x00\x04\xff\xd9" /* its payload looks like an end marker */
#define SOF(kind) "\xff" kind "\x00\x0b\x08\x00\x02\x00\x03\x01\x01\x11\x00"
#define SOS       "\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00"
#define DATA      "\x12\xff\x00\xff\xd3\x34"
#define EOI       "\xff\xd9"

typedef int (*reader)(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                      struct err *err);

static void refused(reader read, const uint8_t *ptr, size_t len, bool deep, const char *says)
{
    struct file_header header = {7, 7, 7, 7};
    FAILS_WITH(read(ptr, len, deep, &header, ERR), ERR_INTEGRITY, says);
    assert_int_equal(header.width, 7);
}

TEST(jpeg_headers)
{
    const struct str GOOD[] = {
        STR_LIT(SOI SOF("\xc0") SOS DATA EOI),
        STR_LIT(SOI APP0 SOF("\xc2") SOS DATA SOS DATA EOI),
        STR_LIT(SOI SOF("\xc0") SOS DATA EOI "trailing"),
        STR_LIT(SOI "\xff\xff\xff\xe1\x00\x02" SOF("\xc1") SOS DATA EOI),
    };
    for (EACH(row, GOOD)) {
        for (int deep = 0; deep < 2; deep++) {
            struct file_header header = {0};
            PASSES(file_header_jpeg((const uint8_t *)row->ptr, row->len, deep, &header, ERR));
            assert_int_equal(header.width, 3);
            assert_int_equal(header.height, 2);
            assert_int_equal(header.channels, 1);
        }
    }
    refused(file_header_jpeg, S(""), false, "first bytes of a JPEG");
    refused(file_header_jpeg, S("\x89PNG"), false, "first bytes of a JPEG, found 89 50");
    refused(file_header_jpeg, S(SOI EOI), false, "the end marker comes before the picture");
    refused(file_header_jpeg, S(SOI SOF("\xc0") SOS DATA), false, "with no end marker");
    refused(file_header_jpeg, S(SOI SOF("\xc0") SOS DATA "\xff"), false, "with no end marker");
    refused(file_header_jpeg, S(SOI APP0), false, "ends within its markers");
    refused(file_header_jpeg, S(SOI SOF("\xc4") SOS DATA EOI), false,
            "a scan before the frame header");
    refused(file_header_jpeg, S(SOI SOF("\xc0") SOF("\xc0") SOS DATA EOI), true, "a second frame");
    refused(file_header_jpeg, S(SOI "junk"), false, "byte 2: expected a marker, found 6a");
    refused(file_header_jpeg, S(SOI "\xff\xc0\x00\x08\x08\x00\x02\x00\x03\x01" EOI), false,
            "a frame header of 8 bytes");
    refused(file_header_jpeg, S(SOI "\xff\xe0\x00\x01" EOI), false, "a segment of 1 bytes");
    refused(file_header_jpeg, S(SOI "\xff\xe0\xff\xff" EOI), false, "ends within a segment");
}

/* Every truncation of a good file is refused deep; only those that end in what looks like the end marker pass
   shallow. */
TEST(cuts_are_seen)
{
    static const char JPEG[] = SOI APP0 SOF("\xc2") SOS DATA SOS DATA EOI;
    for (size_t len = 0; len < sizeof(JPEG) - 1; len++) {
        struct file_header header;
        FAILS(file_header_jpeg((const uint8_t *)JPEG, len, true, &header, ERR), ERR_ANY);
    }
}

#define PNG_SIG "\x89PNG\r\n\x1a\n"
#define PNG_IHDR                                                                                   \
    "\x00\x00\x00\x0dIHDR\x00\x00\x00\x08\x00\x00\x00\x04\x08\x02\x00\x00\x00\x3c\xaf\xe9\xa7"
#define PNG_IDAT "\x00\x00\x00\x00IDAT\x35\xaf\x06\x1e"
#define PNG_IEND "\x00\x00\x00\x00IEND\xae\x42\x60\x82"

TEST(png_headers)
{
    struct file_header header = {0};
    PASSES(file_header_png(S(PNG_SIG PNG_IHDR PNG_IDAT PNG_IEND), true, &header, ERR));
    assert_int_equal(header.width, 8);
    assert_int_equal(header.height, 4);
    assert_int_equal(header.channels, 3);
    refused(file_header_png, S("\xff\xd8"), false, "the signature of a PNG");
    refused(file_header_png, S(PNG_SIG), false, "ends before its IEND");
    refused(file_header_png, S(PNG_SIG PNG_IHDR PNG_IDAT), false, "byte 45: the file ends before");
    refused(file_header_png, S(PNG_SIG PNG_IHDR PNG_IEND), false, "without a picture");
    refused(file_header_png, S(PNG_SIG PNG_IDAT PNG_IEND), false, "an IHDR chunk first");
    refused(file_header_png, S(PNG_SIG PNG_IHDR PNG_IHDR PNG_IEND), false, "one IHDR chunk");
    refused(file_header_png, S(PNG_SIG "\xff\xff\xff\xffIHDR" PNG_IEND), false,
            "ends before its IEND");
    refused(file_header_png,
            S(PNG_SIG "\x00\x00\x00\x0dIHDR\x00\x00\x00\x09\x00\x00\x00\x04\x08\x02\x00\x00\x00"
                      "\x3c\xaf\xe9\xa7" PNG_IDAT PNG_IEND),
            false, "chunk IHDR has checksum");
    refused(file_header_png, S(PNG_SIG PNG_IHDR "\x00\x00\x00\x00IDAT\x35\xaf\x06\x1f" PNG_IEND),
            true, "chunk IDAT has checksum");
    /* Only deep reads the checksums of the others. */
    PASSES(file_header_png(S(PNG_SIG PNG_IHDR "\x00\x00\x00\x00IDAT\x35\xaf\x06\x1f" PNG_IEND),
                           false, &header, ERR));
}

TEST(hdf5_headers)
{
    uint8_t file[600] = "\x89HDF\r\n\x1a\n";
    struct file_header header = {0};
    file[13] = 8; /* size of addresses, version 0 */
    file[40] = 96;
    PASSES(file_header_hdf5(file, 96, false, &header, ERR));
    assert_int_equal(header.width, -1);
    refused(file_header_hdf5, file, 95, false,
            "says that the file ends at byte 96, but it ends at 95");
    refused(file_header_hdf5, file, 20, false, "is truncated");
    refused(file_header_hdf5, file + 1, 90, false, "the signature of HDF5");
    file[13] = 3;
    refused(file_header_hdf5, file, 96, false, "addresses of 4 or 8 bytes, found 3");
    file[8] = 9;
    refused(file_header_hdf5, file, 96, false, "version 0 to 3, found 9");
    /* After a user block of 512 bytes, version 2. */
    memset(file, 0, sizeof(file));
    memcpy(file + 512, "\x89HDF\r\n\x1a\n\x02\x08\x08", 11);
    file[512 + 12 + 1] = 2; /* base 512 */
    file[512 + 12 + 16] = 88;
    file[512 + 12 + 17] = 2;
    PASSES(file_header_hdf5(file, 600, false, &header, ERR));
    refused(file_header_hdf5, file, 599, false, "ends at byte 600, but it ends at 599");
}

TEST(tfrecord_headers)
{
    uint8_t file[256];
    struct file_header header = {0};
    size_t len = add_record(file, "first record");
    len += add_record(file + len, "");
    len += add_record(file + len, "last");
    PASSES(file_header_tfrecord(file, len, true, &header, ERR));
    assert_int_equal(header.n_records, 3);
    refused(file_header_tfrecord, file, 0, false, "an empty file");
    refused(file_header_tfrecord, file, len - 1, false,
            "record 2 has 4 bytes, the file has 7 more");
    refused(file_header_tfrecord, file, 30, false, "byte 28: record 1 is truncated");
    file[14] ^= 1;
    PASSES(file_header_tfrecord(file, len, false, &header, ERR));
    refused(file_header_tfrecord, file, len, true, "byte 0: the record's data has checksum");
    file[0] ^= 1;
    refused(file_header_tfrecord, file, len, false, "the record's length has checksum");
}

TEST(texts)
{
    struct file_header header = {0};
    PASSES(file_header_text(S(""), false, &header, ERR));
    assert_int_equal(header.n_records, 0);
    PASSES(file_header_text(S("1\n2\n3\n"), false, &header, ERR));
    assert_int_equal(header.n_records, 3);
    PASSES(file_header_text(S("1\n2\n3"), false, &header, ERR));
    assert_int_equal(header.n_records, 3);
    refused(file_header_text, S("1\n\0"), false, "byte 2: expected text, found a NUL byte");
}
