/* SPDX-License-Identifier: Apache-2.0 */
/* What batch norm's forward and backward kernels share. Their result must agree bit for bit where backward recomputes the ReLU's
   mask from x: only bn_value computes it. */
#pragma once

#include "backend_cuda/vec.cuh"

/* (C) each */
struct bn_affine {
    const float *mean, *rstd, *gamma, *beta;
};

/* The calling thread's channels: (x - mean) * scale + beta */
template <typename T> struct bn_lanes {
    float mean[LANES<T>], scale[LANES<T>], beta[LANES<T>];
};

template <typename T>
static __device__ inline void bn_load(const struct bn_affine &from, int channel, bn_lanes<T> *to)
{
    float rstd[LANES<T>];
    load_channels<T>(from.mean + channel, to->mean);
    load_channels<T>(from.rstd + channel, rstd);
    load_channels<T>(from.gamma + channel, to->scale);
    load_channels<T>(from.beta + channel, to->beta);
#pragma unroll
    for (int i = 0; i < LANES<T>; i++) {
        to->scale[i] = __fmul_rn(to->scale[i], rstd[i]);
    }
}

template <typename T>
static __device__ inline float bn_value(const bn_lanes<T> &at, int lane, float x)
{
    return __fmaf_rn(__fsub_rn(x, at.mean[lane]), at.scale[lane], at.beta[lane]);
}

/* One for each stream and tile of channels; 0 between calls (is_last_block). */
#define BN_TILES_MAX 1024

/* Floats of workspace: two a channel and block, and two a channel for the totals. */
static inline int64_t bn_scratch(const struct rows_plan *plan, int64_t stored)
{
    return 2 * stored * (plan->n_blocks + 1);
}
