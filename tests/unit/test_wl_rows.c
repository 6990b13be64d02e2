/* SPDX-License-Identifier: Apache-2.0 */
/* What sequence networks add: embeddings, layer norm, curves, attention, gathered rows, a loss that computes its
   gradient. */
#include "wl_gradient.h"

static int numbers(struct fixture *f, const char *name, struct shape shape)
{
    return graph_input(f->graph, name, shape, DT_I64);
}

static void write_numbers(struct fixture *f, int id, const int64_t *from)
{
    net_write(&f->net, id, from);
}

/* The loss over the rows of `logits` (R, C), labels (R). */
static void finish_rows(struct fixture *f, int logits, const struct loss_opts *opts)
{
    int labels = numbers(f, "labels", SHAPE(f->graph->values[logits].shape.dim[0]));
    (void)graph_row_loss(f->graph, logits, labels, opts);
    fixture_ready(f, 1);
}

static const struct loss_opts PLAIN = {.ignore_label = LOSS_IGNORE_NONE};

/* ---- linear ---- */

/* One table used for a product twice and for a lookup, as BERT ties its decoder. */
TEST(tied_weights_get_all_their_gradients)
{
    static const int64_t ids[] = {3, 1, 3, 0, 2, 3};
    static const int64_t segments[] = {0, 0, 1, 0, 1, 1};
    int word;
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int at_ids = numbers(&f, "ids", SHAPE(2, 3));
    int at_segments = numbers(&f, "segments", SHAPE(2, 3));
    const struct embed_opts embed = {
        .owner = "e", .width = 5, .vocabulary = 7, .positions = 4, .segments = 2, .init_std = 1.0};
    int x = graph_embed(f.graph, at_ids, at_segments, &embed, &word);
    x = graph_linear_with(f.graph, graph_tanh(f.graph, x),
                          &(struct linear_opts){.name = "tied",
                                                .out_features = 7,
                                                .is_tied = true,
                                                .weight = word,
                                                .is_rounded = true});
    finish_rows(&f, x, &PLAIN);
    write_numbers(&f, at_ids, ids);
    write_numbers(&f, at_segments, segments);
    assert_int_equal(graph_find(f.graph, "tied.weight"), NO_VALUE);
    assert_int_equal(graph_n_trainable(f.graph), (7 + 4 + 2) * 5 + 7);
    check_all_gradients(&f, 7, "tied linear");
}

/* Rows that a backend may pad are for the loss alone, and a table that is read as one has to be stored as one. */
TEST(rounded_rows_are_read_by_the_loss_alone)
{
    /* The first is valid, but "plain" has no gradient. */
    static const char *const messages[] = {"does not depend on parameter plain",
                                           "gelu reads rows that are rounded up",
                                           "tied: the tied weight is of another shape or role",
                                           "tied: the tied weight is of another shape or role"};
    for (int i = 0; i < (int)ARRAY_LEN(messages); i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int labels = numbers(&f, "labels", SHAPE(3));
        int plain = graph_param(f.graph, "plain", SHAPE(6, 5), (struct init){INIT_NORMAL, 1.0});
        struct linear_opts opts = {.name = "own", .out_features = 6, .is_rounded = true};
        int x = param_x(&f, SHAPE(3, 5));
        int y = graph_linear_with(f.graph, x, &opts);
        if (i == 1) {
            y = graph_gelu(f.graph, y);
        } else if (i > 1) {
            opts =
                (struct linear_opts){.name = "tied",
                                     .out_features = 6,
                                     .is_tied = true,
                                     .weight = i == 2 ? plain : graph_find(f.graph, "own.weight"),
                                     .is_rounded = i == 2};
            y = graph_linear_with(f.graph, x, &opts);
        }
        (void)graph_row_loss(f.graph, y, labels, &PLAIN);
        FAILS_WITH(graph_finish(f.graph, ERR), ERR_ANY, messages[i]);
    }
}

TEST(joined_linear_gradients)
{
    static const char *const names[] = {"q", "k", "v"};
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int y = graph_linear_joined(f.graph, param_x(&f, SHAPE(5, 8)), names,
                                &(struct linear_opts){.out_features = 8, .init_std = 0.02});
    finish_rows(&f, y, &PLAIN);
    check_all_gradients(&f, 24, "joined linear");
}

/* Each column comes from the parameter that is named for it. */
TEST(joined_linear_equals_three)
{
    static const char *const names[] = {"q", "k", "v"};
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int x = param_x(&f, SHAPE(3, 8));
    int y = graph_linear_joined(f.graph, x, names, &(struct linear_opts){.out_features = 8});
    graph_output(f.graph, "y", y);
    finish_rows(&f, y, &PLAIN);
    fill_spread(&f, x, 3);
    fill_labels(&f, 24, 1);
    (void)loss_now(&f);
    CLEANUP(free) double *in = read_doubles(&f, x);
    CLEANUP(free) double *out = read_doubles(&f, y);
    for (int part = 0; part < 3; part++) {
        const char *name = arena_printf(&f.arena, "%s.weight", names[part]);
        CLEANUP(free) double *weight = read_doubles(&f, graph_find(f.graph, name));
        name = arena_printf(&f.arena, "%s.bias", names[part]);
        CLEANUP(free) double *bias = read_doubles(&f, graph_find(f.graph, name));
        for (int i = 0; i < 3 * 8; i++) {
            double sum = bias[i % 8];
            for (int c = 0; c < 8; c++) {
                sum += in[i / 8 * 8 + c] * weight[i % 8 * 8 + c];
            }
            assert_true(fabs(out[i / 8 * 24 + part * 8 + i % 8] - sum) < 1e-14);
        }
    }
}

/* 7 x 7 doubles do not fill whole lines: the three would not be adjacent. */
TEST(joined_parameters_must_lie_side_by_side)
{
    static const char *const names[] = {"q", "k", "v"};
    struct fixture f;
    fixture_init(&f, DT_F64, CPU_PLAIN, 1);
    int y = graph_linear_joined(f.graph, param_x(&f, SHAPE(3, 7)), names,
                                &(struct linear_opts){.out_features = 7});
    int labels = numbers(&f, "labels", SHAPE(3));
    (void)graph_row_loss(f.graph, y, labels, &PLAIN);
    PASSES(graph_finish(f.graph, ERR));
    FAILS(net_plan(&f.net, &f.arena, f.graph, &f.backend, ERR), ERR_ANY);
    SAYS("q.weight has 392 bytes");
    cpu_release(&f.cpu);
    arena_release(&f.arena);
}

/* ---- row by row ---- */

TEST(layer_norm_gradients)
{
    static const struct shape shapes[] = {{2, {4, 9}}, {2, {1, 3}}, {2, {7, 70}}};
    for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int y = graph_layer_norm(f.graph, param_x(&f, shapes[i]), "ln", 1e-12);
        finish_rows(&f, y, &PLAIN);
        check_all_gradients(&f, shapes[i].dim[1], "layer norm");
    }
}

/* Mean 0 and variance 1 before gamma and beta, which start at 1 and 0. */
TEST(layer_norm_follows_its_formula)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int x = param_x(&f, SHAPE(1, 4));
    int y = graph_layer_norm(f.graph, x, "ln", 0.25);
    graph_output(f.graph, "y", y);
    finish_rows(&f, y, &PLAIN);
    const double in[] = {1.0, 1.0, 4.0, 4.0}; /* mean 2.5, variance 2.25: rstd 1 / sqrt(2.5) */
    net_write_f64(&f.net, x, in);
    fill_labels(&f, 4, 1);
    (void)loss_now(&f);
    CLEANUP(free) double *out = read_doubles(&f, y);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(out[i] - (in[i] - 2.5) / sqrt(2.5)) < 1e-15);
    }
}

TEST(curve_gradients)
{
    for (int i = 0; i < 2; i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(6, 9));
        finish_rows(&f, i ? graph_tanh(f.graph, x) : graph_gelu(f.graph, x), &PLAIN);
        check_all_gradients(&f, 9, i ? "tanh" : "gelu");
    }
}

/* Source of the values: Hendrycks and Gimpel, "Gaussian error linear units": x times the normal distribution function, of which
   Abramowitz and Stegun, table 26.1, has 0.84134 47461 at 1 and 0.97724 98681 at 2. */
TEST(gelu_has_the_normal_distribution)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 1);
    int x = param_x(&f, SHAPE(1, 5));
    int y = graph_gelu(f.graph, x);
    graph_output(f.graph, "y", y);
    finish_rows(&f, y, &PLAIN);
    const double in[] = {0.0, 1.0, 2.0, -1.0, -2.0};
    const double want[] = {0.0, 0.8413447461, 2 * 0.9772498681, -(1 - 0.8413447461),
                           -2 * (1 - 0.9772498681)};
    net_write_f64(&f.net, x, in);
    fill_labels(&f, 5, 1);
    (void)loss_now(&f);
    CLEANUP(free) double *out = read_doubles(&f, y);
    for (int i = 0; i < 5; i++) {
        assert_true(fabs(out[i] - want[i]) < 3e-10);
    }
}

/* ---- attention ---- */

struct attention_case {
    const char *name;
    int64_t n, s, heads, d;
    double rate;
    int64_t mask[8];
};

static const struct attention_case ATTENTION_CASES[] = {
    {"attention", 2, 4, 2, 3, 0.0, {1, 1, 1, 1, 1, 1, 1, 1}},
    {"attention with hidden keys", 2, 4, 2, 3, 0.0, {1, 1, 1, 0, 0, 1, 0, 1}},
    {"attention that sees nothing", 2, 3, 1, 4, 0.0, {0, 0, 0, 1, 0, 1}},
    {"attention with dropout", 2, 4, 3, 2, 0.4, {1, 1, 1, 0, 1, 1, 1, 1}},
    {"attention of one token", 1, 1, 2, 2, 0.0, {1}},
};

static int make_attention(struct fixture *f, const struct attention_case *c, int *ret_x)
{
    int x = param_x(f, SHAPE(c->n * c->s, 3 * c->heads * c->d));
    int mask = numbers(f, "mask", SHAPE(c->n, c->s));
    int step = c->rate > 0.0 ? numbers(f, "step", SHAPE_SCALAR) : NO_VALUE;
    int y = graph_attention(
        f->graph, x,
        &(struct attention_opts){.heads = c->heads, .mask = mask, .rate = c->rate, .step = step});
    graph_output(f->graph, "y", y);
    finish_rows(f, y, &PLAIN);
    write_numbers(f, mask, c->mask);
    if (step != NO_VALUE) {
        write_numbers(f, step, (int64_t[]){5});
    }
    *ret_x = x;
    return y;
}

TEST(attention_gradients)
{
    for (size_t i = 0; i < ARRAY_LEN(ATTENTION_CASES); i++) {
        const struct attention_case *c = &ATTENTION_CASES[i];
        int x;
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        (void)make_attention(&f, c, &x);
        check_all_gradients(&f, c->heads * c->d, c->name);
    }
}

/* The context of (sample, head, query), column `column`, by the formula. */
static double context_at(const struct attention_case *c, const struct attention_geom *g,
                         const double *qkv, const int64_t at[3], int64_t column)
{
    int64_t width = c->heads * c->d;
    double weights[8];
    double total = 0.0;
    double sum = 0.0;
    const double *rows = qkv + at[0] * c->s * 3 * width + at[1] * c->d;
    for (int64_t j = 0; j < c->s; j++) {
        double score = 0.0;
        for (int64_t k = 0; k < c->d; k++) {
            score += rows[at[2] * 3 * width + k] * rows[j * 3 * width + width + k];
        }
        weights[j] = c->mask[at[0] * c->s + j] ? exp(score / sqrt((double)c->d)) : 0.0;
        total += weights[j];
    }
    for (int64_t j = 0; j < c->s; j++) {
        int64_t element = ((at[0] * c->heads + at[1]) * c->s + at[2]) * c->s + j;
        const struct dropout_draw draw = dropout_draw_of(&g->dropout, 5);
        bool is_kept = !(c->rate > 0.0) || dropout_keeps(&draw, element);
        double value = rows[j * 3 * width + 2 * width + column];
        sum += is_kept ? weights[j] / (1.0 - c->rate) * value : 0.0;
    }
    return total > 0.0 ? sum / total : 0.0;
}

TEST(attention_follows_its_formula)
{
    for (size_t i = 0; i < ARRAY_LEN(ATTENTION_CASES); i++) {
        const struct attention_case *c = &ATTENTION_CASES[i];
        int x;
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int y = make_attention(&f, c, &x);
        fill_spread(&f, x, 4);
        fill_labels(&f, c->heads * c->d, 1);
        (void)loss_now(&f);
        CLEANUP(free) double *qkv = read_doubles(&f, x);
        CLEANUP(free) double *out = read_doubles(&f, y);
        for (int64_t j = 0; j < count_of(&f, y); j++) {
            int64_t width = c->heads * c->d;
            int64_t row = j / width;
            const int64_t at[] = {row / c->s, j % width / c->d, row % c->s};
            double want = context_at(c, &f.graph->ops[0].geom.attention, qkv, at, j % c->d);
            if (!(fabs(out[j] - want) < 1e-14)) {
                fail_msg("%s: element %d is %.17g, expected %.17g", c->name, (int)j, out[j], want);
            }
        }
    }
}

/* ---- chosen rows and the loss over them ---- */

/* Positions that occur twice or never, and the first row of each group. */
TEST(gather_gradients)
{
    static const int64_t places[] = {2, 0, 2, 2, 1, 0};
    for (int is_first = 0; is_first < 2; is_first++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(6, 5));
        int at = is_first ? NO_VALUE : numbers(&f, "at", SHAPE(2, 3));
        int y = graph_gather(f.graph, x, at, 2);
        graph_output(f.graph, "y", y);
        finish_rows(&f, y, &PLAIN);
        if (!is_first) {
            write_numbers(&f, at, places);
        }
        check_all_gradients(&f, 5, is_first ? "first rows" : "gather");
        (void)loss_now(&f);
        CLEANUP(free) double *in = read_doubles(&f, x);
        CLEANUP(free) double *out = read_doubles(&f, y);
        for (int64_t i = 0; i < count_of(&f, y); i++) {
            int64_t row = is_first ? i / 5 * 3 : i / 15 * 3 + places[i / 5];
            assert_true(out[i] == in[row * 5 + i % 5]);
        }
    }
}

TEST(row_loss_gradients)
{
    static const struct loss_opts cases[] = {
        {.ignore_label = LOSS_IGNORE_NONE},
        {.ignore_label = 0},
        {.ignore_label = 0, .label_smoothing = 0.1, .weight = 0.7},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        finish_rows(&f, param_x(&f, SHAPE(17, 6)), &cases[i]);
        check_all_gradients(&f, 6, "row loss");
    }
}

/* Two heads' losses of the same logits: the gradient of the second is added to that of the first. */
TEST(row_losses_add_up)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int y = graph_gelu(f.graph, param_x(&f, SHAPE(5, 6)));
    int labels = numbers(&f, "labels", SHAPE(5));
    (void)graph_row_loss(f.graph, y, labels, &PLAIN);
    (void)graph_row_loss(f.graph, y, labels,
                         &(struct loss_opts){.ignore_label = LOSS_IGNORE_NONE, .weight = 0.3});
    fixture_ready(&f, 1);
    check_all_gradients(&f, 6, "two row losses");
}

/* The same numbers by K_LOSS, and by K_ROW_LOSS. */
TEST(row_loss_equals_loss)
{
    const struct loss_opts opts = {.ignore_label = 2, .label_smoothing = 0.1};
    double loss[2];
    double *grad[2];
    for (int i = 0; i < 2; i++) {
        FIXTURE(f, DT_F64, CPU_PLAIN, 2);
        int x = param_x(&f, SHAPE(9, 6));
        if (i == 0) {
            finish_with_labels(&f, x, &opts);
        } else {
            finish_rows(&f, x, &opts);
        }
        fill_spread(&f, x, 2);
        fill_labels(&f, 6, 3);
        loss[i] = loss_now(&f);
        grad[i] = read_doubles(&f, f.graph->values[x].grad);
    }
    assert_true(fabs(loss[0] - loss[1]) < 1e-14);
    assert_true(rel_error(grad[1], grad[0], 9 * 6) < 1e-14);
    free(grad[0]);
    free(grad[1]);
}

TEST(nothing_to_predict_is_a_loss_of_zero)
{
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int x = param_x(&f, SHAPE(4, 3));
    finish_rows(&f, x, &(struct loss_opts){.ignore_label = 1});
    fill_spread(&f, x, 2);
    net_write(&f.net, graph_find(f.graph, "labels"), (int64_t[]){1, 1, 1, 1});
    assert_true(loss_now(&f) == 0.0);
    CLEANUP(free) double *grad = read_doubles(&f, f.graph->values[x].grad);
    assert_true(norm_of(grad, 12) == 0.0);
}

/* ---- embedding ---- */

TEST(embedding_gradients)
{
    static const int64_t ids[] = {4, 4, 0, 4, 9, 0, 1, 4};
    static const int64_t segments[] = {0, 0, 1, 1, 0, 1, 1, 1};
    int word;
    FIXTURE(f, DT_F64, CPU_PLAIN, 2);
    int at_ids = numbers(&f, "ids", SHAPE(2, 4));
    int at_segments = numbers(&f, "segments", SHAPE(2, 4));
    const struct embed_opts opts = {
        .owner = "e", .width = 70, .vocabulary = 10, .positions = 6, .segments = 2};
    int y = graph_embed(f.graph, at_ids, at_segments, &opts, &word);
    graph_output(f.graph, "y", y);
    finish_rows(&f, y, &PLAIN);
    write_numbers(&f, at_ids, ids);
    write_numbers(&f, at_segments, segments);
    check_all_gradients(&f, 70, "embedding");
    (void)loss_now(&f);
    CLEANUP(free) double *table = read_doubles(&f, word);
    CLEANUP(free)
    double *position = read_doubles(&f, graph_find(f.graph, "e.position_embeddings.weight"));
    CLEANUP(free)
    double *segment = read_doubles(&f, graph_find(f.graph, "e.token_type_embeddings.weight"));
    CLEANUP(free) double *out = read_doubles(&f, y);
    for (int64_t i = 0; i < count_of(&f, y); i++) {
        int64_t t = i / 70;
        double want = table[ids[t] * 70 + i % 70] + position[t % 4 * 70 + i % 70] +
                      segment[segments[t] * 70 + i % 70];
        assert_true(fabs(out[i] - want) < 1e-14);
    }
}
