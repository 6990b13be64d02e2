/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/clean.h"

#include <signal.h>

#include "base/fs.h"

#define KILL_WAIT_NS     (10 * NS_PER_S) /* for its wrapper to be gone */
#define REST_DEADLINE_NS (120 * NS_PER_S)
#define REST_OUTPUT_MAX  (1u << 20)

#define REST_PAIRS_MAX 16384 /* of one request */

enum phase { PHASE_KILL, PHASE_GONE, PHASE_FORGET };

struct removal {        /* the items that one reperf-node removes without more ado */
    struct str *fields; /* of NODE_REMOVE: the engine, then pairs; NULL: not begun */
    size_t n, at;       /* pairs: in all, done */
};

struct apply_node {
    size_t
        n_over; /* items, from the last on: a job's folder may hold another job's, its monitor's */
    enum phase phase;
    int64_t until_ns;
    struct remote *own; /* of the local node: each run has its own work folder */
    struct removal batch,
        rest; /* jobs of Slurm, by its login node; what is neither those nor jobs */
    struct strbuf output;
};

struct apply {
    struct arena arena;
    struct fleet *fleet;
    struct clean_list *list;
    struct apply_node *nodes;
    struct remote *own; /* of this machine, for Slurm; NULL: not needed yet */
};

/* ---- a job ---- */

static struct remote *remote_of(struct apply *apply, struct fleet_node *node, size_t node_idx,
                                const struct clean_item *item)
{
    struct apply_node *of = &apply->nodes[node_idx];
    const char *root = apply->list->opts.jobs_root;
    if (!root) {
        return node->remote;
    }
    if (!of->own) {
        of->own = remote_local_new(
            apply->fleet->loop, arena_printf(&apply->arena, "%s/%.*s", root, STR_ARG(item->run)));
    }
    return of->own;
}

/* The local node's job ids lack the run, and its jobs lie in the run's folder. */
static const char *job_id(struct apply *apply, const struct clean_item *item)
{
    struct str id = item->name;
    if (!apply->list->opts.jobs_root) {
        return str_z(&apply->arena, item->id);
    }
    return str_z(&apply->arena, str_starts(id, STR_LIT("jobs/")) ? str_sub(id, 5, id.len) : id);
}

static enum step kill_job(struct apply *apply, struct apply_node *of, struct remote *remote,
                          const char *id, struct err *err)
{
    enum step step = remote->ops->signal(remote, id, SIGKILL, err);
    if (step == STEP_DONE) {
        of->phase = PHASE_GONE;
        of->until_ns = loop_now_ns(apply->fleet->loop) + KILL_WAIT_NS;
    }
    return step;
}

static enum step await_end(struct apply *apply, struct apply_node *of, struct remote *remote,
                           const char *id, struct err *err)
{
    struct job_report report;
    enum step step = remote->ops->poll(remote, id, &report, err);
    if (step == STEP_DONE && report.state != JOB_RUNNING) {
        of->phase = PHASE_FORGET;
    } else if (step == STEP_DONE) {
        step = loop_now_ns(apply->fleet->loop) < of->until_ns
                   ? STEP_AGAIN
                   : step_fail(err_set(err, ERR_NODE, "job %s runs on after KILL", id));
    }
    return step;
}

/* KILL at once, to all processes of its session: a program may ignore TERM. Also for one that has ended: KILL runs a job's cleanup,
   which removes its container. */
static enum step step_job(struct apply *apply, struct fleet_node *node, size_t node_idx,
                          struct clean_item *item, struct err *err)
{
    struct apply_node *of = &apply->nodes[node_idx];
    struct remote *remote = remote_of(apply, node, node_idx, item);
    const char *id = job_id(apply, item);
    enum step step = STEP_DONE;
    while (step == STEP_DONE && !item->is_done) {
        switch (of->phase) {
        case PHASE_KILL:
            step = kill_job(apply, of, remote, id, err);
            break;
        case PHASE_GONE:
            step = await_end(apply, of, remote, id, err);
            break;
        case PHASE_FORGET:
        default:
            step = remote->ops->forget(remote, id, err);
            item->is_done = step == STEP_DONE;
            break;
        }
    }
    return step;
}

static void end_job(struct apply_node *of)
{
    remote_free(of->own);
    of->own = NULL;
    of->phase = PHASE_KILL;
    of->n_over++;
}

/* ---- the rest ---- */

static bool is_of(const struct clean_item *item, bool is_batch)
{
    return item->action != CLEAN_KEEP && item->kind != CLEAN_JOB &&
           (item->kind == CLEAN_BATCH) == is_batch;
}

static void begin_removal(struct apply *apply, const struct clean_node *list, bool is_batch,
                          struct removal *removal)
{
    removal->fields = arena_array(&apply->arena, struct str, 2 * list->n_items + 1);
    for (size_t idx = 0; idx < list->n_items; idx++) {
        const struct clean_item *item = &list->items[idx];
        if (is_of(item, is_batch)) {
            removal->fields[2 * removal->n + 1] = str_of(CLEAN_KIND_NAMES[item->kind]);
            removal->fields[2 * removal->n + 2] = item->id;
            removal->n++;
        }
    }
}

/* The jobs of Slurm, or all else but jobs. */
static enum step step_removal(struct apply *apply, struct remote *remote, size_t node_idx,
                              bool is_batch, struct err *err)
{
    struct clean_node *list = &apply->list->nodes[node_idx];
    struct apply_node *of = &apply->nodes[node_idx];
    struct removal *removal = is_batch ? &of->batch : &of->rest;
    if (!removal->fields) {
        begin_removal(apply, list, is_batch, removal);
    }
    while (removal->at < removal->n) {
        size_t left = removal->n - removal->at;
        size_t n = left < REST_PAIRS_MAX ? left : REST_PAIRS_MAX;
        struct str *fields = removal->fields + 2 * removal->at; /* the slot before them is free */
        const struct remote_ask ask = {.what = is_batch ? "ending jobs of Slurm"
                                                        : "removing what is left there",
                                       .op = NODE_REMOVE,
                                       .fields = fields,
                                       .n_fields = 2 * n + 1,
                                       .output = &of->output,
                                       .deadline_ns = REST_DEADLINE_NS};
        remote = remote ? remote : clean_batch_remote(apply->fleet, apply->list, &apply->own);
        fields[0] = str_of(RUNTIME_KIND_NAMES[apply->fleet->inventory->runtime]);
        enum step step = remote->ops->ask(remote, &ask, err);
        if (step != STEP_DONE) {
            return step;
        }
        removal->at += n;
    }
    for (size_t idx = 0; idx < list->n_items; idx++) {
        struct clean_item *item = &list->items[idx];
        item->is_done = item->is_done || is_of(item, is_batch);
    }
    return STEP_DONE;
}

static enum step step_apply(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct apply *apply = ctx;
    struct clean_node *list = &apply->list->nodes[node_idx];
    struct apply_node *of = &apply->nodes[node_idx];
    if (list->err.code != ERR_NONE) {
        *err = list->err;
        return STEP_FAIL;
    }
    if (node_idx == apply->list->batch_idx) { /* found when it is needed: most need none */
        enum step step = step_removal(apply, NULL, node_idx, true, err);
        if (step != STEP_DONE) {
            return step;
        }
    }
    while (of->n_over < list->n_items) {
        struct clean_item *item = &list->items[list->n_items - 1 - of->n_over];
        enum step step = STEP_DONE;
        if (item->kind == CLEAN_JOB && item->action != CLEAN_KEEP) {
            step = step_job(apply, node, node_idx, item, err);
        }
        if (step != STEP_DONE) {
            return step;
        }
        end_job(of);
    }
    return step_removal(apply, node->remote, node_idx, false, err);
}

int clean_apply(struct fleet *fleet, struct clean_list *list, struct err *err)
{
    struct apply apply = {.fleet = fleet, .list = list};
    apply.nodes = arena_array(&apply.arena, struct apply_node, fleet->n_nodes + 1);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        strbuf_init(&apply.nodes[idx].output, REST_OUTPUT_MAX);
    }
    int n_failed = fleet_each(fleet, 0, step_apply, &apply, err);
    for (size_t idx = 0; idx < fleet->n_nodes; idx++) {
        strbuf_release(&apply.nodes[idx].output);
        remote_free(apply.nodes[idx].own);
    }
    remote_free(apply.own);
    arena_release(&apply.arena);
    return n_failed;
}
