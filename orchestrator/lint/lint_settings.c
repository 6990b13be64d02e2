/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the settings of printed launches with their cases: batch, steps, seed, workers, precision, configuration. */
#include "base/base.h"

#include "lint/lint_parts.h"

#define AMP_LEVELS "O0 O1 O2 O3 o0 o1 o2 o3"

/* ---- batch ---- */

/* A batch is right if it is that of a GPU, a node or the job of some case, or that times the accumulated batches. */
static bool fits_batch(const struct report_case *c, int64_t batch)
{
    struct str text = STR_EMPTY;
    int64_t steps = 1;
    bool fits = false;
    (void)(case_condition(c, "grad_accumulation", &text) && to_count(text, INT32_MAX, &steps));
    for (int64_t times = 1; !fits && times <= 2; times++) {
        int64_t one = c->batch_per_gpu * (times == 1 ? 1 : steps);
        fits = batch == one || batch == one * c->gpus_per_node || batch == one * c->gpus;
    }
    return fits;
}

static void lint_batch(const struct lint_command *c, struct str value)
{
    int64_t batch = 0;
    if (!to_count(value, INT32_MAX, &batch)) {
        return;
    }
    for (const struct report_case *of = NULL; (of = command_next_case(c, of));) {
        if (fits_batch(of, batch)) {
            return;
        }
    }
    if (command_next_case(c, NULL)) {
        lint_add(c->lint, "batch-differs", c->at,
                 "the command's batch is %" PRId64 ", and no row that it is for has that", batch);
    }
}

/* ---- stated conditions ---- */

/* Which condition states the same; NULL: none. */
static const char *const CONDITIONS[MEANS_N] = {
    [MEANS_ITERATIONS] = "iterations", [MEANS_LOG_INTERVAL] = "log_interval",
    [MEANS_WORKERS] = "workers",       [MEANS_SEED] = "seed",
    [MEANS_IMAGES] = "dataset_images", [MEANS_PRECISION] = "precision_mode",
};

/* As a run of the command would state it: the recipe's over the case's. */
static bool stated_of(const struct lint_command *c, const struct report_case *of, const char *name,
                      struct str *ret)
{
    for (size_t idx = 0; c->recipe && idx < c->recipe->conditions.n; idx++) {
        if (str_eq_z(c->recipe->conditions.items[idx].name, name)) {
            *ret = c->recipe->conditions.items[idx].value;
            return true;
        }
    }
    return case_condition(of, name, ret);
}

static bool contradicts(const struct option_found *o, struct str stated)
{
    int64_t value = 0;
    int64_t number = 0;
    if (o->means == MEANS_PRECISION) { /* O0 to O3 */
        return is_word_of(o->value, AMP_LEVELS) && is_word_of(stated, AMP_LEVELS) &&
               o->value.ptr[1] != stated.ptr[1];
    }
    return to_count(o->value, INT64_MAX, &value) && to_count(stated, INT64_MAX, &number) &&
           value != number;
}

static void lint_condition(const struct lint_command *c, const struct option_found *o)
{
    const char *name = CONDITIONS[o->means];
    for (const struct report_case *of = NULL; name && (of = command_next_case(c, of));) {
        struct str stated = STR_EMPTY;
        if (stated_of(c, of, name, &stated) && contradicts(o, stated)) {
            lint_add(c->lint, "condition-contradicts-command", c->at,
                     "%.*s is %.*s in the command, and %s is stated as %.*s", STR_ARG(o->spelled),
                     STR_ARG(o->value), name, STR_ARG(stated));
        }
    }
}

/* A program whose parts are switched on by --use_..., and which is not told to use the loader that is stated. */
static void lint_loader(const struct lint_command *c)
{
    bool has_switches = lint_has(c->lint, "^(?!.*(?i:dali)).* --use_", c->line);
    for (const struct report_case *of = NULL; has_switches && (of = command_next_case(c, of));) {
        struct str stated = STR_EMPTY;
        if (stated_of(c, of, "data_loader", &stated) && str_eq_z(stated, "dali")) {
            lint_add(c->lint, "condition-contradicts-command", c->at,
                     "data_loader is stated as dali, and the command has no --use_dali");
        }
    }
}

/* ---- precision ---- */

enum width { WIDTH_NONE, WIDTH_FULL, WIDTH_HALF };

static enum width width_of_name(struct lint *lint, struct str name)
{
    static const char FULL[] = "(?i)^(?:(?:fp|float)?32(?:-true)?|float|o?0|no|false|single)\\z";
    static const char HALF[] = "(?i)^(?:(?:(?:b|mixed_)?(?:fp|float)|bf)?16(?:-mixed|-true)?|half|"
                               "amp|o[123]|mixed)\\z";
    return lint_has(lint, FULL, name)   ? WIDTH_FULL
           : lint_has(lint, HALF, name) ? WIDTH_HALF
                                        : WIDTH_NONE;
}

static enum width width_of_option(struct lint *lint, const struct option_found *o)
{
    if (o->means == MEANS_PRECISION) {
        return width_of_name(lint, o->value);
    }
    return o->means != MEANS_HALF || is_unknown(o->value) ? WIDTH_NONE
           : width_of_name(lint, o->value) == WIDTH_FULL  ? WIDTH_FULL
                                                          : WIDTH_HALF;
}

/* Several options of a run decide together: --fp16 False --bf16 True is half. */
static void lint_precision(const struct lint_command *c, enum width width, struct str spelled)
{
    struct str precision = STR_EMPTY;
    for (const struct report_case *of = NULL; (of = command_next_case(c, of));) {
        enum width of_case = width_of_name(c->lint, of->precision);
        if (of_case == width || of_case == WIDTH_NONE) {
            return;
        }
        precision = of->precision;
    }
    if (precision.ptr) {
        lint_add(c->lint, "condition-contradicts-command", c->at,
                 "%.*s asks for %s precision, for rows of %.*s", STR_ARG(spelled),
                 width == WIDTH_HALF ? "half or mixed" : "full", STR_ARG(precision));
    }
}

/* ---- configurations ---- */

static void lint_config(const struct lint_command *c, struct str word)
{
    /* A number of GPUs in a name: "8gpu", "gpu_8", "_c8", "8xb32", "8cards". */
    static const char SCALE[] =
        "(?i)(?|(?<!\\d)(\\d+)(?=[_-]?(?:gpu|card))|(?:gpus?|cards?)[_-]?(\\d+)|"
        "(?<!\\d)(\\d+)(?-i:xb)\\d|[_-]c(\\d+)(?=[._]|\\z))";
    struct str name = path_base(word), g[2];
    int64_t scale = 0;
    if (c->command->gpus > 0 && patterns_find(&c->lint->patterns, SCALE, name, g, 2) &&
        to_count(g[1], INT32_MAX, &scale) && scale > 0 && scale != c->command->gpus) {
        lint_add(c->lint, "config-of-other-scale", c->at, "%.*s is used on %" PRId64 " GPUs",
                 STR_ARG(name), c->command->gpus);
    }
}

/* ---- the whole ---- */

void lint_settings(const struct lint_command *c)
{
    static const char CONFIGS[] = ".py .yaml .yml .json .toml .cfg .ini .prototxt .sh";
    const struct shell_run *run = c->run;
    enum width width = WIDTH_NONE;
    struct str width_spelled = STR_EMPTY;
    struct option_found o;
    for (size_t at = 0; option_next(c->lint->arena, run, &at, &o);) {
        enum width asked = width_of_option(c->lint, &o);
        if (asked > width) {
            width = asked;
            width_spelled = o.spelled;
        }
        if (o.means == MEANS_BATCH) {
            lint_batch(c, o.value);
        } else if (o.means == MEANS_CONFIG) {
            lint_config(c, o.value);
        }
        lint_condition(c, &o);
    }
    if (width != WIDTH_NONE) {
        lint_precision(c, width, width_spelled);
    }
    lint_loader(c);
    for (size_t idx = 0; idx < run->n_own; idx++) {
        if (ends_with_any(run->words[idx].text, CONFIGS)) {
            lint_config(c, run->words[idx].text);
        }
    }
}

/* What a recipe runs, which may be the stack's own commands, is held against what its result would state. */
static void lint_recipe(struct lint *lint, const struct stack *s, const struct recipe *recipe,
                        const char *place)
{
    bool is_own = recipe->n_commands > 0;
    size_t n = is_own ? recipe->n_commands : s->n_commands;
    for (size_t idx = 0; idx < n; idx++) {
        const struct command *command = is_own ? &recipe->commands[idx] : &s->commands[idx];
        struct shell_script script = {0};
        struct lint_command c = {.lint = lint,
                                 .stack = s,
                                 .command = command,
                                 .script = &script,
                                 .at =
                                     in_stack(s, arena_printf(lint->arena, "%s.commands[%zu].works",
                                                              is_own ? place : "", idx)),
                                 .recipe = recipe};
        struct option_found o;
        if (!command->works.ptr || !str_eq_z(command->purpose, "run")) {
            continue; /* as printed, and so looked at before */
        }
        shell_script_read(lint->arena, command->works, &script);
        for (size_t at = 0; at < script.n; at++) {
            lint_at_run(&c, at);
            for (size_t option = 0; option_next(lint->arena, c.run, &option, &o);) {
                lint_condition(&c, &o);
            }
            lint_loader(&c);
        }
    }
}

void lint_recipes(struct lint *lint, const struct stack *s)
{
    const struct recipes *lists[] = {&s->smoke, &s->full};
    for (size_t list = 0; list < ARRAY_LEN(lists); list++) {
        for (size_t idx = 0; idx < lists[list]->n; idx++) {
            lint_recipe(lint, s, &lists[list]->items[idx],
                        arena_printf(lint->arena, ".%s[%zu]", list ? "full" : "smoke", idx));
        }
    }
}
