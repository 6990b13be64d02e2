/* SPDX-License-Identifier: Apache-2.0 */
/* What is done to an image before the network sees it, in two halves: the plan, a few whole numbers drawn from (seed, epoch,
   sample) and so the same on any rank, thread or device, and its execution (data/resample.h on the CPU). Pure. */
#pragma once

#include "base/base.h"

enum augment_kind {
    /* Training of classifiers: a rectangle of random area and ratio, resized to the output; mirrored or not.
       Source: torchvision 0.14, transforms/transforms.py, RandomResizedCrop.get_params: ten tries, then the largest
       centred rectangle within the ratios. */
    AUGMENT_RESIZED_CROP,
    /* Training of segmentation: the image scaled by a random factor, padded below and right to the output's size, cropped at
       random; mirrored or not. Source: PaddleSeg v2.3, paddleseg/transforms/transforms.py, ResizeStepScaling and
       RandomPaddingCrop. */
    AUGMENT_SCALE_CROP,
    /* Evaluation: the short side resized to short_ratio times the output's longer side (0: not resized), then the centre.
       Source: torchvision 0.14, transforms/functional.py, resize and center_crop; 256 / 224. */
    AUGMENT_CENTRE_CROP,
};

struct augment_recipe {
    enum augment_kind kind;
    double area_min, area_max;               /* of the image's area */
    double ratio_min, ratio_max;             /* width / height */
    double scale_min, scale_max, scale_step; /* step 0: any factor in between */
    double flip_probability;
    double short_ratio;
    /* Shrinking averages over all source pixels that a pixel covers (Pillow, torchvision); else two pixels each way
       (OpenCV). */
    bool is_antialiased;
    double mean[3], std[3]; /* of red, green, blue in [0, 1]; padding is the mean */
};

/* The recipes of the reports' own configurations; photometric distortion, which some of them add, is not among them. */
/* 0.08 to 1, 3/4 to 4/3, mirrored 1 in 2; ImageNet's mean and deviation. */
extern const struct augment_recipe augment_classes;
/* 0.5 to 2 by 0.25, mirrored 1 in 2; mean and deviation 0.5 (PaddleSeg). */
extern const struct augment_recipe augment_segments;
/* The same, but any factor from 0.5 to 2, and ImageNet's mean and deviation (mmsegmentation). */
extern const struct augment_recipe augment_segments_mmseg;

/* "resized-crop", "scale-crop" or "centre-crop". */
const char *augment_name(enum augment_kind kind);

/* Output pixel (y, x), x mirrored if is_flipped, is pixel (y + off_y, x + off_x) of the source rectangle resized to res_h x
   res_w, or padding where that lies outside. */
struct augment_plan {
    int64_t src_y, src_x, src_h, src_w; /* within the image */
    int64_t res_h, res_w;
    int64_t off_y, off_x; /* may be negative */
    bool is_flipped;
    bool is_antialiased;
};

struct augment_size {
    int64_t height, width;
};

/* key: order_hash of seed, epoch and sample. */
struct augment_plan augment_plan(const struct augment_recipe *recipe, struct augment_size image,
                                 struct augment_size out, uint64_t key);
