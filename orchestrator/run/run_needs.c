/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/run_prepare.h"

#include "base/fs.h"
#include "store/dataset_store.h"
#include "store/image_store.h"
#include "store/source_store.h"

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
        step->why = str_of(arena_printf(n->arena, "--offline, and the store lacks %.*s %.*s",
                                        STR_ARG(need->kind), STR_ARG(need->name)));
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

static int want_dataset(struct needs *n, struct plan_step *step, struct str id, bool is_synthetic,
                        struct err *err)
{
    struct str name = str_of(arena_printf(n->arena, "%.*s%s", STR_ARG(id),
                                          is_synthetic ? DATASET_SYNTHETIC_SUFFIX : ""));
    if (!find_need(n->plan, "dataset", name) && add_dataset(n, id, is_synthetic, err) < 0) {
        return -1;
    }
    settle(n, step, "dataset", name);
    return 0;
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

static int want_image(struct needs *n, struct plan_step *step, struct str id, struct err *err)
{
    if (!find_need(n->plan, "image", id) && add_image(n, id, err) < 0) {
        return -1;
    }
    settle(n, step, "image", id);
    return 0;
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

static int want_source(struct needs *n, struct plan_step *step, struct str url, struct str commit,
                       struct err *err)
{
    if (!commit.ptr) {
        return 0;
    }
    struct str name = str_of(arena_printf(n->arena, "%.*s@%.*s", STR_ARG(url), STR_ARG(commit)));
    if (!find_need(n->plan, "source", name) && add_source(n, name, url, commit, err) < 0) {
        return -1;
    }
    settle(n, step, "source", name);
    return 0;
}

/* ---- of a step ---- */

static int as_the_stack(struct needs *n, struct plan_step *step, const struct stack *stack,
                        struct err *err)
{
    if (stack->image.ptr && want_image(n, step, stack->image, err) < 0) {
        return -1;
    }
    if (stack->dataset.ptr && want_dataset(n, step, stack->dataset, false, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < stack->n_sources; idx++) {
        if (want_source(n, step, stack->sources[idx].repository, stack->sources[idx].commit, err) <
            0) {
            return -1;
        }
    }
    return 0;
}

static int as_the_recipe(struct needs *n, struct plan_step *step, struct err *err)
{
    if (step->image.ptr && want_image(n, step, step->image, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        const struct plan_mount *mount = &step->mounts[idx];
        bool is_synthetic = str_ends(mount->name, STR_LIT(DATASET_SYNTHETIC_SUFFIX));
        struct str id =
            is_synthetic
                ? str_dup(n->arena, str_sub(mount->name, 0,
                                            mount->name.len - strlen(DATASET_SYNTHETIC_SUFFIX)))
                : mount->name;
        if ((mount->kind == MOUNT_DATASET && want_dataset(n, step, id, is_synthetic, err) < 0) ||
            (mount->kind == MOUNT_SOURCE &&
             want_source(n, step, mount->name, mount->version, err) < 0)) {
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
