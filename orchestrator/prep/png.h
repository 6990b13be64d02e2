/* SPDX-License-Identifier: Apache-2.0 */
/* libspng's only home. Checksums of chunks and of the stream are checked against the bytes; sizes are limited before memory
   is taken. */
#pragma once

#include "prep/pixels.h"

bool png_is(struct str bytes);
/* As image_probe; does not use the library. */
MUST_CHECK int png_probe(struct str bytes, bool is_all, const char *name,
                         struct pixel_info *ret_info, struct err *err);
MUST_CHECK int png_decode_rgb(struct str file, const struct pixel_info *info, uint8_t *dst,
                              struct err *err);
MUST_CHECK int png_decode_labels(struct str file, const struct pixel_info *info, uint8_t *dst,
                                 struct err *err);

struct png_picture {
    const uint8_t *pixels; /* rows without padding; 16-bit samples in this machine's order */
    uint32_t width, height;
    int n_channels;              /* 1 grey, 3 RGB, 4 RGBA */
    int bits;                    /* 8 or 16 */
    const uint8_t (*palette)[3]; /* one channel, 8 bits: colours of the numbers; else NULL */
    size_t n_palette;
};
/* Into memory from malloc. */
MUST_CHECK int png_encode(const struct png_picture *picture, uint8_t **ret_bytes, size_t *ret_len,
                          struct err *err);

/* For the recipe: "libspng 0.7.3". */
const char *png_library(void);
