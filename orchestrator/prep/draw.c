/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/draw.h"

#include "base/rng.h"

/* Train ids of the ground. Source: cityscapesScripts, helpers/labels.py, column trainId. */
enum { ROAD = 0, SIDEWALK = 1, TERRAIN = 9, SKY = 10 };

#define THINGS       24 /* what stands in a street */
#define OBJECT_GRAIN 31 /* a JPEG of quality 95 then has half a byte a pixel, as photographs have */
#define STREET_GRAIN 3  /* a PNG of it has one byte a pixel, as those of Cityscapes have */

static uint32_t mix(uint32_t a, uint32_t b, uint32_t seed)
{
    uint32_t h = a * 0x9e3779b1u ^ b * 0x85ebca77u ^ seed;
    h = (h ^ (h >> 15)) * 0x2c1b3c6du;
    h = (h ^ (h >> 12)) * 0x297a2d39u;
    return h ^ (h >> 15);
}

/* Smooth noise, 0..255: a lattice every 2^bits pixels, linear between. */
static uint32_t smooth_noise(uint32_t x, uint32_t y, unsigned bits, uint32_t seed)
{
    uint32_t cell = 1u << bits;
    uint32_t fx = x & (cell - 1), fy = y & (cell - 1);
    uint32_t cx = x >> bits, cy = y >> bits;
    uint32_t upper = (mix(cx, cy, seed) & 255) * (cell - fx) + (mix(cx + 1, cy, seed) & 255) * fx;
    uint32_t lower =
        (mix(cx, cy + 1, seed) & 255) * (cell - fx) + (mix(cx + 1, cy + 1, seed) & 255) * fx;
    return ((upper >> bits) * (cell - fy) + (lower >> bits) * fy) >> bits;
}

/* A pixel of a look's colour, 64..191, in a light that changes slowly, with grain; at most 255 in all. */
static void paint(uint32_t look, uint32_t x, uint32_t y, uint32_t noise, uint32_t grain,
                  uint8_t *rgb)
{
    const uint32_t light =
        (smooth_noise(x, y, 6, noise) + smooth_noise(x, y, 3, ~noise) / 2) / 4; /* 0..95 */
    const uint32_t grains = mix(x, y, noise);
    for (int channel = 0; channel < 3; channel++) {
        rgb[channel] = (uint8_t)(64 + (look >> 8 * channel & 127) + light - 48 +
                                 (grains >> 8 * channel & grain) - grain / 2);
    }
}

void draw_object(uint64_t seed, uint32_t label, uint32_t width, uint32_t height, uint8_t *rgb)
{
    struct rng rng;
    rng_init(&rng, seed);
    const uint32_t noise = (uint32_t)rng_u64(&rng);
    const int64_t shorter = width < height ? width : height;
    const int64_t radius = shorter / 4 + (int64_t)rng_below(&rng, (uint64_t)shorter / 6 + 1);
    const int64_t x0 = width / 3 + (int64_t)rng_below(&rng, width / 3 + 1);
    const int64_t y0 = height / 3 + (int64_t)rng_below(&rng, height / 3 + 1);
    for (int64_t y = 0; y < height; y++) {
        for (int64_t x = 0; x < width; x++, rgb += 3) {
            bool is_front = (x - x0) * (x - x0) + (y - y0) * (y - y0) < radius * radius;
            paint(is_front ? mix(label, 1, 0) : mix(noise, 2, 0), (uint32_t)x, (uint32_t)y, noise,
                  OBJECT_GRAIN, rgb);
        }
    }
}

/* ---- streets ---- */

/* The road widens to the viewer; pavements next to it, grass beyond. */
static void draw_ground(struct rng *rng, uint32_t width, uint32_t height, uint8_t *labels)
{
    const int64_t horizon = height * 45 / 100;
    const int64_t middle = width / 3 + (int64_t)rng_below(rng, width / 3 + 1);
    for (int64_t y = 0; y < height; y++) {
        const int64_t depth = y - horizon + 4;
        for (int64_t x = 0; x < width; x++) {
            const int64_t distance = x < middle ? middle - x : x - middle;
            *labels++ = y < horizon                ? SKY
                        : distance < depth         ? ROAD
                        : distance < depth * 3 / 2 ? SIDEWALK
                                                   : TERRAIN;
        }
    }
}

void draw_street_labels(uint64_t seed, uint32_t width, uint32_t height, uint8_t *labels)
{
    struct rng rng;
    rng_init(&rng, seed);
    draw_ground(&rng, width, height, labels);
    for (size_t thing = 0; thing < THINGS; thing++) {
        const int label = (int)rng_below(&rng, DRAW_CLASSES);
        const uint32_t wide = 1 + (uint32_t)rng_below(&rng, width / 8 + 1);
        const uint32_t foot = height / 2 + (uint32_t)rng_below(&rng, height / 3 + 1);
        const uint32_t high = 1 + (uint32_t)rng_below(&rng, height / 3 + 1);
        const uint32_t left = (uint32_t)rng_below(&rng, width - wide + 1);
        for (uint32_t y = foot - (high < foot ? high : foot); y < foot; y++) {
            memset(labels + (size_t)y * width + left, label, wide);
        }
    }
    const uint32_t hood = height - height * 6 / 100; /* the hood of the car that has the camera */
    memset(labels + (size_t)hood * width, DRAW_VOID, (size_t)(height - hood) * width);
}

void draw_street(uint64_t seed, uint32_t width, uint32_t height, const uint8_t *labels,
                 uint8_t *rgb)
{
    const uint32_t noise = (uint32_t)(seed ^ seed >> 32);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++, rgb += 3) {
            paint(mix(*labels++, 3, 0), x, y, noise, STREET_GRAIN, rgb);
        }
    }
}
