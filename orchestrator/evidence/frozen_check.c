/* SPDX-License-Identifier: Apache-2.0 */
/* The frozen files agree with each other: the plan is one of this report, and the lock is the plan's. */
#include "base/base.h"

#include "base/fs.h"
#include "evidence/evidence.h"
#include "evidence/frozen.h"
#include "evidence/rundir.h"

#define TEXT_MAX (64u << 20)

static int differs(const struct plan_step *step, const char *what, struct err *err)
{
    return err_set(err, ERR_INTEGRITY,
                   "manifest/plan.json: case %.*s: its %s does not follow from report.json",
                   STR_ARG(step->case_id), what);
}

static bool same(struct str a, struct str b)
{
    return (a.ptr == NULL) == (b.ptr == NULL) && str_eq(a, b);
}

/* ---- by which recipe ---- */

/* Its log is read as the recipe says, else as the case does. */
static bool is_read_by(const struct plan *plan, const struct plan_step *step,
                       const struct report_case *c, const struct recipe *recipe)
{
    struct str rule = recipe->rule.ptr ? recipe->rule : c->rule;
    struct beside beside = recipe->beside;
    if (plan->data.folder.ptr && str_eq_z(step->beside.why_not, PLAN_DATA_WHY_NOT)) {
        beside.why_not = step->beside.why_not;
    }
    return same(step->format, recipe->rule.ptr ? rule_id_format(rule) : c->format) &&
           same(step->rule, rule) && beside_is_same(&step->beside, &beside);
}

/* Conditions whose value in the plan may differ from the report: where, how many, on what data. */
static bool is_placed(const struct plan *plan, struct str name)
{
    static const char *const SMOKE[] = {"gpus", "global_batch", "nodes", "device", NULL};
    static const char *const DATA[] = {"dataset", "dataset_images", NULL};
    return str_eq_z(name, "image") || (plan->profile == PROFILE_SMOKE && str_eq_any(name, SMOKE)) ||
           (plan->data.folder.ptr && str_eq_any(name, DATA));
}

static const struct condition *condition_of(const struct conditions *list, struct str name)
{
    return STR_NAMED(list->items, list->n, name, name);
}

/* What is said of the case by its id and its place, in text; NULL: it is no such name. */
static char *number_of_case(struct arena *arena, const struct report_case *c, struct str name)
{
    int64_t number = str_eq_z(name, "nodes")           ? c->nodes
                     : str_eq_z(name, "gpus")          ? c->gpus
                     : str_eq_z(name, "batch_per_gpu") ? c->batch_per_gpu
                                                       : -1;
    return number < 0 ? NULL : arena_printf(arena, "%lld", (long long)number);
}

static bool is_site_condition(struct str name)
{
    return str_eq_any(name, SITE_CONDITIONS);
}

/* The recipe's over the case's over the stack's, as a plan is made. */
static bool expected_condition(struct arena *arena, const struct frozen *frozen,
                               const struct report_case *c, const struct recipe *recipe,
                               bool asks_steps, struct condition *at)
{
    const struct plan *plan = &frozen->plan;
    const struct condition *said = condition_of(&recipe->conditions, at->name);
    char *number = number_of_case(arena, c, at->name);
    struct str synthetic = plan->is_rehearsal && str_eq_z(at->name, "dataset")
                               ? plan_rehearsed_data(arena, recipe)
                               : STR_EMPTY;
    if (is_site_condition(at->name)) {
        at->value = inventory_condition(arena, &frozen->inventory, at->name.ptr);
        return at->value.ptr != NULL;
    }
    if (synthetic.ptr) {
        at->value = synthetic;
    } else if (asks_steps && str_eq_z(at->name, "iterations")) {
        at->value =
            str_of(arena_printf(arena, "%lld", (long long)plan_asked_steps(plan->asked_steps, c)));
    } else if (!said && str_eq_z(at->name, "device")) {
        at->value =
            plan->profile == PROFILE_SMOKE || c->gpus == 0 ? STR_LIT("cpu") : STR_LIT("gpu");
    } else if (!said && number) {
        at->value = str_of(number);
    } else if (!said && str_eq_z(at->name, "framework")) {
        at->value = c->framework;
    } else if (!said && str_eq_z(at->name, "precision")) {
        at->value = c->precision;
    } else if (said || (said = condition_of(&c->conditions, at->name)) != NULL ||
               (said = condition_of(&c->stack->conditions, at->name)) != NULL) {
        at->value = said->value;
    } else {
        return false;
    }
    return true;
}

static bool has_conditions(const struct plan_step *step, const struct conditions *list)
{
    const struct conditions all = {step->conditions, step->n_conditions};
    for (size_t idx = 0; idx < list->n; idx++) {
        if (!condition_of(&all, list->items[idx].name)) {
            return false;
        }
    }
    return true;
}

static bool has_site_conditions(struct arena *arena, const struct inventory *inventory,
                                const struct plan_step *step)
{
    const struct conditions all = {step->conditions, step->n_conditions};
    for (size_t idx = 0; idx < SITE_CONDITIONS_N; idx++) {
        if (inventory_condition(arena, inventory, SITE_CONDITIONS[idx]).ptr &&
            !condition_of(&all, str_of(SITE_CONDITIONS[idx]))) {
            return false;
        }
    }
    return true;
}

static bool is_under(const struct frozen *frozen, const struct plan_step *step,
                     const struct report_case *c, const struct recipe *recipe)
{
    const struct plan *plan = &frozen->plan;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    bool asks_steps = plan->asked_steps.ptr && plan_step_steps(step).ptr;
    for (size_t idx = 0; idx < step->n_conditions; idx++) {
        struct condition wanted = {.name = step->conditions[idx].name};
        if (!is_placed(plan, wanted.name) &&
            (!expected_condition(&arena, frozen, c, recipe, asks_steps, &wanted) ||
             !same(wanted.value, step->conditions[idx].value))) {
            return false;
        }
    }
    return has_conditions(step, &c->conditions) && has_conditions(step, &c->stack->conditions) &&
           has_conditions(step, &recipe->conditions) &&
           has_site_conditions(&arena, &frozen->inventory, step);
}

static int check_recipe(const struct frozen *frozen, const struct plan_step *step,
                        const struct report_case *c, struct err *err)
{
    const struct recipes *recipes =
        frozen->plan.profile == PROFILE_FULL ? &c->stack->full : &c->stack->smoke;
    const struct recipe none = {0};
    bool is_named = !step->recipe.ptr && recipes->n == 0;
    bool is_read = is_named && is_read_by(&frozen->plan, step, c, &none);
    bool holds = is_read && is_under(frozen, step, c, &none);
    for (size_t idx = 0; !holds && idx < recipes->n; idx++) {
        const struct recipe *recipe = &recipes->items[idx];
        if (!same(step->recipe, recipe->title)) {
            continue;
        }
        is_named = true;
        bool is_read_now = is_read_by(&frozen->plan, step, c, recipe);
        is_read = is_read || is_read_now;
        holds = is_read_now && is_under(frozen, step, c, recipe);
    }
    return holds      ? 0
           : is_read  ? differs(step, "conditions", err)
           : is_named ? differs(step, "format, rule, target or also", err)
                      : differs(step, "recipe", err);
}

/* ---- which cases ---- */

static int check_step(const struct frozen *frozen, const struct plan_step *step,
                      const struct report_case *c, struct err *err)
{
    int64_t ranks =
        frozen->plan.profile == PROFILE_SMOKE ? plan_smoke_ranks(c) : plan_full_ranks(c);
    if (!str_eq(step->case_id, c->id)) {
        return err_set(err, ERR_INTEGRITY,
                       "manifest/plan.json: expected case %.*s, which was asked for, found %.*s",
                       STR_ARG(c->id), STR_ARG(step->case_id));
    }
    if (!str_eq(step->baseline, c->baseline.ptr ? c->baseline : c->id)) {
        return differs(step, "baseline", err);
    }
    if (step->cause != ERR_NONE) {
        return 0; /* not run: nothing is derived of it */
    }
    return step->n_ranks == ranks ? check_recipe(frozen, step, c, err)
                                  : differs(step, "number of ranks", err);
}

/* Those of the report that were asked for, all of them and in its order. */
static int check_steps(const struct frozen *frozen, struct err *err)
{
    const struct plan *plan = &frozen->plan;
    size_t n = 0;
    for (size_t idx = 0; idx < frozen->report.n_cases; idx++) {
        const struct report_case *c = &frozen->report.cases[idx];
        if (!plan_selects(plan->globs, plan->n_globs, c->id)) {
            continue;
        }
        if (n == plan->n_steps) {
            return err_set(err, ERR_INTEGRITY,
                           "manifest/plan.json: case %.*s was asked for and is not there",
                           STR_ARG(c->id));
        }
        if (check_step(frozen, &plan->steps[n++], c, err) < 0) {
            return -1;
        }
    }
    return n == plan->n_steps
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "manifest/plan.json: case %.*s is none of the report's that were asked "
                         "for",
                         STR_ARG(plan->steps[n].case_id));
}

/* ---- the rest ---- */

static int check_names(const struct frozen *frozen, struct err *err)
{
    const struct plan *plan = &frozen->plan;
    const struct inventory *inventory = &frozen->inventory;
    if (!str_eq(plan->report, frozen->report.id)) {
        return err_set(err, ERR_INTEGRITY, "manifest/plan.json: report %.*s, report.json is %.*s",
                       STR_ARG(plan->report), STR_ARG(frozen->report.id));
    }
    if (!str_eq(plan->inventory, inventory->id) || plan->runtime != inventory->runtime ||
        plan->launcher != inventory->launcher) {
        return err_set(err, ERR_INTEGRITY,
                       "manifest/plan.json: inventory %.*s, runtime %s, launcher %s; "
                       "inventory.json has %.*s, %s, %s",
                       STR_ARG(plan->inventory), RUNTIME_KIND_NAMES[plan->runtime],
                       LAUNCHER_KIND_NAMES[plan->launcher], STR_ARG(inventory->id),
                       RUNTIME_KIND_NAMES[inventory->runtime],
                       LAUNCHER_KIND_NAMES[inventory->launcher]);
    }
    return 0;
}

/* The items of the last "needs", which list what was still missing before the run, have no consequences and are not read. */
static int check_plan_text(struct arena *arena, const struct frozen *frozen, struct err *err)
{
    static const char NEEDS[] = "\n  \"needs\": [";
    const char *name = RUNDIR_FILES[RUNDIR_PLAN].name;
    CLEANUP(strbuf) struct strbuf plan = STRBUF(TEXT_MAX);
    struct str kept;
    plan_encode(&frozen->plan, &plan);
    int64_t at = str_find(strbuf_str(&plan), STR_LIT(NEEDS));
    ASSERT(at > 0);
    struct str before = str_sub(strbuf_str(&plan), 0, (size_t)at + sizeof(NEEDS) - 1);
    struct str behind = str_sub(strbuf_str(&plan), before.len, plan.len);
    if (fs_read(arena, fs_join(arena, frozen->folder, name), TEXT_MAX, &kept, err) < 0 ||
        evidence_same_text(str_sub(kept, 0, before.len), before, name, err) < 0) {
        return -1;
    }
    kept = str_sub(kept, before.len, kept.len);
    return str_ends(kept, behind)
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: its end is not what reperf writes there", name);
}

/* Byte for byte as a run writes them. */
static int check_texts(struct arena *arena, const struct frozen *frozen, struct err *err)
{
    CLEANUP(strbuf) struct strbuf inventory = STRBUF(TEXT_MAX);
    const char *path = fs_join(arena, frozen->folder, RUNDIR_FILES[RUNDIR_INVENTORY].name);
    struct str kept;
    inventory_encode(&frozen->inventory, &inventory);
    if (check_plan_text(arena, frozen, err) < 0) {
        return -1;
    }
    if (!fs_exists(path)) {
        return 0;
    }
    return fs_read(arena, path, TEXT_MAX, &kept, err) < 0
               ? -1
               : evidence_same_text(kept, strbuf_str(&inventory), "manifest/inventory.json", err);
}

/* The lock holds the digest of each file that was frozen before it. */
static int check_locked(const struct frozen *frozen, struct err *err)
{
    for (size_t idx = 0; idx < frozen->n_locked && idx < frozen->n_files; idx++) {
        const struct frozen_digest *locked = &frozen->locked[idx];
        const struct frozen_digest *file = &frozen->files[idx];
        if (str_eq(locked->name, file->name) && !str_eq(locked->sha256, file->sha256)) {
            return err_set(err, ERR_INTEGRITY,
                           "%.*s: expected SHA-256 %.*s (lock/lock.json), found %.*s",
                           STR_ARG(file->name), STR_ARG(locked->sha256), STR_ARG(file->sha256));
        }
    }
    return 0;
}

/* What the lock lacks that today's has is an added key; anything else in it must be what follows from the frozen files. */
static int check_lock(struct arena *arena, const struct frozen *frozen,
                      struct discrepancies *discrepancies, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    const char *name = RUNDIR_FILES[RUNDIR_LOCK].name;
    struct str kept;
    frozen_encode_lock(frozen, &text);
    return fs_read(arena, fs_join(arena, frozen->folder, name), TEXT_MAX, &kept, err) < 0 ||
                   discrepancies_find(arena, name, kept, strbuf_str(&text), discrepancies, err) <
                       0 ||
                   discrepancies_refuse(discrepancies, err) < 0
               ? -1
               : 0;
}

int frozen_check(struct arena *arena, const struct frozen *frozen,
                 struct discrepancies *discrepancies, struct err *err)
{
    if (check_names(frozen, err) < 0 || check_steps(frozen, err) < 0) {
        return -1;
    }
    return check_locked(frozen, err) < 0 || check_texts(arena, frozen, err) < 0
               ? -1
               : check_lock(arena, frozen, discrepancies, err);
}
