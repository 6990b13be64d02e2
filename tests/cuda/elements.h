/* SPDX-License-Identifier: Apache-2.0 */
/* A test's numbers, which are doubles, as elements of a type and back: the host's type, which is float for DT_F16. */
#pragma once

#include "base/base.h"
#include "core/tensor.h"

/* Both allocate what they return; free() it. */
void *to_elements(const double *values, int64_t count, enum dtype dtype);
double *to_doubles(const void *elements, int64_t count, enum dtype dtype);
