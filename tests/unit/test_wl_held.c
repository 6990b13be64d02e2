/* SPDX-License-Identifier: Apache-2.0 */
/* Checks tests/cuda/held.h itself: the CPU backend in float passes every case that CUDA's kernels are checked with, and one wrong
   element, one unwritten element, one written input or a result that changes from run to run does not pass. */
#include "unit.h"

#include "backend_cpu/cpu.h"
#include "tests/cuda/held.h"

static void fill(void *device, int byte, int64_t bytes)
{
    memset(device, byte, (size_t)bytes);
}
static void copy_bytes(void *to, const void *from, int64_t bytes)
{
    memcpy(to, from, (size_t)bytes);
}
static int check(struct err *err UNUSED)
{
    return 0;
}

/* A fault planted in a call's result, which must be noticed. */
enum plant {
    PLANT_NONE,
    PLANT_ELEMENT,    /* one element a little off */
    PLANT_UNWRITTEN,  /* one element is not written */
    PLANT_INPUT,      /* an input is written */
    PLANT_UNSTABLE,   /* other bits in the second run, within every tolerance */
    PLANT_OVERWRITES, /* = instead of += */
    PLANT_ANY_CPU,    /* no fault: the kernels for processors without AVX2 */
};

struct planted {
    struct cpu cpu; /* first: what a backend's functions get */
    struct backend honest;
    enum plant plant;
    int n_calls;
};

static void plant_run(void *self, const struct kernel_args *args)
{
    struct planted *planted = self;
    struct kernel_args call = *args;
    float *y = args->out[0];
    float before = y ? y[0] : 0.0F;
    if (planted->plant == PLANT_OVERWRITES) {
        call.accumulate = 0;
    }
    planted->honest.run[args->id](&planted->cpu, &call);
    planted->n_calls++;
    switch (planted->plant) {
    case PLANT_ELEMENT:
        y[0] += 0.01F;
        break;
    case PLANT_UNWRITTEN:
        y[0] = before;
        break;
    case PLANT_INPUT:
        ((float *)(uintptr_t)args->in[1])[0] += 1.0F;
        break;
    case PLANT_UNSTABLE:
        y[0] *= planted->n_calls % 2 == 0 ? 1.0000002F : 1.0F;
        break;
    case PLANT_NONE:
    case PLANT_OVERWRITES:
    case PLANT_ANY_CPU:
    default:
        break;
    }
}

static enum held_verdict run_case(enum kernel_id id, int idx, enum plant plant, char *why,
                                  bool *ret_is_there)
{
    struct planted planted = {.plant = plant};
    PASSES(cpu_init(&planted.cpu, CPU_PLAIN, 1, &planted.honest, ERR));
    if (plant == PLANT_ANY_CPU) {
        planted.cpu.kernels_f32 = cpu_kernels_f32;
    }
    struct backend backend = planted.honest;
    backend.run[id] = plant_run;
    struct held_device device = {.backend = &backend,
                                 .dtype = DT_F32,
                                 .stat = DT_F64,
                                 .fill = fill,
                                 .read = copy_bytes,
                                 .write = copy_bytes,
                                 .check = check};
    struct held_call call = {0};
    enum held_verdict verdict = HELD_OK;
    *ret_is_there = held_case(&call, id, idx);
    if (*ret_is_there) {
        verdict = held_run(&device, &call, why);
        if (verdict != HELD_OK && (plant == PLANT_NONE || plant == PLANT_ANY_CPU)) {
            print_error("%s: %s\n", call.name, why);
        }
    }
    held_release(&call);
    cpu_release(&planted.cpu);
    return verdict;
}

static void all_hold(enum plant plant)
{
    char why[HELD_WHY_MAX];
    for (int id = 0; id < K_COUNT; id++) {
        bool is_there = true;
        int idx = 0;
        for (; is_there; idx++) {
            assert_int_equal(run_case((enum kernel_id)id, idx, plant, why, &is_there), HELD_OK);
        }
        assert_true(idx >= 4); /* at least three cases, and their end */
    }
}

TEST(every_case_holds)
{
    all_hold(PLANT_NONE);
}

TEST(every_case_holds_without_avx2)
{
    all_hold(PLANT_ANY_CPU);
}

TEST(plants_are_noticed)
{
    const struct {
        enum kernel_id id;
        enum plant plant;
        const char *message;
    } rows[] = {
        {K_CONV_FWD, PLANT_ELEMENT, "is off by"},
        {K_BN_BWD, PLANT_ELEMENT, "is off by"},
        {K_CONV_FWD, PLANT_UNWRITTEN, "is off by"},
        {K_UPSAMPLE_BWD, PLANT_UNWRITTEN, "is off by"},
        {K_ADD_FWD, PLANT_INPUT, "in[1] was written"},
        {K_LINEAR_FWD, PLANT_UNSTABLE, "another run gave other bits"},
        {K_CONV_BWD_DATA, PLANT_OVERWRITES, "+=: out[0] is off by"},
        {K_LAYER_NORM_BWD, PLANT_OVERWRITES, "+=: out[0] is off by"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char why[HELD_WHY_MAX];
        bool is_there = false;
        assert_int_equal(run_case(rows[i].id, 0, rows[i].plant, why, &is_there), HELD_BAD);
        assert_true(is_there);
        if (strstr(why, rows[i].message) == NULL) {
            fail_msg("row %zu: expected \"%s\", found \"%s\"", i, rows[i].message, why);
        }
    }
}
