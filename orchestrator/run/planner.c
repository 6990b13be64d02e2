/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/planner.h"

#include <unistd.h>

#include "base/fs.h"
#include "base/map.h"
#include "run/planner_impl.h"
#include "sys/proc.h"

#define PROBE_DEADLINE_NS (30 * NS_PER_S)
#define PROBE_OUTPUT_MAX  (1u << 20)
/* Of one training step's metric line, from above; and of start and stop. */
#define STEP_LINE_BYTES 256
#define RUN_LINES_BYTES 4096
#define WORD_MAX        4096
#define WORDS_ADDED_MAX 32 /* by a profile: an option and its value each */

struct planner { /* what is the same for all steps */
    struct arena *arena;
    const struct planner_opts *opts;
    const struct report *report;
    struct map probes; /* argv as text -> struct probe: one probe for equal commands */
};

/* ---- commands ---- */

static const struct command *run_command_of(const struct report_case *c)
{
    for (size_t idx = 0; idx < c->stack->n_commands; idx++) {
        const struct command *command = &c->stack->commands[idx];
        if (str_eq_z(command->purpose, "run") &&
            (command->nodes == 0 || command->nodes == c->nodes) &&
            (command->gpus == 0 || command->gpus == c->gpus) &&
            (command->batch == 0 || command->batch == c->batch_per_gpu) &&
            (!command->precision.ptr || str_eq(command->precision, c->precision))) {
            return command;
        }
    }
    return NULL;
}

/* A command of plain words becomes an argv. False where it needs a shell. */
static bool split_words(struct arena *arena, struct str text, struct str **ret_words, size_t *ret_n)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+";
    struct str *words = arena_array(arena, struct str, PLAN_ARGV_MAX);
    struct str rest = str_trim(text);
    struct str word;
    size_t n = 0;
    while (str_next(&rest, ' ', &word)) {
        for (size_t idx = 0; idx < word.len; idx++) {
            if (!memchr(PLAIN, word.ptr[idx], sizeof(PLAIN) - 1)) {
                return false;
            }
        }
        if (word.len && n + WORDS_ADDED_MAX < PLAN_ARGV_MAX) {
            words[n++] = word;
        } else if (word.len) {
            return false;
        }
    }
    *ret_words = words;
    *ret_n = n;
    return n > 0;
}

static struct str option_value(const struct plan_step *step, const char *name)
{
    for (size_t idx = 1; idx + 1 < step->n_argv; idx++) {
        if (str_eq_z(step->argv[idx], name)) {
            return step->argv[idx + 1];
        }
    }
    return STR_EMPTY;
}

static void set_option(struct plan_step *step, const char *name, const char *value)
{
    for (size_t idx = 1; idx + 1 < step->n_argv; idx++) {
        if (str_eq_z(step->argv[idx], name)) {
            step->argv[idx + 1] = str_of(value);
            return;
        }
    }
    ASSERT(step->n_argv + 2 <= PLAN_ARGV_MAX);
    step->argv[step->n_argv++] = str_of(name);
    step->argv[step->n_argv++] = str_of(value);
}

/* ---- conditions ---- */

void plan_set_condition(struct plan_step *step, const char *name, struct str value)
{
    for (size_t idx = 0; idx < step->n_conditions; idx++) {
        if (str_eq_z(step->conditions[idx].name, name)) {
            step->conditions[idx].value = value;
            return;
        }
    }
    ASSERT(step->n_conditions < PLAN_CONDITIONS_MAX);
    step->conditions[step->n_conditions++] = (struct condition){str_of(name), value};
}

struct str plan_number(struct arena *arena, int64_t value)
{
    return str_of(arena_printf(arena, "%lld", (long long)value));
}

/* As the report's data has them for this case, over what it has for the stack; a profile then overrides. Names are of a closed list. */
static void base_conditions(struct arena *arena, const struct report_case *c,
                            struct plan_step *step)
{
    const struct conditions *lists[] = {&c->stack->conditions, &c->conditions};
    step->conditions = arena_array(arena, struct condition, PLAN_CONDITIONS_MAX);
    for (size_t list = 0; list < ARRAY_LEN(lists); list++) {
        for (size_t idx = 0; idx < lists[list]->n; idx++) {
            plan_set_condition(step, lists[list]->items[idx].name.ptr,
                               lists[list]->items[idx].value);
        }
    }
    plan_set_condition(step, "framework", c->framework);
    plan_set_condition(step, "precision", c->precision);
    plan_set_condition(step, "nodes", plan_number(arena, c->nodes));
    plan_set_condition(step, "gpus", plan_number(arena, c->gpus));
    plan_set_condition(step, "batch_per_gpu", plan_number(arena, c->batch_per_gpu));
}

/* ---- what stands in the way ---- */

void plan_cannot(struct plan_step *step, enum err_code cause, const char *why)
{
    if (step->cause == ERR_NONE) {
        step->cause = cause;
        step->why = str_of(why);
    }
}

struct probe {
    bool is_fine;
    enum err_code cause; /* where it is not */
    struct str why;
    int64_t memory_bytes;
};

static struct str last_line(struct arena *arena, struct str text)
{
    struct str rest = str_trim(text);
    struct str line = STR_EMPTY;
    while (str_next(&rest, '\n', &line)) {
        continue;
    }
    return str_dup(arena, str_sub(str_trim(line), 0, 300));
}

/* The program's own sum: parameters, gradients, what its optimiser keeps, statistics, activations, workspace; 0 where it does not say. */
static int64_t memory_of(struct str describe)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct err ignored = {0};
    struct json member;
    int64_t bytes = 0;
    if (json_parse(describe, "reperf-train --describe", &doc, &ignored) < 0) {
        return 0;
    }
    struct json root = json_root(&doc);
    bool is_said = json_find(&root, "total_bytes", &member) &&
                   json_i64(&member, 0, 1LL << 50, &bytes, &ignored) == 0;
    return is_said ? bytes : 0;
}

/* Asks the bundled program itself whether it can do this. */
static struct probe *probe_train(struct planner *p, const struct plan_step *step)
{
    struct arena *arena = p->arena;
    CLEANUP(strbuf) struct strbuf text;
    struct probe *probe = arena_new(arena, struct probe);
    const char **argv = arena_array(arena, const char *, step->n_argv + 2);
    char *key = arena_printf(arena, "%s", "");
    struct err err = {0};
    int status = -1;
    strbuf_init(&text, PROBE_OUTPUT_MAX);
    argv[0] = p->opts->train_path;
    for (size_t idx = 1; idx < step->n_argv; idx++) {
        argv[idx] = str_z(arena, step->argv[idx]);
        key = arena_printf(arena, "%s %s", key, argv[idx]);
    }
    struct probe *known = map_get(&p->probes, str_of(key));
    if (known) {
        return known;
    }
    argv[step->n_argv] = "--describe";
    if (proc_capture(p->opts->clock, argv, PROBE_DEADLINE_NS, &text, &status, &err) < 0) {
        probe->cause = ERR_WORKLOAD;
        probe->why = str_of(arena_printf(arena, "%s", err.msg));
    } else if (status != 0) {
        struct str said = last_line(arena, strbuf_str(&text));
        probe->cause = status == err_exit_status(ERR_INTEGRITY) ? ERR_INTEGRITY : ERR_WORKLOAD;
        probe->why = str_of(
            arena_printf(arena, "%s cannot do this here: %.*s", TRAIN_PROGRAM, STR_ARG(said)));
    } else {
        probe->is_fine = true;
        probe->memory_bytes = memory_of(strbuf_str(&text));
    }
    (void)map_add(&p->probes, str_of(key), probe);
    return probe;
}

/* ---- profiles ---- */

/* Source: DESIGN section 5: CPU, fp32, 64x64 (segmentation 128x64, sequence 32), batch 4, 20 steps. */
static void smoke_options(struct arena *arena, struct plan_step *step)
{
    struct str model = option_value(step, "--model");
    bool is_text = str_starts(model, STR_LIT("bert"));
    bool is_segmentation =
        str_starts(model, STR_LIT("hrnet")) || str_starts(model, STR_LIT("deeplab"));
    static const struct {
        const char *option, *value, *condition;
    } SET[] = {{"--device", "cpu", "device"},
               {"--precision", "fp32", "precision"},
               {"--batch", "4", "batch_per_gpu"},
               {"--steps", "20", "iterations"},
               {"--warmup", "4", "warmup"}};
    static const char *const ABSENT[] = {"gpu", "gpu_memory_gb", "driver", "cuda", "cudnn", "nccl"};
    for (size_t idx = 0; idx < ARRAY_LEN(SET); idx++) {
        set_option(step, SET[idx].option, SET[idx].value);
        plan_set_condition(step, SET[idx].condition, str_of(SET[idx].value));
    }
    if (is_text) {
        set_option(step, "--sequence", "32");
        plan_set_condition(step, "sequence_length", STR_LIT("32"));
    } else {
        const char *image = is_segmentation ? "64x128" : "64";
        set_option(step, "--image", image);
        set_option(step, "--lr", "0.01"); /* a report's own is for a far larger batch */
        plan_set_condition(step, "image_size", str_of(image));
        plan_set_condition(step, "learning_rate", STR_LIT("0.01"));
    }
    set_option(step, "--warmup-lr-steps", "0"); /* 20 steps of 10,000 would train nothing */
    for (size_t idx = 0; idx < ARRAY_LEN(ABSENT); idx++) {
        plan_set_condition(step, ABSENT[idx], STR_EMPTY);
    }
    plan_set_condition(step, "global_batch", plan_number(arena, 4 * step->n_ranks));
    plan_set_condition(step, "gpus", STR_LIT("0"));
    step->n_steps = 20;
}

static void plan_full(struct planner *p, const struct report_case *c, struct plan_step *step)
{
    struct err ignored = {0};
    struct str steps = option_value(step, "--steps");
    plan_set_condition(step, "device", STR_LIT("gpu"));
    if (steps.ptr) {
        plan_set_condition(step, "iterations", steps);
        if (str_to_i64(steps, 1, 1LL << 40, &step->n_steps, &ignored) < 0) {
            step->n_steps = 0; /* the program itself will refuse it */
        }
    }
    plan_place_full(p->arena, p->opts, c, step);
}

/* The data is a condition like any other: a verdict lists it where it is not the published run's. */
static void use_data(struct planner *p, struct plan_step *step)
{
    const struct plan_data *data = &p->opts->data;
    if (data->folder.ptr && str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
        set_option(step, "--data", data->folder.ptr);
        plan_set_condition(step, "dataset", str_of(plan_data_name(p->arena, data)));
        plan_set_condition(step, "dataset_images", plan_number(p->arena, data->n_samples));
    }
}

static void plan_case(struct planner *p, const struct report_case *c, struct plan_step *step)
{
    struct arena *arena = p->arena;
    const struct command *command = run_command_of(c);
    struct str text = !command ? STR_EMPTY : command->works.ptr ? command->works : command->printed;
    bool is_ours = str_eq_z(c->framework, "reperf");
    *step = (struct plan_step){.case_id = c->id,
                               .baseline = c->baseline.ptr ? c->baseline : c->id,
                               .format = c->format,
                               .rule = c->rule,
                               .node = STR_LIT("local")};
    step->env = arena_array(arena, struct condition, PLAN_ENV_MAX);
    ASSERT(c->stack->n_env <= PLAN_ENV_MAX); /* the reader takes fewer */
    for (size_t idx = 0; idx < c->stack->n_env; idx++) {
        step->env[step->n_env++] = c->stack->env[idx];
    }
    base_conditions(arena, c, step);
    if (!text.ptr || !split_words(arena, text, &step->argv, &step->n_argv)) {
        step->argv = arena_array(arena, struct str, PLAN_ARGV_MAX);
        if (text.ptr) {
            const struct str words[] = {STR_LIT("/bin/sh"), STR_LIT("-c"), text};
            memcpy(step->argv, words, sizeof(words));
            step->n_argv = ARRAY_LEN(words);
        }
    }
    if (!is_ours) {
        step->n_ranks = c->gpus;
        if (p->opts->profile == PROFILE_FULL) {
            plan_full(p, c, step);
        }
        plan_cannot(step, ERR_CONTAINER,
                    arena_printf(arena,
                                 "framework %.*s is not installed here, and this version does not "
                                 "run its image; leave it out with --case",
                                 STR_ARG(c->framework)));
        return;
    }
    if (!step->n_argv || str_eq_z(step->argv[0], "/bin/sh")) {
        plan_cannot(step, ERR_MANIFEST,
                    "the report's data has no run command of plain words for this case");
        return;
    }
    if (!c->format.ptr || !c->rule.ptr) {
        plan_cannot(step, ERR_MANIFEST,
                    "the report's data names no format or no rule for this case");
    }
    if (p->opts->profile == PROFILE_SMOKE) {
        plan_place_smoke(arena, p->opts, c, step);
        smoke_options(arena, step);
    } else {
        plan_full(p, c, step);
    }
    plan_choose_image(arena, p->opts, c, step);
    use_data(p, step);
    step->log_bytes = RUN_LINES_BYTES + step->n_ranks * step->n_steps * STEP_LINE_BYTES;
    if (step->cause == ERR_NONE && str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
        const struct probe *probe = probe_train(p, step);
        step->memory_bytes = probe->memory_bytes;
        if (!probe->is_fine) {
            plan_cannot(step, probe->cause, probe->why.ptr);
        }
    }
}

/* ---- the whole ---- */

static int add_pin(struct plan *plan, const struct stack *stack, const char *what, struct err *err)
{
    if (plan->n_pins == PLAN_PINS_MAX) {
        return err_set(err, ERR_MANIFEST, "more than %d images and commits are not pinned",
                       PLAN_PINS_MAX);
    }
    plan->pins[plan->n_pins++] = (struct missing_pin){stack->id, str_of(what)};
    return 0;
}

/* Of the stacks of the cases that were asked for, each once. */
static int note_missing_pins(struct arena *arena, const struct report *report, const bool *is_asked,
                             struct plan *plan, struct err *err)
{
    plan->pins = arena_array(arena, struct missing_pin, PLAN_PINS_MAX);
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        const struct stack *stack = &report->stacks[idx];
        /* The bundled workload is pinned by its digest in lock/lock.json; under runtime none it has no image. */
        if (!is_asked[idx] || str_eq_z(stack->framework, "reperf")) {
            continue;
        }
        if (!stack->image_digest.ptr && add_pin(plan, stack, PLAN_PIN_IMAGE, err) < 0) {
            return -1;
        }
        for (size_t src = 0; src < stack->n_sources; src++) {
            const struct pin_source *source = &stack->sources[src];
            if (!source->commit.ptr &&
                add_pin(plan, stack,
                        arena_printf(arena, "commit of %.*s", STR_ARG(source->repository)),
                        err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int plan_cases(struct planner *p, struct plan *plan, struct err *err)
{
    const struct report *report = p->report;
    bool *is_asked = arena_array(p->arena, bool, report->n_stacks + 1);
    plan->steps = arena_array(p->arena, struct plan_step, report->n_cases + 1);
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        if (!plan_selects(plan->globs, plan->n_globs, c->id)) {
            continue;
        }
        if (!plan_case_id_is_safe(c->id)) {
            return err_set(err, ERR_MANIFEST, "%.*s: case id \"%.*s\" cannot be a folder's name",
                           STR_ARG(report->path), STR_ARG(c->id));
        }
        plan_case(p, c, &plan->steps[plan->n_steps++]);
        is_asked[c->stack - report->stacks] = true;
    }
    return note_missing_pins(p->arena, report, is_asked, plan, err);
}

int plan_make(struct arena *arena, const struct report *report, const struct planner_opts *opts,
              struct plan *ret_plan, struct err *err)
{
    struct planner p = {.arena = arena, .opts = opts, .report = report};
    struct plan plan = {.report = report->id,
                        .report_sha256 = opts->report_sha256,
                        .profile = opts->profile,
                        .repeats = opts->repeats,
                        .inventory = opts->inventory->id,
                        .runtime = opts->inventory->runtime,
                        .launcher = opts->inventory->launcher};
    plan.deadline_s = opts->deadline_s                 ? opts->deadline_s
                      : opts->profile == PROFILE_SMOKE ? DEADLINE_SMOKE_S
                                                       : DEADLINE_FULL_S;
    plan.data = opts->data;
    plan.globs = arena_array(arena, struct str, opts->n_globs + 1);
    for (size_t idx = 0; idx < opts->n_globs; idx++) {
        plan.globs[plan.n_globs++] = str_of(opts->globs[idx]);
    }
    int rc = plan_cases(&p, &plan, err);
    map_release(&p.probes);
    if (rc < 0) {
        return -1;
    }
    if (plan.n_steps == 0) {
        return err_set(err, ERR_USAGE, "report %.*s: no case is selected by --case %.200s",
                       STR_ARG(report->id), opts->n_globs ? opts->globs[0] : "");
    }
    *ret_plan = plan;
    return 0;
}

const char *planner_train_path(struct arena *arena, const char *self)
{
    const char *named = getenv("REPERF_TRAIN");
    struct str folder = str_of(self);
    if (named && named[0]) {
        return named;
    }
    while (folder.len && folder.ptr[folder.len - 1] != '/') {
        folder.len--;
    }
    return arena_printf(arena, "%.*s%s", STR_ARG(folder), TRAIN_PROGRAM);
}
