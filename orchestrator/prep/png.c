/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/bytes.h"
#include "prep/png.h"

#include <spng.h>

#define SIGNATURE     "\x89PNG\r\n\x1a\n"
#define HEADER_BYTES  33 /* signature and IHDR */
#define CHUNK_BYTES   (64u << 20)
#define DEFLATE_LEVEL 1 /* synthetic pictures: seconds matter more than a tenth of the size */

#define TEXT_(x) #x
#define TEXT(x)  TEXT_(x)

CLEANUP_POINTER(spng_ctx, spng_ctx, spng_ctx_free);

bool png_is(struct str bytes)
{
    return bytes.len >= 8 && memcmp(bytes.ptr, SIGNATURE, 8) == 0;
}

/* Source: PNG, 11.2.2 (IHDR). */
int png_probe(struct str bytes, bool is_all, const char *name, struct pixel_info *ret_info,
              struct err *err)
{
    struct pixel_info info = {.format = IMAGE_PNG};
    if (bytes.len < HEADER_BYTES) {
        return err_set(err, is_all ? ERR_INTEGRITY : ERR_PARSE,
                       "%s: the PNG header is truncated after %zu bytes", name, bytes.len);
    }
    if (memcmp(bytes.ptr + 8, "\0\0\0\rIHDR", 8) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: PNG without IHDR", name);
    }
    info.width = get_be32(bytes.ptr + 16);
    info.height = get_be32(bytes.ptr + 20);
    int bits = (uint8_t)bytes.ptr[24];
    int colour = (uint8_t)bytes.ptr[25];
    if (!info.width || !info.height || info.width > SHARD_SIDE_MAX ||
        info.height > SHARD_SIDE_MAX) {
        return err_set(err, ERR_INTEGRITY, "%s: PNG of %u x %u pixels, expected 1 to %d", name,
                       info.width, info.height, SHARD_SIDE_MAX);
    }
    info.traits |= bits == 16 ? TRAIT_DEEP : 0;
    info.traits |= colour == SPNG_COLOR_TYPE_INDEXED ? TRAIT_PALETTE : 0;
    info.traits |= colour == SPNG_COLOR_TYPE_GRAYSCALE || colour == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA
                       ? TRAIT_GREY
                       : 0;
    info.traits |= colour >= SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ? TRAIT_ALPHA : 0;
    *ret_info = info;
    return 0;
}

static int fail(int status, struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "PNG: %s", spng_strerror(status));
}

/* The library does not ask for the end chunk's last bytes. Source: PNG, 5.3 (chunk layout), 11.2.5 (IEND). */
static int check_end(struct str file, struct err *err)
{
    size_t at = 8;
    while (file.len >= 12 && at <= file.len - 12) {
        uint32_t len = get_be32(file.ptr + at);
        if (memcmp(file.ptr + at, "\0\0\0\0IEND\xae\x42\x60\x82", 12) == 0) {
            return 0;
        }
        if (len > file.len - 12 - at) {
            break;
        }
        at += 12 + (size_t)len;
    }
    return err_set(err, ERR_INTEGRITY, "PNG: truncated: no end chunk");
}

/* The header, checked against the earlier probe. */
static int open_file(spng_ctx *ctx, struct str file, const struct pixel_info *info,
                     struct spng_ihdr *ret_ihdr, struct err *err)
{
    if (check_end(file, err) < 0) {
        return -1;
    }
    int status = spng_set_image_limits(ctx, SHARD_SIDE_MAX, SHARD_SIDE_MAX);
    status = status ? status : spng_set_chunk_limits(ctx, CHUNK_BYTES, CHUNK_BYTES);
    status = status ? status : spng_set_png_buffer(ctx, file.ptr, file.len);
    status = status ? status : spng_get_ihdr(ctx, ret_ihdr);
    if (status) {
        return fail(status, err);
    }
    if (ret_ihdr->width != info->width || ret_ihdr->height != info->height) {
        return err_set(err, ERR_INTEGRITY, "PNG: %u x %u pixels, expected %u x %u", ret_ihdr->width,
                       ret_ihdr->height, info->width, info->height);
    }
    return 0;
}

static int decode(spng_ctx *ctx, uint8_t *dst, size_t expected, int format, struct err *err)
{
    size_t len = 0;
    int status = spng_decoded_image_size(ctx, format, &len);
    if (!status && len != expected) {
        return err_set(err, ERR_INTEGRITY, "PNG: %zu bytes of pixels, expected %zu", len, expected);
    }
    status = status ? status : spng_decode_image(ctx, dst, len, format, 0);
    /* What follows the pixels, up to the end chunk, is read too: a file truncated there is incomplete. */
    status = status ? status : spng_decode_chunks(ctx);
    return status ? fail(status, err) : 0;
}

int png_decode_rgb(struct str file, const struct pixel_info *info, uint8_t *dst, struct err *err)
{
    CLEANUP(spng_ctx) spng_ctx *ctx = spng_ctx_new(0);
    struct spng_ihdr ihdr;
    ASSERT(ctx != NULL);
    if (open_file(ctx, file, info, &ihdr, err) < 0) {
        return -1;
    }
    return decode(ctx, dst, (size_t)info->width * info->height * IMAGE_RGB, SPNG_FMT_RGB8, err);
}

int png_decode_labels(struct str file, const struct pixel_info *info, uint8_t *dst, struct err *err)
{
    CLEANUP(spng_ctx) spng_ctx *ctx = spng_ctx_new(0);
    struct spng_ihdr ihdr;
    ASSERT(ctx != NULL);
    if (open_file(ctx, file, info, &ihdr, err) < 0) {
        return -1;
    }
    if (ihdr.bit_depth != 8 || (ihdr.color_type != SPNG_COLOR_TYPE_GRAYSCALE &&
                                ihdr.color_type != SPNG_COLOR_TYPE_INDEXED)) {
        return err_set(err, ERR_INTEGRITY,
                       "a label map is a PNG of 8 bits, greyscale or palette; this has %d bits and "
                       "colour type %d",
                       ihdr.bit_depth, ihdr.color_type);
    }
    return decode(ctx, dst, (size_t)info->width * info->height, SPNG_FMT_PNG, err);
}

static int set_palette(spng_ctx *ctx, const struct png_picture *picture)
{
    struct spng_plte plte = {.n_entries = (uint32_t)picture->n_palette};
    for (size_t idx = 0; idx < picture->n_palette; idx++) {
        plte.entries[idx] = (struct spng_plte_entry){.red = picture->palette[idx][0],
                                                     .green = picture->palette[idx][1],
                                                     .blue = picture->palette[idx][2]};
    }
    return spng_set_plte(ctx, &plte);
}

int png_encode(const struct png_picture *picture, uint8_t **ret_bytes, size_t *ret_len,
               struct err *err)
{
    CLEANUP(spng_ctx) spng_ctx *ctx = spng_ctx_new(SPNG_CTX_ENCODER);
    size_t n_bytes = (size_t)picture->width * picture->height * (size_t)picture->n_channels *
                     (size_t)(picture->bits / 8);
    struct spng_ihdr ihdr = {.width = picture->width,
                             .height = picture->height,
                             .bit_depth = (uint8_t)picture->bits,
                             .color_type = SPNG_COLOR_TYPE_GRAYSCALE};
    int filter = picture->n_channels == 1 ? SPNG_FILTER_CHOICE_NONE : SPNG_FILTER_CHOICE_SUB;
    ASSERT(ctx != NULL);
    if (picture->n_channels != 1) {
        ihdr.color_type =
            picture->n_channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR : SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
    } else if (picture->palette) {
        ihdr.color_type = SPNG_COLOR_TYPE_INDEXED;
    }
    int status = spng_set_option(ctx, SPNG_ENCODE_TO_BUFFER, 1);
    status = status ? status : spng_set_option(ctx, SPNG_IMG_COMPRESSION_LEVEL, DEFLATE_LEVEL);
    status = status ? status : spng_set_option(ctx, SPNG_FILTER_CHOICE, filter);
    status = status ? status : spng_set_ihdr(ctx, &ihdr);
    status = status || !picture->palette ? status : set_palette(ctx, picture);
    status = status ? status
                    : spng_encode_image(ctx, picture->pixels, n_bytes, SPNG_FMT_PNG,
                                        SPNG_ENCODE_FINALIZE);
    if (!status) {
        *ret_bytes = spng_get_png_buffer(ctx, ret_len, &status);
    }
    return status ? err_set(err, ERR_INTERNAL, "PNG encoder: %s", spng_strerror(status)) : 0;
}

const char *png_library(void)
{
    return "libspng " TEXT(SPNG_VERSION_MAJOR) "." TEXT(SPNG_VERSION_MINOR) "." TEXT(
        SPNG_VERSION_PATCH);
}
