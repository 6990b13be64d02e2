/* SPDX-License-Identifier: Apache-2.0 */
/* Images as they are packed: 8-bit RGB, or one byte a pixel for label maps. By content, not by the file's name: greyscale
   becomes three equal channels; a palette its colours; 16 bits keep the upper 8; alpha and tRNS are left out (not blended);
   CMYK and YCCK, which JPEG files have inverted as Adobe writes them, become R = C*K/255 and so on; gamma, colour profiles
   and the EXIF orientation are not applied, as the usual training pipelines do not. What was converted is counted in
   pack.json. */
#pragma once

#include "base/str.h"
#include "data/shard.h"

#define IMAGE_FILE_BYTES_MAX (256u << 20)
#define IMAGE_RGB            3

enum image_format { IMAGE_JPEG, IMAGE_PNG };

enum image_trait {
    TRAIT_GREY = 1,
    TRAIT_PALETTE = 2,
    TRAIT_DEEP = 4, /* 16 bits */
    TRAIT_ALPHA = 8,
    TRAIT_CMYK = 16,
    TRAIT_ROTATED = 32, /* EXIF orientation other than 1 */
};
#define IMAGE_TRAITS 6

struct pixel_info {
    enum image_format format;
    uint32_t width, height;
    unsigned traits;
};

/* From the first bytes of the file, of which `is_all` says whether they are the whole: ERR_PARSE where more are needed, and
   ERR_INTEGRITY for an image that cannot be packed. name is for messages. */
MUST_CHECK int image_probe(struct str bytes, bool is_all, const char *name,
                           struct pixel_info *ret_info, struct err *err);

struct jpeg_decoder;
/* It is used again for many images, by one thread at a time. */
struct image_decoder {
    struct jpeg_decoder *jpeg;
    uint8_t *scratch; /* owned: the image before it is made smaller */
    size_t scratch_bytes;
};
#define IMAGE_DECODER_EMPTY ((struct image_decoder){0})
void image_decoder_release(struct image_decoder *decoder);
CLEANUP_BY(image_decoder, struct image_decoder, image_decoder_release);

/* The packed size of an image whose shorter side may be at most short_side (-1: any). */
void image_packed_size(const struct pixel_info *info, int64_t short_side, uint32_t *ret_width,
                       uint32_t *ret_height);

/* width x height x 3 bytes into dst, at the size that image_packed_size gives. */
MUST_CHECK int image_decode_rgb(struct image_decoder *decoder, struct str file,
                                const struct pixel_info *info, int64_t short_side, uint8_t *dst,
                                struct err *err);
/* A label map: a PNG with 8 bits a pixel, greyscale or palette; the stored numbers, width x height. */
MUST_CHECK int image_decode_labels(struct str file, const struct pixel_info *info, uint8_t *dst,
                                   struct err *err);
