/* SPDX-License-Identifier: Apache-2.0 */
/* ResNet-50 v1.5: the bottleneck's stride sits on its 3x3 convolution. Parameter names are torchvision's.
   Source: He et al., "Deep residual learning for image recognition", table 1; torchvision 0.14, models/resnet.py, for
   the place of the stride and the names. */
#include "base/base.h"

#include "models/model.h"

#define CLASSES   1000
#define EXPANSION 4

static const char *sub(struct graph *graph, const char *owner, const char *part)
{
    return arena_printf(graph->arena, "%s.%s", owner, part);
}

/* OWNER.convI, then OWNER.bnI. */
static int conv_bn(struct graph *graph, int x, const char *owner, int idx, struct conv_opts conv,
                   bool has_relu)
{
    conv.name = arena_printf(graph->arena, "%sconv%d", owner, idx);
    x = graph_conv(graph, x, &conv);
    const char *bn = arena_printf(graph->arena, "%sbn%d", owner, idx);
    return graph_bn(graph, x, &(struct bn_opts){.name = bn, .has_relu = has_relu});
}

static int bottleneck(struct graph *graph, int x, const char *name, int64_t width, int64_t stride,
                      bool has_projection)
{
    const char *owner = arena_printf(graph->arena, "%s.", name);
    int y =
        conv_bn(graph, x, owner, 1, (struct conv_opts){.out_channels = width, .kernel = 1}, true);
    y = conv_bn(graph, y, owner, 2,
                (struct conv_opts){.out_channels = width, .kernel = 3, .stride = stride, .pad = 1},
                true);
    y = conv_bn(graph, y, owner, 3,
                (struct conv_opts){.out_channels = width * EXPANSION, .kernel = 1}, false);
    int shortcut = x;
    if (has_projection) {
        shortcut = graph_conv(graph, x,
                              &(struct conv_opts){.name = sub(graph, name, "downsample.0"),
                                                  .out_channels = width * EXPANSION,
                                                  .kernel = 1,
                                                  .stride = stride});
        shortcut =
            graph_bn(graph, shortcut, &(struct bn_opts){.name = sub(graph, name, "downsample.1")});
    }
    return graph_add(graph, y, shortcut, true);
}

static void build(struct graph *graph, const struct model_opts *opts)
{
    static const int blocks[4] = {3, 4, 6, 3};
    int x =
        graph_input(graph, "input", SHAPE(opts->batch, 3, opts->height, opts->width), graph->dtype);
    int labels = graph_input(graph, "labels", SHAPE(opts->batch), DT_I64);
    x = conv_bn(graph, x, "", 1,
                (struct conv_opts){.out_channels = 64, .kernel = 7, .stride = 2, .pad = 3}, true);
    x = graph_maxpool(graph, x, 3, 2, 1);
    for (int stage = 0; stage < 4; stage++) {
        for (int block = 0; block < blocks[stage]; block++) {
            const char *name = arena_printf(graph->arena, "layer%d.%d", stage + 1, block);
            int64_t stride = stage > 0 && block == 0 ? 2 : 1;
            x = bottleneck(graph, x, name, (int64_t)64 << stage, stride, block == 0);
        }
    }
    x = graph_global_avgpool(graph, x);
    x = graph_linear(graph, x, "fc", CLASSES);
    graph_output(graph, "logits", x);
    int loss = graph_loss(graph, x, labels,
                          &(struct loss_opts){.label_smoothing = opts->label_smoothing,
                                              .ignore_label = LOSS_IGNORE_NONE});
    graph_output(graph, "loss", loss);
}

const struct model model_resnet50 = {
    .name = "resnet50",
    .n_classes = CLASSES,
    .ignore_label = LOSS_IGNORE_NONE,
    .height_default = 224,
    .width_default = 224,
    .image_min = 1,
    .build = build,
};
