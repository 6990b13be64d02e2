/* SPDX-License-Identifier: Apache-2.0 */
/* Where a step runs and in what: nodes, image, engine. */
#include "base/base.h"

#include "report/plan.h"

int64_t plan_step_nodes(const struct plan_step *step)
{
    return step->n_nodes > 0 ? step->n_nodes : 1;
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

void plan_place_encode(struct json_out *out, const struct plan_step *step)
{
    jw_i64(out, "nodes", plan_step_nodes(step));
    jw_i64(out, "gpus_per_node", step->gpus_per_node);
    encode_image(out, step);
}

int plan_image_decode(const struct json *at, struct arena *arena, struct plan_step *step,
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
