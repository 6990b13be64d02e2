/* SPDX-License-Identifier: Apache-2.0 */
/* Intrinsics of device code that our kernels use. */
#pragma once

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
static inline float __fmaf_rn(float x, float y, float z)
{
    return fmaf(x, y, z);
}
/* Never contracted into a fused multiply-add. */
static inline float __fmul_rn(float x, float y)
{
    volatile float product = x * y;
    return product;
}
static inline float __fsub_rn(float x, float y)
{
    volatile float difference = x - y;
    return difference;
}

template <typename To, typename From> static inline To emu_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

static inline int min(int a, int b)
{
    return b < a ? b : a;
}
static inline int max(int a, int b)
{
    return a < b ? b : a;
}
