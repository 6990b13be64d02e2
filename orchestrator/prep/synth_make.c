/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of each file of a synthetic dataset. */
#include "base/base.h"

#include "base/strbuf.h"
#include "prep/draw.h"
#include "prep/hdf5.h"
#include "prep/jpeg.h"
#include "prep/png.h"
#include "prep/synth.h"
#include "prep/tfrecord.h"

#define QUALITY 95 /* 0.6 bytes a pixel, as the photographs of ImageNet have */
#define GREY_BYTE(p)                                                                               \
    (((p)[0] * 77 + (p)[1] * 150 + (p)[2] * 29) >> 8) /* luma of BT.601, in 1/256 */

/* In place: from three bytes a pixel to one. */
static void to_grey(uint8_t *pixels, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        pixels[idx] = (uint8_t)GREY_BYTE(pixels + idx * 3);
    }
}

/* Inverted, without black: (R, G, B, 255). Needs four bytes a pixel. */
static void to_cmyk(uint8_t *pixels, size_t n)
{
    for (size_t idx = n; idx-- > 0;) {
        memmove(pixels + idx * 4, pixels + idx * 3, 3);
        pixels[idx * 4 + 3] = UINT8_MAX;
    }
}

static int make_object(const struct synth_member *member, uint8_t **ret_bytes, size_t *ret_len,
                       struct err *err)
{
    size_t n = (size_t)member->width * member->height;
    CLEANUP(free) uint8_t *pixels = xmalloc(n * 4);
    struct jpeg_picture picture = {pixels, member->width, member->height, 3, QUALITY};
    draw_object(member->seed, member->label, member->width, member->height, pixels);
    if (member->format == FILE_PNG) {
        struct png_picture png = {.pixels = pixels,
                                  .width = member->width,
                                  .height = member->height,
                                  .n_channels = 3,
                                  .bits = 8};
        return png_encode(&png, ret_bytes, ret_len, err);
    }
    if (member->traits & TRAIT_GREY) {
        to_grey(pixels, n);
        picture.n_channels = 1;
    } else if (member->traits & TRAIT_CMYK) {
        to_cmyk(pixels, n);
        picture.n_channels = 4;
    }
    return jpeg_encode(&picture, ret_bytes, ret_len, err);
}

static int make_street(const struct synth_member *member, uint8_t **ret_bytes, size_t *ret_len,
                       struct err *err)
{
    size_t n = (size_t)member->width * member->height;
    CLEANUP(free) uint8_t *labels = xmalloc(n);
    CLEANUP(free) uint8_t *pixels = NULL;
    struct png_picture picture = {.pixels = labels,
                                  .width = member->width,
                                  .height = member->height,
                                  .n_channels = 1,
                                  .bits = 8};
    draw_street_labels(member->seed, member->width, member->height, labels);
    if (member->kind == SYNTH_STREET) {
        pixels = xmalloc(n * 3);
        draw_street(member->seed, member->width, member->height, labels, pixels);
        picture.pixels = pixels;
        picture.n_channels = 3;
    }
    if (member->format == FILE_JPEG) {
        struct jpeg_picture jpeg = {picture.pixels, picture.width, picture.height,
                                    picture.n_channels, QUALITY};
        ASSERT(member->kind == SYNTH_STREET);
        return jpeg_encode(&jpeg, ret_bytes, ret_len, err);
    }
    return png_encode(&picture, ret_bytes, ret_len, err);
}

static int make_records(const struct synth_member *member, const struct dataset_pack *pack,
                        uint8_t **ret_bytes, size_t *ret_len, struct err *err)
{
    struct tokens_shape shape = {(uint32_t)pack->sequence, (uint32_t)pack->predictions};
    size_t row_len = tokens_len(&shape);
    CLEANUP(free)
    int32_t *rows = xcalloc(member->n_rows ? member->n_rows : 1, row_len * sizeof(*rows));
    CLEANUP(strbuf) struct strbuf text = {0};
    for (uint32_t idx = 0; idx < member->n_rows; idx++) {
        tokens_draw(member->seed + idx, &shape, rows + idx * row_len);
    }
    if (member->format == FILE_HDF5) {
        return hdf5_make(rows, member->n_rows, &shape, ret_bytes, ret_len, err);
    }
    strbuf_init(&text, (size_t)1 << 32);
    for (uint32_t idx = 0; idx < member->n_rows; idx++) {
        tfrecord_append(&text, &shape, rows + idx * row_len);
    }
    *ret_len = text.len;
    *ret_bytes = xmalloc(text.len ? text.len : 1);
    memcpy(*ret_bytes, text.ptr, text.len);
    return 0;
}

int synth_make(const struct synth_member *member, const struct dataset_pack *pack,
               uint8_t **ret_bytes, size_t *ret_len, struct err *err)
{
    switch (member->kind) {
    case SYNTH_OBJECT:
        return make_object(member, ret_bytes, ret_len, err);
    case SYNTH_STREET:
    case SYNTH_STREET_LABELS:
        return make_street(member, ret_bytes, ret_len, err);
    case SYNTH_RECORDS:
        return make_records(member, pack, ret_bytes, ret_len, err);
    case SYNTH_TEXT:
        break;
    }
    *ret_len = member->text.len;
    *ret_bytes = xmalloc(member->text.len + 1);
    memcpy(*ret_bytes, member->text.ptr, member->text.len);
    return 0;
}
