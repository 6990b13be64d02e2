/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the settings of printed launches with their cases: batch, steps, seed, workers, precision, configuration. */
#include "base/base.h"

#include "lint/lint_parts.h"

#define GPUS_NAME_MAX 4096

/* ---- batch ---- */

/* A batch is right if it is that of a GPU, a node or the job of some case, or that times the accumulated batches. */
static bool fits_batch(const struct report_case *c, int64_t batch)
{
    struct str text = STR_EMPTY;
    int64_t steps = 1;
    if (!case_condition(c, "grad_accumulation", &text) || !to_count(text, INT32_MAX, &steps)) {
        steps = 1;
    }
    for (int64_t times = 1;; times = steps) {
        if (batch == c->batch_per_gpu * times ||
            batch == c->batch_per_gpu * c->gpus_per_node * times ||
            batch == c->batch_per_gpu * c->gpus * times) {
            return true;
        }
        if (times == steps) {
            return false;
        }
    }
}

static void lint_batch(struct lint *lint, const struct lint_command *c, struct str value)
{
    int64_t batch = 0;
    size_t n_cases = 0;
    bool fits = false;
    if (!to_count(value, INT32_MAX, &batch)) {
        return;
    }
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        const struct report_case *of = &lint->report->cases[idx];
        if (of->stack == c->stack && command_is_for(c->command, of)) {
            n_cases++;
            fits = fits || fits_batch(of, batch);
        }
    }
    if (n_cases && !fits) {
        lint_add(lint, "batch-differs", c->stack, c->place,
                 "the command's batch is %" PRId64 ", and no row that it is for has that", batch);
    }
}

/* ---- stated conditions ---- */

/* Which condition states the same; NULL: none. */
static const char *const CONDITIONS[MEANS_N] = {
    [MEANS_ITERATIONS] = "iterations", [MEANS_LOG_INTERVAL] = "log_interval",
    [MEANS_WORKERS] = "workers",       [MEANS_SEED] = "seed",
    [MEANS_IMAGES] = "dataset_images",
};

static void lint_condition(struct lint *lint, const struct lint_command *c,
                           const struct option_found *o)
{
    const char *name = CONDITIONS[o->means];
    int64_t value = 0;
    if (!name || !to_count(o->value, INT64_MAX, &value)) {
        return;
    }
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        const struct report_case *of = &lint->report->cases[idx];
        struct str stated = STR_EMPTY;
        int64_t number = 0;
        if (of->stack == c->stack && command_is_for(c->command, of) &&
            case_condition(of, name, &stated) && to_count(stated, INT64_MAX, &number) &&
            number != value) {
            lint_add(lint, "condition-contradicts-command", c->stack, c->place,
                     "%.*s is %" PRId64 " in the command, and %s is stated as %" PRId64,
                     STR_ARG(o->spelled), value, name, number);
        }
    }
}

/* ---- precision ---- */

enum width { WIDTH_NONE, WIDTH_FULL, WIDTH_HALF };

static enum width width_of_name(struct str name)
{
    static const char *const FULL[] = {"fp32", "float32", "32",      "float",  "o0",
                                       "no",   "false",   "32-true", "single", NULL};
    static const char *const HALF[] = {
        "fp16", "float16", "16", "16-mixed", "bf16",       "bfloat16", "half",          "amp",
        "o1",   "o2",      "o3", "mixed",    "bf16-mixed", "16-true",  "mixed_float16", NULL};
    for (const char *const *known = FULL; *known; known++) {
        if (strlen(*known) == name.len && holds_text(name, *known)) {
            return WIDTH_FULL;
        }
    }
    for (const char *const *known = HALF; *known; known++) {
        if (strlen(*known) == name.len && holds_text(name, *known)) {
            return WIDTH_HALF;
        }
    }
    return WIDTH_NONE;
}

static enum width width_of_option(const struct option_found *o)
{
    if (o->means == MEANS_PRECISION) {
        return width_of_name(o->value);
    }
    if (o->means != MEANS_HALF || (o->value.ptr && is_unknown(o->value))) {
        return WIDTH_NONE;
    }
    return o->value.ptr && (holds_word(o->value, "false") || holds_word(o->value, "no") ||
                            str_eq_z(o->value, "0"))
               ? WIDTH_FULL
               : WIDTH_HALF;
}

static enum width width_of_case(const struct report_case *c)
{
    return width_of_name(c->precision);
}

/* Several options of a run decide together: --fp16 False --bf16 True is half. */
static void lint_precision(struct lint *lint, const struct lint_command *c, enum width width,
                           struct str spelled)
{
    bool is_for_any = false;
    struct str precision = STR_EMPTY;
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        const struct report_case *of = &lint->report->cases[idx];
        if (of->stack != c->stack || !command_is_for(c->command, of)) {
            continue;
        }
        if (width_of_case(of) == width || width_of_case(of) == WIDTH_NONE) {
            return;
        }
        is_for_any = true;
        precision = of->precision;
    }
    if (is_for_any) {
        lint_add(lint, "condition-contradicts-command", c->stack, c->place,
                 "%.*s asks for %s precision, for rows of %.*s", STR_ARG(spelled),
                 width == WIDTH_HALF ? "half or mixed" : "full", STR_ARG(precision));
    }
}

/* ---- configurations ---- */

/* Whether the number at name[at, end) counts GPUs by the text around it ("8gpu", "gpu_8", "_c8", "8xb32", "8cards"). */
static bool is_gpu_number(struct str name, size_t at, size_t end)
{
    static const char *const UNITS[] = {"gpu", "card"};
    size_t from = at;
    size_t to = end;
    from -= from > 0 && (name.ptr[from - 1] == '_' || name.ptr[from - 1] == '-');
    to += to < name.len && (name.ptr[to] == '_' || name.ptr[to] == '-');
    for (size_t idx = 0; idx < ARRAY_LEN(UNITS); idx++) {
        size_t len = strlen(UNITS[idx]);
        struct str after = str_sub(name, to, len);
        struct str before = from >= len ? str_sub(name, from - len, len) : STR_EMPTY;
        struct str plural = from > len ? str_sub(name, from - len - 1, len + 1) : STR_EMPTY;
        if ((after.len == len && holds_text(after, UNITS[idx])) ||
            (before.ptr && holds_text(before, UNITS[idx])) ||
            (plural.ptr && str_ends(plural, STR_LIT("s")) && holds_text(plural, UNITS[idx]))) {
            return true;
        }
    }
    if (end + 2 < name.len && name.ptr[end] == 'x' && name.ptr[end + 1] == 'b' &&
        is_digit(name.ptr[end + 2])) {
        return true;
    }
    return at >= 2 && (name.ptr[at - 1] == 'c' || name.ptr[at - 1] == 'C') &&
           (name.ptr[at - 2] == '_' || name.ptr[at - 2] == '-') &&
           (end == name.len || name.ptr[end] == '.' || name.ptr[end] == '_');
}

/* The number of GPUs in a configuration's name, or 0. */
static int64_t scale_in_name(struct str name)
{
    for (size_t at = 0; at < name.len; at++) {
        size_t end = at;
        int64_t n = 0;
        while (end < name.len && is_digit(name.ptr[end])) {
            end++;
        }
        if (end > at && to_count(str_sub(name, at, end - at), GPUS_NAME_MAX, &n) &&
            is_gpu_number(name, at, end)) {
            return n;
        }
        at = end > at ? end - 1 : at;
    }
    return 0;
}

static void lint_config(struct lint *lint, const struct lint_command *c, struct str word)
{
    struct str name = path_base(word);
    int64_t scale = scale_in_name(name);
    if (c->command->gpus > 0 && scale > 0 && scale != c->command->gpus) {
        lint_add(lint, "config-of-other-scale", c->stack, c->place,
                 "%.*s is used on %" PRId64 " GPUs", STR_ARG(name), c->command->gpus);
    }
}

static void lint_configs(struct lint *lint, const struct lint_command *c,
                         const struct shell_run *run)
{
    static const char *const CONFIGS[] = {".py",  ".yaml", ".yml",      ".json", ".toml",
                                          ".cfg", ".ini",  ".prototxt", ".sh",   NULL};
    for (size_t idx = 0; idx < run->n_own; idx++) {
        struct str word = run->words[idx].text;
        if (ends_in_any(word, CONFIGS)) {
            lint_config(lint, c, word);
        }
    }
}

/* ---- the whole ---- */

static void lint_run(struct lint *lint, const struct lint_command *c, size_t run_idx)
{
    const struct shell_run *run = &c->script->runs[run_idx];
    enum width width = WIDTH_NONE;
    struct str width_spelled = STR_EMPTY;
    struct option_found o;
    for (size_t at = 0; option_next(lint->arena, run, &at, &o);) {
        enum width asked = width_of_option(&o);
        if (asked > width) {
            width = asked;
            width_spelled = o.spelled;
        }
        if (o.means == MEANS_BATCH) {
            lint_batch(lint, c, o.value);
        } else if (o.means == MEANS_CONFIG) {
            lint_config(lint, c, o.value);
        } else {
            lint_condition(lint, c, &o);
        }
    }
    if (width != WIDTH_NONE) {
        lint_precision(lint, c, width, width_spelled);
    }
    lint_configs(lint, c, run);
}

void lint_settings(struct lint *lint, const struct stack *s)
{
    lint_each_run(lint, s, lint_run);
}
