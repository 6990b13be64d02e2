/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg-turbo's only home. Its errors are returned as ours (by default it exits), and warnings that pixels were invented (a
   truncated file, a bad code) are errors, too; extra bytes between markers are not. */
#pragma once

#include "prep/pixels.h"

bool jpeg_is(struct str bytes);
/* As image_probe. */
MUST_CHECK int jpeg_probe(struct str bytes, bool is_all, const char *name,
                          struct pixel_info *ret_info, struct err *err);

struct jpeg_decoder *jpeg_decoder_new(void);
void jpeg_decoder_free(struct jpeg_decoder *decoder);
CLEANUP_POINTER(jpeg_decoder, struct jpeg_decoder, jpeg_decoder_free);

/* In eighths of its size, rounded up, 8: as it is. dst has width x height x 3 bytes of that size; another size in the file is an
   error. Exact integer transform, smooth upsampling: the pixels that djpeg and Pillow give. */
MUST_CHECK int jpeg_decode(struct jpeg_decoder *decoder, struct str file,
                           const struct pixel_info *info, unsigned eighths, uint8_t *dst,
                           struct err *err);

struct jpeg_picture {
    const uint8_t *pixels; /* height x width x n_channels: 1 grey, 3 RGB, 4 CMYK */
    uint32_t width, height;
    int n_channels;
    int quality;
};
/* Into memory from malloc. */
MUST_CHECK int jpeg_encode(const struct jpeg_picture *picture, uint8_t **ret_bytes, size_t *ret_len,
                           struct err *err);

/* For the recipe: "libjpeg-turbo 2.1.5". */
const char *jpeg_library(void);
