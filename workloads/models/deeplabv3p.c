/* SPDX-License-Identifier: Apache-2.0 */
/* DeepLabV3+ on ResNet-50-vd at output stride 8, for 19 classes, as PaddleSeg builds it and names it: atrous separable
   pyramid, decoder on the first stage's output. Convolutions of the head have biases although batch norms follow.
   Source: Chen et al., "Encoder-decoder with atrous separable convolution" (arXiv 1802.02611), section 3; He et al., "Bag of
   tricks" (arXiv 1812.01187), section 4, for the vd backbone; PaddleSeg at 1f49e5c, models/deeplab.py,
   backbones/resnet_vd.py, layers/pyramid_pool.py, for names, dilations (2; 4 times 1, 2, 4; 12, 24, 36) and widths. */
#include "base/base.h"

#include "models/segment.h"

#define STAGES        4
#define EXPANSION     4
#define PYRAMID_WIDTH 256
#define LOW_WIDTH     48
#define DROPOUT_RATE  0.1
#define CLASSIFIER_STD                                                                             \
    0.088388347648318447 /* sqrt(2 / 256), Source: Paddle's default for Conv2D: He's rule by fan-in */

static const int BLOCKS[STAGES] = {3, 4, 6, 3};

static const char *sub(struct graph *graph, const char *owner, const char *part)
{
    return arena_printf(graph->arena, "%s.%s", owner, part);
}

/* ---- backbone ---- */

struct block {
    int64_t width, stride, dilation;
    bool has_projection;
};

static struct block block_of(int stage, int idx)
{
    static const int64_t multi_grid[3] = {1, 2, 4};
    int64_t dilation = stage == 2 ? 2 : stage == 3 ? 4 * multi_grid[idx] : 1;
    return (struct block){.width = (int64_t)64 << stage,
                          .stride = stage == 1 && idx == 0 ? 2 : 1,
                          .dilation = dilation,
                          .has_projection = idx == 0};
}

static int conv1(struct graph *graph, int x, const char *owner, int64_t width, bool has_relu)
{
    return paddle_conv_bn(graph, x, owner, (struct conv_opts){.out_channels = width, .kernel = 1},
                          has_relu);
}

static int bottleneck(struct graph *graph, int x, const char *name, const struct block *block)
{
    int y = conv1(graph, x, sub(graph, name, "conv0"), block->width, true);
    y = paddle_conv_bn(graph, y, sub(graph, name, "conv1"),
                       (struct conv_opts){.out_channels = block->width,
                                          .kernel = 3,
                                          .stride = block->stride,
                                          .pad = block->dilation,
                                          .dilation = block->dilation},
                       true);
    y = conv1(graph, y, sub(graph, name, "conv2"), block->width * EXPANSION, false);
    int shortcut = x;
    if (block->has_projection) {
        /* vd: where the block halves the image, the shortcut does it by an average of 2x2. */
        shortcut = block->stride == 2 ? graph_avgpool(graph, x, 2) : x;
        shortcut =
            conv1(graph, shortcut, sub(graph, name, "short"), block->width * EXPANSION, false);
    }
    return graph_add(graph, shortcut, y, true);
}

static int stem(struct graph *graph, int x)
{
    static const int64_t widths[3] = {32, 32, 64};
    for (int i = 0; i < 3; i++) {
        const char *name = arena_printf(graph->arena, "backbone.conv1_%d", i + 1);
        x = paddle_conv_bn(
            graph, x, name,
            (struct conv_opts){
                .out_channels = widths[i], .kernel = 3, .stride = i == 0 ? 2 : 1, .pad = 1},
            true);
    }
    return graph_maxpool(graph, x, 3, 2, 1);
}

/* The last stage's result; the first one's goes to *ret_low. */
static int backbone(struct graph *graph, int x, int *ret_low)
{
    x = stem(graph, x);
    for (int stage = 0; stage < STAGES; stage++) {
        for (int i = 0; i < BLOCKS[stage]; i++) {
            const char *name = arena_printf(graph->arena, "backbone.bb_%d_%d", stage, i);
            const struct block block = block_of(stage, i);
            x = bottleneck(graph, x, name, &block);
        }
        *ret_low = stage == 0 ? x : *ret_low;
    }
    return x;
}

/* ---- head ---- */

static int biased_conv1(struct graph *graph, int x, const char *owner, int64_t width)
{
    return paddle_conv_bn(graph, x, owner,
                          (struct conv_opts){.out_channels = width, .kernel = 1, .has_bias = true},
                          true);
}

/* One 3x3 window a channel, without ReLU, then 1x1 over the channels. The second part's name is spelled as in
   PaddleSeg. */
static int separable(struct graph *graph, int x, const char *owner, int64_t width, int64_t dilation)
{
    int64_t channels = x == NO_VALUE ? 1 : graph->values[x].shape.dim[1];
    x = paddle_conv_bn(graph, x, sub(graph, owner, "depthwise_conv"),
                       (struct conv_opts){.out_channels = channels,
                                          .kernel = 3,
                                          .pad = dilation,
                                          .dilation = dilation,
                                          .groups = channels,
                                          .has_bias = true},
                       false);
    return biased_conv1(graph, x, sub(graph, owner, "piontwise_conv"), width);
}

static int pyramid(struct graph *graph, int x, int step)
{
    static const int64_t dilations[3] = {12, 24, 36};
    int parts[5] = {biased_conv1(graph, x, "head.aspp.aspp_blocks.0", PYRAMID_WIDTH)};
    for (int i = 0; i < 3; i++) {
        const char *name = arena_printf(graph->arena, "head.aspp.aspp_blocks.%d", i + 1);
        parts[i + 1] = separable(graph, x, name, PYRAMID_WIDTH, dilations[i]);
    }
    if (x == NO_VALUE) {
        return NO_VALUE;
    }
    const struct shape *shape = &graph->values[x].shape;
    int64_t whole = shape->dim[2] > shape->dim[3] ? shape->dim[2] : shape->dim[3];
    int pooled = conv1(graph, graph_avgpool(graph, x, whole), "head.aspp.global_avg_pool.1",
                       PYRAMID_WIDTH, true);
    parts[4] = segment_resize_like(graph, pooled, x);
    int y =
        biased_conv1(graph, graph_concat(graph, parts, 5), "head.aspp.conv_bn_relu", PYRAMID_WIDTH);
    return step == NO_VALUE ? y : graph_dropout(graph, y, step, DROPOUT_RATE);
}

static int decoder(struct graph *graph, int x, int low)
{
    low = biased_conv1(graph, low, "head.decoder.conv_bn_relu1", LOW_WIDTH);
    int both[2] = {segment_resize_like(graph, x, low), low};
    x = graph_concat(graph, both, 2);
    x = separable(graph, x, "head.decoder.conv_bn_relu2", PYRAMID_WIDTH, 1);
    x = separable(graph, x, "head.decoder.conv_bn_relu3", PYRAMID_WIDTH, 1);
    return graph_conv(graph, x,
                      &(struct conv_opts){.name = "head.decoder.conv",
                                          .out_channels = CITYSCAPES_CLASSES,
                                          .kernel = 1,
                                          .has_bias = true,
                                          .init_std = CLASSIFIER_STD});
}

static void build(struct graph *graph, const struct model_opts *opts)
{
    int low = NO_VALUE;
    int x =
        graph_input(graph, "input", SHAPE(opts->batch, 3, opts->height, opts->width), graph->dtype);
    int labels =
        graph_input(graph, "labels", SHAPE(opts->batch, opts->height, opts->width), DT_I64);
    int step = opts->has_dropout ? graph_input(graph, "step", SHAPE_SCALAR, DT_I64) : NO_VALUE;
    x = pyramid(graph, backbone(graph, x, &low), step);
    segment_loss(graph, decoder(graph, x, low), labels, opts);
}

const struct model model_deeplabv3p = {
    .name = "deeplabv3p",
    .n_classes = CITYSCAPES_CLASSES,
    .ignore_label = CITYSCAPES_IGNORED,
    .height_default = 512,
    .width_default = 1024,
    .image_min = 1,
    .build = build,
};
