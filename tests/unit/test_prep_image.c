/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/rng.h"
#include "prep/draw.h"
#include "prep/jpeg.h"
#include "prep/pixels.h"
#include "prep/png.h"
#include "prep/shrink.h"

#define W ((size_t)67)
#define H ((size_t)41)

struct file {
    uint8_t *ptr;
    size_t len;
};
static void file_cleanup(struct file *file)
{
    free(file->ptr);
}
static struct str text_of(const struct file *file)
{
    return (struct str){(const char *)file->ptr, file->len};
}

static struct file jpeg_of(const uint8_t *pixels, uint32_t width, uint32_t height, int n_channels)
{
    struct jpeg_picture picture = {pixels, width, height, n_channels, 95};
    struct file file = {0};
    PASSES(jpeg_encode(&picture, &file.ptr, &file.len, ERR));
    return file;
}

static struct file png_of(const struct png_picture *picture)
{
    struct file file = {0};
    PASSES(png_encode(picture, &file.ptr, &file.len, ERR));
    return file;
}

/* Into out, which has room for the packed size. */
static int decode(struct str file, int64_t short_side, uint8_t *out, struct pixel_info *ret_info,
                  struct err *err)
{
    CLEANUP(image_decoder) struct image_decoder decoder = IMAGE_DECODER_EMPTY;
    return image_probe(file, true, "test", ret_info, err) < 0
               ? -1
               : image_decode_rgb(&decoder, file, ret_info, short_side, out, err);
}

static void fill_random(uint8_t *ptr, size_t len, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    for (size_t idx = 0; idx < len; idx++) {
        ptr[idx] = (uint8_t)rng_u64(&rng);
    }
}

static void assert_near(const uint8_t *a, const uint8_t *b, size_t n, int tolerance)
{
    for (size_t idx = 0; idx < n; idx++) {
        assert_in_range(a[idx] - b[idx] + 256, 256 - tolerance, 256 + tolerance);
    }
}

TEST(jpegs_come_back)
{
    static uint8_t pixels[W * H * 4], out[W * H * 3], expected[W * H * 3];
    struct pixel_info info;
    for (size_t idx = 0; idx < W * H; idx++) { /* smooth: the loss is small */
        pixels[idx * 3] = (uint8_t)(idx % W * 3);
        pixels[idx * 3 + 1] = (uint8_t)(idx / W * 5);
        pixels[idx * 3 + 2] = 90;
    }
    CLEANUP(file) struct file rgb = jpeg_of(pixels, W, H, 3);
    PASSES(decode(text_of(&rgb), -1, out, &info, ERR));
    assert_int_equal(info.width * 1000 + info.height, W * 1000 + H);
    assert_int_equal(info.traits, 0);
    assert_near(out, pixels, W * H * 3, 12);

    CLEANUP(file) struct file grey = jpeg_of(pixels, W, H, 1);
    PASSES(decode(text_of(&grey), -1, out, &info, ERR));
    assert_int_equal(info.traits, TRAIT_GREY);
    for (size_t idx = 0; idx < W * H; idx++) {
        assert_int_equal(out[idx * 3], out[idx * 3 + 1]);
        assert_int_equal(out[idx * 3], out[idx * 3 + 2]);
    }

    for (size_t idx = 0; idx < W * H; idx++) {
        memcpy(pixels + idx * 4, (uint8_t[]){200, 100, 50, 128}, 4);
        /* 200 * 128 / 255 and so on. */
        memcpy(expected + idx * 3, (uint8_t[]){100, 50, 25}, 3);
    }
    CLEANUP(file) struct file cmyk = jpeg_of(pixels, W, H, 4);
    PASSES(decode(text_of(&cmyk), -1, out, &info, ERR));
    assert_int_equal(info.traits, TRAIT_CMYK);
    assert_near(out, expected, W * H * 3, 2);
}

TEST(pngs_come_back)
{
    static uint8_t pixels[W * H * 8], out[W * H * 3];
    static const uint8_t palette[3][3] = {{1, 2, 3}, {40, 50, 60}, {255, 0, 7}};
    struct pixel_info info;
    fill_random(pixels, sizeof(pixels), 3);
    struct png_picture picture = {
        .pixels = pixels, .width = W, .height = H, .n_channels = 3, .bits = 8};
    CLEANUP(file) struct file rgb = png_of(&picture);
    PASSES(decode(text_of(&rgb), -1, out, &info, ERR));
    assert_int_equal(info.traits, 0);
    assert_memory_equal(out, pixels, W * H * 3);

    picture.n_channels = 4;
    CLEANUP(file) struct file rgba = png_of(&picture);
    PASSES(decode(text_of(&rgba), -1, out, &info, ERR));
    assert_int_equal(info.traits, TRAIT_ALPHA);
    for (size_t idx = 0; idx < W * H; idx++) {
        assert_memory_equal(out + idx * 3, pixels + idx * 4, 3);
    }

    picture.n_channels = 3;
    picture.bits = 16;
    CLEANUP(file) struct file deep = png_of(&picture);
    PASSES(decode(text_of(&deep), -1, out, &info, ERR));
    assert_int_equal(info.traits, TRAIT_DEEP);
    for (size_t idx = 0; idx < W * H * 3; idx++) { /* little endian: the upper byte is the second */
        assert_int_equal(out[idx], pixels[idx * 2 + 1]);
    }

    picture =
        (struct png_picture){.pixels = pixels, .width = W, .height = H, .n_channels = 1, .bits = 8};
    CLEANUP(file) struct file grey = png_of(&picture);
    PASSES(decode(text_of(&grey), -1, out, &info, ERR));
    assert_int_equal(info.traits, TRAIT_GREY);
    for (size_t idx = 0; idx < W * H * 3; idx++) {
        assert_int_equal(out[idx], pixels[idx / 3]);
    }

    for (size_t idx = 0; idx < W * H; idx++) {
        pixels[idx] %= 3;
    }
    picture.palette = palette;
    picture.n_palette = 3;
    CLEANUP(file) struct file indexed = png_of(&picture);
    PASSES(decode(text_of(&indexed), -1, out, &info, ERR));
    assert_int_equal(info.traits, TRAIT_PALETTE);
    for (size_t idx = 0; idx < W * H; idx++) {
        assert_memory_equal(out + idx * 3, palette[pixels[idx]], 3);
    }
    /* As a label map its numbers count, not its colours. */
    PASSES(image_decode_labels(text_of(&indexed), &info, out, ERR));
    assert_memory_equal(out, pixels, W * H);
}

TEST(label_maps_have_one_form)
{
    static uint8_t pixels[W * H * 8], out[W * H * 3];
    struct pixel_info info;
    fill_random(pixels, sizeof(pixels), 4);
    struct png_picture picture = {
        .pixels = pixels, .width = W, .height = H, .n_channels = 1, .bits = 8};
    CLEANUP(file) struct file grey = png_of(&picture);
    PASSES(image_probe(text_of(&grey), true, "test", &info, ERR));
    PASSES(image_decode_labels(text_of(&grey), &info, out, ERR));
    assert_memory_equal(out, pixels, W * H);
    picture.n_channels = 3;
    CLEANUP(file) struct file rgb = png_of(&picture);
    picture.n_channels = 1;
    picture.bits = 16;
    CLEANUP(file) struct file deep = png_of(&picture);
    CLEANUP(file) struct file jpeg = jpeg_of(pixels, W, H, 1);
    const struct file *const wrong[] = {&rgb, &deep, &jpeg};
    for (EACH(row, wrong)) {
        PASSES(image_probe(text_of(*row), true, "test", &info, ERR));
        FAILS(image_decode_labels(text_of(*row), &info, out, ERR), ERR_INTEGRITY);
    }
}

/* A file truncated anywhere, even by its last byte, is refused. */
TEST(cut_files_are_refused)
{
    static uint8_t pixels[W * H * 3], out[W * H * 3];
    fill_random(pixels, sizeof(pixels), 5);
    struct png_picture picture = {
        .pixels = pixels, .width = W, .height = H, .n_channels = 3, .bits = 8};
    CLEANUP(file) struct file png = png_of(&picture);
    CLEANUP(file) struct file jpeg = jpeg_of(pixels, W, H, 3);
    const struct file *const files[] = {&png, &jpeg};
    for (size_t which = 0; which < ARRAY_LEN(files); which++) {
        for (size_t len = 0; len < files[which]->len;
             len += len + 60 < files[which]->len ? 13 : 1) {
            struct pixel_info info;
            struct err err = {0};
            struct str cut = {(const char *)files[which]->ptr, len};
            if (decode(cut, -1, out, &info, &err) == 0) {
                fail_msg("file %zu of %zu bytes: %zu are enough", which, files[which]->len, len);
            }
            assert_int_equal(err.code, ERR_INTEGRITY);
        }
    }
}

/* SOI, then the given segments, then what follows SOI in the file. */
static struct file with_segments(const struct file *jpeg, const void *segments, size_t len)
{
    struct file file = {xmalloc(jpeg->len + len), jpeg->len + len};
    memcpy(file.ptr, jpeg->ptr, 2);
    memcpy(file.ptr + 2, segments, len);
    memcpy(file.ptr + 2 + len, jpeg->ptr + 2, jpeg->len - 2);
    return file;
}

TEST(exif_is_counted_and_not_applied)
{
    static const uint8_t little[] = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0,    0, 'I', 'I',
                                     42,   0,    8, 0,  0,   0,   1,   0,   0x12, 1, 3,   0,
                                     1,    0,    0, 0,  6,   0,   0,   0,   0,    0, 0,   0};
    static uint8_t pixels[W * H * 3], plain[W * H * 3], out[W * H * 3];
    struct pixel_info info;
    fill_random(pixels, sizeof(pixels), 6);
    CLEANUP(file) struct file jpeg = jpeg_of(pixels, W, H, 3);
    CLEANUP(file) struct file rotated = with_segments(&jpeg, little, sizeof(little));
    PASSES(decode(text_of(&jpeg), -1, plain, &info, ERR));
    assert_int_equal(info.traits, 0);
    PASSES(decode(text_of(&rotated), -1, out, &info, ERR));
    assert_int_equal(info.traits, TRAIT_ROTATED);
    assert_int_equal(info.width, W);
    assert_memory_equal(out, plain, sizeof(out));
}

TEST(a_long_header_asks_for_more)
{
    static uint8_t pixels[W * H * 3], segment[60000];
    struct pixel_info info;
    CLEANUP(file) struct file jpeg = jpeg_of(pixels, W, H, 3);
    memcpy(segment,
           (uint8_t[]){0xFF, 0xE2, (sizeof(segment) - 2) >> 8, (sizeof(segment) - 2) & 255}, 4);
    CLEANUP(file) struct file large = with_segments(&jpeg, segment, sizeof(segment));
    struct str head = {(const char *)large.ptr, 16384};
    FAILS(image_probe(head, false, "test", &info, ERR), ERR_PARSE);
    FAILS(image_probe(head, true, "test", &info, ERR), ERR_INTEGRITY);
    PASSES(image_probe(text_of(&large), true, "test", &info, ERR));
    assert_int_equal(info.height, H);
}

TEST(sizes_are_limited_before_memory)
{
    static uint8_t pixels[W * H * 3];
    struct pixel_info info;
    struct png_picture picture = {
        .pixels = pixels, .width = W, .height = H, .n_channels = 3, .bits = 8};
    CLEANUP(file) struct file png = png_of(&picture);
    CLEANUP(file) struct file jpeg = jpeg_of(pixels, W, H, 3);
    png.ptr[17] = 1; /* width 65536 and more */
    FAILS(image_probe(text_of(&png), true, "test", &info, ERR), ERR_INTEGRITY);
    for (size_t idx = 2; idx + 9 < jpeg.len; idx++) {
        if (jpeg.ptr[idx] == 0xFF && jpeg.ptr[idx + 1] == 0xC0) {
            jpeg.ptr[idx + 5] = 0x41; /* height 16640 and more */
            break;
        }
    }
    FAILS(image_probe(text_of(&jpeg), true, "test", &info, ERR), ERR_INTEGRITY);
}

TEST(packed_sizes)
{
    static const uint32_t cases[][5] = {/* width, height, short side, packed width, height */
                                        {500, 375, 256, 341, 256}, {375, 500, 256, 256, 341},
                                        {256, 300, 256, 256, 300}, {200, 100, 256, 200, 100},
                                        {16384, 1, 256, 16384, 1}, {1000, 1000, 1, 1, 1}};
    for (EACH(row, cases)) {
        struct pixel_info info = {.width = (*row)[0], .height = (*row)[1]};
        uint32_t width = 0, height = 0;
        image_packed_size(&info, (*row)[2], &width, &height);
        assert_int_equal(width, (*row)[3]);
        assert_int_equal(height, (*row)[4]);
        image_packed_size(&info, -1, &width, &height);
        assert_int_equal(width, (*row)[0]);
        assert_int_equal(height, (*row)[1]);
    }
}

TEST(resampling_keeps_what_it_must)
{
    static uint8_t from[300 * 200 * 3], to[300 * 200 * 3];
    static const struct resample_size sizes[] = {{300, 200}, {299, 200}, {171, 114},
                                                 {150, 100}, {7, 5},     {1, 1}};
    const struct resample_size whole = {300, 200};
    for (EACH(row, sizes)) {
        size_t n = (size_t)row->width * row->height * 3;
        memset(from, 255, sizeof(from)); /* the weights add up to one, also at the edges */
        resample_rgb(from, whole, to, *row);
        for (size_t at = 0; at < n; at++) {
            assert_int_equal(to[at], 255);
        }
        for (size_t at = 0; at < sizeof(from);
             at++) { /* from left to right, and only in one channel */
            from[at] = at % 3 == 1 ? (uint8_t)(at / 3 % 300 * 255 / 299) : 9;
        }
        resample_rgb(from, whole, to, *row);
        for (size_t at = 0; at < n; at += 3) {
            assert_int_equal(to[at], 9);
            assert_int_equal(to[at + 2], 9);
            if (at / 3 % row->width) {
                assert_true(to[at + 1] >= to[at - 2]);
            }
        }
    }
    fill_random(from, sizeof(from), 8);
    resample_rgb(from, whole, to, whole);
    assert_memory_equal(to, from, sizeof(from));
    /* A half by definition: a triangle of two pixels to each side, 1 3 3 1 over 8 in each direction. */
    resample_rgb(from, whole, to, (struct resample_size){150, 100});
    static const int share[4] = {1, 3, 3, 1};
    for (size_t y = 1; y < 99; y++) {
        for (size_t x = 1; x < 149; x++) {
            int sum = 0;
            for (size_t tap = 0; tap < 16; tap++) {
                sum += share[tap / 4] * share[tap % 4] *
                       from[((2 * y - 1 + tap / 4) * 300 + 2 * x - 1 + tap % 4) * 3];
            }
            assert_in_range(to[(y * 150 + x) * 3] * 64 - sum + 1000, 1000 - 96, 1000 + 96);
        }
    }
}

/* A larger picture is first scaled by the decoder; the result must look like one without. */
TEST(scaled_decoding_looks_the_same)
{
    const uint32_t width = 640, height = 480;
    const size_t n_bytes = (size_t)width * height * 3;
    uint8_t *pixels = xmalloc(n_bytes), *whole = xmalloc(n_bytes);
    uint8_t *wanted = xmalloc(n_bytes), *out = xmalloc(n_bytes);
    struct pixel_info info;
    uint64_t total = 0;
    draw_object(5, 3, width, height, pixels);
    CLEANUP(file) struct file jpeg = jpeg_of(pixels, width, height, 3);
    PASSES(decode(text_of(&jpeg), -1, whole, &info, ERR));
    resample_rgb(whole, (struct resample_size){width, height}, wanted,
                 (struct resample_size){133, 100});
    PASSES(decode(text_of(&jpeg), 100, out, &info, ERR));
    for (size_t idx = 0; idx < (size_t)133 * 100 * 3; idx++) {
        total += (uint64_t)abs(out[idx] - wanted[idx]);
    }
    assert_true(total < 4 * (size_t)133 * 100 * 3); /* less than four levels in the mean */
    free(pixels);
    free(whole);
    free(wanted);
    free(out);
}

TEST(streets_hold_train_ids)
{
    static uint8_t labels[256 * 128], again[256 * 128], rgb[256 * 128 * 3];
    bool seen[256] = {false};
    for (uint64_t seed = 0; seed < 8; seed++) {
        draw_street_labels(seed, 256, 128, labels);
        draw_street_labels(seed, 256, 128, again);
        assert_memory_equal(labels, again, sizeof(labels));
        draw_street(seed, 256, 128, labels, rgb);
        for (size_t idx = 0; idx < sizeof(labels); idx++) {
            assert_true(labels[idx] < DRAW_CLASSES || labels[idx] == DRAW_VOID);
            seen[labels[idx]] = true;
        }
    }
    assert_true(seen[0] && seen[10] && seen[13] && seen[DRAW_VOID]);
}
