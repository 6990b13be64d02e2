/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/plan.h"

#include <fnmatch.h>

#define STARTS_NODE          "node"
#define STARTS_RANK          "rank"
#define SMOKE_NODE_RANKS_MAX 2 /* so that a report's 1, 8 and 32 GPUs become 1, 2 and 4 ranks */
#define DISK_SLACK_BYTES     (16 << 20) /* environment, results, the archive's own parts */

static const char *const PROFILE_NAMES[] = {[PROFILE_FULL] = "full", [PROFILE_SMOKE] = "smoke"};

const char *profile_name(enum profile profile)
{
    return PROFILE_NAMES[profile];
}

const char *plan_kind_name(enum profile profile, bool is_rehearsal)
{
    return is_rehearsal ? "rehearsal" : profile_name(profile);
}

bool profile_of_name(struct str name, enum profile *ret_profile)
{
    for (size_t idx = 0; idx < ARRAY_LEN(PROFILE_NAMES); idx++) {
        if (str_eq_z(name, PROFILE_NAMES[idx])) {
            *ret_profile = (enum profile)idx;
            return true;
        }
    }
    return false;
}

static bool cause_of_name(struct str name, enum err_code *ret_code)
{
    for (int code = ERR_NONE + 1; code < ERR_CODE_COUNT; code++) {
        if (str_eq_z(name, err_code_name((enum err_code)code))) {
            *ret_code = (enum err_code)code;
            return true;
        }
    }
    return false;
}

int64_t plan_disk_bytes(const struct plan *plan)
{
    int64_t bytes = DISK_SLACK_BYTES;
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        if (plan->steps[idx].cause == ERR_NONE) {
            bytes += 2 * plan->repeats * plan->steps[idx].log_bytes;
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

bool plan_case_id_is_safe(struct str case_id)
{
    static const char ALLOWED[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
    struct str rest = case_id;
    struct str part = STR_EMPTY;
    if (!case_id.len || case_id.ptr[case_id.len - 1] == '/') {
        return false;
    }
    while (str_next(&rest, '/', &part)) {
        if (!part.len || str_eq_z(part, ".") || str_eq_z(part, "..")) {
            return false;
        }
        for (size_t idx = 0; idx < part.len; idx++) {
            if (!memchr(ALLOWED, part.ptr[idx], sizeof(ALLOWED) - 1)) {
                return false;
            }
        }
    }
    return true;
}

/* ---- encode ---- */

char *plan_data_name(struct arena *arena, const struct plan_data *data)
{
    return arena_printf(arena, "%s%s", data->is_synthetic ? "synthetic twin of " : "",
                        data->dataset.ptr);
}

struct str plan_rehearsed_data(struct arena *arena, const struct recipe *recipe)
{
    const char *names = NULL;
    for (size_t idx = 0; idx < recipe->n_mounts; idx++) {
        const struct recipe_mount *mount = &recipe->mounts[idx];
        if (mount->kind == MOUNT_DATASET) {
            names = names ? arena_printf(arena, "%s, %.*s", names, STR_ARG(mount->name))
                          : arena_printf(arena, "synthetic twin of %.*s", STR_ARG(mount->name));
        }
    }
    return names ? str_of(names) : STR_EMPTY;
}

void plan_data_encode(struct json_out *out, const char *key, const struct plan_data *data)
{
    if (!data->folder.ptr) {
        jw_null(out, key);
        return;
    }
    jw_object(out, key);
    jw_str(out, "dataset", data->dataset);
    jw_bool(out, "synthetic", data->is_synthetic);
    jw_str(out, "split", data->split);
    jw_str(out, "folder", data->folder);
    jw_str(out, "pack_sha256", data->pack_sha256);
    jw_str(out, "source_sha256", data->source_sha256);
    jw_i64(out, "n_samples", data->n_samples);
    jw_end_object(out);
}

static void encode_pairs(struct json_out *out, const char *key, const struct condition *items,
                         size_t n)
{
    jw_object(out, key);
    for (size_t idx = 0; idx < n; idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        jw_str(out, str_z(&arena, items[idx].name), items[idx].value);
    }
    jw_end_object(out);
}

/* ---- where a step runs ---- */

int64_t plan_step_nodes(const struct plan_step *step)
{
    return step->n_nodes > 0 ? step->n_nodes : 1;
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

static void encode_image(struct json_out *out, const struct plan_step *step)
{
    if (!step->image.ptr) {
        jw_null(out, "image");
        return;
    }
    jw_object(out, "image");
    jw_str(out, "id", step->image);
    jw_str(out, "name", step->image_name);
    jw_str(out, "digest", step->image_digest);
    jw_str(out, "config", step->image_id);
    container_flags_encode(out, "flags", &step->flags);
    jw_end_object(out);
}

static void encode_mounts(struct json_out *out, const struct plan_step *step)
{
    jw_array(out, "mounts");
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        const struct plan_mount *mount = &step->mounts[idx];
        jw_object(out, NULL);
        jw_z(out, "kind", recipe_mount_kind_name(mount->kind));
        jw_str(out, "name", mount->name);
        jw_str(out, "version", mount->version);
        jw_str(out, "folder", mount->folder);
        jw_str(out, "inside", mount->inside);
        if (mount->part.tree.ptr) {
            jw_object(out, "part");
            jw_str(out, "tree", mount->part.tree);
            jw_i64(out, "files", mount->part.n_files);
            jw_i64(out, "left_out", mount->part.n_left_out);
            jw_end_object(out);
        }
        jw_end_object(out);
    }
    jw_end_array(out);
}

static void encode_step_needs(struct json_out *out, const struct plan_step *step)
{
    jw_array(out, "needs");
    for (size_t idx = 0; idx < step->n_needs; idx++) {
        jw_object(out, NULL);
        jw_z(out, "cause", err_code_name(step->needs[idx].cause));
        jw_str(out, "what", step->needs[idx].what);
        jw_str(out, "command", step->needs[idx].command);
        jw_end_object(out);
    }
    jw_end_array(out);
}

/* The members "nodes", "gpus_per_node", "image", "starts", "mounts" and "needs" of a step; argv comes before. */
static void encode_place(struct json_out *out, const struct plan_step *step)
{
    jw_i64(out, "nodes", plan_step_nodes(step));
    jw_i64(out, "gpus_per_node", step->gpus_per_node);
    encode_image(out, step);
    jw_z(out, "starts", step->is_per_node ? STARTS_NODE : STARTS_RANK);
    encode_mounts(out, step);
    encode_step_needs(out, step);
}

static int decode_image(const struct json *at, struct arena *arena, struct plan_step *step,
                        struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"id", JSON_STR, JSON_REQUIRED, offsetof(struct plan_step, image), 0, 0},
        {"name", JSON_STR, JSON_REQUIRED, offsetof(struct plan_step, image_name), 0, 0},
        {"digest", JSON_STR, JSON_REQUIRED | JSON_NULLABLE,
         offsetof(struct plan_step, image_digest), 0, 0},
        {"config", JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct plan_step, image_id), 0,
         0},
        {"flags", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
    };
    struct json image;
    struct json flags;
    if (!json_find(at, "image", &image) || json_is_null(&image)) {
        return 0;
    }
    if (json_decode(&image, arena, FIELDS, ARRAY_LEN(FIELDS), step, err) < 0 ||
        json_member(&image, "flags", &flags, err) < 0) {
        return -1;
    }
    return container_flags_decode(&flags, arena, &step->flags, err);
}

/* If absent: a shell command starts its node's ranks. */
static int decode_starts(const struct json *at, struct arena *arena, struct plan_step *step,
                         struct err *err)
{
    struct json member;
    struct str starts;
    step->is_per_node =
        step->n_argv > 1 && str_eq_z(step->argv[0], "/bin/sh") && str_eq_z(step->argv[1], "-c");
    if (!json_find(at, "starts", &member)) {
        return 0;
    }
    if (json_str(&member, arena, &starts, err) < 0) {
        return -1;
    }
    step->is_per_node = str_eq_z(starts, STARTS_NODE);
    return step->is_per_node || str_eq_z(starts, STARTS_RANK)
               ? 0
               : json_fail(&member, err, "expected " STARTS_NODE " or " STARTS_RANK);
}

static int decode_part(const struct json *at, struct arena *arena, struct plan_part *ret,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"tree", JSON_STR, JSON_REQUIRED, offsetof(struct plan_part, tree), 0, 0},
        {"files", JSON_I64, JSON_REQUIRED, offsetof(struct plan_part, n_files), 0, INT32_MAX},
        {"left_out", JSON_I64, JSON_REQUIRED, offsetof(struct plan_part, n_left_out), 0, INT32_MAX},
    };
    struct json part;
    return json_find(at, "part", &part)
               ? json_decode(&part, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err)
               : 0;
}

static int decode_mount(const struct json *at, struct arena *arena, struct plan_mount *ret,
                        struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"kind", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"name", JSON_STR, JSON_REQUIRED, offsetof(struct plan_mount, name), 0, 0},
        {"version", JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct plan_mount, version),
         0, 0},
        {"folder", JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct plan_mount, folder), 0,
         0},
        {"inside", JSON_STR, JSON_REQUIRED, offsetof(struct plan_mount, inside), 0, 0},
        {"part", JSON_ANY, 0, 0, 0, 0},
    };
    struct json member;
    struct str kind;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        json_member(at, "kind", &member, err) < 0 || json_str(&member, arena, &kind, err) < 0) {
        return -1;
    }
    if (!recipe_mount_kind_of_name(kind, &ret->kind) || !container_is_path(ret->inside)) {
        return json_fail(at, err, "expected the kind of a mount, and an absolute path inside");
    }
    return decode_part(at, arena, &ret->part, err);
}

static int decode_mounts(const struct json *at, struct arena *arena, struct plan_step *step,
                         struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (!json_find(at, "mounts", &list)) {
        return 0;
    }
    if (json_expect_array(&list, RECIPE_MOUNTS_MAX, &step->n_mounts, err) < 0) {
        return -1;
    }
    step->mounts = arena_array(arena, struct plan_mount, step->n_mounts + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_mount(&item, arena, &step->mounts[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int decode_step_need(const struct json *at, struct arena *arena, struct step_need *ret,
                            struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"cause", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"what", JSON_STR, JSON_REQUIRED, offsetof(struct step_need, what), 0, 0},
        {"command", JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct step_need, command), 0,
         0},
    };
    struct json member;
    struct str cause;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        json_member(at, "cause", &member, err) < 0 || json_str(&member, arena, &cause, err) < 0) {
        return -1;
    }
    return cause_of_name(cause, &ret->cause)
               ? 0
               : json_fail(&member, err, "unknown cause \"%.*s\"", STR_ARG(cause));
}

static int decode_step_needs(const struct json *at, struct arena *arena, struct plan_step *step,
                             struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (!json_find(at, "needs", &list)) {
        return 0;
    }
    if (json_expect_array(&list, STEP_NEEDS_MAX, &step->n_needs, err) < 0) {
        return -1;
    }
    step->needs = arena_array(arena, struct step_need, step->n_needs + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_step_need(&item, arena, &step->needs[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The same but for "nodes" and "gpus_per_node". */
static int decode_place(const struct json *at, struct arena *arena, struct plan_step *step,
                        struct err *err)
{
    return decode_image(at, arena, step, err) < 0 || decode_starts(at, arena, step, err) < 0 ||
                   decode_mounts(at, arena, step, err) < 0
               ? -1
               : decode_step_needs(at, arena, step, err);
}

/* The plan's runtime and launcher, by default none and ssh. */
static int decode_kinds(const struct json *root, struct arena *arena, struct plan *plan,
                        struct err *err)
{
    struct json member;
    struct str name = STR_EMPTY;
    if (json_find(root, "runtime", &member)) {
        if (json_str(&member, arena, &name, err) < 0) {
            return -1;
        }
        if (!runtime_kind_of_name(name, &plan->runtime)) {
            return json_fail(&member, err, "unknown runtime \"%.*s\"", STR_ARG(name));
        }
    }
    if (json_find(root, "launcher", &member)) {
        if (json_str(&member, arena, &name, err) < 0) {
            return -1;
        }
        if (!launcher_kind_of_name(name, &plan->launcher)) {
            return json_fail(&member, err, "unknown launcher \"%.*s\"", STR_ARG(name));
        }
    }
    return 0;
}

static void encode_step(struct json_out *out, const struct plan_step *step)
{
    jw_object(out, NULL);
    jw_str(out, "case", step->case_id);
    jw_str(out, "baseline", step->baseline);
    jw_str(out, "format", step->format);
    jw_str(out, "rule", step->rule);
    beside_encode(out, &step->beside);
    jw_str(out, "node", step->node);
    jw_z(out, "cause", step->cause ? err_code_name(step->cause) : NULL);
    jw_str(out, "why", step->why);
    jw_array(out, "argv");
    for (size_t idx = 0; idx < step->n_argv; idx++) {
        jw_str(out, NULL, step->argv[idx]);
    }
    jw_end_array(out);
    encode_pairs(out, "env", step->env, step->n_env);
    encode_pairs(out, "conditions", step->conditions, step->n_conditions);
    jw_str(out, "recipe", step->recipe);
    jw_i64(out, "ranks", step->n_ranks);
    encode_place(out, step);
    jw_i64(out, "steps", step->n_steps);
    jw_i64(out, "memory_bytes", step->memory_bytes);
    jw_i64(out, "log_bytes", step->log_bytes);
    jw_end_object(out);
}

const char *need_state_name(enum need_state state)
{
    static const char *const NAMES[] = {"absent", "partial", "ready"};
    return NAMES[state];
}

static void encode_count(struct json_out *out, const char *key, int64_t value)
{
    if (value < 0) {
        jw_null(out, key);
    } else {
        jw_i64(out, key, value);
    }
}

static void encode_needs(struct json_out *out, const struct plan *plan)
{
    jw_array(out, "needs");
    for (size_t idx = 0; idx < plan->n_needs; idx++) {
        const struct plan_need *need = &plan->needs[idx];
        jw_object(out, NULL);
        jw_str(out, "kind", need->kind);
        jw_str(out, "name", need->name);
        jw_z(out, "state", need_state_name(need->state));
        encode_count(out, "download_bytes", need->download_bytes);
        encode_count(out, "disk_bytes", need->disk_bytes);
        jw_i64(out, "unpinned_files", need->n_unpinned);
        jw_bool(out, "login", need->needs_login);
        jw_end_object(out);
    }
    jw_end_array(out);
}

/* Absent if there are none, as in the plans of runs from before there was -C. */
static void encode_overrides(struct json_out *out, const struct plan *plan)
{
    if (plan->n_overrides == 0) {
        return;
    }
    jw_array(out, "overrides");
    for (size_t idx = 0; idx < plan->n_overrides; idx++) {
        jw_object(out, NULL);
        jw_str(out, "path", plan->overrides[idx].path);
        jw_str(out, "was", plan->overrides[idx].was);
        jw_str(out, "value", plan->overrides[idx].value);
        jw_end_object(out);
    }
    jw_end_array(out);
}

void plan_encode_members(const struct plan *plan, struct json_out *out)
{
    jw_i64(out, "schema_version", 1);
    jw_str(out, "report", plan->report);
    jw_str(out, "report_sha256", plan->report_sha256);
    jw_z(out, "profile", profile_name(plan->profile));
    if (plan->is_rehearsal) {
        jw_bool(out, "rehearsal", true);
    }
    jw_i64(out, "repeats", plan->repeats);
    if (plan->is_each_node) {
        jw_bool(out, "each_node", true);
    }
    if (plan->takes_turns) {
        jw_bool(out, "takes_turns", true);
    }
    jw_i64(out, "deadline_s", plan->deadline_s);
    jw_str(out, "inventory", plan->inventory);
    jw_z(out, "runtime", runtime_kind_name(plan->runtime));
    jw_z(out, "launcher", launcher_kind_name(plan->launcher));
    jw_i64(out, "disk_bytes", plan_disk_bytes(plan));
    jw_array(out, "globs");
    for (size_t idx = 0; idx < plan->n_globs; idx++) {
        jw_str(out, NULL, plan->globs[idx]);
    }
    jw_end_array(out);
    jw_array(out, "steps");
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        encode_step(out, &plan->steps[idx]);
    }
    jw_end_array(out);
    jw_array(out, "missing_pins");
    for (size_t idx = 0; idx < plan->n_pins; idx++) {
        jw_object(out, NULL);
        jw_str(out, "stack", plan->pins[idx].stack);
        jw_str(out, "what", plan->pins[idx].what);
        jw_end_object(out);
    }
    jw_end_array(out);
    plan_data_encode(out, "data", &plan->data);
    encode_needs(out, plan);
    encode_overrides(out, plan);
}

void plan_encode(const struct plan *plan, struct strbuf *buf)
{
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    plan_encode_members(plan, &out);
    jw_end_object(&out);
}

/* ---- decode ---- */

/* Absent in the plans of runs before there was --data. */
static int decode_data(const struct json *root, struct arena *arena, struct plan *plan,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"dataset", JSON_STR, JSON_REQUIRED, offsetof(struct plan_data, dataset), 0, 0},
        {"synthetic", JSON_BOOL, JSON_REQUIRED, offsetof(struct plan_data, is_synthetic), 0, 0},
        {"split", JSON_STR, JSON_REQUIRED, offsetof(struct plan_data, split), 0, 0},
        {"folder", JSON_STR, JSON_REQUIRED, offsetof(struct plan_data, folder), 0, 0},
        {"pack_sha256", JSON_STR, JSON_REQUIRED, offsetof(struct plan_data, pack_sha256), 0, 0},
        {"source_sha256", JSON_STR, JSON_REQUIRED, offsetof(struct plan_data, source_sha256), 0, 0},
        {"n_samples", JSON_I64, JSON_REQUIRED, offsetof(struct plan_data, n_samples), 1, 1LL << 50},
    };
    struct json data;
    if (!json_find(root, "data", &data) || json_is_null(&data)) {
        return 0;
    }
    return json_decode(&data, arena, FIELDS, ARRAY_LEN(FIELDS), &plan->data, err);
}

static int decode_pairs(const struct json *at, struct arena *arena, size_t max,
                        struct condition **ret_items, size_t *ret_n, struct err *err)
{
    struct condition *items = arena_array(arena, struct condition, max);
    struct json item;
    size_t n = 0;
    if (!json_is_object(at)) {
        return json_fail(at, err, "expected an object");
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        if (n >= max) {
            return json_fail(at, err, "more than %zu members", max);
        }
        items[n].name = str_dup(arena, str_of(item.key));
        items[n].value = STR_EMPTY;
        if (!json_is_null(&item) && json_str(&item, arena, &items[n].value, err) < 0) {
            return -1;
        }
        n++;
    }
    *ret_items = items;
    *ret_n = n;
    return 0;
}

static int decode_step(const struct json *at, struct arena *arena, struct plan_step *ret_step,
                       struct err *err)
{
    struct plan_step step = {0};
    struct str cause = STR_EMPTY;
    struct json member;
    static const struct json_field FIELDS[] = {
        {"case", JSON_STR, JSON_REQUIRED, offsetof(struct plan_step, case_id), 0, 0},
        {"baseline", JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct plan_step, baseline),
         0, 0},
        {"format", JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct plan_step, format), 0,
         0},
        {"rule", JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct plan_step, rule), 0, 0},
        {"node", JSON_STR, JSON_REQUIRED, offsetof(struct plan_step, node), 0, 0},
        {"cause", JSON_ANY, JSON_REQUIRED | JSON_NULLABLE, 0, 0, 0},
        {"why", JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct plan_step, why), 0, 0},
        {"argv", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"env", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"conditions", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"ranks", JSON_I64, JSON_REQUIRED, offsetof(struct plan_step, n_ranks), 0, INT32_MAX},
        {"steps", JSON_I64, JSON_REQUIRED, offsetof(struct plan_step, n_steps), 0, 1LL << 50},
        {"memory_bytes", JSON_I64, JSON_REQUIRED, offsetof(struct plan_step, memory_bytes), 0,
         1LL << 50},
        {"log_bytes", JSON_I64, JSON_REQUIRED, offsetof(struct plan_step, log_bytes), 0, 1LL << 50},
        /* Absent in the plans of runs before there were nodes. */
        {"nodes", JSON_I64, 0, offsetof(struct plan_step, n_nodes), 1, INVENTORY_NODES_MAX},
        {"gpus_per_node", JSON_I64, 0, offsetof(struct plan_step, gpus_per_node), 0, INT32_MAX},
        {"image", JSON_ANY, JSON_NULLABLE, 0, 0, 0},
        /* Absent in the plans of runs before there were recipes. */
        {"recipe", JSON_STR, JSON_NULLABLE, offsetof(struct plan_step, recipe), 0, 0},
        {"target", JSON_ANY, 0, 0, 0, 0},
        {"also", JSON_ANY, 0, 0, 0, 0},
        {"also_why_not", JSON_ANY, 0, 0, 0, 0},
        {"starts", JSON_ANY, 0, 0, 0, 0},
        {"mounts", JSON_ANY, 0, 0, 0, 0},
        {"needs", JSON_ANY, 0, 0, 0, 0},
    };
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &step, err) < 0 ||
        beside_decode(at, arena, &step.beside, err) < 0 ||
        json_member(at, "cause", &member, err) < 0) {
        return -1;
    }
    if (!json_is_null(&member) && (json_str(&member, arena, &cause, err) < 0)) {
        return -1;
    }
    if (cause.ptr && !cause_of_name(cause, &step.cause)) {
        return json_fail(&member, err, "unknown cause \"%.*s\"", STR_ARG(cause));
    }
    if (!plan_case_id_is_safe(step.case_id)) {
        return json_fail(at, err, "\"%.*s\" is not a case id", STR_ARG(step.case_id));
    }
    if (json_member(at, "argv", &member, err) < 0 ||
        json_str_list(&member, arena, PLAN_ARGV_MAX, &step.argv, &step.n_argv, err) < 0 ||
        json_member(at, "env", &member, err) < 0 ||
        decode_pairs(&member, arena, PLAN_ENV_MAX, &step.env, &step.n_env, err) < 0 ||
        json_member(at, "conditions", &member, err) < 0 ||
        decode_pairs(&member, arena, PLAN_CONDITIONS_MAX, &step.conditions, &step.n_conditions,
                     err) < 0 ||
        decode_place(at, arena, &step, err) < 0) {
        return -1;
    }
    if (step.cause == ERR_NONE && step.n_argv == 0) {
        return json_fail(at, err, "expected an argv, as the step is to be run");
    }
    *ret_step = step;
    return 0;
}

static int decode_steps(const struct json *root, struct arena *arena, struct plan *plan,
                        struct err *err)
{
    struct json list;
    struct json item;
    size_t n = 0;
    if (json_member(root, "steps", &list, err) < 0 ||
        json_expect_array(&list, PLAN_STEPS_MAX, &n, err) < 0) {
        return -1;
    }
    plan->steps = arena_array(arena, struct plan_step, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_step(&item, arena, &plan->steps[plan->n_steps++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int decode_pins(const struct json *root, struct arena *arena, struct plan *plan,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"stack", JSON_STR, JSON_REQUIRED, offsetof(struct missing_pin, stack), 0, 0},
        {"what", JSON_STR, JSON_REQUIRED, offsetof(struct missing_pin, what), 0, 0},
    };
    struct json list;
    struct json item;
    size_t n = 0;
    if (json_member(root, "missing_pins", &list, err) < 0 ||
        json_expect_array(&list, PLAN_PINS_MAX, &n, err) < 0) {
        return -1;
    }
    plan->pins = arena_array(arena, struct missing_pin, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (json_decode(&item, arena, FIELDS, ARRAY_LEN(FIELDS), &plan->pins[plan->n_pins++], err) <
            0) {
            return -1;
        }
    }
    return 0;
}

static int decode_overrides(const struct json *root, struct arena *arena, struct plan *plan,
                            struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"path", JSON_STR, JSON_REQUIRED, offsetof(struct json_override, path), 0, 0},
        {"was", JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct json_override, was), 0, 0},
        {"value", JSON_STR, JSON_REQUIRED, offsetof(struct json_override, value), 0, 0},
    };
    struct json list;
    struct json item;
    size_t n = 0;
    if (!json_find(root, "overrides", &list)) {
        return 0;
    }
    if (json_expect_array(&list, PLAN_OVERRIDES_MAX, &n, err) < 0) {
        return -1;
    }
    plan->overrides = arena_array(arena, struct json_override, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (json_decode(&item, arena, FIELDS, ARRAY_LEN(FIELDS),
                        &plan->overrides[plan->n_overrides++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

int plan_decode(const struct json *root, struct arena *arena, struct plan *ret_plan,
                struct err *err)
{
    struct plan plan = {0};
    struct json member;
    struct str profile;
    static const struct json_field FIELDS[] = {
        {"schema_version", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"report", JSON_STR, JSON_REQUIRED, offsetof(struct plan, report), 0, 0},
        {"report_sha256", JSON_STR, JSON_REQUIRED, offsetof(struct plan, report_sha256), 0, 0},
        {"profile", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"rehearsal", JSON_BOOL, 0, offsetof(struct plan, is_rehearsal), 0, 0},
        {"repeats", JSON_I64, JSON_REQUIRED, offsetof(struct plan, repeats), 1, REPEATS_RUN_MAX},
        {"each_node", JSON_BOOL, 0, offsetof(struct plan, is_each_node), 0, 0},
        {"takes_turns", JSON_BOOL, 0, offsetof(struct plan, takes_turns), 0, 0},
        {"deadline_s", JSON_I64, JSON_REQUIRED, offsetof(struct plan, deadline_s), 1,
         DEADLINE_S_MAX},
        {"inventory", JSON_STR, JSON_REQUIRED, offsetof(struct plan, inventory), 0, 0},
        {"runtime", JSON_ANY, 0, 0, 0, 0},
        {"launcher", JSON_ANY, 0, 0, 0, 0},
        {"disk_bytes", JSON_ANY, JSON_REQUIRED, 0, 0, 0}, /* follows from the rest */
        {"globs", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"steps", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"missing_pins", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"data", JSON_ANY, JSON_NULLABLE, 0, 0, 0},
        {"needs", JSON_ANY, 0, 0, 0, 0}, /* the state of the store then */
        {"overrides", JSON_ANY, 0, 0, 0, 0},
    };
    int64_t version = 0;
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), &plan, err) < 0 ||
        json_member(root, "schema_version", &member, err) < 0 ||
        json_i64(&member, 1, 1, &version, err) < 0 ||
        json_member(root, "profile", &member, err) < 0 ||
        json_str(&member, arena, &profile, err) < 0) {
        return -1;
    }
    if (!profile_of_name(profile, &plan.profile)) {
        return json_fail(&member, err, "expected smoke or full, found \"%.*s\"", STR_ARG(profile));
    }
    if (plan.is_rehearsal && plan.profile != PROFILE_FULL) {
        return json_fail(&member, err, "a rehearsal needs profile full, found \"%.*s\"",
                         STR_ARG(profile));
    }
    if (json_member(root, "globs", &member, err) < 0 ||
        json_str_list(&member, arena, PLAN_GLOBS_MAX, &plan.globs, &plan.n_globs, err) < 0 ||
        decode_steps(root, arena, &plan, err) < 0 || decode_pins(root, arena, &plan, err) < 0 ||
        decode_data(root, arena, &plan, err) < 0 || decode_overrides(root, arena, &plan, err) < 0 ||
        decode_kinds(root, arena, &plan, err) < 0) {
        return -1;
    }
    *ret_plan = plan;
    return 0;
}
