/* SPDX-License-Identifier: Apache-2.0 */
/* What the authors did not state, and what they stated twice with different values. */
#include "base/base.h"

#include "lint/lint_parts.h"
#include "report/container.h"

#define LIST_BYTES 600
/* Batches that a loader worker holds ahead. Source: default of torch's DataLoader, read 2026. */
#define PREFETCH        2
#define CHANNELS        3
#define BYTES_PER_VALUE 4 /* fp32, as it leaves the loader */
#define GIB             1073741824.0

/* Conditions that affect throughput and that a reader needs; seed and repeats have rules of their own. */
static const char *const ESSENTIAL[] = {
    "cpu",          "cudnn", "driver",         "ecc",     "gpu_clock", "nccl", "power_cap", "cuda",
    "interconnect", "os",    "python_version", "workers", NULL};

static bool has_own_rule(struct str name)
{
    return is_word_of(name, "seed repeats log_date statistic");
}

/* Names whose value in force is null, and essential ones that are missing. */
static void collect_unstated(const struct report_case *c, struct names *list)
{
    const struct conditions *lists[] = {&c->conditions, &c->stack->conditions,
                                        c->environment ? &c->environment->conditions : NULL};
    struct str value = STR_EMPTY;
    for (size_t at = 0; at < ARRAY_LEN(lists); at++) {
        for (size_t item = 0; lists[at] && item < lists[at]->n; item++) {
            struct str name = lists[at]->items[item].name;
            if (case_condition(c, name.ptr, &value) && !value.ptr && !has_own_rule(name)) {
                add_name(list, name);
            }
        }
    }
    for (const char *const *name = ESSENTIAL; *name; name++) {
        if (!case_condition(c, *name, &value)) {
            add_name(list, str_of(*name));
        }
    }
}

/* The names that are null, or essential and absent, in some case of the stack. */
static void lint_not_stated(struct lint *lint, const struct stack *s)
{
    CLEANUP(strbuf) struct strbuf list = STRBUF(LIST_BYTES);
    struct names unstated = {.n = 0};
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        collect_unstated(c, &unstated);
    }
    for (size_t idx = 0; idx < unstated.n; idx++) {
        strbuf_printf(&list, "%s%.*s", idx ? ", " : "", STR_ARG(unstated.items[idx]));
    }
    if (unstated.n) {
        lint_add(lint, "not-stated", in_stack(s, ".conditions"), "not stated: %s", list.ptr);
    }
    VEC_RELEASE(&unstated);
}

static bool states(const struct lint *lint, const struct stack *s, const char *name)
{
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        struct str value = STR_EMPTY;
        if (!case_condition(c, name, &value) || !value.ptr) {
            return false;
        }
    }
    return true;
}

/* The value of the option with this meaning, from the first run that has it; NULL if none has. */
static struct str option_value(struct lint *lint, const struct shell_script *script,
                               enum meaning means)
{
    for (size_t idx = 0; idx < script->n; idx++) {
        struct option_found o;
        for (size_t at = 0; option_next(lint->arena, &script->runs[idx], &at, &o);) {
            if (o.means == means) {
                return o.value;
            }
        }
    }
    return STR_EMPTY;
}

static bool prints_seed(struct lint *lint, const struct stack *s)
{
    static const char *const NONE[] = {"None", "none", "null", "-1", "", NULL};
    for (struct lint_command c = lint_walk(lint, s); lint_next_command(&c);) {
        struct str seed = option_value(lint, c.script, MEANS_SEED);
        if (seed.ptr && !str_eq_any(seed, NONE)) {
            return true;
        }
    }
    return false;
}

/* 0: it is no number. */
static double number_of(struct str text)
{
    double value = 0;
    return text.ptr && str_to_f64(text, &value, ERR_IGNORED) == 0 ? value : 0;
}

/* "512x1024" or "224": pixels; 0 for anything else. */
static double pixels(struct lint *lint, struct str text)
{
    struct str g[3];
    return patterns_find(&lint->patterns, "^([\\d.]+)(?:x([\\d.]+))?\\z", text, g, ARRAY_LEN(g))
               ? number_of(g[1]) * number_of(g[2].ptr ? g[2] : g[1])
               : 0;
}

/* The workers of the command that runs this case: as printed, else as in the working command. */
static double workers_of(struct lint *lint, const struct report_case *c)
{
    struct str text = STR_EMPTY;
    for (struct lint_command command = lint_walk(lint, c->stack);
         !text.ptr && lint_next_command(&command);) {
        if (command_is_for(command.command, c)) {
            text = option_value(lint, command.script, MEANS_WORKERS);
            text = text.ptr ? text
                            : option_value(lint, working_script(lint, c->stack, command.command),
                                           MEANS_WORKERS);
        }
    }
    if (!text.ptr) {
        case_condition(c, "workers", &text);
    }
    return number_of(text);
}

/* Bytes that the loaders of a node hold ahead; 0 if too little is stated. */
static double needed_bytes(struct lint *lint, const struct report_case *c, struct str *ret_image)
{
    *ret_image = STR_EMPTY;
    return case_condition(c, "image_size", ret_image)
               ? (double)c->gpus_per_node * workers_of(lint, c) * PREFETCH *
                     (double)c->batch_per_gpu * CHANNELS * pixels(lint, *ret_image) *
                     BYTES_PER_VALUE
               : 0;
}

/* A container without --shm-size has 64 MiB, which loaders and NCCL share. Source: docker container run, --shm-size; NCCL user
   guide, "Shared memory" (both read 2026-11). */
static void lint_no_shm(struct lint *lint, struct spot at)
{
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, at.stack, c));) {
        if (c->gpus_per_node > 1 || workers_of(lint, c) > 0) {
            lint_add(lint, "shm-too-small", at,
                     "neither --shm-size nor --ipc=host: %" PRId64
                     " ranks a node and their loaders share 64 MiB",
                     c->gpus_per_node);
            return;
        }
    }
}

/* The stated and the printed size may differ: both must be enough. */
static void lint_shm_of(struct lint *lint, const struct stack *s, struct str printed)
{
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        struct str shm = printed;
        struct str image;
        if (!printed.ptr && (!case_condition(c, "shm_size", &shm) || !shm.ptr)) {
            continue;
        }
        double needed = needed_bytes(lint, c, &image);
        int64_t shm_bytes;
        if (container_size(&lint->patterns, shm, &shm_bytes) && needed > (double)shm_bytes) {
            lint_add(lint, "shm-too-small", in_stack(s, ".conditions.shm_size"),
                     "--shm-size=%.*s for %" PRId64 " ranks x %.0f workers x %d batches of %" PRId64
                     " images of %s: %.1f GiB",
                     STR_ARG(shm), c->gpus_per_node, workers_of(lint, c), PREFETCH,
                     c->batch_per_gpu, image.ptr, needed / GIB);
            return;
        }
    }
}

static void lint_shm(struct lint *lint, const struct stack *s)
{
    struct lint_container container = {.is_host_ipc = false};
    bool is_printed = lint_container_of(lint, s, &container);
    if (is_printed && !container.shm.ptr && !container.is_host_ipc) {
        lint_no_shm(lint, container.at);
    }
    if (container.shm.ptr) {
        lint_shm_of(lint, s, container.shm);
    }
    if (!is_printed || container.shm.ptr) {
        lint_shm_of(lint, s, STR_EMPTY);
    }
}

/* Whether the stack's rows are results of several runs, each with its log, as far as their logs are there. */
static bool has_runs(const struct lint *lint, const struct stack *s)
{
    bool has_some = false;
    for (const struct report_case *c = NULL; (c = stack_next_case(lint, s, c));) {
        if (c->n_logs == 1) {
            return false;
        }
        has_some = has_some || c->n_logs > 1;
    }
    return has_some;
}

static void lint_case_batch(struct lint *lint, const struct report_case *c)
{
    struct str text = STR_EMPTY;
    int64_t batch = 0;
    if (c->n_cells && case_condition(c, "batch_per_gpu", &text) && text.ptr &&
        str_to_i64(text, 1, INT32_MAX, &batch, ERR_IGNORED) == 0 && batch != c->batch_per_gpu) {
        lint_add(lint, "batch-differs",
                 (struct spot){.of_case = c, .below = ".conditions.batch_per_gpu"},
                 "%s: a batch of %" PRId64 " is stated, and the row is for %" PRId64, c->id.ptr,
                 batch, c->batch_per_gpu);
    }
}

static void lint_also(struct lint *lint, const struct report_case *c)
{
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        const struct cell *cell = &c->cells[idx];
        for (size_t also = 0; also < cell->n_also; also++) {
            double other = 0;
            if (str_to_f64(cell->also[also].printed, &other, ERR_IGNORED) == 0 &&
                (other < cell->published || other > cell->published)) {
                const char *below = arena_printf(lint->arena, ".also_printed[%zu]", also);
                lint_add(lint, "number-conflict",
                         (struct spot){.of_case = c,
                                       .cell = cell,
                                       .below = below,
                                       .page = cell->also[also].source.path},
                         "%s is printed as %s, but as %s in %s", cell->id.ptr, cell->printed.ptr,
                         cell->also[also].printed.ptr, cell->also[also].source.path.ptr);
            }
        }
    }
}

void lint_conditions(struct lint *lint)
{
    for (size_t idx = 0; idx < lint->report->n_stacks; idx++) {
        const struct stack *s = &lint->report->stacks[idx];
        if (!stack_next_case(lint, s, NULL)) {
            continue;
        }
        lint_not_stated(lint, s);
        if (!states(lint, s, "seed") && !prints_seed(lint, s)) {
            lint_add(lint, "seed-not-stated", in_stack(s, ".conditions.seed"), "no seed is stated");
        }
        if (!states(lint, s, "repeats") && !has_runs(lint, s)) {
            lint_add(lint, "repeats-not-stated", in_stack(s, ".conditions.repeats"),
                     "no number of repeats is stated, and no spread");
        }
        lint_shm(lint, s);
    }
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        lint_case_batch(lint, &lint->report->cases[idx]);
        lint_also(lint, &lint->report->cases[idx]);
    }
}
