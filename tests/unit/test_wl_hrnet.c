/* SPDX-License-Identifier: Apache-2.0 */
/* HRNet-W18 as a whole: its size, its names, its gradient, sizes that do not divide, training on a fixed batch. */
#include "wl_gradient.h"

#include "train/train.h"

static void hrnet_init(struct fixture *f, enum dtype dtype, enum cpu_flavour flavour, int n_threads,
                       const struct model_opts *opts)
{
    fixture_init(f, dtype, flavour, n_threads);
    model_hrnet_w18.build(f->graph, opts);
    fixture_ready(f, 11);
    fill_spread(f, graph_find(f->graph, "input"), 5);
    fill_labels(f, model_hrnet_w18.n_classes, 5);
}

static void assert_shape(const struct graph *graph, const char *name, struct shape want)
{
    int id = graph_find(graph, name);
    if (id == NO_VALUE || !shape_eq(&graph->values[id].shape, &want)) {
        char text[SHAPE_TEXT_MAX];
        shape_text(&want, text);
        fail_msg("%s is not there or is not %s", name, text);
    }
}

/* Source of the counts: PaddleSeg's log of the benchmarked run prints 9,675,306 parameters, statistics included; 17,238
   channels of 306 batch norms. */
TEST(hrnet_has_its_published_size)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_hrnet_w18.build(graph, &(struct model_opts){.batch = 1, .height = 512, .width = 1024});
    PASSES(graph_finish(graph, ERR));
    assert_int_equal(graph_n_trainable(graph), 9640830);
    assert_int_equal(graph_n_running(graph), 34476);
    assert_int_equal(graph_n_trainable(graph) + graph_n_running(graph), 9675306);
    assert_int_equal(graph_macs(graph), 36850262016);
    int n_kind[OP_KIND_COUNT] = {0};
    for (int i = 0; i < graph->n_ops; i++) {
        n_kind[graph->ops[i].kind]++;
    }
    assert_int_equal(n_kind[OP_CONV], 307);
    assert_int_equal(n_kind[OP_BN], 306);
    assert_int_equal(n_kind[OP_UPSAMPLE], 31 + 3 + 1);
    assert_int_equal(n_kind[OP_CONCAT], 1);
}

TEST(hrnet_has_paddlesegs_names)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_hrnet_w18.build(graph, &(struct model_opts){.batch = 1, .height = 64, .width = 128});
    assert_shape(graph, "backbone.conv_layer1_1._conv.weight", SHAPE(64, 3, 3, 3));
    assert_shape(graph, "backbone.la1.bb_layer2_1.conv_down._batch_norm._variance", SHAPE(256));
    assert_shape(graph, "backbone.tr1.transition_tr1_layer_2._conv.weight", SHAPE(36, 256, 3, 3));
    assert_shape(
        graph,
        "backbone.st4.stage_st4_3.branches_func.bb_st4_3_branch_layer_4_4.conv2._conv.weight",
        SHAPE(144, 144, 3, 3));
    assert_shape(graph, "backbone.st2.stage_st2_1.fuse_func.residual_st2_1_layer_1_2._conv.weight",
                 SHAPE(18, 36, 1, 1));
    /* Down by three steps: the width changes with the last. */
    assert_shape(graph,
                 "backbone.st4.stage_st4_1.fuse_func.residual_st4_1_layer_4_1_2._conv.weight",
                 SHAPE(18, 18, 3, 3));
    assert_shape(graph,
                 "backbone.st4.stage_st4_1.fuse_func.residual_st4_1_layer_4_1_3._conv.weight",
                 SHAPE(144, 18, 3, 3));
    assert_shape(graph, "head.conv_1._batch_norm._mean", SHAPE(270));
    assert_shape(graph, "head.cls.weight", SHAPE(19, 270, 1, 1));
    assert_shape(graph, "logits", SHAPE(1, 19, 64, 128));
    assert_int_equal(graph_find(graph, "head.cls.bias"), NO_VALUE);
}

/* 37 x 53: 10 x 14, 5 x 7, 3 x 4 and 2 x 2 pixels at the four resolutions, none of them half of the previous one. */
TEST(hrnet_gradient_along_random_directions)
{
    struct fixture f;
    hrnet_init(&f, DT_F64, CPU_PLAIN, 2,
               &(struct model_opts){.batch = 2, .height = 37, .width = 53});
    /* A head that is still near zero passes next to no gradient. */
    fill_spread(&f, graph_find(f.graph, "head.cls.weight"), 8);
    assert_true(best_directional_error(&f, 1000, 1.0) < 1e-5);
    assert_true(best_directional_error(&f, 1000, 1.001) > 1e-4); /* the test can fail */
    fixture_release(&f);
}

static double last_loss(enum cpu_flavour flavour, int n_threads, int n_steps, double *ret_first)
{
    struct fixture f;
    fixture_init(&f, DT_F32, flavour, n_threads);
    model_hrnet_w18.build(f.graph, &(struct model_opts){.batch = 2, .height = 48, .width = 64});
    fixture_ready(&f, 3);
    synthetic_batch(&f.net, &model_hrnet_w18, 3, 0);
    *ret_first = loss_now(&f);
    double last = *ret_first;
    f.net.update.rule.weight_decay = 5e-4;
    for (int step = 0; step < n_steps; step++) {
        net_update(&f.net, 0.02);
        last = loss_now(&f);
    }
    fixture_release(&f);
    return last;
}

TEST(loss_falls_on_a_fixed_batch)
{
    double first = 0.0;
    double after_three = last_loss(CPU_PLAIN, 2, 3, &first);
    assert_true(fabs(first - log(19.0)) < 0.1); /* the head starts near zero: all classes alike */
    assert_true(after_three < first - 0.01);
    /* One thread: the same to the last bit. */
    double again = 0.0;
    assert_true(last_loss(CPU_PLAIN, 1, 3, &again) == after_three);
    assert_true(again == first);
    if (cpu_has_onednn()) {
        assert_true(last_loss(CPU_ONEDNN, 2, 12, &again) < 0.9 * first);
        assert_true(fabs(again - first) < 1e-3);
    }
}

/* Labels as in a dataset: classes, ignored pixels, patches larger than a pixel. */
TEST(synthetic_labels_are_patches)
{
    FIXTURE(f, DT_F32, CPU_PLAIN, 1);
    model_hrnet_w18.build(f.graph, &(struct model_opts){.batch = 4, .height = 70, .width = 90});
    fixture_ready(&f, 1);
    synthetic_batch(&f.net, &model_hrnet_w18, 1, 0);
    int labels = graph_find(f.graph, "labels");
    int64_t count = count_of(&f, labels);
    CLEANUP(free) int64_t *label = xcalloc((size_t)count, sizeof(*label));
    net_read(&f.net, labels, label);
    int64_t n_of[256] = {0};
    int64_t n_same_as_left = 0;
    for (int64_t i = 0; i < count; i++) {
        bool is_class = label[i] >= 0 && label[i] < 19;
        assert_true(is_class || label[i] == 255);
        n_of[label[i]]++;
        n_same_as_left += i % 90 > 0 && label[i] == label[i - 1];
    }
    assert_true(n_of[255] > 0 && n_of[255] < count / 5);
    for (int c = 0; c < 19; c++) {
        assert_true(n_of[c] > 0);
    }
    assert_true(n_same_as_left > count * 9 / 10);
}

TEST(too_small_an_image_is_refused)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_hrnet_w18.build(graph, &(struct model_opts){.batch = 1, .height = 32, .width = 20});
    FAILS_WITH(graph_finish(graph, ERR), ERR_USAGE, "one value per channel has no variance");
}
