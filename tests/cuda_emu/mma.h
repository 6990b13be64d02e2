/* SPDX-License-Identifier: Apache-2.0 */
/* nvcuda::wmma, shape 16x16x16, half operands. Which lane holds which element deliberately differs from every GPU, so that
   code that relies on it fails. Products are summed in float from k = 0 to 15; a device's order and width are its own. */
#pragma once

#include "cuda_fp16.h"

namespace nvcuda
{
namespace wmma
{

struct row_major {
};
struct col_major {
};
struct matrix_a {
};
struct matrix_b {
};
struct accumulator {
};
template <typename Layout> struct emu_layout {
    static constexpr bool is_row = true;
};
template <> struct emu_layout<col_major> {
    static constexpr bool is_row = false;
};
enum layout_t { mem_row_major, mem_col_major };

/* Element e of 256 (row * 16 + column) is x[slot(e)] of lane(e). */
static inline int emu_lane_of(int e)
{
    return (e * 5 + e / 32) & 31;
}

template <typename Use, int m, int n, int k, typename T, typename Layout = void> struct fragment {
    static_assert(m == 16 && n == 16 && k == 16, "only 16x16x16 is emulated");
    static constexpr int num_elements = 8;
    T x[num_elements];
};

/* Walks over the elements of one lane. */
template <typename Fn> static inline void emu_each(unsigned lane, Fn fn)
{
    int slot = 0;
    for (int e = 0; e < 256; e++) {
        if ((unsigned)emu_lane_of(e) == lane) {
            fn(slot++, e / 16, e % 16);
        }
    }
}

template <typename T> static inline void emu_check(const T *ptr, unsigned ld)
{
    if ((size_t)ptr % 32 != 0) {
        emu_trap("wmma: memory is not aligned to 32 bytes");
    }
    if (ld * sizeof(T) % 32 != 0) {
        emu_trap("wmma: the leading dimension is no multiple of 32 bytes");
    }
}

template <typename Use, typename T, typename Layout>
static inline void load_matrix_sync(fragment<Use, 16, 16, 16, T, Layout> &a, const T *ptr,
                                    unsigned ld)
{
    emu_check(ptr, ld);
    __syncwarp();
    const bool is_row = emu_layout<Layout>::is_row;
    emu_each(emu_lane(), [&](int slot, int row, int column) {
        a.x[slot] = is_row ? ptr[(size_t)row * ld + (size_t)column]
                           : ptr[(size_t)column * ld + (size_t)row];
    });
    __syncwarp();
}
template <typename T>
static inline void store_matrix_sync(T *ptr, const fragment<accumulator, 16, 16, 16, T> &a,
                                     unsigned ld, layout_t layout)
{
    emu_check(ptr, ld);
    __syncwarp();
    emu_each(emu_lane(), [&](int slot, int row, int column) {
        (layout == mem_row_major ? ptr[(size_t)row * ld + (size_t)column]
                                 : ptr[(size_t)column * ld + (size_t)row]) = a.x[slot];
    });
    __syncwarp();
}
template <typename Use, typename T, typename Layout, typename Value>
static inline void fill_fragment(fragment<Use, 16, 16, 16, T, Layout> &a, Value value)
{
    for (int i = 0; i < a.num_elements; i++) {
        a.x[i] = (T)value;
    }
}

template <typename A, typename B, typename C, typename D> struct emu_mma {
    D *d;
    const A *a;
    const B *b;
    const C *c;

    static void all(void *const lanes[32])
    {
        float a[16][16], b[16][16];
        for (unsigned lane = 0; lane < 32; lane++) {
            const emu_mma *mine = (const emu_mma *)lanes[lane];
            emu_each(lane, [&](int slot, int row, int column) {
                a[row][column] = (float)mine->a->x[slot];
                b[row][column] = (float)mine->b->x[slot];
            });
        }
        for (unsigned lane = 0; lane < 32; lane++) {
            const emu_mma *mine = (const emu_mma *)lanes[lane];
            emu_each(lane, [&](int slot, int row, int column) {
                float sum = (float)mine->c->x[slot];
                for (int i = 0; i < 16; i++) {
                    sum += a[row][i] * b[i][column];
                }
                mine->d->x[slot] = sum;
            });
        }
    }
};
template <typename A, typename B, typename C, typename D>
static inline void mma_sync(D &d, const A &a, const B &b, const C &c)
{
    emu_mma<A, B, C, D> mine = {&d, &a, &b, &c};
    emu_warp(0xffffffffu, "mma_sync", emu_mma<A, B, C, D>::all, &mine);
}

} // namespace wmma
} // namespace nvcuda
