/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/draw.h"

#include "base/rng.h"

enum train_id { /* Source: cityscapesScripts, helpers/labels.py, column trainId. */
                ROAD,
                SIDEWALK,
                BUILDING,
                WALL,
                FENCE,
                POLE,
                TRAFFIC_LIGHT,
                TRAFFIC_SIGN,
                VEGETATION,
                TERRAIN,
                SKY,
                PERSON,
                RIDER,
                CAR,
                TRUCK,
                BUS,
                TRAIN,
                MOTORCYCLE,
                BICYCLE,
};

static uint32_t mix(uint32_t a, uint32_t b, uint32_t seed)
{
    uint32_t h = a * 0x9e3779b1u ^ b * 0x85ebca77u ^ seed;
    h = (h ^ (h >> 15)) * 0x2c1b3c6du;
    h = (h ^ (h >> 12)) * 0x297a2d39u;
    return h ^ (h >> 15);
}

/* Smooth noise, 0..255: a lattice every 2^bits pixels, linear between. */
static int smooth_noise(uint32_t x, uint32_t y, unsigned bits, uint32_t seed)
{
    uint32_t cell = 1u << bits;
    uint32_t fx = x & (cell - 1), fy = y & (cell - 1);
    uint32_t cx = x >> bits, cy = y >> bits;
    uint32_t upper = (mix(cx, cy, seed) & 255) * (cell - fx) + (mix(cx + 1, cy, seed) & 255) * fx;
    uint32_t lower =
        (mix(cx, cy + 1, seed) & 255) * (cell - fx) + (mix(cx + 1, cy + 1, seed) & 255) * fx;
    return (int)(((upper >> bits) * (cell - fy) + (lower >> bits) * fy) >> bits);
}

static uint8_t clamp(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > UINT8_MAX ? UINT8_MAX : value);
}

struct colour {
    int rgb[3];
};

/* A pure hue, 0..1535, made paler. */
static struct colour hue_colour(uint32_t hue, int pale)
{
    static const uint8_t order[6][3] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0},
                                        {2, 1, 0}, {2, 0, 1}, {0, 2, 1}};
    struct colour colour;
    uint32_t sector = hue / 256 % 6;
    int rise = (int)(hue % 256);
    colour.rgb[order[sector][0]] = 255;
    colour.rgb[order[sector][1]] = sector % 2 == 0 ? rise : 255 - rise;
    colour.rgb[order[sector][2]] = 0;
    for (int idx = 0; idx < 3; idx++) {
        colour.rgb[idx] = pale + colour.rgb[idx] * (255 - 2 * pale) / 255;
    }
    return colour;
}

/* 0..255, up and down once in 512. */
static int triangle(int32_t at)
{
    int32_t phase = at & 511;
    return phase < 256 ? phase : 511 - phase;
}

void draw_object(uint64_t seed, uint32_t label, uint32_t width, uint32_t height, uint8_t *rgb)
{
    static const int8_t directions[8][2] = {{16, 0}, {15, 6},  {11, 11},  {6, 15},
                                            {0, 16}, {-6, 15}, {-11, 11}, {-15, 6}};
    const int32_t shorter = (int32_t)(width < height ? width : height);
    const int32_t scale = 3 + (int32_t)(label / 8 % 4);
    struct rng rng;
    rng_init(&rng, seed);
    const uint32_t noise = (uint32_t)rng_u64(&rng);
    /* Near classes get far hues. */
    const struct colour front = hue_colour(label * 619 % 1536 + (uint32_t)rng_below(&rng, 40), 30);
    const struct colour back = hue_colour((uint32_t)rng_below(&rng, 1536), 75);
    const int32_t radius = shorter / 4 + (int32_t)rng_below(&rng, (uint64_t)shorter / 6 + 1);
    const int32_t left = (int32_t)width / 2 - shorter / 6;
    const int32_t upper = (int32_t)height / 2 - shorter / 6;
    const int32_t x0 = left + (int32_t)rng_below(&rng, (uint64_t)shorter / 3 + 1);
    const int32_t y0 = upper + (int32_t)rng_below(&rng, (uint64_t)shorter / 3 + 1);
    for (int32_t y = 0; y < (int32_t)height; y++) {
        for (int32_t x = 0; x < (int32_t)width; x++, rgb += 3) {
            const uint32_t ux = (uint32_t)x, uy = (uint32_t)y, grain = mix(ux, uy, noise);
            bool is_front = (x - x0) * (x - x0) + (y - y0) * (y - y0) < radius * radius;
            int stripe =
                triangle((x * directions[label % 8][0] + y * directions[label % 8][1]) * scale / 4);
            int cloud = (smooth_noise(ux, uy, 6, noise) + smooth_noise(ux, uy, 4, ~noise) / 2 +
                         smooth_noise(ux, uy, 2, noise ^ 0x5555) / 3) /
                            3 -
                        70;
            int light = is_front ? (stripe - 128) / 3 + cloud / 2 : cloud;
            for (int channel = 0; channel < 3; channel++) {
                int value = is_front ? front.rgb[channel] : back.rgb[channel];
                rgb[channel] = clamp(value + light + (int)(grain >> (8 * channel) & 31) - 16);
            }
        }
    }
}

/* ---- streets ---- */

/* What stands in a street, the far first: how many, their greatest width and height, and between which heights their feet are, in
   hundredths of the picture. */
static const struct {
    uint8_t label, n, wide, high, foot_min, foot_max;
} THINGS[] = {{BUILDING, 8, 18, 42, 47, 49},    {VEGETATION, 4, 15, 25, 47, 49},
              {WALL, 2, 15, 8, 48, 50},         {FENCE, 2, 15, 8, 48, 50},
              {TRAIN, 1, 20, 24, 50, 55},       {BUS, 1, 16, 22, 50, 70},
              {TRUCK, 1, 15, 20, 50, 70},       {POLE, 2, 2, 45, 50, 60},
              {TRAFFIC_LIGHT, 1, 2, 5, 20, 40}, {TRAFFIC_SIGN, 2, 2, 5, 20, 40},
              {CAR, 4, 14, 13, 50, 85},         {MOTORCYCLE, 1, 7, 9, 50, 85},
              {BICYCLE, 1, 6, 8, 50, 85},       {RIDER, 1, 3, 14, 50, 85},
              {PERSON, 3, 3, 16, 50, 85},       {DRAW_VOID, 1, 100, 6, 100, 100}};

static uint32_t between(struct rng *rng, uint32_t low, uint32_t high)
{
    return low + (uint32_t)rng_below(rng, high - low + 1);
}

/* The road widens to the viewer; pavements next to it, grass beyond. */
static void draw_ground(struct rng *rng, uint32_t width, uint32_t height, uint8_t *labels)
{
    const int64_t horizon = height * 45 / 100, middle = width * between(rng, 35, 65) / 100;
    for (int64_t y = 0; y < height; y++) {
        const int64_t depth = (y - horizon + 4) * 9 / 8;
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
    for (size_t idx = 0; idx < ARRAY_LEN(THINGS); idx++) {
        const bool is_whole = THINGS[idx].label == DRAW_VOID; /* the car that has the camera */
        for (uint32_t n = 0; n < THINGS[idx].n; n++) {
            uint32_t size = is_whole ? 100 : between(&rng, 50, 100);
            uint32_t wide = width * THINGS[idx].wide / 100 * size / 100;
            uint32_t high = height * THINGS[idx].high / 100 * size / 100;
            uint32_t foot =
                height * between(&rng, THINGS[idx].foot_min, THINGS[idx].foot_max) / 100;
            uint32_t left = between(&rng, 0, width - wide);
            for (uint32_t y = foot - (high < foot ? high : foot); y < foot; y++) {
                memset(labels + (size_t)y * width + left, THINGS[idx].label, wide);
            }
        }
    }
}

/* Typical looks, by train id. */
static const uint8_t LOOKS[DRAW_CLASSES][3] = {
    {92, 90, 94},    {135, 128, 125}, {120, 105, 95}, {110, 108, 100}, {140, 120, 105},
    {100, 102, 105}, {60, 55, 40},    {170, 160, 60}, {60, 90, 50},    {110, 120, 60},
    {190, 205, 220}, {110, 70, 75},   {90, 60, 100},  {60, 65, 110},   {130, 90, 60},
    {90, 120, 140},  {70, 110, 110},  {50, 45, 60},   {125, 55, 45}};

void draw_street(uint64_t seed, uint32_t width, uint32_t height, const uint8_t *labels,
                 uint8_t *rgb)
{
    uint32_t noise = (uint32_t)(seed ^ seed >> 32);
    int sun = (int)(mix(1, 2, noise) % 41) - 20;
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++, rgb += 3) {
            uint8_t label = labels[(size_t)y * width + x];
            uint32_t grain = mix(x, y, noise);
            int light = sun + smooth_noise(x, y, 7, noise) / 6 - 20;
            light += label == VEGETATION || label == TERRAIN ? smooth_noise(x, y, 3, noise) / 8 : 0;
            light += label == BUILDING && (x >> 4 & y >> 5 & 1) ? -25 : 0; /* windows */
            for (int channel = 0; channel < 3; channel++) {
                int value = label < DRAW_CLASSES ? LOOKS[label][channel] : 30;
                rgb[channel] = clamp(value + light + (int)(grain >> (8 * channel) & 3) - 2);
            }
        }
    }
}
