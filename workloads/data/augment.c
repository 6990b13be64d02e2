/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "data/augment.h"

#include "base/rng.h"

#include <math.h>

#define CROP_TRIES 10

/* Source of mean and deviation: torchvision 0.14, references/classification/presets.py (ImageNet); PaddleSeg v2.3,
   configs/_base_/cityscapes.yml with Normalize's defaults 0.5 and 0.5. */
const struct augment_recipe augment_classes = {
    .kind = AUGMENT_RESIZED_CROP,
    .area_min = 0.08,
    .area_max = 1.0,
    .ratio_min = 3.0 / 4.0,
    .ratio_max = 4.0 / 3.0,
    .flip_probability = 0.5,
    .short_ratio = 256.0 / 224.0,
    .is_antialiased = true,
    .mean = {0.485, 0.456, 0.406},
    .std = {0.229, 0.224, 0.225},
};

const struct augment_recipe augment_segments = {
    .kind = AUGMENT_SCALE_CROP,
    .scale_min = 0.5,
    .scale_max = 2.0,
    .scale_step = 0.25,
    .flip_probability = 0.5,
    .mean = {0.5, 0.5, 0.5},
    .std = {0.5, 0.5, 0.5},
};

/* Source: mmsegmentation v0.11, configs/_base_/datasets/cityscapes.py: ratio_range and img_norm_cfg. */
const struct augment_recipe augment_segments_mmseg = {
    .kind = AUGMENT_SCALE_CROP,
    .scale_min = 0.5,
    .scale_max = 2.0,
    .flip_probability = 0.5,
    .mean = {0.485, 0.456, 0.406},
    .std = {0.229, 0.224, 0.225},
};

const char *augment_name(enum augment_kind kind)
{
    switch (kind) {
    case AUGMENT_RESIZED_CROP:
        return "resized-crop";
    case AUGMENT_SCALE_CROP:
        return "scale-crop";
    case AUGMENT_CENTRE_CROP:
        break;
    }
    return "centre-crop";
}

static double uniform(struct rng *rng, double low, double high)
{
    return low + (high - low) * rng_f64(rng);
}

/* 0 to last, both included. */
static int64_t whole_up_to(struct rng *rng, int64_t last)
{
    return (int64_t)rng_below(rng, (uint64_t)last + 1);
}

static int64_t at_least_one(double x)
{
    return x < 1.0 ? 1 : (int64_t)x;
}

/* If no try fitted: the whole image, or its centre cropped to the nearest ratio. */
static void centred_rectangle(struct augment_plan *plan, const struct augment_recipe *recipe,
                              struct augment_size image)
{
    double ratio = (double)image.width / (double)image.height;
    plan->src_h = image.height;
    plan->src_w = image.width;
    if (ratio < recipe->ratio_min) {
        plan->src_h = at_least_one(rint((double)image.width / recipe->ratio_min));
    } else if (ratio > recipe->ratio_max) {
        plan->src_w = at_least_one(rint((double)image.height * recipe->ratio_max));
    }
    plan->src_y = (image.height - plan->src_h) / 2;
    plan->src_x = (image.width - plan->src_w) / 2;
}

static void resized_crop(struct augment_plan *plan, const struct augment_recipe *recipe,
                         struct augment_size image, struct rng *rng)
{
    double area = (double)image.height * (double)image.width;
    for (int i = 0; i < CROP_TRIES; i++) {
        double target = area * uniform(rng, recipe->area_min, recipe->area_max);
        double ratio = exp(uniform(rng, log(recipe->ratio_min), log(recipe->ratio_max)));
        double width = rint(sqrt(target * ratio)); /* ties to even, as Python rounds */
        double height = rint(sqrt(target / ratio));
        if (width >= 1 && height >= 1 && width <= (double)image.width &&
            height <= (double)image.height) {
            plan->src_h = (int64_t)height;
            plan->src_w = (int64_t)width;
            plan->src_y = whole_up_to(rng, image.height - plan->src_h);
            plan->src_x = whole_up_to(rng, image.width - plan->src_w);
            return;
        }
    }
    centred_rectangle(plan, recipe, image);
}

static double draw_scale(const struct augment_recipe *recipe, struct rng *rng)
{
    if (recipe->scale_step <= 0.0) {
        return uniform(rng, recipe->scale_min, recipe->scale_max);
    }
    double n_steps = floor((recipe->scale_max - recipe->scale_min) / recipe->scale_step + 1e-9);
    return recipe->scale_min + recipe->scale_step * (double)whole_up_to(rng, (int64_t)n_steps);
}

static void scale_crop(struct augment_plan *plan, const struct augment_recipe *recipe,
                       struct augment_size out, struct rng *rng)
{
    double scale = draw_scale(recipe, rng);
    plan->res_h = at_least_one(floor((double)plan->src_h * scale + 0.5));
    plan->res_w = at_least_one(floor((double)plan->src_w * scale + 0.5));
    int64_t spare_h = plan->res_h - out.height;
    int64_t spare_w = plan->res_w - out.width;
    plan->off_y = whole_up_to(rng, spare_h > 0 ? spare_h : 0);
    plan->off_x = whole_up_to(rng, spare_w > 0 ? spare_w : 0);
}

static void centre_crop(struct augment_plan *plan, const struct augment_recipe *recipe,
                        struct augment_size out)
{
    int64_t longer_out = out.height > out.width ? out.height : out.width;
    int64_t shorter = plan->src_h < plan->src_w ? plan->src_h : plan->src_w;
    if (recipe->short_ratio > 0.0) {
        int64_t target = at_least_one(rint((double)longer_out * recipe->short_ratio));
        /* The long side is cut off, as torchvision does. */
        plan->res_h = plan->src_h * target / shorter;
        plan->res_w = plan->src_w * target / shorter;
    }
    plan->off_y = (int64_t)rint((double)(plan->res_h - out.height) / 2.0);
    plan->off_x = (int64_t)rint((double)(plan->res_w - out.width) / 2.0);
}

struct augment_plan augment_plan(const struct augment_recipe *recipe, struct augment_size image,
                                 struct augment_size out, uint64_t key)
{
    struct rng rng;
    struct augment_plan plan = {
        .src_h = image.height,
        .src_w = image.width,
        .res_h = image.height,
        .res_w = image.width,
        .is_antialiased = recipe->is_antialiased,
    };
    rng_init(&rng, key);
    switch (recipe->kind) {
    case AUGMENT_RESIZED_CROP:
        resized_crop(&plan, recipe, image, &rng);
        plan.res_h = out.height;
        plan.res_w = out.width;
        break;
    case AUGMENT_SCALE_CROP:
        scale_crop(&plan, recipe, out, &rng);
        break;
    case AUGMENT_CENTRE_CROP:
        centre_crop(&plan, recipe, out);
        return plan;
    }
    plan.is_flipped = rng_f64(&rng) < recipe->flip_probability;
    return plan;
}
