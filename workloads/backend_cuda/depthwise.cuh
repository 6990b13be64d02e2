/* SPDX-License-Identifier: Apache-2.0 */
/* What the depthwise convolutions' kernels share. A channel has a filter of its own and nothing is summed over
   channels: bound by memory, if what the taps share is read once.

   Filters are 3 x 3 and the stride is 1. A thread walks down a chain, every dil_h-th row of one column and four channels:
   each row of the input is read once for the three output rows that it contributes to, because the thread keeps three
   sums. The columns to the left and right come from the L2 cache, where the neighbouring threads' reads have put them.
   Four channels, not 16 bytes: the nine filter elements of eight would take 72 registers. */
#pragma once

#include "backend_cuda/vec.cuh"

#define DW_THREADS 128
#define QUAD       4

/* Outputs of a chain that one thread makes; it reads two rows more. Source of the number: 2 / 16 read twice is 12 %,
   and 128 rows still give 8 threads a column. */
#define CHAIN_MAX 16

template <typename T> struct alignas(QUAD * sizeof(T)) quad {
    T lane[QUAD];
};

template <typename T> static __device__ inline void load_quad(const T *from, float *to)
{
    const quad<T> packed = *(const quad<T> *)from;
#pragma unroll
    for (int i = 0; i < QUAD; i++) {
        to[i] = (float)packed.lane[i];
    }
}

template <typename T>
static __device__ inline void store_quad(T *to, const float *from, bool has_sum)
{
    quad<T> packed;
    float old[QUAD] = {0.0f};
    if (has_sum) {
        load_quad(to, old);
    }
#pragma unroll
    for (int i = 0; i < QUAD; i++) {
        packed.lane[i] = (T)(from[i] + old[i]);
    }
    *(quad<T> *)to = packed;
}

/* in (n, h, w) -> out (n, p, q), both with `quads` times four channels; out (p, q) sees in (p - pad + r * dil, ...). */
struct dw {
    int n, h, w, p, q;
    int pad_h, pad_w, dil_h, dil_w;
    int quads;
    int chain;    /* outputs a thread makes of a chain, up to CHAIN_MAX */
    int segments; /* of the longest chain */
    bool is_flipped, has_sum;
};

static inline struct dw dw_of(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct conv_geom *g = &args->geom.conv;
    struct dw d = {};
    d.n = (int)g->n;
    d.h = (int)g->h;
    d.w = (int)g->w;
    d.p = (int)g->p;
    d.q = (int)g->q;
    d.pad_h = (int)g->pad_h;
    d.pad_w = (int)g->pad_w;
    d.dil_h = (int)g->dil_h;
    d.dil_w = (int)g->dil_w;
    d.quads = (int)(cuda_channels(cuda, g->c) / QUAD);
    d.has_sum = (args->accumulate & 1U) != 0;
    return d;
}

static inline void dw_set_chains(struct dw *d)
{
    int longest = (d->p + d->dil_h - 1) / d->dil_h;
    d->segments = (longest + CHAIN_MAX - 1) / CHAIN_MAX;
    d->chain = (longest + d->segments - 1) / d->segments;
}

static inline int dw_heads(const struct dw *d)
{
    return d->dil_h < d->p ? d->dil_h : d->p;
}

/* A piece of a chain: output rows p, p + dil_h, ... `length` of them, may be 0. */
struct chain {
    int image, p, q, length;
};

/* Piece number i of n * heads * segments * q. */
static __device__ inline struct chain chain_at(const struct dw &d, int heads, unsigned i)
{
    unsigned q = i % (unsigned)d.q;
    unsigned head = i / (unsigned)d.q;
    unsigned segment = head / (unsigned)heads % (unsigned)d.segments;
    unsigned image = head / ((unsigned)heads * (unsigned)d.segments);
    int p = (int)(head % (unsigned)heads) + (int)segment * d.chain * d.dil_h;
    int left = p < d.p ? (d.p - p + d.dil_h - 1) / d.dil_h : 0;
    return {(int)image, p, (int)q, left < d.chain ? left : d.chain};
}

/* The three input pixels of row `h` for output column q; 0 outside the image. */
template <typename T>
static __device__ inline void load_taps(const T *in, const struct dw &d, const struct chain &at,
                                        int h, float (*taps)[QUAD])
{
#pragma unroll
    for (int s = 0; s < 3; s++) {
        int w = at.q - d.pad_w + s * d.dil_w;
#pragma unroll
        for (int i = 0; i < QUAD; i++) {
            taps[s][i] = 0.0f;
        }
        if (h >= 0 && h < d.h && w >= 0 && w < d.w) {
            load_quad(in + ((int64_t)(at.image * d.h + h) * d.w + w) * d.quads * QUAD, taps[s]);
        }
    }
}
