/* SPDX-License-Identifier: Apache-2.0 */
/* The folders that a step's container sees: where they are here, and of which version. */
#include "base/base.h"

#include "base/fs.h"
#include "load/places.h"
#include "run/planner_impl.h"
#include "store/dataset_store.h"
#include "store/lock_file.h"
#include "store/source_store.h"
#include "sys/pool.h"

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
        .what = str_of(arena_printf(p->arena, "commit of %s is not pinned", pin->repository.ptr))};
    if (pin->ref.ptr) {
        need.artifact = str_of(with_paths(
            p, arena_printf(p->arena, "source:%s@%s", pin->repository.ptr, pin->ref.ptr), paths));
        need.command = str_of(arena_printf(p->arena, "reperf data lock %s", need.artifact.ptr));
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
    found->need = (struct step_need){
        .cause = ERR_FETCH,
        .what = str_of(arena_printf(p->arena, "source %s", name)),
        .command = str_of(arena_printf(p->arena, "reperf data fetch %s", artifact)),
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
        .what = str_of(arena_printf(
            p->arena, "dataset %s%s%s%s", here.name, here.from ? ", made from " : "",
            here.from ? here.from->name : "", needs_login ? ", for registered users only" : "")),
        .command = str_of(arena_printf(p->arena, "reperf data fetch %s%s", mount->name.ptr,
                                       mount->is_synthetic ? " --synthetic" : "")),
        .artifact = str_of(arena_printf(p->arena, "dataset:%s", here.name)),
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
    struct str key = str_of(
        arena_printf(p->arena, "%d %d %.*s %.*s@%.*s:%.*s", (int)mount->kind, mount->is_synthetic,
                     STR_ARG(mount->kind == MOUNT_SOURCE ? stack->id : STR_LIT("")),
                     STR_ARG(mount->name), STR_ARG(mount->commit.ptr ? mount->commit : STR_LIT("")),
                     STR_ARG(mount->paths.ptr ? mount->paths : STR_LIT(""))));
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
