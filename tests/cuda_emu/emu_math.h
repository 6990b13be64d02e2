/* SPDX-License-Identifier: Apache-2.0 */
/* Intrinsics of device code. The fast ones (__expf ...) are the exact functions here: their error on a device is not emulated. */
#ifndef CUDA_EMU_MATH_H
#define CUDA_EMU_MATH_H

template <typename T> static inline T __ldg(const T *ptr)
{
    return *ptr;
}
template <typename T> static inline T __ldcs(const T *ptr)
{
    return *ptr;
}
template <typename T> static inline T __ldcg(const T *ptr)
{
    return *ptr;
}
template <typename T> static inline void __stcs(T *ptr, T value)
{
    *ptr = value;
}
template <typename T> static inline void __stcg(T *ptr, T value)
{
    *ptr = value;
}

static inline float rsqrtf(float x)
{
    return 1.0f / sqrtf(x);
}
static inline double rsqrt(double x)
{
    return 1.0 / sqrt(x);
}
/* The C library has functions of its own by these names. */
#define __expf(x)    expf(x)
#define __logf(x)    logf(x)
#define __log2f(x)   log2f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x)    sinf(x)
#define __cosf(x)    cosf(x)
static inline float __fdividef(float x, float y)
{
    return x / y;
}
static inline float __frcp_rn(float x)
{
    return 1.0f / x;
}
static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
static inline float __frsqrt_rn(float x)
{
    return (float)(1.0 / sqrt((double)x));
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
static inline float __fadd_rn(float x, float y)
{
    volatile float sum = x + y;
    return sum;
}
static inline float __fsub_rn(float x, float y)
{
    volatile float difference = x - y;
    return difference;
}
static inline float __fdiv_rn(float x, float y)
{
    return x / y;
}
static inline float __saturatef(float x)
{
    return x >= 0.0f ? (x <= 1.0f ? x : 1.0f) : 0.0f;
}

template <typename To, typename From> static inline To emu_bits(From from)
{
    static_assert(sizeof(To) == sizeof(From), "same size");
    To to;
    memcpy(&to, &from, sizeof(to));
    return to;
}
static inline int __float_as_int(float x)
{
    return emu_bits<int>(x);
}
static inline unsigned __float_as_uint(float x)
{
    return emu_bits<unsigned>(x);
}
static inline float __int_as_float(int x)
{
    return emu_bits<float>(x);
}
static inline float __uint_as_float(unsigned x)
{
    return emu_bits<float>(x);
}
static inline int __float2int_rn(float x)
{
    return (int)nearbyintf(x);
}
static inline int __float2int_rd(float x)
{
    return (int)floorf(x);
}
static inline float __int2float_rn(int x)
{
    return (float)x;
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __popcll(unsigned long long x)
{
    return __builtin_popcountll(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
static inline unsigned __umulhi(unsigned x, unsigned y)
{
    return (unsigned)(((unsigned long long)x * y) >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}

/* Mixed arguments as CUDA's own overloads have them. */
#define EMU_MIN_MAX(type)                                                                          \
    static inline type min(type a, type b)                                                         \
    {                                                                                              \
        return b < a ? b : a;                                                                      \
    }                                                                                              \
    static inline type max(type a, type b)                                                         \
    {                                                                                              \
        return a < b ? b : a;                                                                      \
    }
EMU_MIN_MAX(int)
EMU_MIN_MAX(unsigned)
EMU_MIN_MAX(long)
EMU_MIN_MAX(unsigned long)
EMU_MIN_MAX(long long)
EMU_MIN_MAX(unsigned long long)
static inline float min(float a, float b)
{
    return fminf(a, b);
}
static inline float max(float a, float b)
{
    return fmaxf(a, b);
}
static inline double min(double a, double b)
{
    return fmin(a, b);
}
static inline double max(double a, double b)
{
    return fmax(a, b);
}

#endif
