/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps need on the nodes: images, the bundled workload's program, packed data. What is there already stays. */
#include "base/base.h"

#include "run/run_impl.h"

#include "fleet/node_image.h"
#include "fleet/stage.h"
#include "report/source.h"
#include "store/dataset_store.h"
#include "store/source_store.h"

#define OVERLAY_FILE_MAX (64u << 20)

static bool is_to_run(const struct runner *r, const struct plan_step *step)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (r->units[idx].step == step && r->units[idx].state < UNIT_FINISHED) {
            return true;
        }
    }
    return false;
}

/* ---- images ---- */

const struct runtime_image *run_image_of(const struct runner *r, const struct plan_step *step)
{
    return STR_NAMED(r->images.items, r->images.n, digest, step->image_digest);
}

/* In the store an image is kept under its id, where that is not another one by now, or under the reference that it was fetched by. */
static const char *name_in_store(struct runner *r, const struct store *store,
                                 const struct plan_step *step)
{
    struct image_info info;
    struct err ignored = {0};
    const char *id = str_z(r->arena, step->image);
    return !store || (image_open(r->arena, store, id, &info, &ignored) == 0 &&
                      str_eq_z(step->image_digest, oci_digest_of(info.pins.manifest).text))
               ? id
               : arena_printf(r->arena, "%.*s@%.*s", STR_ARG(step->image_name),
                              STR_ARG(step->image_digest));
}

static int spec_of(struct runner *r, const struct plan_step *step, struct image_spec *ret_spec,
                   struct err *err)
{
    struct image_spec spec = {.platform = oci_platform_default(), .bytes = -1};
    if (oci_ref_parse(r->arena, step->image_name, &spec.ref, err) < 0 ||
        oci_digest_parse(step->image_digest, spec.pins.digest, err) < 0) {
        return -1;
    }
    spec.pins.has_digest = true;
    if (step->image_id.ptr) { /* of a lock: then the digest is the manifest's own */
        spec.pins.has_manifest = spec.pins.has_config = true;
        memcpy(spec.pins.manifest, spec.pins.digest, SHA256_BYTES);
        if (oci_digest_parse(step->image_id, spec.pins.config, err) < 0) {
            return -1;
        }
    }
    *ret_spec = spec;
    return 0;
}

/* A node that answers but gets no image is not lost. */
static void blame_registry(struct runner *r, int n_failed)
{
    for (size_t idx = 0; n_failed > 0 && idx < r->fleet.n_nodes; idx++) {
        struct err *why = &r->fleet.nodes[idx].err;
        if (!r->fleet.nodes[idx].is_left_out &&
            (why->code == ERR_NET || why->code == ERR_TIMEOUT)) {
            why->code = ERR_CONTAINER;
        }
    }
}

static int provide_image(struct runner *r, struct store *store, const struct plan_step *step,
                         struct err *err)
{
    const struct node_image_opts opts = {.store = store,
                                         .kind = r->frozen.plan.runtime,
                                         .deadline_ns = r->frozen.plan.deadline_s * NS_PER_S};
    struct node_image_report report = {0};
    struct event_fields fields = {.case_id = step->case_id, .text = step->image_digest};
    struct image_spec spec;
    if (spec_of(r, step, &spec, err) < 0) {
        return err_wrap(err, "image %.*s", STR_ARG(step->image));
    }
    spec.name = name_in_store(r, store, step);
    int n_failed = node_images_provide(r->arena, &r->fleet, &spec, &opts, &report, err);
    if (n_failed < 0 && err->code == ERR_NOT_FOUND) {
        err->code = ERR_FETCH;
        return err_wrap(err, "image %.*s: reperf data fetch %s brings it", STR_ARG(step->image),
                        spec.name);
    }
    blame_registry(r, n_failed);
    if (n_failed < 0 || run_judge_nodes(r, n_failed, err) < 0) {
        return err_wrap(err, "image %.*s", STR_ARG(step->image));
    }
    VEC_PUSH(&r->images, report.image);
    struct runtime_image *image = &r->images.items[r->images.n - 1];
    image->digest = step->image_digest;
    if (!image->id
             .ptr) { /* no remaining node has it: a resumed step gets a name, but is never started */
        image->id = image->digest;
    }
    events_write(&r->events, EV_IMAGE_PROVIDED, &fields);
    return 0;
}

static int provide_images(struct runner *r, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    bool has_registry = r->fleet.inventory->registry.ptr != NULL;
    const struct plan *plan = &r->frozen.plan;
    if (plan->runtime == RUNTIME_NONE) {
        return 0;
    }
    if (!has_registry && store_open(r->arena, r->opts->store, &store, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < plan->n_steps && !r->stop_signal; idx++) {
        const struct plan_step *step = &plan->steps[idx];
        if (is_to_run(r, step) && step->image_digest.ptr && !run_image_of(r, step) &&
            provide_image(r, has_registry ? NULL : &store, step, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- program and data ---- */

static bool needs_program(const struct runner *r)
{
    const struct plan *plan = &r->frozen.plan;
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        if (plan->runtime == RUNTIME_NONE && is_to_run(r, &plan->steps[idx]) &&
            str_eq_z(plan->steps[idx].argv[0], TRAIN_PROGRAM)) {
            return true;
        }
    }
    return false;
}

struct things { /* to be staged; parallel to them runner.places, their placeholders in an argv */
    VEC(struct stage_item) items;
};

static void things_cleanup(struct things *things)
{
    VEC_RELEASE(&things->items);
}

static void add_thing(struct runner *r, struct things *things, const char *place,
                      struct stage_item item)
{
    VEC_PUSH(&things->items, item);
    VEC_PUSH(&r->places, place);
}

static const char *folder_of(struct arena *arena, const struct plan_mount *mount)
{
    return mount->kind == MOUNT_SOURCE ? source_folder_name(arena, mount->version)
                                       : str_z(arena, mount->version);
}

char *run_place_of(struct arena *arena, const struct plan_mount *mount)
{
    return arena_printf(arena, "/@reperf-%s-%s@", RECIPE_MOUNT_KIND_NAMES[mount->kind],
                        folder_of(arena, mount));
}

/* Where its folder lies below a node's work folder. */
static char *run_target_of(struct arena *arena, const struct plan_mount *mount)
{
    static const char *const FOLDERS[] = {
        [MOUNT_OVERLAY] = "overlay", [MOUNT_SOURCE] = "source", [MOUNT_DATASET] = "data"};
    return arena_printf(arena, "%s/%s", FOLDERS[mount->kind], folder_of(arena, mount));
}

/* The commit's files, checked by their trees' hashes; made once a run. */
static int check_out(struct runner *r, const struct plan_mount *mount, const char **ret_folder,
                     struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    const struct net_opts net = {.is_offline = true, .clock = r->opts->clock};
    struct sources sources;
    struct source_tree tree;
    const char *folder =
        arena_printf(r->arena, "%s/sources/%s", r->dir.folder, folder_of(r->arena, mount));
    *ret_folder = folder;
    if (fs_is_dir(folder)) {
        return 0;
    }
    if (store_open(r->arena, r->opts->store, &store, err) < 0 ||
        sources_init(&sources, r->arena, &store, &net, err) < 0 ||
        source_verify(&sources, str_z(r->arena, mount->name), str_z(r->arena, mount->version),
                      false, &tree, err) < 0 ||
        fs_mkdir_p(fs_join(r->arena, r->dir.folder, "sources"), err) < 0) {
        return -1;
    }
    return source_checkout(&sources, &tree, folder, err);
}

/* As it was planned with, or not at all. */
static int check_tree(struct runner *r, const struct plan_mount *mount, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    struct dataset_record record;
    if (store_open(r->arena, r->opts->store, &store, err) < 0 ||
        dataset_tree_read(r->arena, &store, str_z(r->arena, mount->name), &record, err) < 0) {
        return -1;
    }
    const struct hex hex = sha256_hex_of(record.seen.list_sha256);
    return str_eq_z(mount->version, hex.text)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "dataset %.*s: the run was planned with the tree of list SHA-256 %.*s, "
                         "found %s",
                         STR_ARG(mount->name), STR_ARG(mount->version), hex.text);
}

/* Outside a container nothing keeps a program from writing beside its own files: the evidence is not for that. */
static int copy_overlay(struct runner *r, const struct plan_mount *mount, const char **ret_folder,
                        struct err *err)
{
    const char *from =
        fs_join(r->arena, r->dir.evidence, rundir_of_name(r->arena, RUNDIR_OVERLAY, mount->name));
    const char *to =
        arena_printf(r->arena, "%s/overlays/%s", r->dir.folder, folder_of(r->arena, mount));
    struct fs_names names;
    struct str text;
    *ret_folder = from;
    if (!r->fleet.inventory->is_local || r->frozen.plan.runtime != RUNTIME_NONE) {
        return 0;
    }
    *ret_folder = to;
    if (fs_walk(r->arena, from, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (fs_read(r->arena, fs_join(r->arena, from, names.items[idx]), OVERLAY_FILE_MAX, &text,
                    err) < 0 ||
            rundir_write(r->arena, to, names.items[idx], text, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int add_mount(struct runner *r, struct things *things, const struct plan_mount *mount,
                     struct err *err)
{
    const char *place = run_place_of(r->arena, mount);
    struct stage_item item = {.kind = STAGE_FOLDER, .may_be_shared = true};
    for (size_t idx = 0; idx < r->places.n; idx++) {
        if (strcmp(r->places.items[idx], place) == 0) {
            return 0;
        }
    }
    item.target = run_target_of(r->arena, mount);
    if (mount->kind == MOUNT_OVERLAY) {
        if (copy_overlay(r, mount, &item.source, err) < 0) {
            return -1;
        }
    } else if (mount->kind == MOUNT_SOURCE) {
        if (check_out(r, mount, &item.source, err) < 0) {
            return -1;
        }
    } else {
        item.source = str_z(r->arena, mount->folder);
        if (check_tree(r, mount, err) < 0) {
            return -1;
        }
    }
    add_thing(r, things, place, item);
    return 0;
}

static int collect_things(struct runner *r, struct things *things, struct err *err)
{
    const struct plan *plan = &r->frozen.plan;
    struct stage_item item;
    /* Outside containers this machine's own program and packed data are used where they are. */
    bool is_elsewhere = !r->fleet.inventory->is_local || plan->runtime != RUNTIME_NONE;
    if (is_elsewhere && needs_program(r)) {
        if (stage_program_item(r->arena, planner_train_path(r->arena, r->opts->self), &item, err) <
            0) {
            return -1;
        }
        add_thing(r, things, RUN_PLACE_PROGRAM, item);
    }
    if (is_elsewhere && plan->data.folder.ptr) {
        if (stage_packed_item(r->arena, plan->data.folder.ptr, &item, err) < 0) {
            return -1;
        }
        add_thing(r, things, RUN_PLACE_DATA, item);
    }
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        const struct plan_step *step = &plan->steps[idx];
        for (size_t at = 0; at < step->n_mounts && is_to_run(r, step); at++) {
            if (add_mount(r, things, &step->mounts[at], err) < 0) {
                return err_wrap(err, "case %.*s", STR_ARG(step->case_id));
            }
        }
    }
    return 0;
}

/* A container's engine takes a folder by a path that needs no quoting. */
static int check_paths(const struct runner *r, size_t node, struct err *err)
{
    const char *const *paths = r->nodes[node].paths;
    for (size_t idx = 0; idx < r->places.n && r->frozen.plan.runtime != RUNTIME_NONE; idx++) {
        if (!container_is_path(str_of(paths[idx]))) {
            return err_set(err, ERR_CONTAINER,
                           "%.*s: \"%s\" cannot be mounted: expected a work folder without blanks, "
                           "$ ` and ,",
                           STR_ARG(r->fleet.nodes[node].spec->name), paths[idx]);
        }
    }
    return 0;
}

static int stage_files(struct runner *r, struct err *err)
{
    CLEANUP(things) struct things things = {0};
    struct stage_report report = {0};
    /* Packed data are large, and read for their digests once. */
    const struct stage_opts opts = {
        .cache_path = fs_join(r->arena, r->opts->state, "cache/digests"), .clock = r->opts->clock};
    r->places.n = 0;
    if (collect_things(r, &things, err) < 0) {
        return -1;
    }
    if (things.items.n == 0) {
        return 0;
    }
    int n_failed =
        stage_items(r->arena, &r->fleet, &opts,
                    (struct stage_list){things.items.items, things.items.n}, &report, err);
    if (run_judge_nodes(r, n_failed, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        if (!r->nodes[idx].is_bad) {
            r->nodes[idx].paths = report.nodes[idx].paths;
            if (check_paths(r, idx, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* ---- mpirun: all nodes get the words of the first ---- */

static enum step find_program(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    const char **programs = ctx;
    return node->remote->ops->program(node->remote, &programs[node_idx], err);
}

static int check_same(const struct runner *r, const size_t nodes[2], const char *here,
                      const char *there, struct err *err)
{
    return strcmp(here, there) == 0
               ? 0
               : err_set(err, ERR_NODE,
                         "mpirun starts what has one path on all nodes, but it is %.120s on %.*s "
                         "and %.120s on %.*s: give the nodes one work_folder that allows "
                         "execution, or use launcher ssh",
                         here, STR_ARG(r->fleet.nodes[nodes[0]].spec->name), there,
                         STR_ARG(r->fleet.nodes[nodes[1]].spec->name));
}

static int check_mpirun(struct runner *r, struct err *err)
{
    size_t n_nodes = r->fleet.n_nodes;
    const char **programs = arena_array(r->arena, const char *, n_nodes + 1);
    size_t pair[2] = {n_nodes, 0};
    int n_failed = fleet_each(&r->fleet, REMOTE_EXEC_DEADLINE_NS, find_program, programs, err);
    if (run_judge_nodes(r, n_failed, err) < 0) {
        return -1;
    }
    for (pair[1] = 0; pair[1] < n_nodes; pair[1]++) {
        const struct run_node *there = &r->nodes[pair[1]];
        pair[0] = pair[0] == n_nodes && !there->is_bad ? pair[1] : pair[0];
        if (there->is_bad) {
            continue;
        }
        if (check_same(r, pair, programs[pair[0]], programs[pair[1]], err) < 0) {
            return -1;
        }
        for (size_t at = 0; there->paths && at < r->places.n; at++) {
            if (check_same(r, pair, r->nodes[pair[0]].paths[at], there->paths[at], err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

static bool goes_by_mpirun(const struct runner *r)
{
    bool has_wide = false;
    for (size_t idx = 0; idx < r->n_units; idx++) {
        has_wide = has_wide ||
                   (r->units[idx].state < UNIT_FINISHED && plan_step_nodes(r->units[idx].step) > 1);
    }
    return has_wide && !r->fleet.inventory->is_local && r->frozen.plan.launcher == LAUNCHER_MPIRUN;
}

int run_stage(struct runner *r, struct err *err)
{
    if (provide_images(r, err) < 0) {
        return -1;
    }
    if (r->stop_signal) {
        return 0;
    }
    return stage_files(r, err) < 0 ? -1 : goes_by_mpirun(r) ? check_mpirun(r, err) : 0;
}
