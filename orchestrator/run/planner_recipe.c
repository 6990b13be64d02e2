/* SPDX-License-Identifier: Apache-2.0 */
/* From a recipe to a step: its command, environment and conditions. */
#include "base/base.h"

#include "run/planner_impl.h"

#define WORDS_ADDED_MAX 32 /* by what is asked for: an option and its value each */

/* ---- commands ---- */

/* A command of plain words becomes an argv. False where it needs a shell. */
static bool split_words(struct str text, struct str *words, size_t *ret_n)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:=,@%+";
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
    *ret_n = n;
    return n > 0;
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

static bool drop_option(struct plan_step *step, const char *name)
{
    for (size_t idx = 1; idx + 1 < step->n_argv; idx++) {
        if (str_eq_z(step->argv[idx], name)) {
            step->n_argv -= 2;
            memmove(&step->argv[idx], &step->argv[idx + 2],
                    (step->n_argv - idx) * sizeof(*step->argv));
            return true;
        }
    }
    return false;
}

static struct str text_of(const struct command *command)
{
    return command->works.ptr ? command->works : command->printed;
}

/* Plain words as they are, everything else by a shell. */
static void set_command(struct arena *arena, const struct recipe *recipe,
                        const struct command *command, struct plan_step *step)
{
    struct str text = text_of(command);
    step->is_per_node = !str_eq_z(command->per, "rank");
    if (recipe->before.ptr) {
        text = str_of(
            arena_printf(arena, "set -e\n%.*s\n%.*s", STR_ARG(recipe->before), STR_ARG(text)));
    }
    if (recipe->before.ptr || !split_words(text, step->argv, &step->n_argv)) {
        step->argv[0] = STR_LIT("/bin/sh");
        step->argv[1] = STR_LIT("-c");
        step->argv[2] = text;
        step->n_argv = 3;
    }
}

/* False where there is none: nothing that could be fetched would help. */
static bool choose_command(struct arena *arena, const struct report_case *c,
                           const struct recipe *recipe, struct plan_step *step)
{
    const struct stack *stack = c->stack;
    const struct command *command = recipe->n_commands
                                        ? run_command_for(recipe->commands, recipe->n_commands, c)
                                        : run_command_for(stack->commands, stack->n_commands, c);
    if (!command) {
        const char *why = recipe->n_commands ? "the recipe has no command for so many GPUs"
                                             : "the report's data has no run command for this case";
        plan_cannot(step, recipe->else_why_not.ptr ? ERR_CONTAINER : ERR_MANIFEST,
                    recipe->else_why_not.ptr ? recipe->else_why_not.ptr : why, NULL);
        return false;
    }
    set_command(arena, recipe, command, step);
    if (str_eq_z(command->per, "head") && step->n_nodes > 1) {
        plan_cannot(step, ERR_MANIFEST,
                    "the command is typed on the first node alone and brings itself to the "
                    "others: nothing here lets it into their containers",
                    NULL);
    }
    return true;
}

/* ---- environment and conditions ---- */

static void set_env(struct plan_step *step, const struct condition *env, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        size_t at = 0;
        while (at < step->n_env && !str_eq(step->env[at].name, env[idx].name)) {
            at++;
        }
        if (!env[idx].value.ptr) { /* removes the stack's own */
            step->n_env -= at < step->n_env;
            memmove(&step->env[at], &step->env[at + 1], (step->n_env - at) * sizeof(*step->env));
            continue;
        }
        ASSERT(at < PLAN_ENV_MAX); /* the reader takes fewer */
        step->env[at] = env[idx];
        step->n_env = at == step->n_env ? at + 1 : step->n_env;
    }
}

int64_t plan_condition_number(const struct plan_step *step, const char *name)
{
    struct err ignored = {0};
    int64_t value = 0;
    for (size_t idx = 0; idx < step->n_conditions; idx++) {
        if (str_eq_z(step->conditions[idx].name, name) &&
            str_to_i64(step->conditions[idx].value, 1, 1LL << 40, &value, &ignored) < 0) {
            value = 0;
        }
    }
    return value;
}

static void set_conditions(struct arena *arena, const struct planner_opts *opts,
                           const struct recipe *recipe, struct plan_step *step)
{
    bool is_smoke = opts->profile == PROFILE_SMOKE;
    bool is_on_cpu = is_smoke || step->bound.of_case->gpus == 0;
    plan_set_condition(step, "device", is_on_cpu ? STR_LIT("cpu") : STR_LIT("gpu"));
    for (size_t idx = 0; idx < recipe->conditions.n; idx++) {
        plan_set_condition(step, recipe->conditions.items[idx].name.ptr,
                           recipe->conditions.items[idx].value);
    }
    if (is_smoke) {
        int64_t parts = plan_condition_number(step, "grad_accumulation");
        int64_t batch = plan_condition_number(step, "batch_per_gpu") * (parts ? parts : 1);
        plan_set_condition(step, "gpus", STR_LIT("0"));
        plan_set_condition(step, "global_batch", plan_number(arena, batch * step->n_ranks));
    }
    step->n_steps = plan_condition_number(step, "iterations");
}

/* The ranks meet without the proxy. */
static void set_proxy(struct arena *arena, const struct inventory *inventory,
                      struct plan_step *step)
{
    static const char *const NAMES[] = {"http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"};
    const char *direct = "localhost,127.0.0.1";
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        const struct inventory_node *node = &inventory->nodes[idx];
        direct = arena_printf(arena, "%s,%.*s", direct, STR_ARG(inventory_fast_address(node)));
    }
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        set_env(step, &(struct condition){str_of(NAMES[idx]), inventory->proxy}, 1);
    }
    set_env(step, &(struct condition){STR_LIT("no_proxy"), str_of(direct)}, 1);
    set_env(step, &(struct condition){STR_LIT("NO_PROXY"), str_of(direct)}, 1);
}

/* What the site adds, over all else, and as conditions. */
static void set_site(struct arena *arena, const struct inventory *inventory, struct plan_step *step)
{
    if (inventory->proxy.ptr) {
        set_proxy(arena, inventory, step);
    }
    set_env(step, inventory->env, inventory->n_env);
    for (size_t idx = 0; idx < SITE_CONDITIONS_N; idx++) {
        struct str value = inventory_condition(arena, inventory, SITE_CONDITIONS[idx]);
        if (value.ptr) {
            plan_set_condition(step, SITE_CONDITIONS[idx], value);
        }
    }
}

/* The data is a condition like any other: a verdict lists it if it differs from the published run's. */
static void use_data(struct arena *arena, const struct planner_opts *opts, struct plan_step *step)
{
    const struct plan_data *data = &opts->data;
    if (data->folder.ptr && step->n_argv && str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
        set_option(step, "--data", data->folder.ptr);
        if (drop_option(step, "--eval-every")) { /* on data made by the program: it would refuse */
            step->beside.why_not = STR_LIT(PLAN_DATA_WHY_NOT);
        }
        plan_set_condition(step, "dataset", str_of(plan_data_name(arena, data)));
        plan_set_condition(step, "dataset_images", plan_number(arena, data->n_samples));
    }
}

/* The synthetic dataset needs no login and has the original's layout: what a rehearsal replaces is a condition. */
static void rehearse_data(struct arena *arena, const struct recipe *recipe, struct plan_step *step)
{
    struct str synthetic = plan_rehearsed_data(arena, recipe);
    if (synthetic.ptr) {
        plan_set_condition(step, "dataset", synthetic);
    }
}

/* The recipe's, where what it runs prints otherwise than the case's framework or too little for its rule. A number that nobody published
   needs neither: then the log is read as `measure` reads it. */
static void choose_rule(const struct planner *p, const struct recipe *recipe,
                        struct plan_step *step)
{
    if (recipe->rule.ptr) {
        step->rule = recipe->rule;
        step->format = rule_id_format(recipe->rule);
    }
    if (!p->report->is_unpublished && (!step->format.ptr || !step->rule.ptr)) {
        plan_cannot(step, ERR_MANIFEST,
                    "the report's data names no format or no rule for this case", NULL);
    }
}

/* ---- the whole ---- */

int plan_follow(struct planner *p, const struct report_case *c, const struct recipe *recipe,
                struct plan_step *step, struct err *err)
{
    struct arena *arena = p->arena;
    const struct planner_opts *opts = p->opts;
    step->recipe = recipe->title;
    if (opts->profile == PROFILE_SMOKE) {
        plan_place_smoke(arena, opts, c, step);
    } else {
        plan_place_full(arena, opts, c, step);
    }
    set_env(step, c->stack->env, c->stack->n_env);
    if (recipe->why_not.ptr) {
        plan_cannot(step, ERR_CONTAINER, recipe->why_not.ptr, NULL);
        return 0;
    }
    choose_rule(p, recipe, step);
    step->beside = recipe->beside;
    set_env(step, recipe->env, recipe->n_env);
    set_conditions(arena, opts, recipe, step);
    set_site(arena, opts->inventory, step);
    if (!choose_command(arena, c, recipe, step)) {
        return 0;
    }
    plan_ask_steps(p, c, step);
    plan_estimate(p, step);
    plan_choose_image(p, c, recipe, step);
    use_data(arena, opts, step);
    if (opts->is_rehearsal) {
        rehearse_data(arena, recipe, step);
    }
    return plan_find_mounts(p, c, recipe, step, err);
}
