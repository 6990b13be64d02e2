/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an RGB image smaller, in whole numbers only: the same bytes on every machine. A triangle as wide as the scale (what
   Pillow calls bilinear), columns first; weights are exact ratios rounded to 1/2^14 that add up to one. */
#pragma once

#include "base/base.h"

struct resample_size {
    uint32_t width, height;
};

/* from and to: rows of width x 3 bytes. to is nowhere larger than from. */
void resample_rgb(const uint8_t *from, struct resample_size from_size, uint8_t *to,
                  struct resample_size to_size);
