/* SPDX-License-Identifier: Apache-2.0 */
/* Executes an augment_plan on the CPU: bilinear for pixels, nearest for label maps. One scratch a thread; it grows to what
   the largest image needs and is reused. Results do not depend on its previous contents. */
#pragma once

#include "data/augment.h"

struct resample_axis {
    int64_t first, last; /* output positions [first, last) that are not padding */
    int64_t n_taps;      /* source pixels that each is made from */
    int64_t *start;      /* (last - first): the first of them; owned */
    float *weight;       /* (last - first, n_taps), sums to 1; owned */
    size_t room_start, room_weight;
};

struct resample {
    struct resample_axis x, y;
    float *rows;     /* (n_taps of y, 3, columns): resized in x; owned */
    float *wide;     /* (source columns, 3) and one more: a row of the image; owned */
    int64_t *column; /* of label maps; owned */
    size_t room_rows, room_wide, room_column;
};

void resample_release(struct resample *scratch);
static inline void resample_cleanup(struct resample *scratch)
{
    resample_release(scratch);
}

struct resample_job {
    const struct augment_plan *plan;
    struct augment_size image, out;
    double mean[3], std[3];
};

/* pixels (H, W, 3) uint8 -> out (3, out.height, out.width) float = (value / 255 - mean) / std; padding 0. */
void resample_pixels(struct resample *scratch, const struct resample_job *job,
                     const uint8_t *pixels, float *out);

/* labels (H, W) uint8 -> out (out.height, out.width) int64; padding is `ignored`. Output position p takes source position
   floor(p * source / resized): OpenCV's INTER_NEAREST, which the reports' frameworks use. */
void resample_labels(struct resample *scratch, const struct resample_job *job,
                     const uint8_t *labels, int64_t ignored, int64_t *out);
