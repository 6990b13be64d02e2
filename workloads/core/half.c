/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/half.h"

/* Field widths. Source: IEEE 754-2019, table 3.5. */
#define HALF_FRACTION_BITS  10
#define FLOAT_FRACTION_BITS 23
#define SHIFT               (FLOAT_FRACTION_BITS - HALF_FRACTION_BITS)
#define HALF_INF            0x7c00U
#define HALF_NAN            0x7e00U
#define FLOAT_INF           0x7f800000U
#define FLOAT_HALF_OVER                                                                            \
    0x477ff000U /* 65520: half way from the largest half to what would be the next */
#define FLOAT_HALF_NORMAL 0x38800000U /* 2^-14, the smallest normal half */
#define BIAS_APART        112U        /* 127 - 15 */

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

float half_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000U) << 16;
    uint32_t rest = bits & 0x7fffU;
    if (rest >= HALF_INF) {
        return float_of(sign | FLOAT_INF | (rest & 0x3ffU) << SHIFT);
    }
    if (rest < 1U << HALF_FRACTION_BITS) {
        float value = (float)rest * 0x1p-24F; /* subnormal: whole multiples of the smallest */
        return float_of(sign | bits_of(value));
    }
    return float_of(sign | ((rest << SHIFT) + (BIAS_APART << FLOAT_FRACTION_BITS)));
}

uint16_t half_from_float(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000U;
    uint32_t rest = bits & 0x7fffffffU;
    if (rest > FLOAT_INF) {
        return (uint16_t)(sign | HALF_NAN);
    }
    if (rest >= FLOAT_HALF_OVER) {
        return (uint16_t)(sign | HALF_INF);
    }
    if (rest < FLOAT_HALF_NORMAL) {
        /* Next to 0.5 a float's last bit is 2^-24, the smallest half: the addition rounds as wanted. */
        return (uint16_t)(sign | (bits_of(float_of(rest) + 0.5F) - bits_of(0.5F)));
    }
    uint32_t odd = rest >> SHIFT & 1U;
    rest += (1U << (SHIFT - 1)) - 1U + odd;
    return (uint16_t)(sign | (rest - (BIAS_APART << FLOAT_FRACTION_BITS)) >> SHIFT);
}
