/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/plan.h"

#include "codec/json_table.h"

#include <fnmatch.h>

#define SMOKE_NODE_RANKS_MAX 2 /* so that a report's 1, 8 and 32 GPUs become 1, 2 and 4 ranks */
#define DISK_SLACK_BYTES     (16 << 20) /* environment, results, the archive's own parts */

const char *const PROFILE_NAMES[] = {[PROFILE_FULL] = "full", [PROFILE_SMOKE] = "smoke"};

const char *plan_kind_name(enum profile profile, bool is_rehearsal)
{
    return is_rehearsal ? "rehearsal" : PROFILE_NAMES[profile];
}

bool plan_claims_none(const struct plan *plan)
{
    return plan->profile == PROFILE_SMOKE || plan->is_rehearsal;
}

int profile_of_option(const char *given, enum profile *ret_profile, struct err *err)
{
    for (size_t idx = 0; given && idx < ARRAY_LEN(PROFILE_NAMES); idx++) {
        if (strcmp(given, PROFILE_NAMES[idx]) == 0) {
            *ret_profile = (enum profile)idx;
            return 0;
        }
    }
    return given ? err_set(err, ERR_USAGE, "--profile %.60s: expected full or smoke", given) : 0;
}

int64_t plan_most_repeats(const struct plan *plan)
{
    return plan->repeats_max ? plan->repeats_max : plan->repeats;
}

int64_t plan_disk_bytes(const struct plan *plan)
{
    int64_t bytes = DISK_SLACK_BYTES;
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        if (plan->steps[idx].cause == ERR_NONE) {
            bytes += 2 * plan_most_repeats(plan) * plan->steps[idx].log_bytes;
        }
    }
    return bytes;
}

size_t plan_runnable(const struct plan *plan)
{
    size_t n = 0;
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        n += plan->steps[idx].cause == ERR_NONE;
    }
    return n;
}

bool plan_selects(const struct str *globs, size_t n_globs, struct str case_id)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *id = str_z(&arena, case_id);
    for (size_t idx = 0; idx < n_globs; idx++) {
        if (fnmatch(str_z(&arena, globs[idx]), id, 0) == 0) {
            return true;
        }
    }
    return n_globs == 0;
}

struct str plan_idle_glob(const struct str *globs, size_t n_globs, const struct str *ids,
                          size_t n_ids)
{
    for (size_t glob = 0; glob < n_globs; glob++) {
        size_t idx = 0;
        while (idx < n_ids && !plan_selects(&globs[glob], 1, ids[idx])) {
            idx++;
        }
        if (idx == n_ids) {
            return globs[glob];
        }
    }
    return STR_EMPTY;
}

bool plan_case_id_is_safe(struct str case_id)
{
    struct str rest = case_id;
    struct str part = STR_EMPTY;
    bool is_safe = case_id.len && case_id.ptr[case_id.len - 1] != '/';
    while (is_safe && str_next(&rest, '/', &part)) {
        is_safe = part.len && !str_eq_z(part, ".") && !str_eq_z(part, "..") &&
                  str_is_made_of(part, "a-zA-Z0-9._+-");
    }
    return is_safe;
}

/* ---- data ---- */

char *plan_data_name(struct arena *arena, const struct plan_data *data)
{
    return arena_printf(arena, "%s%s", data->is_synthetic ? "synthetic twin of " : "",
                        data->dataset.ptr);
}

/* The condition "dataset" of a rehearsal by a recipe: "synthetic twin of cityscapes"; NULL: the recipe has no dataset. */
static struct str rehearsed_data(struct arena *arena, const struct recipe *recipe)
{
    const char *names = NULL;
    for (size_t idx = 0; idx < recipe->n_mounts; idx++) {
        const struct recipe_mount *mount = &recipe->mounts[idx];
        if (mount->kind == MOUNT_DATASET && !mount->is_original) {
            names = names ? arena_printf(arena, "%s, %.*s", names, STR_ARG(mount->name))
                          : arena_printf(arena, "synthetic twin of %.*s", STR_ARG(mount->name));
        }
    }
    return names ? str_of(names) : STR_EMPTY;
}

/* ---- where a step runs ---- */

int64_t plan_step_nodes(const struct plan_step *step)
{
    return step->n_nodes > 0 ? step->n_nodes : 1;
}

void plan_step_command(const struct plan_step *step, struct strbuf *out)
{
    for (size_t idx = 0; idx < step->n_env; idx++) {
        strbuf_printf(out, " %.*s=", STR_ARG(step->env[idx].name));
        shq_append(out, step->env[idx].value);
    }
    for (size_t idx = 0; idx < step->n_argv; idx++) {
        strbuf_add_char(out, ' ');
        shq_append(out, step->argv[idx]);
    }
}

int64_t plan_step_deadline_s(const struct plan *plan, const struct plan_step *step)
{
    return step->deadline_s ? step->deadline_s : plan->deadline_s;
}

void plan_set_condition(struct plan_step *step, const char *name, struct str value)
{
    struct condition *known = STR_NAMED(step->conditions, step->n_conditions, name, str_of(name));
    if (!known) {
        ASSERT(step->n_conditions < PLAN_CONDITIONS_MAX);
        known = &step->conditions[step->n_conditions++];
    }
    *known = (struct condition){str_of(name), value};
}

int64_t plan_condition_number(const struct plan_step *step, const char *name)
{
    int64_t value = 0;
    const struct condition *said =
        STR_NAMED(step->conditions, step->n_conditions, name, str_of(name));
    return said && str_to_i64(said->value, 1, 1LL << 40, &value, ERR_IGNORED) == 0 ? value : 0;
}

static void set_conditions(struct plan_step *step, const struct conditions *list)
{
    for (size_t idx = 0; idx < list->n; idx++) {
        plan_set_condition(step, list->items[idx].name.ptr, list->items[idx].value);
    }
}

static void set_number(struct arena *arena, struct plan_step *step, const char *name, int64_t value)
{
    plan_set_condition(step, name, str_printf(arena, "%lld", (long long)value));
}

void plan_case_conditions(struct arena *arena, const struct report_case *c, struct plan_step *step)
{
    step->conditions = arena_array(arena, struct condition, PLAN_CONDITIONS_MAX);
    set_conditions(step, &c->stack->conditions);
    set_conditions(step, &c->conditions);
    plan_set_condition(step, "framework", c->framework);
    plan_set_condition(step, "precision", c->precision);
    set_number(arena, step, "nodes", c->nodes);
    set_number(arena, step, "gpus", c->gpus);
    set_number(arena, step, "batch_per_gpu", c->batch_per_gpu);
}

void plan_recipe_conditions(struct arena *arena, const struct plan *plan,
                            const struct inventory *inventory, const struct recipe *recipe,
                            struct plan_step *step)
{
    bool is_smoke = plan->profile == PROFILE_SMOKE;
    bool is_on_cpu = is_smoke || step->bound.of_case->gpus == 0;
    struct str rehearsed = plan->is_rehearsal ? rehearsed_data(arena, recipe) : STR_EMPTY;
    plan_set_condition(step, "device", is_on_cpu ? STR_LIT("cpu") : STR_LIT("gpu"));
    set_conditions(step, &recipe->conditions);
    if (is_smoke) {
        int64_t parts = plan_condition_number(step, "grad_accumulation");
        int64_t batch = plan_condition_number(step, "batch_per_gpu") * (parts ? parts : 1);
        plan_set_condition(step, "gpus", STR_LIT("0"));
        set_number(arena, step, "global_batch", batch * step->n_ranks);
    }
    for (size_t idx = 0; idx < SITE_CONDITIONS_N; idx++) {
        struct str value = inventory_condition(arena, inventory, SITE_CONDITIONS[idx]);
        if (value.ptr) {
            plan_set_condition(step, SITE_CONDITIONS[idx], value);
        }
    }
    if (rehearsed.ptr) { /* it needs no login and has the original's layout */
        plan_set_condition(step, "dataset", rehearsed);
    }
}

int64_t plan_asked_steps(struct str asked, const struct report_case *c)
{
    int64_t n = 0;
    return str_eq_z(asked, PLAN_STEPS_AS_LOGGED)                   ? c->logged_steps
           : str_to_i64(asked, 1, INT32_MAX, &n, ERR_IGNORED) == 0 ? n
                                                                   : 0;
}

struct str plan_step_steps(const struct plan_step *step)
{
    return condition_value(step->env, step->n_env, str_of(PLAN_STEPS_ENV));
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t plan_smoke_ranks(const struct report_case *c)
{
    int64_t n_nodes = min_of(c->nodes, SMOKE_RANKS_MAX);
    int64_t per_node =
        min_of(c->gpus_per_node, min_of(SMOKE_NODE_RANKS_MAX, SMOKE_RANKS_MAX / n_nodes));
    return n_nodes * (per_node > 0 ? per_node : 1);
}

int64_t plan_full_ranks(const struct report_case *c)
{
    return c->gpus > 0 ? c->gpus : c->nodes;
}

bool plan_step_fits(const struct plan_step *step, const struct inventory_node *node)
{
    const struct report_case *c = step->bound.of_case;
    return node->gpus >= step->gpus_per_node &&
           (!c || !c->n_on || str_is_in(node->name, c->on, c->n_on));
}

/* ---- as JSON ---- */

#define BYTES_MAX (1LL << 50)

static const struct json_form INSIDE = {.pattern = CONTAINER_PATH,
                                        .what = "an absolute path inside"};
static const struct json_form CASE_ID = {.pattern =
                                             "^[^/]+/[^/]+/[^/]+/n[0-9]+g[0-9]+/bs[0-9]+(/[^/]+)*$",
                                         .is_valid = plan_case_id_is_safe,
                                         .what = "a case id"};

const char *const NEED_STATE_NAMES[] = {"absent", "partial", "ready"};

static const struct json_field DATA_ROWS[] = {
    ROW("dataset", struct plan_data, dataset, JSON_REQUIRED),
    ROW("synthetic", struct plan_data, is_synthetic, JSON_REQUIRED),
    ROW("split", struct plan_data, split, JSON_REQUIRED),
    ROW("folder", struct plan_data, folder, JSON_REQUIRED),
    ROW("pack_sha256", struct plan_data, pack_sha256, JSON_REQUIRED, .form = &JSON_SHA256),
    ROW("source_sha256", struct plan_data, source_sha256, JSON_REQUIRED, .form = &JSON_SHA256),
    ROW("n_samples", struct plan_data, n_samples, JSON_REQUIRED, .min = 1),
};
/* Absent in the plans of runs before there was --data. */
const struct json_field PLAN_DATA_ROWS[1] = {
    ROW_OBJECT("data", struct plan, data, DATA_ROWS, JSON_NULLABLE)};

static const struct json_field IMAGE_ROWS[] = {
    ROW("id", struct plan_step, image, JSON_REQUIRED),
    ROW("name", struct plan_step, image_name, JSON_REQUIRED),
    ROW("digest", struct plan_step, image_digest, JSON_REQUIRED | JSON_NULLABLE,
        .form = &JSON_IMAGE_DIGEST),
    ROW("config", struct plan_step, image_id, JSON_REQUIRED | JSON_NULLABLE,
        .form = &JSON_IMAGE_DIGEST),
    ROW_OBJECT("flags", struct plan_step, flags, CONTAINER_FLAGS_ROWS, JSON_REQUIRED),
};
static const struct json_field PART_ROWS[] = {
    ROW("tree", struct plan_part, tree, JSON_REQUIRED, .form = &JSON_COMMIT),
    ROW("files", struct plan_part, n_files, JSON_REQUIRED, .min = 1, .max = INT32_MAX),
    ROW("left_out", struct plan_part, n_left_out, JSON_REQUIRED, .max = INT32_MAX),
};
static const struct json_field MOUNT_ROWS[] = {
    ROW_WORD("kind", struct plan_mount, kind, RECIPE_MOUNT_KIND_NAMES, JSON_REQUIRED),
    ROW("name", struct plan_mount, name, JSON_REQUIRED),
    ROW("version", struct plan_mount, version, JSON_REQUIRED | JSON_NULLABLE),
    ROW("folder", struct plan_mount, folder, JSON_REQUIRED | JSON_NULLABLE),
    ROW("inside", struct plan_mount, inside, JSON_REQUIRED, .form = &INSIDE),
    ROW_OBJECT("part", struct plan_mount, part, PART_ROWS, JSON_OMIT),
};
static const struct json_field STEP_NEED_ROWS[] = {
    ROW_WORD("cause", struct step_need, cause, ERR_CODE_NAMES, JSON_REQUIRED),
    ROW("what", struct step_need, what, JSON_REQUIRED),
    ROW("command", struct step_need, command, JSON_REQUIRED | JSON_NULLABLE),
};

static const char *const STARTS[] = {"rank", "node"};

static void put_nodes(struct json_out *out, const char *key, const void *of)
{
    jw_i64(out, key, plan_step_nodes(of));
}

/* nodes to needs are absent in the plans of runs before there was such a thing. */
static const struct json_field STEP_ROWS[] = {
    ROW("case", struct plan_step, case_id, JSON_REQUIRED, .form = &CASE_ID),
    ROW("baseline", struct plan_step, baseline, JSON_REQUIRED | JSON_NULLABLE),
    ROW("format", struct plan_step, format, JSON_REQUIRED | JSON_NULLABLE),
    ROW("rule", struct plan_step, rule, JSON_REQUIRED | JSON_NULLABLE),
    ROW_HERE(struct plan_step, beside, EXTRAS_ROWS),
    ROW("node", struct plan_step, node, JSON_REQUIRED),
    ROW_WORD("cause", struct plan_step, cause, ERR_CODE_NAMES, JSON_REQUIRED | JSON_NULLABLE),
    ROW("why", struct plan_step, why, JSON_REQUIRED | JSON_NULLABLE),
    ROW_STRS("argv", struct plan_step, argv, n_argv, JSON_REQUIRED, .max = PLAN_ARGV_MAX),
    ROW_PAIRS("env", struct plan_step, env, n_env, JSON_REQUIRED, .max = PLAN_ENV_MAX),
    ROW_PAIRS("conditions", struct plan_step, conditions, n_conditions,
              JSON_REQUIRED | JSON_NULLABLE, .max = PLAN_CONDITIONS_MAX),
    ROW("recipe", struct plan_step, recipe, JSON_NULLABLE),
    ROW("ranks", struct plan_step, n_ranks, JSON_REQUIRED, .max = INT32_MAX),
    ROW("nodes", struct plan_step, n_nodes, 0, .put = put_nodes, .min = 1,
        .max = INVENTORY_NODES_MAX),
    ROW("gpus_per_node", struct plan_step, gpus_per_node, 0, .max = INT32_MAX),
    ROW_INSIDE("image", IMAGE_ROWS, JSON_NULLABLE, .about = "null: runs in none"),
    ROW_WORD("starts", struct plan_step, is_per_node, STARTS, 0),
    ROW_LIST("mounts", struct plan_step, mounts, n_mounts, MOUNT_ROWS, 0, .max = RECIPE_MOUNTS_MAX),
    ROW_LIST("needs", struct plan_step, needs, n_needs, STEP_NEED_ROWS, 0, .max = STEP_NEEDS_MAX),
    ROW("steps", struct plan_step, n_steps, JSON_REQUIRED, .max = BYTES_MAX),
    ROW("estimate_s", struct plan_step, estimate_s, JSON_OMIT, .max = BYTES_MAX,
        .about = "of one repeat, by the published rate; absent: not known"),
    ROW("deadline_s", struct plan_step, deadline_s, JSON_OMIT, .max = DEADLINE_S_MAX,
        .about = "of one repeat; absent: the plan's"),
    ROW("memory_bytes", struct plan_step, memory_bytes, JSON_REQUIRED, .max = BYTES_MAX),
    ROW("log_bytes", struct plan_step, log_bytes, JSON_REQUIRED, .max = BYTES_MAX),
};

/* What is said about a step that is to be run, and about another. */
#define STEP_RULES                                                                                 \
    "\"if\": {\"properties\": {\"cause\": {\"type\": \"null\"}}}, \"then\": {\"properties\": "     \
    "{\"argv\": {\"minItems\": 1}, \"why\": {\"type\": \"null\"}}}, \"else\": {\"properties\": "   \
    "{\"why\": {\"type\": \"string\"}}}"

static int check_step(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    struct plan_step *step = out;
    struct json starts;
    if (step->cause == ERR_NONE && step->n_argv == 0) {
        return json_fail(at, err, "expected an argv, as the step is to be run");
    }
    if (!json_find(at, "starts", &starts)) { /* a shell command starts its node's ranks */
        step->is_per_node =
            step->n_argv > 1 && str_eq_z(step->argv[0], "/bin/sh") && str_eq_z(step->argv[1], "-c");
    }
    return 0;
}

static const struct json_field PIN_ROWS[] = {
    ROW("stack", struct missing_pin, stack, JSON_REQUIRED),
    ROW("what", struct missing_pin, what, JSON_REQUIRED),
};
static const struct json_field NEED_ROWS[] = {
    ROW("kind", struct plan_need, kind, JSON_REQUIRED,
        .schema = "\"enum\": [\"dataset\", \"image\", \"source\"]"),
    ROW("name", struct plan_need, name, JSON_REQUIRED),
    ROW_WORD("state", struct plan_need, state, NEED_STATE_NAMES, JSON_REQUIRED),
    ROW("download_bytes", struct plan_need, download_bytes,
        JSON_REQUIRED | JSON_NULLABLE | JSON_MINUS),
    ROW("disk_bytes", struct plan_need, disk_bytes, JSON_REQUIRED | JSON_NULLABLE | JSON_MINUS),
    ROW("unpinned_files", struct plan_need, n_unpinned, JSON_REQUIRED),
    ROW("login", struct plan_need, needs_login, JSON_REQUIRED),
};
static const struct json_field OVERRIDE_ROWS[] = {
    ROW("path", struct json_override, path, JSON_REQUIRED, .form = &JSON_FILLED),
    ROW("was", struct json_override, was, JSON_REQUIRED | JSON_NULLABLE),
    ROW("value", struct json_override, value, JSON_REQUIRED, .form = &JSON_FILLED),
};

static void put_disk_bytes(struct json_out *out, const char *key, const void *of)
{
    jw_i64(out, key, plan_disk_bytes(of));
}

const struct json_field PLAN_ROWS[PLAN_N] = {
    ROW_NUMBER("schema_version", 1),
    ROW("report", struct plan, report, JSON_REQUIRED),
    ROW("address", struct plan, address, JSON_OMIT,
        .about = "of a report that was named by its address: its commit, or the folder's digest"),
    ROW("report_sha256", struct plan, report_sha256, JSON_REQUIRED, .form = &JSON_SHA256),
    ROW_WORD("profile", struct plan, profile, PROFILE_NAMES, JSON_REQUIRED),
    ROW("rehearsal", struct plan, is_rehearsal, JSON_OMIT,
        .about =
            "the full profile on synthetic twins of its data: no number of it is compared with "
            "a published one; absent: it is none"),
    ROW("each_node", struct plan, is_each_node, JSON_OMIT,
        .about = "each case is fixed to one node, or to a pair of neighbours; absent: it is not"),
    ROW("repeats", struct plan, repeats, JSON_REQUIRED, .min = 1, .max = REPEATS_RUN_MAX),
    ROW("repeats_max", struct plan, repeats_max, JSON_OMIT, .max = REPEATS_RUN_MAX,
        .about = "until the interval is as narrow as `within` says; absent: `repeats` is all"),
    ROW("within", struct plan, within, JSON_OMIT, .max = 1,
        .about = "half the 95 % interval of a case's mean, as a part of it"),
    ROW("tolerance", struct plan, tolerance, JSON_OMIT, .max = 1,
        .about = "how far from the published number, as a part of it, is reproduced; absent: 0.05"),
    ROW("takes_turns", struct plan, takes_turns, JSON_OMIT),
    ROW("deadline_s", struct plan, deadline_s, JSON_REQUIRED, .min = 1, .max = DEADLINE_S_MAX),
    ROW("asked_steps", struct plan, asked_steps, JSON_OMIT,
        .schema = "\"pattern\": \"^(as-logged|[1-9][0-9]*)$\"",
        .about = "--steps; absent: as the report says"),
    ROW("inventory", struct plan, inventory, JSON_REQUIRED),
    ROW_WORD("runtime", struct plan, runtime, RUNTIME_KIND_NAMES, 0),
    ROW_WORD("launcher", struct plan, launcher, LAUNCHER_KIND_NAMES, 0),
    ROW_OUT("disk_bytes", JSON_I64, put_disk_bytes, JSON_REQUIRED),
    ROW_STRS("globs", struct plan, globs, n_globs, JSON_REQUIRED, .max = PLAN_GLOBS_MAX),
    ROW_LIST("steps", struct plan, steps, n_steps, STEP_ROWS, JSON_REQUIRED, .min = 1,
             .max = PLAN_STEPS_MAX, .check = check_step, .rules = STEP_RULES),
    ROW_LIST("missing_pins", struct plan, pins, n_pins, PIN_ROWS, JSON_REQUIRED,
             .max = PLAN_PINS_MAX),
    ROW_HERE(struct plan, report, PLAN_DATA_ROWS), /* offset 0 */
    /* The state of the store then. */
    ROW_LIST("needs", struct plan, needs, n_needs, NEED_ROWS, JSON_UNREAD),
    ROW_LIST("overrides", struct plan, overrides, n_overrides, OVERRIDE_ROWS, JSON_OMIT,
             .max = PLAN_OVERRIDES_MAX),
};
const struct json_document PLAN_DOCUMENT = {
    JSON_DOCUMENT("plan.json", "reperf plan --json, manifest/plan.json of a run", PLAN_ROWS)};

void plan_encode(const struct plan *plan, struct strbuf *buf)
{
    json_encode_document(buf, PLAN_ROWS, PLAN_N, plan);
}

int plan_decode(const struct json *root, struct arena *arena, struct plan *ret_plan,
                struct err *err)
{
    struct plan plan = {0};
    if (json_decode(root, arena, PLAN_ROWS, PLAN_N, &plan, err) < 0) {
        return -1;
    }
    if (plan.is_rehearsal && plan.profile != PROFILE_FULL) {
        return json_fail(root, err, "a rehearsal needs profile full, found \"%s\"",
                         PROFILE_NAMES[plan.profile]);
    }
    if (plan.repeats_max && (plan.repeats_max < plan.repeats || !(plan.within > 0))) {
        return json_fail(root, err, "repeats_max: expected at least repeats, and within");
    }
    *ret_plan = plan;
    return 0;
}
