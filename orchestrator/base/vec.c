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

void *vec_grow_in(struct arena *arena, const void *items, size_t *n_max, size_t elem_size)
{
    size_t n = *n_max;
    *n_max = n ? 2 * n : 8;
    void *grown = arena_alloc_array(arena, elem_size, *n_max, alignof(max_align_t));
    return n ? memcpy(grown, items, n * elem_size) : grown;
}
