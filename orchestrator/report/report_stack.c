/* SPDX-License-Identifier: Apache-2.0 */
/* Sources, conditions, environments and stacks of a report, and the forms of text. */
#include "base/base.h"

#include "base/str.h"
#include "report/report_decode.h"

#include "codec/json_table.h"
#include "report/container.h"
#include "report/shell_script.h"
#include "report/source.h"

#define TEXT_BYTES_MAX 4096
#define LINE_BYTES_MAX 512
#define ENV_BYTES_MAX  1024
#define SOURCES_MAX    32
#define ENV_MAX        64

static const char *const PURPOSES[] = {"pull", "build",   "container", "code",
                                       "data", "install", "run",       "log"};
static const char *const PER[] = {"node", "rank", "head"};

bool is_slug(struct str s)
{
    bool was_joint = true;
    for (size_t idx = 0; idx < s.len; idx++) {
        bool is_joint = s.ptr[idx] == '-' || s.ptr[idx] == '.';
        if (is_joint && was_joint) {
            return false;
        }
        was_joint = is_joint;
    }
    return str_is_made_of(s, "a-z0-9.-") && s.len <= SLUG_BYTES_MAX && !was_joint;
}

/* No part of a path is empty, . or .. */
#define PARTS "(?!.*(^|/)\\.{0,2}(/|$))"
const struct json_form FORM_SLUG = {.pattern = "^[a-z0-9]+([.-][a-z0-9]+)*$",
                                    .max = SLUG_BYTES_MAX,
                                    .what = "small letters and digits joined by - or ."};
/* It is printed on terminals, which interpret control characters. */
const struct json_form FORM_LINE = {.pattern = "^[^\\x00-\\x1f\\x7f]+$",
                                    .max = LINE_BYTES_MAX,
                                    .what = "one line of 1 to 512 bytes without a control "
                                            "character"};
const struct json_form FORM_TEXT = {
    .is_filled = true, .max = TEXT_BYTES_MAX, .what = "text of 1 to 4096 bytes"};
const struct json_form FORM_COMMIT = {.pattern = "^[0-9a-f]{40}$",
                                      .what = "40 hex digits (a whole commit)"};
const struct json_form FORM_URL = {
    .pattern = "^https?://[^\\x00-\\x20]+$", .max = LINE_BYTES_MAX, .what = "https://..."};
const struct json_form FORM_PATH = {.pattern = "^" PARTS "[^\\x00-\\x20]+$",
                                    .max = LINE_BYTES_MAX,
                                    .what = "a relative path without blanks, . and .."};
const struct json_form FORM_FILE_PATH = {.pattern = "^" PARTS "[^\\x00-\\x1f]+$",
                                         .max = LINE_BYTES_MAX,
                                         .what = "a relative path without . and .."};
const struct json_form FORM_DATE = {.pattern = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
                                    .what = "YYYY-MM-DD"};
const struct json_field SOURCE_ROWS[4] = {
    ROW("repository", struct source_ref, repository, JSON_REQUIRED, .form = &FORM_URL),
    ROW("commit", struct source_ref, commit, JSON_REQUIRED, .form = &FORM_COMMIT),
    ROW("path", struct source_ref, path, JSON_REQUIRED, .form = &FORM_FILE_PATH),
    ROW("date", struct source_ref, date, JSON_REQUIRED, .form = &FORM_DATE),
};

/* ---- conditions, environment variables ---- */

static int compare_conditions(const void *a, const void *b)
{
    return str_cmp(((const struct condition *)a)->name, ((const struct condition *)b)->name);
}

static int check_condition(const struct json *at, struct str name, struct err *err)
{
    return vocabulary_has_condition(vocabulary_of(at), name)
               ? 0
               : json_fail(at, err, "name: \"%.*s\" is not one of the conditions",
                           (int)(name.len < 100 ? name.len : 100), name.ptr);
}

int get_conditions(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    struct conditions *list = out;
    qsort(list->items, list->n, sizeof(list->items[0]), compare_conditions);
    for (size_t idx = 0; idx < list->n; idx++) {
        if (check_condition(at, list->items[idx].name, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A recipe may also deviate from properties in a case's id. */
static int get_differences(const struct json *at, struct arena *arena UNUSED, void *out,
                           struct err *err)
{
    static const char *const OF_THE_CASE[] = {"device", "precision", NULL};
    struct conditions *list = out;
    qsort(list->items, list->n, sizeof(list->items[0]), compare_conditions);
    for (size_t idx = 0; idx < list->n; idx++) {
        struct str name = list->items[idx].name;
        if (!str_eq_any(name, OF_THE_CASE) && check_condition(at, name, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int check_env(const struct json *at, struct arena *arena, void *out UNUSED, struct err *err)
{
    struct json item;
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        struct str value = STR_EMPTY;
        if (!json_is_null(&item) && json_str(&item, arena, &value, err) < 0) {
            return -1;
        }
        if (!is_identifier(str_of(item.key)) || value.len > ENV_BYTES_MAX) {
            return json_fail(at, err, "%.100s: expected a variable's name and at most %d bytes",
                             item.key, ENV_BYTES_MAX);
        }
    }
    return 0;
}

#define ENV_RULES "\"propertyNames\": {\"pattern\": \"^[A-Za-z_][A-Za-z0-9_]*$\"}"

/* ---- environments, sources, commands ---- */

#define COUNT(most) 0, .max = (most)
const struct json_field ENVIRONMENT_ROWS[6] = {
    ROW("id", struct environment, id, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("title", struct environment, title, 0, .form = &FORM_LINE),
    ROW("nodes", struct environment, nodes, COUNT(NODES_MAX)),
    ROW("gpus_per_node", struct environment, gpus_per_node, COUNT(GPUS_PER_NODE_MAX)),
    ROW_CONDITIONS(struct environment),
    ROW_OBJECT("source", struct environment, source, SOURCE_ROWS, JSON_NULLABLE),
};

int check_environment(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    struct environment *e = out;
    struct json nodes;
    if (!e->title.ptr) {
        e->title = e->id;
    }
    if (e->nodes > 0 || e->gpus_per_node == 0) {
        return 0;
    }
    return json_member(at, "nodes", &nodes, err) < 0
               ? -1
               : json_fail(&nodes, err, "expected 1 to %d, or 0 with 0 GPUs: not printed",
                           NODES_MAX);
}

static const struct json_field PIN_ROWS[] = {
    ROW("repository", struct pin_source, repository, JSON_REQUIRED, .form = &FORM_URL),
    ROW("commit", struct pin_source, commit, JSON_NULLABLE, .form = &FORM_COMMIT),
    ROW("ref", struct pin_source, ref, JSON_NULLABLE, .form = &FORM_LINE),
    ROW("printed_url", struct pin_source, printed_url, JSON_NULLABLE, .form = &FORM_URL),
};

static int check_pin(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    const struct pin_source *pin = out;
    return str_find(pin->repository, STR_LIT("/tree/")) >= 0 ||
                   source_check_url(pin->repository, ERR_IGNORED) < 0
               ? json_fail(at, err,
                           "repository: expected an https:// URL that git can clone, found "
                           "\"%.160s\"",
                           pin->repository.ptr)
               : 0;
}

static const struct json_form PRECISION = {.check = check_precision};
static const struct json_field COMMAND_ROWS[] = {
    ROW("purpose", struct command, purpose, JSON_REQUIRED, .names = PURPOSES,
        .n_names = ARRAY_LEN(PURPOSES)),
    ROW("nodes", struct command, nodes, COUNT(NODES_MAX)),
    ROW("gpus", struct command, gpus, COUNT((int64_t)NODES_MAX *GPUS_PER_NODE_MAX)),
    ROW("batch", struct command, batch, JSON_OMIT, .max = BATCH_MAX),
    ROW("precision", struct command, precision, JSON_NULLABLE, .form = &PRECISION,
        .vocabulary = "precisions"),
    ROW("per", struct command, per, JSON_REQUIRED, .names = PER, .n_names = ARRAY_LEN(PER)),
    ROW("printed", struct command, printed, JSON_NULLABLE, .form = &FORM_TEXT),
    ROW("works", struct command, works, JSON_NULLABLE, .form = &FORM_TEXT),
};
#define COMMAND_RULES                                                                              \
    "\"anyOf\": [{\"properties\": {\"printed\": {\"type\": \"string\"}}}, {\"properties\": "       \
    "{\"works\": "                                                                                 \
    "{\"type\": \"string\"}}}]"

static int check_command(const struct json *at, struct arena *arena UNUSED, void *out,
                         struct err *err)
{
    const struct command *command = out;
    return command->printed.ptr || command->works.ptr
               ? 0
               : json_fail(at, err, "expected a command in printed or works, found null in both");
}

/* ---- recipes ---- */

const char *const RECIPE_MOUNT_KIND_NAMES[] = {
    [MOUNT_OVERLAY] = "overlay", [MOUNT_SOURCE] = "source", [MOUNT_DATASET] = "dataset", NULL};

/* The kind is read already: its row comes before. */
static int get_paths(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct recipe_mount *mount = out;
    struct err why = {0};
    struct str *items;
    const char *joined;
    size_t n;
    if (json_str_list(at, arena, SOURCE_PATHS_MAX, &items, &n, err) < 0) {
        return -1;
    }
    if (mount->kind != MOUNT_SOURCE) {
        return json_fail(at, err, "only a source has paths");
    }
    if (source_join_paths(arena, items, n, &joined, &why) < 0) {
        return json_fail(at, err, "%s", why.msg);
    }
    mount->paths = str_of(joined);
    return 0;
}

static void put_paths(struct json_out *out, const char *key, const void *of)
{
    struct str paths = ((const struct recipe_mount *)of)->paths;
    struct str path;
    if (!paths.ptr) {
        return;
    }
    jw_array(out, key);
    while (str_next(&paths, ',', &path)) {
        jw_str(out, NULL, path);
    }
    jw_end_array(out);
}

static const struct json_form INSIDE = {
    .pattern = CONTAINER_PATH, .max = LINE_BYTES_MAX, .what = "an absolute path"};
static const struct json_field MOUNT_ROWS[] = {
    ROW_WORD("kind", struct recipe_mount, kind, RECIPE_MOUNT_KIND_NAMES, JSON_REQUIRED),
    ROW("name", struct recipe_mount, name, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("commit", struct recipe_mount, commit, JSON_OMIT, .form = &FORM_COMMIT),
    ROW_ANY("paths", 0, .get = get_paths, .put = put_paths,
            .schema =
                "\"type\": \"array\", \"minItems\": 1, \"maxItems\": 32, \"uniqueItems\": true, "
                "\"items\": {\"type\": \"string\", \"maxLength\": 200, \"pattern\": "
                "\"^(?!.*\\\\.\\\\.)(?!.*(^|/)\\\\.?(/|$))[A-Za-z0-9_.+][A-Za-z0-9_.+/-]*$\"}"),
    ROW("synthetic", struct recipe_mount, is_synthetic, JSON_OMIT),
    ROW("original", struct recipe_mount, is_original, JSON_OMIT),
    ROW("inside", struct recipe_mount, inside, JSON_REQUIRED, .form = &INSIDE),
};

static int check_mount(const struct json *at, struct arena *arena UNUSED, void *out,
                       struct err *err)
{
    const struct recipe_mount *mount = out;
    struct err why = {0};
    if (mount->kind != MOUNT_SOURCE && !is_slug(mount->name)) {
        return json_fail(at, err, "name: expected small letters and digits joined by - or .");
    }
    if (mount->commit.ptr && mount->kind != MOUNT_SOURCE) {
        return json_fail(at, err, "commit: only a source has one");
    }
    if (mount->commit.ptr && source_check_url(mount->name, &why) < 0) {
        return json_fail(at, err, "name: %s", why.msg);
    }
    return mount->is_synthetic + mount->is_original > (mount->kind == MOUNT_DATASET)
               ? json_fail(at, err, "synthetic, original: a dataset is one of them, if at all")
               : 0;
}

static const struct json_form RULE = {.pattern = "^[a-z0-9-]+/[a-z0-9-]+$", .what = "FORMAT/NAME"};
static const struct json_field RECIPE_ROWS[] = {
    ROW("title", struct recipe, title, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("why_not", struct recipe, why_not, JSON_OMIT, .form = &FORM_LINE),
    ROW("else_why_not", struct recipe, else_why_not, JSON_OMIT, .form = &FORM_LINE),
    ROW("image", struct recipe, image, JSON_OMIT, .form = &FORM_SLUG),
    ROW("container", struct recipe, container, JSON_OMIT, .form = &FORM_TEXT),
    ROW("rule", struct recipe, rule, JSON_OMIT, .form = &RULE),
    ROW_HERE(struct recipe, beside, EXTRAS_ROWS),
    ROW("before", struct recipe, before, JSON_OMIT, .form = &FORM_TEXT),
    ROW_LIST("mounts", struct recipe, mounts, n_mounts, MOUNT_ROWS, 0, .max = RECIPE_MOUNTS_MAX,
             .check = check_mount),
    ROW_PAIRS("env", struct recipe, env, n_env, JSON_OMIT | JSON_NULLABLE, .max = ENV_MAX,
              .get = check_env, .schema = ENV_RULES),
    ROW_PAIRS("conditions", struct recipe, conditions.items, conditions.n,
              JSON_OMIT | JSON_NULLABLE, .max = CONDITIONS_MAX, .form = &FORM_LINE,
              .get = get_differences),
    ROW_LIST("commands", struct recipe, commands, n_commands, COMMAND_ROWS, 0, .max = COMMANDS_MAX,
             .check = check_command, .rules = COMMAND_RULES),
};
#define RECIPE_RULES "\"not\": {\"required\": [\"image\", \"why_not\"]}"

static int check_recipe_commands(const struct json *at, const struct recipe *recipe,
                                 struct err *err)
{
    for (size_t idx = 0; idx < recipe->n_commands; idx++) {
        const struct command *command = &recipe->commands[idx];
        if (!str_eq_z(command->purpose, "run")) {
            return json_fail(at, err, "commands[%zu].purpose: all commands of a recipe are \"run\"",
                             idx);
        }
        if (recipe->before.ptr && !str_eq_z(command->per, "node")) {
            return json_fail(
                at, err, "commands[%zu].per: \"before\" runs once per node, and so must this", idx);
        }
    }
    return 0;
}

static int check_recipe(const struct json *at, struct arena *arena UNUSED, void *out,
                        struct err *err)
{
    const struct recipe *recipe = out;
    if (recipe->why_not.ptr && recipe->image.ptr) {
        return json_fail(at, err, "expected an image or why_not, found both");
    }
    if (recipe->beside.n_also && recipe->beside.why_not.ptr) {
        return json_fail(at, err, "expected also or also_why_not, found both");
    }
    return check_recipe_commands(at, recipe, err);
}

/* Its sources are read already. */
static int check_mounts(const struct json *list, const struct stack *stack,
                        const struct recipes *recipes, struct err *err)
{
    struct json item;
    size_t idx = 0;
    for (bool more = json_first(list, &item); more; more = json_next(&item)) {
        const struct recipe *recipe = &recipes->items[idx++];
        for (size_t at = 0; at < recipe->n_mounts; at++) {
            const struct recipe_mount *mount = &recipe->mounts[at];
            if (mount->kind == MOUNT_SOURCE && !mount->commit.ptr &&
                !STR_NAMED(stack->sources, stack->n_sources, repository, mount->name)) {
                return json_fail(&item, err,
                                 "mounts[%zu].name: expected a repository of the stack's sources",
                                 at);
            }
        }
    }
    return 0;
}

static int check_smoke(const struct json *at, struct arena *arena UNUSED, void *out,
                       struct err *err)
{
    const struct stack *stack = out;
    return check_mounts(at, stack, &stack->smoke, err);
}

static int check_full(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    const struct stack *stack = out;
    for (size_t idx = 0; idx < stack->full.n; idx++) {
        const struct recipe *recipe = &stack->full.items[idx];
        if (recipe->rule.ptr || recipe->beside.target.series.ptr) {
            return json_fail(at, err, "%s: a full run is judged by that of its case",
                             recipe->rule.ptr ? "rule" : "target");
        }
    }
    return check_mounts(at, stack, &stack->full, err);
}

/* ---- stacks ---- */

static const struct json_form IMAGE_DIGEST = {.pattern = "^sha256:[0-9a-f]{64}$",
                                              .what = "sha256: and 64 hex digits"};
static const struct json_form IMAGE_TAG = {
    .pattern = "^[a-z0-9._:/-]+:[A-Za-z0-9_.-]+$", .max = 255, .what = "NAME:TAG"};
int check_stack(const struct json *at UNUSED, struct arena *arena UNUSED, void *out,
                struct err *err UNUSED)
{
    struct stack *stack = out;
    if (!stack->label.ptr) {
        stack->label = stack->framework;
    }
    return 0;
}

const struct json_field STACK_ROWS[13] = {
    ROW("id", struct stack, id, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("framework", struct stack, framework, JSON_REQUIRED, .form = &FORM_SLUG),
    ROW("label", struct stack, label, 0, .form = &FORM_LINE),
    ROW("image", struct stack, image, JSON_NULLABLE, .form = &FORM_SLUG),
    ROW("image_tag", struct stack, image_tag, JSON_NULLABLE, .form = &IMAGE_TAG),
    ROW("image_digest", struct stack, image_digest, JSON_NULLABLE, .form = &IMAGE_DIGEST),
    ROW("dataset", struct stack, dataset, JSON_NULLABLE, .form = &FORM_SLUG),
    ROW_LIST("sources", struct stack, sources, n_sources, PIN_ROWS, 0, .max = SOURCES_MAX,
             .check = check_pin),
    ROW_CONDITIONS(struct stack),
    ROW_PAIRS("env", struct stack, env, n_env, JSON_NULLABLE, .max = ENV_MAX, .get = check_env,
              .schema = ENV_RULES),
    ROW_LIST("commands", struct stack, commands, n_commands, COMMAND_ROWS, 0, .max = COMMANDS_MAX,
             .check = check_command, .rules = COMMAND_RULES),
    ROW_LIST("smoke", struct stack, smoke.items, smoke.n, RECIPE_ROWS, 0, .max = RECIPES_MAX,
             .check = check_recipe, .get = check_smoke, .rules = RECIPE_RULES),
    ROW_LIST("full", struct stack, full.items, full.n, RECIPE_ROWS, 0, .max = RECIPES_MAX,
             .check = check_recipe, .get = check_full, .rules = RECIPE_RULES),
};
