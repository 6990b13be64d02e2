/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of halves. A sum, product or quotient of two halves in float, rounded again to half, is the correctly rounded one
   (24 >= 2 * 11 + 2); the fused multiply-add goes by double. Included by cuda_fp16.h alone. */
#ifndef CUDA_EMU_HALF_OPS_H
#define CUDA_EMU_HALF_OPS_H

#define EMU_HALF_OP(name, name2, operation)                                                        \
    static inline __half name(__half a, __half b)                                                  \
    {                                                                                              \
        return __half((float)a operation(float) b);                                                \
    }                                                                                              \
    static inline __half2 name2(__half2 a, __half2 b)                                              \
    {                                                                                              \
        return __half2(name(a.x, b.x), name(a.y, b.y));                                            \
    }                                                                                              \
    static inline __half operator operation(__half a, __half b)                                    \
    {                                                                                              \
        return name(a, b);                                                                         \
    }                                                                                              \
    static inline __half2 operator operation(__half2 a, __half2 b)                                 \
    {                                                                                              \
        return name2(a, b);                                                                        \
    }                                                                                              \
    static inline __half &operator operation##=(__half &a, __half b)                               \
    {                                                                                              \
        return a = name(a, b);                                                                     \
    }                                                                                              \
    static inline __half2 &operator operation##=(__half2 &a, __half2 b)                            \
    {                                                                                              \
        return a = name2(a, b);                                                                    \
    }
EMU_HALF_OP(__hadd, __hadd2, +)
EMU_HALF_OP(__hsub, __hsub2, -)
EMU_HALF_OP(__hmul, __hmul2, *)
EMU_HALF_OP(__hdiv, __h2div, /)

#define EMU_HALF_COMPARE(name, operation)                                                          \
    static inline bool name(__half a, __half b)                                                    \
    {                                                                                              \
        return (float)a operation(float) b;                                                        \
    }                                                                                              \
    static inline bool operator operation(__half a, __half b)                                      \
    {                                                                                              \
        return name(a, b);                                                                         \
    }
EMU_HALF_COMPARE(__heq, ==)
EMU_HALF_COMPARE(__hne, !=)
EMU_HALF_COMPARE(__hlt, <)
EMU_HALF_COMPARE(__hle, <=)
EMU_HALF_COMPARE(__hgt, >)
EMU_HALF_COMPARE(__hge, >=)

static inline __half operator-(__half a)
{
    return __ushort_as_half((unsigned short)(a.bits ^ 0x8000));
}
static inline __half __hneg(__half a)
{
    return -a;
}
static inline __half __habs(__half a)
{
    return __ushort_as_half((unsigned short)(a.bits & 0x7fff));
}
static inline __half2 __hneg2(__half2 a)
{
    return __half2(-a.x, -a.y);
}
static inline __half2 __habs2(__half2 a)
{
    return __half2(__habs(a.x), __habs(a.y));
}
/* The other one where one is NaN. */
static inline __half __hmax(__half a, __half b)
{
    return __half(fmaxf((float)a, (float)b));
}
static inline __half __hmin(__half a, __half b)
{
    return __half(fminf((float)a, (float)b));
}
static inline __half2 __hmax2(__half2 a, __half2 b)
{
    return __half2(__hmax(a.x, b.x), __hmax(a.y, b.y));
}
static inline __half2 __hmin2(__half2 a, __half2 b)
{
    return __half2(__hmin(a.x, b.x), __hmin(a.y, b.y));
}
static inline __half __hfma(__half a, __half b, __half c)
{
    return __half((double)(float)a * (double)(float)b + (double)(float)c);
}
static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
    return __half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
static inline __half hexp(__half x)
{
    return __half(expf((float)x));
}
static inline __half hsqrt(__half x)
{
    return __half(sqrtf((float)x));
}
static inline __half hrsqrt(__half x)
{
    return __half(1.0f / sqrtf((float)x));
}

#endif
