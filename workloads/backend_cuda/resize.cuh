/* SPDX-License-Identifier: Apache-2.0 */
/* Source and destination pixels of a bilinear upsampling, in whole numbers: the rules of struct resize_geom without rounding. */
#pragma once

#include "backend_cuda/launch.cuh"

/* One axis: n_in pixels become n_out; output pixel i lies at (slope * i + base) / den of the input. 32 bits are enough where n_in * n_out is
   below 2^28. */
struct axis {
    int n_in, n_out;
    int slope, base, den;
    float per_den; /* 1 / den */
};

static inline struct axis axis_of(int64_t n_in, int64_t n_out, bool is_aligned)
{
    struct axis axis = {(int)n_in,           (int)n_out,     2 * (int)n_in,
                        (int)(n_in - n_out), 2 * (int)n_out, 0.0f};
    if (is_aligned) {
        axis.slope = n_out > 1 ? (int)n_in - 1 : 0;
        axis.base = 0;
        axis.den = n_out > 1 ? (int)n_out - 1 : 1;
    }
    axis.per_den = 1.0f / (float)axis.den;
    return axis;
}

/* Output = (1 - weight) * in[low] + weight * in[high]. */
struct tap {
    int low, high;
    float weight;
};

static __host__ __device__ inline struct tap tap_at(const struct axis &axis, int out)
{
    int at = axis.slope * out + axis.base;
    unsigned num = at < 0 ? 0U : (unsigned)at;
    unsigned whole = num / (unsigned)axis.den;
    struct tap tap;
    tap.low = whole < (unsigned)axis.n_in - 1 ? (int)whole : axis.n_in - 1;
    tap.high = tap.low + 1 < axis.n_in ? tap.low + 1 : tap.low;
    tap.weight = (float)(num - whole * (unsigned)axis.den) / (float)axis.den;
    return tap;
}

/* The weight of input pixel `in` in output pixel `out`: a tent over `in`, and 1 past the ends of the image. */
static __host__ __device__ inline float tap_weight(const struct axis &axis, int in, int out)
{
    int delta = axis.slope * out + axis.base - in * axis.den;
    bool is_past = (delta < 0 && in == 0) || (delta > 0 && in == axis.n_in - 1);
    float weight = 1.0f - (float)(delta < 0 ? -delta : delta) * axis.per_den;
    return is_past ? 1.0f : weight > 0.0f ? weight : 0.0f;
}

static __host__ __device__ inline int floor_div(int a, int b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/* Output pixels [*ret_first, *ret_last) less than one input pixel from `in`: all that it has a share in. */
static __host__ __device__ inline void touched(const struct axis &axis, int in, int *ret_first,
                                               int *ret_last)
{
    int first = 0;
    int last = axis.n_out;
    if (in > 0 && axis.slope > 0) {
        first = floor_div(axis.den * (in - 1) - axis.base, axis.slope) + 1;
    }
    if (in < axis.n_in - 1 && axis.slope > 0) {
        last = floor_div(axis.den * (in + 1) - axis.base - 1, axis.slope) + 1;
    }
    *ret_first = first > 0 ? first : 0;
    *ret_last = last < axis.n_out ? last : axis.n_out;
}
