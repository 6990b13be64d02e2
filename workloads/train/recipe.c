/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/recipe.h"

/* Training images of ImageNet 2012. Source: total_images in every ResNet-50 log of the report on Paddle's performance (2020). */
#define IMAGENET 1281167.0

/* Source of a loss scale, where a row names one: the launch or the configuration that the row names. */
static const struct recipe RECIPES[] = {
    {
        /* Source: configuration printed in the published logs of ResNet50V1.5/logs/paddle_*: Momentum 0.9, L2 0.0001, Piecewise
           from 0.1, decay_epochs 30, 60, 90, gamma 0.1, no label smoothing; AMP's scale 128, dynamic. */
        .name = "paddle",
        .models = {"resnet50"},
        .rule = {.method = OPT_SGD,
                 .scaling = OPT_SCALE_DYNAMIC,
                 .momentum = 0.9,
                 .weight_decay = 1e-4,
                 .loss_scale = 128.0F,
                 .scale_window = OPT_SCALE_WINDOW},
        .decay = NET_DECAY_ALL,
        .schedule = {.kind = SCHEDULE_PIECEWISE, .lr = 0.1, .factor = 0.1, .n_drops = 3},
        .drop_images = {30 * IMAGENET, 60 * IMAGENET, 90 * IMAGENET},
    },
    {
        /* Source: DLPerf, Paddle's ResNet-50: train.py --lr total_batch/1000 --momentum_rate 0.875 --l2_decay 3.0518e-5
           --lr_strategy piecewise_decay --warm_up_epochs 1 --use_label_smoothing True, 0.1. */
        .name = "dlperf",
        .models = {"resnet50"},
        .rule = {.method = OPT_SGD,
                 .scaling = OPT_SCALE_DYNAMIC,
                 .momentum = 0.875,
                 .weight_decay = 3.0518e-5,
                 .loss_scale = 128.0F,
                 .scale_window = OPT_SCALE_WINDOW},
        .decay = NET_DECAY_ALL,
        .schedule = {.kind = SCHEDULE_PIECEWISE, .factor = 0.1, .n_drops = 3},
        .lr_per_sample = 1e-3,
        .drop_images = {30 * IMAGENET, 60 * IMAGENET, 90 * IMAGENET},
        .warmup_images = IMAGENET,
        .label_smoothing = 0.1,
    },
    {
        /* Source: PaddleSeg f3cec79, test_tipc/configs/fcn_hrnetw18 as the published logs print it: momentum 0.9, L2 5e-4,
           PolynomialDecay from 0.01 to 0 with power 0.9 over the run's iterations; AMP's scale starts at 1024. */
        .name = "paddle",
        .models = {"hrnet_w18"},
        .rule = {.method = OPT_SGD,
                 .scaling = OPT_SCALE_DYNAMIC,
                 .momentum = 0.9,
                 .weight_decay = 5e-4,
                 .loss_scale = 1024.0F,
                 .scale_window = OPT_SCALE_WINDOW},
        .decay = NET_DECAY_ALL,
        .schedule = {.kind = SCHEDULE_POLY, .lr = 0.01, .power = 0.9},
    },
    {
        /* Source: PaddleSeg 1f49e5c, the DeepLabV3+ configuration that the published logs print: as above with L2 4e-5. */
        .name = "paddle",
        .models = {"deeplabv3p"},
        .rule = {.method = OPT_SGD,
                 .scaling = OPT_SCALE_DYNAMIC,
                 .momentum = 0.9,
                 .weight_decay = 4e-5,
                 .loss_scale = 1024.0F,
                 .scale_window = OPT_SCALE_WINDOW},
        .decay = NET_DECAY_ALL,
        .schedule = {.kind = SCHEDULE_POLY, .lr = 0.01, .power = 0.9},
    },
    {
        /* Source: the configuration printed at the head of every published log of deeplabv3plus_r50-d8_512x1024: SGD 0.9, weight
           decay 5e-4, poly 0.9 from 0.01 to 1e-4 by iteration; fp16's scale is 512, static. */
        .name = "mmseg",
        .models = {"deeplabv3p_mmseg"},
        .rule = {.method = OPT_SGD,
                 .scaling = OPT_SCALE_STATIC,
                 .momentum = 0.9,
                 .weight_decay = 5e-4,
                 .loss_scale = 512.0F},
        .decay = NET_DECAY_ALL,
        .schedule = {.kind = SCHEDULE_POLY, .lr = 0.01, .end = 1e-4, .power = 0.9},
    },
    {
        /* Source: PaddleNLP, benchmark/bert at PaddlePaddle/models 5b4aef8, as the report launches it: AdamW 1e-4, epsilon 1e-6,
           weight decay 0.01 but not of biases and norms, 10,000 steps of linear warm-up, then linearly to 0. Its loss scale is
           dynamic and starts at 1. */
        .name = "paddle",
        .models = {"bert_base", "bert_tiny", "bert_nano"},
        .rule = {.method = OPT_ADAMW,
                 .scaling = OPT_SCALE_DYNAMIC,
                 .beta1 = 0.9,
                 .beta2 = 0.999,
                 .eps = 1e-6,
                 .weight_decay = 0.01,
                 .loss_scale = 1.0F,
                 .scale_window = OPT_SCALE_WINDOW},
        .decay = NET_DECAY_MATRICES,
        .schedule = {.kind = SCHEDULE_LINEAR, .lr = 1e-4, .warmup_steps = 10000},
    },
};

const struct recipe *recipe_of(const char *model, int idx)
{
    for (size_t i = 0; i < ARRAY_LEN(RECIPES); i++) {
        for (int m = 0; m < RECIPE_MODELS_MAX && RECIPES[i].models[m]; m++) {
            if (strcmp(RECIPES[i].models[m], model) == 0 && idx-- == 0) {
                return &RECIPES[i];
            }
        }
    }
    return NULL;
}

struct schedule recipe_schedule(const struct recipe *recipe, int64_t n_samples)
{
    struct schedule schedule = recipe->schedule;
    if (recipe->lr_per_sample > 0.0) {
        schedule.lr = recipe->lr_per_sample * (double)n_samples;
    }
    for (int i = 0; i < schedule.n_drops; i++) {
        schedule.drops[i] = (int64_t)(recipe->drop_images[i] / (double)n_samples);
    }
    if (recipe->warmup_images > 0.0) {
        schedule.warmup_steps = (int64_t)(recipe->warmup_images / (double)n_samples);
    }
    return schedule;
}
