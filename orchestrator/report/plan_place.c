/* SPDX-License-Identifier: Apache-2.0 */
/* Where a step runs and in what: nodes, image, engine. */
#include "base/base.h"

#include "report/plan.h"

#define STARTS_NODE          "node"
#define STARTS_RANK          "rank"
#define SMOKE_NODE_RANKS_MAX 2 /* so that a report's 1, 8 and 32 GPUs become 1, 2 and 4 ranks */

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

bool plan_step_fits(const struct plan_step *step, const struct inventory_node *node)
{
    return node->gpus >= step->gpus_per_node;
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

static void encode_needs(struct json_out *out, const struct plan_step *step)
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

void plan_place_encode(struct json_out *out, const struct plan_step *step)
{
    jw_i64(out, "nodes", plan_step_nodes(step));
    jw_i64(out, "gpus_per_node", step->gpus_per_node);
    encode_image(out, step);
    jw_z(out, "starts", step->is_per_node ? STARTS_NODE : STARTS_RANK);
    encode_mounts(out, step);
    encode_needs(out, step);
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

static int decode_need(const struct json *at, struct arena *arena, struct step_need *ret,
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
    return plan_cause_of_name(cause, &ret->cause)
               ? 0
               : json_fail(&member, err, "unknown cause \"%.*s\"", STR_ARG(cause));
}

static int decode_needs(const struct json *at, struct arena *arena, struct plan_step *step,
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
        if (decode_need(&item, arena, &step->needs[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

int plan_place_decode(const struct json *at, struct arena *arena, struct plan_step *step,
                      struct err *err)
{
    return decode_image(at, arena, step, err) < 0 || decode_starts(at, arena, step, err) < 0 ||
                   decode_mounts(at, arena, step, err) < 0
               ? -1
               : decode_needs(at, arena, step, err);
}

int plan_kinds_decode(const struct json *root, struct arena *arena, struct plan *plan,
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
