/* SPDX-License-Identifier: Apache-2.0 */
/* Every fused kernel of the CPU backend against the plain kernels that it replaces, one call at a time. */
#include "wl_fixture.h"

/* Both compute in double and round to F64 a few times in another order: 1e-12 of the norm is far above the effect on sums of
   some hundred terms (measured: at most 3e-15) and far below a missing term. F32 rounds each stored tensor. */
static double tolerance_of(enum dtype dtype)
{
    return dtype == DT_F64 ? 1e-12 : 2e-6;
}

struct bench {
    struct arena arena;
    struct cpu cpu;
    struct backend backend;
    enum dtype dtype;
    uint64_t seed;
};

static void bench_init(struct bench *b, enum dtype dtype)
{
    *b = (struct bench){.dtype = dtype, .seed = 1};
    PASSES(cpu_init(&b->cpu, CPU_PLAIN, 2, &b->backend, ERR));
}

static void bench_release(struct bench *b)
{
    cpu_release(&b->cpu);
    arena_release(&b->arena);
}

static void *empty(struct bench *b, int64_t count)
{
    double *x = arena_array(&b->arena, double, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        x[i] = NAN; /* unwritten elements are noticed, in float too */
    }
    return x;
}

static void put(const struct bench *b, void *x, int64_t i, double value)
{
    if (b->dtype == DT_F64) {
        ((double *)x)[i] = value;
    } else {
        ((float *)x)[i] = (float)value;
    }
}

static double get(const struct bench *b, const void *x, int64_t i)
{
    return b->dtype == DT_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void *filled(struct bench *b, int64_t count)
{
    struct rng rng;
    void *x = empty(b, count);
    rng_init(&rng, b->seed++);
    for (int64_t i = 0; i < count; i++) {
        put(b, x, i, 0.3 + rng_normal(&rng));
    }
    return x;
}

static double *channels(struct bench *b, int64_t count)
{
    struct rng rng;
    double *x = empty(b, count);
    rng_init(&rng, b->seed++);
    for (int64_t i = 0; i < count; i++) {
        x[i] = 0.5 + rng_f64(&rng);
    }
    return x;
}

static void *copy(struct bench *b, const void *x, int64_t count)
{
    void *y = empty(b, count);
    memcpy(y, x, (size_t)(count * dtype_bytes(b->dtype)));
    return y;
}

static void run(struct bench *b, enum kernel_id id, struct kernel_args args)
{
    args.id = id;
    args.dtype = b->dtype;
    PASSES(b->backend.prepare(b->backend.self, &args, ERR));
    args.workspace = b->backend.alloc(b->backend.self, args.workspace_bytes);
    b->backend.run[id](b->backend.self, &args);
    b->backend.free(b->backend.self, args.workspace);
}

static void expect(const struct bench *b, const char *what, const void *got, const void *want,
                   int64_t count)
{
    double off = 0.0;
    double norm = 0.0;
    for (int64_t i = 0; i < count; i++) {
        double difference = get(b, got, i) - get(b, want, i);
        off += difference * difference;
        norm += get(b, want, i) * get(b, want, i);
    }
    if (!(sqrt(off) <= tolerance_of(b->dtype) * sqrt(norm)) || norm == 0.0) {
        fail_msg("%s %s: off by %.3g of a norm of %.3g", dtype_name(b->dtype), what, sqrt(off),
                 sqrt(norm));
    }
}

static void expect_f64(const struct bench *b, const char *what, const double *got,
                       const double *want, int64_t count)
{
    double off = rel_error(got, want, count);
    if (!(off <= tolerance_of(b->dtype))) {
        fail_msg("%s: off by %.3g", what, off);
    }
}

/* ---- convolution ---- */

static const struct conv_geom CONVS[] = {
    {2, 5, 4, 3, 6, 1, 1, 4, 3, 1, 1, 0, 0, 1, 1, 1},
    {2, 3, 7, 6, 4, 3, 3, 4, 3, 2, 2, 1, 1, 1, 1, 1},
    {1, 4, 9, 8, 6, 3, 3, 9, 8, 1, 1, 2, 2, 2, 2, 2},
    {3, 8, 5, 5, 8, 3, 3, 5, 5, 1, 1, 1, 1, 1, 1, 1},
};

static int64_t in_count(const struct conv_geom *g)
{
    return g->n * g->c * g->h * g->w;
}

static int64_t out_count(const struct conv_geom *g)
{
    return g->n * g->k * g->p * g->q;
}

static int64_t filter_count(const struct conv_geom *g)
{
    return g->k * (g->c / g->groups) * g->r * g->s;
}

/* By hand: x * scale + shift, 0 below 0. */
static void *normalised(struct bench *b, const struct conv_geom *g, const void *x,
                        const void *scale, const void *shift)
{
    void *y = empty(b, in_count(g));
    for (int64_t i = 0; i < in_count(g); i++) {
        int64_t c = i / (g->h * g->w) % g->c;
        put(b, y, i, fmax(0.0, get(b, x, i) * get(b, scale, c) + get(b, shift, c)));
    }
    return y;
}

static void check_stats(struct bench *b, const struct conv_geom *g, bool has_prologue)
{
    void *x = filled(b, in_count(g));
    void *w = filled(b, filter_count(g));
    void *scale = filled(b, g->c);
    void *shift = filled(b, g->c);
    void *want = empty(b, out_count(g));
    void *y = empty(b, out_count(g));
    double *sum = empty(b, g->k);
    double *squares = empty(b, g->k);
    const void *from = has_prologue ? normalised(b, g, x, scale, shift) : x;
    run(b, K_CONV_FWD, (struct kernel_args){.geom.conv = *g, .in = {from, w}, .out = {want}});
    run(b, K_CONV_STATS_FWD,
        (struct kernel_args){.geom.conv = *g,
                             .in = {x, w, has_prologue ? scale : NULL, has_prologue ? shift : NULL},
                             .out = {y, sum, squares}});
    expect(b, "conv_stats_fwd", y, want, out_count(g));
    double *sums[2] = {arena_array(&b->arena, double, (size_t)g->k),
                       arena_array(&b->arena, double, (size_t)g->k)};
    for (int64_t i = 0; i < out_count(g); i++) {
        int64_t k = i / (g->p * g->q) % g->k;
        sums[0][k] += get(b, want, i);
        sums[1][k] += get(b, want, i) * get(b, want, i);
    }
    expect_f64(b, "sum", sum, sums[0], g->k);
    expect_f64(b, "squares", squares, sums[1], g->k);
    void *dy = filled(b, out_count(g));
    void *dw_want = filled(b, filter_count(g));
    void *dw = copy(b, dw_want, filter_count(g));
    for (unsigned accumulate = 0; accumulate < 2 && has_prologue; accumulate++) {
        run(b, K_CONV_BWD_WEIGHT,
            (struct kernel_args){
                .geom.conv = *g, .in = {dy, from}, .out = {dw_want}, .accumulate = accumulate});
        run(b, K_NORM_CONV_BWD_WEIGHT,
            (struct kernel_args){.geom.conv = *g,
                                 .in = {dy, x, scale, shift},
                                 .out = {dw},
                                 .accumulate = accumulate});
        expect(b, "norm_conv_bwd_weight", dw, dw_want, filter_count(g));
    }
}

/* residual: bit 0 adds a gradient before the mask, bit 1 makes the mask that of a sum */
static void check_data_bn(struct bench *b, const struct conv_geom *g, unsigned residual)
{
    void *dy = filled(b, out_count(g));
    void *w = filled(b, filter_count(g));
    void *x = filled(b, in_count(g));
    void *da = filled(b, in_count(g));
    void *a = filled(b, in_count(g));
    void *gamma = filled(b, g->c);
    void *beta = filled(b, g->c);
    double *mean = channels(b, g->c);
    double *rstd = channels(b, g->c);
    void *want = empty(b, in_count(g));
    run(b, K_CONV_BWD_DATA, (struct kernel_args){.geom.conv = *g, .in = {dy, w}, .out = {want}});
    double *sums[2] = {arena_array(&b->arena, double, (size_t)g->c),
                       arena_array(&b->arena, double, (size_t)g->c)};
    for (int64_t i = 0; i < in_count(g); i++) {
        int64_t c = i / (g->h * g->w) % g->c;
        double hat = (get(b, x, i) - mean[c]) * rstd[c];
        double before = hat * get(b, gamma, c) + get(b, beta, c);
        before += (residual & 2U) != 0 ? get(b, a, i) : 0.0;
        double grad = get(b, want, i) + ((residual & 1U) != 0 ? get(b, da, i) : 0.0);
        grad = before > 0.0 ? grad : 0.0;
        put(b, want, i, grad);
        sums[0][c] += grad;
        sums[1][c] += grad * hat;
    }
    void *dz = empty(b, in_count(g));
    double *sum_dz = empty(b, g->c);
    double *sum_hat = empty(b, g->c);
    run(b, K_CONV_BWD_DATA_BN,
        (struct kernel_args){.geom.conv = *g,
                             .in = {dy, w, x, gamma, beta, mean, rstd,
                                    (residual & 1U) != 0 ? da : NULL,
                                    (residual & 2U) != 0 ? a : NULL},
                             .out = {dz, sum_dz, sum_hat}});
    expect(b, "conv_bwd_data_bn", dz, want, in_count(g));
    expect_f64(b, "sum_dz", sum_dz, sums[0], g->c);
    expect_f64(b, "sum_hat", sum_hat, sums[1], g->c);
}

TEST(fused_convolutions_equal_plain_ones)
{
    for (size_t i = 0; i < 2 * ARRAY_LEN(CONVS); i++) {
        struct bench b;
        bench_init(&b, i % 2 == 0 ? DT_F64 : DT_F32);
        check_stats(&b, &CONVS[i / 2], false);
        check_stats(&b, &CONVS[i / 2], true);
        for (unsigned residual = 0; residual < 4; residual++) {
            check_data_bn(&b, &CONVS[i / 2], residual);
        }
        bench_release(&b);
    }
}

/* ---- batch norm ---- */

struct norm {
    struct bn_geom g;
    int64_t count;
    void *x, *a, *gamma, *beta, *y, *running[2];
    double *stats[2];
};

static struct norm norm_of_batch(struct bench *b, bool has_relu)
{
    struct norm m = {.g = {.n = 3,
                           .c = 5,
                           .plane = 12,
                           .eps = 1e-5,
                           .momentum = 0.1,
                           .has_relu = has_relu,
                           .n_ranks = 1}};
    m.count = m.g.n * m.g.c * m.g.plane;
    m.x = filled(b, m.count);
    m.a = filled(b, m.count);
    m.gamma = filled(b, m.g.c);
    m.beta = filled(b, m.g.c);
    m.y = empty(b, m.count);
    for (int i = 0; i < 2; i++) {
        m.running[i] = filled(b, m.g.c);
        m.stats[i] = empty(b, m.g.c);
    }
    return m;
}

/* relu(bn(x) + a) by plain kernels, without a where is_added is not set. */
static void plain_forward(struct bench *b, const struct norm *m, bool is_added, void *y,
                          void *running[2])
{
    struct bn_geom g = m->g;
    g.has_relu = g.has_relu && !is_added;
    run(b, K_BN_FWD,
        (struct kernel_args){.geom.bn = g,
                             .in = {m->x, m->gamma, m->beta},
                             .out = {y, m->stats[0], m->stats[1], running[0], running[1]}});
    if (is_added) {
        const struct elem_geom elem = {.count = m->count, .has_relu = m->g.has_relu};
        run(b, K_ADD_FWD, (struct kernel_args){.geom.elem = elem, .in = {y, m->a}, .out = {y}});
    }
}

static void check_forward(struct bench *b, const struct norm *m, bool is_added)
{
    void *running[3][2];
    for (int i = 0; i < 6; i++) {
        running[i / 2][i % 2] = copy(b, m->running[i % 2], m->g.c);
    }
    void *y = empty(b, m->count);
    double *s[4];
    for (int i = 0; i < 4; i++) {
        s[i] = empty(b, m->g.c);
    }
    plain_forward(b, m, is_added, m->y, running[0]);
    if (is_added) {
        run(b, K_BN_ADD_FWD,
            (struct kernel_args){.geom.bn = m->g,
                                 .in = {m->x, m->gamma, m->beta, m->a},
                                 .out = {y, s[0], s[1], running[1][0], running[1][1]}});
        expect(b, "bn_add_fwd", y, m->y, m->count);
        expect(b, "its running variance", running[1][1], running[0][1], m->g.c);
    }
    const struct conv_geom id = {m->g.n, 5, m->g.plane, 1, 5, 1, 1, m->g.plane,
                                 1,      1, 1,          0, 0, 1, 1, 5};
    void *ones = empty(b, 5);
    for (int i = 0; i < 5; i++) {
        put(b, ones, i, 1.0);
    }
    run(b, K_CONV_STATS_FWD,
        (struct kernel_args){.geom.conv = id, .in = {m->x, ones}, .out = {y, s[0], s[1]}});
    run(b, K_BN_FINALIZE,
        (struct kernel_args){.geom.bn = m->g,
                             .in = {s[0], s[1], m->gamma, m->beta},
                             .out = {s[2], s[3], NULL, NULL, running[2][0], running[2][1]}});
    run(b, K_BN_APPLY,
        (struct kernel_args){.geom.bn = m->g,
                             .in = {y, m->gamma, m->beta, s[2], s[3], is_added ? m->a : NULL},
                             .out = {y}});
    expect(b, "bn_apply", y, m->y, m->count);
    expect_f64(b, "mean", s[2], m->stats[0], m->g.c);
    expect_f64(b, "rstd", s[3], m->stats[1], m->g.c);
    for (int i = 0; i < 2; i++) {
        expect(b, "running statistics", running[2][i], running[0][i], m->g.c);
    }
}

/* dx, dgamma, dbeta, da of relu(bn(x) + a) by plain kernels. */
static void plain_backward(struct bench *b, const struct norm *m, const void *dy, bool is_added,
                           unsigned accumulate, void *const out[4])
{
    struct bn_geom g = m->g;
    const void *grad = dy;
    if (is_added) {
        void *d_sum = empty(b, m->count);
        const struct elem_geom elem = {.count = m->count, .has_relu = m->g.has_relu};
        run(b, K_ADD_BWD,
            (struct kernel_args){.geom.elem = elem, .in = {dy, m->y}, .out = {d_sum}});
        run(b, K_ADD_BWD,
            (struct kernel_args){.geom.elem = elem,
                                 .in = {dy, m->y},
                                 .out = {out[3]},
                                 .accumulate = accumulate >> 3 & 1U});
        g.has_relu = false;
        grad = d_sum;
    }
    run(b, K_BN_BWD,
        (struct kernel_args){
            .geom.bn = g,
            .in = {grad, m->x, m->gamma, m->stats[0], m->stats[1], g.has_relu ? m->y : NULL},
            .out = {out[0], out[1], out[2]},
            .accumulate = accumulate & 7U});
}

/* dz and its sums as K_CONV_BWD_DATA_BN leaves them, through a convolution that changes nothing. */
static void masked_sums(struct bench *b, const struct norm *m, const void *dy, bool is_added,
                        void *dz, double *sums[2])
{
    const struct conv_geom id = {m->g.n, 5, m->g.plane, 1, 5, 1, 1, m->g.plane,
                                 1,      1, 1,          0, 0, 1, 1, 5};
    void *ones = empty(b, 5);
    for (int i = 0; i < 5; i++) {
        put(b, ones, i, 1.0);
    }
    run(b, K_CONV_BWD_DATA_BN,
        (struct kernel_args){.geom.conv = id,
                             .in = {dy, ones, m->x, m->gamma, m->beta, m->stats[0], m->stats[1],
                                    NULL, is_added ? m->a : NULL},
                             .out = {dz, sums[0], sums[1]}});
}

static void check_backward(struct bench *b, const struct norm *m, bool is_added,
                           unsigned accumulate)
{
    static const char *const names[4] = {"dx", "dgamma", "dbeta", "da"};
    const int64_t counts[4] = {m->count, m->g.c, m->g.c, m->count};
    void *dy = filled(b, m->count);
    void *out[4][4];
    for (int i = 0; i < 4; i++) {
        void *start = filled(b, counts[i]);
        for (int j = 0; j < 4; j++) {
            out[j][i] = copy(b, start, counts[i]);
        }
    }
    plain_backward(b, m, dy, is_added, accumulate, out[0]);
    struct kernel_args fused = {
        .geom.bn = m->g,
        .in = {dy, m->x, m->gamma, m->stats[0], m->stats[1], is_added ? m->y : NULL, m->beta},
        .out = {out[1][0], out[1][1], out[1][2], is_added ? out[1][3] : NULL},
        .accumulate = accumulate};
    run(b, is_added ? K_BN_ADD_BWD : K_BN_BWD, fused);
    for (int i = 0; i < (is_added ? 4 : 3); i++) {
        expect(b, names[i], out[1][i], out[0][i], counts[i]);
    }
    if (!m->g.has_relu || (accumulate & 1U) != 0) {
        return; /* the data gradient's epilogue has a mask, and dx of its second half is never added to */
    }
    double *sums[2] = {empty(b, m->g.c), empty(b, m->g.c)};
    masked_sums(b, m, dy, is_added, out[2][0], sums);
    run(b, K_BN_BWD_APPLY,
        (struct kernel_args){
            .geom.bn = m->g,
            .in = {out[2][0], m->x, m->gamma, m->stats[0], m->stats[1], sums[0], sums[1]},
            .out = {out[2][0], out[2][1], out[2][2]},
            .accumulate = accumulate & 6U});
    for (int i = 0; i < 3; i++) {
        expect(b, names[i], out[2][i], out[0][i], counts[i]);
    }
}

TEST(batch_norm_in_parts_equals_the_whole)
{
    for (unsigned i = 0; i < 8; i++) {
        struct bench b;
        bench_init(&b, (i & 1U) == 0 ? DT_F64 : DT_F32);
        const struct norm m = norm_of_batch(&b, (i & 2U) != 0);
        bool is_added = (i & 4U) != 0;
        check_forward(&b, &m, is_added);
        check_backward(&b, &m, is_added, 0);
        check_backward(&b, &m, is_added, 1U << 1 | 1U << 2);
        check_backward(&b, &m, is_added, 1U << 0 | 1U << 3);
        bench_release(&b);
    }
}

TEST(two_norms_are_applied_at_once)
{
    struct bench b;
    bench_init(&b, DT_F64);
    const struct norm m = norm_of_batch(&b, true);
    void *gamma = filled(&b, m.g.c);
    void *beta = filled(&b, m.g.c);
    double *s[4];
    for (int i = 0; i < 4; i++) {
        s[i] = channels(&b, m.g.c);
    }
    void *normed = empty(&b, m.count);
    void *want = empty(&b, m.count);
    void *y = empty(&b, m.count);
    struct bn_geom linear = m.g;
    linear.has_relu = false;
    run(&b, K_BN_APPLY,
        (struct kernel_args){
            .geom.bn = linear, .in = {m.a, gamma, beta, s[2], s[3]}, .out = {normed}});
    run(&b, K_BN_APPLY,
        (struct kernel_args){
            .geom.bn = m.g, .in = {m.x, m.gamma, m.beta, s[0], s[1], normed}, .out = {want}});
    run(&b, K_BN_APPLY,
        (struct kernel_args){.geom.bn = m.g,
                             .in = {m.x, m.gamma, m.beta, s[0], s[1], m.a, gamma, beta, s[2], s[3]},
                             .out = {y}});
    expect(&b, "bn_apply of two", y, want, m.count);
    bench_release(&b);
}

/* Scale and shift are equivalent to the four numbers they are made of. */
TEST(scale_and_shift_are_the_norm)
{
    struct bench b;
    bench_init(&b, DT_F64);
    const struct norm m = norm_of_batch(&b, false);
    double *sum = channels(&b, m.g.c);
    double *squares = channels(&b, m.g.c);
    for (int64_t c = 0; c < m.g.c; c++) {
        squares[c] += sum[c] * sum[c];
    }
    void *scale = empty(&b, m.g.c);
    void *shift = empty(&b, m.g.c);
    void *y = empty(&b, m.count);
    void *want = empty(&b, m.count);
    run(&b, K_BN_FINALIZE,
        (struct kernel_args){
            .geom.bn = m.g,
            .in = {sum, squares, m.gamma, m.beta},
            .out = {m.stats[0], m.stats[1], scale, shift, m.running[0], m.running[1]}});
    run(&b, K_BN_APPLY,
        (struct kernel_args){
            .geom.bn = m.g, .in = {m.x, m.gamma, m.beta, m.stats[0], m.stats[1]}, .out = {want}});
    for (int64_t i = 0; i < m.count; i++) {
        int64_t c = i / m.g.plane % m.g.c;
        put(&b, y, i, get(&b, m.x, i) * get(&b, scale, c) + get(&b, shift, c));
    }
    expect(&b, "x * scale + shift", y, want, m.count);
    bench_release(&b);
}

/* ---- upsampling and loss ---- */

static void check_upsample_loss(struct bench *b, const struct upsample_loss_geom *g,
                                bool has_labels)
{
    const struct resize_geom *r = &g->resize;
    int64_t in = r->n * r->c * r->h * r->w;
    int64_t big = r->n * r->c * r->p * r->q;
    int64_t pixels = r->n * r->p * r->q;
    void *x = filled(b, in);
    void *logits = empty(b, big);
    void *prob = empty(b, big);
    int64_t *labels = arena_array(&b->arena, int64_t, (size_t)pixels);
    for (int64_t i = 0; i < pixels; i++) {
        labels[i] = has_labels && i % 5 != 2 ? i * 7 % r->c : g->loss.ignore_label;
    }
    void *loss[2] = {filled(b, 1), empty(b, 1)};
    put(b, loss[1], 0, get(b, loss[0], 0));
    void *dx[2] = {filled(b, in), empty(b, in)};
    memcpy(dx[1], dx[0], (size_t)(in * dtype_bytes(b->dtype)));
    run(b, K_UPSAMPLE_FWD, (struct kernel_args){.geom.resize = *r, .in = {x}, .out = {logits}});
    run(b, K_LOSS_FWD,
        (struct kernel_args){
            .geom.loss = g->loss, .in = {logits, labels}, .out = {loss[0], prob}, .accumulate = 1});
    run(b, K_LOSS_BWD,
        (struct kernel_args){.geom.loss = g->loss, .in = {prob, labels}, .out = {prob}});
    run(b, K_UPSAMPLE_BWD,
        (struct kernel_args){.geom.resize = *r, .in = {prob}, .out = {dx[0]}, .accumulate = 1});
    double *lse = empty(b, pixels);
    double n_labels = NAN;
    int64_t n_ignored = (pixels + 2) / 5;
    run(b, K_UPSAMPLE_LOSS_FWD,
        (struct kernel_args){.geom.upsample_loss = *g,
                             .in = {x, labels},
                             .out = {loss[1], lse, &n_labels},
                             .accumulate = 1});
    run(b, K_UPSAMPLE_LOSS_BWD,
        (struct kernel_args){.geom.upsample_loss = *g,
                             .in = {x, labels, lse, &n_labels},
                             .out = {dx[1]},
                             .accumulate = 1});
    expect(b, "loss", loss[1], loss[0], 1);
    expect(b, "gradient through both", dx[1], dx[0], in);
    assert_true(n_labels == (has_labels ? (double)(pixels - n_ignored) : 0.0));
}

TEST(upsampling_and_loss_need_no_large_logits)
{
    static const struct resize_geom sizes[] = {{2, 5, 3, 4, 9, 8, false},
                                               {1, 19, 5, 3, 5, 3, false},
                                               {2, 3, 4, 5, 7, 11, true},
                                               {1, 4, 6, 6, 3, 2, false}};
    for (size_t i = 0; i < 4 * ARRAY_LEN(sizes); i++) {
        const struct resize_geom *r = &sizes[i / 4];
        const struct upsample_loss_geom g = {.resize = *r,
                                             .loss = {.n = r->n,
                                                      .c = r->c,
                                                      .plane = r->p * r->q,
                                                      .smoothing = i % 4 == 3 ? 0.1 : 0.0,
                                                      .ignore_label = 255,
                                                      .weight = 0.4,
                                                      .n_ranks = 1,
                                                      .is_image = true}};
        struct bench b;
        bench_init(&b, i % 2 == 0 ? DT_F64 : DT_F32);
        check_upsample_loss(&b, &g, i % 4 != 2);
        bench_release(&b);
    }
}
