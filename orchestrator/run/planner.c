/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/planner.h"

#include <limits.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/str.h"
#include "load/places.h"
#include "report/launch_options.h"
#include "run/planner_impl.h"
#include "sys/child.h"

/* How long a repeat will take if it runs at the published rate, and how many training steps it has. */

#define DEADLINE_ESTIMATES 3 /* how many estimates long the default deadline is */

/* Samples per second, as published for the case or, for the bundled workload, for its baseline; 0: none was. */
static double published_rate(const struct report_case *of)
{
    const struct report_case *c = of->rated;
    for (size_t idx = 0; c && idx < c->n_cells; idx++) {
        if (c->cells[idx].metric == METRIC_THROUGHPUT) {
            return c->cells[idx].published;
        }
    }
    return 0;
}

/* As the options of the training program say, where no condition does; 0: neither says. */
static int64_t steps_of_command(struct arena *arena, const struct plan_step *step)
{
    struct shell_script script;
    int64_t n = 0;
    shell_script_read(arena, step->argv[step->n_argv - 1], &script);
    for (size_t idx = 0; idx < script.n; idx++) {
        struct option_found option;
        for (size_t at = 0; option_next(arena, &script.runs[idx], &at, &option);) {
            if (option.means == MEANS_ITERATIONS && option_is_training(&script.runs[idx])) {
                n = str_to_i64(option.value, 1, INT32_MAX, &n, ERR_IGNORED) == 0 ? n : 0;
            }
        }
    }
    return n;
}

/* How many samples a repeat trains on; 0: not known. Where both are said, an epoch has so many
   iterations. */
static double samples_of(struct arena *arena, const struct plan_step *step)
{
    int64_t n_steps = step->n_steps;
    double epochs = (double)plan_condition_number(step, "epochs");
    double parts = (double)plan_condition_number(step, "grad_accumulation");
    double batch = (double)plan_condition_number(step, "batch_per_gpu") * (double)step->n_ranks *
                   (parts > 0 ? parts : 1);
    if (n_steps == 0 && epochs <= 0) {
        n_steps = steps_of_command(arena, step);
    }
    return n_steps ? (double)n_steps * batch * (epochs > 0 ? epochs : 1)
                   : epochs * (double)plan_condition_number(step, "dataset_images");
}

static void ask_steps(struct planner *p, const struct report_case *c, struct plan_step *step)
{
    const int64_t n = plan_asked_steps(p->opts->asked.asked_steps, c);
    bool takes_it = false;
    for (size_t idx = 0; idx < step->n_argv; idx++) {
        takes_it = takes_it || str_find(step->argv[idx], STR_LIT(PLAN_STEPS_ENV)) >= 0;
    }
    if (n && takes_it) {
        ASSERT(step->n_env < PLAN_ENV_MAX);
        step->env[step->n_env++] =
            (struct condition){STR_LIT(PLAN_STEPS_ENV), str_printf(p->arena, "%lld", (long long)n)};
        plan_set_condition(step, "iterations", str_printf(p->arena, "%lld", (long long)n));
        step->n_steps = n;
    }
}

static void estimate(struct planner *p, struct plan_step *step)
{
    double rate = published_rate(step->bound.of_case);
    double seconds = rate > 0 ? samples_of(p->arena, step) / rate : 0;
    if (p->opts->asked.profile == PROFILE_SMOKE || p->opts->asked.is_rehearsal || seconds <= 0) {
        return;
    }
    step->estimate_s = seconds < DEADLINE_S_MAX ? (int64_t)seconds + 1 : DEADLINE_S_MAX;
    int64_t deadline_s = step->estimate_s * DEADLINE_ESTIMATES;
    if (!p->opts->asked.deadline_s && deadline_s > DEADLINE_FULL_S) {
        step->deadline_s = deadline_s < DEADLINE_S_MAX ? deadline_s : DEADLINE_S_MAX;
    }
}

/* From a recipe to a step: its command, environment and conditions. */

#define WORDS_ADDED_MAX 32 /* by what is asked for: an option and its value each */

/* ---- commands ---- */

/* A command of plain words becomes an argv. False where it needs a shell. */
static bool split_words(struct str text, struct str *words, size_t *ret_n)
{
    struct str rest = str_trim(text);
    struct str word;
    size_t n = 0;
    while (str_next(&rest, ' ', &word)) {
        if (!word.len) {
            continue;
        }
        if (!str_is_made_of(word, "a-zA-Z0-9_./:=,@%+-") || n + WORDS_ADDED_MAX >= PLAN_ARGV_MAX) {
            return false;
        }
        words[n++] = word;
    }
    *ret_n = n;
    return n > 0;
}

/* Where its value is; NULL: the command does not have it. */
static struct str *option_of(struct plan_step *step, const char *name)
{
    for (size_t idx = 1; idx + 1 < step->n_argv; idx++) {
        if (str_eq_z(step->argv[idx], name)) {
            return &step->argv[idx + 1];
        }
    }
    return NULL;
}

static void set_option(struct plan_step *step, const char *name, const char *value)
{
    struct str *there = option_of(step, name);
    if (!there) {
        ASSERT(step->n_argv + 2 <= PLAN_ARGV_MAX);
        step->argv[step->n_argv] = str_of(name);
        there = &step->argv[step->n_argv + 1];
        step->n_argv += 2;
    }
    *there = str_of(value);
}

static bool drop_option(struct plan_step *step, const char *name)
{
    struct str *there = option_of(step, name);
    if (there) {
        const struct str *end = step->argv + step->n_argv;
        memmove(there - 1, there + 1, (size_t)(end - there - 1) * sizeof(*there));
        step->n_argv -= 2;
    }
    return there;
}

/* Plain words as they are, everything else by a shell. */
static void set_command(struct arena *arena, const struct recipe *recipe,
                        const struct command *command, struct plan_step *step)
{
    struct str text = command_text(command);
    step->is_per_node = !str_eq_z(command->per, "rank");
    if (recipe->before.ptr) {
        text = str_printf(arena, "set -e\n%.*s\n%.*s", STR_ARG(recipe->before), STR_ARG(text));
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

/* What the site adds, over all else. */
static void set_site(struct arena *arena, const struct inventory *inventory, struct plan_step *step)
{
    if (inventory->proxy.ptr) {
        set_proxy(arena, inventory, step);
    }
    set_env(step, inventory->env, inventory->n_env);
}

/* The data is a condition like any other: a verdict lists it if it differs from the published run's. */
static void use_data(struct arena *arena, const struct planner_opts *opts, struct plan_step *step)
{
    const struct plan_data *data = &opts->asked.data;
    if (data->folder.ptr && step->n_argv && str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
        set_option(step, "--data", data->folder.ptr);
        if (drop_option(step, "--eval-every")) { /* on data made by the program: it would refuse */
            step->beside.why_not = STR_LIT(PLAN_DATA_WHY_NOT);
        }
        plan_set_condition(step, "dataset", str_of(plan_data_name(arena, data)));
        plan_set_condition(step, "dataset_images",
                           str_printf(arena, "%lld", (long long)data->n_samples));
    }
}

/* The recipe's, where what it runs prints otherwise than the case's framework or too little for its rule. A number that nobody
   published needs neither: then the log is read as `measure` reads it. */
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

static int follow(struct planner *p, const struct report_case *c, const struct recipe *recipe,
                  struct plan_step *step, struct err *err)
{
    struct arena *arena = p->arena;
    const struct planner_opts *opts = p->opts;
    step->recipe = recipe->title;
    if (opts->asked.profile == PROFILE_SMOKE) {
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
    plan_recipe_conditions(arena, p->plan, opts->inventory, recipe, step);
    step->n_steps = plan_condition_number(step, "iterations");
    set_site(arena, opts->inventory, step);
    if (!choose_command(arena, c, recipe, step)) {
        return 0;
    }
    ask_steps(p, c, step);
    estimate(p, step);
    if (plan_choose_image(p, c, recipe, step, err) < 0) {
        return -1;
    }
    use_data(arena, opts, step);
    return plan_find_mounts(p, c, recipe, step, err);
}

#define PROBE_DEADLINE_NS (30 * NS_PER_S)
#define PROBE_OUTPUT_MAX  (1u << 20)
/* Upper bounds of one training step's metric line, and of start and stop. */
#define STEP_LINE_BYTES 256
#define RUN_LINES_BYTES 4096

/* ---- what stands in the way ---- */

void plan_lacks(struct plan_step *step, const struct step_need *need)
{
    ASSERT(step->n_needs < STEP_NEEDS_MAX);
    step->needs[step->n_needs++] = *need;
    if (step->cause == ERR_NONE) {
        step->cause = need->cause;
        step->why = need->what;
    }
}

void plan_cannot(struct plan_step *step, enum err_code cause, const char *why, const char *command)
{
    plan_lacks(step, &(struct step_need){.cause = cause,
                                         .what = str_of(why),
                                         .command = command ? str_of(command) : STR_EMPTY});
}

struct gpu_probe {
    enum err_code cause; /* why it cannot; ERR_NONE: it can */
    struct str why;
    int64_t memory_bytes;
};

/* The program's own sum: parameters, gradients, what its optimiser keeps, statistics, activations, workspace; 0 where it does
   not say. */
static int64_t memory_of(struct str describe)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json member;
    int64_t bytes = 0;
    if (json_parse(describe, "reperf-train --describe", &doc, ERR_IGNORED) < 0) {
        return 0;
    }
    bool is_said = json_find(&doc.root, "total_bytes", &member) &&
                   json_i64(&member, 0, 1LL << 50, &bytes, ERR_IGNORED) == 0;
    return is_said ? bytes : 0;
}

/* Asks the bundled program itself whether it can do this. */
static struct gpu_probe *probe_train(struct planner *p, const struct plan_step *step)
{
    struct arena *arena = p->arena;
    CLEANUP(strbuf) struct strbuf text = STRBUF(PROBE_OUTPUT_MAX);
    struct gpu_probe *probe = arena_new(arena, struct gpu_probe);
    const char **argv = arena_array(arena, const char *, step->n_argv + 2);
    char *key = arena_printf(arena, "%s", "");
    struct err err = {0};
    int status = -1;
    argv[0] = p->opts->train_path;
    for (size_t idx = 1; idx < step->n_argv; idx++) {
        argv[idx] = str_z(arena, step->argv[idx]);
        key = arena_printf(arena, "%s %s", key, argv[idx]);
    }
    struct gpu_probe *known = map_get(&p->probes, str_of(key));
    if (known) {
        return known;
    }
    argv[step->n_argv] = "--describe";
    if (child_capture(p->opts->clock, argv, PROBE_DEADLINE_NS, &text, &status, &err) < 0) {
        probe->cause = ERR_WORKLOAD;
        probe->why = str_printf(arena, "%s", err.msg);
    } else if (status != 0) {
        probe->cause = status == err_exit_status(ERR_INTEGRITY) ? ERR_INTEGRITY : ERR_WORKLOAD;
        probe->why = str_printf(arena, "%s cannot do this here: %s", TRAIN_PROGRAM,
                                quote_shown(arena, quote_last_line(strbuf_str(&text))));
    } else {
        probe->memory_bytes = memory_of(strbuf_str(&text));
    }
    (void)map_add(&p->probes, str_of(key), probe);
    return probe;
}

/* ---- a case ---- */

static struct plan_step new_step(struct arena *arena, const struct report_case *c)
{
    struct plan_step step = {.case_id = c->id,
                             .baseline = c->baseline.ptr ? c->baseline : c->id,
                             .format = c->format,
                             .rule = c->rule,
                             .node = STR_LIT(INVENTORY_LOCAL),
                             .bound.of_case = c};
    step.needs = arena_array(arena, struct step_need, STEP_NEEDS_MAX);
    step.env = arena_array(arena, struct condition, PLAN_ENV_MAX);
    step.argv = arena_array(arena, struct str, PLAN_ARGV_MAX);
    plan_case_conditions(arena, c, &step);
    return step;
}

/* Whether the report's commands alone are enough: nothing has to be added to the image first. */
static bool is_self_contained(const struct stack *stack)
{
    static const char *const BEFORE[] = {"code", "data", "install", "build", NULL};
    for (size_t idx = 0; idx < stack->n_commands; idx++) {
        if (str_eq_any(stack->commands[idx].purpose, BEFORE)) {
            return false;
        }
    }
    return stack->n_sources == 0;
}

/* Without one: the report's commands in its image, if nothing else is needed. */
static const struct recipe *as_the_report(struct planner *p, const struct stack *stack)
{
    struct recipe *recipe = arena_new(p->arena, struct recipe);
    recipe->image = stack->image;
    if (p->opts->asked.profile == PROFILE_SMOKE || !is_self_contained(stack)) {
        recipe->why_not =
            str_printf(p->arena,
                       "stack %.*s of the report's data has no recipe for profile %s; "
                       "leave it out with --case",
                       STR_ARG(stack->id), PROFILE_NAMES[p->opts->asked.profile]);
    }
    return recipe;
}

static void probe(struct planner *p, struct plan_step *step)
{
    const struct inventory *inventory = p->opts->inventory;
    if (step->cause == ERR_NONE && inventory->is_local && inventory->runtime == RUNTIME_NONE &&
        str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
        const struct gpu_probe *probe = probe_train(p, step);
        step->memory_bytes = probe->memory_bytes;
        if (probe->cause != ERR_NONE) {
            plan_cannot(step, probe->cause, probe->why.ptr, NULL);
        }
    }
}

static int plan_by(struct planner *p, const struct report_case *c, const struct recipe *recipe,
                   struct plan_step *ret_step, struct err *err)
{
    *ret_step = new_step(p->arena, c);
    if (c->nodes == 0) {
        ret_step->n_nodes = 1;
        ret_step->n_ranks = 1;
        plan_cannot(ret_step, ERR_MANIFEST, "the report does not print how many nodes and GPUs",
                    NULL);
        return 0;
    }
    if (follow(p, c, recipe, ret_step, err) < 0) {
        return -1;
    }
    ret_step->log_bytes = RUN_LINES_BYTES + ret_step->n_ranks * ret_step->n_steps * STEP_LINE_BYTES;
    probe(p, ret_step);
    return 0;
}

bool plan_can_get(const struct plan_step *step)
{
    for (size_t idx = 0; idx < step->n_needs; idx++) {
        if (!step->needs[idx].artifact.ptr) {
            return false;
        }
    }
    return true;
}

/* 0: it can be run. */
static int distance(const struct planner *p, const struct plan_step *step)
{
    if (step->cause == ERR_NONE || (p->opts->counts_gettable && plan_can_get(step))) {
        return 0;
    }
    return plan_can_get(step) ? 1 : 2;
}

/* The first recipe that lacks nothing is chosen, else the first that lacks only what reperf can
   get, else the first. */
static int plan_case(struct planner *p, const struct report_case *c, struct plan_step *ret_step,
                     struct err *err)
{
    const struct recipes *recipes =
        p->opts->asked.profile == PROFILE_FULL ? &c->stack->full : &c->stack->smoke;
    int least = INT_MAX;
    if (recipes->n == 0) {
        return plan_by(p, c, as_the_report(p, c->stack), ret_step, err);
    }
    for (size_t idx = 0; idx < recipes->n && least > 0; idx++) {
        struct plan_step step;
        if (plan_by(p, c, &recipes->items[idx], &step, err) < 0) {
            return -1;
        }
        if (distance(p, &step) < least) {
            least = distance(p, &step);
            *ret_step = step;
        }
    }
    return 0;
}

/* ---- the whole ---- */

/* Another column of its row, whose ratio to it is wanted: --each-node compares a node with another, and a rehearsal nothing. */
static bool has_other_column(const struct plan *plan, const struct report_case *const *cases,
                             const struct report_case *c)
{
    for (size_t idx = 0; idx + 1 < plan->n_steps; idx++) {
        if (plan->steps[idx].cause == ERR_NONE && report_same_row(cases[idx], c) &&
            !str_eq(cases[idx]->framework, c->framework)) {
            return !plan->is_each_node && !plan->is_rehearsal;
        }
    }
    return false;
}

static int plan_cases(struct planner *p, struct plan *plan, struct err *err)
{
    const struct report *report = p->report;
    bool *is_asked = arena_array(p->arena, bool, report->n_stacks + 1);
    const struct report_case **cases =
        arena_array(p->arena, const struct report_case *, report->n_cases + 1);
    plan->steps = arena_array(p->arena, struct plan_step, report->n_cases + 1);
    plan->needs = arena_array(p->arena, struct plan_need, PLAN_NEEDS_MAX);
    plan->pins = arena_array(p->arena, struct missing_pin, PLAN_PINS_MAX);
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        if (!plan_selects(plan->globs, plan->n_globs, c->id)) {
            continue;
        }
        if (!plan_case_id_is_safe(c->id)) {
            return err_set(err, ERR_MANIFEST, "%.*s: case id \"%.*s\" cannot be a folder's name",
                           STR_ARG(report->path), STR_ARG(c->id));
        }
        struct plan_step *step = &plan->steps[plan->n_steps++];
        cases[plan->n_steps - 1] = c;
        if (plan_case(p, c, step, err) < 0) {
            return -1;
        }
        plan->takes_turns = plan->takes_turns || (!p->opts->is_packed && step->cause == ERR_NONE &&
                                                  has_other_column(plan, cases, c));
        is_asked[c->stack - report->stacks] = true;
    }
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        if (plan_list_needs(p, plan, &plan->steps[idx], err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        if (is_asked[idx] && plan_list_pins(p, plan, &report->stacks[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

int plan_make(struct arena *arena, const struct report *report, const struct planner_opts *opts,
              struct plan *ret_plan, struct err *err)
{
    struct planner p = {.arena = arena, .opts = opts, .report = report};
    struct plan plan = opts->asked;
    plan.report = report->id;
    plan.inventory = opts->inventory->id;
    plan.runtime = opts->inventory->runtime;
    plan.launcher = opts->inventory->launcher;
    plan.deadline_s = plan.deadline_s                 ? plan.deadline_s
                      : plan.profile == PROFILE_SMOKE ? DEADLINE_SMOKE_S
                                                      : DEADLINE_FULL_S;
    plan.globs = arena_array(arena, struct str, opts->globs.n + 1);
    for (size_t idx = 0; idx < opts->globs.n; idx++) {
        plan.globs[plan.n_globs++] = str_of(opts->globs.items[idx]);
    }
    p.plan = &plan;
    int rc = plan_cases(&p, &plan, err);
    map_release(&p.probes);
    map_release(&p.mounts);
    map_release(&p.images);
    if (rc < 0) {
        return -1;
    }
    struct str *ids = arena_array(arena, struct str, plan.n_steps + 1);
    for (size_t idx = 0; idx < plan.n_steps; idx++) {
        ids[idx] = plan.steps[idx].case_id;
    }
    struct str idle = plan_idle_glob(plan.globs, plan.n_globs, ids, plan.n_steps);
    if (plan.n_steps == 0 || idle.ptr) {
        struct nearest nearest = nearest_to(idle.ptr ? idle.ptr : "");
        char text[NEAREST_TEXT_MAX];
        for (size_t idx = 0; idx < report->n_cases; idx++) {
            nearest_offer(&nearest, report->cases[idx].id.ptr);
        }
        return err_set(err, ERR_USAGE, "report %.*s: no case is selected by --case %.200s%s",
                       STR_ARG(report->id), idle.ptr ? idle.ptr : "", nearest_text(&nearest, text));
    }
    *ret_plan = plan;
    return 0;
}

const char *planner_train_path(struct arena *arena, const char *self)
{
    return places_program(arena, getenv("REPERF_TRAIN"), self, TRAIN_PROGRAM);
}
