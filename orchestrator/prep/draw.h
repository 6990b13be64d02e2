/* SPDX-License-Identifier: Apache-2.0 */
/* Synthetic pictures: structure and noise as in photographs, so that files have similar sizes, and something that a network can
   learn from the label. Whole numbers only: the same pixels on every machine. */
#pragma once

#include "base/base.h"

#define DRAW_CLASSES 19 /* a scene's: Cityscapes' train ids */
#define DRAW_VOID    255

/* A disc of its class's colour in front of a background; place, size and light depend on the seed. */
void draw_object(uint64_t seed, uint32_t label, uint32_t width, uint32_t height, uint8_t *rgb);

/* A street under a sky with things of any class in it; void at the lower edge. */
void draw_street_labels(uint64_t seed, uint32_t width, uint32_t height, uint8_t *labels);
/* The picture of such a map. */
void draw_street(uint64_t seed, uint32_t width, uint32_t height, const uint8_t *labels,
                 uint8_t *rgb);
