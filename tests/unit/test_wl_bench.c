/* SPDX-License-Identifier: Apache-2.0 */
/* What reperf-bench counts and compares: floors by hand and against the layers' own counts, metric lines, agreement. */
#include "wl_fixture.h"

#include "bench/agree.h"
#include "bench/event.h"
#include "bench/floor.h"
#include "bench/peaks.h"
#include "models/model.h"

/* ---- floors ---- */

static struct graph *built(struct arena *arena, enum dtype dtype)
{
    struct graph_types types = {dtype, DT_F32, DT_F32};
    return graph_new_typed(arena, &types);
}

static double pass_bytes(const struct graph *graph, const struct floor_count *count,
                         enum op_kind kind, int nth, enum floor_pass pass)
{
    int seen = 0;
    for (int i = 0; i < graph->n_ops; i++) {
        if (graph->ops[i].kind != kind || seen++ != nth) {
            continue;
        }
        for (int j = 0; j < count->n_parts; j++) {
            if (count->parts[j].op == i && count->parts[j].pass == pass) {
                return count->parts[j].bytes;
            }
        }
    }
    return -1.0;
}

/* conv 4 -> 8, batch norm with ReLU, conv 8 -> 4, pooled, loss: batch 2, image 6 x 6, half precision. */
TEST(floor_of_a_small_network)
{
    struct floor_count count;
    struct graph *graph = built(ARENA, DT_F16);
    int x = graph_input(graph, "input", SHAPE(2, 4, 6, 6), DT_F16);
    int labels = graph_input(graph, "labels", SHAPE(2), DT_I64);
    x = graph_conv(graph, x,
                   &(struct conv_opts){.name = "a", .out_channels = 8, .kernel = 3, .pad = 1});
    x = graph_bn(graph, x, &(struct bn_opts){.name = "b", .has_relu = true});
    x = graph_conv(graph, x, &(struct conv_opts){.name = "c", .out_channels = 4, .kernel = 1});
    x = graph_global_avgpool(graph, x);
    (void)graph_loss(graph, x, labels, &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
    PASSES(graph_finish(graph, ERR));
    floor_of_graph(ARENA, graph, 1, true, &count);
    const double t = 2.0 * 2 * 36; /* bytes of one channel: 2 each, 2 images of 36 pixels */
    const double w_a = 2.0 * 8 * 4 * 9;
    const double w_c = 2.0 * 4 * 8;
    assert_true(pass_bytes(graph, &count, OP_CONV, 0, FLOOR_FORWARD) == 4 * t + w_a + 8 * t);
    assert_true(pass_bytes(graph, &count, OP_BN, 0, FLOOR_FORWARD) == 0.0); /* in the next conv */
    assert_true(pass_bytes(graph, &count, OP_CONV, 1, FLOOR_FORWARD) == 8 * t + w_c + 4 * t);
    assert_true(pass_bytes(graph, &count, OP_AVGPOOL, 0, FLOOR_FORWARD) == 4 * t + 16.0);
    assert_true(pass_bytes(graph, &count, OP_LOSS, 0, FLOOR_FORWARD) == 16.0 + 16.0);
    assert_true(pass_bytes(graph, &count, OP_CONV, 0, FLOOR_BACKWARD) == 0.0); /* of an input */
    assert_true(pass_bytes(graph, &count, OP_CONV, 0, FLOOR_WEIGHT) == 4 * t + w_a + 8 * t);
    assert_true(pass_bytes(graph, &count, OP_BN, 0, FLOOR_BACKWARD) == 4 * 8 * t);
    assert_true(pass_bytes(graph, &count, OP_CONV, 1, FLOOR_BACKWARD) == 4 * t + w_c + 8 * t);
    assert_true(pass_bytes(graph, &count, OP_CONV, 1, FLOOR_WEIGHT) == 4 * t + 8 * t + w_c);
    /* 288 + 32 halves with a float master and a float moment, 16 floats with a moment. */
    const struct floor_part *update = &count.parts[count.n_parts - 1];
    assert_int_equal(update->pass, FLOOR_UPDATE);
    assert_true(update->bytes == 320.0 * (2 + 8 + 8 + 2) + 16.0 * (4 + 8 + 8));
    const double macs_a = 2.0 * 36 * 8 * 4 * 9;
    const double macs_c = 2.0 * 36 * 4 * 8;
    assert_true(count.flops == 2.0 * (2.0 * macs_a + 3.0 * macs_c));
    assert_true(floor_seconds(&count, 1e300, 1.0) == count.bytes);
    assert_true(fabs(floor_seconds(&count, 1.0, 1e300) - count.flops) < 1e-6);
    assert_true(floor_seconds(&count, 1.0, 1.0) > count.bytes);
    /* Without such convolutions: statistics, the result, which the next one reads, and sums of the gradient. */
    double fused = count.bytes;
    floor_of_graph(ARENA, graph, 1, false, &count);
    assert_true(pass_bytes(graph, &count, OP_BN, 0, FLOOR_FORWARD) == 3 * 8 * t);
    assert_true(pass_bytes(graph, &count, OP_CONV, 1, FLOOR_FORWARD) == 8 * t + w_c + 4 * t);
    assert_true(pass_bytes(graph, &count, OP_BN, 0, FLOOR_BACKWARD) == 5 * 8 * t);
    assert_true(count.bytes == fused + 4 * 8 * t);
}

/* A sum of three with one of them upsampled: one pass over what is stored. */
TEST(floor_of_a_sum)
{
    struct floor_count count;
    struct graph *graph = built(ARENA, DT_F32);
    int labels = graph_input(graph, "labels", SHAPE(1), DT_I64);
    int x = graph_input(graph, "input", SHAPE(1, 4, 8, 8), DT_F32);
    int parts[3];
    for (int i = 0; i < 3; i++) {
        const char *name = arena_printf(ARENA, "part%d", i);
        parts[i] =
            graph_conv(graph, x,
                       &(struct conv_opts){
                           .name = name, .out_channels = 4, .kernel = 1, .stride = i == 2 ? 4 : 1});
    }
    parts[2] = graph_upsample(graph, parts[2], &(struct upsample_opts){.height = 8, .width = 8});
    x = graph_add(graph, graph_add(graph, parts[0], parts[1], false), parts[2], true);
    x = graph_global_avgpool(graph, x);
    (void)graph_loss(graph, x, labels, &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE});
    PASSES(graph_finish(graph, ERR));
    floor_of_graph(ARENA, graph, 1, true, &count);
    const double large = 4.0 * 4 * 64;
    const double small = 4.0 * 4 * 4;
    assert_true(pass_bytes(graph, &count, OP_ADD, 0, FLOOR_FORWARD) == 0.0);
    assert_true(pass_bytes(graph, &count, OP_UPSAMPLE, 0, FLOOR_FORWARD) == 0.0);
    assert_true(pass_bytes(graph, &count, OP_ADD, 1, FLOOR_FORWARD) == 3 * large + small);
    assert_true(pass_bytes(graph, &count, OP_ADD, 1, FLOOR_BACKWARD) == large); /* the mask */
    assert_true(pass_bytes(graph, &count, OP_UPSAMPLE, 0, FLOOR_BACKWARD) == large + small);
}

#define BATCH 64 /* weights are moved once for all of it */

/* Multiply-accumulates as ../shared/research/models.md and each model's own test have them; three products for each, but for what the
   first layer would send to the image. Bytes: within a tenth of that page's independent count, which rounds HRNet's channels up. */
TEST(floors_of_the_models)
{
    static const struct {
        const char *model;
        double macs, first_macs, megabytes;
    } rows[] = {
        {"resnet50", 4089184256.0, 118013952.0, 292.0},
        {"hrnet_w18", 36850.0e6, 226492416.0, 4800.0 / 1.11},
        {"deeplabv3p", 227585.0e6, 113246208.0, 9800.0},
        {"bert_base", 11655.0e6, 0.0, 0.0},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct floor_count count;
        const struct model *model = model_find(rows[i].model);
        struct graph *graph = built(ARENA, DT_F16);
        model->build(graph, &(struct model_opts){.batch = BATCH,
                                                 .height = model->height_default,
                                                 .width = model->width_default,
                                                 .sequence = 128,
                                                 .predictions = 20,
                                                 .has_dropout = true});
        PASSES(graph_finish(graph, ERR));
        floor_of_graph(ARENA, graph, 1, true, &count);
        double wanted = 2.0 * BATCH * (3.0 * rows[i].macs - rows[i].first_macs);
        assert_true(fabs(count.flops / wanted - 1.0) < 1e-3);
        double update = count.parts[count.n_parts - 1].bytes;
        double megabytes = (count.bytes - update) / BATCH / 1e6;
        assert_true(rows[i].megabytes == 0.0 || fabs(megabytes / rows[i].megabytes - 1.0) < 0.1);
    }
}

TEST(peaks_are_plausible)
{
    for (int i = 0; peak_at(i); i++) {
        const struct peak *peak = peak_at(i);
        assert_true(peak->half_flops_per_s > peak->float_flops_per_s);
        assert_true(peak->tf32_flops_per_s < peak->half_flops_per_s);
        assert_true(peak->bytes_per_s > 1e11 && peak->bytes_per_s < 1e13);
        assert_ptr_equal(peak_find(str_of(peak->name)), peak);
    }
    assert_true(peak_fuses_norms(peak_find(STR_LIT("NVIDIA H100 80GB HBM3"))));
    assert_false(peak_fuses_norms(peak_find(STR_LIT("Tesla V100-SXM2-16GB"))));
    assert_null(peak_find(STR_LIT("NVIDIA H2000")));
    assert_null(peak_find(STR_LIT("")));
}

/* ---- metric lines ---- */

TEST(lines_are_read)
{
    struct event event;
    PASSES(event_read(ARENA,
                      STR_LIT("{\"event\":\"step\",\"step\":3,\"rank\":0,\"loss\":2.5e-1,\"step_"
                              "time_ns\":12345,\"lr\":0.1}"),
                      &event, ERR));
    assert_true(event.kind == EVENT_STEP && event.step == 3 && event.step_time_ns == 12345);
    assert_true(event.has_loss && event.loss == 0.25);
    PASSES(event_read(ARENA,
                      STR_LIT("{\"event\":\"run_start\",\"gpu\":\"NVIDIA H200\",\"image\":[1,2]}"),
                      &event, ERR));
    assert_true(event.kind == EVENT_START && str_eq_z(event.gpu, "NVIDIA H200"));
    PASSES(event_read(ARENA, STR_LIT("{\"event\":\"run_stop\",\"peak_memory_bytes\":7}"), &event,
                      ERR));
    assert_true(event.kind == EVENT_STOP && event.peak_memory_bytes == 7);
    PASSES(event_read(ARENA, STR_LIT("{\"event\":\"run_start\",\"gpu\":null}"), &event, ERR));
    assert_null(event.gpu.ptr);
}

TEST(other_lines_are_refused)
{
    static const char *const lines[] = {"",
                                        "Epoch 3: loss 0.5",
                                        "{\"step\":1}",
                                        "{\"event\":\"step\"",
                                        "{\"event\":\"step\"} x",
                                        "{\"event\":\"step\",\"loss\":nan}",
                                        "{\"event\":\"step\",\"loss\":\"1\"}",
                                        "{\"event\":\"step\",\"step\":-1}",
                                        "[1]"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct event event;
        FAILS(event_read(ARENA, str_of(lines[i]), &event, ERR), ERR_ANY);
        assert_true(ERR->msg[0] != '\0');
    }
}

/* ---- agreement ---- */

struct two {
    float loss, gradient[3];
    float logits[2];
    bool has_logits;
};

static void make_file(struct arena *arena, const struct two *values, int n_gradients,
                      struct st_file *ret)
{
    struct st_tensor *tensors = arena_array(arena, struct st_tensor, 3);
    tensors[0] = (struct st_tensor){.name = "grad.a",
                                    .dtype = DT_F32,
                                    .shape = SHAPE(3),
                                    .data = values->gradient,
                                    .bytes = 12};
    int n = n_gradients;
    if (values->has_logits) {
        tensors[n++] = (struct st_tensor){.name = "logits",
                                          .dtype = DT_F32,
                                          .shape = SHAPE(2),
                                          .data = values->logits,
                                          .bytes = 8};
    }
    tensors[n++] = (struct st_tensor){
        .name = "loss", .dtype = DT_F32, .shape = SHAPE_SCALAR, .data = &values->loss, .bytes = 4};
    *ret = (struct st_file){.tensors = tensors, .n_tensors = n};
}

static bool holds(const struct two *a, const struct two *b, const char *precision)
{
    struct st_file ours;
    struct st_file theirs;
    struct agreement found;
    const struct agree_limits limits = agree_limits_of(precision, "cuda");
    make_file(ARENA, a, 1, &ours);
    make_file(ARENA, b, 1, &theirs);
    PASSES(agree(&ours, &theirs, &limits, &found, ERR));
    assert_int_equal(found.n_elements, 3);
    return found.holds;
}

TEST(agreement_has_limits)
{
    const struct two base = {.loss = 2.0F, .gradient = {3.0F, 0.0F, 4.0F}};
    const struct two near_loss = {.loss = 2.00015F, .gradient = {3.0F, 0.0F, 4.0F}};
    const struct two far_loss = {.loss = 2.0003F, .gradient = {3.0F, 0.0F, 4.0F}};
    const struct two far_gradient = {.loss = 2.0F, .gradient = {3.0F, 0.0F, 4.2F}};
    const struct two not_a_number = {.loss = NAN, .gradient = {3.0F, 0.0F, 4.0F}};
    const struct two not_a_gradient = {.loss = 2.0F, .gradient = {3.0F, NAN, 4.0F}};
    assert_true(holds(&base, &base, "fp32"));
    assert_true(holds(&base, &near_loss, "fp32"));
    assert_false(holds(&base, &far_loss, "fp32"));
    assert_true(holds(&base, &far_loss, "amp"));
    assert_false(holds(&base, &far_gradient, "fp32"));
    assert_true(holds(&base, &far_gradient, "amp"));
    assert_false(holds(&base, &not_a_number, "amp"));
    assert_false(holds(&base, &not_a_gradient, "amp"));
    assert_false(holds(&not_a_number, &not_a_number, "amp"));
}

TEST(logits_are_held_where_both_have_them)
{
    const struct two base = {2.0F, {3.0F, 0.0F, 4.0F}, {-8.0F, 1.0F}, true};
    const struct two near = {2.0F, {3.0F, 0.0F, 4.0F}, {-8.0F, 1.007F}, true};
    const struct two far = {2.0F, {3.0F, 0.0F, 4.0F}, {-8.0F, 1.009F}, true};
    const struct two none = {2.0F, {3.0F, 0.0F, 4.0F}, {0.0F, 0.0F}, false};
    const struct two not_a_number = {2.0F, {3.0F, 0.0F, 4.0F}, {NAN, 1.0F}, true};
    assert_true(holds(&base, &near, "fp32"));
    assert_false(holds(&base, &far, "fp32"));
    assert_true(holds(&base, &far, "amp"));
    assert_true(holds(&base, &none, "fp32"));
    assert_false(holds(&base, &not_a_number, "amp"));
    assert_true(agree_limits_of("fp32", "cpu").loss < agree_limits_of("fp32", "cuda").loss);
}

/* A batch norm of two channels. */
struct kept {
    float mean[2], variance[2];
};

static double statistics_apart(const struct kept *a, const struct kept *b)
{
    static const float loss = 2.0F, gradient[] = {3.0F, 0.0F, 4.0F};
    const struct kept *const kept[] = {a, b};
    const struct agree_limits limits = agree_limits_of("fp32", "cpu");
    struct st_tensor tensors[2][4];
    struct st_file files[2];
    struct agreement found;
    for (int i = 0; i < 2; i++) {
        const struct st_tensor all[] = {
            {"bn._mean", DT_F32, SHAPE(2), kept[i]->mean, 8},
            {"bn._variance", DT_F32, SHAPE(2), kept[i]->variance, 8},
            {"grad.a", DT_F32, SHAPE(3), gradient, 12},
            {"loss", DT_F32, SHAPE_SCALAR, &loss, 4},
        };
        memcpy(tensors[i], all, sizeof(all));
        files[i] = (struct st_file){.tensors = tensors[i], .n_tensors = 4};
    }
    PASSES(agree(&files[0], &files[1], &limits, &found, ERR));
    assert_int_equal(found.holds, found.statistics_difference <= limits.statistics);
    return found.statistics_difference;
}

TEST(a_mean_is_held_against_its_deviation)
{
    const struct kept base = {{0.5F, 0.0F}, {0.9F, 1.6F}};
    const struct kept zero = {{1e-8F, 0.0F}, {0.9F, 1.6F}};
    const struct kept rounded = {{-3e-7F, 2e-7F}, {0.9F, 1.6F}};
    const struct kept shifted = {{1e-8F, 1e-4F}, {0.9F, 1.6F}};
    const struct kept biased = {{0.5F, 0.0F}, {0.9F, 1.61F}};
    const struct kept moved = {{0.501F, 0.0F}, {0.9F, 1.6F}};
    const struct kept not_a_number = {{NAN, 0.0F}, {0.9F, 1.6F}};
    assert_true(statistics_apart(&base, &base) == 0.0);
    assert_true(statistics_apart(&zero, &rounded) < 1e-4);
    assert_true(statistics_apart(&rounded, &zero) < 1e-4);
    assert_true(statistics_apart(&zero, &shifted) > 1e-3);
    assert_true(statistics_apart(&base, &biased) > 1e-3);
    assert_true(statistics_apart(&base, &moved) > 1e-3);
    assert_true(isinf(statistics_apart(&base, &not_a_number)));
}

TEST(files_must_match)
{
    const struct two values = {.loss = 2.0F, .gradient = {3.0F, 0.0F, 4.0F}};
    const struct agree_limits limits = agree_limits_of("amp", "cuda");
    struct st_file ours;
    struct st_file theirs;
    struct agreement found;
    make_file(ARENA, &values, 1, &ours);
    make_file(ARENA, &values, 1, &theirs);
    theirs.tensors[0].name = "grad.b";
    FAILS(agree(&ours, &theirs, &limits, &found, ERR), ERR_ANY);
    assert_string_equal(ERR->msg, "tensor grad.a is missing");
    theirs.tensors[0].name = "grad.a";
    theirs.tensors[0].shape = SHAPE(1, 3);
    FAILS(agree(&ours, &theirs, &limits, &found, ERR), ERR_ANY);
    make_file(ARENA, &values, 0, &theirs);
    FAILS(agree(&ours, &theirs, &limits, &found, ERR), ERR_ANY);
    FAILS(agree(&theirs, &theirs, &limits, &found, ERR), ERR_ANY); /* nothing to compare */
}
