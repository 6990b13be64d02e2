/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/shrink.h"

#include "base/arena.h"

#define CHANNELS     3
#define TAPS_AT_ONCE 4
#define PAD          4
#define ONE_BITS     14
#define ONE          (1 << ONE_BITS)
#define HALF         (1 << (ONE_BITS - 1))

struct taps { /* for each place of the result: which places it comes from, and how much of each */
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

/* One row out of up to TAPS_AT_ONCE rows, which fit into registers; further ones are added to what stands in sums. */
static void add_rows(const uint8_t *const *rows, const int32_t *weight, int32_t *restrict sums,
                     size_t row_bytes, bool is_first)
{
    const uint8_t *restrict a = rows[0], *restrict b = rows[1];
    const uint8_t *restrict c = rows[2], *restrict d = rows[3];
    const int16_t wa = (int16_t)weight[0], wb = (int16_t)weight[1];
    const int16_t wc = (int16_t)weight[2], wd = (int16_t)weight[3];
    if (is_first) {
        for (size_t idx = 0; idx < row_bytes; idx++) {
            sums[idx] = wa * a[idx] + wb * b[idx] + wc * c[idx] + wd * d[idx];
        }
        return;
    }
    for (size_t idx = 0; idx < row_bytes; idx++) {
        sums[idx] += wa * a[idx] + wb * b[idx] + wc * c[idx] + wd * d[idx];
    }
}

static void down_columns(const uint8_t *from, size_t row_bytes, const struct taps *taps, uint32_t y,
                         int32_t *sums, float *restrict to)
{
    const uint8_t *first = from + taps->first[y] * row_bytes;
    const int32_t *weights = taps->weight + (size_t)y * taps->n_max;
    for (uint32_t tap = 0; tap < taps->n[y]; tap += TAPS_AT_ONCE) {
        const uint8_t *rows[TAPS_AT_ONCE];
        int32_t weight[TAPS_AT_ONCE];
        for (uint32_t idx = 0; idx < TAPS_AT_ONCE; idx++) { /* past the last: nothing of the last */
            bool is_there = tap + idx < taps->n[y];
            rows[idx] = first + (is_there ? tap + idx : taps->n[y] - 1) * row_bytes;
            weight[idx] = is_there ? weights[tap + idx] : 0;
        }
        add_rows(rows, weight, sums, row_bytes, tap == 0);
    }
    for (size_t idx = 0; idx < row_bytes; idx++) {
        to[idx] =
            (float)((sums[idx] + HALF) >> ONE_BITS); /* 0 to 255: the weights are shares of one */
    }
}

/* A pixel's three channels and the number after them: whole ones below 2^24, which a float holds exactly. */
typedef float lanes __attribute__((vector_size(16)));
typedef int32_t int_lanes __attribute__((vector_size(16)));

/* from has PAD numbers after its end; weights are each four times the same. */
static void along_row(const float *from, const struct taps *taps, const lanes *weights, uint8_t *to,
                      uint32_t width)
{
    for (uint32_t x = 0; x < width; x++, to += CHANNELS) {
        const float *at = from + (size_t)taps->first[x] * CHANNELS;
        const lanes *weight = weights + (size_t)x * taps->n_max;
        lanes sum = {HALF, HALF, HALF, HALF};
        for (uint32_t tap = 0; tap < taps->n[x]; tap++, at += CHANNELS) {
            lanes pixel;
            memcpy(&pixel, at, sizeof(pixel));
            sum += pixel * weight[tap];
        }
        int_lanes whole = __builtin_convertvector(sum, int_lanes) >> ONE_BITS;
        for (int channel = 0; channel < CHANNELS; channel++) {
            to[channel] = (uint8_t)whole[channel];
        }
    }
}

void resample_rgb(const uint8_t *from, struct resample_size from_size, uint8_t *to,
                  struct resample_size to_size)
{
    size_t from_bytes = (size_t)from_size.width * CHANNELS;
    size_t to_bytes = (size_t)to_size.width * CHANNELS;
    struct taps across = {0}, down = {0};
    float *row = xcalloc(from_bytes + PAD, sizeof(*row));
    int32_t *sums = xmalloc(from_bytes * sizeof(*sums));
    lanes *weights;
    ASSERT(to_size.width && to_size.height);
    ASSERT(to_size.width <= from_size.width && to_size.height <= from_size.height);
    taps_fill(&across, from_size.width, to_size.width);
    taps_fill(&down, from_size.height, to_size.height);
    weights = aligned_alloc(sizeof(lanes), (size_t)to_size.width * across.n_max * sizeof(*weights));
    ASSERT(weights != NULL);
    for (size_t idx = 0; idx < (size_t)to_size.width * across.n_max; idx++) {
        float weight = (float)across.weight[idx];
        weights[idx] = (lanes){weight, weight, weight, weight};
    }
    for (uint32_t y = 0; y < to_size.height; y++) {
        down_columns(from, from_bytes, &down, y, sums, row);
        along_row(row, &across, weights, to + y * to_bytes, to_size.width);
    }
    taps_release(&across);
    taps_release(&down);
    free(weights);
    free(row);
    free(sums);
}
