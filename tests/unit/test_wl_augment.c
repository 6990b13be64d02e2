/* SPDX-License-Identifier: Apache-2.0 */
/* Crops, flips and resizing against numbers that PyTorch 1.13 and torchvision 0.14 gave for the same inputs. */
#include "unit.h"

#include <math.h>

#include "base/arena.h"
#include "data/order.h"
#include "data/resample.h"

#define IGNORED 255

static uint8_t *formula_image(int64_t height, int64_t width)
{
    uint8_t *pixels = xmalloc((size_t)(height * width * 3));
    for (int64_t i = 0; i < height * width * 3; i++) {
        int64_t y = i / 3 / width;
        int64_t x = i / 3 % width;
        pixels[i] = (uint8_t)(17 * y + 5 * x + 83 * (i % 3) + y * x);
    }
    return pixels;
}

static uint8_t *formula_labels(int64_t height, int64_t width)
{
    uint8_t *labels = xmalloc((size_t)(height * width));
    for (int64_t i = 0; i < height * width; i++) {
        labels[i] = (uint8_t)((3 * (i / width) + i % width) / 4 % 19);
    }
    return labels;
}

static double weight_of(int64_t i)
{
    return (double)((uint64_t)i * 2654435761U % 1000);
}

struct golden {
    const char *name;
    struct augment_size image;
    struct augment_plan plan;
    struct augment_size out;
    const struct augment_recipe *recipe; /* mean and deviation */
    double weighted_sum;                 /* of all elements, each times weight_of / 1000 */
    double sample[5];                    /* elements 0, n/5, 2n/5, ... */
    double label_sum;                    /* of all labels, each times weight_of */
};

/* F.interpolate(mode="bilinear", align_corners=False, antialias=...) in double and mode="nearest" on the crop, then padded,
   cropped and flipped by index. The tolerance is that of sums of up to 30,720 floats of size 3. */
static const struct golden GOLDEN[] = {
    {"shrunk, averaged",
     {37, 50},
     {3, 4, 29, 41, 16, 20, 0, 0, false, true},
     {16, 20},
     &augment_classes,
     109.65093676995262,
     {-0.378121428, -0.409380472, 0.680848508, -0.179749673, -0.450904698},
     1436834},
    {"grown, flipped",
     {37, 50},
     {3, 4, 29, 41, 64, 80, 0, 0, true, true},
     {64, 80},
     &augment_classes,
     1720.002717230934,
     {0.399434817, -1.0655218, 0.00271888426, -0.326089631, -0.106009448},
     22872265},
    {"shrunk, two pixels",
     {37, 50},
     {3, 4, 29, 41, 16, 20, 0, 0, false, false},
     {16, 20},
     &augment_classes,
     123.27948553602413,
     {-0.474877509, -0.505568278, 0.651706364, -0.280842407, -1.03335237},
     1436834},
    {"scaled, cropped",
     {37, 50},
     {0, 0, 37, 50, 56, 75, 10, 20, true, false},
     {32, 40},
     &augment_segments,
     1.3352340802988367,
     {-0.643872549, -0.132971522, 0.46495098, -0.24020775, 0.297957516},
     5786590},
    {"scaled, padded",
     {37, 50},
     {0, 0, 37, 50, 19, 25, 0, 0, true, false},
     {32, 40},
     &augment_segments,
     0.8596743034055718,
     {0.0, 0.0, -0.501754386, 0.0, 0.7374613},
     103729567},
    {"padded above",
     {37, 50},
     {0, 0, 37, 50, 37, 50, -3, 5, false, true},
     {43, 40},
     &augment_classes,
     487.17116746807164,
     {0.0, -0.525301881, 1.50070023, -0.53011203, 0.618213576},
     37188090},
    {"shrunk 28 times, grown 3 times",
     {200, 3},
     {0, 0, 200, 3, 7, 9, 0, 0, false, true},
     {7, 9},
     &augment_classes,
     21.370256029124107,
     {0.0433098026, 0.0740345352, 0.166914448, 0.171396784, 0.486235953},
     208920},
    {"one pixel",
     {37, 50},
     {10, 11, 1, 1, 4, 5, 0, 0, false, true},
     {4, 5},
     &augment_classes,
     23.812382545379798,
     {-0.765048433, -0.765048433, 0.800420142, 0.800420142, 2.46570818},
     95900},
};

static void check_golden(struct resample *scratch, const struct golden *g)
{
    int64_t n = 3 * g->out.height * g->out.width;
    uint8_t *pixels = formula_image(g->image.height, g->image.width);
    uint8_t *labels = formula_labels(g->image.height, g->image.width);
    CLEANUP(free) float *out = xmalloc((size_t)n * sizeof(*out));
    CLEANUP(free) int64_t *label = xmalloc((size_t)n / 3 * sizeof(*label));
    struct resample_job job = {.plan = &g->plan, .image = g->image, .out = g->out};
    double sum = 0.0;
    double label_sum = 0.0;
    memcpy(job.mean, g->recipe->mean, sizeof(job.mean));
    memcpy(job.std, g->recipe->std, sizeof(job.std));
    memset(out, 0xff, (size_t)n * sizeof(*out)); /* not a number where nothing is written */
    resample_pixels(scratch, &job, pixels, out);
    resample_labels(scratch, &job, labels, IGNORED, label);
    for (int64_t i = 0; i < n; i++) {
        sum += (double)out[i] * weight_of(i) / 1000.0;
    }
    for (int64_t i = 0; i < n / 3; i++) {
        label_sum += (double)label[i] * weight_of(i);
    }
    for (int i = 0; i < 5; i++) {
        double found = (double)out[i * n / 5];
        if (!(fabs(found - g->sample[i]) < 2e-6)) {
            fail_msg("%s: element %d is %.9g, expected %.9g", g->name, i, found, g->sample[i]);
        }
    }
    if (!(fabs(sum - g->weighted_sum) < 1e-6 * (double)n)) {
        fail_msg("%s: sum is %.9g, expected %.9g", g->name, sum, g->weighted_sum);
    }
    if (label_sum != g->label_sum) {
        fail_msg("%s: labels' sum is %.0f, expected %.0f", g->name, label_sum, g->label_sum);
    }
    free(pixels);
    free(labels);
}

TEST(resizing_agrees_with_torch)
{
    CLEANUP(resample) struct resample shared = {0};
    for (size_t i = 0; i < ARRAY_LEN(GOLDEN); i++) {
        CLEANUP(resample) struct resample own = {0};
        check_golden(&own, &GOLDEN[i]);
        check_golden(&shared, &GOLDEN[i]); /* the scratch's old contents change nothing */
    }
}

TEST(an_image_as_it_is_stays_as_it_is)
{
    CLEANUP(resample) struct resample scratch = {0};
    enum { H = 11, W = 13 };
    uint8_t *pixels = formula_image(H, W);
    float out[3 * H * W];
    for (int flip = 0; flip < 2; flip++) {
        struct augment_plan plan = {.src_h = H,
                                    .src_w = W,
                                    .res_h = H,
                                    .res_w = W,
                                    .is_flipped = flip == 1,
                                    .is_antialiased = true};
        struct resample_job job = {.plan = &plan,
                                   .image = {H, W},
                                   .out = {H, W},
                                   .std = {1.0 / 255, 1.0 / 255, 1.0 / 255}};
        resample_pixels(&scratch, &job, pixels, out);
        for (int i = 0; i < 3 * H * W; i++) {
            int x = flip == 1 ? W - 1 - i % W : i % W;
            int y = i / W % H;
            assert_true(fabsf(out[i] - (float)pixels[(y * W + x) * 3 + i / (H * W)]) < 1e-4F);
        }
    }
    free(pixels);
}

/* ---- plans ---- */

static bool is_within(const struct augment_plan *plan, struct augment_size image)
{
    return plan->src_y >= 0 && plan->src_x >= 0 && plan->src_h > 0 && plan->src_w > 0 &&
           plan->src_y + plan->src_h <= image.height && plan->src_x + plan->src_w <= image.width;
}

/* Means over 200,000 draws of RandomResizedCrop.get_params, seed 0. The difference of two such means is within
   5 sqrt(2 / 200000) = 0.016 standard deviations; a deviation is at most 0.5 for what is counted here. */
TEST(crops_are_spread_as_torchvision_s)
{
    static const struct {
        struct augment_size image;
        double area, log_ratio, log_ratio_std, top, left, n_small, n_at_top;
    } cases[] = {
        {{375, 500}, 0.43388, 0.030811, 0.16413, 0.13965, 0.21768, 0.17512, 0.032255},
        {{256, 256}, 0.48006, -0.000701, 0.15951, 0.16438, 0.16490, 0.15055, 0.029555},
        {{100, 300}, 0.22471, 0.044636, 0.16694, 0.10897, 0.36085, 0.44414, 0.137375},
    };
    const int n = 200000;
    const double bound = 0.016 * 0.5;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct augment_size image = cases[i].image;
        double area = 0;
        double ratio = 0;
        double ratio_squared = 0;
        double top = 0;
        double left = 0;
        int n_small = 0;
        int n_top = 0;
        int n_flipped = 0;
        for (int draw = 0; draw < n; draw++) {
            struct augment_plan p =
                augment_plan(&augment_classes, image, (struct augment_size){224, 224},
                             order_hash(1, 2, (uint64_t)draw));
            assert_true(is_within(&p, image));
            double part = (double)(p.src_h * p.src_w) / (double)(image.height * image.width);
            double log_ratio = log((double)p.src_w / (double)p.src_h);
            area += part / n;
            ratio += log_ratio / n;
            ratio_squared += log_ratio * log_ratio / n;
            top += (double)p.src_y / (double)image.height / n;
            left += (double)p.src_x / (double)image.width / n;
            n_small += part < 0.2 ? 1 : 0;
            n_top += p.src_y == 0 ? 1 : 0;
            n_flipped += p.is_flipped ? 1 : 0;
        }
        assert_true(fabs(area - cases[i].area) < bound);
        assert_true(fabs(ratio - cases[i].log_ratio) < bound);
        assert_true(fabs(sqrt(ratio_squared - ratio * ratio) - cases[i].log_ratio_std) < bound);
        assert_true(fabs(top - cases[i].top) < bound);
        assert_true(fabs(left - cases[i].left) < bound);
        assert_true(fabs((double)n_small / n - cases[i].n_small) < bound);
        assert_true(fabs((double)n_top / n - cases[i].n_at_top) < bound);
        assert_true(fabs((double)n_flipped / n - 0.5) < bound);
    }
}

TEST(where_no_crop_fits_the_centre_is_taken)
{
    /* torchvision gives (0, 460, 60, 80) and (459, 0, 81, 61). */
    struct augment_size out = {8, 8};
    for (uint64_t key = 0; key < 50; key++) {
        struct augment_recipe recipe = augment_classes;
        recipe.area_min = 0.9;
        struct augment_plan wide =
            augment_plan(&recipe, (struct augment_size){60, 1000}, out, order_hash(key, 0, 0));
        struct augment_plan tall =
            augment_plan(&recipe, (struct augment_size){1000, 61}, out, order_hash(key, 0, 0));
        assert_int_equal(wide.src_y, 0);
        assert_int_equal(wide.src_x, 460);
        assert_int_equal(wide.src_h, 60);
        assert_int_equal(wide.src_w, 80);
        assert_int_equal(tall.src_y, 459);
        assert_int_equal(tall.src_x, 0);
        assert_int_equal(tall.src_h, 81);
        assert_int_equal(tall.src_w, 61);
        /* One pixel is a picture too. */
        struct augment_plan one =
            augment_plan(&augment_classes, (struct augment_size){1, 1}, out, key);
        assert_true(is_within(&one, (struct augment_size){1, 1}));
    }
}

TEST(the_centre_is_torchvision_s)
{
    /* Resize(256) and CenterCrop(224): size after resizing, then top and left. */
    static const int64_t cases[][6] = {{375, 500, 256, 341, 16, 58},
                                       {500, 333, 384, 256, 80, 16},
                                       {224, 224, 256, 256, 16, 16},
                                       {2000, 301, 1700, 256, 738, 16}};
    struct augment_recipe recipe = augment_classes;
    recipe.kind = AUGMENT_CENTRE_CROP;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const int64_t *c = cases[i];
        struct augment_plan p = augment_plan(&recipe, (struct augment_size){c[0], c[1]},
                                             (struct augment_size){224, 224}, i);
        assert_int_equal(p.res_h, c[2]);
        assert_int_equal(p.res_w, c[3]);
        assert_int_equal(p.off_y, c[4]);
        assert_int_equal(p.off_x, c[5]);
        assert_false(p.is_flipped);
        assert_int_equal(p.src_h, c[0]);
    }
    recipe = augment_segments; /* whole and unscaled */
    recipe.kind = AUGMENT_CENTRE_CROP;
    struct augment_plan p = augment_plan(&recipe, (struct augment_size){1024, 2048},
                                         (struct augment_size){1024, 2048}, 1);
    assert_int_equal(p.res_h, 1024);
    assert_int_equal(p.res_w, 2048);
    assert_int_equal(p.off_y, 0);
    assert_int_equal(p.off_x, 0);
}

/* Factors 0.5, 0.75 ... 2 as often; offsets uniform over what is spare, none where the image is smaller. */
TEST(scaled_crops_cover_their_range)
{
    int by_scale[7] = {0};
    const int n = 70000;
    double spare_part = 0;
    int n_spare = 0;
    struct augment_size image = {128, 256};
    struct augment_size out = {96, 192};
    for (int draw = 0; draw < n; draw++) {
        struct augment_plan p =
            augment_plan(&augment_segments, image, out, order_hash(3, 0, (uint64_t)draw));
        int64_t quarters = p.res_h / 32;
        assert_true(quarters >= 2 && quarters <= 8);
        assert_int_equal(p.res_h, quarters * 32);
        assert_int_equal(p.res_w, quarters * 64);
        by_scale[quarters - 2]++;
        assert_true(p.off_y >= 0 && p.off_x >= 0);
        assert_true(p.off_y == 0 || p.off_y + out.height <= p.res_h);
        assert_true(p.off_x == 0 || p.off_x + out.width <= p.res_w);
        if (p.res_h > out.height) {
            spare_part += (double)p.off_y / (double)(p.res_h - out.height);
            n_spare++;
        }
    }
    for (int i = 0; i < 7; i++) {
        assert_true(abs(by_scale[i] - n / 7) < 500); /* 5 standard deviations of 93 */
    }
    assert_true(fabs(spare_part / n_spare - 0.5) < 0.01);
    const struct augment_recipe smooth = augment_segments_mmseg;
    int64_t least = INT64_MAX;
    int64_t most = 0;
    for (int draw = 0; draw < n; draw++) {
        struct augment_plan p = augment_plan(&smooth, image, out, order_hash(4, 0, (uint64_t)draw));
        least = p.res_h < least ? p.res_h : least;
        most = p.res_h > most ? p.res_h : most;
    }
    assert_int_equal(least, 64);
    assert_int_equal(most, 256);
}
