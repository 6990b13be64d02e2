/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of each kernel id, by family. */
#ifndef CUDA_CASES_H
#define CUDA_CASES_H

#include "tests/cuda/held.h"

#include <math.h>

/* make fills *call, which is zeroed but for args.id, for case idx of n. */
struct held_cases {
    void (*make)(struct held_call *call, int idx);
    int n;
};

/* make is NULL where the id is of another family. */
extern const struct held_cases cases_image[K_COUNT], cases_plane[K_COUNT], cases_rows[K_COUNT];

#endif
