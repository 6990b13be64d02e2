/* SPDX-License-Identifier: Apache-2.0 */
/* Fused graphs: the same numbers as the unfused ones, for every pattern and every model; and how often each pattern is fused in each
   model as the reports train it, so that a lost fusion is noticed. */
#include "wl_fixture.h"

#include "graph/fuse_choose.h"
#include "wl_fuse.h"

/* Fusion changes the order of sums and takes a variance from a sum of squares. A value that is zero except for rounding (the gradient
   of a bias that a batch norm cancels, of a scale that the next one cancels) has no relative error: it is compared with 1e-4 of the
   norm of all. The small network then measures at most 7e-14; a planted fault is above 1e-7. */
#define SAME_TOLERANCE 1e-12
#define NORM_FLOOR     1e-4

static const struct fuse_support EVERYTHING = {.dtype = DT_F64,
                                               .channel_pad = 1,
                                               .channel_multiple = 1,
                                               .dilation_max = 64,
                                               .adds_strided = true};

/* Values that a run leaves: loss, other outputs, gradients, running statistics. */
static bool is_result(const struct value *value)
{
    return value->kind == VALUE_GRAD_PARAM || value->kind == VALUE_STATE ||
           (value->kind == VALUE_ACT && value->name);
}

/* The largest relative difference of all results of `fused`, which `plain` must have under the same names. */
static double difference(const struct fixture *fused, const struct fixture *plain)
{
    double worst = 0.0;
    double squares[VALUE_GRAD_ACT + 1] = {0};
    for (int i = 0; i < plain->graph->n_values; i++) {
        const struct value *value = &plain->graph->values[i];
        squares[value->kind] += is_result(value) ? pow(norm_of_value(plain, i), 2.0) : 0.0;
    }
    for (int i = 0; i < fused->graph->n_values; i++) {
        const struct value *value = &fused->graph->values[i];
        if (!is_result(value)) {
            continue;
        }
        int other = graph_find(plain->graph, value->name);
        assert_true(other != NO_VALUE);
        int64_t count = count_of(plain, other);
        CLEANUP(free) double *x = read_doubles(fused, i);
        CLEANUP(free) double *y = read_doubles(plain, other);
        double norm = norm_of(y, count);
        double floor = NORM_FLOOR * sqrt(squares[value->kind]);
        double off = rel_error(x, y, count) * (norm > 0.0 ? norm : 1.0);
        off /= norm > floor ? norm : floor;
        worst = off <= worst ? worst : off; /* NaN is the worst */
    }
    return worst;
}

/* ---- a small network that has every pattern in more than one form ---- */

static int conv_bn(struct fixture *f, int x, struct conv_opts conv, bool has_relu)
{
    int y = graph_conv(f->graph, x, &conv);
    const char *name = arena_printf(&f->arena, "%s.bn", conv.name);
    return graph_bn(f->graph, y, &(struct bn_opts){.name = name, .has_relu = has_relu});
}

static int block(struct fixture *f, int x, const char *name, int64_t stride, bool has_projection)
{
    const char *names[4];
    for (int i = 0; i < 4; i++) {
        names[i] = arena_printf(&f->arena, "%s.%d", name, i);
    }
    int y =
        conv_bn(f, x, (struct conv_opts){.name = names[0], .out_channels = 4, .kernel = 1}, true);
    y = conv_bn(f, y,
                (struct conv_opts){
                    .name = names[1], .out_channels = 3, .kernel = 3, .stride = stride, .pad = 1},
                true);
    y = conv_bn(f, y, (struct conv_opts){.name = names[2], .out_channels = 8, .kernel = 1}, false);
    if (has_projection) {
        x = conv_bn(
            f, x,
            (struct conv_opts){.name = names[3], .out_channels = 8, .kernel = 1, .stride = stride},
            false);
    }
    return graph_add(f->graph, has_projection ? x : y, has_projection ? y : x, true);
}

/* Depthwise, without ReLU, then over the channels; both with biases. */
static int separable(struct fixture *f, int x)
{
    x = conv_bn(f, x,
                (struct conv_opts){.name = "depthwise",
                                   .out_channels = 8,
                                   .kernel = 3,
                                   .pad = 2,
                                   .dilation = 2,
                                   .groups = 8,
                                   .has_bias = true},
                false);
    return conv_bn(
        f, x,
        (struct conv_opts){.name = "pointwise", .out_channels = 5, .kernel = 1, .has_bias = true},
        true);
}

static int upsampled(struct fixture *f, int x, int64_t height, int64_t width)
{
    return graph_upsample(f->graph, x, &(struct upsample_opts){.height = height, .width = width});
}

static void build_small(struct fixture *f)
{
    struct graph *graph = f->graph;
    int x = graph_input(graph, "input", SHAPE(3, 3, 11, 10), DT_F64);
    int labels = graph_input(graph, "labels", SHAPE(3, 11, 10), DT_I64);
    x = conv_bn(f, x, (struct conv_opts){.name = "stem", .out_channels = 6, .kernel = 3, .pad = 1},
                true);
    x = block(f, x, "a", 2, true);
    x = block(f, x, "b", 1, false);
    int side = conv_bn(
        f, x,
        (struct conv_opts){.name = "down", .out_channels = 8, .kernel = 3, .stride = 2, .pad = 1},
        false);
    int twice =
        conv_bn(f, x, (struct conv_opts){.name = "same", .out_channels = 8, .kernel = 1}, false);
    twice = graph_add(graph, twice, x, false);
    x = graph_add(graph, twice, upsampled(f, side, 6, 5), true);
    x = block(f, x, "c", 1, false);
    int logits = graph_conv(
        graph, separable(f, x),
        &(struct conv_opts){.name = "classify", .out_channels = 4, .kernel = 1, .has_bias = true});
    logits = upsampled(f, logits, 11, 10);
    graph_output(graph, "logits", logits);
    int loss = graph_loss(graph, logits, labels,
                          &(struct loss_opts){.label_smoothing = 0.1, .ignore_label = 255});
    int aux = graph_conv(
        graph, twice, &(struct conv_opts){.name = "aux", .out_channels = 4, .kernel = 3, .pad = 1});
    aux = graph_upsample(graph, aux,
                         &(struct upsample_opts){.height = 11, .width = 10, .is_aligned = true});
    (void)graph_loss(graph, aux, labels, &(struct loss_opts){.ignore_label = 255, .weight = 0.4});
    graph_output(graph, "loss", loss);
}

/* Images of different brightness: averages of noise alone are nearly equal, and a batch norm would amplify their rounding. */
static void fill_input(struct fixture *f)
{
    int input = graph_find(f->graph, "input");
    int64_t n = f->graph->values[input].shape.dim[0];
    int64_t count = count_of(f, input);
    fill_spread(f, input, 11);
    CLEANUP(free) double *x = read_doubles(f, input);
    for (int64_t i = 0; i < count; i++) {
        int64_t image = i / (count / n);
        x[i] = x[i] * (1.0 + 0.5 * (double)image) + 0.7 * (double)(image * image % 3);
    }
    net_write_f64(&f->net, input, x);
}

static void fill_net(struct fixture *f, int64_t n_classes)
{
    PASSES(net_plan(&f->net, &f->arena, f->graph, &f->backend, ERR));
    PASSES(net_alloc(&f->net, ERR));
    net_init_values(&f->net, 7);
    for (int i = 0; i < f->graph->n_params; i++) {
        const struct value *param = &f->graph->values[f->graph->params[i]];
        if (param->shape.n_dims == 1 && n_classes == 4) {
            fill_spread(f, f->graph->params[i], 3 + (uint64_t)i); /* scales of either sign */
        }
    }
    fill_input(f);
    fill_labels(f, n_classes, 5);
    int step = graph_find(f->graph, "step");
    if (step != NO_VALUE) {
        net_write(&f->net, step, &(int64_t){3});
    }
}

static void ready_fused(struct fixture *f, const struct fuse_policy *policy, int64_t n_classes,
                        struct fuse_report *ret_report)
{
    PASSES(graph_finish(f->graph, ERR));
    PASSES(graph_fuse(f->graph, policy, ret_report, ERR));
    fill_net(f, n_classes);
}

static void small_net(struct fixture *f, const struct fuse_policy *policy,
                      struct fuse_report *ret_report)
{
    fixture_init(f, DT_F64, CPU_PLAIN, 1);
    build_small(f);
    ready_fused(f, policy, 4, ret_report);
}

/* Bit i: pattern i is fused wherever it can be. */
static bool wants_some(void *self, const struct graph *graph UNUSED, enum fuse_pattern pattern,
                       int op UNUSED)
{
    return (*(unsigned *)self >> pattern & 1U) != 0;
}

static const int SMALL_SITES[FUSE_PATTERN_COUNT] = {2, 4, 8, 13, 6, 10, 0};

TEST(any_set_of_patterns_gives_the_same)
{
    const struct fuse_policy none = fuse_none();
    struct fixture plain;
    small_net(&plain, &none, NULL);
    (void)loss_now(&plain);
    int n_paired = 0;
    for (unsigned set = 0; set < 1U << FUSE_DROP_ADD_NORM; set++) { /* no layer norm is there */
        struct fixture f;
        struct fuse_report report;
        struct fuse_policy some = {
            .wants = wants_some, .self = &set, .keeps_outputs = set % 3 != 0};
        small_net(&f, &some, &report);
        (void)loss_now(&f);
        double off = difference(&f, &plain);
        if (!(off <= SAME_TOLERANCE)) {
            fail_msg("patterns %#x: off by %.3g", set, off);
        }
        for (int i = 0; i < FUSE_PATTERN_COUNT; i++) {
            assert_int_equal(report.n_fused[i], (set >> i & 1U) != 0 ? report.n_sites[i] : 0);
        }
        n_paired += report.n_fused[FUSE_BN_PAIR];
        fixture_release(&f);
    }
    /* Two batch norms are added at once where the addition and the statistics are fused and no mask needs the second one. */
    assert_int_equal(n_paired, 8);
    fixture_release(&plain);
}

/* Where no pixel has a label, the loss and what it makes of the logits are 0 and no NaN. */
TEST(no_label_is_no_loss)
{
    const struct fuse_policy all = fuse_supported(&EVERYTHING);
    int64_t labels[3 * 11 * 10];
    struct fixture f;
    small_net(&f, &all, NULL);
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        labels[i] = 255;
    }
    net_write(&f.net, graph_find(f.graph, "labels"), labels);
    assert_true(loss_now(&f) == 0.0);
    for (int i = 0; i < f.graph->n_params; i++) {
        assert_true(norm_of_value(&f, f.graph->values[f.graph->params[i]].grad) == 0.0);
    }
    fixture_release(&f);
}

TEST(every_pattern_is_there)
{
    struct fixture f;
    struct fuse_report report;
    const struct fuse_policy all = fuse_supported(&EVERYTHING);
    small_net(&f, &all, &report);
    assert_memory_equal(report.n_fused, SMALL_SITES, sizeof(SMALL_SITES));
    /* The logits are not an output: they are gone, and so is everything of their size. */
    assert_int_equal(graph_find(f.graph, "logits"), NO_VALUE);
    for (int i = 0; i < f.graph->n_calls; i++) {
        assert_true(f.graph->calls[i].args.id != K_LOSS_FWD);
        assert_true(f.graph->calls[i].args.id != K_CONV_BWD_DATA || i > 0);
    }
    fixture_release(&f);
}

/* The call reads a wrong input. */
static void spoil(struct kernel_args *args)
{
    const struct kernel_args kept = *args;
    switch ((int)kept.id) {
    case K_CONV_STATS_FWD: /* without normalising, or the two sums swapped */
        args->in[2] = NULL;
        args->out[1] = kept.in[2] ? kept.out[1] : kept.out[2];
        args->out[2] = kept.in[2] ? kept.out[2] : kept.out[1];
        break;
    case K_CONV_BWD_DATA_BN: /* without the residual gradient; else with the mask of another number */
        args->in[7] = NULL;
        args->in[4] = kept.in[7] ? kept.in[4] : kept.in[3];
        break;
    case K_BN_BWD_APPLY: /* the two sums swapped */
        args->in[5] = kept.in[6];
        args->in[6] = kept.in[5];
        break;
    case K_BN_FINALIZE:
        args->geom.bn.eps *= 2.0;
        break;
    case K_BN_ADD_FWD: /* without the addend */
        args->in[3] = NULL;
        break;
    case K_BN_ADD_BWD: /* with another number for gamma */
        args->in[2] = kept.in[3];
        break;
    case K_BN_APPLY: /* without the addend, or with the mean for beta */
        args->in[5] = NULL;
        args->in[2] = kept.in[5] ? kept.in[2] : kept.in[1];
        break;
    case K_NORM_CONV_BWD_WEIGHT: /* another scale */
        args->in[2] = kept.in[3];
        break;
    default:
        args->geom.upsample_loss.loss.weight *= 1.001;
        break;
    }
}

TEST(a_wrong_fusion_is_seen)
{
    const struct fuse_policy none = fuse_none();
    const struct fuse_policy all = fuse_supported(&EVERYTHING);
    struct fixture plain;
    struct fixture f;
    small_net(&plain, &none, NULL);
    (void)loss_now(&plain);
    small_net(&f, &all, NULL);
    int n_seen[K_COUNT] = {0};
    int n_tried[K_COUNT] = {0};
    for (int i = 0; i < f.graph->n_calls; i++) {
        struct call *call = &f.net.calls[i];
        const struct kernel_args kept = call->args;
        enum kernel_id id = kept.id;
        if (id < K_BN_ADD_FWD) {
            continue;
        }
        spoil(&call->args);
        n_tried[id]++;
        net_init_values(&f.net, 7);
        for (int p = 0; p < f.graph->n_params; p++) {
            int param = f.graph->params[p];
            CLEANUP(free)
            double *x = read_doubles(&plain, graph_find(plain.graph, f.graph->values[param].name));
            net_write_f64(&f.net, param, x);
        }
        (void)loss_now(&f);
        n_seen[id] += !(difference(&f, &plain) <= 1e-7);
        call->args = kept;
    }
    for (int id = K_BN_ADD_FWD; id < K_COUNT; id++) {
        if (n_tried[id] != n_seen[id]) {
            fail_msg("%s: %d of %d faults were seen", kernel_name((enum kernel_id)id), n_seen[id],
                     n_tried[id]);
        }
    }
    assert_true(n_tried[K_CONV_BWD_DATA_BN] > 0);
    assert_true(n_tried[K_UPSAMPLE_LOSS_BWD] == 2);
    fixture_release(&f);
    fixture_release(&plain);
}

/* ---- the models ---- */

struct model_case {
    const struct model *model;
    int64_t batch; /* of the reports */
    int64_t
        height; /* of the small images, at which no image but the pooled one is a single pixel */
    int n_fused[FUSE_PATTERN_COUNT];
};

/* All but one site each: the 7x7 convolution of ResNet-50's stem has no engine with statistics. The first fused data gradient is the
   second block's. HRNet: each convolution but the classifier. DeepLabV3+: not the one of dilation 16, no depthwise one, not the one
   of a single pixel; those with biases (PaddleSeg's head) have no statistics. */
static const struct model_case CASES[] = {
    {&model_resnet50, 256, 33, {0, 16, 33, 52, 32, 47, 0}},
    {&model_hrnet_w18, 8, 33, {1, 139, 135, 306, 129, 240, 0}},
    {&model_deeplabv3p, 4, 17, {1, 16, 44, 54, 32, 50, 0}},
    {&model_deeplabv3p_mmseg, 4, 17, {2, 16, 50, 64, 34, 54, 0}},
};

static void model_net(struct fixture *f, const struct model_case *c,
                      const struct fuse_policy *policy, struct fuse_report *ret_report)
{
    fixture_init(f, DT_F64, CPU_PLAIN, 1);
    c->model->build(f->graph, &(struct model_opts){.batch = 2,
                                                   .height = c->height,
                                                   .width = c->height + 7,
                                                   .has_dropout = true});
    ready_fused(f, policy, c->model->n_classes, ret_report);
}

/* Changes every parameter by a bit up or down, or leaves it. */
static void shake(struct fixture *f)
{
    for (int i = 0; i < f->graph->n_params; i++) {
        int param = f->graph->params[i];
        CLEANUP(free) double *x = read_doubles(f, param);
        struct rng rng;
        rng_init(&rng, 9 + (uint64_t)param);
        for (int64_t j = 0; j < count_of(f, param); j++) {
            x[j] *= 1.0 + ((double)rng_below(&rng, 3) - 1.0) * 0x1p-52;
        }
        net_write_f64(&f->net, param, x);
    }
}

/* The effect of rounding depends on the network: with one batch norm over two pooled pixels, one bit of a weight becomes 1e-11. So
   fusion may change four times as much as one bit of each parameter does. */
TEST(models_fused_give_the_same)
{
    const struct fuse_support support = {
        .dtype = DT_F64, .channel_pad = 8, .channel_multiple = 8, .dilation_max = 8};
    const struct fuse_policy none = fuse_none();
    const struct fuse_policy all = fuse_supported(&support);
    bool is_all = in_test_all("whole networks next to their fused forms, except HRNet");
    for (size_t m = 0; m < ARRAY_LEN(CASES); m++) {
        struct fixture plain;
        struct fixture other;
        struct fuse_report report;
        if (CASES[m].model != &model_hrnet_w18 && !is_all) {
            continue; /* the same patterns as the small network's, in other numbers */
        }
        model_net(&plain, &CASES[m], &none, NULL);
        (void)loss_now(&plain);
        model_net(&other, &CASES[m], &none, NULL);
        shake(&other);
        (void)loss_now(&other);
        double noise = difference(&other, &plain);
        fixture_release(&other);
        model_net(&other, &CASES[m], &all, &report);
        assert_memory_equal(report.n_fused, CASES[m].n_fused, sizeof(report.n_fused));
        (void)loss_now(&other);
        double off = difference(&other, &plain);
        fixture_release(&other);
        fixture_release(&plain);
        print_message("# %s: off by %.2g, where a bit makes %.2g\n", CASES[m].model->name, off,
                      noise);
        if (!(off <= fmax(1e-12, 4.0 * noise)) || noise > 1e-9) {
            fail_msg("%s: off by %.3g, and a bit makes %.3g", CASES[m].model->name, off, noise);
        }
    }
}

static int64_t bytes_of(void *self UNUSED, const struct tensor_desc *desc)
{
    return shape_count(&desc->shape) * dtype_bytes(desc->dtype);
}

static void full_size(struct arena *arena, const struct model_case *c,
                      const struct fuse_policy *policy, struct graph **ret_graph,
                      struct fuse_report *ret_report)
{
    struct graph *graph = graph_new_typed(
        arena, &(struct graph_types){.dtype = DT_F16, .norm = DT_F32, .stat = DT_F32});
    c->model->build(graph, &(struct model_opts){.batch = c->batch,
                                                .height = c->model->height_default,
                                                .width = c->model->width_default,
                                                .has_dropout = true});
    PASSES(graph_finish(graph, ERR));
    PASSES(graph_fuse(graph, policy, ret_report, ERR));
    *ret_graph = graph;
}

TEST(models_fuse_as_often_as_they_should)
{
    const struct fuse_support hopper = fuse_support_hopper();
    const struct fuse_policy policies[2] = {fuse_none(), fuse_supported(&hopper)};
    for (size_t m = 0; m < ARRAY_LEN(CASES); m++) {
        struct memplan plans[2];
        struct traffic traffic[2];
        for (int i = 0; i < 2; i++) {
            struct graph *graph;
            struct fuse_report report;
            full_size(ARENA, &CASES[m], &policies[i], &graph, &report);
            PASSES(memplan_make(ARENA, graph, bytes_of, NULL, &plans[i], ERR));
            traffic[i] = traffic_of_graph(graph, bytes_of, NULL);
            if (i == 1) {
                assert_memory_equal(report.n_fused, CASES[m].n_fused, sizeof(report.n_fused));
            }
        }
        print_message("# %s, batch %d: activations %.3f to %.3f GB; moved in a step %.3f (and %.3f "
                      "again) to %.3f (%.3f) GB\n",
                      CASES[m].model->name, (int)CASES[m].batch,
                      1e-9 * (double)plans[0].arena_bytes[MEMPLAN_ACT],
                      1e-9 * (double)plans[1].arena_bytes[MEMPLAN_ACT],
                      1e-9 * (double)traffic[0].floor_bytes, 1e-9 * (double)traffic[0].reread_bytes,
                      1e-9 * (double)traffic[1].floor_bytes,
                      1e-9 * (double)traffic[1].reread_bytes);
        assert_true(plans[1].arena_bytes[MEMPLAN_ACT] < plans[0].arena_bytes[MEMPLAN_ACT]);
        assert_true(traffic[1].floor_bytes < traffic[0].floor_bytes);
        assert_true(traffic[1].reread_bytes < traffic[0].reread_bytes);
    }
}

/* Convolutions are fused in half precision only; batch norms and the loss in any type. */
TEST(float_has_no_fused_convolutions)
{
    const struct fuse_support hopper = fuse_support_hopper();
    const struct fuse_policy policy = fuse_supported(&hopper);
    struct graph *graph = graph_new_typed(
        ARENA, &(struct graph_types){.dtype = DT_F32, .norm = DT_F32, .stat = DT_F32});
    struct fuse_report report;
    model_hrnet_w18.build(graph, &(struct model_opts){.batch = 8, .height = 512, .width = 1024});
    PASSES(graph_finish(graph, ERR));
    PASSES(graph_fuse(graph, &policy, &report, ERR));
    static const int wanted[FUSE_PATTERN_COUNT] = {1, 139, 135, 0, 0, 0, 0};
    assert_memory_equal(report.n_fused, wanted, sizeof(wanted));
    assert_int_equal(report.n_sites[FUSE_CONV_STATS], 306);
}

/* ---- lists ---- */

static void unfused(struct fixture *f)
{
    fixture_init(f, DT_F64, CPU_PLAIN, 1);
    build_small(f);
    PASSES(graph_finish(f->graph, ERR));
}

TEST(a_list_is_followed)
{
    struct fixture plain;
    struct fixture listed;
    struct fuse_list list;
    const struct fuse_policy none = fuse_none();
    unfused(&plain);
    const struct backend unasked = {0};
    const struct fuse_asked asked = {.support = &EVERYTHING, .backend = &unasked};
    struct fuse_tally tally;
    PASSES(fuse_choose(ARENA, plain.graph, &asked, &list, &tally, ERR));
    int n_wanted[FUSE_PATTERN_COUNT] = {0};
    int n_sites = 0;
    for (int i = 0; i < FUSE_PATTERN_COUNT; i++) {
        n_sites += SMALL_SITES[i];
    }
    assert_int_equal(list.n_choices, n_sites);
    for (int i = 0; i < list.n_choices; i++) {
        struct fuse_choice *choice = &list.choices[i];
        assert_true(choice->is_fused);
        /* Every other one; normalising needs statistics, which are all made. */
        choice->is_fused = i % 2 == 0 || choice->pattern == FUSE_CONV_STATS;
        n_wanted[choice->pattern] += choice->is_fused;
    }
    struct fuse_report report;
    unfused(&listed);
    PASSES(graph_fuse_listed(listed.graph, &list, &report, ERR));
    fill_net(&listed, 4);
    assert_memory_equal(report.n_fused, n_wanted, sizeof(n_wanted));
    fixture_release(&plain);
    small_net(&plain, &none, NULL);
    (void)loss_now(&plain);
    (void)loss_now(&listed);
    assert_true(difference(&listed, &plain) <= SAME_TOLERANCE);
    fixture_release(&listed);

    /* Without statistics nothing is normalised on the way: a list that asks for it is an error. */
    for (int i = 0; i < list.n_choices; i++) {
        struct fuse_choice *choice = &list.choices[i];
        choice->is_fused = choice->pattern == FUSE_NORM_CONV;
    }
    unfused(&listed);
    assert_true(graph_fuse_listed(listed.graph, &list, &report, ERR) < 0);
    assert_int_equal(report.n_fused[FUSE_NORM_CONV], 0);
    assert_int_equal(ERR->code, ERR_INTERNAL);
    fixture_release(&listed);
    fixture_release(&plain);
}
