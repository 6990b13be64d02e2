/* SPDX-License-Identifier: Apache-2.0 */
/* HRNet-W18 with a fully convolutional head for 19 classes: two to four parallel resolutions that exchange their results
   after each module. Parameter names and the statistics' names are PaddleSeg's. Source: Wang et al., "Deep high-resolution
   representation learning for visual recognition" (arXiv 1908.07919), section 3 and table 1; PaddleSeg at f3cec79,
   backbones/hrnet.py and fcn.py, for names, padding 1, upsampling without aligned corners, a head without biases and the
   head's first weights. */
#include "base/base.h"

#include "models/segment.h"

#define BRANCHES_MAX 4
#define BLOCKS       4 /* of a branch in a module, and bottlenecks of the first stage */
#define STEM_WIDTH   64
#define BOTTLENECK   256 /* output channels of a bottleneck */
#define HEAD_STD     0.001

static const int64_t WIDTHS[BRANCHES_MAX] = {18, 36, 72, 144};

static int conv3(struct graph *graph, int x, const char *owner, int64_t width, int64_t stride,
                 bool has_relu)
{
    return paddle_conv_bn(
        graph, x, owner,
        (struct conv_opts){.out_channels = width, .kernel = 3, .stride = stride, .pad = 1},
        has_relu);
}

static int conv1(struct graph *graph, int x, const char *owner, int64_t width, bool has_relu)
{
    return paddle_conv_bn(graph, x, owner, (struct conv_opts){.out_channels = width, .kernel = 1},
                          has_relu);
}

/* ---- the first stage: bottlenecks at a quarter of the resolution ---- */

static int bottleneck(struct graph *graph, int x, int idx)
{
    struct arena *arena = graph->arena;
    const char *name = arena_printf(arena, "backbone.la1.bb_layer2_%d", idx + 1);
    int y = conv1(graph, x, arena_printf(arena, "%s.conv1", name), STEM_WIDTH, true);
    y = conv3(graph, y, arena_printf(arena, "%s.conv2", name), STEM_WIDTH, 1, true);
    y = conv1(graph, y, arena_printf(arena, "%s.conv3", name), BOTTLENECK, false);
    if (idx == 0) {
        const char *down = arena_printf(arena, "%s.conv_down", name);
        x = conv1(graph, x, down, BOTTLENECK, false);
    }
    return graph_add(graph, y, x, true);
}

/* ---- modules: branches, then the exchange between them ---- */

/* The resolutions a stage works on, finest first, each half as high and wide as the one before (rounded up). */
struct branches {
    int n;
    int values[BRANCHES_MAX];
};

static int basic_block(struct graph *graph, int x, const char *name, int64_t width)
{
    int y = conv3(graph, x, arena_printf(graph->arena, "%s.conv1", name), width, 1, true);
    y = conv3(graph, y, arena_printf(graph->arena, "%s.conv2", name), width, 1, false);
    return graph_add(graph, y, x, true);
}

/* Contribution of branch `from` to the finer branch `to`. */
static int up(struct graph *graph, const struct branches *in, int from, int to, const char *name)
{
    int y = conv1(graph, in->values[from], name, WIDTHS[to], false);
    return segment_resize_like(graph, y, in->values[to]);
}

/* Contribution of branch `from` to the coarser branch `to`: half the size at a time, the width changes last. */
static int down(struct graph *graph, const struct branches *in, int from, int to, const char *name)
{
    int y = in->values[from];
    for (int step = 1; step <= to - from; step++) {
        bool is_last = step == to - from;
        const char *owner = arena_printf(graph->arena, "%s_%d", name, step);
        y = conv3(graph, y, owner, WIDTHS[is_last ? to : from], 2, !is_last);
    }
    return y;
}

static int exchange(struct graph *graph, const struct branches *in, int to, const char *module,
                    const char *path)
{
    int last = to == in->n - 1 ? in->n - 2 : in->n - 1;
    int sum = in->values[to];
    for (int from = 0; from < in->n; from++) {
        const char *name = arena_printf(graph->arena, "%s.fuse_func.residual_%s_layer_%d_%d", path,
                                        module, to + 1, from + 1);
        if (from != to) {
            int part = from > to ? up(graph, in, from, to, name) : down(graph, in, from, to, name);
            sum = graph_add(graph, sum, part, from == last);
        }
    }
    return sum;
}

static struct branches module(struct graph *graph, struct branches in, int stage, int idx)
{
    struct arena *arena = graph->arena;
    const char *name = arena_printf(arena, "st%d_%d", stage, idx + 1);
    const char *path = arena_printf(arena, "backbone.st%d.stage_%s", stage, name);
    for (int branch = 0; branch < in.n; branch++) {
        for (int block = 0; block < BLOCKS; block++) {
            const char *owner = arena_printf(arena, "%s.branches_func.bb_%s_branch_layer_%d_%d",
                                             path, name, branch + 1, block + 1);
            in.values[branch] = basic_block(graph, in.values[branch], owner, WIDTHS[branch]);
        }
    }
    struct branches out = {.n = in.n};
    for (int to = 0; to < in.n; to++) {
        out.values[to] = exchange(graph, &in, to, name, path);
    }
    return out;
}

static struct branches stage(struct graph *graph, struct branches x, int number, int n_modules)
{
    for (int i = 0; i < n_modules; i++) {
        x = module(graph, x, number, i);
    }
    return x;
}

/* One more branch, at half the resolution of the coarsest. */
static struct branches widen(struct graph *graph, struct branches x, int number)
{
    const char *name = arena_printf(graph->arena, "backbone.tr%d.transition_tr%d_layer_%d", number,
                                    number, x.n + 1);
    x.values[x.n] = conv3(graph, x.values[x.n - 1], name, WIDTHS[x.n], 2, true);
    x.n++;
    return x;
}

static struct branches backbone(struct graph *graph, int x)
{
    static const char *const first = "backbone.tr1.transition_tr1_layer_";
    x = conv3(graph, x, "backbone.conv_layer1_1", STEM_WIDTH, 2, true);
    x = conv3(graph, x, "backbone.conv_layer1_2", STEM_WIDTH, 2, true);
    for (int i = 0; i < BLOCKS; i++) {
        x = bottleneck(graph, x, i);
    }
    struct branches branches = {.n = 2};
    for (int i = 0; i < branches.n; i++) {
        const char *name = arena_printf(graph->arena, "%s%d", first, i + 1);
        branches.values[i] = conv3(graph, x, name, WIDTHS[i], i + 1, true);
    }
    branches = stage(graph, branches, 2, 1);
    branches = stage(graph, widen(graph, branches, 2), 3, 4);
    return stage(graph, widen(graph, branches, 3), 4, 3);
}

/* ---- the head ---- */

/* All branches at the finest resolution, in one tensor. */
static int gather(struct graph *graph, const struct branches *branches)
{
    int parts[BRANCHES_MAX] = {branches->values[0]};
    for (int i = 1; i < branches->n; i++) {
        parts[i] = segment_resize_like(graph, branches->values[i], parts[0]);
    }
    return graph_concat(graph, parts, branches->n);
}

static void build(struct graph *graph, const struct model_opts *opts)
{
    int x =
        graph_input(graph, "input", SHAPE(opts->batch, 3, opts->height, opts->width), graph->dtype);
    int labels =
        graph_input(graph, "labels", SHAPE(opts->batch, opts->height, opts->width), DT_I64);
    struct branches branches = backbone(graph, x);
    int64_t width = WIDTHS[0] + WIDTHS[1] + WIDTHS[2] + WIDTHS[3];
    x = gather(graph, &branches);
    x = paddle_conv_bn(graph, x, "head.conv_1",
                       (struct conv_opts){.out_channels = width, .kernel = 1, .init_std = HEAD_STD},
                       true);
    x = graph_conv(graph, x,
                   &(struct conv_opts){.name = "head.cls",
                                       .out_channels = CITYSCAPES_CLASSES,
                                       .kernel = 1,
                                       .init_std = HEAD_STD});
    segment_loss(graph, x, labels, opts);
}

const struct model model_hrnet_w18 = {
    .name = "hrnet_w18",
    .n_classes = CITYSCAPES_CLASSES,
    .ignore_label = CITYSCAPES_IGNORED,
    .height_default = 512,
    .width_default = 1024,
    .image_min = 1,
    .build = build,
};
