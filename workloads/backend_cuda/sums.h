/* SPDX-License-Identifier: Apache-2.0 */
/* Work that the libraries leave to us: adding a gradient that was computed elsewhere, and summing a bias's gradient. */
#pragma once

#include "backend_cuda/cuda.h"

/* to (count) += from (count), both of dtype. */
struct add_args {
    enum dtype dtype;
    int64_t count;
    const void *from;
    void *to;
    cudaStream_t stream;
};
void cuda_add_to(struct cuda *cuda, const struct add_args *args);

/* sums (columns) = or += the sum over rows of x (rows, columns), row-major, in float, in an order that depends on the
   shape alone. */
struct column_sum_args {
    enum dtype dtype; /* of x and of sums */
    int64_t rows, columns;
    const void *x;
    void *sums;
    bool is_added;
    float *partial; /* column_sum_bytes */
    cudaStream_t stream;
};
int64_t cuda_column_sum_bytes(int64_t rows, int64_t columns);
void cuda_column_sum(struct cuda *cuda, const struct column_sum_args *args);
