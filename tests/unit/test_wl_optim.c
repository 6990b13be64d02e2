/* SPDX-License-Identifier: Apache-2.0 */
/* The optimisers by hand: each formula element by element in its own plain loop, masters, overflow, loss scale, micro-batches. */
#include "wl_fixture.h"

#include "core/half.h"

#define SEGMENTS 3
#define COUNT    2600 /* of each: more than one block, and a block that is not full */
#define STRIDE   (COUNT + 24)
#define TOTAL    (SEGMENTS * STRIDE)

/* Three parameters on the host, and what a plain loop computes from the same numbers. */
struct bench {
    struct cpu cpu;
    struct backend backend;
    struct opt_args args;
    struct opt_segment segments[SEGMENTS];
    struct opt_state state;
    enum dtype type, wide;
    void *param, *grad, *master, *moment1, *moment2, *sum;
    double want_param[TOTAL], want_m[TOTAL], want_v[TOTAL];
};

static void *zeroed(int64_t count, enum dtype dtype)
{
    return xcalloc((size_t)count, (size_t)dtype_bytes(dtype));
}

static double get(const void *array, enum dtype dtype, int64_t i)
{
    return dtype == DT_F64   ? ((const double *)array)[i]
           : dtype == DT_F32 ? (double)((const float *)array)[i]
                             : (double)half_to_float(((const uint16_t *)array)[i]);
}

static void put(void *array, enum dtype dtype, int64_t i, double value)
{
    if (dtype == DT_F64) {
        ((double *)array)[i] = value;
    } else if (dtype == DT_F32) {
        ((float *)array)[i] = (float)value;
    } else {
        ((uint16_t *)array)[i] = half_from_float((float)value);
    }
}

static double rounded(enum dtype dtype, double value)
{
    return dtype == DT_F64 ? value : (double)(float)value;
}

/* The middle segment has no decay. Gaps between the segments are zero. */
static struct bench *bench_new(enum dtype type, const struct opt_rule *rule, int n_threads)
{
    struct bench *b = xcalloc(1, sizeof(*b));
    b->type = type;
    b->wide = type == DT_F64 ? DT_F64 : DT_F32;
    PASSES(cpu_init(&b->cpu, CPU_PLAIN, n_threads, &b->backend, ERR));
    for (int s = 0; s < SEGMENTS; s++) {
        b->segments[s] = (struct opt_segment){
            .param = s * STRIDE * dtype_bytes(type),
            .grad = s * STRIDE * dtype_bytes(type),
            .wide = s * STRIDE * dtype_bytes(b->wide),
            .count = COUNT,
            .param_type = (int32_t)type,
            .wide_type = (int32_t)b->wide,
            .has_master = type == DT_F16,
            .has_decay = s != 1,
        };
    }
    b->args = (struct opt_args){.rule = *rule, .segments = b->segments, .n_segments = SEGMENTS};
    PASSES(b->backend.prepare_update(b->backend.self, &b->args, ERR));
    b->args.param = b->param = zeroed(TOTAL, type);
    b->args.grad = b->grad = zeroed(TOTAL, type);
    b->args.master = b->master = type == DT_F16 ? zeroed(TOTAL, b->wide) : NULL;
    b->args.moment1 = b->moment1 = zeroed(TOTAL, b->wide);
    b->args.moment2 = b->moment2 = opt_has_moment2(rule->method) ? zeroed(TOTAL, b->wide) : NULL;
    b->args.sum = b->sum = rule->n_micro > 1 ? zeroed(TOTAL, b->wide) : NULL;
    b->state = opt_state_start(rule);
    b->args.state = &b->state;
    return b;
}

static void bench_free(struct bench *b)
{
    b->backend.unprepare_update(b->backend.self, &b->args);
    void *const owned[] = {b->param, b->grad, b->master, b->moment1, b->moment2, b->sum};
    for (size_t i = 0; i < ARRAY_LEN(owned); i++) {
        free(owned[i]);
    }
    cpu_release(&b->cpu);
    free(b);
}

static bool is_element(int64_t i)
{
    return i % STRIDE < COUNT;
}

static void fill_params(struct bench *b, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    for (int64_t i = 0; i < TOTAL; i++) {
        double value = rounded(b->wide, rng_normal(&rng));
        b->want_param[i] = is_element(i) ? value : 0.0;
        put(b->param, b->type, i, b->want_param[i]);
        if (b->master) {
            put(b->master, b->wide, i, b->want_param[i]);
        }
    }
}

/* Gradients as a backward pass leaves them: multiplied by the loss scale. ret_grad has the plain ones, rounded alike. */
static void fill_grads(struct bench *b, uint64_t seed, double *ret_grad)
{
    struct rng rng;
    rng_init(&rng, seed);
    for (int64_t i = 0; i < TOTAL; i++) {
        double value = 0.01 * rng_normal(&rng) * (double)b->state.loss_scale;
        put(b->grad, b->type, i, is_element(i) ? value : 0.0);
        ret_grad[i] = get(b->grad, b->type, i) / (double)b->state.loss_scale;
    }
}

static void update(struct bench *b, double lr)
{
    b->backend.set_hyper(b->backend.self, &b->args, &(struct opt_hyper){.lr = lr});
    b->backend.update(b->backend.self, &b->args);
}

/* ---- the plain loops ---- */

static double decay_at(const struct bench *b, int64_t i)
{
    return i / STRIDE == 1 ? 0.0 : b->args.rule.weight_decay;
}

static void plain_sgd(struct bench *b, const double *grad, double lr)
{
    for (int64_t i = 0; i < TOTAL; i++) {
        double g = grad[i] + decay_at(b, i) * b->want_param[i];
        b->want_m[i] = rounded(b->wide, b->args.rule.momentum * b->want_m[i] + g);
        b->want_param[i] = rounded(b->wide, b->want_param[i] - lr * b->want_m[i]);
    }
}

static double plain_way(struct bench *b, double g, int64_t i, int t)
{
    const struct opt_rule *r = &b->args.rule;
    b->want_m[i] = rounded(b->wide, r->beta1 * b->want_m[i] + (1.0 - r->beta1) * g);
    b->want_v[i] = rounded(b->wide, r->beta2 * b->want_v[i] + (1.0 - r->beta2) * g * g);
    double m = b->want_m[i] / (1.0 - pow(r->beta1, t));
    double v = b->want_v[i] / (1.0 - pow(r->beta2, t));
    return m / (sqrt(v) + r->eps);
}

static void plain_adamw(struct bench *b, const double *grad, double lr, int t)
{
    for (int64_t i = 0; i < TOTAL; i++) {
        double way = plain_way(b, grad[i], i, t);
        double p = b->want_param[i];
        b->want_param[i] = rounded(b->wide, p - lr * decay_at(b, i) * p - lr * way);
    }
}

static void plain(struct bench *b, const double *grad, double lr, int t)
{
    if (b->args.rule.method == OPT_SGD) {
        plain_sgd(b, grad, lr);
    } else {
        plain_adamw(b, grad, lr, t);
    }
}

/* Relative to the largest step: 1 would be "not updated at all". */
static void assert_as_wanted(const struct bench *b, double tolerance)
{
    for (int64_t i = 0; i < TOTAL; i++) {
        double param = b->master ? get(b->master, b->wide, i) : get(b->param, b->type, i);
        double want_v = b->moment2 ? get(b->moment2, b->wide, i) - b->want_v[i] : 0.0;
        if (fabs(param - b->want_param[i]) > tolerance * fmax(1.0, fabs(b->want_param[i])) ||
            fabs(get(b->moment1, b->wide, i) - b->want_m[i]) > tolerance ||
            fabs(want_v) > tolerance) {
            fail_msg("element %d: %.17g, expected %.17g", (int)i, param, b->want_param[i]);
        }
        if (b->master) { /* the copy is the master, rounded */
            assert_true(half_from_float((float)param) == ((const uint16_t *)b->param)[i]);
        }
    }
}

static struct opt_rule rule_of(enum opt_method method)
{
    return (struct opt_rule){.method = method,
                             .momentum = 0.9,
                             .beta1 = 0.9,
                             .beta2 = 0.99,
                             .eps = 1e-6,
                             .weight_decay = 0.01,
                             .loss_scale = 1.0F,
                             .n_micro = 1};
}

static void each_follows(bool has_avx2)
{
    static const enum dtype types[] = {DT_F64, DT_F32, DT_F16};
    for (int method = 0; method < OPT_METHOD_COUNT; method++) {
        for (size_t t = 0; t < ARRAY_LEN(types); t++) {
            struct opt_rule rule = rule_of((enum opt_method)method);
            if (types[t] == DT_F16) {
                rule.scaling = OPT_SCALE_STATIC;
                rule.loss_scale = 512.0F;
            }
            struct bench *b = bench_new(types[t], &rule, 2);
            b->backend.update = has_avx2 ? b->backend.update : cpu_update;
            CLEANUP(free) double *grad = xcalloc(TOTAL, sizeof(*grad));
            fill_params(b, 1);
            for (int step = 1; step <= 5; step++) {
                double lr = 0.1 / step; /* a schedule */
                fill_grads(b, (uint64_t)step, grad);
                update(b, lr);
                plain(b, grad, lr, step);
                assert_true(fabs(b->state.grad_norm - norm_of(grad, TOTAL)) <
                            1e-12 * b->state.grad_norm);
            }
            assert_as_wanted(b, types[t] == DT_F64 ? 1e-14 : 3e-7);
            assert_int_equal(b->state.n_updates, 5);
            assert_int_equal(b->state.n_skipped, 0);
            bench_free(b);
        }
    }
}

TEST(each_follows_its_formula)
{
    each_follows(true);
}

TEST(each_follows_its_formula_without_avx2)
{
    each_follows(false);
}

/* Numbers that are exact in binary. */
TEST(sgd_by_hand)
{
    struct opt_rule rule = {
        .method = OPT_SGD, .momentum = 0.5, .weight_decay = 0.25, .loss_scale = 1.0F, .n_micro = 1};
    struct bench *b = bench_new(DT_F32, &rule, 1);
    put(b->param, DT_F32, 0, 1.0);
    put(b->param, DT_F32, 1, -2.0);
    put(b->grad, DT_F32, 0, 0.5);
    put(b->grad, DT_F32, 1, 0.25);
    update(b, 0.5);
    update(b, 0.5);
    /* v1 = .5 + .25 = .75, w1 = 1 - .375 = .625; v2 = .375 + .5 + .15625 = 1.03125, w2 = .625 - .515625 = .109375
       v1 = .25 - .5 = -.25, w1 = -1.875; v2 = -.125 + .25 - .46875 = -.34375, w2 = -1.703125 */
    assert_true(get(b->param, DT_F32, 0) == 0.109375);
    assert_true(get(b->moment1, DT_F32, 0) == 1.03125);
    assert_true(get(b->param, DT_F32, 1) == -1.703125);
    assert_true(get(b->moment1, DT_F32, 1) == -0.34375);
    bench_free(b);
}

/* The first AdamW step of a parameter goes by lr against the gradient's sign, whatever its size. */
TEST(first_steps_are_known)
{
    struct opt_rule rule = rule_of(OPT_ADAMW);
    rule.weight_decay = 0.0;
    rule.eps = 1e-12;
    struct bench *b = bench_new(DT_F64, &rule, 1);
    put(b->param, DT_F64, 0, 3.0);
    put(b->grad, DT_F64, 0, -123.0);
    put(b->param, DT_F64, 1, 3.0);
    put(b->grad, DT_F64, 1, 1e-3);
    update(b, 0.125);
    assert_true(fabs(get(b->param, DT_F64, 0) - 3.125) < 1e-8);
    assert_true(fabs(get(b->param, DT_F64, 1) - 2.875) < 1e-8);
    bench_free(b);
}

static uint64_t digest_bench(const struct bench *b)
{
    uint64_t digest = 0;
    const void *const arrays[] = {b->param, b->master, b->moment1, b->moment2};
    for (size_t a = 0; a < ARRAY_LEN(arrays); a++) {
        enum dtype type = a == 0 ? b->type : b->wide;
        const unsigned char *bytes = arrays[a];
        for (int64_t i = 0; bytes && i < TOTAL * dtype_bytes(type); i++) {
            digest = (digest ^ bytes[i]) * 0x100000001b3ULL;
        }
    }
    return digest;
}

/* One element of one gradient decides for all. */
TEST(an_overflow_changes_nothing)
{
    static const double bad[] = {INFINITY, -INFINITY, NAN};
    for (int method = 0; method < OPT_METHOD_COUNT; method++) {
        struct opt_rule rule = rule_of((enum opt_method)method);
        rule.scaling = OPT_SCALE_DYNAMIC;
        rule.loss_scale = 1024.0F;
        rule.scale_window = 3;
        struct bench *b = bench_new(DT_F16, &rule, 2);
        CLEANUP(free) double *grad = xcalloc(TOTAL, sizeof(*grad));
        fill_params(b, 1);
        fill_grads(b, 1, grad);
        update(b, 0.1);
        uint64_t before = digest_bench(b);
        for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
            fill_grads(b, 2, grad);
            put(b->grad, DT_F16, 2 * STRIDE + COUNT - 1, bad[i]);
            update(b, 0.1);
            assert_true(digest_bench(b) == before);
            assert_int_equal(b->state.found_inf, 1);
            assert_int_equal(b->state.n_skipped, (int64_t)i + 1);
            assert_int_equal(b->state.n_updates, 1);
            assert_true(b->state.loss_scale == 512.0F / (float)(1 << i));
        }
        for (int i = 0; i < 3; i++) {
            assert_true(b->state.loss_scale == 128.0F);
            fill_grads(b, 3, grad);
            update(b, 0.1);
            assert_int_equal(b->state.found_inf, 0);
        }
        assert_true(b->state.loss_scale == 256.0F);
        assert_int_equal(b->state.n_good, 0);
        assert_int_equal(b->state.n_updates, 4);
        assert_true(digest_bench(b) != before);
        bench_free(b);
    }
}

TEST(the_scale_has_bounds_and_a_static_one_stays)
{
    struct opt_rule rule = rule_of(OPT_SGD);
    rule.scaling = OPT_SCALE_DYNAMIC;
    rule.scale_window = 1;
    rule.loss_scale = OPT_SCALE_START;
    struct opt_state s = opt_state_start(&rule);
    for (int i = 0; i < 60; i++) {
        opt_state_advance(&s, &rule, true, NAN);
    }
    assert_true(s.loss_scale == OPT_SCALE_MIN);
    for (int i = 0; i < 60; i++) {
        opt_state_advance(&s, &rule, false, 1.0);
    }
    assert_true(s.loss_scale == OPT_SCALE_MAX);
    rule.scaling = OPT_SCALE_STATIC;
    s = opt_state_start(&rule);
    opt_state_advance(&s, &rule, true, NAN);
    opt_state_advance(&s, &rule, false, 1.0);
    assert_true(s.loss_scale == OPT_SCALE_START);
    rule.scaling = OPT_SCALE_NONE;
    assert_true(opt_state_start(&rule).loss_scale == 1.0F);
}

/* The sum of three micro-batches is updated like their mean. */
TEST(micro_batches_are_a_mean)
{
    for (int method = 0; method < OPT_METHOD_COUNT; method++) {
        struct opt_rule rule = rule_of((enum opt_method)method);
        rule.n_micro = 3;
        struct bench *b = bench_new(DT_F64, &rule, 2);
        CLEANUP(free) double *grad = xcalloc(TOTAL, sizeof(*grad));
        CLEANUP(free) double *mean = xcalloc(TOTAL, sizeof(*mean));
        fill_params(b, 1);
        for (int step = 1; step <= 2; step++) {
            memset(mean, 0, TOTAL * sizeof(*mean));
            for (int micro = 0; micro < 3; micro++) {
                fill_grads(b, (uint64_t)(10 * step + micro), grad);
                b->backend.add_gradients(b->backend.self, &b->args, micro == 0);
                for (int64_t i = 0; i < TOTAL; i++) {
                    mean[i] += grad[i] / 3.0;
                }
            }
            update(b, 0.1);
            plain(b, mean, 0.1, step);
        }
        assert_as_wanted(b, 1e-14);
        bench_free(b);
    }
}

TEST(threads_change_no_bit)
{
    for (int method = 0; method < OPT_METHOD_COUNT; method++) {
        uint64_t digests[2];
        for (int i = 0; i < 2; i++) {
            struct opt_rule rule = rule_of((enum opt_method)method);
            struct bench *b = bench_new(DT_F32, &rule, i == 0 ? 1 : 3);
            CLEANUP(free) double *grad = xcalloc(TOTAL, sizeof(*grad));
            fill_params(b, 1);
            for (int step = 1; step <= 3; step++) {
                fill_grads(b, (uint64_t)step, grad);
                update(b, 0.1);
            }
            digests[i] = digest_bench(b);
            bench_free(b);
        }
        assert_true(digests[0] == digests[1]);
    }
}

/* All 65,536: there and back; and what lies between two neighbours goes to the nearer, a tie to the even one. */
TEST(halves_round_to_nearest)
{
    for (uint32_t bits = 0; bits < 0x10000U; bits++) {
        float value = half_to_float((uint16_t)bits);
        if (isnan(value)) {
            assert_true(isnan(half_to_float(half_from_float(value))));
            assert_int_equal(half_from_float(value) & 0x8000U, bits & 0x8000U);
            continue;
        }
        assert_int_equal(half_from_float(value), bits);
        if ((bits & 0x7fffU) >= 0x7bffU) {
            continue;
        }
        float next = half_to_float((uint16_t)(bits + 1));
        float middle = (value + next) * 0.5F; /* exact: a float has 13 bits more */
        assert_int_equal(half_from_float(middle), bits + (bits & 1U));
        assert_int_equal(half_from_float(nextafterf(middle, value)), bits);
        assert_int_equal(half_from_float(nextafterf(middle, next)), bits + 1);
    }
    assert_true(half_to_float(0x3c00) == 1.0F);
    assert_true(half_to_float(0x7bff) == 65504.0F);
    assert_true(half_to_float(0x0001) == 0x1p-24F);
    assert_int_equal(half_from_float(65519.996F), 0x7bff);
    assert_int_equal(half_from_float(65520.0F), 0x7c00);
    assert_int_equal(half_from_float(-1e30F), 0xfc00);
    assert_int_equal(half_from_float(1e-30F), 0);
}
