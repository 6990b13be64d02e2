/* SPDX-License-Identifier: Apache-2.0 */
/* Recipes of a stack: how its cases are carried out under a profile. */
#include "base/base.h"

#include "report/container.h"
#include "report/report_decode.h"
#include "report/source.h"

static const char *const MOUNT_KINDS[] = {
    [MOUNT_OVERLAY] = "overlay", [MOUNT_SOURCE] = "source", [MOUNT_DATASET] = "dataset", NULL};
/* Properties in a case's id from which a recipe may deviate. */
static const char *const OF_THE_CASE[] = {"device", "precision"};

const char *recipe_mount_kind_name(enum recipe_mount_kind kind)
{
    return MOUNT_KINDS[kind];
}

bool recipe_mount_kind_of_name(struct str name, enum recipe_mount_kind *ret_kind)
{
    for (size_t kind = 0; MOUNT_KINDS[kind]; kind++) {
        if (str_eq_z(name, MOUNT_KINDS[kind])) {
            *ret_kind = (enum recipe_mount_kind)kind;
            return true;
        }
    }
    return false;
}

static bool has_source(const struct stack *stack, struct str repository)
{
    for (size_t idx = 0; idx < stack->n_sources; idx++) {
        if (str_eq(stack->sources[idx].repository, repository)) {
            return true;
        }
    }
    return false;
}

static int check_source(const struct json *at, const struct stack *stack,
                        const struct recipe_mount *mount, struct err *err)
{
    struct err why = {0};
    if (!mount->commit.ptr) {
        return has_source(stack, mount->name)
                   ? 0
                   : json_fail(at, err, "name: expected a repository of the stack's sources");
    }
    return source_check_url(mount->name, &why) < 0 ? json_fail(at, err, "name: %s", why.msg)
                                                   : check_commit(at, "commit", mount->commit, err);
}

static int decode_paths(const struct json *at, struct arena *arena, struct recipe_mount *mount,
                        struct err *err)
{
    struct err why = {0};
    struct json list;
    struct str *items;
    const char *joined;
    size_t n;
    if (!json_find(at, "paths", &list)) {
        return 0;
    }
    if (json_str_list(&list, arena, SOURCE_PATHS_MAX, &items, &n, err) < 0) {
        return -1;
    }
    if (mount->kind != MOUNT_SOURCE) {
        return json_fail(&list, err, "only a source has paths");
    }
    if (source_join_paths(arena, items, n, &joined, &why) < 0) {
        return json_fail(&list, err, "%s", why.msg);
    }
    mount->paths = str_of(joined);
    return 0;
}

static int decode_mount(const struct json *at, struct arena *arena, const struct stack *stack,
                        struct recipe_mount *ret, struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"kind", JSON_ANY, JSON_REQUIRED, 0, 0, 0},
        {"name", JSON_STR, JSON_REQUIRED, offsetof(struct recipe_mount, name), 0, 0},
        {"commit", JSON_STR, 0, offsetof(struct recipe_mount, commit), 0, 0},
        {"paths", JSON_ANY, 0, 0, 0, 0},
        {"synthetic", JSON_BOOL, 0, offsetof(struct recipe_mount, is_synthetic), 0, 0},
        {"inside", JSON_STR, JSON_REQUIRED, offsetof(struct recipe_mount, inside), 0, 0},
    };
    struct json member;
    struct str kind;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        json_member(at, "kind", &member, err) < 0 || json_str(&member, arena, &kind, err) < 0 ||
        check_word(at, "kind", kind, MOUNT_KINDS, err) < 0) {
        return -1;
    }
    (void)recipe_mount_kind_of_name(kind, &ret->kind);
    if ((ret->kind == MOUNT_SOURCE ? check_source(at, stack, ret, err)
                                   : check_slug(at, "name", ret->name, err)) < 0) {
        return -1;
    }
    if (decode_paths(at, arena, ret, err) < 0) {
        return -1;
    }
    if (ret->commit.ptr && ret->kind != MOUNT_SOURCE) {
        return json_fail(at, err, "commit: only a source has one");
    }
    if (ret->is_synthetic && ret->kind != MOUNT_DATASET) {
        return json_fail(at, err, "synthetic: only a dataset has a synthetic version");
    }
    return container_is_path(ret->inside)
               ? 0
               : json_fail(at, err, "inside: expected an absolute path, found \"%.160s\"",
                           ret->inside.ptr);
}

static int decode_mounts(const struct json *at, struct arena *arena, const struct stack *stack,
                         struct recipe *ret, struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (!json_find(at, "mounts", &list)) {
        return 0;
    }
    if (json_expect_array(&list, RECIPE_MOUNTS_MAX, &ret->n_mounts, err) < 0) {
        return -1;
    }
    ret->mounts = arena_array(arena, struct recipe_mount, ret->n_mounts + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_mount(&item, arena, stack, &ret->mounts[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int decode_commands(const struct json *at, struct arena *arena, struct recipe *ret,
                           struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (!json_find(at, "commands", &list)) {
        return 0;
    }
    if (json_expect_array(&list, COMMANDS_MAX, &ret->n_commands, err) < 0) {
        return -1;
    }
    ret->commands = arena_array(arena, struct command, ret->n_commands + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct command *command = &ret->commands[idx++];
        if (decode_command(&item, arena, command, err) < 0) {
            return -1;
        }
        if (!str_eq_z(command->purpose, "run")) {
            return json_fail(&item, err, "purpose: all commands of a recipe are \"run\"");
        }
        if (ret->before.ptr && !str_eq_z(command->per, "node")) {
            return json_fail(&item, err, "per: \"before\" runs once per node, and so must this");
        }
    }
    return 0;
}

static int decode_differences(const struct json *at, struct arena *arena, struct recipe *ret,
                              struct err *err)
{
    struct json member;
    return json_find(at, "conditions", &member)
               ? decode_conditions_and(&member, arena, OF_THE_CASE, ARRAY_LEN(OF_THE_CASE),
                                       &ret->conditions, err)
               : 0;
}

static int decode_recipe(const struct json *at, struct arena *arena, const struct stack *stack,
                         struct recipe *ret, struct err *err)
{
    static const struct json_field FIELDS[] = {
        {"title", JSON_STR, JSON_REQUIRED, offsetof(struct recipe, title), 0, 0},
        {"why_not", JSON_STR, 0, offsetof(struct recipe, why_not), 0, 0},
        {"else_why_not", JSON_STR, 0, offsetof(struct recipe, else_why_not), 0, 0},
        {"image", JSON_STR, 0, offsetof(struct recipe, image), 0, 0},
        {"container", JSON_STR, 0, offsetof(struct recipe, container), 0, 0},
        {"rule", JSON_STR, 0, offsetof(struct recipe, rule), 0, 0},
        {"target", JSON_ANY, 0, 0, 0, 0},
        {"also", JSON_ANY, 0, 0, 0, 0},
        {"also_why_not", JSON_ANY, 0, 0, 0, 0},
        {"before", JSON_STR, 0, offsetof(struct recipe, before), 0, 0},
        {"mounts", JSON_ANY, 0, 0, 0, 0},
        {"env", JSON_ANY, 0, 0, 0, 0},
        {"conditions", JSON_ANY, 0, 0, 0, 0},
        {"commands", JSON_ANY, 0, 0, 0, 0},
    };
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), ret, err) < 0 ||
        check_line(at, "title", ret->title, err) < 0 ||
        check_line(at, "why_not", ret->why_not, err) < 0 ||
        check_line(at, "else_why_not", ret->else_why_not, err) < 0 ||
        check_slug(at, "image", ret->image, err) < 0 ||
        check_text(at, "container", ret->container, err) < 0 ||
        check_line(at, "rule", ret->rule, err) < 0 ||
        check_text(at, "before", ret->before, err) < 0) {
        return -1;
    }
    if (ret->rule.ptr && str_find(ret->rule, STR_LIT("/")) <= 0) {
        return json_fail(at, err, "rule: expected FORMAT/NAME, found \"%.160s\"", ret->rule.ptr);
    }
    if (!ret->why_not.ptr == !ret->image.ptr) {
        return json_fail(at, err, "expected either an image or why_not");
    }
    return decode_mounts(at, arena, stack, ret, err) < 0 ||
                   decode_env(at, arena, &ret->env, &ret->n_env, err) < 0 ||
                   decode_differences(at, arena, ret, err) < 0 ||
                   beside_decode(at, arena, &ret->beside, err) < 0
               ? -1
               : decode_commands(at, arena, ret, err);
}

static int decode_list(const struct json *stack_at, const char *profile, struct arena *arena,
                       const struct stack *stack, struct recipes *ret, struct err *err)
{
    struct json list;
    struct json item;
    size_t idx = 0;
    if (!json_find(stack_at, profile, &list)) {
        return 0;
    }
    if (json_expect_array(&list, RECIPES_MAX, &ret->n, err) < 0) {
        return -1;
    }
    ret->items = arena_array(arena, struct recipe, ret->n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        struct recipe *recipe = &ret->items[idx++];
        if (decode_recipe(&item, arena, stack, recipe, err) < 0) {
            return -1;
        }
        if (recipe->beside.n_also && recipe->beside.why_not.ptr) {
            return json_fail(&item, err, "expected also or also_why_not, found both");
        }
        if ((recipe->rule.ptr || recipe->beside.target.series.ptr) && ret != &stack->smoke) {
            return json_fail(&item, err, "%s: a full run is judged by that of its case",
                             recipe->rule.ptr ? "rule" : "target");
        }
    }
    return 0;
}

int decode_recipes(const struct json *at, struct arena *arena, struct stack *stack, struct err *err)
{
    return decode_list(at, "smoke", arena, stack, &stack->smoke, err) < 0
               ? -1
               : decode_list(at, "full", arena, stack, &stack->full, err);
}
