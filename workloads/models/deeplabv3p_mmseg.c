/* SPDX-License-Identifier: Apache-2.0 */
/* DeepLabV3+ on ResNet-50-v1c at output stride 8, for 19 classes, as mmsegmentation builds it and names it: twice as wide a
   head as PaddleSeg's, a 3x3 convolution over the pyramid, and a second, auxiliary head on the third stage whose loss counts
   0.4. Both losses are means over the labelled pixels here; mmsegmentation divides by all pixels.
   Source: Chen et al., "Encoder-decoder with atrous separable convolution" (arXiv 1802.02611), section 3; the network that
   mmsegmentation 0.x prints at the head of the published logs (configuration deeplabv3plus_r50-d8_512x1024_80k), for names,
   widths, dilations (1, then 2; 2, then 4; 12, 24, 36), dropout of channels and the classifiers' first weights. */
#include "base/base.h"

#include "models/segment.h"

#define STAGES           4
#define EXPANSION        4
#define HEAD_WIDTH       512
#define LOW_WIDTH        48
#define AUXILIARY_WIDTH  256
#define AUXILIARY_WEIGHT 0.4
#define DROPOUT_RATE     0.1
#define CLASSIFIER_STD   0.01

static const int BLOCKS[STAGES] = {3, 4, 6, 3};

static const char *sub(struct graph *graph, const char *owner, const char *part)
{
    return arena_printf(graph->arena, "%s.%s", owner, part);
}

static int conv_bn(struct graph *graph, int x, struct conv_opts conv, const char *bn, bool has_relu)
{
    x = graph_conv(graph, x, &conv);
    return graph_bn(graph, x, &(struct bn_opts){.name = bn, .has_relu = has_relu});
}

/* ---- backbone ---- */

static int stem(struct graph *graph, int x)
{
    static const int64_t widths[3] = {32, 32, 64};
    for (int i = 0; i < 3; i++) {
        /* A convolution, a batch norm and a ReLU each: numbers 0, 1, 3, 4, 6, 7. */
        x = conv_bn(
            graph, x,
            (struct conv_opts){.name = arena_printf(graph->arena, "backbone.stem.%d", 3 * i),
                               .out_channels = widths[i],
                               .kernel = 3,
                               .stride = i == 0 ? 2 : 1,
                               .pad = 1},
            arena_printf(graph->arena, "backbone.stem.%d", 3 * i + 1), true);
    }
    return graph_maxpool(graph, x, 3, 2, 1);
}

struct block {
    int64_t width, stride, dilation;
};

/* The first block of a dilated stage has the dilation of the stage before. */
static struct block block_of(int stage, int idx)
{
    static const int64_t dilations[STAGES] = {1, 1, 2, 4};
    int64_t dilation = stage > 1 && idx == 0 ? dilations[stage] / 2 : dilations[stage];
    return (struct block){.width = (int64_t)64 << stage,
                          .stride = stage == 1 && idx == 0 ? 2 : 1,
                          .dilation = dilation};
}

static int bottleneck(struct graph *graph, int x, const char *name, const struct block *block,
                      bool has_projection)
{
    int64_t out = block->width * EXPANSION;
    int y =
        conv_bn(graph, x,
                (struct conv_opts){
                    .name = sub(graph, name, "conv1"), .out_channels = block->width, .kernel = 1},
                sub(graph, name, "bn1"), true);
    y = conv_bn(graph, y,
                (struct conv_opts){.name = sub(graph, name, "conv2"),
                                   .out_channels = block->width,
                                   .kernel = 3,
                                   .stride = block->stride,
                                   .pad = block->dilation,
                                   .dilation = block->dilation},
                sub(graph, name, "bn2"), true);
    y = conv_bn(
        graph, y,
        (struct conv_opts){.name = sub(graph, name, "conv3"), .out_channels = out, .kernel = 1},
        sub(graph, name, "bn3"), false);
    if (has_projection) {
        x = conv_bn(graph, x,
                    (struct conv_opts){.name = sub(graph, name, "downsample.0"),
                                       .out_channels = out,
                                       .kernel = 1,
                                       .stride = block->stride},
                    sub(graph, name, "downsample.1"), false);
    }
    return graph_add(graph, y, x, true);
}

/* The result of each stage. */
static void backbone(struct graph *graph, int x, int ret_stages[STAGES])
{
    x = stem(graph, x);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < BLOCKS[stage]; i++) {
            const char *name = arena_printf(graph->arena, "backbone.layer%d.%d", stage + 1, i);
            const struct block block = block_of(stage, i);
            x = bottleneck(graph, x, name, &block, i == 0);
        }
        ret_stages[stage] = x;
    }
}

/* ---- heads ---- */

/* OWNER.conv, OWNER.bn, ReLU; conv.name is ignored. */
static int unit(struct graph *graph, int x, const char *owner, struct conv_opts conv)
{
    conv.name = sub(graph, owner, "conv");
    return conv_bn(graph, x, conv, sub(graph, owner, "bn"), true);
}

static int unit1(struct graph *graph, int x, const char *owner, int64_t width)
{
    return unit(graph, x, owner, (struct conv_opts){.out_channels = width, .kernel = 1});
}

static int separable(struct graph *graph, int x, const char *owner, int64_t dilation)
{
    int64_t channels = x == NO_VALUE ? 1 : graph->values[x].shape.dim[1];
    x = unit(graph, x, sub(graph, owner, "depthwise_conv"),
             (struct conv_opts){.out_channels = channels,
                                .kernel = 3,
                                .pad = dilation,
                                .dilation = dilation,
                                .groups = channels});
    return unit1(graph, x, sub(graph, owner, "pointwise_conv"), HEAD_WIDTH);
}

static int pyramid(struct graph *graph, int x)
{
    static const int64_t dilations[3] = {12, 24, 36};
    if (x == NO_VALUE) {
        return NO_VALUE;
    }
    const struct shape *shape = &graph->values[x].shape;
    int64_t whole = shape->dim[2] > shape->dim[3] ? shape->dim[2] : shape->dim[3];
    int pooled =
        unit1(graph, graph_avgpool(graph, x, whole), "decode_head.image_pool.1", HEAD_WIDTH);
    int parts[5] = {segment_resize_like(graph, pooled, x),
                    unit1(graph, x, "decode_head.aspp_modules.0", HEAD_WIDTH)};
    for (int i = 0; i < 3; i++) {
        const char *name = arena_printf(graph->arena, "decode_head.aspp_modules.%d", i + 1);
        parts[i + 2] = separable(graph, x, name, dilations[i]);
    }
    return unit(graph, graph_concat(graph, parts, 5), "decode_head.bottleneck",
                (struct conv_opts){.out_channels = HEAD_WIDTH, .kernel = 3, .pad = 1});
}

/* Dropout of channels, then OWNER.conv_seg. */
static int classify(struct graph *graph, int x, int step, const char *owner)
{
    x = step == NO_VALUE ? x : graph_dropout_channels(graph, x, step, DROPOUT_RATE);
    return graph_conv(graph, x,
                      &(struct conv_opts){.name = sub(graph, owner, "conv_seg"),
                                          .out_channels = CITYSCAPES_CLASSES,
                                          .kernel = 1,
                                          .has_bias = true,
                                          .init_std = CLASSIFIER_STD});
}

static int decode_head(struct graph *graph, int x, int low, int step)
{
    x = pyramid(graph, x);
    low = unit1(graph, low, "decode_head.c1_bottleneck", LOW_WIDTH);
    int both[2] = {segment_resize_like(graph, x, low), low};
    x = graph_concat(graph, both, 2);
    x = separable(graph, x, "decode_head.sep_bottleneck.0", 1);
    x = separable(graph, x, "decode_head.sep_bottleneck.1", 1);
    return classify(graph, x, step, "decode_head");
}

static int auxiliary_head(struct graph *graph, int x, int step)
{
    x = unit(graph, x, "auxiliary_head.convs.0",
             (struct conv_opts){.out_channels = AUXILIARY_WIDTH, .kernel = 3, .pad = 1});
    return classify(graph, x, step, "auxiliary_head");
}

static void build(struct graph *graph, const struct model_opts *opts)
{
    int stages[STAGES];
    int x =
        graph_input(graph, "input", SHAPE(opts->batch, 3, opts->height, opts->width), graph->dtype);
    int labels =
        graph_input(graph, "labels", SHAPE(opts->batch, opts->height, opts->width), DT_I64);
    int step = opts->has_dropout ? graph_input(graph, "step", SHAPE_SCALAR, DT_I64) : NO_VALUE;
    backbone(graph, x, stages);
    segment_loss(graph, decode_head(graph, stages[3], stages[0], step), labels, opts);
    segment_auxiliary_loss(graph, auxiliary_head(graph, stages[2], step), labels, opts,
                           AUXILIARY_WEIGHT);
}

const struct model model_deeplabv3p_mmseg = {
    .name = "deeplabv3p_mmseg",
    .n_classes = CITYSCAPES_CLASSES,
    .ignore_label = CITYSCAPES_IGNORED,
    .height_default = 512,
    .width_default = 1024,
    .image_min = 1,
    .build = build,
};
