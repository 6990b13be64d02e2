/* SPDX-License-Identifier: Apache-2.0 */
/* Where the steps of a plan run: ranks, nodes, image. */
#include "base/base.h"

#include "base/fs.h"
#include "load/places.h"
#include "report/hostlist.h"
#include "report/wants.h"
#include "run/planner_impl.h"
#include "store/dataset_store.h"
#include "store/image_store.h"
#include "store/lock_file.h"
#include "store/source_store.h"

/* "local" where that is all, or the nodes that the case is fixed to; else how many of which inventory: the runner chooses those that are
   free. */
static void name_nodes(struct arena *arena, const struct inventory *inventory,
                       struct plan_step *step)
{
    const struct report_case *c = step->bound.of_case;
    if (c->n_on) {
        step->node = hostlist_fold(arena, c->on, c->n_on);
        return;
    }
    const char *text = arena_printf(arena, "%lld of %.*s (%zu nodes)", (long long)step->n_nodes,
                                    STR_ARG(inventory->id), inventory->n_nodes);
    step->node = inventory->is_local ? STR_LIT(INVENTORY_LOCAL) : str_of(text);
}

void plan_place_smoke(struct arena *arena, const struct planner_opts *opts,
                      const struct report_case *c, struct plan_step *step)
{
    int64_t n_there = (int64_t)opts->inventory->n_nodes;
    step->n_ranks = plan_smoke_ranks(c);
    step->n_nodes = c->nodes < SMOKE_RANKS_MAX ? c->nodes : SMOKE_RANKS_MAX;
    /* Fewer nodes: as many ranks on those that there are, and the condition says so. */
    while (step->n_nodes > n_there || step->n_ranks % step->n_nodes != 0) {
        step->n_nodes--;
    }
    plan_set_condition(step, "nodes", str_printf(arena, "%lld", (long long)step->n_nodes));
    name_nodes(arena, opts->inventory, step);
}

void plan_place_full(struct arena *arena, const struct planner_opts *opts,
                     const struct report_case *c, struct plan_step *step)
{
    int64_t n_fit = 0;
    int64_t most = 0;
    step->n_ranks = plan_full_ranks(c);
    step->n_nodes = c->nodes;
    step->gpus_per_node = c->gpus_per_node;
    for (size_t idx = 0; idx < opts->inventory->n_nodes; idx++) {
        const struct inventory_node *node = &opts->inventory->nodes[idx];
        n_fit += plan_step_fits(step, node);
        most = node->gpus > most ? node->gpus : most;
    }
    name_nodes(arena, opts->inventory, step);
    if ((int64_t)opts->inventory->n_nodes < c->nodes) {
        plan_cannot(step, ERR_NODE,
                    arena_printf(arena, "needs %lld nodes: the inventory \"%.*s\" has %zu",
                                 (long long)c->nodes, STR_ARG(opts->inventory->id),
                                 opts->inventory->n_nodes),
                    NULL);
    }
    if (n_fit < c->nodes) {
        plan_cannot(step, ERR_NODE,
                    arena_printf(arena, "needs %lld GPUs a node: %s has %lld",
                                 (long long)c->gpus_per_node,
                                 opts->inventory->is_local ? "this machine" : "no other node",
                                 (long long)most),
                    NULL);
    }
}

/* ---- image ---- */

static int read_described(struct planner *p, struct str id, struct plan_image *ret_image,
                          struct err *err)
{
    struct arena *arena = p->arena;
    const char *root = p->opts->root;
    struct image_spec spec;
    const char *name = arena_printf(arena, "%s/image.json", id.ptr);
    if (!fs_exists(places_path(arena, root, "images", name))) {
        return 0;
    }
    if (image_spec_load(arena, root, NULL, id.ptr, &spec, err) < 0) {
        return -1;
    }
    const char *folder = places_path(arena, root, "images", id.ptr);
    const char *own = arena_printf(arena, "%s/images/%s", root, id.ptr);
    *ret_image = (struct plan_image){.id = id,
                                     .name = str_of(oci_ref_name(arena, &spec.ref)),
                                     .is_built = spec.is_local,
                                     .cuda = spec.cuda,
                                     .instead = spec.instead,
                                     .n_instead = spec.n_instead,
                                     .source = strcmp(folder, own) == 0 ? id : str_of(folder)};
    if (spec.pins.has_manifest || spec.pins.has_digest) {
        const uint8_t *sha256 = spec.pins.has_manifest ? spec.pins.manifest : spec.pins.digest;
        ret_image->digest = str_dup(arena, str_of(oci_digest_of(sha256).text));
        ret_image->config = spec.pins.has_config
                                ? str_dup(arena, str_of(oci_digest_of(spec.pins.config).text))
                                : STR_EMPTY;
    }
    return 0;
}

int plan_find_image(struct planner *p, struct str id, const struct plan_image **ret_image,
                    struct err *err)
{
    static const struct plan_image NONE = {0};
    struct plan_image *found =
        id.ptr ? STR_NAMED(p->opts->images, p->opts->n_images, id, id) : NULL;
    if (found) {
        found->is_asked = true;
    } else if (id.ptr && !(found = map_get(&p->images, id))) {
        found = arena_new(p->arena, struct plan_image);
        if (read_described(p, id, found, err) < 0) {
            return -1;
        }
        (void)map_add(&p->images, id, found);
    }
    *ret_image = found ? found : &NONE;
    return 0;
}

static struct str container_line(const struct planner_opts *opts, const struct report_case *c,
                                 const struct recipe *recipe)
{
    const struct stack *stack = c->stack;
    if (opts->address.ptr) {
        return STR_EMPTY;
    }
    if (recipe->container.ptr || opts->profile == PROFILE_SMOKE) {
        return recipe->container;
    }
    for (size_t idx = 0; idx < stack->n_commands; idx++) {
        const struct command *command = &stack->commands[idx];
        if (str_eq_z(command->purpose, "container") &&
            (command->nodes == 0 || command->nodes == c->nodes)) {
            return command->works.ptr ? command->works : command->printed;
        }
    }
    return STR_EMPTY;
}

/* Of images of the same programs one whose CUDA the nodes' driver runs. */
static int image_for_driver(struct planner *p, struct str id, struct plan_step *step,
                            const struct plan_image **ret_image, struct err *err)
{
    struct str driver = inventory_driver(p->opts->inventory);
    const struct plan_image *image;
    step->image = id;
    if (plan_find_image(p, id, &image, err) < 0) {
        return -1;
    }
    *ret_image = image;
    if (!image->id.ptr || step->gpus_per_node == 0 || driver_runs_cuda(driver, image->cuda)) {
        return 0;
    }
    for (size_t idx = 0; idx < image->n_instead; idx++) {
        const struct plan_image *other;
        if (plan_find_image(p, image->instead[idx], &other, err) < 0) {
            return -1;
        }
        if (other->id.ptr && driver_runs_cuda(driver, other->cuda)) {
            step->image = other->id;
            *ret_image = other;
            return 0;
        }
    }
    plan_cannot(step, ERR_NODE,
                arena_printf(p->arena, "driver %.*s is too old for image %.*s, which needs %s",
                             STR_ARG(driver), STR_ARG(id), cuda_needs_driver(image->cuda)),
                NULL);
    return 0;
}

/* Without a line that starts it, ranks find each other by the nodes' own addresses. */
static void take_flags(struct arena *arena, const struct planner_opts *opts, struct str line,
                       struct plan_step *step)
{
    struct err err = {0};
    if (!line.ptr) {
        step->flags.is_host_net = !opts->address.ptr || step->n_nodes > 1;
        step->flags.wants_gpus = step->gpus_per_node > 0;
    } else if (container_flags_of_command(arena, line, &step->flags, &err) < 0) {
        plan_cannot(step, ERR_MANIFEST, arena_printf(arena, "container line: %s", err.msg), NULL);
    }
    if (err.code == ERR_NONE &&
        inventory_add_flags(arena, opts->inventory, step->n_nodes, &step->flags, &err) < 0) {
        plan_cannot(step, ERR_MANIFEST, arena_printf(arena, "%s", err.msg), NULL);
    }
}

static void need_pin(struct arena *arena, const struct inventory *inventory, struct str id,
                     const struct plan_image *given, struct plan_step *step)
{
    if (given->is_built) {
        /* Without a registry the nodes get it from the store. */
        struct str source = given->source;
        const char *to =
            inventory->registry.ptr
                ? arena_printf(arena, "--push %.*s/%.*s", STR_ARG(inventory->registry), STR_ARG(id))
                : "--store";
        const char *command = arena_printf(arena, "images/build.sh %.*s %s", STR_ARG(source), to);
        const char *then = inventory->registry.ptr
                               ? arena_printf(arena, "prints what --image %.*s= takes", STR_ARG(id))
                               : "makes it";
        plan_cannot(step, ERR_CONTAINER,
                    arena_printf(arena, "image %.*s is built, not pulled: %s %s", STR_ARG(id),
                                 command, then),
                    command);
        return;
    }
    const char *artifact = arena_printf(arena, "image:%.*s", STR_ARG(id));
    struct step_need need = {
        .cause = ERR_CONTAINER,
        .what = str_printf(arena,
                           "image %.*s is not pinned: reperf data lock image:%.*s, or --image "
                           "%.*s=NAME@sha256:...",
                           STR_ARG(id), STR_ARG(id), STR_ARG(id))};
    if (given->id.ptr) { /* it is described */
        need.artifact = str_of(artifact);
        need.is_lock = true;
        need.command = str_printf(arena, "reperf data lock %s", artifact);
    }
    plan_lacks(step, &need);
}

/* The nodes get it from the inventory's registry, else from the store. */
static void need_stored(struct planner *p, struct str id, const struct plan_image *given,
                        struct plan_step *step)
{
    const struct planner_opts *opts = p->opts;
    const char *whole =
        arena_printf(p->arena, "%.*s@%.*s", STR_ARG(given->name), STR_ARG(given->digest));
    const char *artifact = given->is_given ? whole : id.ptr;
    struct image_info info;
    struct err absent = {0};
    struct err whole_absent = {0};
    if (opts->inventory->registry.ptr ||
        (opts->store && (image_open(p->arena, opts->store, id.ptr, &info, &absent) == 0 ||
                         image_open(p->arena, opts->store, whole, &info, &whole_absent) == 0))) {
        return;
    }
    artifact = arena_printf(p->arena, "image:%s", artifact);
    plan_lacks(step,
               &(struct step_need){
                   .cause = ERR_FETCH,
                   .what = str_printf(p->arena,
                                      "image %.*s is neither in the store nor in a registry of "
                                      "the inventory's",
                                      STR_ARG(id)),
                   .command = str_printf(p->arena, "reperf data fetch %s", artifact),
                   .artifact = str_of(artifact)});
}

/* One that is built and was not given is the one that the store has under its id. */
static void take_built(struct planner *p, struct str id, struct plan_step *step)
{
    struct image_info info;
    struct err absent = {0};
    if (p->opts->store &&
        image_open(p->arena, p->opts->store, str_z(p->arena, id), &info, &absent) == 0) {
        step->image_digest = str_dup(p->arena, str_of(oci_digest_of(info.pins.manifest).text));
        step->image_id = str_dup(p->arena, str_of(oci_digest_of(info.pins.config).text));
    }
}

int plan_choose_image(struct planner *p, const struct report_case *c, const struct recipe *recipe,
                      struct plan_step *step, struct err *err)
{
    struct arena *arena = p->arena;
    const struct planner_opts *opts = p->opts;
    struct str id = recipe->image;
    if (opts->inventory->runtime == RUNTIME_NONE && !id.ptr) {
        plan_set_condition(step, "image", STR_LIT("none"));
        return 0;
    }
    if (opts->inventory->runtime == RUNTIME_NONE) {
        if (step->n_argv && !str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
            step->image = step->image_name = id; /* to be got all the same */
            plan_cannot(step, ERR_CONTAINER,
                        arena_printf(arena,
                                     "runs in image %.*s: the nodes have runtime none "
                                     "(with docker on this machine: --nodes local-docker)",
                                     STR_ARG(id)),
                        NULL);
        }
        return 0;
    }
    if (!id.ptr) {
        plan_cannot(step, ERR_CONTAINER,
                    arena_printf(arena,
                                 "names no image (--image gives one), and so needs nodes with "
                                 "runtime none: %.*s has "
                                 "runtime %s",
                                 STR_ARG(opts->inventory->id),
                                 RUNTIME_KIND_NAMES[opts->inventory->runtime]),
                    NULL);
        return 0;
    }
    const struct plan_image *image;
    if (image_for_driver(p, id, step, &image, err) < 0) {
        return -1;
    }
    id = step->image;
    step->image_name = image->id.ptr ? image->name : id;
    step->image_digest = image->digest;
    step->image_id = image->config;
    step->image_cuda = image->cuda;
    take_flags(arena, opts, container_line(opts, c, recipe), step);
    if (!step->image_digest.ptr && image->is_built && !opts->inventory->registry.ptr) {
        take_built(p, id, step);
    }
    if (!step->image_digest.ptr) {
        need_pin(arena, opts->inventory, id, image, step);
    } else if (image->digest.ptr) {
        need_stored(p, id, image, step);
    }
    plan_set_condition(step, "image", step->image_digest);
    return 0;
}

/* The folders that a step's container sees: where they are here, and of which version. */

struct plan_found {
    struct plan_mount mount; /* but for where it is inside */
    struct step_need need;   /* what NULL: it is here */
};

/* ---- files of ours ---- */

static int find_overlay(struct planner *p, const struct recipe_mount *mount,
                        struct plan_found *found, struct err *err)
{
    struct tree_list list;
    const char *folder = places_path(p->arena, p->opts->root, "overlays", mount->name.ptr);
    if (!fs_is_dir(folder)) {
        return err_set(err, ERR_MANIFEST, "recipe of %.*s: no folder %s", STR_ARG(p->report->id),
                       folder);
    }
    found->mount.folder = str_of(folder);
    return tree_hash_folder(p->arena, folder, &list, &found->mount.version, err);
}

/* ---- of the store ---- */

static const char *with_paths(struct planner *p, const char *name, struct str paths)
{
    return paths.ptr ? arena_printf(p->arena, "%s:%.*s", name, STR_ARG(paths)) : name;
}

/* The commit that a lock has for the branch or tag of a pin without one. */
static int read_lock(struct planner *p, struct str paths, struct pin_source *pin, struct err *err)
{
    const char *id =
        with_paths(p, arena_printf(p->arena, "%s@%s", pin->repository.ptr, pin->ref.ptr), paths);
    struct lock lock;
    struct err absent = {0};
    if (lock_read(p->arena, lock_folder(p->arena, p->opts->root, NULL, LOCK_SOURCE, id),
                  LOCK_SOURCE, id, &lock, &absent) < 0) {
        if (absent.code == ERR_NOT_FOUND) {
            return 0;
        }
        *err = absent;
        return -1;
    }
    const struct lock_item *top = lock_find(&lock, STR_LIT("."));
    pin->commit = top ? top->commit : STR_EMPTY;
    return 0;
}

static struct step_need need_lock(struct planner *p, const struct pin_source *pin, struct str paths)
{
    struct step_need need = {
        .cause = ERR_FETCH,
        .what = str_printf(p->arena, "commit of %s is not pinned", pin->repository.ptr)};
    if (pin->ref.ptr) {
        need.artifact = str_of(with_paths(
            p, arena_printf(p->arena, "source:%s@%s", pin->repository.ptr, pin->ref.ptr), paths));
        need.command = str_printf(p->arena, "reperf data lock %s", need.artifact.ptr);
        need.is_lock = true;
    }
    return need;
}

static struct pin_source pin_of(const struct stack *stack, const struct recipe_mount *mount)
{
    const struct pin_source *pin = stack->sources;
    if (mount->commit.ptr) {
        return (struct pin_source){.repository = mount->name, .commit = mount->commit};
    }
    while (!str_eq(pin->repository, mount->name)) {
        pin++; /* checked by the reader */
    }
    return *pin;
}

/* What is left out of a part is part of the plan, and of the evidence. */
static void set_part(struct plan_found *found, const struct source_part *part)
{
    if (part->paths) {
        found->mount.part =
            (struct plan_part){.tree = str_of(part->selection),
                               .n_files = (int64_t)part->n_files,
                               .n_left_out = (int64_t)(part->n_all - part->n_files)};
    }
}

static int find_source(struct planner *p, const struct stack *stack,
                       const struct recipe_mount *mount, struct plan_found *found, struct err *err)
{
    struct pin_source pinned = pin_of(stack, mount);
    const struct pin_source *pin = &pinned;
    const struct net_opts net = {.is_offline = true, .clock = p->opts->clock};
    struct sources sources;
    struct source_tree tree;
    struct err absent = {0};
    if (!pin->commit.ptr && pin->ref.ptr && read_lock(p, mount->paths, &pinned, err) < 0) {
        return -1;
    }
    if (!pin->commit.ptr) {
        found->need = need_lock(p, pin, mount->paths);
        return 0;
    }
    const char *version = with_paths(p, pin->commit.ptr, mount->paths);
    const char *name = arena_printf(p->arena, "%s@%s", pin->repository.ptr, version);
    found->mount.version = str_of(version);
    if (p->opts->store) {
        if (sources_init(&sources, p->arena, p->opts->store, &net, err) < 0) {
            return -1;
        }
        if (source_verify(&sources, pin->repository.ptr, version, false, &tree, &absent) == 0) {
            set_part(found, &tree.parts[0]);
            return 0;
        }
        if (absent.code != ERR_NOT_FOUND) {
            *err = absent;
            return -1;
        }
    }
    const char *artifact = arena_printf(p->arena, "source:%s", name);
    found->need =
        (struct step_need){.cause = ERR_FETCH,
                           .what = str_printf(p->arena, "source %s", name),
                           .command = str_printf(p->arena, "reperf data fetch %s", artifact),
                           .artifact = str_of(artifact)};
    return 0;
}

static int find_dataset(struct planner *p, const struct recipe_mount *mount,
                        struct plan_found *found, struct err *err)
{
    const struct store *store = p->opts->store;
    struct dataset_here here;
    struct dataset_record record;
    if (dataset_load(
            p->arena,
            &(struct dataset_which){p->opts->root, NULL, mount->name.ptr, mount->is_synthetic},
            &here, err) < 0) {
        return -1;
    }
    found->mount.name = str_of(here.name);
    const enum dataset_state state = store ? dataset_state(p->arena, store, &here) : DATASET_ABSENT;
    if (state == DATASET_TREE) {
        if (dataset_tree_read(p->arena, store, here.name, &record, err) < 0) {
            return -1;
        }
        found->mount.folder = str_of(dataset_tree_path(store, here.name));
        found->mount.version = hex_dup(p->arena, record.seen.list_sha256, SHA256_BYTES);
        return 0;
    }
    bool needs_login =
        here.dataset.needs_login && !mount->is_synthetic && state != DATASET_ARCHIVES;
    found->need = (struct step_need){
        .cause = ERR_FETCH,
        .what = str_printf(p->arena, "dataset %s%s%s%s", here.name, here.from ? ", made from " : "",
                           here.from ? here.from->name : "",
                           needs_login ? ", for registered users only" : ""),
        .command = str_printf(p->arena, "reperf data fetch %s%s", mount->name.ptr,
                              mount->is_synthetic ? " --synthetic" : ""),
        .artifact = str_printf(p->arena, "dataset:%s", here.name),
        .needs_login = needs_login,
        .is_here = state == DATASET_ARCHIVES};
    return 0;
}

/* ---- all ---- */

static int find(struct planner *p, const struct stack *stack, const struct recipe_mount *mount,
                struct plan_found *found, struct err *err)
{
    found->mount = (struct plan_mount){.kind = mount->kind, .name = mount->name};
    switch (mount->kind) {
    case MOUNT_OVERLAY:
        return find_overlay(p, mount, found, err);
    case MOUNT_SOURCE:
        return find_source(p, stack, mount, found, err);
    case MOUNT_DATASET:
        return find_dataset(p, mount, found, err);
    }
    return 0;
}

/* A stack may name a repository that another pins differently. */
static const struct plan_found *found_once(struct planner *p, const struct stack *stack,
                                           const struct recipe_mount *mount, struct err *err)
{
    struct recipe_mount synthetic = *mount;
    synthetic.is_synthetic =
        mount->is_synthetic ||
        (p->opts->is_rehearsal && mount->kind == MOUNT_DATASET && !mount->is_original);
    mount = &synthetic;
    struct str key =
        str_printf(p->arena, "%d %d %.*s %.*s@%.*s:%.*s", (int)mount->kind, mount->is_synthetic,
                   STR_ARG(mount->kind == MOUNT_SOURCE ? stack->id : STR_LIT("")),
                   STR_ARG(mount->name), STR_ARG(mount->commit.ptr ? mount->commit : STR_LIT("")),
                   STR_ARG(mount->paths.ptr ? mount->paths : STR_LIT("")));
    struct plan_found *found = map_get(&p->mounts, key);
    if (!found) {
        found = arena_new(p->arena, struct plan_found);
        if (find(p, stack, mount, found, err) < 0) {
            return NULL;
        }
        (void)map_add(&p->mounts, key, found);
    }
    return found;
}

int plan_find_mounts(struct planner *p, const struct report_case *c, const struct recipe *recipe,
                     struct plan_step *step, struct err *err)
{
    step->mounts = arena_array(p->arena, struct plan_mount, recipe->n_mounts + 1);
    for (size_t idx = 0; idx < recipe->n_mounts; idx++) {
        const struct plan_found *found = found_once(p, c->stack, &recipe->mounts[idx], err);
        if (!found) {
            return -1;
        }
        step->mounts[idx] = found->mount;
        step->mounts[idx].inside = recipe->mounts[idx].inside;
        step->n_mounts++;
        if (found->need.what.ptr) {
            plan_lacks(step, &found->need);
        }
    }
    return 0;
}

/* ---- what the cases of a plan need from the store, and how much of it is there ---- */

struct needs {
    struct arena *arena;
    const struct run_needs_opts *opts;
    struct net_opts net;
    const struct report *report;
    struct plan *plan;
};

/* Sums, -1 as soon as one part is not known. */
static void add(int64_t *sum, int64_t *least, int64_t bytes)
{
    *sum = *sum < 0 || bytes < 0 ? -1 : *sum + bytes;
    *least += bytes > 0 ? bytes : 0;
}

/* What is made from another dataset takes as much again as that one's tree, and no download. */
static void sizes_of(const struct dataset_here *here, const struct store *store,
                     struct plan_need *need)
{
    size_t n = 0;
    bool is_made = here->from != NULL;
    const struct dataset_file *files = dataset_files_of(is_made ? here->from : here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        const struct dataset_file *file = &files[idx];
        int64_t tree = dataset_unpacked_bytes(file);
        uint8_t sha256[SHA256_BYTES];
        struct err none = {0};
        bool has =
            store && ((file->has_sha256 && store_has(store, file->sha256, NULL)) ||
                      (file->has_md5 && store_find_md5(store, file->md5, sha256, &none) == 0));
        add(&need->disk_bytes, &need->least_disk_bytes, tree);
        if (is_made) {
            continue;
        }
        need->n_unpinned += !file->has_md5 && !file->has_sha256;
        add(&need->download_bytes, &need->least_download_bytes,
            need->state == NEED_READY || has ? 0 : file->size_bytes);
        add(&need->disk_bytes, &need->least_disk_bytes, file->size_bytes);
    }
    if (n == 0) {
        need->download_bytes = need->disk_bytes = -1;
    }
}

static struct plan_need *find_need(const struct plan *plan, const char *kind, struct str name)
{
    for (size_t idx = 0; idx < plan->n_needs; idx++) {
        if (str_eq_z(plan->needs[idx].kind, kind) && str_eq(plan->needs[idx].name, name)) {
            return &plan->needs[idx];
        }
    }
    return NULL;
}

static int add_need(struct plan *plan, const struct plan_need *need, struct err *err)
{
    if (plan->n_needs == PLAN_NEEDS_MAX) {
        return err_set(err, ERR_MANIFEST,
                       "the cases need more than %d datasets, images and sources", PLAN_NEEDS_MAX);
    }
    plan->needs[plan->n_needs++] = *need;
    return 0;
}

/* Fetching comes before everything else that could go wrong with a case, so its cause is the one that counts. */
static void settle(struct needs *n, struct plan_step *step, const char *kind, struct str name)
{
    const struct plan_need *need = find_need(n->plan, kind, name);
    bool is_said = step->why.ptr && str_starts(step->why, STR_LIT("--offline"));
    if (n->opts->is_offline && need && need->state != NEED_READY && !is_said) {
        step->cause = ERR_FETCH;
        step->why = str_printf(n->arena, "--offline, and the store lacks %.*s %.*s",
                               STR_ARG(need->kind), STR_ARG(need->name));
    }
}

static int add_dataset(struct needs *n, struct str id, bool is_synthetic, struct err *err)
{
    static const enum need_state STATES[] = {[DATASET_ABSENT] = NEED_ABSENT,
                                             [DATASET_PARTIAL] = NEED_PARTIAL,
                                             [DATASET_ARCHIVES] = NEED_PARTIAL,
                                             [DATASET_TREE] = NEED_READY};
    struct plan_need need = {.kind = STR_LIT("dataset")};
    struct dataset_here here;
    if (dataset_load(n->arena, &(struct dataset_which){n->opts->root, NULL, id.ptr, is_synthetic},
                     &here, err) < 0) {
        return -1;
    }
    if (here.dataset.is_synthetic) { /* generated on the device */
        return 0;
    }
    need.name = str_of(here.name);
    need.needs_login = here.dataset.needs_login && !is_synthetic;
    need.state =
        n->opts->store ? STATES[dataset_state(n->arena, n->opts->store, &here)] : NEED_ABSENT;
    sizes_of(&here, n->opts->store, &need);
    if (here.from && need.state != NEED_READY &&
        !find_need(n->plan, "dataset", str_of(here.from->name)) &&
        add_dataset(n, here.dataset.made_from.dataset, is_synthetic, err) < 0) {
        return -1;
    }
    return add_need(n->plan, &need, err);
}

/* A lock answers what the report's authors left open, for every stack of that image. */
static void drop_pins(struct needs *n, struct str image)
{
    struct plan *plan = n->plan;
    size_t n_kept = 0;
    for (size_t idx = 0; idx < plan->n_pins; idx++) {
        bool is_answered = false;
        for (size_t at = 0; at < n->report->n_stacks; at++) {
            const struct stack *stack = &n->report->stacks[at];
            is_answered |= str_eq(stack->id, plan->pins[idx].stack) && stack->image.ptr &&
                           str_eq(stack->image, image) &&
                           str_eq_z(plan->pins[idx].what, PLAN_PIN_IMAGE);
        }
        if (!is_answered) {
            plan->pins[n_kept++] = plan->pins[idx];
        }
    }
    plan->n_pins = n_kept;
}

static int add_image(struct needs *n, struct str id, struct err *err)
{
    struct plan_need need = {
        .kind = STR_LIT("image"), .name = id, .download_bytes = -1, .disk_bytes = -1};
    struct image_info info;
    struct image_spec spec;
    struct err none = {0};
    if (image_spec_load(n->arena, n->opts->root, NULL, id.ptr, &spec, err) < 0) {
        return -1;
    }
    if (spec.pins.has_digest) {
        drop_pins(n, id);
    }
    if (spec.is_local) {
        return 0;
    }
    need.n_unpinned = !spec.pins.has_digest;
    need.disk_bytes = spec.bytes;
    need.download_bytes = spec.bytes;
    if (n->opts->store && image_open(n->arena, n->opts->store, spec.name, &info, &none) == 0) {
        need.state = NEED_READY;
        need.download_bytes = 0;
        need.disk_bytes = (int64_t)info.bytes;
    }
    return add_need(n->plan, &need, err);
}

/* What is at hand without asking anybody: git itself looks into the repository of the store. */
static int add_source(struct needs *n, struct str name, struct str url, struct str commit,
                      struct err *err)
{
    struct plan_need need = {
        .kind = STR_LIT("source"), .name = name, .download_bytes = -1, .disk_bytes = -1};
    struct sources sources;
    struct source_tree tree;
    struct err absent = {0};
    if (n->opts->store) {
        if (sources_init(&sources, n->arena, n->opts->store, &n->net, err) < 0) {
            return -1;
        }
        if (source_verify(&sources, url.ptr, commit.ptr, false, &tree, &absent) == 0) {
            need.state = NEED_READY;
            need.download_bytes = 0;
        } else if (absent.code != ERR_NOT_FOUND) {
            *err = absent;
            return -1;
        }
    }
    return add_need(n->plan, &need, err);
}

struct plan_want {
    enum { WANT_DATASET, WANT_IMAGE, WANT_SOURCE } kind;
    struct str id, commit;
    bool is_synthetic;
};

static int want(struct needs *n, struct plan_step *step, const struct plan_want *w, struct err *err)
{
    static const char *const KINDS[] = {"dataset", "image", "source"};
    struct str name = w->kind == WANT_IMAGE ? w->id
                      : w->kind == WANT_SOURCE
                          ? str_printf(n->arena, "%.*s@%.*s", STR_ARG(w->id), STR_ARG(w->commit))
                          : str_printf(n->arena, "%.*s%s", STR_ARG(w->id),
                                       w->is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "");
    if (!w->id.ptr || (w->kind == WANT_SOURCE && !w->commit.ptr)) {
        return 0;
    }
    if (!find_need(n->plan, KINDS[w->kind], name) &&
        (w->kind == WANT_IMAGE    ? add_image(n, w->id, err)
         : w->kind == WANT_SOURCE ? add_source(n, name, w->id, w->commit, err)
                                  : add_dataset(n, w->id, w->is_synthetic, err)) < 0) {
        return -1;
    }
    settle(n, step, KINDS[w->kind], name);
    return 0;
}

/* ---- of a step ---- */

static int as_the_stack(struct needs *n, struct plan_step *step, const struct stack *stack,
                        struct err *err)
{
    if (want(n, step, &(struct plan_want){.kind = WANT_IMAGE, .id = stack->image}, err) < 0 ||
        want(n, step, &(struct plan_want){.id = stack->dataset}, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < stack->n_sources; idx++) {
        const struct pin_source *source = &stack->sources[idx];
        if (want(n, step,
                 &(struct plan_want){WANT_SOURCE, source->repository, source->commit, false},
                 err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int as_the_recipe(struct needs *n, struct plan_step *step, struct err *err)
{
    const struct str suffix = STR_LIT(DATASET_SYNTHETIC_SUFFIX);
    if (want(n, step, &(struct plan_want){.kind = WANT_IMAGE, .id = step->image}, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        const struct plan_mount *mount = &step->mounts[idx];
        struct plan_want w = {WANT_SOURCE, mount->name, mount->version, false};
        if (mount->kind == MOUNT_DATASET) {
            w.kind = WANT_DATASET;
            w.is_synthetic = str_ends(mount->name, suffix);
            w.id = str_dup(n->arena,
                           str_sub(mount->name, 0, mount->name.len - w.is_synthetic * suffix.len));
        }
        if (mount->kind != MOUNT_OVERLAY && want(n, step, &w, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int run_needs(struct arena *arena, const struct run_needs_opts *opts, const struct report *report,
              struct plan *plan, struct err *err)
{
    struct needs n = {.arena = arena,
                      .opts = opts,
                      .net = {.is_offline = true, .clock = opts->clock},
                      .report = report,
                      .plan = plan};
    plan->needs = arena_array(arena, struct plan_need, PLAN_NEEDS_MAX);
    plan->n_needs = 0;
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        struct plan_step *step = &plan->steps[idx];
        int rc = step->recipe.ptr ? as_the_recipe(&n, step, err)
                                  : as_the_stack(&n, step, step->bound.of_case->stack, err);
        if (rc < 0) {
            return -1;
        }
    }
    return 0;
}
