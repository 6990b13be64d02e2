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

/* "local" where that is all, or the nodes that the case is fixed to; else how many of which inventory: the runner chooses those
   that are free. */
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
        const char *why =
            opts->inventory->is_local
                ? arena_printf(arena, "this machine has %lld", (long long)most)
                : arena_printf(arena, "too few nodes of the inventory \"%.*s\" have them",
                               STR_ARG(opts->inventory->id));
        plan_cannot(
            step, ERR_NODE,
            arena_printf(arena, "needs %lld GPUs a node: %s", (long long)c->gpus_per_node, why),
            NULL);
    }
}

/* ---- what the store is asked for ---- */

static struct step_need need_get(struct arena *arena, const char *verb, const char *artifact,
                                 struct str what)
{
    return (struct step_need){.cause = ERR_FETCH,
                              .what = what,
                              .command = str_printf(arena, "reperf data %s %s", verb, artifact),
                              .artifact = str_of(artifact),
                              .is_lock = strcmp(verb, "lock") == 0};
}

/* ---- image ---- */

static struct str digest_of(struct arena *arena, const uint8_t *sha256)
{
    return str_dup(arena, str_of(oci_digest_of(sha256).text));
}

static int read_described(struct planner *p, struct str id, struct plan_image *ret_image,
                          struct err *err)
{
    struct arena *arena = p->arena;
    const char *root = p->opts->root;
    struct image_spec spec;
    struct image_info info;
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
    bool is_here =
        p->opts->store && image_open(arena, p->opts->store, id.ptr, &info, ERR_IGNORED) == 0;
    bool has_pin = spec.pins.has_manifest || spec.pins.has_digest;
    /* One that is built and was not given is the one that the store has under its id. */
    const struct image_pins *pins =
        !has_pin && spec.is_local && is_here && !p->opts->inventory->registry.ptr ? &info.pins
                                                                                  : &spec.pins;
    if (has_pin || pins == &info.pins) {
        ret_image->digest = digest_of(arena, pins->has_manifest ? pins->manifest : pins->digest);
        ret_image->config = pins->has_config ? digest_of(arena, pins->config) : STR_EMPTY;
    }
    if (!spec.is_local) {
        ret_image->stored =
            (struct plan_need){.kind = STR_LIT("image"),
                               .name = id,
                               .state = is_here ? NEED_READY : NEED_ABSENT,
                               .n_unpinned = !spec.pins.has_digest,
                               .download_bytes = is_here ? 0 : spec.bytes,
                               .disk_bytes = is_here ? (int64_t)info.bytes : spec.bytes};
    }
    return 0;
}

/* As lock and description have it; one that nobody describes has no id. */
static struct plan_image *find_described(struct planner *p, struct str id, struct err *err)
{
    struct plan_image *found = map_get(&p->images, id);
    if (!found) {
        found = arena_new(p->arena, struct plan_image);
        (void)map_add(&p->images, id, found);
        return read_described(p, id, found, err) < 0 ? NULL : found;
    }
    return found;
}

static const struct plan_image *find_image(struct planner *p, struct str id, struct err *err)
{
    struct plan_image *given = STR_NAMED(p->opts->images, p->opts->n_images, id, id);
    if (given) {
        given->is_asked = true;
    }
    return given ? given : find_described(p, id, err);
}

static struct str container_line(const struct planner_opts *opts, const struct report_case *c,
                                 const struct recipe *recipe)
{
    const struct stack *stack = c->stack;
    if (opts->asked.address.ptr) {
        return STR_EMPTY;
    }
    if (recipe->container.ptr || opts->asked.profile == PROFILE_SMOKE) {
        return recipe->container;
    }
    for (size_t idx = 0; idx < stack->n_commands; idx++) {
        const struct command *command = &stack->commands[idx];
        if (str_eq_z(command->purpose, "container") &&
            (command->nodes == 0 || command->nodes == c->nodes)) {
            return command_text(command);
        }
    }
    return STR_EMPTY;
}

/* Several images may have the same programs: one whose CUDA the nodes' driver runs is chosen. */
static int image_for_driver(struct planner *p, struct str id, struct plan_step *step,
                            const struct plan_image **ret_image, struct err *err)
{
    struct str driver = inventory_driver(p->opts->inventory);
    const struct plan_image *image = find_image(p, id, err);
    step->image = id;
    if (!image) {
        return -1;
    }
    *ret_image = image;
    if (!image->id.ptr || step->gpus_per_node == 0 || driver_runs_cuda(driver, image->cuda)) {
        return 0;
    }
    for (size_t idx = 0; idx < image->n_instead; idx++) {
        const struct plan_image *other = find_image(p, image->instead[idx], err);
        if (!other) {
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
        step->flags.is_host_net = !opts->asked.address.ptr || step->n_nodes > 1;
        step->flags.wants_gpus = step->gpus_per_node > 0;
    } else if (container_flags_of_command(arena, line, &step->flags, &err) < 0) {
        plan_cannot(step, ERR_MANIFEST, arena_printf(arena, "container line: %s", err.msg), NULL);
    }
    if (err.code == ERR_NONE &&
        inventory_add_flags(arena, opts->inventory, step->n_nodes, &step->flags, &err) < 0) {
        plan_cannot(step, ERR_MANIFEST, arena_printf(arena, "%s", err.msg), NULL);
    }
}

/* Without a registry the nodes get it from the store. */
static void need_built(struct arena *arena, const struct inventory *inventory, struct str id,
                       struct str source, struct plan_step *step)
{
    bool has_registry = inventory->registry.ptr;
    const char *to = has_registry ? arena_printf(arena, "--push %.*s/%.*s",
                                                 STR_ARG(inventory->registry), STR_ARG(id))
                                  : "--store";
    const char *command = arena_printf(arena, "images/build.sh %.*s %s", STR_ARG(source), to);
    const char *then = has_registry
                           ? arena_printf(arena, "prints what --image %.*s= takes", STR_ARG(id))
                           : "makes it";
    plan_cannot(
        step, ERR_CONTAINER,
        arena_printf(arena, "image %.*s is built, not pulled: %s %s", STR_ARG(id), command, then),
        command);
}

static void need_pin(struct arena *arena, struct str id, bool is_described, struct plan_step *step)
{
    const char *artifact = arena_printf(arena, "image:%.*s", STR_ARG(id));
    struct str what = str_printf(arena,
                                 "image %.*s is not pinned: reperf data lock %s, or --image "
                                 "%.*s=NAME@sha256:...",
                                 STR_ARG(id), artifact, STR_ARG(id));
    struct step_need need = need_get(arena, "lock", artifact, what);
    need.cause = ERR_CONTAINER;
    if (!is_described) {
        need = (struct step_need){.cause = ERR_CONTAINER, .what = what};
    }
    plan_lacks(step, &need);
}

/* The nodes get it from the inventory's registry, else from the store. */
static void need_stored(struct planner *p, struct str id, const struct plan_image *image,
                        struct plan_step *step)
{
    const struct planner_opts *opts = p->opts;
    const char *whole =
        arena_printf(p->arena, "%.*s@%.*s", STR_ARG(image->name), STR_ARG(image->digest));
    struct image_info info;
    if (opts->inventory->registry.ptr ||
        (opts->store && (image_open(p->arena, opts->store, id.ptr, &info, ERR_IGNORED) == 0 ||
                         image_open(p->arena, opts->store, whole, &info, ERR_IGNORED) == 0))) {
        return;
    }
    struct str what = str_printf(
        p->arena, "image %.*s is neither in the store nor in a registry of the inventory's",
        STR_ARG(id));
    const struct step_need need =
        need_get(p->arena, "fetch",
                 arena_printf(p->arena, "image:%s", image->is_given ? whole : id.ptr), what);
    plan_lacks(step, &need);
}

static void without_runtime(struct arena *arena, struct str id, struct plan_step *step)
{
    if (!id.ptr) {
        plan_set_condition(step, "image", STR_LIT("none"));
    } else if (step->n_argv && !str_eq_z(step->argv[0], TRAIN_PROGRAM)) {
        step->image = step->image_name = id; /* to be got all the same */
        plan_cannot(step, ERR_CONTAINER,
                    arena_printf(arena,
                                 "runs in image %.*s: the nodes have runtime none "
                                 "(with docker on this machine: --nodes local-docker)",
                                 STR_ARG(id)),
                    NULL);
    }
}

int plan_choose_image(struct planner *p, const struct report_case *c, const struct recipe *recipe,
                      struct plan_step *step, struct err *err)
{
    struct arena *arena = p->arena;
    const struct inventory *inventory = p->opts->inventory;
    const struct plan_image *image;
    if (inventory->runtime == RUNTIME_NONE) {
        without_runtime(arena, recipe->image, step);
        return 0;
    }
    if (!recipe->image.ptr) {
        plan_cannot(step, ERR_CONTAINER,
                    arena_printf(arena,
                                 "names no image (--image gives one), and so needs nodes with "
                                 "runtime none: %.*s has runtime %s",
                                 STR_ARG(inventory->id), RUNTIME_KIND_NAMES[inventory->runtime]),
                    NULL);
        return 0;
    }
    if (image_for_driver(p, recipe->image, step, &image, err) < 0) {
        return -1;
    }
    struct str id = step->image;
    step->image_name = image->id.ptr ? image->name : id;
    step->image_digest = image->digest;
    step->image_id = image->config;
    step->image_cuda = image->cuda;
    take_flags(arena, p->opts, container_line(p->opts, c, recipe), step);
    if (image->digest.ptr) {
        need_stored(p, id, image, step);
    } else if (image->is_built) {
        need_built(arena, inventory, id, image->source, step);
    } else {
        need_pin(arena, id, image->id.ptr, step);
    }
    if (step->n_needs && str_starts(step->needs[step->n_needs - 1].artifact, STR_LIT("image:"))) {
        step->needs[step->n_needs - 1].stored = &image->stored;
    }
    plan_set_condition(step, "image", step->image_digest);
    return 0;
}

/* ---- folders: where they are here, and of which version ---- */

struct plan_found {
    struct plan_mount mount; /* but for where it is inside */
    struct step_need need;   /* what NULL: it is here */
    struct plan_need stored; /* name NULL: the store has nothing to do with it */
};

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

static const char *with_paths(struct planner *p, const char *name, struct str paths)
{
    return paths.ptr ? arena_printf(p->arena, "%s:%.*s", name, STR_ARG(paths)) : name;
}

/* The commit of a mount: its own, its stack's, or the one that a lock has for the stack's branch or tag, `name`; NULL: not
   pinned. */
static int find_commit(struct planner *p, const struct pin_source *pin, const char *name,
                       struct str *ret_commit, struct err *err)
{
    struct lock lock;
    *ret_commit = pin->commit;
    if (pin->commit.ptr || !pin->ref.ptr) {
        return 0;
    }
    if (lock_read(p->arena, lock_folder(p->arena, p->opts->root, NULL, LOCK_SOURCE, name),
                  LOCK_SOURCE, name, &lock, err) < 0) {
        return -1;
    }
    const struct lock_item *top = lock_find(&lock, STR_LIT("."));
    *ret_commit = top ? top->commit : STR_EMPTY;
    return 0;
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

/* git itself looks into the repository of the store, and nobody else is asked. No parts: it is not there. */
static int look_for_source(struct planner *p, const char *url, const char *version,
                           struct source_tree *ret_tree, struct err *err)
{
    const struct net_opts net = {.is_offline = true, .clock = p->opts->clock};
    struct sources sources;
    struct err absent = {0};
    *ret_tree = (struct source_tree){0};
    if (!p->opts->store) {
        return 0;
    }
    if (sources_init(&sources, p->arena, p->opts->store, &net, err) < 0) {
        return -1;
    }
    return source_verify(&sources, url, version, false, ret_tree, &absent) < 0 &&
                   absent.code != ERR_NOT_FOUND
               ? err_pass(err, &absent)
               : 0;
}

static int find_source(struct planner *p, const struct stack *stack,
                       const struct recipe_mount *mount, struct plan_found *found, struct err *err)
{
    struct arena *arena = p->arena;
    const struct pin_source pin = pin_of(stack, mount);
    const char *url = pin.repository.ptr;
    const char *ref =
        pin.ref.ptr ? with_paths(p, arena_printf(arena, "%s@%s", url, pin.ref.ptr), mount->paths)
                    : NULL;
    struct str commit;
    struct source_tree tree;
    if (find_commit(p, &pin, ref, &commit, err) < 0) {
        return -1;
    }
    if (!commit.ptr) {
        struct str what = str_printf(arena, "commit of %s is not pinned", url);
        found->need = ref ? need_get(arena, "lock", arena_printf(arena, "source:%s", ref), what)
                          : (struct step_need){.cause = ERR_FETCH, .what = what};
        return 0;
    }
    const char *version = with_paths(p, commit.ptr, mount->paths);
    const char *name = arena_printf(arena, "%s@%s", url, version);
    if (look_for_source(p, url, version, &tree, err) < 0) {
        return -1;
    }
    found->mount.version = str_of(version);
    found->stored = (struct plan_need){.kind = STR_LIT("source"),
                                       .name = str_of(name),
                                       .state = tree.parts ? NEED_READY : NEED_ABSENT,
                                       .download_bytes = tree.parts ? 0 : -1,
                                       .disk_bytes = -1};
    if (!tree.parts) {
        found->need = need_get(arena, "fetch", arena_printf(arena, "source:%s", name),
                               str_printf(arena, "source %s", name));
    } else if (tree.parts[0].paths) {
        /* What is left out is part of the plan, and of the evidence. */
        const struct source_part *part = &tree.parts[0];
        found->mount.part =
            (struct plan_part){.tree = str_of(part->selection),
                               .n_files = (int64_t)part->n_files,
                               .n_left_out = (int64_t)(part->n_all - part->n_files)};
    }
    return 0;
}

static const struct plan_found *find(struct planner *p, const struct stack *stack,
                                     const struct recipe_mount *mount, struct err *err);

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
        bool has = store && dataset_has_file(store, file);
        add(&need->disk_bytes, &need->least_disk_bytes, dataset_unpacked_bytes(file));
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

static int find_dataset(struct planner *p, const struct recipe_mount *mount,
                        struct plan_found *found, struct err *err)
{
    static const enum need_state STATES[] = {[DATASET_ABSENT] = NEED_ABSENT,
                                             [DATASET_PARTIAL] = NEED_PARTIAL,
                                             [DATASET_ARCHIVES] = NEED_PARTIAL,
                                             [DATASET_TREE] = NEED_READY};
    struct arena *arena = p->arena;
    const struct store *store = p->opts->store;
    struct dataset_here here;
    struct dataset_record record;
    if (dataset_load(
            arena,
            &(struct dataset_which){p->opts->root, NULL, mount->name.ptr, mount->is_synthetic},
            &here, err) < 0) {
        return -1;
    }
    const enum dataset_state state = store ? dataset_state(arena, store, &here) : DATASET_ABSENT;
    bool needs_login = here.dataset.needs_login && !mount->is_synthetic;
    found->mount.name = str_of(here.name);
    if (!here.dataset.is_synthetic) { /* else it is generated on the device */
        found->stored = (struct plan_need){.kind = STR_LIT("dataset"),
                                           .name = str_of(here.name),
                                           .state = STATES[state],
                                           .needs_login = needs_login};
        sizes_of(&here, store, &found->stored);
    }
    if (state == DATASET_TREE) {
        if (dataset_tree_read(arena, store, here.name, &record, err) < 0) {
            return -1;
        }
        found->mount.folder = str_of(dataset_tree_path(store, here.name));
        found->mount.version = hex_dup(arena, record.seen.list_sha256, SHA256_BYTES);
        return 0;
    }
    needs_login = needs_login && state != DATASET_ARCHIVES;
    found->need = (struct step_need){
        .cause = ERR_FETCH,
        .what = str_printf(arena, "dataset %s%s%s%s", here.name, here.from ? ", made from " : "",
                           here.from ? here.from->name : "",
                           needs_login ? ", for registered users only" : ""),
        .command = str_printf(arena, "reperf data fetch %s%s", mount->name.ptr,
                              mount->is_synthetic ? " --synthetic" : ""),
        .artifact = str_printf(arena, "dataset:%s", here.name),
        .needs_login = needs_login,
        .is_here = state == DATASET_ARCHIVES};
    if (here.from) {
        const struct recipe_mount from = {.kind = MOUNT_DATASET,
                                          .name = here.dataset.made_from.dataset,
                                          .is_synthetic = mount->is_synthetic};
        const struct plan_found *made_from = find(p, NULL, &from, err);
        found->stored.from = made_from ? &made_from->stored : NULL;
        return made_from ? 0 : -1;
    }
    return 0;
}

/* Looked for once. A stack may name a repository that another pins differently. */
static const struct plan_found *find(struct planner *p, const struct stack *stack,
                                     const struct recipe_mount *mount, struct err *err)
{
    struct str key =
        str_printf(p->arena, "%d %d %.*s %.*s@%.*s:%.*s", (int)mount->kind, mount->is_synthetic,
                   STR_ARG(mount->kind == MOUNT_SOURCE ? stack->id : STR_LIT("")),
                   STR_ARG(mount->name), STR_ARG(mount->commit.ptr ? mount->commit : STR_LIT("")),
                   STR_ARG(mount->paths.ptr ? mount->paths : STR_LIT("")));
    struct plan_found *found = map_get(&p->mounts, key);
    if (found) {
        return found;
    }
    found = arena_new(p->arena, struct plan_found);
    found->mount = (struct plan_mount){.kind = mount->kind, .name = mount->name};
    int rc = mount->kind == MOUNT_OVERLAY  ? find_overlay(p, mount, found, err)
             : mount->kind == MOUNT_SOURCE ? find_source(p, stack, mount, found, err)
                                           : find_dataset(p, mount, found, err);
    (void)map_add(&p->mounts, key, found);
    return rc < 0 ? NULL : found;
}

int plan_find_mounts(struct planner *p, const struct report_case *c, const struct recipe *recipe,
                     struct plan_step *step, struct err *err)
{
    step->mounts = arena_array(p->arena, struct plan_mount, recipe->n_mounts + 1);
    for (size_t idx = 0; idx < recipe->n_mounts; idx++) {
        struct recipe_mount mount = recipe->mounts[idx];
        mount.is_synthetic |=
            p->opts->asked.is_rehearsal && mount.kind == MOUNT_DATASET && !mount.is_original;
        const struct plan_found *found = find(p, c->stack, &mount, err);
        if (!found) {
            return -1;
        }
        step->mounts[idx] = found->mount;
        step->mounts[idx].inside = mount.inside;
        step->mounts[idx].stored = &found->stored;
        step->n_mounts++;
        if (found->need.what.ptr) {
            plan_lacks(step, &found->need);
            step->needs[step->n_needs - 1].stored = &found->stored;
        }
    }
    return 0;
}

/* ---- what the cases of a plan need from the store, each once ---- */

static int list_need(struct plan *plan, const struct plan_need *need, struct err *err)
{
    for (size_t idx = 0; idx < plan->n_needs; idx++) {
        if (str_eq(plan->needs[idx].kind, need->kind) &&
            str_eq(plan->needs[idx].name, need->name)) {
            return 0;
        }
    }
    if (plan->n_needs == PLAN_NEEDS_MAX) {
        return err_set(err, ERR_MANIFEST,
                       "the cases need more than %d datasets, images and sources", PLAN_NEEDS_MAX);
    }
    plan->needs[plan->n_needs++] = *need;
    return 0;
}

/* Fetching comes before everything else that could go wrong with a case, so its cause is the one that counts. */
static int want(struct planner *p, struct plan *plan, struct plan_step *step,
                const struct plan_need *need, struct err *err)
{
    bool is_said = step->why.ptr && str_starts(step->why, STR_LIT("--offline"));
    if (!need || !need->name.ptr) {
        return 0;
    }
    if ((need->from && list_need(plan, need->from, err) < 0) || list_need(plan, need, err) < 0) {
        return -1;
    }
    if (p->opts->is_offline && need->state != NEED_READY && !is_said) {
        step->cause = ERR_FETCH;
        step->why = str_printf(p->arena, "--offline, and the store lacks %.*s %.*s",
                               STR_ARG(need->kind), STR_ARG(need->name));
    }
    return 0;
}

static int want_mount(struct planner *p, struct plan *plan, struct plan_step *step,
                      const struct recipe_mount *mount, struct err *err)
{
    const struct plan_found *found = find(p, step->bound.of_case->stack, mount, err);
    return found ? want(p, plan, step, &found->stored, err) : -1;
}

/* What its recipe names; without one, all that its stack does. */
int plan_list_needs(struct planner *p, struct plan *plan, struct plan_step *step, struct err *err)
{
    const struct stack *stack = step->bound.of_case->stack;
    struct str image = step->recipe.ptr ? step->image : stack->image;
    struct plan_image *described = image.ptr ? find_described(p, image, err) : NULL;
    if (image.ptr && (!described || want(p, plan, step, &described->stored, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        if (want(p, plan, step, step->mounts[idx].stored, err) < 0) {
            return -1;
        }
    }
    const struct recipe_mount dataset = {.kind = MOUNT_DATASET, .name = stack->dataset};
    if (!step->recipe.ptr && dataset.name.ptr && want_mount(p, plan, step, &dataset, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; !step->recipe.ptr && idx < stack->n_sources; idx++) {
        const struct recipe_mount source = {.kind = MOUNT_SOURCE,
                                            .name = stack->sources[idx].repository,
                                            .commit = stack->sources[idx].commit};
        if (source.commit.ptr && want_mount(p, plan, step, &source, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- what their authors left open, and no lock answers ---- */

static int add_pin(struct plan *plan, const struct stack *stack, const char *what, struct err *err)
{
    if (plan->n_pins == PLAN_PINS_MAX) {
        return err_set(err, ERR_MANIFEST, "more than %d images and commits are not pinned",
                       PLAN_PINS_MAX);
    }
    plan->pins[plan->n_pins++] = (struct missing_pin){stack->id, str_of(what)};
    return 0;
}

int plan_list_pins(struct planner *p, struct plan *plan, const struct stack *stack, struct err *err)
{
    /* What is built here is pinned by its digest in lock/lock.json. */
    bool is_open = !stack->image_digest.ptr && (stack->image.ptr || !p->report->is_unpublished);
    if (stack->image.ptr) {
        const struct plan_image *image = find_image(p, stack->image, err);
        const struct plan_image *described = find_described(p, stack->image, err);
        if (!image || !described) {
            return -1;
        }
        is_open = is_open && !image->is_built && !described->digest.ptr;
    }
    if (is_open && add_pin(plan, stack, "image digest", err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < stack->n_sources; idx++) {
        const struct pin_source *source = &stack->sources[idx];
        if (!source->commit.ptr &&
            add_pin(plan, stack,
                    arena_printf(p->arena, "commit of %.*s", STR_ARG(source->repository)),
                    err) < 0) {
            return -1;
        }
    }
    return 0;
}
