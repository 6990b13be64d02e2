/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/elements.h"

#include <stdlib.h>

#include "base/arena.h"

void *to_elements(const double *values, int64_t count, enum dtype dtype)
{
    void *elements = xcalloc((size_t)count, sizeof(double));
    for (int64_t i = 0; i < count; i++) {
        if (dtype == DT_F64) {
            ((double *)elements)[i] = values[i];
        } else if (dtype == DT_I32) {
            ((int32_t *)elements)[i] = (int32_t)values[i];
        } else if (dtype == DT_I64) {
            ((int64_t *)elements)[i] = (int64_t)values[i];
        } else {
            ((float *)elements)[i] = (float)values[i];
        }
    }
    return elements;
}

double *to_doubles(const void *elements, int64_t count, enum dtype dtype)
{
    double *values = xcalloc((size_t)count, sizeof(double));
    for (int64_t i = 0; i < count; i++) {
        if (dtype == DT_F64) {
            values[i] = ((const double *)elements)[i];
        } else if (dtype == DT_I32) {
            values[i] = (double)((const int32_t *)elements)[i];
        } else if (dtype == DT_I64) {
            values[i] = (double)((const int64_t *)elements)[i];
        } else {
            values[i] = (double)((const float *)elements)[i];
        }
    }
    return values;
}
