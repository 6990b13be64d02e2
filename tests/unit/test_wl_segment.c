/* SPDX-License-Identifier: Apache-2.0 */
/* What segmentation networks add: bilinear upsampling, concatenation, a loss over pixels of which some are ignored. */
#include "wl_gradient.h"

#define IGNORED 255

static const struct loss_opts WITH_IGNORED = {.ignore_label = IGNORED};

/* ---- upsampling ---- */

struct resize_case {
    const char *name;
    int64_t h, w, p, q;
};

static const struct resize_case RESIZE_CASES[] = {
    {"3x5 to 7x9", 3, 5, 7, 9},      {"4x3 to 8x6", 4, 3, 8, 6},      {"2x3 to 8x12", 2, 3, 8, 12},
    {"1x1 to 3x4", 1, 1, 3, 4},      {"2x1 to 5x3", 2, 1, 5, 3},      {"1x4 to 1x7", 1, 4, 1, 7},
    {"5x4 down to 3x2", 5, 4, 3, 2}, {"3x3 down to 1x1", 3, 3, 1, 1}, {"3x4 to itself", 3, 4, 3, 4},
};

TEST(upsample_gradients)
{
    for (size_t i = 0; i < 2 * ARRAY_LEN(RESIZE_CASES); i++) {
        const struct resize_case *c = &RESIZE_CASES[i / 2];
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(2, 3, c->h, c->w));
        int y = graph_upsample(
            f.graph, x,
            &(struct upsample_opts){.height = c->p, .width = c->q, .is_aligned = i % 2 == 1});
        finish_with_labels(&f, y, &WITH_IGNORED);
        check_all_gradients(&f, 3, c->name);
    }
}

/* One row or column computed by hand. Every number is exact in binary, so float and double must both have it exactly. */
struct line_case {
    bool is_aligned;
    int64_t n_in, n_out;
    double in[4], out[5];
};

static const struct line_case LINES[] = {
    {false, 2, 4, {0, 8}, {0, 2, 6, 8}},         /* at -1/4, 1/4, 3/4, 5/4 */
    {true, 2, 5, {0, 8}, {0, 2, 4, 6, 8}},       /* at 0, 1/4 ... 1 */
    {false, 3, 2, {0, 4, 16}, {1, 13}},          /* at 1/4, 7/4 */
    {true, 3, 2, {0, 4, 16}, {0, 16}},           /* at 0, 2 */
    {false, 4, 2, {0, 4, 16, 64}, {2, 40}},      /* at 1/2, 5/2 */
    {true, 3, 5, {0, 4, 16}, {0, 2, 4, 10, 16}}, /* at 0, 1/2 ... 2 */
    {true, 3, 1, {8, 4, 16}, {8}},               /* one pixel: the first */
    {false, 3, 1, {8, 4, 16}, {4}},              /* one pixel: the middle */
    {false, 1, 3, {5}, {5, 5, 5}},
    {true, 1, 3, {5}, {5, 5, 5}},
};

/* x[h][w] = a[h] b[w] goes to A[p] B[q]. */
static void check_lines(const struct line_case *rows, const struct line_case *columns,
                        enum dtype dtype)
{
    FIXTURE(f, dtype, CPU_PLAIN, 2);
    int x = param_x(&f, SHAPE(1, 2, rows->n_in, columns->n_in));
    int y = graph_upsample(f.graph, x,
                           &(struct upsample_opts){.height = rows->n_out,
                                                   .width = columns->n_out,
                                                   .is_aligned = rows->is_aligned});
    graph_output(f.graph, "y", y);
    finish_with_loss(&f, y, 0.0);
    double in[2 * 16];
    int64_t plane = rows->n_in * columns->n_in;
    for (int64_t i = 0; i < 2 * plane; i++) {
        double sign = i < plane ? 1.0 : -1.0;
        in[i] = sign * rows->in[i % plane / columns->n_in] * columns->in[i % columns->n_in];
    }
    net_write_f64(&f.net, x, in);
    fill_labels(&f, 2, 1);
    (void)loss_now(&f);
    CLEANUP(free) double *out = read_doubles(&f, y);
    int64_t out_plane = rows->n_out * columns->n_out;
    for (int64_t i = 0; i < 2 * out_plane; i++) {
        double sign = i < out_plane ? 1.0 : -1.0;
        double want =
            sign * rows->out[i % out_plane / columns->n_out] * columns->out[i % columns->n_out];
        if (!(out[i] == want)) {
            fail_msg("%dx%d to %dx%d element %d: %.17g, expected %.17g", (int)rows->n_in,
                     (int)columns->n_in, (int)rows->n_out, (int)columns->n_out, (int)i, out[i],
                     want);
        }
    }
}

TEST(upsample_follows_its_formula)
{
    for (size_t i = 0; i < ARRAY_LEN(LINES); i++) {
        for (size_t j = 0; j < ARRAY_LEN(LINES); j++) {
            if (LINES[i].is_aligned == LINES[j].is_aligned) {
                check_lines(&LINES[i], &LINES[j], DT_F32);
                check_lines(&LINES[i], &LINES[j], DT_F64);
            }
        }
    }
}

/* ---- concatenation ---- */

TEST(concat_gradients)
{
    for (int n_parts = 1; n_parts <= CONCAT_IN_MAX; n_parts++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(2, 2, 3, 2));
        int parts[CONCAT_IN_MAX];
        int64_t channels = 0;
        for (int i = 0; i < n_parts; i++) {
            const char *name = arena_printf(&f.arena, "conv%d", i);
            parts[i] = graph_conv(
                f.graph, x, &(struct conv_opts){.name = name, .out_channels = i + 1, .kernel = 1});
            channels += i + 1;
        }
        finish_with_labels(&f, graph_concat(f.graph, parts, n_parts), &WITH_IGNORED);
        check_all_gradients(&f, channels, "concat");
    }
}

/* x three times, once as part of an earlier sum: its gradient is written once and then added to. */
TEST(concat_of_the_same_value)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int x = param_x(&f, SHAPE(2, 3, 3, 4));
    int sum = graph_add(f.graph, x, graph_relu(f.graph, x), false);
    int parts[4] = {x, sum, x, sum};
    finish_with_labels(&f, graph_concat(f.graph, parts, 4), &WITH_IGNORED);
    check_all_gradients(&f, 12, "concat of one value");
}

TEST(concat_keeps_the_order)
{
    FIXTURE(f, DT_F32, CPU_PLAIN, 2);
    int a = graph_param(f.graph, "a", SHAPE(2, 1, 1, 2), (struct init){INIT_CONST, 0});
    int b = graph_param(f.graph, "b", SHAPE(2, 2, 1, 2), (struct init){INIT_CONST, 0});
    int y = graph_concat(f.graph, (int[]){b, a}, 2);
    graph_output(f.graph, "y", y);
    finish_with_loss(&f, y, 0.0);
    net_write_f64(&f.net, a, (const double[]){1, 2, 3, 4});
    net_write_f64(&f.net, b, (const double[]){10, 20, 30, 40, 50, 60, 70, 80});
    fill_labels(&f, 3, 1);
    (void)loss_now(&f);
    static const double want[12] = {10, 20, 30, 40, 1, 2, 50, 60, 70, 80, 3, 4};
    CLEANUP(free) double *out = read_doubles(&f, y);
    assert_memory_equal(out, want, sizeof(want));
}

TEST(concat_refuses_what_does_not_fit)
{
    struct graph *graph = graph_new(ARENA, DT_F32);
    const struct init zero = {INIT_CONST, 0};
    int a = graph_param(graph, "a", SHAPE(2, 1, 4, 4), zero);
    int b = graph_param(graph, "b", SHAPE(2, 3, 4, 5), zero);
    assert_int_equal(graph_concat(graph, (int[]){a, b}, 2), NO_VALUE);
    FAILS(graph_finish(graph, ERR), ERR_ANY);
    SAYS("concat: input 1 is [2, 3, 4, 5], the first is [2, 1, 4, 4]");
}

/* ---- average pooling in windows ---- */

TEST(avgpool_gradients)
{
    static const int64_t cases[][3] = {{4, 6, 2}, {5, 3, 2}, {7, 8, 3}, {3, 5, 5}, {4, 2, 9}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(2, 3, cases[i][0], cases[i][1]));
        int sum = graph_add(f.graph, x, x, false);
        int both[2] = {graph_avgpool(f.graph, sum, cases[i][2]),
                       graph_avgpool(f.graph, x, cases[i][2])};
        finish_with_labels(&f, graph_concat(f.graph, both, 2), &WITH_IGNORED);
        check_all_gradients(&f, 6, "average pool");
    }
}

/* A window at the border contains less of the image and divides by what it contains. */
TEST(avgpool_follows_its_formula)
{
    FIXTURE(f, DT_F32, CPU_PLAIN, 2);
    int x = param_x(&f, SHAPE(1, 2, 3, 3));
    int y = graph_avgpool(f.graph, x, 2);
    int whole = graph_avgpool(f.graph, x, 3);
    graph_output(f.graph, "y", y);
    graph_output(f.graph, "whole", whole);
    finish_with_loss(&f, y, 0.0);
    net_write_f64(&f.net, x,
                  (const double[]){1, 3, 5, 7, 9, 11, 13, 15, 17, 0, 0, 0, 0, 0, 0, 0, 0, 9});
    fill_labels(&f, 2, 1);
    (void)loss_now(&f);
    double *out = read_doubles(&f, y);
    static const double want[8] = {5, 8, 14, 17, 0, 0, 0, 9};
    assert_memory_equal(out, want, sizeof(want));
    free(out);
    out = read_doubles(&f, whole);
    assert_true(out[0] == 9.0 && out[1] == 1.0);
    free(out);
}

/* ---- dropout ---- */

static void set_drop_step(struct fixture *f, int64_t step)
{
    net_write(&f->net, graph_find(f->graph, "step"), &step);
}

TEST(dropout_gradients)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int x = param_x(&f, SHAPE(2, 4, 3, 5));
    int step = graph_input(f.graph, "step", SHAPE_SCALAR, DT_I64);
    int y = graph_dropout(f.graph, graph_relu(f.graph, x), step, 0.3);
    y = graph_add(f.graph, graph_dropout(f.graph, y, step, 0.3), x, false);
    finish_with_labels(&f, y, &WITH_IGNORED);
    set_drop_step(&f, 7);
    check_all_gradients(&f, 4, "dropout");
}

/* The mask, read by passing ones through two dropouts of the same value: each has a random stream of its own. */
static void read_masks(struct fixture *f, int64_t step, const int values[2], double *ret[2])
{
    set_drop_step(f, step);
    (void)loss_now(f);
    ret[0] = read_doubles(f, values[0]);
    ret[1] = read_doubles(f, values[1]);
}

static int64_t n_equal(const double *a, const double *b, int64_t count)
{
    int64_t n = 0;
    for (int64_t i = 0; i < count; i++) {
        n += a[i] == b[i];
    }
    return n;
}

TEST(dropout_drops_its_share_anew_each_step)
{
    FIXTURE(f, DT_F32, CPU_PLAIN, 2);
    const int64_t count = INT64_C(2) * 10 * 50 * 50;
    int x = graph_param(f.graph, "x", SHAPE(2, 10, 50, 50), (struct init){INIT_CONST, 1.0});
    int step = graph_input(f.graph, "step", SHAPE_SCALAR, DT_I64);
    const int values[2] = {graph_dropout(f.graph, x, step, 0.1),
                           graph_dropout(f.graph, x, step, 0.1)};
    graph_output(f.graph, "a", values[0]);
    graph_output(f.graph, "b", values[1]);
    finish_with_loss(&f, graph_add(f.graph, values[0], values[1], false), 0.0);
    fill_labels(&f, 10, 1);
    double *first[2];
    double *again[2];
    double *next[2];
    read_masks(&f, 1, values, first);
    read_masks(&f, 1, values, again);
    read_masks(&f, 2, values, next);
    int64_t n_kept = 0;
    for (int64_t i = 0; i < count; i++) {
        bool is_kept = first[0][i] == (double)(float)(1.0 / 0.9);
        assert_true(is_kept || first[0][i] == 0.0);
        n_kept += is_kept;
    }
    /* 45,000 of 50,000; one standard deviation is sqrt(50,000 * 0.09) = 67. Two masks agree in 0.82 of all
       places, with one of 86. Five deviations are allowed. */
    assert_true(labs(n_kept - 45000) < INT64_C(335));
    assert_int_equal(n_equal(first[0], again[0], count), count);
    assert_true(labs(n_equal(first[0], next[0], count) - 41000) < INT64_C(430));
    assert_true(labs(n_equal(first[0], first[1], count) - 41000) < INT64_C(430));
    for (int i = 0; i < 2; i++) {
        free(first[i]);
        free(again[i]);
        free(next[i]);
    }
}

/* Whole planes are kept or dropped. */
TEST(channel_dropout_drops_planes)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int x = graph_param(f.graph, "x", SHAPE(4, 50, 3, 2), (struct init){INIT_CONST, 1.0});
    int step = graph_input(f.graph, "step", SHAPE_SCALAR, DT_I64);
    int y = graph_dropout_channels(f.graph, x, step, 0.25);
    graph_output(f.graph, "y", y);
    finish_with_labels(&f, y, &WITH_IGNORED);
    fill_labels(&f, 50, 1);
    set_drop_step(&f, 1);
    (void)loss_now(&f);
    CLEANUP(free) double *out = read_doubles(&f, y);
    CLEANUP(free) double *grad = read_doubles(&f, f.graph->values[x].grad);
    int n_dropped = 0;
    for (int i = 0; i < 200; i++) {
        bool is_dropped = out[(size_t)i * 6] == 0.0;
        n_dropped += is_dropped;
        for (int j = 0; j < 6; j++) {
            double value = out[(size_t)i * 6 + (size_t)j];
            assert_true(value == (is_dropped ? 0.0 : 1.0 / 0.75));
            assert_true(!is_dropped || grad[(size_t)i * 6 + (size_t)j] == 0.0);
        }
    }
    assert_true(n_dropped > 20 && n_dropped < 80); /* 50, one standard deviation is 6.1 */
}

/* ---- several resolutions at once ---- */

/* The shape of an exchange between two resolutions: down by a strided convolution, up by 1x1 and upsampling, sums with ReLU. */
TEST(exchange_gradients)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int high = param_x(&f, SHAPE(2, 2, 5, 6));
    int low = graph_conv(
        f.graph, high,
        &(struct conv_opts){.name = "down", .out_channels = 3, .kernel = 3, .stride = 2, .pad = 1});
    int up =
        graph_conv(f.graph, low, &(struct conv_opts){.name = "up", .out_channels = 2, .kernel = 1});
    up = graph_bn(f.graph, up, &(struct bn_opts){.name = "bn"});
    up = graph_upsample(f.graph, up, &(struct upsample_opts){.height = 5, .width = 6});
    int sum =
        graph_add(f.graph, graph_add(f.graph, high, up, false), graph_relu(f.graph, high), true);
    int both[2] = {
        sum, graph_upsample(f.graph, low,
                            &(struct upsample_opts){.height = 5, .width = 6, .is_aligned = true})};
    finish_with_labels(&f, graph_concat(f.graph, both, 2), &WITH_IGNORED);
    check_all_gradients(&f, 5, "exchange");
}

/* ---- the loss over pixels ---- */

TEST(pixel_loss_gradients)
{
    static const double smoothings[] = {0.0, 0.2};
    for (size_t i = 0; i < ARRAY_LEN(smoothings); i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        finish_with_labels(
            &f, param_x(&f, SHAPE(3, 5, 3, 7)),
            &(struct loss_opts){.label_smoothing = smoothings[i], .ignore_label = IGNORED});
        check_all_gradients(&f, 5, "loss with ignored pixels");
    }
}

/* Two heads on one value: the graph's loss is the sum, weighted, and so is the gradient. */
TEST(a_second_loss_is_added)
{
    double losses[3];
    for (int i = 0; i < 3; i++) { /* the first alone, the second alone, both */
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(2, 5, 3, 4));
        int labels = graph_input(f.graph, "labels", SHAPE(2, 3, 4), DT_I64);
        if (i != 1) {
            (void)graph_loss(f.graph, x, labels, &WITH_IGNORED);
        }
        if (i != 0) {
            (void)graph_loss(f.graph, graph_add(f.graph, x, graph_relu(f.graph, x), false), labels,
                             &(struct loss_opts){.ignore_label = IGNORED, .weight = 0.4});
        }
        fixture_ready(&f, 1);
        check_all_gradients(&f, 5, "weighted losses");
        losses[i] = loss_now(&f);
    }
    assert_true(losses[1] > 0.1 && losses[0] > 0.1);
    assert_true(fabs(losses[2] - losses[0] - losses[1]) < 1e-15);
}

/* -ln softmax of the label, averaged over the pixels that have one, in long double. */
static double loss_by_hand(const double *x, const int64_t *labels, int64_t n, int64_t c,
                           int64_t plane)
{
    long double total = 0.0L;
    int64_t n_counted = 0;
    for (int64_t i = 0; i < n * plane; i++) {
        if (labels[i] == IGNORED) {
            continue;
        }
        const double *pixel = x + i / plane * c * plane + i % plane;
        long double sum = 0.0L;
        for (int64_t k = 0; k < c; k++) {
            sum += expl((long double)pixel[k * plane]);
        }
        total += logl(sum) - (long double)pixel[labels[i] * plane];
        n_counted++;
    }
    return (double)(total / (long double)n_counted);
}

TEST(pixel_loss_is_the_mean_over_labelled_pixels)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int x = param_x(&f, SHAPE(2, 19, 5, 3));
    finish_with_labels(&f, x, &WITH_IGNORED);
    fill_spread(&f, x, 4);
    fill_labels(&f, 19, 4);
    CLEANUP(free) double *logits = read_doubles(&f, x);
    int64_t labels[30];
    net_read(&f.net, graph_find(f.graph, "labels"), labels);
    int n_ignored = 0;
    for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
        n_ignored += labels[i] == IGNORED;
    }
    assert_int_equal(n_ignored, 4);
    assert_true(fabs(loss_now(&f) - loss_by_hand(logits, labels, 2, 19, 15)) < 1e-14);
}

TEST(a_batch_without_labels_has_loss_zero_and_no_gradient)
{
    static const enum dtype dtypes[] = {DT_F32, DT_F64};
    for (size_t t = 0; t < ARRAY_LEN(dtypes); t++) {
        FIXTURE(f, dtypes[t], CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(2, 3, 2, 2));
        finish_with_labels(&f, x, &WITH_IGNORED);
        fill_spread(&f, x, 4);
        static const int64_t labels[8] = {255, 255, 255, 255, 255, 255, 255, 255};
        net_write(&f.net, graph_find(f.graph, "labels"), labels);
        assert_true(loss_now(&f) == 0.0);
        CLEANUP(free) double *grad = read_doubles(&f, f.graph->values[x].grad);
        assert_true(norm_of(grad, 24) == 0.0);
    }
}
