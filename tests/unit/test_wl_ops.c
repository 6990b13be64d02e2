/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of every op, in double, against central differences of the loss in every single coordinate. */
#include "wl_gradient.h"

/* ---- convolution ---- */

struct conv_case {
    const char *name;
    int64_t n, c, h, w, out, kernel, stride, pad, dilation, groups;
    bool has_bias;
};

static const struct conv_case CONV_CASES[] = {
    {"1x1", 2, 5, 4, 3, 6, 1, 1, 0, 1, 1, false},
    {"1x1 stride 2", 2, 3, 5, 4, 4, 1, 2, 0, 1, 1, false},
    {"3x3 pad 1 bias", 2, 3, 5, 4, 9, 3, 1, 1, 1, 1, true},
    {"3x3 stride 2 odd image", 1, 4, 7, 5, 3, 3, 2, 1, 1, 1, false},
    {"3x3 stride 2 even image", 1, 2, 6, 8, 3, 3, 2, 1, 1, 1, false},
    {"7x7 stride 2 pad 3", 1, 3, 9, 8, 2, 7, 2, 3, 1, 1, false},
    {"3x3 dilation 2", 1, 2, 7, 6, 3, 3, 1, 2, 2, 1, false},
    {"3x3 stride 3 dilation 2 no pad", 1, 2, 9, 8, 3, 3, 3, 0, 2, 1, false},
    {"3x3 in 2 groups", 2, 4, 4, 5, 6, 3, 1, 1, 1, 2, true},
    {"depthwise", 2, 5, 5, 4, 5, 3, 1, 1, 1, 5, false},
    {"3x3 with everything", 2, 4, 9, 8, 6, 3, 2, 2, 2, 2, true},
    {"depthwise, dilated past the image", 1, 3, 5, 6, 3, 3, 1, 7, 7, 3, true},
    {"window larger than image", 1, 2, 2, 3, 2, 5, 1, 2, 1, 1, false},
    {"unused border", 1, 2, 6, 6, 2, 1, 4, 0, 1, 1, false},
};

/* The graph of one case: its input and its output. */
static int conv_of(struct fixture *f, const struct conv_case *c, int *ret_x)
{
    *ret_x = param_x(f, SHAPE(c->n, c->c, c->h, c->w));
    return graph_conv(f->graph, *ret_x,
                      &(struct conv_opts){.name = "conv",
                                          .out_channels = c->out,
                                          .kernel = c->kernel,
                                          .stride = c->stride,
                                          .pad = c->pad,
                                          .dilation = c->dilation,
                                          .groups = c->groups,
                                          .has_bias = c->has_bias});
}

TEST(conv_gradients)
{
    for (size_t i = 0; i < ARRAY_LEN(CONV_CASES); i++) {
        const struct conv_case *c = &CONV_CASES[i];
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x;
        finish_with_loss(&f, conv_of(&f, c, &x), 0.0);
        check_all_gradients(&f, c->out, c->name);
    }
}

/* Six loops, no tricks: what the tiled product must equal, for sizes that cross its tiles (64 x 128 x 256). */
static double conv_at(const struct conv_geom *g, const double *x, const double *w,
                      const int64_t at[4])
{
    int64_t n = at[0];
    int64_t k = at[1];
    int64_t c_group = g->c / g->groups;
    double sum = 0.0;
    for (int64_t c = 0; c < c_group; c++) {
        for (int64_t r = 0; r < g->r; r++) {
            for (int64_t s = 0; s < g->s; s++) {
                int64_t h = at[2] * g->stride_h - g->pad_h + r * g->dil_h;
                int64_t v = at[3] * g->stride_w - g->pad_w + s * g->dil_w;
                int64_t channel = k / (g->k / g->groups) * c_group + c;
                if (h >= 0 && h < g->h && v >= 0 && v < g->w) {
                    sum += x[((n * g->c + channel) * g->h + h) * g->w + v] *
                           w[((k * c_group + c) * g->r + r) * g->s + s];
                }
            }
        }
    }
    return sum;
}

static void check_conv_values(const struct fixture *f, int x, int y)
{
    const struct conv_geom *g = &f->graph->ops[0].geom.conv;
    CLEANUP(free) double *in = read_doubles(f, x);
    CLEANUP(free) double *weight = read_doubles(f, graph_find(f->graph, "conv.weight"));
    CLEANUP(free) double *out = read_doubles(f, y);
    double worst = 0.0;
    for (int64_t i = 0; i < g->n * g->k * g->p * g->q; i++) {
        int64_t at[4] = {i / (g->k * g->p * g->q), i / (g->p * g->q) % g->k, i / g->q % g->p,
                         i % g->q};
        worst = fmax(worst, fabs(conv_at(g, in, weight, at) - out[i]));
    }
    /* Sums of at most 459 products below 1 in another order: 459 roundings of 2^-53 of a sum below 459. */
    assert_true(worst < 459.0 * 459.0 * 0x1p-53);
}

/* The slope along one random direction: a wrong entry anywhere changes it. */
static void check_one_direction(struct fixture *f, int param)
{
    (void)loss_now(f);
    int64_t count = count_of(f, param);
    CLEANUP(free) double *kept = read_doubles(f, param);
    CLEANUP(free) double *grad = read_doubles(f, f->graph->values[param].grad);
    CLEANUP(free) double *moved = xcalloc((size_t)count, sizeof(*moved));
    double slope = 0.0;
    double loss[2];
    for (int side = 0; side < 2; side++) {
        struct rng rng;
        rng_init(&rng, 99);
        slope = 0.0;
        for (int64_t i = 0; i < count; i++) {
            double direction = rng_normal(&rng);
            moved[i] = kept[i] + (side == 0 ? STEP : -STEP) * direction;
            slope += grad[i] * direction;
        }
        net_write_f64(&f->net, param, moved);
        loss[side] = loss_now(f);
    }
    net_write_f64(&f->net, param, kept);
    /* A direction has the norm sqrt(count), at most 180 here, and the truncation error grows with its cube. */
    assert_true(fabs((loss[0] - loss[1]) / (2.0 * STEP) - slope) < 1e-7 * fmax(1.0, fabs(slope)));
}

TEST(conv_equals_six_loops_across_tiles)
{
    static const struct conv_case cases[] = {
        {"", 3, 51, 8, 7, 70, 3, 1, 1, 1, 1, false},
        {"", 2, 40, 9, 9, 136, 3, 2, 0, 1, 2, false},
        {"", 5, 300, 3, 11, 65, 1, 1, 0, 1, 1, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x;
        int y = conv_of(&f, &cases[i], &x);
        graph_output(f.graph, "y", y);
        finish_with_loss(&f, y, 0.0);
        fill_spread(&f, x, 5);
        fill_spread(&f, graph_find(f.graph, "conv.weight"), 6);
        fill_labels(&f, cases[i].out, 2);
        (void)loss_now(&f);
        check_conv_values(&f, x, y);
        for (int p = 0; p < f.graph->n_params; p++) {
            check_one_direction(&f, f.graph->params[p]);
        }
    }
}

/* ---- the others ---- */

TEST(batch_norm_gradients)
{
    for (int has_relu = 0; has_relu < 2; has_relu++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(3, 4, 3, 5));
        int y = graph_bn(f.graph, x, &(struct bn_opts){.name = "bn", .has_relu = has_relu == 1});
        finish_with_loss(&f, y, 0.0);
        check_all_gradients(&f, 4, has_relu ? "bn_relu" : "bn");
    }
}

TEST(relu_gradients)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    finish_with_loss(&f, graph_relu(f.graph, param_x(&f, SHAPE(2, 6, 3, 3))), 0.0);
    check_all_gradients(&f, 6, "relu");
}

TEST(add_gradients)
{
    for (int has_relu = 0; has_relu < 2; has_relu++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int a = param_x(&f, SHAPE(2, 4, 3, 3));
        int b = graph_param(f.graph, "b", SHAPE(2, 4, 3, 3), (struct init){INIT_CONST, 0.1});
        finish_with_loss(&f, graph_add(f.graph, a, b, has_relu == 1), 0.0);
        check_all_gradients(&f, 4, has_relu ? "add_relu" : "add");
    }
}

/* One value used three times, once as both sides of a sum: its gradient is written once and then added to. */
TEST(gradients_of_a_value_with_many_consumers)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int x = param_x(&f, SHAPE(2, 4, 4, 4));
    int y = graph_bn(f.graph, x, &(struct bn_opts){.name = "bn", .has_relu = true});
    int a = graph_conv(f.graph, y,
                       &(struct conv_opts){.name = "a", .out_channels = 4, .kernel = 3, .pad = 1});
    int b = graph_bn(f.graph, y, &(struct bn_opts){.name = "bn2"});
    int pooled = graph_maxpool(f.graph, y, 3, 1, 1);
    int sum =
        graph_add(f.graph, graph_add(f.graph, a, b, true), graph_add(f.graph, y, y, false), false);
    finish_with_loss(&f, graph_add(f.graph, sum, graph_relu(f.graph, pooled), false), 0.0);
    check_all_gradients(&f, 4, "shared value");
}

TEST(pooling_gradients)
{
    static const struct {
        int64_t h, w, window, stride, pad;
    } cases[] = {{8, 7, 3, 2, 1}, {6, 6, 2, 2, 0}, {5, 4, 3, 1, 1}, {3, 3, 3, 3, 0}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(2, 3, cases[i].h, cases[i].w));
        finish_with_loss(
            &f, graph_maxpool(f.graph, x, cases[i].window, cases[i].stride, cases[i].pad), 0.0);
        check_all_gradients(&f, 3, "maxpool");
    }
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    finish_with_loss(&f, graph_global_avgpool(f.graph, param_x(&f, SHAPE(3, 5, 4, 3))), 0.0);
    check_all_gradients(&f, 5, "avgpool");
}

TEST(linear_gradients)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    finish_with_loss(&f, graph_linear(f.graph, param_x(&f, SHAPE(3, 11)), "fc", 9), 0.0);
    check_all_gradients(&f, 9, "linear");
}

TEST(loss_gradients)
{
    for (int i = 0; i < 2; i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        finish_with_loss(&f, param_x(&f, i ? SHAPE(2, 5, 3, 4) : SHAPE(6, 7)), i ? 0.0 : 0.1);
        check_all_gradients(&f, i ? 5 : 7, i ? "loss of pixels" : "loss with smoothing");
    }
}
