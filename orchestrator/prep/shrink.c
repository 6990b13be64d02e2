/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/shrink.h"

#include "base/arena.h"

#define CHANNELS 3
#define ONE_BITS 14
#define ONE      (1 << ONE_BITS)
#define HALF     (1 << (ONE_BITS - 1))

/* For each place of the result: which places it comes from, and how much of each. */
struct taps {
    uint32_t *first;
    uint32_t *n;
    int32_t *weight; /* n_max for each place */
    uint32_t n_max;
};

static void taps_release(struct taps *taps)
{
    free(taps->first);
    free(taps->n);
    free(taps->weight);
}

/* Distances are in units of 1/(2*to) of a source pixel, so that all is whole: the triangle's half-width is 2*from of them. */
static void fill_one(struct taps *taps, uint32_t from, uint32_t to, uint32_t idx)
{
    int64_t half = 2 * (int64_t)from;
    int64_t centre = (2 * (int64_t)idx + 1) * from;
    int64_t first = (centre - half) / (2 * (int64_t)to);
    int64_t last = (centre + half) / (2 * (int64_t)to);
    int64_t total = 0;
    int32_t *weight = taps->weight + (size_t)idx * taps->n_max;
    int32_t given = 0;
    uint32_t largest = 0;
    first = first < 0 ? 0 : first;
    last = last >= from ? (int64_t)from - 1 : last;
    taps->first[idx] = (uint32_t)first;
    taps->n[idx] = (uint32_t)(last - first + 1);
    ASSERT(taps->n[idx] <= taps->n_max);
    for (int round = 0; round < 2; round++) { /* first the sum, then the shares of it */
        for (int64_t at = first; at <= last; at++) {
            int64_t distance = (2 * at + 1) * (int64_t)to - centre;
            int64_t share = half - (distance < 0 ? -distance : distance);
            share = share < 0 ? 0 : share;
            if (round == 0) {
                total += share;
                continue;
            }
            uint32_t tap = (uint32_t)(at - first);
            weight[tap] = (int32_t)((share * ONE + total / 2) / total);
            given += weight[tap];
            largest = weight[tap] > weight[largest] ? tap : largest;
        }
    }
    weight[largest] += ONE - given;
    ASSERT(weight[largest] > 0);
}

static void taps_fill(struct taps *taps, uint32_t from, uint32_t to)
{
    taps->n_max = 2 * ((from + to - 1) / to) + 2;
    taps->first = xcalloc(to, sizeof(*taps->first));
    taps->n = xcalloc(to, sizeof(*taps->n));
    taps->weight = xcalloc((size_t)to * taps->n_max, sizeof(*taps->weight));
    for (uint32_t idx = 0; idx < to; idx++) {
        fill_one(taps, from, to, idx);
    }
}

/* One row of the result's height, still as wide as the source. */
static void down_columns(const uint8_t *from, size_t row_bytes, const struct taps *taps, uint32_t y,
                         int32_t *restrict sums)
{
    const int32_t *weight = taps->weight + (size_t)y * taps->n_max;
    for (size_t idx = 0; idx < row_bytes; idx++) {
        sums[idx] = HALF;
    }
    for (uint32_t tap = 0; tap < taps->n[y]; tap++) {
        const uint8_t *restrict row = from + (taps->first[y] + tap) * row_bytes;
        const int32_t one = weight[tap];
        for (size_t idx = 0; idx < row_bytes; idx++) {
            sums[idx] += one * row[idx];
        }
    }
    for (size_t idx = 0; idx < row_bytes; idx++) {
        sums[idx] >>= ONE_BITS; /* 0 to 255: the weights are shares of one */
    }
}

static void along_row(const int32_t *from, const struct taps *taps, uint8_t *to, uint32_t width)
{
    for (uint32_t x = 0; x < width; x++, to += CHANNELS) {
        const int32_t *at = from + (size_t)taps->first[x] * CHANNELS;
        const int32_t *weight = taps->weight + (size_t)x * taps->n_max;
        int32_t red = HALF, green = HALF, blue = HALF;
        for (uint32_t tap = 0; tap < taps->n[x]; tap++, at += CHANNELS) {
            red += at[0] * weight[tap];
            green += at[1] * weight[tap];
            blue += at[2] * weight[tap];
        }
        to[0] = (uint8_t)(red >> ONE_BITS);
        to[1] = (uint8_t)(green >> ONE_BITS);
        to[2] = (uint8_t)(blue >> ONE_BITS);
    }
}

void resample_rgb(const uint8_t *from, struct resample_size from_size, uint8_t *to,
                  struct resample_size to_size)
{
    size_t from_bytes = (size_t)from_size.width * CHANNELS;
    struct taps across = {0}, down = {0};
    int32_t *row = xmalloc(from_bytes * sizeof(*row));
    ASSERT(to_size.width && to_size.height);
    ASSERT(to_size.width <= from_size.width && to_size.height <= from_size.height);
    taps_fill(&across, from_size.width, to_size.width);
    taps_fill(&down, from_size.height, to_size.height);
    for (uint32_t y = 0; y < to_size.height; y++) {
        down_columns(from, from_bytes, &down, y, row);
        along_row(row, &across, to + (size_t)y * to_size.width * CHANNELS, to_size.width);
    }
    taps_release(&across);
    taps_release(&down);
    free(row);
}
