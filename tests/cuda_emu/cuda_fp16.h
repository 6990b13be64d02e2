/* SPDX-License-Identifier: Apache-2.0 */
/* Half precision as the device has it: conversions round to nearest even. Our kernels compute in float. */
#pragma once

#include "cuda_runtime.h"

#ifdef __cplusplus

struct __half_raw {
    unsigned short x;
};

static inline float emu_half_to_float(unsigned short bits)
{
    unsigned sign = (unsigned)(bits & 0x8000) << 16;
    unsigned rest = bits & 0x7fff;
    if (rest >= 0x7c00) { /* infinity, NaN */
        return emu_bits<float>(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    }
    if (rest < 0x400) { /* zero, subnormal: a count of 2^-24 */
        float value = (float)rest * 0x1p-24f;
        return sign != 0 ? -value : value;
    }
    return emu_bits<float>(sign | ((rest << 13) + (112u << 23)));
}

static inline unsigned short emu_float_to_half(float value)
{
    unsigned bits = emu_bits<unsigned>(value);
    unsigned short sign = (unsigned short)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) { /* NaN: the device's own */
        return 0x7fff;
    }
    if (bits >= 0x477ff000) { /* 65520 and above: infinity */
        return (unsigned short)(sign | 0x7c00);
    }
    if (bits < 0x38800000) { /* below 2^-14: the sum's last bit is 2^-24, and the sum rounds */
        float sum = emu_bits<float>(bits) + 0.5f;
        return (unsigned short)(sign | (emu_bits<unsigned>(sum) - 0x3f000000));
    }
    unsigned rounded = bits + 0xfff + (bits >> 13 & 1) - (112u << 23);
    return (unsigned short)(sign | rounded >> 13);
}

static inline unsigned short emu_double_to_half(double value)
{
    /* Rounding twice is harmless if the first rounding is to odd. */
    float once = (float)value;
    unsigned bits = emu_bits<unsigned>(once);
    double back = (double)once;
    if (value == value && back != value && fabsf(once) <= 3.4e38f) {
        if (fabs(back) > fabs(value)) {
            bits--; /* toward zero */
        }
        bits |= 1;
    }
    return emu_float_to_half(emu_bits<float>(bits));
}

struct alignas(2) __half {
    unsigned short bits;

    __half() = default;
    __half(float value) : bits(emu_float_to_half(value))
    {
    }
    __half(double value) : bits(emu_double_to_half(value))
    {
    }
    __half(int value) : bits(emu_double_to_half((double)value))
    {
    }
    __half(unsigned value) : bits(emu_double_to_half((double)value))
    {
    }
    __half(const __half_raw &raw) : bits(raw.x)
    {
    }
    operator float() const
    {
        return emu_half_to_float(bits);
    }
    operator __half_raw() const
    {
        return __half_raw{bits};
    }
};

static inline __half __float2half_rn(float x)
{
    return __half(x);
}
static inline __half __double2half(double x)
{
    return __half(x);
}
static inline float __half2float(__half x)
{
    return (float)x;
}
static inline __half __ushort_as_half(unsigned short x)
{
    return __half(__half_raw{x});
}
static inline unsigned short __half_as_ushort(__half x)
{
    return x.bits;
}

#endif
