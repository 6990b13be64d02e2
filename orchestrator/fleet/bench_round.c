/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/bench_impl.h"

#define SLACK_NS    (60 * NS_PER_S) /* to reach a node, put the program there and fetch what it says */
#define CLEANUP_NS  (15 * NS_PER_S)
#define CHUNK       65536
#define WHY_MAX     200
#define SIGNAL_KILL 9

struct bench_task *bench_tasks_new(struct bench_job *job, size_t n)
{
    struct bench_task *tasks = arena_array(job->arena, struct bench_task, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_init(&tasks[idx].output, NODE_BENCH_TEXT_MAX);
    }
    return tasks;
}

void bench_tasks_release(struct bench_task *tasks, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_release(&tasks[idx].output);
    }
}

const char *bench_number(struct bench_job *job, int64_t number)
{
    return arena_printf(job->arena, "%" PRId64, number);
}

void bench_task_is(struct bench_job *job, struct bench_task *task, size_t node, const char *what,
                   const char *const *args)
{
    size_t n = 0;
    task->node = node;
    task->id = arena_printf(job->arena, "bench-%s/%zu-%s", job->nonce, job->n_tasks_made++, what);
    task->args[n++] = bench_number(job, job->opts->limit_s);
    task->args[n++] = what;
    for (; *args; args++) {
        ASSERT(n + 1 < BENCH_ARGS_MAX);
        task->args[n++] = *args;
    }
}

void bench_node_fails(struct bench_job *job, size_t node, const struct err *why)
{
    struct err *err = &job->result->nodes[node].err;
    if (err->code == ERR_NONE) {
        *err = *why;
    }
}

/* ---- one task ---- */

static enum step start_task(struct bench_job *job, struct remote *remote, struct bench_task *task,
                            struct err *err)
{
    const char *argv[BENCH_ARGS_MAX + 3] = {job->there[task->node], "bench"};
    struct remote_job remote_job = {.id = task->id,
                                    .argv = task->argv ? task->argv : argv,
                                    .env = task->env,
                                    .cleanup = task->cleanup};
    for (size_t idx = 0; task->args[idx]; idx++) {
        argv[2 + idx] = task->args[idx];
    }
    if (task->begin_ns == 0) {
        task->begin_ns = job->opts->clock.mono_ns(job->opts->clock.ctx);
    }
    task->is_started = true;
    return remote->ops->start(remote, &remote_job, err);
}

static enum step poll_task(struct bench_job *job, struct remote *remote, struct bench_task *task,
                           struct err *err)
{
    struct job_report report = {0};
    enum step step = remote->ops->poll(remote, task->id, &report, err);
    if (step != STEP_DONE) {
        return step;
    }
    if (report.state == JOB_RUNNING) {
        task->is_looking = true; /* at what it says meanwhile: it may never end */
        return STEP_AGAIN;
    }
    task->took_ns = job->opts->clock.mono_ns(job->opts->clock.ctx) - task->begin_ns;
    task->has_ended = true;
    task->exit_status = report.exit_status;
    return report.state == JOB_ENDED
               ? STEP_DONE
               : step_fail(err_set(err, ERR_NODE, "reperf-node bench is gone without a status"));
}

/* STEP_DONE: there is no more, for now. */
static enum step read_task(struct remote *remote, struct bench_task *task, struct err *err)
{
    char chunk[CHUNK];
    struct log_part part = {.dst = chunk, .size = sizeof(chunk)};
    enum step step;
    do {
        part.offset = task->output.len;
        step = remote->ops->read_log(remote, task->id, &part, err);
        strbuf_add(&task->output, chunk, step == STEP_DONE ? part.len : 0);
    } while (step == STEP_DONE && part.len > 0 && !task->output.is_full);
    return step == STEP_DONE && task->output.is_full
               ? step_fail(err_set(err, ERR_NODE, "reperf-node bench says more than %u bytes",
                                   NODE_BENCH_TEXT_MAX))
               : step;
}

static enum step step_task(struct bench_job *job, struct remote *remote, struct bench_task *task,
                           struct err *err)
{
    enum step step = STEP_DONE;
    while (step == STEP_DONE && task->phase != TASK_OVER) {
        switch (task->phase) {
        case TASK_START:
            step = start_task(job, remote, task, err);
            break;
        case TASK_POLL:
            if (task->is_looking) {
                step = read_task(remote, task, err);
                task->is_looking = step == STEP_AGAIN;
                if (step != STEP_DONE) {
                    return step;
                }
            }
            step = poll_task(job, remote, task, err);
            break;
        case TASK_READ:
            step = read_task(remote, task, err);
            break;
        case TASK_FORGET:
            step = remote->ops->forget(remote, task->id, err);
            task->is_started = task->is_started && step != STEP_DONE;
            break;
        case TASK_OVER:
        default:
            break;
        }
        task->phase += step == STEP_DONE;
        if (task->phase == TASK_POLL) {
            return step; /* the node's other tasks begin before this one is waited for */
        }
    }
    return step;
}

/* ---- a node: all its tasks begin before any is waited for ---- */

static enum step step_node(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct bench_job *job = ctx;
    enum step step = STEP_DONE;
    for (int is_begun = 0; is_begun < 2; is_begun++) {
        for (size_t idx = 0; idx < job->n_tasks && step == STEP_DONE; idx++) {
            struct bench_task *task = &job->tasks[idx];
            if (task->node == node_idx && task->phase != TASK_OVER &&
                (task->phase == TASK_START) == !is_begun) {
                step = step_task(job, node->remote, task, err);
            }
        }
    }
    return step;
}

/* Of tasks that were started and did not end well. */
static enum step step_clean(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct bench_job *job = ctx;
    enum step step = STEP_DONE;
    for (size_t idx = 0; idx < job->n_tasks && step == STEP_DONE; idx++) {
        struct bench_task *task = &job->tasks[idx];
        if (task->node != node_idx || !task->is_started) {
            continue;
        }
        if (!task->has_ended && !task->is_killed) {
            step = node->remote->ops->signal(node->remote, task->id, SIGNAL_KILL, err);
            task->is_killed = step == STEP_DONE;
        }
        if (step == STEP_DONE &&
            !task->has_ended) { /* a job that is still dying is not forgotten */
            struct job_report report = {0};
            step = node->remote->ops->poll(node->remote, task->id, &report, err);
            task->has_ended = step == STEP_DONE && report.state != JOB_RUNNING;
            step = step == STEP_DONE && !task->has_ended ? STEP_AGAIN : step;
        }
        if (step == STEP_DONE) {
            step = node->remote->ops->forget(node->remote, task->id, err);
            task->is_started = step != STEP_DONE;
        }
    }
    return step;
}

/* Also after ^C, and of nodes that failed: what cannot be cleaned up there ends by its own limit. */
static void clean_up(struct bench_job *job)
{
    struct fleet view = *job->fleet;
    struct err ignored = {0};
    bool has_any = false;
    view.should_stop = NULL;
    view.stop_signal = NULL;
    view.nodes = arena_array(job->arena, struct fleet_node, view.n_nodes + 1);
    memcpy(view.nodes, job->fleet->nodes, view.n_nodes * sizeof(*view.nodes));
    for (size_t idx = 0; idx < view.n_nodes; idx++) {
        view.nodes[idx].is_left_out = true;
    }
    for (size_t idx = 0; idx < job->n_tasks; idx++) {
        struct bench_task *task = &job->tasks[idx];
        if (task->is_started) {
            view.nodes[task->node].is_left_out = false;
            has_any = true;
        }
    }
    if (has_any) {
        (void)!fleet_each(&view, CLEANUP_NS, step_clean, job, &ignored);
    }
}

/* ---- places ---- */

static enum step step_reach(void *ctx, struct fleet_node *node, size_t node_idx, struct err *err)
{
    struct bench_job *job = ctx;
    const char *work = NULL;
    const char *there = NULL;
    enum step step = node->remote->ops->work_folder(node->remote, &work, err);
    if (step == STEP_DONE) {
        step = node->remote->ops->program(node->remote, &there, err);
    }
    if (step == STEP_DONE) {
        job->work[node_idx] = arena_printf(job->arena, "%s", work);
        job->there[node_idx] = arena_printf(job->arena, "%s", there);
    }
    return step;
}

/* ---- a round ---- */

static void take_errors(struct bench_job *job)
{
    for (size_t idx = 0; idx < job->fleet->n_nodes; idx++) {
        struct fleet_node *node = &job->fleet->nodes[idx];
        if (node->err.code == ERR_NONE || node->is_left_out) {
            continue;
        }
        bench_node_fails(job, idx, &node->err);
        node->is_left_out = true; /* it is not asked for more */
    }
    for (size_t idx = 0; idx < job->n_tasks; idx++) {
        struct bench_task *task = &job->tasks[idx];
        const struct fleet_node *node = &job->fleet->nodes[task->node];
        struct str rest = str_trim(strbuf_str(&task->output)), line = STR_EMPTY;
        char why[WHY_MAX];
        if (task->phase == TASK_OVER && task->exit_status == 0) {
            continue;
        }
        if (task->phase != TASK_OVER) {
            task->err = node->err;
            continue;
        }
        (void)str_next(&rest, '\n', &line);
        snprintf(why, sizeof(why), "%.*s", STR_ARG(line));
        text_plain(why, strlen(why));
        (void)!err_set(&task->err, ERR_NODE, "%s ended with status %d%s%s",
                       task->argv ? "reperf-bench gpus"
                                  : arena_printf(job->arena, "reperf-node bench %s", task->args[1]),
                       task->exit_status, why[0] ? ": " : "", why);
        bench_node_fails(job, task->node, &task->err);
    }
}

int bench_reach(struct bench_job *job, struct err *err)
{
    int rc = fleet_each(job->fleet, SLACK_NS, step_reach, job, err);
    take_errors(job);
    return rc < 0 ? -1 : 0;
}

int bench_round(struct bench_job *job, struct bench_task *tasks, size_t n, struct err *err)
{
    int rc;
    job->tasks = tasks;
    job->n_tasks = n;
    rc = fleet_each(job->fleet, job->opts->limit_s * NS_PER_S + SLACK_NS, step_node, job, err);
    clean_up(job);
    if (rc >= 0) {
        take_errors(job);
    }
    job->tasks = NULL;
    job->n_tasks = 0;
    return rc < 0 ? -1 : 0;
}
