/* SPDX-License-Identifier: Apache-2.0 */
/* Planning a run and freezing it. */
#include "base/base.h"

#include "run/run.h"

#include <errno.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/publish.h"
#include "base/secret.h"
#include "base/temp.h"
#include "codec/digest.h"
#include "evidence/environment.h"
#include "judge/bind.h"
#include "load/load.h"
#include "load/load_inventory.h"
#include "load/places.h"
#include "report/each_node.h"
#include "report/plan.h"
#include "run/run_data.h"
#include "store/image_store.h"
#include "sys/tree.h"

/* A run must not change what it is checked against, or its name. */
static bool is_published(struct str key)
{
    static const char *const KEYS[] = {"schema_version", "id",      "title",    "source",
                                       "logs",           "cells",   "baseline", "rule",
                                       "format",         "formats", NULL};
    return str_eq_any(key, KEYS);
}

/* ret_is_text: of values whose names are free, all of which are text. */
static int check_path(struct str setting, bool *ret_is_text, struct err *err)
{
    struct json_path_part parts[JSON_PATH_PARTS_MAX];
    struct str path;
    struct str value;
    size_t n = 0;
    if (json_path_parse(setting, parts, &n, &path, &value, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (parts[idx].key.ptr && is_published(parts[idx].key)) {
            return err_set(err, ERR_USAGE,
                           "%.*s: \"%.*s\" is what was published, and cannot be overridden",
                           STR_ARG(path), STR_ARG(parts[idx].key));
        }
    }
    struct str holder = n > 1 ? parts[n - 2].key : STR_EMPTY;
    if (str_eq_z(holder, "env") && secret_is(parts[n - 1].key, value)) {
        return err_set(err, ERR_USAGE,
                       "%.*s: looks like a secret, and what is set is kept in the run's evidence "
                       "for others to read; have it in the environment of the program instead",
                       STR_ARG(path));
    }
    *ret_is_text = str_eq_z(holder, "env") || str_eq_z(holder, "conditions");
    return 0;
}

static int run_override(struct arena *arena, const struct opt_list *settings, struct str *text,
                        struct json_override **ret_overrides, struct err *err)
{
    struct json_override *overrides = arena_array(arena, struct json_override, settings->n + 1);
    if (settings->n > PLAN_OVERRIDES_MAX) {
        return err_set(err, ERR_USAGE, "-C: more than %d", PLAN_OVERRIDES_MAX);
    }
    for (size_t idx = 0; idx < settings->n; idx++) {
        struct str setting = str_of(settings->items[idx]);
        bool is_text = false;
        if (check_path(setting, &is_text, err) < 0 ||
            json_override(arena, *text, setting, is_text, &overrides[idx], err) < 0) {
            return err_wrap(err, "-C");
        }
        *text = overrides[idx].text;
    }
    *ret_overrides = overrides;
    return 0;
}

/* --image ID=NAME@sha256:HEX pins an image, whatever a lock or a description says. */
static int read_given(struct arena *arena, const char *text, struct plan_image *ret_image,
                      struct err *err)
{
    struct oci_ref ref;
    const char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        return err_set(err, ERR_USAGE, "--image %.100s: expected ID=NAME@sha256:DIGEST", text);
    }
    if (oci_ref_parse(arena, str_of(equals + 1), &ref, err) < 0) {
        return err_wrap(err, "--image");
    }
    if (!ref.has_digest) {
        return err_set(err, ERR_USAGE,
                       "--image %.100s: without a digest it is unknown what will run; expected "
                       "ID=NAME@sha256:DIGEST",
                       text);
    }
    *ret_image =
        (struct plan_image){.id = str_dup(arena, (struct str){text, (size_t)(equals - text)}),
                            .name = str_of(oci_ref_name(arena, &ref)),
                            .digest = str_dup(arena, str_of(oci_digest_of(ref.sha256).text)),
                            .is_given = true};
    return 0;
}

static int read_images(struct arena *arena, const struct run_opts *opts,
                       struct planner_opts *ret_plan, struct err *err)
{
    ret_plan->images = arena_array(arena, struct plan_image, opts->images.n + 1);
    for (size_t idx = 0; idx < opts->images.n; idx++) {
        struct plan_image image = {0};
        if (read_given(arena, opts->images.items[idx], &image, err) < 0) {
            return -1;
        }
        if (STR_NAMED(ret_plan->images, ret_plan->n_images, id, image.id)) {
            return err_set(err, ERR_USAGE, "--image: %s is named twice", image.id.ptr);
        }
        ret_plan->images[ret_plan->n_images++] = image;
    }
    return 0;
}

/* One that no case names, and nobody describes, was meant for another. */
static int check_given(struct arena *arena, const struct planner_opts *plan,
                       const struct report *report, struct err *err)
{
    for (size_t idx = 0; idx < plan->n_images; idx++) {
        const struct plan_image *image = &plan->images[idx];
        const char *file = arena_printf(arena, "%s/image.json", image->id.ptr);
        if (!image->is_asked && !fs_exists(places_path(arena, plan->root, "images", file))) {
            return err_set(err, ERR_USAGE, "--image %.*s: no case of %.*s runs in that image",
                           STR_ARG(str_sub(image->id, 0, 100)), STR_ARG(report->id));
        }
    }
    return 0;
}

#define TEXT_MAX (64u << 20)

/* This machine's GPUs are counted, those of others are as the inventory says until they are looked at. */
static int load_nodes(struct arena *arena, const struct run_opts *opts, struct inventory *inventory,
                      struct err *err)
{
    if (inventory_load(arena, opts->ctx->root, opts->nodes ? opts->nodes : INVENTORY_LOCAL,
                       inventory, err) < 0) {
        return -1;
    }
    if (inventory->is_local) {
        inventory->nodes[0].gpus = environment_gpus();
    }
    return 0;
}

static int expand(struct arena *arena, struct run_prepared *prepared, struct err *err)
{
    struct str left_out;
    if (prepared->inventory.is_local) {
        return err_set(err, ERR_USAGE, "--each-node: %.*s is this machine alone",
                       STR_ARG(prepared->inventory.id));
    }
    if (report_each_node(arena, &prepared->inventory, &prepared->report, &left_out, err) < 0) {
        return -1;
    }
    if (left_out.len) {
        log_line(LOG_INFO, "no node of %.*s has what these need, and they are left out: %.*s",
                 STR_ARG(prepared->inventory.id), STR_ARG(left_out));
    }
    return 0;
}

/* The plan is made from exactly the bytes that are frozen. */
int run_read(struct arena *arena, const struct run_opts *opts, struct run_prepared *ret_prepared,
             struct err *err)
{
    struct run_prepared prepared = {0};
    struct report_file file = {
        .path = "run -- COMMAND", .root = opts->ctx->root, .text = opts->command.report_text};
    if ((!file.text.ptr &&
         load_report_file(arena, opts->ctx->root, opts->report, &file, err) < 0) ||
        run_override(arena, &opts->overrides, &file.text, &prepared.overrides, err) < 0 ||
        load_report_decode(arena, &file, &prepared.report, err) < 0) {
        return -1;
    }
    prepared.report_sha256 = digest_text_hex(arena, file.text);
    prepared.report_text = file.text;
    if (opts->data && strcmp(opts->data, RUN_DATA_NONE) != 0 &&
        run_data_find(arena, opts->ctx->root, opts->ctx->store, opts->data, &prepared.data, err) <
            0) {
        return -1;
    }
    if (load_nodes(arena, opts, &prepared.inventory, err) < 0 ||
        (opts->plan.asked.is_each_node && expand(arena, &prepared, err) < 0)) {
        return -1;
    }
    *ret_prepared = prepared;
    return 0;
}

/* Otherwise a missing rule would only be noticed at the end. */
static int check_rules(struct arena *arena, const char *root, const char *format_path,
                       const struct plan *plan, struct err *err)
{
    CLEANUP(format_set) struct format_set formats = {0};
    if ((format_path ? load_format_file(arena, root, format_path, &formats, err)
                     : load_formats(arena, root, &formats, err)) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        struct plan_step step = plan->steps[idx]; /* the plan outlives these formats */
        bind_step(arena, &formats, &step);
        if (step.bound.why && (step.rule.ptr || step.cause == ERR_NONE)) {
            return err_set(err, ERR_MANIFEST, "case %.*s: %s%.*s%s%s: %s", STR_ARG(step.case_id),
                           step.recipe.ptr ? "recipe \"" : "", STR_ARG(step.recipe),
                           step.recipe.ptr ? "\": " : "", step.bound.key, step.bound.why);
        }
    }
    return 0;
}

int run_plan(struct arena *arena, const struct run_opts *opts, struct run_prepared *prepared,
             struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    struct planner_opts plan = opts->plan;
    if (read_images(arena, opts, &plan, err) < 0) {
        return -1;
    }
    if (plan.n_images && prepared->inventory.runtime == RUNTIME_NONE) {
        return err_set(err, ERR_USAGE,
                       "--image: nodes %.*s have runtime none, nothing there runs in an image; "
                       "set runtime in the inventory",
                       STR_ARG(str_sub(prepared->inventory.id, 0, 100)));
    }
    bool has_store = fs_is_dir(fs_join(arena, opts->ctx->store, "blobs/sha256"));
    if (has_store && store_open(arena, opts->ctx->store, &store, err) < 0) {
        return -1;
    }
    plan.asked.report_sha256 = prepared->report_sha256;
    plan.asked.data = prepared->data;
    plan.train_path = planner_train_path(arena, opts->ctx->self);
    plan.inventory = &prepared->inventory;
    plan.clock = opts->ctx->clock;
    plan.root = opts->ctx->root;
    plan.store = has_store ? &store : NULL;
    if (plan_make(arena, &prepared->report, &plan, &prepared->plan, err) < 0 ||
        check_given(arena, &plan, &prepared->report, err) < 0) {
        return -1;
    }
    prepared->plan.overrides = prepared->overrides;
    prepared->plan.n_overrides = opts->overrides.n;
    return check_rules(arena, opts->ctx->root, opts->command.format_path, &prepared->plan, err);
}

/* ---- freezing ---- */

static int freeze(struct arena *arena, const char *evidence, enum rundir_kind kind, struct str text,
                  struct err *err)
{
    return rundir_write(arena, evidence, RUNDIR_FILES[kind].name, text, err);
}

/* The logs of a step without a format are read by whichever fits. */
static bool wants_format(const struct plan *plan, const char *id)
{
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        const struct plan_step *step = &plan->steps[idx];
        if (step->format.ptr ? str_eq_z(step->format, id) : step->cause == ERR_NONE) {
            return true;
        }
    }
    return false;
}

static int freeze_formats(struct arena *arena, const struct run_opts *opts, const char *evidence,
                          const struct plan *plan, struct err *err)
{
    const char *own = opts->command.format_path;
    struct placed only = {.path = own, .stem = own ? str_z(arena, plan->steps[0].format) : NULL};
    struct placed_list files = {.items = &only, .n = 1};
    if (!own && places_list(arena, opts->ctx->root, "formats", FORMATS_MAX, &files, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n; idx++) {
        const char *id = files.items[idx].stem;
        struct str text;
        if (!wants_format(plan, id)) {
            continue;
        }
        if (fs_read(arena, files.items[idx].path, JSON_TEXT_MAX, &text, err) < 0) {
            err->code = ERR_MANIFEST;
            return -1;
        }
        if (rundir_write(arena, evidence, rundir_of_name(arena, RUNDIR_FORMAT, str_of(id)), text,
                         err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* A vocabulary other than the program's own is part of the evidence. */
static int freeze_vocabulary(struct arena *arena, const struct run_opts *opts, const char *evidence,
                             struct err *err)
{
    const char *path = fs_join(arena, opts->ctx->root, VOCABULARY_FILE);
    struct str text;
    if (!fs_exists(path)) {
        return 0;
    }
    if (json_read_text(arena, path, &text, err) < 0) {
        return -1;
    }
    return str_eq(text, vocabulary_builtin_text())
               ? 0
               : freeze(arena, evidence, RUNDIR_VOCABULARY, text, err);
}

/* The last of what is frozen: it holds the digests of the others. */
static int freeze_lock(struct arena *arena, const struct run_opts *opts,
                       const struct run_prepared *prepared, struct str run_id, const char *evidence,
                       struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    struct frozen_digest programs[2] = {{.name = STR_LIT("reperf")},
                                        {.name = STR_LIT(TRAIN_PROGRAM)}};
    const char *train = planner_train_path(arena, opts->ctx->self);
    struct frozen frozen = {.folder = evidence,
                            .run_id = run_id,
                            .report = prepared->report,
                            .plan = prepared->plan,
                            .programs = programs,
                            .n_programs = fs_exists(train) ? 2 : 1};
    if (digest_file_hex(arena, opts->ctx->self, &programs[0].sha256, err) < 0 ||
        (frozen.n_programs > 1 && digest_file_hex(arena, train, &programs[1].sha256, err) < 0) ||
        frozen_load_files(arena, &frozen, err) < 0) {
        return -1;
    }
    frozen_encode_lock(&frozen, &text);
    return freeze(arena, evidence, RUNDIR_LOCK, strbuf_str(&text), err);
}

static int freeze_environment(struct arena *arena, const struct run_opts *opts,
                              const char *evidence, struct err *err)
{
    const char *train = planner_train_path(arena, opts->ctx->self);
    const struct run_command *command = &opts->command;
    struct str text;
    struct code code;
    if (command->code.folder &&
        code_note(arena, opts->ctx->clock, &command->code, &code, err) < 0) {
        return -1;
    }
    const struct environment_opts env = {.root = opts->ctx->root,
                                         .command = command->code.folder ? &code : NULL,
                                         .self = opts->ctx->self,
                                         .train_path = fs_exists(train) ? train : NULL,
                                         .work_folder = opts->ctx->state,
                                         .clock = opts->ctx->clock};
    return environment_local(arena, &env, &text, err) < 0
               ? -1
               : freeze(arena, evidence, RUNDIR_LOCAL, text, err);
}

/* Where a run was says nothing of this machine alone: environment/local.json does. */
static int freeze_inventory(struct arena *arena, const struct inventory *inventory,
                            const char *evidence, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    if (inventory->is_local && inventory->runtime == RUNTIME_NONE) {
        return 0;
    }
    inventory_encode(inventory, &text);
    return freeze(arena, evidence, RUNDIR_INVENTORY, strbuf_str(&text), err);
}

/* Exactly the files that were planned with. */
static int freeze_overlay(struct arena *arena, const char *evidence, const struct plan_mount *mount,
                          struct err *err)
{
    const char *there = rundir_of_name(arena, RUNDIR_OVERLAY, mount->name);
    struct tree_list list;
    struct str version;
    struct str text;
    if (tree_hash_folder(arena, mount->folder.ptr, &list, &version, err) < 0) {
        return -1;
    }
    if (!str_eq(version, mount->version)) {
        return err_set(err, ERR_INTEGRITY, "%s: changed while the run was planned",
                       mount->folder.ptr);
    }
    for (size_t idx = 0; idx < list.n; idx++) {
        const char *path = list.files[idx].path;
        if (fs_read(arena, fs_join(arena, mount->folder.ptr, path), TEXT_MAX, &text, err) < 0 ||
            rundir_write(arena, evidence, fs_join(arena, there, path), text, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int freeze_overlays(struct arena *arena, const struct plan *plan, const char *evidence,
                           struct err *err)
{
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        const struct plan_step *step = &plan->steps[idx];
        for (size_t at = 0; at < step->n_mounts && step->cause == ERR_NONE; at++) {
            const struct plan_mount *mount = &step->mounts[at];
            const char *folder = rundir_of_name(arena, RUNDIR_OVERLAY, mount->name);
            if (mount->kind == MOUNT_OVERLAY && !fs_is_dir(fs_join(arena, evidence, folder)) &&
                freeze_overlay(arena, evidence, mount, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static int freeze_all(struct arena *arena, const struct run_opts *opts,
                      const struct run_prepared *prepared, struct str run_id, const char *evidence,
                      struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    plan_encode(&prepared->plan, &text);
    if (text.is_full) {
        return err_set(err, ERR_INTERNAL, "plan: more than %u bytes", TEXT_MAX);
    }
    if (freeze(arena, evidence, RUNDIR_REPORT, prepared->report_text, err) < 0 ||
        freeze(arena, evidence, RUNDIR_PLAN, strbuf_str(&text), err) < 0) {
        return -1;
    }
    if (freeze_inventory(arena, &prepared->inventory, evidence, err) < 0 ||
        freeze_formats(arena, opts, evidence, &prepared->plan, err) < 0 ||
        freeze_vocabulary(arena, opts, evidence, err) < 0 ||
        freeze_overlays(arena, &prepared->plan, evidence, err) < 0 ||
        freeze_environment(arena, opts, evidence, err) < 0) {
        return -1;
    }
    return freeze_lock(arena, opts, prepared, run_id, evidence, err);
}

static int choose_id(struct arena *arena, const struct run_opts *opts, struct str *ret_id,
                     struct err *err)
{
    char id[RUN_ID_SIZE];
    uint32_t random = 0;
    if (opts->run_id) {
        *ret_id = str_of(opts->run_id);
        return run_id_is_valid(*ret_id) ? 0
                                        : err_set(err, ERR_USAGE,
                                                  "--run-id %.60s: expected a name like "
                                                  "20261121T115300.000Z-1a2b3c4d",
                                                  opts->run_id);
    }
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return err_set(err, ERR_INTERNAL, "getrandom: %s", err_errno_text(errno));
    }
    run_id_make(opts->ctx->clock.wall_ns(opts->ctx->clock.ctx), random, id);
    *ret_id = str_dup(arena, str_of(id));
    return 0;
}

int run_create(struct arena *arena, const struct run_opts *opts,
               const struct run_prepared *prepared, struct rundir *ret_dir, struct err *err)
{
    struct rundir dir;
    struct str id = STR_EMPTY;
    CLEANUP(temp) struct temp *fresh = NULL;
    if (owner_check(opts->ctx->state, err) < 0 || choose_id(arena, opts, &id, err) < 0) {
        return -1;
    }
    rundir_paths(arena, opts->ctx->state, id, &dir);
    if (fs_exists(dir.folder)) {
        return err_set(err, ERR_USAGE, "run %.*s exists already", STR_ARG(id));
    }
    /* Made under a temporary name and renamed: an existing run is complete. */
    const char *runs = fs_join(arena, opts->ctx->state, "runs/");
    if (fs_mkdir_p(runs, err) < 0 || temp_folder(runs, &fresh, err) < 0 ||
        freeze_all(arena, opts, prepared, id, fs_join(arena, fresh->path, "evidence"), err) < 0 ||
        publish_name(fresh->path, dir.folder, err) < 0) {
        return -1;
    }
    *ret_dir = dir;
    return 0;
}
