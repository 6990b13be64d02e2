/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/pixels.h"

#include "prep/jpeg.h"
#include "prep/png.h"
#include "prep/shrink.h"

#define EIGHTHS 8

void image_decoder_release(struct image_decoder *decoder)
{
    jpeg_decoder_free(decoder->jpeg);
    free(decoder->scratch);
    *decoder = IMAGE_DECODER_EMPTY;
}

int image_probe(struct str bytes, bool is_all, const char *name, struct pixel_info *ret_info,
                struct err *err)
{
    if (jpeg_is(bytes)) {
        return jpeg_probe(bytes, is_all, name, ret_info, err);
    }
    if (png_is(bytes)) {
        return png_probe(bytes, is_all, name, ret_info, err);
    }
    return err_set(err, ERR_INTEGRITY, "%s: neither JPEG nor PNG", name);
}

void image_packed_size(const struct pixel_info *info, int64_t short_side, uint32_t *ret_width,
                       uint32_t *ret_height)
{
    uint64_t width = info->width, height = info->height;
    uint64_t shorter = width < height ? width : height;
    if (short_side > 0 && shorter > (uint64_t)short_side) {
        uint64_t side = (uint64_t)short_side;
        width = (2 * width * side + shorter) / (2 * shorter); /* rounded */
        height = (2 * height * side + shorter) / (2 * shorter);
    }
    *ret_width = (uint32_t)width;
    *ret_height = (uint32_t)height;
}

/* The least eighths at which the decoder's own size is still not below what is wanted: of those that the library does with
   vector instructions (a half, a quarter, an eighth; others take longer than the whole). */
static unsigned eighths_for(const struct pixel_info *info, uint32_t width, uint32_t height)
{
    for (unsigned eighths = 1; eighths < EIGHTHS; eighths *= 2) {
        if ((info->width * eighths + EIGHTHS - 1) / EIGHTHS >= width &&
            (info->height * eighths + EIGHTHS - 1) / EIGHTHS >= height) {
            return eighths;
        }
    }
    return EIGHTHS;
}

static int decode(struct image_decoder *decoder, struct str file, const struct pixel_info *info,
                  unsigned eighths, uint8_t *dst, struct err *err)
{
    if (info->format == IMAGE_PNG) {
        return png_decode_rgb(file, info, dst, err);
    }
    if (!decoder->jpeg) {
        decoder->jpeg = jpeg_decoder_new();
    }
    return jpeg_decode(decoder->jpeg, file, info, eighths, dst, err);
}

int image_decode_rgb(struct image_decoder *decoder, struct str file, const struct pixel_info *info,
                     int64_t short_side, uint8_t *dst, struct err *err)
{
    struct resample_size from = {info->width, info->height};
    struct resample_size to;
    unsigned eighths = EIGHTHS;
    image_packed_size(info, short_side, &to.width, &to.height);
    if (to.width == info->width && to.height == info->height) {
        return decode(decoder, file, info, EIGHTHS, dst, err);
    }
    if (info->format == IMAGE_JPEG) {
        eighths = eighths_for(info, to.width, to.height);
        from.width = (info->width * eighths + EIGHTHS - 1) / EIGHTHS;
        from.height = (info->height * eighths + EIGHTHS - 1) / EIGHTHS;
        if (from.width == to.width && from.height == to.height) {
            return decode(decoder, file, info, eighths, dst, err);
        }
    }
    size_t n_bytes = (size_t)from.width * from.height * IMAGE_RGB;
    if (decoder->scratch_bytes < n_bytes) {
        free(decoder->scratch);
        decoder->scratch = xmalloc(n_bytes);
        decoder->scratch_bytes = n_bytes;
    }
    if (decode(decoder, file, info, eighths, decoder->scratch, err) < 0) {
        return -1;
    }
    resample_rgb(decoder->scratch, from, dst, to);
    return 0;
}

int image_decode_labels(struct str file, const struct pixel_info *info, uint8_t *dst,
                        struct err *err)
{
    if (info->format != IMAGE_PNG) {
        return err_set(err, ERR_INTEGRITY, "a label map is a PNG, this is a JPEG");
    }
    return png_decode_labels(file, info, dst, err);
}
