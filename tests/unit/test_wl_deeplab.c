/* SPDX-License-Identifier: Apache-2.0 */
/* DeepLabV3+ as a whole: its size, its names, its dilations, its gradient, training on a fixed batch. */
#include "wl_gradient.h"

#include "train/train.h"

static struct conv_geom conv_of(const struct graph *graph, const char *weight)
{
    int id = graph_find(graph, weight);
    for (int i = 0; i < graph->n_ops; i++) {
        if (id != NO_VALUE && graph->ops[i].kind == OP_CONV && graph->ops[i].in[1] == id) {
            return graph->ops[i].geom.conv;
        }
    }
    fail_msg("no convolution has %s", weight);
    return (struct conv_geom){0};
}

/* Source of the count: PaddleSeg's log of the benchmarked run prints 26,794,243 parameters, statistics included. */
TEST(deeplab_has_its_published_size)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_deeplabv3p.build(graph, &(struct model_opts){.batch = 2, .height = 512, .width = 1024});
    PASSES(graph_finish(graph, ERR));
    assert_int_equal(graph_n_trainable(graph), 26723395);
    assert_int_equal(graph_n_running(graph), 70848);
    assert_int_equal(graph_n_trainable(graph) + graph_n_running(graph), 26794243);
    assert_int_equal(graph_macs(graph) / 2, 227585032192);
    assert_int_equal(graph_find(graph, "step"), NO_VALUE); /* dropout only where it is asked for */
}

/* Source of the count: the tensors of the network that mmsegmentation's published log prints. The two models share one name
   in the reports; this one has 1.6 times the parameters and the cost. */
TEST(mmsegs_deeplab_is_another_network)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_deeplabv3p_mmseg.build(
        graph, &(struct model_opts){.batch = 2, .height = 512, .width = 1024, .has_dropout = true});
    PASSES(graph_finish(graph, ERR));
    assert_int_equal(graph_n_trainable(graph), 43589878);
    assert_int_equal(graph_macs(graph) / 2, 371682967552);
    assert_int_equal(conv_of(graph, "backbone.layer3.0.conv2.weight").dil_h, 1);
    assert_int_equal(conv_of(graph, "backbone.layer3.1.conv2.weight").dil_h, 2);
    assert_int_equal(conv_of(graph, "backbone.layer4.0.conv2.weight").dil_h, 2);
    assert_int_equal(conv_of(graph, "backbone.layer4.1.conv2.weight").dil_h, 4);
    assert_int_equal(conv_of(graph, "backbone.layer2.0.downsample.0.weight").stride_h, 2);
    assert_int_equal(conv_of(graph, "decode_head.bottleneck.conv.weight").r, 3);
    int n_dropout = 0;
    int n_loss = 0;
    for (int i = 0; i < graph->n_ops; i++) {
        const struct op *op = &graph->ops[i];
        n_dropout += op->kind == OP_DROPOUT && op->geom.dropout.run > 1;
        n_loss += op->kind == OP_LOSS;
    }
    assert_int_equal(n_dropout, 2);
    assert_int_equal(n_loss, 2);
}

TEST(deeplab_has_paddlesegs_names_and_dilations)
{
    static const struct {
        const char *weight;
        int64_t dilation, stride, groups, height;
    } cases[] = {
        {"backbone.conv1_1._conv.weight", 1, 2, 1, 128},
        {"backbone.bb_1_0.conv1._conv.weight", 1, 2, 1, 32},
        {"backbone.bb_1_0.short._conv.weight", 1, 1, 1, 32},
        {"backbone.bb_2_0.conv1._conv.weight", 2, 1, 1, 32},
        {"backbone.bb_2_5.conv1._conv.weight", 2, 1, 1, 32},
        {"backbone.bb_3_0.conv1._conv.weight", 4, 1, 1, 32},
        {"backbone.bb_3_1.conv1._conv.weight", 8, 1, 1, 32},
        {"backbone.bb_3_2.conv1._conv.weight", 16, 1, 1, 32},
        {"head.aspp.aspp_blocks.0._conv.weight", 1, 1, 1, 32},
        {"head.aspp.aspp_blocks.1.depthwise_conv._conv.weight", 12, 1, 2048, 32},
        {"head.aspp.aspp_blocks.2.depthwise_conv._conv.weight", 24, 1, 2048, 32},
        {"head.aspp.aspp_blocks.3.depthwise_conv._conv.weight", 36, 1, 2048, 32},
        {"head.aspp.aspp_blocks.3.piontwise_conv._conv.weight", 1, 1, 1, 32},
        {"head.aspp.global_avg_pool.1._conv.weight", 1, 1, 1, 1},
        {"head.decoder.conv_bn_relu2.depthwise_conv._conv.weight", 1, 1, 304, 64},
        {"head.decoder.conv.weight", 1, 1, 1, 64},
    };
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_deeplabv3p.build(
        graph, &(struct model_opts){.batch = 2, .height = 256, .width = 320, .has_dropout = true});
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct conv_geom g = conv_of(graph, cases[i].weight);
        bool fits = g.dil_h == cases[i].dilation && g.stride_h == cases[i].stride &&
                    g.groups == cases[i].groups && g.p == cases[i].height;
        if (!fits) {
            fail_msg("%s: dilation %d, stride %d, groups %d, %d rows", cases[i].weight,
                     (int)g.dil_h, (int)g.stride_h, (int)g.groups, (int)g.p);
        }
    }
    assert_true(graph_find(graph, "head.aspp.aspp_blocks.0._conv.bias") != NO_VALUE);
    assert_int_equal(graph_find(graph, "head.aspp.global_avg_pool.1._conv.bias"), NO_VALUE);
    int n_dropout = 0;
    for (int i = 0; i < graph->n_ops; i++) {
        n_dropout += graph->ops[i].kind == OP_DROPOUT;
    }
    assert_int_equal(n_dropout, 1);
}

TEST(deeplab_gradient_along_random_directions)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    model_deeplabv3p.build(
        f.graph, &(struct model_opts){.batch = 3, .height = 17, .width = 21, .has_dropout = true});
    fixture_ready(&f, 11);
    fill_spread(&f, graph_find(f.graph, "input"), 5);
    fill_labels(&f, model_deeplabv3p.n_classes, 5);
    set_step(&f.net, 3);
    assert_true(best_directional_error(&f, 1000, 1.0) < 1e-5);
}

TEST(loss_falls_on_a_fixed_batch)
{
    FIXTURE(f, DT_F32, CPU_PLAIN, 2);
    model_deeplabv3p.build(
        f.graph, &(struct model_opts){.batch = 2, .height = 32, .width = 48, .has_dropout = true});
    fixture_ready(&f, 3);
    synthetic_batch(&f.net, &model_deeplabv3p, 3, 0);
    double first = 0.0;
    double last = 0.0;
    f.net.update.rule.weight_decay = 4e-5;
    for (int64_t step = 1; step <= 4; step++) {
        set_step(&f.net, step);
        last = loss_now(&f);
        first = step == 1 ? last : first;
        net_update(&f.net, 0.01);
    }
    assert_true(first > 2.0 && first < 6.0); /* near ln(19) = 2.9 before training */
    assert_true(last < first - 0.1);
}

/* The image's average is one value a sample: with one sample a batch norm has no variance. */
TEST(a_batch_of_one_is_refused)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_deeplabv3p.build(graph, &(struct model_opts){.batch = 1, .height = 64, .width = 64});
    FAILS(graph_finish(graph, ERR), ERR_USAGE);
    assert_non_null(
        strstr(ERR->msg, "head.aspp.global_avg_pool.1._batch_norm: one value per channel"));
}
