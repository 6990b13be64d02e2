/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/dry_run.h"

#include "codec/digest.h"
#include "codec/oci_ref.h"
#include "fleet/stage.h"
#include "report/source.h"
#include "run/run_impl.h"
#include "sys/proc.h"

#define RUN_NAME    "DRY-RUN" /* where a run's id would stand */
#define COMMAND_MAX (1u << 20)
#define WORK_UNKNOWN                                                                               \
    "${XDG_STATE_HOME:-$HOME/.local/state}/reperf" /* as the node's own program finds it */

struct thing { /* what lies below each node's work folder, unless its target is absolute */
    const char *place, *target;
};

struct dry {
    struct arena *arena;
    const struct run_opts *opts;
    const struct plan *plan;
    const struct inventory *inventory;
    const char *const *local_env;
    VEC(struct thing) things;
    VEC(struct dry_command) commands;
};

static void dry_cleanup(struct dry *d)
{
    VEC_RELEASE(&d->things);
    VEC_RELEASE(&d->commands);
}

/* ---- paths ---- */

static int add_program(struct dry *d, struct err *err)
{
    const char *path = planner_train_path(d->arena, d->opts->self);
    struct stage_item item;
    if (d->plan->runtime != RUNTIME_NONE || d->inventory->is_local) {
        return 0;
    }
    if (stage_program_item(d->arena, path, &item, err) < 0) {
        return -1;
    }
    VEC_PUSH(&d->things, ((struct thing){RUN_PLACE_PROGRAM, item.target}));
    return 0;
}

/* Where the first job of a node puts reperf-node; on this machine, where it is. */
static int add_node_program(struct dry *d, struct err *err)
{
    char *file = remote_node_file();
    const char *path = arena_printf(d->arena, "%s", file);
    struct str hex;
    free(file);
    if (!d->inventory->is_local) {
        if (digest_file_hex(d->arena, path, &hex, err) < 0) {
            return err_wrap(err, "reperf-node");
        }
        path = arena_printf(d->arena, "bin/reperf-node-%.*s", STR_ARG(hex));
    }
    VEC_PUSH(&d->things, ((struct thing){NODE_SELF, path}));
    return 0;
}

/* On this machine targets are the sources themselves; a commit is checked out into the run's folder. */
static const char *target_of(const struct dry *d, const struct plan_mount *mount)
{
    return !d->inventory->is_local ? run_target_of(d->arena, mount)
           : mount->folder.ptr
               ? str_z(d->arena, mount->folder)
               : arena_printf(d->arena, "%s/runs/" RUN_NAME "/sources/%s", d->opts->state,
                              source_folder_name(d->arena, mount->version));
}

static int find_things(struct dry *d, struct err *err)
{
    struct stage_item item;
    if (add_program(d, err) < 0 || add_node_program(d, err) < 0) {
        return -1;
    }
    if (d->plan->data.folder.ptr) {
        if (stage_packed_item(d->arena, d->plan->data.folder.ptr, &item, err) < 0) {
            return -1;
        }
        VEC_PUSH(&d->things, ((struct thing){RUN_PLACE_DATA,
                                             d->inventory->is_local ? item.source : item.target}));
    }
    for (size_t idx = 0; idx < d->plan->n_steps; idx++) {
        const struct plan_step *step = &d->plan->steps[idx];
        for (size_t at = 0; step->cause == ERR_NONE && at < step->n_mounts; at++) {
            struct thing thing = {run_place_of(d->arena, &step->mounts[at]),
                                  target_of(d, &step->mounts[at])};
            VEC_PUSH(&d->things, thing);
        }
    }
    return 0;
}

static const char *work_of(const struct dry *d, const struct inventory_node *node)
{
    return d->inventory->is_local
               ? arena_printf(d->arena, "%s/runs/" RUN_NAME, d->opts->state)
               : (node->work_folder.ptr ? str_z(d->arena, node->work_folder) : WORK_UNKNOWN);
}

/* The first placeholder in the word, and what it stands for; NULL: none. */
static const char *find_place(const struct dry *d, const char *word, const struct thing **ret_thing)
{
    const char *first = NULL;
    for (size_t idx = 0; idx < d->things.n; idx++) {
        const char *at = strstr(word, d->things.items[idx].place);
        if (at && (!first || at < first)) {
            first = at;
            *ret_thing = &d->things.items[idx];
        }
    }
    return first;
}

static void add_work(struct strbuf *out, const char *work)
{
    if (strcmp(work, WORK_UNKNOWN) == 0) {
        strbuf_add_z(out, "\"" WORK_UNKNOWN "\"");
    } else {
        shq_append(out, str_of(work));
    }
}

/* One word of a shell's line, with the node's own paths. */
static void add_word(const struct dry *d, const char *work, const char *word, struct strbuf *out)
{
    const struct thing *thing = NULL;
    const char *rest = word;
    const char *at;
    while ((at = find_place(d, rest, &thing))) {
        if (at != rest) {
            shq_append(out, (struct str){rest, (size_t)(at - rest)});
        }
        if (thing->target[0] == '/') {
            shq_append(out, str_of(thing->target));
        } else {
            add_work(out, work);
            shq_append(out, str_of(arena_printf(d->arena, "/%s", thing->target)));
        }
        rest = at + strlen(thing->place);
    }
    if (*rest || rest == word) {
        shq_append(out, str_of(rest));
    }
}

/* Unquoted, as a program gets them. */
static const char *const *put_paths(const struct dry *d, const char *work, const char *const *words)
{
    size_t n = 0;
    while (words && words[n]) {
        n++;
    }
    const char **there = arena_array(d->arena, const char *, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        const struct thing *thing = NULL;
        const char *at;
        there[idx] = words[idx];
        while ((at = find_place(d, there[idx], &thing))) {
            bool is_below = thing->target[0] != '/';
            there[idx] = arena_printf(d->arena, "%.*s%s%s%s%s", (int)(at - there[idx]), there[idx],
                                      is_below ? work : "", is_below ? "/" : "", thing->target,
                                      at + strlen(thing->place));
        }
    }
    return words ? there : NULL;
}

/* ---- lines ---- */

static void add_batch(const struct remote_batch *batch, struct strbuf *out)
{
    strbuf_printf(out, "salloc --nodes=%lld --ntasks-per-node=%lld --nodelist=",
                  (long long)batch->n_nodes, (long long)batch->tasks_per_node);
    shq_append(out, str_of(batch->nodelist));
    if (batch->gpus_per_node) {
        strbuf_printf(out, " --gpus-per-node=%lld", (long long)batch->gpus_per_node);
    }
    if (batch->limit_s) {
        strbuf_printf(out, " --time=%lld", (long long)((batch->limit_s + 59) / 60));
    }
    strbuf_add_char(out, ' ');
}

/* The line for the node's own shell. */
static void add_there(const struct dry *d, const char *work, const struct remote_job *job,
                      struct strbuf *out)
{
    if (job->batch) {
        add_batch(job->batch, out);
    }
    strbuf_add_z(out, "env");
    for (size_t idx = 0; job->env && job->env[idx]; idx++) {
        strbuf_add_char(out, ' ');
        add_word(d, work, job->env[idx], out);
    }
    for (size_t idx = 0; job->argv[idx]; idx++) {
        strbuf_add_char(out, ' ');
        add_word(d, work, job->argv[idx], out);
    }
}

static void add_ssh(const struct inventory_node *node, struct str there, struct strbuf *out)
{
    strbuf_add_z(out, "ssh ");
    if (node->port) {
        strbuf_printf(out, "-p %lld ", (long long)node->port);
    }
    if (node->user.ptr) {
        shq_append(out, node->user);
        strbuf_add_char(out, '@');
    }
    shq_append(out, node->address);
    strbuf_add_char(out, ' ');
    shq_append(out, there);
}

/* The node on which a job's line would be typed: its own; with Slurm the login node, else here. */
static const struct inventory_node *ssh_node(const struct dry *d, const struct inventory_node *node)
{
    if (d->inventory->is_local) {
        return NULL;
    }
    if (d->plan->launcher != LAUNCHER_SLURM) {
        return node;
    }
    for (size_t idx = 0; d->inventory->login.ptr && idx < d->inventory->n_nodes; idx++) {
        if (str_eq(d->inventory->nodes[idx].name, d->inventory->login)) {
            return &d->inventory->nodes[idx];
        }
    }
    return NULL;
}

static int add_command(struct dry *d, const struct plan_step *step,
                       const struct inventory_node *node, const struct remote_job *job,
                       struct err *err)
{
    CLEANUP(strbuf) struct strbuf there;
    CLEANUP(strbuf) struct strbuf line;
    const char *work = work_of(d, node);
    const struct inventory_node *by_ssh = ssh_node(d, node);
    strbuf_init(&there, COMMAND_MAX);
    strbuf_init(&line, COMMAND_MAX);
    add_there(d, work, job, &there);
    if (by_ssh) {
        add_ssh(by_ssh, strbuf_str(&there), &line);
    }
    const struct strbuf *whole = by_ssh ? &line : &there;
    if (there.is_full || line.is_full) {
        return err_set(err, ERR_INTERNAL, "case %.*s: its command has more than %u bytes",
                       STR_ARG(step->case_id), COMMAND_MAX);
    }
    struct dry_command command = {.case_id = step->case_id,
                                  .node = node->name,
                                  .shell = str_z(d->arena, strbuf_str(whole)),
                                  .argv = put_paths(d, work, job->argv),
                                  .env = put_paths(d, work, job->env),
                                  .cleanup = put_paths(d, work, job->cleanup)};
    VEC_PUSH(&d->commands, command);
    return 0;
}

/* ---- cases ---- */

/* By its digest, as the nodes' engine pulls it; a file where the engine has files. */
static int image_of(const struct dry *d, const struct plan_step *step, const char *work,
                    struct runtime_image *ret_image, struct err *err)
{
    struct oci_ref ref;
    struct str name = step->image_name;
    struct str digest = step->image_digest;
    if (oci_ref_parse(d->arena, name, &ref, err) < 0) {
        return -1;
    }
    bool is_pulled = d->inventory->registry.ptr != NULL;
    if (is_pulled) {
        name = str_of(arena_printf(d->arena, "%.*s/%.*s", STR_ARG(d->inventory->registry),
                                   STR_ARG(ref.path)));
    }
    *ret_image = (struct runtime_image){
        .name = step->image_name,
        .digest = digest,
        .id = !is_pulled && step->image_id.ptr
                  ? step->image_id
                  : str_of(arena_printf(d->arena, "%.*s@%.*s", STR_ARG(name), STR_ARG(digest))),
        .file =
            str_of(arena_printf(d->arena, "%s/images/%s%s", work, digest.ptr + strlen("sha256:"),
                                d->plan->runtime == RUNTIME_ENROOT ? ".sqsh" : ".sif"))};
    return 0;
}

/* The first that fit: a run takes those that are free. */
static const size_t *nodes_of(const struct dry *d, const struct plan_step *step)
{
    size_t n_wanted = (size_t)plan_step_nodes(step);
    size_t *nodes = arena_array(d->arena, size_t, n_wanted + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < d->inventory->n_nodes && n < n_wanted; idx++) {
        if (plan_step_fits(step, &d->inventory->nodes[idx])) {
            nodes[n++] = idx;
        }
    }
    ASSERT(n == n_wanted); /* else the step could not be run */
    return nodes;
}

static int add_step(struct dry *d, const struct plan_step *step, struct err *err)
{
    const char *rest = arena_printf(d->arena, "%.*s/repeat-1/attempt-1", STR_ARG(step->case_id));
    const size_t *nodes = nodes_of(d, step);
    bool is_inside = d->plan->runtime != RUNTIME_NONE;
    const char *work = work_of(d, &d->inventory->nodes[nodes[0]]);
    struct runtime_image image;
    struct launch_job *jobs = NULL;
    size_t n = 0;
    if (is_inside && image_of(d, step, work, &image, err) < 0) {
        return -1;
    }
    const struct run_launch launch = {
        .plan = d->plan,
        .inventory = d->inventory,
        .nodes = nodes,
        .run_id = RUN_NAME,
        .job_id = d->inventory->is_local ? rest : arena_printf(d->arena, RUN_NAME "/%s", rest),
        .program = planner_train_path(d->arena, d->opts->self),
        .image = is_inside ? &image : NULL,
        .env = d->local_env};
    if (run_launch(d->arena, &launch, step, &jobs, &n, err) < 0) {
        return err_wrap(err, "case %.*s", STR_ARG(step->case_id));
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (add_command(d, step, &d->inventory->nodes[nodes[jobs[idx].place_idx]], &jobs[idx].job,
                        err) < 0) {
            return -1;
        }
    }
    return 0;
}

int dry_run(struct arena *arena, const struct run_opts *opts, const struct run_prepared *prepared,
            struct dry_commands *ret_commands, struct err *err)
{
    CLEANUP(dry)
    struct dry d = {
        .arena = arena, .opts = opts, .plan = &prepared->plan, .inventory = &prepared->inventory};
    size_t n_env = 0;
    d.local_env = proc_env_allowed(arena, &n_env);
    if (find_things(&d, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < d.plan->n_steps; idx++) {
        if (d.plan->steps[idx].cause == ERR_NONE && add_step(&d, &d.plan->steps[idx], err) < 0) {
            return -1;
        }
    }
    struct dry_command *items = arena_array(arena, struct dry_command, d.commands.n + 1);
    memcpy(items, d.commands.items, d.commands.n * sizeof(*items));
    *ret_commands = (struct dry_commands){items, d.commands.n};
    return 0;
}
