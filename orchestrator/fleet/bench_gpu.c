/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs: reperf-bench, from a pinned image, in a container on each node that has any. Its output is read like reperf-node's. */
#include "base/base.h"

#include "fleet/bench_impl.h"

#define ANSWER_BEGIN "{\"schema_version\""
#define SHM_BYTES    (INT64_C(1) << 30) /* NCCL's, between the processes of a node */
#define ARGS_MAX     16
#define WITHOUT      "; without GPUs: --only memory --only flops --only disk --only clock --only net"

static int64_t gpus_of(const struct bench_node *node)
{
    return node->gpus > 0 ? node->gpus : node->spec->gpus;
}

static void all_lack(struct bench_job *job, size_t node, const char *why)
{
    const struct bench_node *of = &job->result->nodes[node];
    for (size_t at = 0; at < BENCH_MEASURES; at++) {
        if (BENCH_MEASURE[at].what == BENCH_GPU) {
            bench_figure_lacks(job, node, &BENCH_MEASURE[at], str_of(why),
                               of->err.code == ERR_NONE && gpus_of(of) == 0);
        }
    }
}

/* Facts that no earlier measurement has found: the processor, and the number of GPUs. */
static int learn(struct bench_job *job, struct err *err)
{
    size_t n_nodes = job->fleet->n_nodes, n = 0;
    struct bench_task *tasks = bench_tasks_new(job, n_nodes);
    int rc;
    for (size_t idx = 0; idx < n_nodes; idx++) {
        if (!job->fleet->nodes[idx].is_left_out && !job->result->nodes[idx].cpu_model.ptr) {
            bench_task_is(job, &tasks[n++], idx, "loop", (const char *const[]){"1", NULL});
        }
    }
    rc = n ? bench_round(job, tasks, n, err) : 0;
    for (size_t idx = 0; idx < n && rc == 0; idx++) {
        struct bench_answer answer;
        (void)bench_read_task(job, &tasks[idx], BENCH_CLOCK, &answer);
    }
    bench_tasks_release(tasks, n_nodes);
    return rc;
}

/* ---- the image ---- */

/* On the nodes that have GPUs. *ret_is_there false: the reason is recorded for each. */
static int bring_image(struct bench_job *job, const bool *has_gpus, struct runtime_image *ret_image,
                       bool *ret_is_there, struct err *err)
{
    const struct bench_gpu_opts *gpu = job->opts->gpu;
    const struct node_image_opts opts = {.store = gpu->store, .kind = gpu->runtime};
    struct node_image_report report;
    struct fleet view = *job->fleet;
    struct err why = {0};
    *ret_is_there = false;
    view.nodes = arena_array(job->arena, struct fleet_node, view.n_nodes + 1);
    memcpy(view.nodes, job->fleet->nodes, view.n_nodes * sizeof(*view.nodes));
    for (size_t idx = 0; idx < view.n_nodes; idx++) {
        view.nodes[idx].is_left_out = view.nodes[idx].is_left_out || !has_gpus[idx];
    }
    if (node_images_provide(job->arena, &view, gpu->image, &opts, &report, &why) < 0) {
        if (why.code == ERR_INTERRUPTED) {
            *err = why;
            return -1;
        }
        for (size_t idx = 0; idx < view.n_nodes; idx++) {
            if (has_gpus[idx]) {
                all_lack(job, idx, arena_printf(job->arena, "the image: %s" WITHOUT, why.msg));
            }
        }
        return 0;
    }
    for (size_t idx = 0; idx < view.n_nodes; idx++) {
        if (has_gpus[idx] && view.nodes[idx].err.code != ERR_NONE) {
            job->fleet->nodes[idx].err = view.nodes[idx].err;
            job->fleet->nodes[idx].is_left_out = true;
            bench_node_fails(job, idx, &view.nodes[idx].err);
        }
    }
    *ret_image = report.image;
    *ret_is_there = true;
    return 0;
}

/* ---- the measurement ---- */

static int make_task(struct bench_job *job, struct bench_task *task, size_t node,
                     const struct runtime_image *image, struct err *err)
{
    const struct bench_opts *opts = job->opts;
    struct container_flags *flags = arena_new(job->arena, struct container_flags);
    struct runtime_commands commands;
    const char **argv = arena_array(job->arena, const char *, ARGS_MAX);
    size_t n = 0;
    argv[n++] = "reperf-bench";
    argv[n++] = "gpus";
    argv[n++] = "--deadline";
    argv[n++] = bench_number(job, opts->limit_s);
    argv[n++] = "--repeats";
    argv[n++] = bench_number(job, opts->n_repeats);
    argv[n++] = "--sample-ms";
    argv[n++] = bench_number(job, opts->sample_ms);
    if (opts->memory_bytes > 0) {
        argv[n++] = "--memory-mib";
        argv[n++] = bench_number(job, opts->memory_bytes >> 20);
    }
    *flags = (struct container_flags){
        .wants_gpus = true, .shm_bytes = SHM_BYTES, .memlock_bytes = LIMIT_UNLIMITED};
    const struct runtime_job inside = {
        .name = arena_printf(job->arena, "reperf-bench-%s-%zu", job->nonce, job->n_tasks_made),
        .image = image,
        .flags = flags,
        .argv = argv,
        .env = (const char *const[]){NULL},
        .run_id = arena_printf(job->arena, "bench-%s", job->nonce)};
    if (runtime_commands(job->arena, opts->gpu->runtime, &inside, &commands, err) < 0) {
        return -1;
    }
    bench_task_is(job, task, node, "gpu", (const char *const[]){NULL});
    task->argv = commands.argv;
    task->env = commands.env;
    task->cleanup = commands.cleanup;
    return 0;
}

/* Drivers and libraries may have printed something before: the answer is the last line that begins like one. */
static void keep_answer(struct bench_task *task)
{
    struct str rest = strbuf_str(&task->output), line, answer = STR_EMPTY;
    while (str_next(&rest, '\n', &line)) {
        if (str_starts(line, STR_LIT(ANSWER_BEGIN))) {
            answer = line;
        }
    }
    if (answer.len) {
        memmove(task->output.ptr, answer.ptr, answer.len);
        task->output.ptr[answer.len] = '\0';
        task->output.len = answer.len;
    }
}

static void take_answer(struct bench_job *job, struct bench_task *task)
{
    struct bench_node *node = &job->result->nodes[task->node];
    int64_t expected = gpus_of(node);
    struct bench_answer answer;
    keep_answer(task);
    if (!bench_read_task(job, task, BENCH_GPU, &answer)) {
        all_lack(job, task->node, task->err.msg);
        return;
    }
    if (answer.gpus != expected) {
        (void)!err_set(&task->err, ERR_NODE,
                       "reperf-bench sees %lld GPUs in its container, expected %lld",
                       (long long)answer.gpus, (long long)expected);
        bench_node_fails(job, task->node, &task->err);
        all_lack(job, task->node, task->err.msg);
        return;
    }
    node->gpus = answer.gpus;
    bench_take_figures(job, task->node, &answer);
}

static int run_in(struct bench_job *job, const bool *has_gpus, const struct runtime_image *image,
                  struct err *err)
{
    size_t n_nodes = job->fleet->n_nodes, n = 0;
    struct bench_task *tasks = bench_tasks_new(job, n_nodes);
    int rc = 0;
    for (size_t idx = 0; idx < n_nodes && rc == 0; idx++) {
        if (has_gpus[idx] && job->fleet->nodes[idx].is_left_out) {
            all_lack(job, idx, job->result->nodes[idx].err.msg);
        } else if (has_gpus[idx]) {
            rc = make_task(job, &tasks[n++], idx, image, err);
        }
    }
    rc = rc < 0 || n == 0 ? rc : bench_round(job, tasks, n, err);
    for (size_t idx = 0; idx < n && rc == 0; idx++) {
        take_answer(job, &tasks[idx]);
    }
    bench_tasks_release(tasks, n_nodes);
    return rc;
}

int bench_gpu_all(struct bench_job *job, struct err *err)
{
    const struct bench_gpu_opts *gpu = job->opts->gpu;
    bool *has_gpus = arena_array(job->arena, bool, job->fleet->n_nodes + 1);
    bool has_any = false, is_there = false;
    struct runtime_image image;
    if (learn(job, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < job->fleet->n_nodes; idx++) {
        const struct bench_node *node = &job->result->nodes[idx];
        const char *why = node->err.code != ERR_NONE ? node->err.msg
                          : gpus_of(node) == 0       ? "there is no GPU"
                          : gpu->why_not ? arena_printf(job->arena, "%s" WITHOUT, gpu->why_not)
                                         : NULL;
        has_gpus[idx] = !why;
        has_any = has_any || !why;
        if (why) {
            all_lack(job, idx, why);
        }
    }
    if (!has_any) {
        return 0;
    }
    return bring_image(job, has_gpus, &image, &is_there, err) < 0 ? -1
           : is_there ? run_in(job, has_gpus, &image, err)
                      : 0;
}
