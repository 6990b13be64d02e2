/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/frozen.h"

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/json_table.h"
#include "evidence/evidence.h"
#include "evidence/rundir.h"
#include "judge/bind.h"
#include "judge/rule.h"
#include "report/each_node.h"
#include "report/run_id.h"

/* The frozen files agree with each other: the plan is one of this report, and the lock is the plan's. */

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
    struct extras beside = recipe->beside;
    if (plan->data.folder.ptr && str_eq_z(step->beside.why_not, PLAN_DATA_WHY_NOT)) {
        beside.why_not = step->beside.why_not;
    }
    return same(step->format, recipe->rule.ptr ? rule_id_format(rule) : c->format) &&
           same(step->rule, rule) && extras_is_same(&step->beside, &beside);
}

/* Conditions whose value in the plan may differ from the report: where, how many, on what data. */
static bool is_placed(const struct plan *plan, struct str name)
{
    static const char *const SMOKE[] = {"gpus", "global_batch", "nodes", "device", NULL};
    static const char *const DATA[] = {"dataset", "dataset_images", NULL};
    return str_eq_z(name, "image") || (plan->profile == PROFILE_SMOKE && str_eq_any(name, SMOKE)) ||
           (plan->data.folder.ptr && str_eq_any(name, DATA));
}

/* Each condition of one step is the other's, but that a plan may have others for where it is run, and on what. */
static bool has_all(const struct plan *plan, const struct plan_step *step,
                    const struct plan_step *of, bool is_of_plan)
{
    for (size_t idx = 0; idx < of->n_conditions; idx++) {
        const struct condition *wanted = &of->conditions[idx];
        const struct condition *said =
            STR_NAMED(step->conditions, step->n_conditions, name, wanted->name);
        bool is_free = is_placed(plan, wanted->name);
        if (said ? !is_free && !same(said->value, wanted->value) : !is_free || !is_of_plan) {
            return false;
        }
    }
    return true;
}

/* Its conditions are those that a plan makes of the case and the recipe. */
static bool is_under(const struct frozen *frozen, const struct plan_step *step,
                     const struct report_case *c, const struct recipe *recipe)
{
    const struct plan *plan = &frozen->plan;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct plan_step wanted = {.bound.of_case = c, .n_ranks = step->n_ranks};
    plan_case_conditions(&arena, c, &wanted);
    plan_recipe_conditions(&arena, plan, &frozen->inventory, recipe, &wanted);
    if (plan->asked_steps.ptr && plan_step_steps(step).ptr) {
        plan_set_condition(
            &wanted, "iterations",
            str_printf(&arena, "%lld", (long long)plan_asked_steps(plan->asked_steps, c)));
    }
    return has_all(plan, step, &wanted, false) && has_all(plan, &wanted, step, true);
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

#define MACHINE_CONDITIONS_MAX 64
#define PROGRAMS_MAX           16
#define FILES_MAX              100000
#define FORMATS                "manifest/formats"

/* The document of that name below the folder. */
static int read_part(struct arena *arena, const struct frozen *frozen, const char *name,
                     struct json_doc *doc, struct err *err)
{
    if (json_read_file(fs_join(arena, frozen->folder, name), doc, err) < 0) {
        return -1;
    }
    doc->root.context = frozen->vocabulary;
    return 0;
}

static bool has_part(struct arena *arena, const struct frozen *frozen, const char *name)
{
    return fs_exists(fs_join(arena, frozen->folder, name));
}

#define NAME_OF(kind) RUNDIR_FILES[RUNDIR_##kind].name

static int load_vocabulary(struct arena *arena, struct frozen *frozen, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (!has_part(arena, frozen, NAME_OF(VOCABULARY))) {
        frozen->vocabulary = vocabulary_builtin(arena);
        return 0;
    }
    return read_part(arena, frozen, NAME_OF(VOCABULARY), &doc, err) < 0
               ? -1
               : vocabulary_decode(&doc.root, arena, &frozen->vocabulary, err);
}

static int load_report(struct arena *arena, struct frozen *frozen, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *path = fs_join(arena, frozen->folder, NAME_OF(REPORT));
    struct str text;
    if (fs_read(arena, path, JSON_TEXT_MAX, &text, err) < 0) {
        return -1;
    }
    frozen->report_sha256 = digest_text_hex(arena, text);
    if (json_parse(text, path, &doc, err) < 0) {
        return -1;
    }
    doc.root.context = frozen->vocabulary;
    if (report_decode(&doc.root, arena, &frozen->report, err) < 0) {
        return -1;
    }
    frozen->report.path = str_of(path);
    return 0;
}

static int load_plan(struct arena *arena, struct frozen *frozen, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (read_part(arena, frozen, NAME_OF(PLAN), &doc, err) < 0 ||
        plan_decode(&doc.root, arena, &frozen->plan, err) < 0) {
        return -1;
    }
    if (!str_eq(frozen->plan.report_sha256, frozen->report_sha256)) {
        return err_set(err, ERR_INTEGRITY,
                       "%s/manifest/report.json: expected SHA-256 %.*s (plan.json), found %.*s",
                       frozen->folder, STR_ARG(frozen->plan.report_sha256),
                       STR_ARG(frozen->report_sha256));
    }
    return 0;
}

/* A run on this machine only freezes no inventory. */
static int load_inventory(struct arena *arena, struct frozen *frozen, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (!has_part(arena, frozen, NAME_OF(INVENTORY))) {
        frozen->inventory = inventory_local(arena);
        return 0;
    }
    return read_part(arena, frozen, NAME_OF(INVENTORY), &doc, err) < 0
               ? -1
               : inventory_decode(&doc.root, arena, &frozen->inventory, err);
}

static int load_formats_below(struct arena *arena, struct frozen *frozen, struct err *err)
{
    const char *folder = fs_join(arena, frozen->folder, FORMATS);
    struct fs_names names = {0};
    if (fs_exists(folder) && fs_list(arena, folder, &names, err) < 0) {
        return -1;
    }
    if (names.n > FORMATS_MAX) {
        return err_set(err, ERR_MANIFEST, "%s: more than %d formats", folder, FORMATS_MAX);
    }
    frozen->formats.items = arena_array(arena, struct format *, names.n + 1);
    for (size_t idx = 0; idx < names.n; idx++) {
        CLEANUP(json_doc) struct json_doc doc = {0};
        if (read_part(arena, frozen, fs_join(arena, FORMATS, names.items[idx]), &doc, err) < 0 ||
            format_read(&doc.root, arena, &frozen->formats.items[frozen->formats.n], err) < 0) {
            return -1;
        }
        frozen->formats.n++;
    }
    return 0;
}

int frozen_load_files(struct arena *arena, struct frozen *frozen, struct err *err)
{
    struct fs_names names;
    if (fs_walk(arena, fs_join(arena, frozen->folder, "manifest"), &names, err) < 0) {
        return -1;
    }
    frozen->files = arena_array(arena, struct frozen_digest, names.n + 1);
    for (frozen->n_files = 0; frozen->n_files <= names.n; frozen->n_files++) {
        struct frozen_digest *file = &frozen->files[frozen->n_files];
        file->name = frozen->n_files == names.n
                         ? str_of(NAME_OF(LOCAL))
                         : str_of(fs_join(arena, "manifest", names.items[frozen->n_files]));
        if (digest_file_hex(arena, fs_join(arena, frozen->folder, file->name.ptr), &file->sha256,
                            err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- lock ---- */

static const struct json_field STACK_SOURCE_ROWS[] = {
    ROW("repository", struct source_ref, repository, 0),
    ROW("commit", struct source_ref, commit, 0),
};
static const struct json_field STACK_ROWS[] = {
    ROW_LIST("sources", struct stack, sources, n_sources, STACK_SOURCE_ROWS, 0),
};

/* Those that a step runs. image_digest is null under runtime none: the programs above are what ran. */
static void put_stacks(struct json_out *out, const char *key, const void *of)
{
    const struct frozen *frozen = of;
    jw_array(out, key);
    for (size_t idx = 0; idx < frozen->report.n_stacks; idx++) {
        const struct stack *stack = &frozen->report.stacks[idx];
        struct str digest = STR_EMPTY;
        bool is_run = false;
        for (size_t at = 0; at < frozen->plan.n_steps; at++) {
            const struct plan_step *step = &frozen->plan.steps[at];
            bool is_of = step->bound.of_case && step->bound.of_case->stack == stack;
            is_run = is_run || (is_of && step->cause == ERR_NONE);
            digest = is_of && !digest.ptr ? step->image_digest : digest;
        }
        if (is_run) {
            jw_object(out, NULL);
            jw_str(out, "stack", stack->id);
            jw_str(out, "image_digest", digest);
            json_encode(out, STACK_ROWS, ARRAY_LEN(STACK_ROWS), stack);
            jw_end_object(out);
        }
    }
    jw_end_array(out);
}

static void put_nothing(struct json_out *out UNUSED, const char *key UNUSED, const void *of UNUSED)
{
}

static const struct json_field DIGEST_ROWS[] = {
    ROW("name", struct frozen_digest, name, JSON_REQUIRED),
    ROW("sha256", struct frozen_digest, sha256, JSON_REQUIRED),
};
static const struct json_field LOCK_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("run_id", struct frozen, run_id, JSON_REQUIRED),
    ROW("program_version", struct frozen, version, 0),
    ROW_WORD("runtime", struct frozen, plan.runtime, RUNTIME_KIND_NAMES, JSON_UNREAD),
    ROW_LIST("programs", struct frozen, programs, n_programs, DIGEST_ROWS, JSON_REQUIRED,
             .max = PROGRAMS_MAX),
    ROW_LIST("files", struct frozen, locked, n_locked, DIGEST_ROWS, 0, .max = FILES_MAX),
    ROW_OUT("stacks", JSON_ANY, put_stacks, 0),
    ROW_HERE(struct frozen, plan, PLAN_DATA_ROWS),
    ROW_OUT("derivation", JSON_ANY, put_nothing, 0), /* of earlier programs; it means nothing */
};

void frozen_encode_lock(const struct frozen *frozen, struct strbuf *buf)
{
    struct frozen lock = *frozen;
    lock.version = frozen->version.ptr ? frozen->version : STR_LIT(REPERF_VERSION);
    lock.locked = frozen->files;
    lock.n_locked = frozen->n_files;
    json_encode_document(buf, LOCK_ROWS, ARRAY_LEN(LOCK_ROWS), &lock);
}

static int load_lock(struct arena *arena, struct frozen *frozen, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct frozen lock = {.folder = NULL}; /* what is read of it */
    if (read_part(arena, frozen, NAME_OF(LOCK), &doc, err) < 0 ||
        json_decode(&doc.root, arena, LOCK_ROWS, ARRAY_LEN(LOCK_ROWS), &lock, err) < 0) {
        return -1;
    }
    if (!run_id_is_valid(lock.run_id)) {
        return json_fail(&doc.root, err, "run_id: expected a run id, found \"%.*s\"",
                         STR_ARG(lock.run_id));
    }
    frozen->run_id = lock.run_id;
    frozen->version = lock.version;
    frozen->programs = lock.programs;
    frozen->n_programs = lock.n_programs;
    frozen->locked = lock.locked;
    frozen->n_locked = lock.n_locked;
    return lock.version.ptr ? evidence_version_check(lock.version, NAME_OF(LOCK), err) : 0;
}

/* Those of the machine that measured: this one, or the first node that was examined. */
static const char *machine_path(struct arena *arena, const struct frozen *frozen)
{
    for (size_t idx = 0; !frozen->inventory.is_local && idx < frozen->inventory.n_nodes; idx++) {
        const struct rundir_of of = {.name = frozen->inventory.nodes[idx].name};
        const char *path = fs_join(arena, frozen->folder, rundir_name(arena, RUNDIR_NODE, of));
        if (fs_exists(path)) {
            return path;
        }
    }
    return fs_join(arena, frozen->folder, NAME_OF(LOCAL));
}

int frozen_load_machine(struct arena *arena, struct frozen *frozen, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json list;
    struct json item;
    if (json_read_file(machine_path(arena, frozen), &doc, err) < 0 ||
        json_member(&doc.root, "conditions", &list, err) < 0) {
        return -1;
    }
    frozen->n_machine = 0;
    frozen->machine = arena_array(arena, struct condition, MACHINE_CONDITIONS_MAX);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (frozen->n_machine == MACHINE_CONDITIONS_MAX) {
            return json_fail(&list, err, "expected at most %d conditions", MACHINE_CONDITIONS_MAX);
        }
        struct condition *c = &frozen->machine[frozen->n_machine++];
        c->name = str_dup(arena, str_of(item.key));
        if (!json_is_null(&item) && json_str(&item, arena, &c->value, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The report's cases as the plan was made of them. */
static int expand(struct arena *arena, struct frozen *frozen, struct err *err)
{
    struct str left_out;
    return frozen->plan.is_each_node
               ? report_each_node(arena, &frozen->inventory, &frozen->report, &left_out, err)
               : 0;
}

int frozen_load(struct arena *arena, const char *folder, struct frozen *ret_frozen, struct err *err)
{
    struct frozen frozen = {.folder = folder};
    if (load_vocabulary(arena, &frozen, err) < 0 || load_report(arena, &frozen, err) < 0 ||
        load_plan(arena, &frozen, err) < 0 || load_inventory(arena, &frozen, err) < 0 ||
        expand(arena, &frozen, err) < 0 || load_lock(arena, &frozen, err) < 0 ||
        frozen_load_files(arena, &frozen, err) < 0 ||
        frozen_load_machine(arena, &frozen, err) < 0 ||
        load_formats_below(arena, &frozen, err) < 0) {
        frozen_release(&frozen);
        return -1;
    }
    bind_plan(arena, &frozen.report, &frozen.formats, &frozen.plan);
    *ret_frozen = frozen;
    return 0;
}

void frozen_release(struct frozen *frozen)
{
    for (size_t idx = 0; idx < frozen->formats.n; idx++) {
        format_release(frozen->formats.items[idx]);
    }
    frozen->formats = (struct format_set){0};
}
