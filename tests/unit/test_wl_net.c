/* SPDX-License-Identifier: Apache-2.0 */
/* Whole networks: ResNet-50's size and gradient, training, reproducibility, values computed by hand. */
#include "wl_gradient.h"

static void resnet_init(struct fixture *f, enum dtype dtype, enum cpu_flavour flavour,
                        int n_threads, const struct model_opts *opts)
{
    fixture_init(f, dtype, flavour, n_threads);
    model_resnet50.build(f->graph, opts);
    fixture_ready(f, 11);
    fill_spread(f, graph_find(f->graph, "input"), 5);
    fill_labels(f, model_resnet50.n_classes, 5);
}

/* Source: torchvision's model table (25,557,032 parameters, 4.09 GMAC); 53 batch norms of 26,560 channels in all. */
TEST(resnet50_has_its_published_size)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    model_resnet50.build(graph, &(struct model_opts){.batch = 1, .height = 224, .width = 224});
    PASSES(graph_finish(graph, ERR));
    assert_int_equal(graph_n_trainable(graph), 25557032);
    assert_int_equal(graph_n_running(graph), 53120);
    assert_int_equal(graph_macs(graph), 4089184256);
    int n_kind[OP_KIND_COUNT] = {0};
    for (int i = 0; i < graph->n_ops; i++) {
        n_kind[graph->ops[i].kind]++;
    }
    assert_int_equal(n_kind[OP_CONV], 53);
    assert_int_equal(n_kind[OP_BN], 53);
    assert_int_equal(n_kind[OP_ADD], 16);
    assert_int_equal(n_kind[OP_LINEAR], 1);
    /* v1.5: the stride of a stage's first block is on its 3x3 convolution. */
    const struct value *conv1 = &graph->values[graph_find(graph, "layer2.0.conv1.weight")];
    assert_int_equal(conv1->shape.dim[1], 256);
    for (int i = 0; i < graph->n_ops; i++) {
        const struct conv_geom *g = &graph->ops[i].geom.conv;
        if (graph->ops[i].kind == OP_CONV && g->stride_h == 2) {
            bool is_projection = g->r == 1 && g->c * 2 == g->k;
            assert_true(g->r == 3 || g->r == 7 || is_projection);
        }
    }
}

TEST(resnet50_gradient_along_random_directions)
{
    struct fixture f;
    resnet_init(
        &f, DT_F64, CPU_PLAIN, 2,
        &(struct model_opts){.batch = 2, .height = 33, .width = 36, .label_smoothing = 0.1});
    assert_true(best_directional_error(&f, 1000, 1.0) < 1e-5);
    assert_true(best_directional_error(&f, 1000, 1.001) > 1e-4); /* the test can fail */
    fixture_release(&f);
}

/* A training step: every bit is the same with one thread and with three, and in a second run. */
TEST(results_do_not_depend_on_threads)
{
    uint64_t digests[3];
    static const int threads[3] = {1, 3, 3};
    for (int i = 0; i < 3; i++) {
        struct fixture f;
        resnet_init(&f, DT_F32, CPU_PLAIN, threads[i],
                    &(struct model_opts){.batch = 2, .height = 32, .width = 32});
        digests[i] = 0;
        (void)loss_now(&f);
        net_update(&f.net, 0.01);
        for (int v = 0; v < f.graph->n_values; v++) {
            enum value_kind kind = f.graph->values[v].kind;
            if (kind == VALUE_PARAM || kind == VALUE_STATE || kind == VALUE_GRAD_PARAM) {
                digests[i] = digests[i] * 31 + digest_of(&f, v);
            }
        }
        fixture_release(&f);
    }
    assert_true(digests[0] == digests[1]);
    assert_true(digests[1] == digests[2]);
}

TEST(loss_falls_on_a_fixed_batch)
{
    struct fixture f;
    resnet_init(&f, DT_F32, CPU_PLAIN, 2,
                &(struct model_opts){.batch = 4, .height = 32, .width = 32});
    double first = loss_now(&f);
    double last = first;
    f.net.update.rule.weight_decay = 1e-4;
    for (int step = 0; step < 6; step++) {
        net_update(&f.net, 0.003);
        last = loss_now(&f);
    }
    assert_true(first > 5.0); /* near ln(1000) = 6.9 before training */
    assert_true(last < 0.2 * first);
    fixture_release(&f);
}

/* ---- several batches in one step ---- */

/* No batch norm: a sample's result does not depend on its neighbours. */
static void small_net(struct fixture *f, enum opt_method method, int64_t batch, int64_t n_micro)
{
    fixture_init(f, DT_F64, CPU_PLAIN, 2);
    int x = graph_input(f->graph, "input", SHAPE(batch, 3, 9, 7), DT_F64);
    int labels = graph_input(f->graph, "labels", SHAPE(batch), DT_I64);
    x = graph_conv(
        f->graph, x,
        &(struct conv_opts){.name = "conv", .out_channels = 5, .kernel = 3, .has_bias = true});
    x = graph_relu(f->graph, x);
    x = graph_global_avgpool(f->graph, x);
    x = graph_linear(f->graph, x, "fc", 4);
    (void)graph_loss(f->graph, x, labels,
                     &(struct loss_opts){.label_smoothing = 0.1, .ignore_label = LOSS_IGNORE_NONE});
    const struct opt_rule rule = {.method = method,
                                  .momentum = 0.9,
                                  .beta1 = 0.9,
                                  .beta2 = 0.99,
                                  .eps = 1e-4, /* far above rounding: no sign is decided by it */
                                  .weight_decay = 0.01,
                                  .loss_scale = 1.0F,
                                  .n_micro = n_micro};
    PASSES(graph_finish(f->graph, ERR));
    PASSES(net_plan(&f->net, &f->arena, f->graph, &f->backend, ERR));
    PASSES(net_plan_optimizer(&f->net, &f->arena, &rule, NET_DECAY_MATRICES, ERR));
    PASSES(net_alloc(&f->net, ERR));
    net_init_values(&f->net, 5);
}

/* Two steps of n_micro batches of `batch` samples, those from `first` on of twelve for the first batch and so on. */
static void two_steps(struct fixture *f, int64_t batch, int64_t n_micro)
{
    double pixels[12 * 3 * 9 * 7];
    int64_t labels[12];
    struct rng rng;
    rng_init(&rng, 77);
    for (int step = 0; step < 2; step++) {
        for (size_t i = 0; i < ARRAY_LEN(pixels); i++) {
            pixels[i] = rng_normal(&rng);
        }
        for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
            labels[i] = (int64_t)rng_below(&rng, 4);
        }
        for (int64_t micro = 0; micro < n_micro; micro++) {
            net_write(&f->net, graph_find(f->graph, "input"), pixels + micro * batch * 3 * 9 * 7);
            net_write(&f->net, graph_find(f->graph, "labels"), labels + micro * batch);
            (void)loss_now(f);
        }
        net_update(&f->net, 0.05);
    }
}

/* Source of the bound: issue 5. */
TEST(micro_batches_are_one_batch)
{
    for (int method = 0; method < OPT_METHOD_COUNT; method++) {
        static const int64_t n_micros[] = {1, 2, 3, 12};
        struct fixture whole;
        small_net(&whole, (enum opt_method)method, 12, 1);
        two_steps(&whole, 12, 1);
        for (size_t i = 0; i < ARRAY_LEN(n_micros); i++) {
            struct fixture parts;
            int64_t batch = 12 / n_micros[i];
            small_net(&parts, (enum opt_method)method, batch, n_micros[i]);
            CLEANUP(free) double *before = read_doubles(&parts, parts.graph->params[0]);
            two_steps(&parts, batch, n_micros[i]);
            for (int p = 0; p < parts.graph->n_params; p++) {
                int id = parts.graph->params[p];
                CLEANUP(free) double *a = read_doubles(&parts, id);
                CLEANUP(free) double *b = read_doubles(&whole, id);
                assert_true(rel_error(a, b, count_of(&whole, id)) < 1e-10);
                assert_true(p > 0 || rel_error(a, before, count_of(&whole, id)) > 1e-3);
            }
            fixture_release(&parts);
        }
        fixture_release(&whole);
    }
}

/* ---- by hand ---- */

/* Loss of logits (ln 1, ln 2, ln 5) with label 1: p = 1/8, 2/8, 5/8. */
TEST(loss_follows_its_formula)
{
    static const double smoothings[] = {0.0, 0.3};
    for (int i = 0; i < 2; i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int logits = graph_param(f.graph, "logits", SHAPE(2, 3), (struct init){INIT_CONST, 0});
        int labels = graph_input(f.graph, "labels", SHAPE(2), DT_I64);
        (void)graph_loss(
            f.graph, logits, labels,
            &(struct loss_opts){.label_smoothing = smoothings[i], .ignore_label = 255});
        fixture_ready(&f, 1);
        const double x[6] = {0, 0.69314718055994531, 1.6094379124341003, 9, 9, 9};
        const int64_t label[2] = {1, 255};
        net_write_f64(&f.net, logits, x);
        net_write(&f.net, labels, label);
        double expected = (1.0 - smoothings[i]) * log(4.0) +
                          smoothings[i] / 3.0 * (log(8.0) + log(4.0) + log(1.6));
        assert_true(fabs(loss_now(&f) - expected) < 1e-15);
        CLEANUP(free) double *grad = read_doubles(&f, f.graph->values[logits].grad);
        double share = smoothings[i] / 3.0;
        assert_true(fabs(grad[0] - (0.125 - share)) < 1e-15);
        assert_true(fabs(grad[1] - (0.25 - share - (1.0 - smoothings[i]))) < 1e-15);
        assert_true(fabs(grad[2] - (0.625 - share)) < 1e-15);
        assert_true(grad[3] == 0.0 && grad[4] == 0.0 && grad[5] == 0.0); /* ignored */
    }
}

/* x = 1, 3 in one channel: mean 2, variance 1 (biased), 2 (unbiased). */
static void hold_batch_norm(bool is_paddles)
{
    const char *mean_name = is_paddles ? "bn._mean" : "bn.running_mean";
    const char *var_name = is_paddles ? "bn._variance" : "bn.running_var";
    FIXTURE(f, DT_F64, CPU_PLAIN, 1);
    int x = graph_param(f.graph, "x", SHAPE(1, 1, 1, 2), (struct init){INIT_CONST, 0});
    int y = graph_bn(f.graph, x, &(struct bn_opts){.name = "bn", .is_paddles = is_paddles});
    graph_output(f.graph, "y", y);
    int labels = graph_input(f.graph, "labels", SHAPE(1, 1, 2), DT_I64);
    (void)graph_loss(f.graph, y, labels, &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
    fixture_ready(&f, 1);
    net_write_f64(&f.net, x, (const double[]){1.0, 3.0});
    net_write_f64(&f.net, graph_find(f.graph, "bn.weight"), (const double[]){2.0});
    net_write_f64(&f.net, graph_find(f.graph, "bn.bias"), (const double[]){0.5});
    net_write_f64(&f.net, graph_find(f.graph, mean_name), (const double[]){10.0});
    net_write_f64(&f.net, graph_find(f.graph, var_name), (const double[]){20.0});
    (void)loss_now(&f);
    CLEANUP(free) double *out = read_doubles(&f, y);
    CLEANUP(free) double *mean = read_doubles(&f, graph_find(f.graph, mean_name));
    CLEANUP(free) double *var = read_doubles(&f, graph_find(f.graph, var_name));
    double rstd = 1.0 / sqrt(1.0 + 1e-5);
    assert_true(fabs(out[0] - (0.5 - 2.0 * rstd)) < 1e-15);
    assert_true(fabs(out[1] - (0.5 + 2.0 * rstd)) < 1e-15);
    assert_true(fabs(mean[0] - 9.2) < 1e-14);                       /* .9 * 10 + .1 * 2 */
    assert_true(fabs(var[0] - (is_paddles ? 18.1 : 18.2)) < 1e-14); /* .9 * 20 + .1 * 1 or 2 */
}

TEST(batch_norm_follows_its_formula)
{
    hold_batch_norm(false);
    hold_batch_norm(true);
}

TEST(builder_refuses_what_does_not_fit)
{
    static const struct {
        int64_t batch, size;
        const char *message;
    } cases[] = {
        {1, 1, "bn1: one value per channel"},
        {1, 32, "layer4.0.bn2: one value per channel"},
        {INT64_C(1) << 35, 64, "elements"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct graph *graph = graph_new(ARENA, DT_F32);
        model_resnet50.build(graph, &(struct model_opts){.batch = cases[i].batch,
                                                         .height = cases[i].size,
                                                         .width = cases[i].size});
        FAILS(graph_finish(graph, ERR), ERR_USAGE);
        if (!strstr(ERR->msg, cases[i].message)) {
            fail_msg("\"%s\" does not say \"%s\"", ERR->msg, cases[i].message);
        }
    }
}

TEST(a_parameter_without_a_gradient_is_refused)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    int x = graph_input(graph, "x", SHAPE(2, 3), DT_F32);
    int labels = graph_input(graph, "labels", SHAPE(2), DT_I64);
    int used = graph_linear(graph, x, "used", 4);
    (void)graph_linear(graph, x, "unused", 4);
    (void)graph_loss(graph, used, labels, &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
    FAILS_WITH(graph_finish(graph, ERR), ERR_ANY, "parameter unused.weight");
}

/* ---- oneDNN ---- */

/* Both compute in float from the same numbers; the plain one rounds once a result. Sums of up to K = 4608 products in float
   are off by sqrt(K) * 2^-24 = 4e-6 relative for random signs (Higham, "Accuracy and stability", section 4.2); one layer's
   relative error in norm must stay below a few times that. */
TEST(onednn_agrees_with_the_oracle)
{
    if (!cpu_has_onednn()) {
        print_message("this build has no oneDNN\n");
        skip();
    }
    static const struct conv_opts cases[] = {
        {.name = "conv", .out_channels = 64, .kernel = 7, .stride = 2, .pad = 3},
        {.name = "conv", .out_channels = 40, .kernel = 1},
        {.name = "conv", .out_channels = 33, .kernel = 1, .stride = 2},
        {.name = "conv", .out_channels = 48, .kernel = 3, .pad = 1, .has_bias = true},
        {.name = "conv", .out_channels = 16, .kernel = 3, .stride = 2, .pad = 1},
        {.name = "conv", .out_channels = 16, .kernel = 3, .pad = 4, .dilation = 4},
        {.name = "conv", .out_channels = 36, .kernel = 3, .pad = 1, .groups = 12},
        {.name = "conv", .out_channels = 24, .kernel = 3, .pad = 1, .groups = 24, .has_bias = true},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        double *results[2][4];
        int64_t counts[4];
        int n = 0;
        for (int side = 0; side < 2; side++) {
            FIXTURE(f, DT_F32, side == 0 ? CPU_PLAIN : CPU_ONEDNN, 2);
            int x = graph_param(f.graph, "x", SHAPE(3, cases[i].groups > 0 ? 24 : 35, 17, 14),
                                (struct init){INIT_CONST, 0});
            int y = graph_conv(f.graph, x, &cases[i]);
            graph_output(f.graph, "y", y);
            /* Twice, so that gradients are added to as well. */
            int sum = graph_add(f.graph, y, graph_maxpool(f.graph, y, 3, 1, 1), false);
            struct shape shape = f.graph->values[y].shape;
            int labels =
                graph_input(f.graph, "labels", SHAPE(3, shape.dim[2], shape.dim[3]), DT_I64);
            (void)graph_loss(f.graph, sum, labels,
                             &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
            fixture_ready(&f, 1);
            fill_spread(&f, x, 3);
            fill_spread(&f, graph_find(f.graph, "conv.weight"), 4);
            fill_labels(&f, cases[i].out_channels, 3);
            (void)loss_now(&f);
            const int values[4] = {y, graph_find(f.graph, "grad.x"),
                                   graph_find(f.graph, "grad.conv.weight"),
                                   graph_find(f.graph, "grad.conv.bias")};
            n = cases[i].has_bias ? 4 : 3;
            for (int j = 0; j < n; j++) {
                counts[j] = count_of(&f, values[j]);
                results[side][j] = read_doubles(&f, values[j]);
            }
        }
        for (int j = 0; j < n; j++) {
            double error = rel_error(results[1][j], results[0][j], counts[j]);
            if (!(error < 2e-5)) {
                fail_msg("case %d result %d: %.3g", (int)i, j, error);
            }
            free(results[0][j]);
            free(results[1][j]);
        }
    }
}

/* Two layers of one input, so that its gradient is added to. */
static void linear_results(enum cpu_flavour flavour, double *results[5], int64_t counts[5])
{
    FIXTURE(f, DT_F32, flavour, 2);
    int x = graph_param(f.graph, "x", SHAPE(37, 29), (struct init){INIT_CONST, 0});
    int y = graph_linear(f.graph, x, "a", 43);
    graph_output(f.graph, "y", y);
    int sum = graph_add(f.graph, y, graph_linear(f.graph, x, "b", 43), false);
    int labels = graph_input(f.graph, "labels", SHAPE(37), DT_I64);
    (void)graph_loss(f.graph, sum, labels, &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
    fixture_ready(&f, 1);
    fill_spread(&f, x, 3);
    fill_spread(&f, graph_find(f.graph, "a.weight"), 4);
    fill_spread(&f, graph_find(f.graph, "a.bias"), 5);
    fill_labels(&f, 43, 3);
    (void)loss_now(&f);
    static const char *const names[5] = {"y", "grad.x", "grad.a.weight", "grad.a.bias",
                                         "grad.b.weight"};
    for (int i = 0; i < 5; i++) {
        counts[i] = count_of(&f, graph_find(f.graph, names[i]));
        results[i] = read_doubles(&f, graph_find(f.graph, names[i]));
    }
}

TEST(onednn_linear_agrees_with_the_oracle)
{
    if (!cpu_has_onednn()) {
        print_message("this build has no oneDNN\n");
        skip();
    }
    double *plain[5];
    double *onednn[5];
    int64_t counts[5];
    linear_results(CPU_PLAIN, plain, counts);
    linear_results(CPU_ONEDNN, onednn, counts);
    for (int i = 0; i < 5; i++) {
        double error = rel_error(onednn[i], plain[i], counts[i]);
        if (!(error < 2e-6)) {
            fail_msg("result %d: %.3g", i, error);
        }
        free(plain[i]);
        free(onednn[i]);
    }
}
