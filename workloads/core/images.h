/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of images as bytes in the host's memory, and what to crop out of each: a device turns it into a network's input by itself
   (struct backend_async, images_async). The whole numbers are those of data/augment.h, struct augment_plan, with the same meaning;
   this room may not include it. Values only: nothing here owns memory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct image_cut {
    const uint8_t *pixels; /* (height, width, 3) */
    const uint8_t *labels; /* (height, width), or NULL */
    int64_t height, width;
    int64_t src_y, src_x, src_h, src_w;
    int64_t res_h, res_w;
    int64_t off_y, off_x;
    bool is_flipped, is_antialiased;
};

struct image_batch {
    const struct image_cut *images; /* (n) */
    int64_t n, height, width;       /* of the result */
    double mean[3], std[3];
    int64_t ignored; /* label of what lies outside an image */
};

/* Destination of a batch: a tensor on the device and its staging, as for upload_async. */
struct image_place {
    void *staging, *device;
    int64_t bytes;
};
