/* SPDX-License-Identifier: Apache-2.0 */
#include "base/vec.h"

void *vec_grow(void *items, size_t *n_max, size_t elem_size)
{
    size_t grown = *n_max ? *n_max * 2 : 8;
    size_t bytes;
    ASSERT(grown > *n_max);
    ASSERT(!__builtin_mul_overflow(grown, elem_size, &bytes));
    *n_max = grown;
    return xrealloc(items, bytes);
}
