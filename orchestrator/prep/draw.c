/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/draw.h"

#include "base/rng.h"

#define UNIT_BITS 16 /* places and widths inside a picture, as shares of it */
#define UNIT      (1 << UNIT_BITS)

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

struct object { /* what stands in the picture */
    struct colour front, back_upper, back_lower;
    int32_t x, y, radius;
    unsigned shape;
    int32_t stripe_x, stripe_y; /* direction, in 1/256 */
    uint32_t seed;
};

static struct object make_object(uint64_t seed, uint32_t label, uint32_t width, uint32_t height)
{
    static const int8_t directions[8][2] = {{16, 0}, {15, 6},  {11, 11},  {6, 15},
                                            {0, 16}, {-6, 15}, {-11, 11}, {-15, 6}};
    struct rng rng;
    struct object object;
    int32_t shorter = (int32_t)(width < height ? width : height);
    uint32_t turn = label * 619; /* near classes get far hues */
    rng_init(&rng, seed);
    object.seed = (uint32_t)rng_u64(&rng);
    object.front = hue_colour(turn % 1536 + (uint32_t)rng_below(&rng, 40), 30);
    object.back_upper = hue_colour((uint32_t)rng_below(&rng, 1536), 90);
    object.back_lower = hue_colour((uint32_t)rng_below(&rng, 1536), 60);
    object.radius = shorter / 4 + (int32_t)rng_below(&rng, (uint64_t)shorter / 6 + 1);
    object.x =
        (int32_t)(width / 2) + (int32_t)rng_below(&rng, (uint64_t)shorter / 3 + 1) - shorter / 6;
    object.y =
        (int32_t)(height / 2) + (int32_t)rng_below(&rng, (uint64_t)shorter / 3 + 1) - shorter / 6;
    object.shape = label / 8 % 3;
    object.stripe_x = directions[label % 8][0] * (3 + (int32_t)(label / 24 % 4));
    object.stripe_y = directions[label % 8][1] * (3 + (int32_t)(label / 24 % 4));
    return object;
}

static bool is_inside(const struct object *object, int32_t x, int32_t y)
{
    int32_t dx = x - object->x, dy = y - object->y, r = object->radius;
    dx = dx < 0 ? -dx : dx;
    switch (object->shape) {
    case 0:
        return dx * dx + dy * dy < r * r;
    case 1:
        return dx < r && dy < r && dy > -r;
    default:
        return dy < r && dy > -r && 2 * dx < dy + r;
    }
}

/* 0..255, up and down once in 256. */
static int triangle(int32_t at)
{
    int32_t phase = at & 511;
    return phase < 256 ? phase : 511 - phase;
}

void draw_object(uint64_t seed, uint32_t label, uint32_t width, uint32_t height, uint8_t *rgb)
{
    const struct object object = make_object(seed, label, width, height);
    for (uint32_t y = 0; y < height; y++) {
        for (uint32_t x = 0; x < width; x++, rgb += 3) {
            bool is_front = is_inside(&object, (int32_t)x, (int32_t)y);
            int stripe =
                triangle(((int32_t)x * object.stripe_x + (int32_t)y * object.stripe_y) / 4);
            int cloud =
                (smooth_noise(x, y, 6, object.seed) + smooth_noise(x, y, 4, ~object.seed) / 2 +
                 smooth_noise(x, y, 2, object.seed ^ 0x5555) / 3) /
                    3 -
                70;
            uint32_t grain = mix(x, y, object.seed);
            int light = is_front ? (stripe - 128) / 3 + cloud / 2 : cloud;
            for (int channel = 0; channel < 3; channel++) {
                int back = (object.back_upper.rgb[channel] * (int)(height - y) +
                            object.back_lower.rgb[channel] * (int)y) /
                           (int)height;
                int value = is_front ? object.front.rgb[channel] : back;
                rgb[channel] = clamp(value + light + (int)(grain >> (8 * channel) & 31) - 16);
            }
        }
    }
}

/* ---- streets ---- */

struct canvas {
    uint8_t *labels;
    uint32_t width, height;
    struct rng rng;
};

static uint32_t share(uint32_t of, uint32_t part)
{
    return (uint32_t)((uint64_t)of * part >> UNIT_BITS);
}

static uint32_t between(struct canvas *canvas, uint32_t low, uint32_t high)
{
    return low + (uint32_t)rng_below(&canvas->rng, high - low + 1);
}

/* Shares of the picture; what lies outside is cut off. */
static void box(struct canvas *canvas, uint32_t x, uint32_t y, uint32_t wide, uint32_t high,
                uint8_t label)
{
    uint32_t left = share(canvas->width, x), right = share(canvas->width, x + wide);
    uint32_t upper = share(canvas->height, y), lower = share(canvas->height, y + high);
    right = right > canvas->width ? canvas->width : right;
    lower = lower > canvas->height ? canvas->height : lower;
    for (uint32_t row = upper; row < lower; row++) {
        if (right > left) {
            memset(canvas->labels + (size_t)row * canvas->width + left, label, right - left);
        }
    }
}

static void blob(struct canvas *canvas, uint32_t x, uint32_t y, uint32_t radius, uint8_t label)
{
    int64_t cx = share(canvas->width, x), cy = share(canvas->height, y);
    int64_t r = share(canvas->height, radius);
    for (int64_t row = cy - r < 0 ? 0 : cy - r; row < cy + r && row < canvas->height; row++) {
        for (int64_t at = cx - r < 0 ? 0 : cx - r; at < cx + r && at < canvas->width; at++) {
            if ((at - cx) * (at - cx) + (row - cy) * (row - cy) < r * r) {
                canvas->labels[(size_t)row * canvas->width + (size_t)at] = label;
            }
        }
    }
}

#define PERCENT(n) ((uint32_t)((n)*UNIT / 100))

static void draw_ground(struct canvas *canvas)
{
    uint32_t horizon = share(canvas->height, PERCENT(45));
    uint32_t middle = share(canvas->width, between(canvas, PERCENT(35), PERCENT(65)));
    for (uint32_t y = horizon; y < canvas->height; y++) {
        /* The road widens to the viewer; pavements next to it, grass beyond. */
        uint32_t depth = y - horizon + 4;
        uint32_t road = depth * 9 / 8, pavement = road + depth / 2;
        for (uint32_t x = 0; x < canvas->width; x++) {
            uint32_t distance = x < middle ? middle - x : x - middle;
            canvas->labels[(size_t)y * canvas->width + x] = distance < road       ? ROAD
                                                            : distance < pavement ? SIDEWALK
                                                                                  : TERRAIN;
        }
    }
}

static void draw_far(struct canvas *canvas)
{
    box(canvas, 0, 0, UNIT, PERCENT(46), SKY);
    for (uint32_t x = 0; x < UNIT;) {
        uint32_t wide = between(canvas, PERCENT(5), PERCENT(18));
        uint32_t top = between(canvas, PERCENT(5), PERCENT(38));
        uint32_t pick = between(canvas, 0, 9);
        if (pick < 6) {
            box(canvas, x, top, wide, PERCENT(50) - top, BUILDING);
        } else if (pick < 8) {
            blob(canvas, x + wide / 2, PERCENT(38), between(canvas, PERCENT(8), PERCENT(18)),
                 VEGETATION);
        } else {
            box(canvas, x, PERCENT(42), wide, PERCENT(9), pick == 8 ? WALL : FENCE);
        }
        x += wide;
    }
}

static void draw_near(struct canvas *canvas)
{
    static const struct {
        uint8_t label;
        uint8_t wide, high; /* percent at the front */
    } things[] = {{CAR, 14, 13},  {CAR, 14, 13},   {CAR, 14, 13},      {TRUCK, 15, 24},
                  {BUS, 16, 26},  {TRAIN, 20, 26}, {PERSON, 3, 16},    {PERSON, 3, 16},
                  {RIDER, 3, 14}, {BICYCLE, 6, 8}, {MOTORCYCLE, 7, 9}, {POLE, 1, 45}};
    uint32_t n = between(canvas, 6, 14);
    for (uint32_t idx = 0; idx < n; idx++) {
        size_t pick = between(canvas, 0, ARRAY_LEN(things) - 1);
        uint32_t foot = between(canvas, PERCENT(50), PERCENT(85));
        uint32_t near = (foot - PERCENT(45)) * 5 / 2; /* 0.125 to 1 */
        uint32_t wide = share(PERCENT(things[pick].wide), near);
        uint32_t high = share(PERCENT(things[pick].high), near);
        uint32_t x = between(canvas, 0, PERCENT(95));
        box(canvas, x, foot - high, wide, high, things[pick].label);
        if (things[pick].label == POLE) {
            bool is_light = between(canvas, 0, 1);
            box(canvas, x > PERCENT(1) ? x - PERCENT(1) : 0, foot - high, PERCENT(2), PERCENT(4),
                is_light ? TRAFFIC_LIGHT : TRAFFIC_SIGN);
        }
    }
    /* The car that carries the camera is not labelled. */
    box(canvas, 0, PERCENT(94), UNIT, PERCENT(6) + 1, DRAW_VOID);
}

void draw_street_labels(uint64_t seed, uint32_t width, uint32_t height, uint8_t *labels)
{
    struct canvas canvas = {.labels = labels, .width = width, .height = height};
    rng_init(&canvas.rng, seed);
    memset(labels, DRAW_VOID, (size_t)width * height);
    draw_ground(&canvas);
    draw_far(&canvas);
    draw_near(&canvas);
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
