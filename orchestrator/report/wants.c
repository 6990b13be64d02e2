/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/wants.h"

#include "report/container.h"

int version_cmp(struct str a, struct str b)
{
    while (a.ptr || b.ptr) {
        struct str part_a = STR_LIT("0");
        struct str part_b = STR_LIT("0");
        int64_t number_a = 0;
        int64_t number_b = 0;
        (void)(a.ptr && str_next(&a, '.', &part_a));
        (void)(b.ptr && str_next(&b, '.', &part_b));
        if (str_to_i64(part_a, 0, INT64_MAX, &number_a, ERR_IGNORED) < 0 ||
            str_to_i64(part_b, 0, INT64_MAX, &number_b, ERR_IGNORED) < 0) {
            return str_cmp(part_a, part_b);
        }
        if (number_a != number_b) {
            return number_a < number_b ? -1 : 1;
        }
    }
    return 0;
}

/* Source: NVIDIA, "CUDA Compatibility", tables 1 and 2 (docs.nvidia.com/deploy/cuda-compatibility), and the CUDA 11.0 and 12.0
   release notes, table 2 (Linux x86_64): from 11.1 on, the first driver of a major version is enough for all its minor
   versions. */
const char *cuda_needs_driver(struct str cuda)
{
    static const struct {
        const char *cuda, *driver;
    } ROWS[] = {{"13.0", "580"},       {"12.0", "525.60.13"}, {"11.1", "450.80.02"},
                {"11.0", "450.36.06"}, {"10.2", "440.33"},    {"10.1", "418.39"},
                {"10.0", "410.48"},    {"9.2", "396.26"},     {"9.1", "390.46"},
                {"9.0", "384.81"},     {"8.0", "375.26"}};
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        if (version_cmp(cuda, str_of(ROWS[idx].cuda)) >= 0) {
            return version_cmp(cuda, STR_LIT("14")) < 0 ? ROWS[idx].driver : NULL;
        }
    }
    return NULL;
}

bool driver_runs_cuda(struct str driver, struct str cuda)
{
    const char *needed = cuda.ptr ? cuda_needs_driver(cuda) : NULL;
    return !driver.ptr || !needed || version_cmp(driver, str_of(needed)) >= 0;
}

/* Source: release notes of the CUDA toolkits, "New features": 8.0 Pascal, 9.0 Volta, 10.0 Turing, 11.0 sm_80, 11.1 sm_86,
   11.8 sm_89 and sm_90, 12.8 sm_100 and sm_120. */
const char *capability_needs_cuda(struct str capability)
{
    static const struct {
        const char *capability, *cuda;
    } ROWS[] = {{"6.0", "8.0"},   {"6.1", "8.0"},   {"7.0", "9.0"},  {"7.5", "10.0"},
                {"8.0", "11.0"},  {"8.6", "11.1"},  {"8.9", "11.8"}, {"9.0", "11.8"},
                {"10.0", "12.8"}, {"12.0", "12.8"}, {"6.2", "8.0"},  {"7.2", "9.2"}};
    const typeof(ROWS[0]) *found = Z_NAMED(ROWS, ARRAY_LEN(ROWS), capability, capability);
    return found ? found->cuda : NULL;
}

static bool is_number(enum want_kind kind)
{
    static const bool NUMBERS[WANT_KIND_COUNT] = {
        [WANT_NODES] = true, [WANT_GPUS] = true,   [WANT_SHM] = true,        [WANT_MEMLOCK] = true,
        [WANT_STACK] = true, [WANT_NOFILE] = true, [WANT_INFINIBAND] = true, [WANT_DISK] = true};
    return NUMBERS[kind];
}

int wants_add(struct wants *wants, struct want want, struct err *err)
{
    want.n_cases = want.n_cases ? want.n_cases : 1;
    for (size_t idx = 0; idx < wants->n; idx++) {
        struct want *at = &wants->items[idx];
        if (at->kind != want.kind || (!is_number(want.kind) && (!str_eq(at->text, want.text) ||
                                                                at->number != want.number))) {
            continue;
        }
        want.n_cases += at->n_cases;
        if (is_number(want.kind) && at->number != LIMIT_UNLIMITED &&
            (want.number > at->number || want.number == LIMIT_UNLIMITED)) {
            *at = want;
        }
        at->n_cases = want.n_cases;
        return 0;
    }
    if (wants->n == WANTS_MAX) {
        return err_set(err, ERR_MANIFEST, "the cases ask for more than %d things", WANTS_MAX);
    }
    wants->items[wants->n++] = want;
    return 0;
}

/* ---- of a case ---- */

static int add_number(struct wants *wants, const struct report_case *c, enum want_kind kind,
                      int64_t number, struct err *err)
{
    struct want want = {.kind = kind, .number = number, .of = c->id};
    return number == 0 ? 0 : wants_add(wants, want, err);
}

static int add_text(struct wants *wants, const struct report_case *c, enum want_kind kind,
                    struct str text, struct err *err)
{
    struct want want = {.kind = kind, .text = text, .of = c->id};
    return text.len == 0 ? 0 : wants_add(wants, want, err);
}

static int add_container(struct arena *arena, const struct inventory *inventory,
                         struct wants *wants, const struct report_case *c, struct err *err)
{
    bool has_infiniband = false;
    for (size_t idx = 0; idx < c->stack->n_commands; idx++) {
        const struct command *command = &c->stack->commands[idx];
        struct str line = command_text(command);
        struct container_flags flags = {0};
        if (!str_eq_z(command->purpose, "container") || !command_is_for(command, c) || !line.ptr) {
            continue;
        }
        if (container_flags_of_command(arena, line, &flags, err) < 0) {
            return err_wrap(err, "%.*s", STR_ARG(c->id));
        }
        if (inventory_add_flags(arena, inventory, c->nodes, &flags, err) < 0) {
            return -1;
        }
        if (add_number(wants, c, WANT_SHM, flags.shm_bytes, err) < 0 ||
            add_number(wants, c, WANT_MEMLOCK, flags.memlock_bytes, err) < 0 ||
            add_number(wants, c, WANT_STACK, flags.stack_bytes, err) < 0 ||
            add_number(wants, c, WANT_NOFILE, flags.n_files, err) < 0) {
            return -1;
        }
        for (size_t at = 0; at < flags.n_devices; at++) {
            has_infiniband |= str_starts(flags.devices[at], STR_LIT(INFINIBAND_DEVICES));
            if (add_text(wants, c, WANT_DEVICE, flags.devices[at], err) < 0) {
                return -1;
            }
        }
    }
    struct want lacking = {.kind = WANT_IB_DEVICE, .of = c->id};
    return has_infiniband || c->nodes < 2 || c->gpus_per_node == 0 ||
                   inventory->runtime == RUNTIME_NONE
               ? 0
               : wants_add(wants, lacking, err);
}

/* "InfiniBand 100 Gb/s; NVLink ...": 100 */
static int64_t rate_of(struct str text)
{
    int64_t unit = str_find(text, STR_LIT(" Gb"));
    size_t from = unit < 0 ? 0 : (size_t)unit;
    int64_t rate = 0;
    while (from > 0 && text.ptr[from - 1] >= '0' && text.ptr[from - 1] <= '9') {
        from--;
    }
    return unit > 0 && str_to_i64(str_sub(text, from, (size_t)unit - from), 1, 100000, &rate,
                                  &(struct err){0}) == 0
               ? rate
               : 0;
}

static int add_interconnect(struct wants *wants, const struct report_case *c, struct err *err)
{
    struct str text = STR_EMPTY;
    struct want want = {.kind = WANT_INFINIBAND, .of = c->id};
    if (c->nodes < 2 || !case_condition(c, "interconnect", &text) || !text.ptr ||
        str_find(text, STR_LIT("InfiniBand")) < 0) {
        return 0;
    }
    want.number = rate_of(text);
    want.text = text;
    return wants_add(wants, want, err);
}

int wants_of_case(struct arena *arena, const struct inventory *inventory, struct wants *wants,
                  const struct report_case *c, struct err *err)
{
    static const struct {
        const char *condition;
        enum want_kind kind;
        bool is_number;
    } ROWS[] = {{"gpu", WANT_GPU_MODEL, false},  {"gpu_memory_gb", WANT_GPU_MEMORY, true},
                {"cuda", WANT_CUDA, false},      {"cpu", WANT_CPU, false},
                {"cpu_cores", WANT_CORES, true}, {"memory_gb", WANT_MEMORY, true},
                {"os", WANT_OS, false},          {"driver", WANT_DRIVER, false}};
    if (add_number(wants, c, WANT_NODES, c->nodes, err) < 0 ||
        add_number(wants, c, WANT_GPUS, c->gpus_per_node, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        struct want want = {.kind = ROWS[idx].kind, .of = c->id};
        if (!case_condition(c, ROWS[idx].condition, &want.text) || !want.text.ptr) {
            continue;
        }
        if (ROWS[idx].is_number &&
            str_to_i64(want.text, 1, INT64_MAX, &want.number, &(struct err){0}) < 0) {
            continue; /* "502 (shared)": a phrase, which is not compared */
        }
        if (wants_add(wants, want, err) < 0) {
            return -1;
        }
    }
    return add_container(arena, inventory, wants, c, err) < 0 || add_interconnect(wants, c, err) < 0
               ? -1
               : 0;
}
