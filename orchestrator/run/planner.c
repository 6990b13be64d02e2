/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/planner.h"

#include <limits.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/nearest.h"
#include "base/said.h"
#include "run/planner_impl.h"
#include "sys/child.h"

#define PROBE_DEADLINE_NS (30 * NS_PER_S)
#define PROBE_OUTPUT_MAX  (1u << 20)
/* Upper bounds of one training step's metric line, and of start and stop. */
#define STEP_LINE_BYTES 256
#define RUN_LINES_BYTES 4096

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
    bool is_fine;
    enum err_code cause; /* where it is not */
    struct str why;
    int64_t memory_bytes;
};

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
        probe->why = str_of(arena_printf(arena, "%s", err.msg));
    } else if (status != 0) {
        probe->cause = status == err_exit_status(ERR_INTEGRITY) ? ERR_INTEGRITY : ERR_WORKLOAD;
        probe->why = str_of(arena_printf(arena, "%s cannot do this here: %s", TRAIN_PROGRAM,
                                         said_shown(arena, said_last(strbuf_str(&text)))));
    } else {
        probe->is_fine = true;
        probe->memory_bytes = memory_of(strbuf_str(&text));
    }
    (void)map_add(&p->probes, str_of(key), probe);
    return probe;
}

/* ---- a case ---- */

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
    base_conditions(arena, c, &step);
    return step;
}

/* Whether the report's commands alone are enough: nothing has to be added to the image first. */
static bool is_self_contained(const struct stack *stack)
{
    static const char *const BEFORE[] = {"code", "data", "install", "build"};
    for (size_t idx = 0; idx < stack->n_commands; idx++) {
        for (size_t purpose = 0; purpose < ARRAY_LEN(BEFORE); purpose++) {
            if (str_eq_z(stack->commands[idx].purpose, BEFORE[purpose])) {
                return false;
            }
        }
    }
    return stack->n_sources == 0;
}

/* Without one: the report's commands in its image, if nothing else is needed. */
static const struct recipe *as_the_report(struct planner *p, const struct stack *stack)
{
    struct recipe *recipe = arena_new(p->arena, struct recipe);
    recipe->image = stack->image;
    if (p->opts->profile == PROFILE_SMOKE || !is_self_contained(stack)) {
        recipe->why_not =
            str_of(arena_printf(p->arena,
                                "stack %.*s of the report's data has no recipe for profile %s; "
                                "leave it out with --case",
                                STR_ARG(stack->id), PROFILE_NAMES[p->opts->profile]));
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
        if (!probe->is_fine) {
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
    if (plan_follow(p, c, recipe, ret_step, err) < 0) {
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

/* Of several recipes the first that lacks nothing, else the first that lacks only what reperf can get, else the first. */
static int plan_case(struct planner *p, const struct report_case *c, struct plan_step *ret_step,
                     struct err *err)
{
    const struct recipes *recipes =
        p->opts->profile == PROFILE_FULL ? &c->stack->full : &c->stack->smoke;
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
static int note_missing_pins(struct planner *p, const bool *is_asked, struct plan *plan,
                             struct err *err)
{
    struct arena *arena = p->arena;
    const struct planner_opts *opts = p->opts;
    const struct report *report = p->report;
    plan->pins = arena_array(arena, struct missing_pin, PLAN_PINS_MAX);
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        const struct stack *stack = &report->stacks[idx];
        if (!is_asked[idx]) {
            continue;
        }
        /* What is built here is pinned by its digest in lock/lock.json. */
        bool has_image = stack->image.ptr || !report->is_unpublished;
        if (has_image && !stack->image_digest.ptr && !plan_is_built(opts, stack->image) &&
            add_pin(plan, stack, PLAN_PIN_IMAGE, err) < 0) {
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
    plan->takes_turns = p->opts->takes_turns;
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
        struct plan_step *step = &plan->steps[plan->n_steps++];
        cases[plan->n_steps - 1] = c;
        if (plan_case(p, c, step, err) < 0) {
            return -1;
        }
        plan->takes_turns = plan->takes_turns || (!p->opts->is_packed && step->cause == ERR_NONE &&
                                                  has_other_column(plan, cases, c));
        is_asked[c->stack - report->stacks] = true;
    }
    return note_missing_pins(p, is_asked, plan, err);
}

int plan_make(struct arena *arena, const struct report *report, const struct planner_opts *opts,
              struct plan *ret_plan, struct err *err)
{
    struct planner p = {.arena = arena, .opts = opts, .report = report};
    struct plan plan = {.report = report->id,
                        .report_sha256 = opts->report_sha256,
                        .address = opts->address,
                        .profile = opts->profile,
                        .is_rehearsal = opts->is_rehearsal,
                        .repeats = opts->repeats,
                        .repeats_max = opts->repeats_max,
                        .within = opts->within,
                        .tolerance = opts->tolerance,
                        .is_each_node = opts->is_each_node,
                        .asked_steps = opts->asked_steps,
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
    map_release(&p.mounts);
    if (rc < 0) {
        return -1;
    }
    if (plan.n_steps == 0) {
        struct nearest nearest = nearest_to(opts->n_globs ? opts->globs[0] : "");
        char text[NEAREST_TEXT_MAX];
        for (size_t idx = 0; idx < report->n_cases; idx++) {
            nearest_offer(&nearest, report->cases[idx].id.ptr);
        }
        return err_set(err, ERR_USAGE, "report %.*s: no case is selected by --case %.200s%s",
                       STR_ARG(report->id), opts->n_globs ? opts->globs[0] : "",
                       nearest_text(&nearest, text));
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
