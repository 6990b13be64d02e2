/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser on the device against that of the CPU, which computes in double on the same types, in the emulator: several updates in
   a row, parameters of each kind, overflows, micro-batches. */
#include "unit.h"

#include <math.h>

#include "backend_cpu/cpu.h"
#include "backend_cuda/optim_cuda.h"
#include "base/rng.h"
#include "core/half.h"
#include "emu_unit.h"

/* Relative norm of a segment: a few roundings of 6e-8, and in a segment of one element a sum may cancel to a hundredth of its terms. */
#define TOLERANCE_WIDE 1e-5
#define N_SEGMENTS     6
#define ARENA_BYTES    (96 * 1024)

/* One update's memory, on the host; the device has a copy. */
struct arenas {
    char *param, *grad, *master, *moment1, *moment2, *sum;
    struct opt_state state;
};

struct fixture {
    struct opt_segment segments[N_SEGMENTS];
    struct opt_args host, device;
    struct arenas arenas;
    struct cpu cpu;
    struct cuda cuda;
    struct backend backend, cpu_backend;
    struct rng rng;
};

static const int64_t COUNTS[N_SEGMENTS] = {9001, 64, 1, 4096, 1003, 7};

static int64_t type_bytes(const struct opt_segment *segment)
{
    return segment->param_type == DT_F16 ? 2 : 4;
}

static void set_element(char *base, int64_t offset, bool is_half, int64_t i, float value)
{
    if (is_half) {
        ((uint16_t *)(void *)(base + offset))[i] = half_from_float(value);
    } else {
        ((float *)(void *)(base + offset))[i] = value;
    }
}

static float element(const char *base, int64_t offset, bool is_half, int64_t i)
{
    return is_half ? half_to_float(((const uint16_t *)(const void *)(base + offset))[i])
                   : ((const float *)(const void *)(base + offset))[i];
}

/* Segments in turn: half with a master, float without; every third one does not decay; the fifth stays 0. */
static void fill_segments(struct fixture *f)
{
    int64_t param = 0;
    int64_t wide = 0;
    for (int i = 0; i < N_SEGMENTS; i++) {
        bool is_half = i % 2 == 0;
        f->segments[i] = (struct opt_segment){.param = param,
                                              .grad = param,
                                              .wide = wide,
                                              .count = COUNTS[i],
                                              .param_type = is_half ? DT_F16 : DT_F32,
                                              .wide_type = DT_F32,
                                              .has_master = is_half,
                                              .has_decay = i % 3 != 1};
        for (int64_t k = 0; k < COUNTS[i]; k++) {
            float value = i == 4 ? 0.0F : (float)rng_normal(&f->rng);
            set_element(f->arenas.param, param, is_half, k, value);
            set_element(f->arenas.master, wide, false, k,
                        element(f->arenas.param, param, is_half, k));
        }
        param += (COUNTS[i] * type_bytes(&f->segments[i]) + 63) / 64 * 64;
        wide += (COUNTS[i] * 4 + 63) / 64 * 64;
    }
    assert_true(param <= ARENA_BYTES && wide <= ARENA_BYTES);
}

static void *arena(void)
{
    return xcalloc(ARENA_BYTES, 1);
}

static void fixture_open(struct fixture *f, const struct opt_rule *rule)
{
    memset(f, 0, sizeof(*f));
    rng_init(&f->rng, 42);
    f->arenas = (struct arenas){
        arena(), arena(), arena(), arena(), arena(), arena(), opt_state_start(rule)};
    fill_segments(f);
    f->host = (struct opt_args){.rule = *rule,
                                .segments = f->segments,
                                .n_segments = N_SEGMENTS,
                                .param = f->arenas.param,
                                .grad = f->arenas.grad,
                                .master = f->arenas.master,
                                .moment1 = f->arenas.moment1,
                                .moment2 = f->arenas.moment2,
                                .sum = rule->n_micro > 1 ? f->arenas.sum : NULL,
                                .state = &f->arenas.state};
    f->device = f->host;
    f->device.param = device_copy(f->arenas.param, ARENA_BYTES);
    f->device.grad = device_copy(f->arenas.grad, ARENA_BYTES);
    f->device.master = device_copy(f->arenas.master, ARENA_BYTES);
    f->device.moment1 = device_copy(f->arenas.moment1, ARENA_BYTES);
    f->device.moment2 = device_copy(f->arenas.moment2, ARENA_BYTES);
    f->device.sum = rule->n_micro > 1 ? device_copy(f->arenas.sum, ARENA_BYTES) : NULL;
    f->device.state = device_copy(&f->arenas.state, sizeof(f->arenas.state));
    f->cuda =
        (struct cuda){.channel_pad = 8, .is_amp = true, .n_multiprocessors = 4, .n_streams = 1};
    OK(cudaStreamCreate(&f->cuda.streams[0]));
    cuda_fill_optim(&f->backend);
    PASSES(f->backend.prepare_update(&f->cuda, &f->device, ERR));
    OK(cudaMalloc(&f->device.workspace, (size_t)f->device.workspace_bytes));
    PASSES(cpu_init(&f->cpu, CPU_PLAIN, 1, &f->cpu_backend, ERR));
    PASSES(f->cpu_backend.prepare_update(f->cpu_backend.self, &f->host, ERR));
    f->host.workspace = xcalloc((size_t)f->host.workspace_bytes + 1, 1);
}

static void fixture_close(struct fixture *f)
{
    void *const device[] = {f->device.param,   (void *)(uintptr_t)f->device.grad,
                            f->device.master,  f->device.moment1,
                            f->device.moment2, f->device.sum,
                            f->device.state,   f->device.workspace};
    f->backend.unprepare_update(&f->cuda, &f->device);
    f->cpu_backend.unprepare_update(f->cpu_backend.self, &f->host);
    for (size_t i = 0; i < sizeof(device) / sizeof(device[0]); i++) {
        OK(cudaFree(device[i]));
    }
    free(f->host.workspace);
    free(f->arenas.param);
    free(f->arenas.grad);
    free(f->arenas.master);
    free(f->arenas.moment1);
    free(f->arenas.moment2);
    free(f->arenas.sum);
    OK(cudaStreamDestroy(f->cuda.streams[0]));
    cpu_release(&f->cpu);
}

/* New gradients, as a backward pass leaves them: multiplied by the loss scale. */
static void new_gradients(struct fixture *f, double infinity_at)
{
    for (int i = 0; i < N_SEGMENTS; i++) {
        const struct opt_segment *segment = &f->segments[i];
        for (int64_t k = 0; k < segment->count; k++) {
            float value = 0.01F * f->arenas.state.loss_scale * (float)rng_normal(&f->rng);
            bool is_planted = infinity_at == (double)i && k == segment->count - 1;
            set_element(f->arenas.grad, segment->grad, segment->param_type == DT_F16, k,
                        is_planted ? INFINITY : value);
        }
    }
    OK(cudaMemcpy((void *)(uintptr_t)f->device.grad, f->arenas.grad, ARENA_BYTES,
                  cudaMemcpyHostToDevice));
}

static void compare_arena(const struct fixture *f, const char *expected, const void *device,
                          bool is_wide, double tolerance)
{
    CLEANUP(free) char *actual = arena();
    OK(cudaMemcpy(actual, device, ARENA_BYTES, cudaMemcpyDeviceToHost));
    for (int i = 0; i < N_SEGMENTS; i++) {
        const struct opt_segment *segment = &f->segments[i];
        bool is_half = !is_wide && segment->param_type == DT_F16;
        int64_t offset = is_wide ? segment->wide : segment->param;
        double difference = 0.0;
        double norm = 0.0;
        for (int64_t k = 0; k < segment->count; k++) {
            double want = (double)element(expected, offset, is_half, k);
            double apart = (double)element(actual, offset, is_half, k) - want;
            difference += apart * apart;
            norm += want * want;
        }
        /* A half midway between two may be rounded either way. */
        double most = is_half ? 1e-4 : tolerance;
        if (!(sqrt(difference) <= most * sqrt(norm))) {
            print_error("segment %d: off by %.3g of %.3g\n", i, sqrt(difference), sqrt(norm));
        }
        assert_true(sqrt(difference) <= most * sqrt(norm));
    }
}

static void compare_all(const struct fixture *f)
{
    struct opt_state state;
    const struct opt_state *want = &f->arenas.state;
    OK(cudaMemcpy(&state, f->device.state, sizeof(state), cudaMemcpyDeviceToHost));
    assert_int_equal(f->cuda.err.code, ERR_NONE);
    assert_int_equal(state.found_inf, want->found_inf);
    assert_int_equal(state.n_updates, want->n_updates);
    assert_int_equal(state.n_skipped, want->n_skipped);
    assert_int_equal(state.n_good, want->n_good);
    assert_true(state.loss_scale == want->loss_scale);
    assert_true(state.lr == want->lr);
    assert_true(want->found_inf || fabs(state.grad_norm / want->grad_norm - 1.0) < 1e-6);
    compare_arena(f, f->arenas.param, f->device.param, false, TOLERANCE_WIDE);
    compare_arena(f, f->arenas.moment1, f->device.moment1, true, TOLERANCE_WIDE);
    compare_arena(f, f->arenas.moment2, f->device.moment2, true, TOLERANCE_WIDE);
    compare_arena(f, f->arenas.master, f->device.master, true, TOLERANCE_WIDE);
}

static void both_update(struct fixture *f, double lr)
{
    const struct opt_hyper hyper = {lr};
    f->cpu_backend.set_hyper(f->cpu_backend.self, &f->host, &hyper);
    f->backend.set_hyper(&f->cuda, &f->device, &hyper);
    f->cpu_backend.update(f->cpu_backend.self, &f->host);
    f->backend.update(&f->cuda, &f->device);
    OK(cudaStreamSynchronize(f->cuda.streams[0]));
}

static struct opt_rule rule_of(enum opt_method method)
{
    return (struct opt_rule){.method = method,
                             .scaling = OPT_SCALE_DYNAMIC,
                             .momentum = 0.9,
                             .beta1 = 0.9,
                             .beta2 = 0.999,
                             .eps = 1e-6,
                             .weight_decay = 0.01,
                             .loss_scale = 1024.0F,
                             .scale_window = 2,
                             .n_micro = 1};
}

/* The third update overflows in each segment in turn; so do the scale and the skipped count. */
TEST(test_updates)
{
    for (int method = 0; method < OPT_METHOD_COUNT; method++) {
        struct opt_rule rule = rule_of((enum opt_method)method);
        struct fixture f;
        fixture_open(&f, &rule);
        for (int step = 0; step < 7; step++) {
            new_gradients(&f, step == 2 ? 5.0 : step == 4 ? 0.0 : -1.0);
            both_update(&f, 0.05 / (1.0 + step));
            compare_all(&f);
        }
        assert_int_equal(f.arenas.state.n_skipped, 2);
        assert_int_equal(f.arenas.state.n_updates, 5);
        assert_true(f.arenas.state.loss_scale == 1024.0F); /* up, down, down, up */
        fixture_close(&f);
    }
}

TEST(test_a_skipped_update_changes_nothing)
{
    for (int method = 0; method < OPT_METHOD_COUNT; method++) {
        struct opt_rule rule = rule_of((enum opt_method)method);
        struct fixture f;
        fixture_open(&f, &rule);
        const void *const device[] = {f.device.param, f.device.master, f.device.moment1,
                                      f.device.moment2};
        new_gradients(&f, -1.0);
        both_update(&f, 0.1);
        char *before[4];
        for (int i = 0; i < 4; i++) {
            before[i] = arena();
            OK(cudaMemcpy(before[i], device[i], ARENA_BYTES, cudaMemcpyDeviceToHost));
        }
        new_gradients(&f, 2.0);
        both_update(&f, 0.1);
        CLEANUP(free) char *after = arena();
        for (int i = 0; i < 4; i++) {
            OK(cudaMemcpy(after, device[i], ARENA_BYTES, cudaMemcpyDeviceToHost));
            assert_memory_equal(before[i], after, ARENA_BYTES);
            free(before[i]);
        }
        assert_int_equal(f.arenas.state.found_inf, 1);
        compare_all(&f);
        fixture_close(&f);
    }
}

TEST(test_micro_batches)
{
    struct opt_rule rule = rule_of(OPT_ADAMW);
    rule.n_micro = 3;
    rule.scaling = OPT_SCALE_STATIC;
    struct fixture f;
    fixture_open(&f, &rule);
    for (int step = 0; step < 2; step++) {
        for (int micro = 0; micro < 3; micro++) {
            new_gradients(&f, -1.0);
            f.cpu_backend.add_gradients(f.cpu_backend.self, &f.host, micro == 0);
            f.backend.add_gradients(&f.cuda, &f.device, micro == 0);
            OK(cudaStreamSynchronize(f.cuda.streams[0]));
        }
        compare_arena(&f, f.arenas.sum, f.device.sum, true, TOLERANCE_WIDE);
        both_update(&f, 0.01);
        compare_all(&f);
    }
    fixture_close(&f);
}

/* The order of threads and blocks changes not a single bit. */
TEST(test_equal_bits)
{
    CLEANUP(free) char *first = arena();
    CLEANUP(free) char *second = arena();
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct opt_rule rule = rule_of(OPT_ADAMW);
        struct fixture f;
        emu_seed(seed);
        fixture_open(&f, &rule);
        for (int step = 0; step < 3; step++) {
            new_gradients(&f, -1.0);
            both_update(&f, 0.01);
        }
        OK(cudaMemcpy(seed == 1 ? first : second, f.device.param, ARENA_BYTES,
                      cudaMemcpyDeviceToHost));
        fixture_close(&f);
    }
    assert_memory_equal(first, second, ARENA_BYTES);
}

TEST(test_what_cannot_be_done_is_refused)
{
    struct opt_segment segment = {.count = 4, .param_type = DT_F64, .wide_type = DT_F64};
    struct opt_args args = {.rule = rule_of(OPT_SGD), .segments = &segment, .n_segments = 1};
    struct backend backend = {0};
    struct cuda cuda = {.channel_pad = 4};
    cuda_fill_optim(&backend);
    FAILS_WITH(backend.prepare_update(&cuda, &args, ERR), ERR_ANY, "parameter 0 is f64");
    segment =
        (struct opt_segment){.count = 4, .param_type = DT_F32, .wide_type = DT_F32, .wide = 4};
    FAILS_WITH(backend.prepare_update(&cuda, &args, ERR), ERR_ANY, "16 bytes");
    segment.wide = 0;
    emu_plant("cudaMalloc", 2);
    FAILS_WITH(backend.prepare_update(&cuda, &args, ERR), ERR_ANY, "tables");
}
