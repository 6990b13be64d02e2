/* SPDX-License-Identifier: Apache-2.0 */
/* The run's nodes: connections, and what is started on them. */
#include "base/base.h"

#include "run/run_impl.h"

#include <ctype.h>
#include <stdlib.h>

#include "evidence/environment.h"
#include "fleet/node_image.h"
#include "fleet/stage.h"
#include "report/source.h"
#include "run/run_attempt.h"
#include "store/dataset_store.h"
#include "store/source_store.h"
#include "sys/proc.h"

/* What the steps need on the nodes: images, the bundled workload's program, packed data. What is there already stays. */

#define OVERLAY_FILE_MAX (64u << 20)

static bool is_to_run(const struct runner *r, const struct plan_step *step)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (r->units[idx].step == step && unit_is_open(&r->units[idx])) {
            return true;
        }
    }
    return false;
}

/* ---- images ---- */

/* NULL: not provided. */
static const struct runtime_image *image_of(const struct runner *r, const struct plan_step *step)
{
    return STR_NAMED(r->images.items, r->images.n, digest, step->image_digest);
}

/* In the store an image is kept under its id, where that is not another one by now, or under the reference that it was fetched
   by. */
static const char *name_in_store(struct runner *r, const struct store *store,
                                 const struct plan_step *step)
{
    struct image_info info;
    const char *id = str_z(r->arena, step->image);
    return !store || (image_open(r->arena, store, id, &info, ERR_IGNORED) == 0 &&
                      str_eq_z(step->image_digest, oci_digest_of(info.pins.manifest).text))
               ? id
               : arena_printf(r->arena, "%.*s@%.*s", STR_ARG(step->image_name),
                              STR_ARG(step->image_digest));
}

static int spec_of(struct runner *r, const struct plan_step *step, struct image_spec *ret_spec,
                   struct err *err)
{
    struct image_spec spec = {.bytes = -1};
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
    /* Where no remaining node has it, a resumed step gets a name, and is never started. */
    if (!image->id.ptr) {
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
    if (!has_registry && store_open(r->arena, r->opts->ctx->store, &store, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < plan->n_steps && !r->stop_signal; idx++) {
        const struct plan_step *step = &plan->steps[idx];
        if (is_to_run(r, step) && step->image_digest.ptr && !image_of(r, step) &&
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

struct things { /* to be staged; parallel to them runner.tokens */
    VEC(struct stage_item) items;
};

static void things_cleanup(struct things *things)
{
    VEC_RELEASE(&things->items);
}

static void add_thing(struct runner *r, struct things *things, const char *token,
                      struct stage_item item)
{
    VEC_PUSH(&things->items, item);
    VEC_PUSH(&r->tokens, token);
}

static const char *folder_of(struct arena *arena, const struct plan_mount *mount)
{
    return mount->kind == MOUNT_SOURCE ? source_folder_name(arena, mount->version)
                                       : str_z(arena, mount->version);
}

static char *token_of(struct arena *arena, const struct plan_mount *mount)
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
    const struct net_opts net = {.is_offline = true, .clock = r->opts->ctx->clock};
    struct sources sources;
    struct source_tree tree;
    const char *folder =
        arena_printf(r->arena, "%s/sources/%s", r->dir.folder, folder_of(r->arena, mount));
    *ret_folder = folder;
    if (fs_is_dir(folder)) {
        return 0;
    }
    if (store_open(r->arena, r->opts->ctx->store, &store, err) < 0 ||
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
    if (store_open(r->arena, r->opts->ctx->store, &store, err) < 0 ||
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
    const char *token = token_of(r->arena, mount);
    struct stage_item item = {.kind = STAGE_FOLDER, .may_be_shared = true};
    for (size_t idx = 0; idx < r->tokens.n; idx++) {
        if (strcmp(r->tokens.items[idx], token) == 0) {
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
    add_thing(r, things, token, item);
    return 0;
}

static int collect_things(struct runner *r, struct things *things, struct err *err)
{
    const struct plan *plan = &r->frozen.plan;
    struct stage_item item;
    /* Outside containers this machine's own program and packed data are used where they are. */
    bool is_elsewhere = !r->fleet.inventory->is_local || plan->runtime != RUNTIME_NONE;
    if (is_elsewhere && needs_program(r)) {
        if (stage_program_item(r->arena, planner_train_path(r->arena, r->opts->ctx->self), &item,
                               err) < 0) {
            return -1;
        }
        add_thing(r, things, RUN_TOKEN_PROGRAM, item);
    }
    if (is_elsewhere && plan->data.folder.ptr) {
        if (stage_packed_item(r->arena, plan->data.folder.ptr, &item, err) < 0) {
            return -1;
        }
        add_thing(r, things, RUN_TOKEN_DATA, item);
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
    for (size_t idx = 0; idx < r->tokens.n && r->frozen.plan.runtime != RUNTIME_NONE; idx++) {
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
    const struct stage_opts opts = {.cache_path =
                                        fs_join(r->arena, r->opts->ctx->state, "cache/digests"),
                                    .clock = r->opts->ctx->clock};
    r->tokens.n = 0;
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
        for (size_t at = 0; there->paths && at < r->tokens.n; at++) {
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
        has_wide =
            has_wide || (unit_is_open(&r->units[idx]) && plan_step_nodes(r->units[idx].step) > 1);
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

#define RUN_COMMANDS_MAX (16u << 20)
/* The first port of the ranks' rendezvous, below the kernel's own range for outgoing connections. */
#define PORT_FIRST 20000
#define PORT_COUNT 10000

/* For what a report from elsewhere runs outside containers: nothing of the caller's but where programs are. */
static const char *const *bare_env(struct runner *r)
{
    const char **env = arena_array(r->arena, const char *, 4);
    const char *path = getenv("PATH");
    env[0] = arena_printf(r->arena, "PATH=%s", path ? path : "/usr/bin:/bin");
    env[1] = arena_printf(r->arena, "HOME=%s", r->dir.folder);
    env[2] = "LANG=C.UTF-8";
    return env;
}

int run_nodes_open(struct runner *r, struct err *err)
{
    size_t n_env = 0;
    struct fleet_opts opts = {
        .work_folder = r->dir.folder, .clock = r->opts->ctx->clock, .stop_signal = &r->stop_signal};
    r->chunk = arena_array(r->arena, char, RUN_CHUNK_BYTES);
    r->child_env = r->frozen.plan.address.ptr && r->frozen.plan.runtime == RUNTIME_NONE
                       ? bare_env(r)
                       : proc_env_allowed(r->arena, &n_env);
    /* What was frozen of this machine has no count: it is counted as when the run was planned. */
    if (r->frozen.inventory.is_local) {
        r->frozen.inventory.nodes[0].gpus = environment_gpus();
    }
    if (fleet_open(&r->fleet, &r->loop, &r->frozen.inventory, &opts, err) < 0) {
        return -1;
    }
    r->nodes = arena_array(r->arena, struct run_node, r->fleet.n_nodes + 1);
    return 0;
}

int run_place_again(struct runner *r, struct unit *unit, const struct journal_record *record,
                    struct err *err)
{
    size_t n_wanted = (size_t)plan_step_nodes(unit->step);
    size_t *nodes = arena_array(r->arena, size_t, n_wanted);
    struct inventory selected;
    size_t n = 0;
    unit->nodes = nodes;
    if (!record->note.len) { /* of a run before there were nodes */
        return 0;
    }
    if (inventory_select(r->fleet.inventory, r->arena, record->note, &selected, err) < 0) {
        return err_wrap(err, "%s:%lld", r->dir.journal, (long long)record->seq);
    }
    for (size_t idx = 0; idx < r->fleet.n_nodes && n < n_wanted; idx++) {
        if (STR_NAMED(selected.nodes, selected.n_nodes, name, r->fleet.nodes[idx].spec->name)) {
            nodes[n++] = idx;
        }
    }
    return n == n_wanted
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s:%lld: %.*s needs %zu nodes, found \"%.*s\"",
                         r->dir.journal, (long long)record->seq, STR_ARG(unit->step->case_id),
                         n_wanted, STR_ARG(record->note));
}

char *run_job_id(struct runner *r, const struct unit *unit)
{
    const char *rest =
        arena_printf(r->arena, "%.*s/repeat-%lld/attempt-%lld", STR_ARG(unit->step->case_id),
                     (long long)unit->repeat, (long long)unit->attempt);
    /* The local node's jobs lie in the run's own folder. */
    return r->fleet.inventory->is_local
               ? arena_printf(r->arena, "%s", rest)
               : arena_printf(r->arena, "%.*s/%s", STR_ARG(r->dir.id), rest);
}

static int kill_there(struct runner *r, struct remote *remote, const char *id, struct err *err)
{
    enum step step;
    while ((step = remote->ops->signal(remote, id, SIGKILL, err)) == STEP_AGAIN) {
        if (loop_once(&r->loop, RUN_TICK_NS, err) < 0) {
            return -1;
        }
    }
    return step == STEP_FAIL ? -1 : 0;
}

int run_kill_job(struct runner *r, const struct run_orphan *job, struct err *err)
{
    if (r->frozen.plan.launcher == LAUNCHER_SLURM) { /* the nodes know nothing of it */
        struct remote *batch = run_batch_open(r, err);
        int rc = batch ? kill_there(r, batch, job->job_id, err) : -1;
        remote_free(batch);
        return rc;
    }
    for (size_t idx = 0; idx < job->n_nodes; idx++) {
        const struct fleet_node *node = &r->fleet.nodes[job->nodes[idx]];
        struct err why = {0};
        if (node->is_left_out || kill_there(r, node->remote, job->job_id, &why) == 0) {
            continue;
        }
        if (run_is_node_error(&why)) {
            run_leave_out(r, job->nodes[idx], &why);
        }
        if (err->code == ERR_NONE) {
            (void)!err_set(err, why.code, "%.*s: %s", STR_ARG(node->spec->name), why.msg);
        }
    }
    return err->code == ERR_NONE ? 0 : -1;
}

void run_note_orphan(struct runner *r, const struct unit *unit)
{
    VEC_PUSH(&r->orphans, (struct run_orphan){run_job_id(r, unit), unit->nodes,
                                              (size_t)plan_step_nodes(unit->step)});
}

/* ---- jobs ---- */

/* Equal for one attempt on all its nodes, another for the next: a port that is still closing is not asked for again. */
static int64_t port_of(const char *job_id)
{
    uint64_t hash = 1469598103934665603u; /* FNV-1a */
    for (const char *at = job_id; *at; at++) {
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    }
    return PORT_FIRST + (int64_t)(hash % PORT_COUNT);
}

static bool is_in_name(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("._-", c));
}

/* An absolute path: that of "--in=/w" and "-I/w", not that in "/mnt/w", "sub/w" or "$HOME/w". */
static bool begins_at(const char *text, const char *at)
{
    size_t n = (size_t)(at - text);
    bool is_option = n >= 2 && at[-2] == '-' && (n == 2 || isspace((unsigned char)at[-3]));
    return n == 0 || is_option || !(is_in_name(at[-1]) || strchr("/}~)", at[-1]));
}

/* The path takes the place of what is named where that is a whole path or the first part of one: /data not in /data2. */
static const char *put_path(struct arena *arena, const char *text, const char *named,
                            const char *path)
{
    const char *rest = text;
    const char *done = "";
    for (const char *at; (at = strstr(rest, named)); rest = at + strlen(named)) {
        bool is_whole = !is_in_name(at[strlen(named)]) && begins_at(text, at);
        done =
            arena_printf(arena, "%s%.*s%s", done, (int)(at - rest), rest, is_whole ? path : named);
    }
    return rest == text ? text : arena_printf(arena, "%s%s", done, rest);
}

/* Each node's own paths: WORK need not be the same everywhere. */
static const char *const *put_paths(struct runner *r, size_t node, const char *const *argv)
{
    size_t n = 0;
    while (argv && argv[n]) {
        n++;
    }
    const char **there = arena_array(r->arena, const char *, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        there[idx] = argv[idx];
        for (size_t at = 0; r->nodes[node].paths && at < r->tokens.n; at++) {
            there[idx] =
                put_path(r->arena, there[idx], r->tokens.items[at], r->nodes[node].paths[at]);
        }
    }
    return argv ? there : NULL;
}

#define INSIDE_DATA "/reperf/data" /* where a container sees it */

/* Without a container nothing is mounted: the folders are where they were brought. Of mounts in one another the inner comes
   first. */
static struct str outside(struct arena *arena, const struct plan_step *step, struct str word)
{
    const char *text = word.ptr && step->n_mounts ? str_z(arena, word) : NULL;
    for (size_t len = text ? word.len : 0; len > 0; len--) {
        for (size_t idx = 0; idx < step->n_mounts; idx++) {
            const struct plan_mount *mount = &step->mounts[idx];
            text = mount->inside.len != len
                       ? text
                       : put_path(arena, text, str_z(arena, mount->inside), token_of(arena, mount));
        }
    }
    return text ? str_of(text) : word;
}

/* The step with the data where its processes will see it. */
static struct plan_step step_there(struct arena *arena, const struct plan *plan,
                                   const struct plan_step *step, bool is_local)
{
    bool is_inside = plan->runtime != RUNTIME_NONE;
    struct plan_step there = *step;
    there.argv = arena_array(arena, struct str, step->n_argv + 1);
    there.env = arena_array(arena, struct condition, step->n_env + 1);
    for (size_t idx = 0; idx < step->n_argv; idx++) {
        bool is_data = plan->data.folder.ptr && str_eq(step->argv[idx], plan->data.folder);
        there.argv[idx] = is_inside ? (is_data ? STR_LIT(INSIDE_DATA) : step->argv[idx])
                          : is_data && !is_local ? STR_LIT(RUN_TOKEN_DATA)
                                                 : outside(arena, step, step->argv[idx]);
    }
    for (size_t idx = 0; idx < step->n_env; idx++) {
        const struct condition *env = &step->env[idx];
        there.env[idx] = (struct condition){
            env->name, is_inside ? env->value : outside(arena, step, env->value)};
    }
    return there;
}

/* What the step's container sees: packed data, and what its recipe names. */
static struct container_mount *mounts_of(struct arena *arena, const struct plan *plan,
                                         const struct plan_step *step, size_t *ret_n)
{
    struct container_mount *mounts = arena_array(arena, struct container_mount, step->n_mounts + 1);
    size_t n = 0;
    if (plan->data.folder.ptr) {
        mounts[n++] = (struct container_mount){STR_LIT(RUN_TOKEN_DATA), STR_LIT(INSIDE_DATA)};
    }
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        mounts[n++] = (struct container_mount){str_of(token_of(arena, &step->mounts[idx])),
                                               step->mounts[idx].inside};
    }
    *ret_n = n;
    return mounts;
}

int run_launch(struct launch launch, const struct plan *plan, struct launch_job **ret_jobs,
               size_t *ret_n, struct err *err)
{
    const struct plan_step *step = launch.step;
    const bool is_local = launch.inventory->is_local;
    const struct plan_step there = step_there(launch.arena, plan, step, is_local);
    launch.step = &there;
    launch.n_nodes = (size_t)plan_step_nodes(step);
    launch.ranks_per_node = step->n_ranks / plan_step_nodes(step);
    launch.port = port_of(launch.job_id);
    launch.program = is_local ? launch.program : RUN_TOKEN_PROGRAM;
    launch.runtime = plan->runtime;
    launch.limit_s = plan_step_deadline_s(plan, step);
    launch.env = is_local ? launch.env : NULL;
    if (plan->runtime != RUNTIME_NONE) {
        launch.flags = &step->flags;
        launch.mounts = mounts_of(launch.arena, plan, step, &launch.n_mounts);
        /* A report from elsewhere could spoil it for the others. */
        launch.keeps_cache =
            !plan->address.ptr && step->n_argv && str_eq_z(step->argv[0], TRAIN_PROGRAM);
        if (!launch.image) {
            return err_set(err, ERR_CONTAINER, "image %.*s is not on the nodes",
                           STR_ARG(step->image));
        }
    }
    return launch_make(&launch, ret_jobs, ret_n, err);
}

int run_jobs(struct runner *r, const struct unit *unit, struct launch_job **ret_jobs, size_t *ret_n,
             struct err *err)
{
    const struct launch launch = {.arena = r->arena,
                                  .step = unit->step,
                                  .inventory = r->fleet.inventory,
                                  .nodes = unit->nodes,
                                  .run_id = str_z(r->arena, r->dir.id),
                                  .job_id = run_job_id(r, unit),
                                  .program = planner_train_path(r->arena, r->opts->ctx->self),
                                  .image = image_of(r, unit->step),
                                  .env = r->child_env};
    if (run_launch(launch, &r->frozen.plan, ret_jobs, ret_n, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < *ret_n; idx++) {
        struct launch_job *job = &(*ret_jobs)[idx];
        job->job.argv = put_paths(r, unit->nodes[job->place_idx], job->job.argv);
        job->job.env = put_paths(r, unit->nodes[job->place_idx], job->job.env);
        job->job.is_watched = run_watches(r);
    }
    return 0;
}

struct remote *run_batch_open(struct runner *r, struct err *err)
{
    const struct inventory *inventory = r->fleet.inventory;
    const char *why =
        !inventory->shared_folder.ptr
            ? "launcher slurm needs a shared_folder, where the jobs write their logs"
        : !inventory->login.ptr && getenv("SLURM_JOB_ID")
            /* A second job would wait for the nodes that this one holds. */
            ? "launcher slurm inside a Slurm allocation; its own nodes are reached with "
              "launcher ssh"
            : NULL;
    if (why) {
        (void)!err_set(err, ERR_USAGE, "inventory %.*s: %s", STR_ARG(inventory->id), why);
        return NULL;
    }
    const char *folder = str_z(r->arena, inventory->shared_folder);
    const struct inventory_node *node =
        inventory->login.ptr
            ? STR_NAMED(inventory->nodes, inventory->n_nodes, name, inventory->login)
            : NULL;
    if (!node) {
        return remote_local_new(&r->loop, folder);
    }
    return remote_ssh_new(
        &r->loop,
        &(struct remote_ssh_opts){.host = str_z(r->arena, node->address),
                                  .port = node->port,
                                  .user = node->user.ptr ? str_z(r->arena, node->user) : NULL,
                                  .work_folder = folder},
        err);
}

/* ---- as data ---- */

int run_write_commands(struct runner *r, struct unit *unit, const struct launch_job *jobs, size_t n,
                       struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(RUN_COMMANDS_MAX);
    struct commands_job *of_jobs = arena_array(r->arena, struct commands_job, n + 1);
    const struct commands_record record = {unit->step->case_id, unit->repeat, unit->attempt,
                                           of_jobs, n};
    if (r->fleet.inventory->is_local) {
        return 0; /* the plan has it; what else there is are this machine's own paths */
    }
    for (size_t idx = 0; idx < n; idx++) {
        of_jobs[idx] = (struct commands_job){
            .node = r->fleet.nodes[unit->nodes[jobs[idx].place_idx]].spec->name,
            .argv = jobs[idx].job.argv,
            .env = jobs[idx].job.env,
            .cleanup = jobs[idx].job.cleanup};
    }
    json_encode_document(&text, COMMANDS_ROWS, COMMANDS_N, &record);
    if (text.is_full) {
        return err_set(err, ERR_INTERNAL, "commands of a repeat: more than %u bytes",
                       RUN_COMMANDS_MAX);
    }
    return run_put_file(
        r, rundir_of_repeat(r->arena, RUNDIR_COMMANDS, unit->step->case_id, unit->repeat),
        strbuf_str(&text), &unit->commands, err);
}
