/* SPDX-License-Identifier: Apache-2.0 */
/* The decision of dropout_keeps (core/geom.h) on the device: the same for every element. */
#pragma once

#include "backend_cuda/launch.cuh"

#include <math.h>

/* Source of the mixing steps: Steele et al., "Fast splittable pseudorandom number generators" (2014), as splitmix64. */
static __host__ __device__ inline uint64_t hash_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

/* The part of the hash that does not depend on the element. */
static __device__ inline uint64_t dropout_base(uint64_t stream_hash, int64_t step)
{
    return hash_mix(stream_hash ^ (uint64_t)step);
}

static __device__ inline bool dropout_is_kept(uint64_t base, uint64_t threshold, int64_t run_idx)
{
    return (hash_mix(base ^ (uint64_t)run_idx) >> 11) >= threshold;
}

/* (hash >> 11) * 2^-53 >= rate, in whole numbers: scaling by a power of two is exact. */
static inline uint64_t dropout_threshold(double rate)
{
    return (uint64_t)ceil(rate * 9007199254740992.0);
}
