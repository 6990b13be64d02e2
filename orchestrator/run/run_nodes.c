/* SPDX-License-Identifier: Apache-2.0 */
/* The run's nodes: connections, and what is started on them. */
#include "base/base.h"

#include <stdlib.h>

#include "fleet/remote_slurm.h"
#include "run/run_attempt.h"

#include "evidence/environment.h"
#include "sys/proc.h"

#define RUN_COMMANDS_MAX (16u << 20)
#define PORT_FIRST                                                                                 \
    20000 /* of the ranks' rendezvous; below the kernel's own range for outgoing connections */
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
        .work_folder = r->dir.folder, .clock = r->opts->clock, .stop_signal = &r->stop_signal};
    r->chunk = arena_array(r->arena, char, RUN_CHUNK_BYTES);
    r->child_env = r->frozen.plan.address.ptr && r->frozen.plan.runtime == RUNTIME_NONE
                       ? bare_env(r)
                       : proc_env_allowed(r->arena, &n_env);
    if (r->frozen.inventory
            .is_local) { /* as when it was planned: what was frozen of it has no count */
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
        for (size_t k = 0; k < selected.n_nodes; k++) {
            if (str_eq(selected.nodes[k].name, r->fleet.nodes[idx].spec->name)) {
                nodes[n++] = idx;
                break;
            }
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
        if (kill_there(r, node->remote, job->job_id, err) < 0) {
            return err_wrap(err, "%.*s", STR_ARG(node->spec->name));
        }
    }
    return 0;
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

static const char *put_path(struct arena *arena, const char *text, const char *place,
                            const char *path)
{
    const char *rest = text;
    const char *done = "";
    for (const char *at; (at = strstr(rest, place)); rest = at + strlen(place)) {
        done = arena_printf(arena, "%s%.*s%s", done, (int)(at - rest), rest, path);
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
        for (size_t at = 0; r->nodes[node].paths && at < r->places.n; at++) {
            there[idx] =
                put_path(r->arena, there[idx], r->places.items[at], r->nodes[node].paths[at]);
        }
    }
    return argv ? there : NULL;
}

#define INSIDE_DATA "/reperf/data" /* where a container sees it */

/* Without a container nothing is mounted: the folders are where they were brought. */
static struct str outside(struct arena *arena, const struct plan_step *step, struct str word)
{
    const char *text = word.ptr && step->n_mounts ? str_z(arena, word) : NULL;
    for (size_t idx = 0; text && idx < step->n_mounts; idx++) {
        text = put_path(arena, text, str_z(arena, step->mounts[idx].inside),
                        run_place_of(arena, &step->mounts[idx]));
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
                          : is_data && !is_local ? STR_LIT(RUN_PLACE_DATA)
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
        mounts[n++] = (struct container_mount){STR_LIT(RUN_PLACE_DATA), STR_LIT(INSIDE_DATA)};
    }
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        mounts[n++] = (struct container_mount){str_of(run_place_of(arena, &step->mounts[idx])),
                                               step->mounts[idx].inside};
    }
    *ret_n = n;
    return mounts;
}

int run_launch(struct arena *arena, const struct run_launch *launch, const struct plan_step *step,
               struct launch_job **ret_jobs, size_t *ret_n, struct err *err)
{
    const struct plan *plan = launch->plan;
    bool is_inside = plan->runtime != RUNTIME_NONE;
    bool is_local = launch->inventory->is_local;
    const struct plan_step there = step_there(arena, plan, step, is_local);
    const struct inventory_node *first = &launch->inventory->nodes[launch->nodes[0]];
    size_t n_mounts = 0;
    const struct container_mount *mounts = mounts_of(arena, plan, step, &n_mounts);
    const struct launch_place place = {.inventory = launch->inventory,
                                       .nodes = launch->nodes,
                                       .n_nodes = (size_t)plan_step_nodes(step),
                                       .ranks_per_node = step->n_ranks / plan_step_nodes(step),
                                       .master_addr = str_z(arena, inventory_fast_address(first)),
                                       .master_port = port_of(launch->job_id)};
    const struct launch_opts opts = {.run_id = launch->run_id,
                                     .job_id = launch->job_id,
                                     .program = is_local ? launch->program : RUN_PLACE_PROGRAM,
                                     .runtime = plan->runtime,
                                     .image = is_inside ? launch->image : NULL,
                                     .flags = is_inside ? &step->flags : NULL,
                                     .is_check_required = is_inside,
                                     .mounts = mounts,
                                     .n_mounts = is_inside ? n_mounts : 0,
                                     /* A report from elsewhere could spoil it for the others. */
                                     .keeps_cache = is_inside && !plan->address.ptr &&
                                                    step->n_argv &&
                                                    str_eq_z(step->argv[0], TRAIN_PROGRAM),
                                     .limit_s = plan_step_deadline_s(plan, step),
                                     .env = is_local ? launch->env : NULL};
    if (is_inside && !opts.image) {
        return err_set(err, ERR_CONTAINER, "image %.*s is not on the nodes", STR_ARG(step->image));
    }
    struct launch_jobs jobs;
    if (launch_make(arena, &opts, &there, &place, &jobs, err) < 0) {
        return -1;
    }
    *ret_jobs = jobs.items;
    *ret_n = jobs.n;
    return 0;
}

int run_jobs(struct runner *r, const struct unit *unit, struct launch_job **ret_jobs, size_t *ret_n,
             struct err *err)
{
    const struct run_launch launch = {.plan = &r->frozen.plan,
                                      .inventory = r->fleet.inventory,
                                      .nodes = unit->nodes,
                                      .run_id = str_z(r->arena, r->dir.id),
                                      .job_id = run_job_id(r, unit),
                                      .program = planner_train_path(r->arena, r->opts->self),
                                      .image = run_image_of(r, unit->step),
                                      .env = r->child_env};
    if (run_launch(r->arena, &launch, unit->step, ret_jobs, ret_n, err) < 0) {
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
    struct remote *via = NULL;
    int failed = 0;
    if (!inventory->shared_folder.ptr) {
        failed = err_set(err, ERR_USAGE,
                         "inventory %.*s: launcher slurm needs a shared_folder, where the jobs "
                         "write their logs",
                         STR_ARG(inventory->id));
    } else if (!inventory->login.ptr && getenv("SLURM_JOB_ID")) {
        /* A second job would wait for the nodes that this one holds. */
        failed = err_set(err, ERR_USAGE,
                         "inventory %.*s: launcher slurm inside a Slurm allocation; its own nodes "
                         "are reached with launcher ssh",
                         STR_ARG(inventory->id));
    }
    if (failed) {
        return NULL;
    }
    const char *folder = str_z(r->arena, inventory->shared_folder);
    for (size_t idx = 0; idx < inventory->n_nodes && inventory->login.ptr && !via; idx++) {
        const struct inventory_node *node = &inventory->nodes[idx];
        if (str_eq(node->name, inventory->login)) {
            via = remote_ssh_new(&r->loop,
                                 &(struct remote_ssh_opts){
                                     .host = str_z(r->arena, node->address),
                                     .port = node->port,
                                     .user = node->user.ptr ? str_z(r->arena, node->user) : NULL,
                                     .work_folder = folder},
                                 err);
            if (!via) {
                return NULL;
            }
        }
    }
    if (!via) {
        via = remote_local_new(&r->loop, folder);
    }
    return remote_slurm_new(&r->loop, via);
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
