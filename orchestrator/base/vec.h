/* SPDX-License-Identifier: Apache-2.0 */
/* A growing array of any type: struct { T *items; size_t n; size_t n_max; }. VEC(T) declares it, VEC_PUSH appends.
   Memory comes from the heap (VEC_RELEASE frees it); not thread-safe. */
#pragma once

#include "base/arena.h"

#define VEC(T)                                                                                     \
    struct {                                                                                       \
        T *items;                                                                                  \
        size_t n;                                                                                  \
        size_t n_max;                                                                              \
    }

#define VEC_PUSH(vec, ...)                                                                         \
    do {                                                                                           \
        if ((vec)->n == (vec)->n_max) {                                                            \
            (vec)->items = vec_grow((vec)->items, &(vec)->n_max, sizeof((vec)->items[0]));         \
        }                                                                                          \
        (vec)->items[(vec)->n++] = (__VA_ARGS__);                                                  \
    } while (0)

#define VEC_RELEASE(vec)                                                                           \
    do {                                                                                           \
        free((vec)->items);                                                                        \
        (vec)->items = NULL;                                                                       \
        (vec)->n = 0;                                                                              \
        (vec)->n_max = 0;                                                                          \
    } while (0)

/* Also of none, of which qsort would have an address. */
#define VEC_SORT(vec, cmp)                                                                         \
    do {                                                                                           \
        if ((vec)->n) {                                                                            \
            qsort((vec)->items, (vec)->n, sizeof((vec)->items[0]), (cmp));                         \
        }                                                                                          \
    } while (0)

/* Room for one more, in an arena; what the items outgrew stays there. */
#define VEC_RESERVE_IN(arena, vec)                                                                 \
    do {                                                                                           \
        if ((vec)->n == (vec)->n_max) {                                                            \
            (vec)->items =                                                                         \
                vec_grow_in((arena), (vec)->items, &(vec)->n_max, sizeof((vec)->items[0]));        \
        }                                                                                          \
    } while (0)

/* Doubles the room; ends the process when out of memory. */
void *vec_grow(void *items, size_t *n_max, size_t elem_size);
void *vec_grow_in(struct arena *arena, const void *items, size_t *n_max, size_t elem_size);
