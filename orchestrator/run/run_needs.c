/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/run_needs.h"

#include "base/fs.h"
#include "store/dataset_store.h"
#include "store/image_spec.h"
#include "store/lock_file.h"
#include "store/source_store.h"

static bool is_run(const struct report *report, const struct plan *plan, const struct stack *stack)
{
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        const struct report_case *c = report_case_find(report, plan->steps[idx].case_id);
        if (c && c->stack == stack) {
            return true;
        }
    }
    return false;
}

/* Sums, -1 as soon as one part is not known. */
static void add(int64_t *sum, int64_t bytes)
{
    *sum = *sum < 0 || bytes < 0 ? -1 : *sum + bytes;
}

static void sizes_of(const struct dataset_here *here, const struct store *store,
                     struct plan_need *need)
{
    size_t n = 0;
    const struct dataset_file *files = dataset_files_of(here, &n);
    for (size_t idx = 0; idx < n; idx++) {
        const struct dataset_file *file = &files[idx];
        int64_t tree = dataset_unpacked_bytes(file);
        uint8_t sha256[SHA256_BYTES];
        struct err none = {0};
        bool has =
            store && ((file->has_sha256 && store_has(store, file->sha256, NULL)) ||
                      (file->has_md5 && store_find_md5(store, file->md5, sha256, &none) == 0));
        need->n_unpinned += !file->has_md5 && !file->has_sha256;
        add(&need->download_bytes, need->state == NEED_READY || has ? 0 : file->size_bytes);
        add(&need->disk_bytes, file->size_bytes);
        add(&need->disk_bytes, tree);
    }
    if (n == 0) {
        need->download_bytes = need->disk_bytes = -1;
    }
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

static int add_dataset(struct arena *arena, const char *root, const struct store *store,
                       struct str id, struct plan *plan, struct err *err)
{
    static const enum need_state STATES[] = {[DATASET_ABSENT] = NEED_ABSENT,
                                             [DATASET_PARTIAL] = NEED_PARTIAL,
                                             [DATASET_ARCHIVES] = NEED_PARTIAL,
                                             [DATASET_TREE] = NEED_READY};
    struct plan_need need = {.kind = STR_LIT("dataset"), .name = id};
    struct dataset_here here;
    for (size_t idx = 0; idx < plan->n_needs; idx++) {
        if (str_eq_z(plan->needs[idx].kind, "dataset") && str_eq(plan->needs[idx].name, id)) {
            return 0;
        }
    }
    if (dataset_load(arena, root, NULL, id.ptr, false, &here, err) < 0) {
        return -1;
    }
    if (here.dataset.is_synthetic) {
        return 0;
    }
    need.needs_login = here.dataset.needs_login;
    need.state = store ? STATES[dataset_state(arena, store, &here)] : NEED_ABSENT;
    sizes_of(&here, store, &need);
    return add_need(plan, &need, err);
}

/* A lock answers what the report's authors left open. */
static void drop_pin(struct plan *plan, struct str stack)
{
    size_t n = 0;
    for (size_t idx = 0; idx < plan->n_pins; idx++) {
        if (!str_eq(plan->pins[idx].stack, stack) ||
            !str_eq_z(plan->pins[idx].what, PLAN_PIN_IMAGE)) {
            plan->pins[n++] = plan->pins[idx];
        }
    }
    plan->n_pins = n;
}

static int add_image(struct arena *arena, const char *root, const struct store *store,
                     const struct stack *stack, struct plan *plan, struct err *err)
{
    struct plan_need need = {
        .kind = STR_LIT("image"), .name = stack->image, .download_bytes = -1, .disk_bytes = -1};
    struct image_info info;
    struct image_spec spec;
    struct err none = {0};
    bool is_locked;
    if (image_spec_load(arena, root, lock_folder(arena, root, NULL), stack->image.ptr, &spec,
                        &is_locked, err) < 0) {
        return -1;
    }
    if (spec.pins.has_digest) {
        drop_pin(plan, stack->id);
    }
    for (size_t idx = 0; idx < plan->n_needs; idx++) {
        if (str_eq_z(plan->needs[idx].kind, "image") &&
            str_eq(plan->needs[idx].name, stack->image)) {
            return 0;
        }
    }
    if (spec.is_local) {
        return 0;
    }
    need.n_unpinned = !spec.pins.has_digest;
    need.disk_bytes = spec.bytes;
    need.download_bytes = spec.bytes;
    if (store && image_open(arena, store, spec.name, &info, &none) == 0) {
        need.state = NEED_READY;
        need.download_bytes = 0;
        need.disk_bytes = (int64_t)info.bytes;
    }
    return add_need(plan, &need, err);
}

/* What is at hand without asking anybody: git itself looks into the repository of the store. */
static int add_source(struct arena *arena, const struct store *store, const struct net_opts *net,
                      const struct pin_source *pin, struct plan *plan, struct err *err)
{
    struct plan_need need = {
        .kind = STR_LIT("source"),
        .name = str_of(arena_printf(arena, "%s@%s", pin->repository.ptr, pin->commit.ptr)),
        .download_bytes = -1,
        .disk_bytes = -1};
    struct sources sources;
    struct source_tree tree;
    struct err absent = {0};
    for (size_t idx = 0; idx < plan->n_needs; idx++) {
        if (str_eq(plan->needs[idx].name, need.name)) {
            return 0;
        }
    }
    if (store) {
        if (sources_init(&sources, arena, store, net, err) < 0) {
            return -1;
        }
        if (source_verify(&sources, pin->repository.ptr, pin->commit.ptr, false, &tree, &absent) ==
            0) {
            need.state = NEED_READY;
            need.download_bytes = 0;
        } else if (absent.code != ERR_NOT_FOUND) {
            *err = absent;
            return -1;
        }
    }
    return add_need(plan, &need, err);
}

static int add_stack(struct arena *arena, const struct run_needs_opts *opts,
                     const struct store *store, const struct stack *stack, struct plan *plan,
                     struct err *err)
{
    const struct net_opts net = {.is_offline = true, .clock = opts->clock};
    bool is_ours = str_eq_z(stack->framework, "reperf");
    if (stack->dataset.ptr &&
        add_dataset(arena, opts->root, store, stack->dataset, plan, err) < 0) {
        return -1;
    }
    if (stack->image.ptr && !is_ours && add_image(arena, opts->root, store, stack, plan, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < stack->n_sources; idx++) {
        if (stack->sources[idx].commit.ptr &&
            add_source(arena, store, &net, &stack->sources[idx], plan, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- without a network ---- */

static const struct plan_need *find_need(const struct plan *plan, const char *kind, struct str name)
{
    for (size_t idx = 0; name.ptr && idx < plan->n_needs; idx++) {
        if (str_eq_z(plan->needs[idx].kind, kind) && str_eq(plan->needs[idx].name, name)) {
            return &plan->needs[idx];
        }
    }
    return NULL;
}

static bool lacks(const struct plan_need *need)
{
    return need && need->state != NEED_READY;
}

/* The first thing that a stack needs and the store lacks. */
static const struct plan_need *missing_of(struct arena *arena, const struct plan *plan,
                                          const struct stack *stack)
{
    const struct plan_need *need = find_need(plan, "image", stack->image);
    if (lacks(need)) {
        return need;
    }
    need = find_need(plan, "dataset", stack->dataset);
    for (size_t idx = 0; !lacks(need) && idx < stack->n_sources; idx++) {
        const struct pin_source *pin = &stack->sources[idx];
        need = pin->commit.ptr ? find_need(plan, "source",
                                           str_of(arena_printf(arena, "%s@%s", pin->repository.ptr,
                                                               pin->commit.ptr)))
                               : NULL;
    }
    return lacks(need) ? need : NULL;
}

/* Fetching comes before everything else that could go wrong with a case, so its cause is the one that counts. */
static void refuse_what_is_missing(struct arena *arena, const struct report *report,
                                   struct plan *plan)
{
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        struct plan_step *step = &plan->steps[idx];
        const struct report_case *c = report_case_find(report, step->case_id);
        const struct plan_need *need = c ? missing_of(arena, plan, c->stack) : NULL;
        if (need) {
            step->cause = ERR_FETCH;
            step->why = str_of(arena_printf(arena, "--offline, and the store lacks %.*s %.*s",
                                            STR_ARG(need->kind), STR_ARG(need->name)));
        }
    }
}

int run_needs(struct arena *arena, const struct run_needs_opts *opts, const struct report *report,
              struct plan *plan, struct err *err)
{
    CLEANUP(store) struct store store = STORE_EMPTY;
    bool has_store = fs_is_dir(fs_join(arena, opts->store, "blobs/sha256"));
    plan->needs = arena_array(arena, struct plan_need, PLAN_NEEDS_MAX);
    plan->n_needs = 0;
    if (has_store && store_open(arena, opts->store, &store, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < report->n_stacks; idx++) {
        const struct stack *stack = &report->stacks[idx];
        if (is_run(report, plan, stack) &&
            add_stack(arena, opts, has_store ? &store : NULL, stack, plan, err) < 0) {
            return -1;
        }
    }
    if (opts->is_offline) {
        refuse_what_is_missing(arena, report, plan);
    }
    return 0;
}
