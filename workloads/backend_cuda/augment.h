/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of images cropped, scaled, mirrored and normalised on the device, from bytes to the network's input: what data/resample.h
   does on the CPU, from the same whole numbers (struct augment_plan of data/augment.h, which this room may not include). images.c
   brings the bytes here. */
#pragma once

#include "backend_cuda/cuda.h"

/* One image, in the device's memory. The names of the second half are those of struct augment_plan. */
struct augment_image {
    const uint8_t *pixels; /* (height, width, 3), on the device */
    const uint8_t *labels; /* (height, width), on the device, or NULL */
    int32_t height, width;
    int32_t src_y, src_x, src_h, src_w;
    int32_t res_h, res_w;
    int32_t off_y, off_x;
    int32_t is_flipped, is_antialiased;
};

struct augment_batch {
    const struct augment_image *images; /* (n), on the device */
    int n, height, width;               /* of the result */
    int n_taps;                         /* no axis of any image needs more: augment_taps */
    double mean[3], std[3];
    int64_t ignored; /* label of what lies outside the image */
    cudaStream_t stream;
};

/* The most source pixels that a pixel of the result is made from, along either axis. */
int augment_taps(const struct augment_image *image);

/* Bytes of workspace: weights for each row and column of each image. */
int64_t cuda_augment_workspace(const struct augment_batch *batch);

/* out (n, 3, height, width) as an image of the backend's type; labels (n, height, width) int64, or NULL. */
void cuda_augment(struct cuda *cuda, const struct augment_batch *batch, void *workspace, void *out,
                  int64_t *labels);
