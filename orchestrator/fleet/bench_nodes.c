/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/bench_impl.h"

#include <math.h>

#include "codec/digest.h"
#include "sys/relay_net.h"

#define NOTES_MAX  16
#define NONCE_SIZE 8

void bench_figure_lacks(struct bench_job *job, size_t node, const struct bench_measure *measure,
                        struct str why, bool is_excused)
{
    struct bench_figure *figure = &job->result->nodes[node].figures[measure - BENCH_MEASURE];
    figure->n = 0;
    figure->why = str_dup(job->arena, why);
    figure->is_excused = is_excused;
}

static void all_lack(struct bench_job *job, size_t node, enum bench_what what, const char *why)
{
    for (size_t idx = 0; idx < BENCH_MEASURES; idx++) {
        if (BENCH_MEASURE[idx].what == what && BENCH_MEASURE[idx].kind != BENCH_DRIFT) {
            bench_figure_lacks(job, node, &BENCH_MEASURE[idx], str_of(why), false);
        }
    }
}

static void take_note(struct bench_node *node, struct str note)
{
    for (size_t idx = 0; idx < node->n_notes; idx++) {
        if (str_eq(node->notes[idx], note)) {
            return; /* it said so before */
        }
    }
    if (node->n_notes < NOTES_MAX) {
        node->notes[node->n_notes++] = note;
    }
}

bool bench_read_task(struct bench_job *job, struct bench_task *task, enum bench_what what,
                     struct bench_answer *ret_answer)
{
    struct bench_node *node = &job->result->nodes[task->node];
    if (task->err.code != ERR_NONE) {
        return false;
    }
    if (bench_answer_read(job->arena, strbuf_str(&task->output), what, task->took_ns, ret_answer,
                          &task->err) < 0) {
        bench_node_fails(job, task->node, &task->err);
        return false;
    }
    if (what != BENCH_GPU) { /* a container may see otherwise */
        node->cpu_model = ret_answer->cpu_model;
        node->cpus = ret_answer->cpus;
        node->gpus = ret_answer->gpus;
    }
    for (size_t idx = 0; idx < ret_answer->n_notes; idx++) {
        take_note(node, ret_answer->notes[idx]);
    }
    return true;
}

void bench_figure_add(struct bench_job *job, struct bench_figure *figure,
                      const struct bench_series *series)
{
    double *values = arena_array(job->arena, double, figure->n + series->n);
    if (figure->n) {
        memcpy(values, figure->values, figure->n * sizeof(*values));
    }
    figure->n += bench_values(series, values + figure->n);
    figure->values = values;
    figure->why = STR_EMPTY;
    bench_figure_sum(job->arena, figure);
}

void bench_take_figures(struct bench_job *job, size_t node, const struct bench_answer *answer)
{
    for (size_t idx = 0; idx < answer->n_series; idx++) {
        const struct bench_series *series = &answer->series[idx];
        bench_figure_add(job, &job->result->nodes[node].figures[series->measure - BENCH_MEASURE],
                         series);
    }
    for (size_t idx = 0; idx < answer->n_lacks; idx++) {
        const struct bench_measure *measure = answer->lacks[idx].measure;
        bench_figure_lacks(job, node, measure, answer->lacks[idx].why,
                           bench_is_excused(measure, answer->gpus, job->fleet->n_nodes));
    }
}

static void take_answer(struct bench_job *job, struct bench_task *task, enum bench_what what)
{
    struct bench_answer answer;
    if (!bench_read_task(job, task, what, &answer)) {
        all_lack(job, task->node, what, task->err.msg);
        return;
    }
    bench_take_figures(job, task->node, &answer);
}

/* ---- what a node does alone ---- */

static void make_task(struct bench_job *job, struct bench_task *task, size_t node,
                      enum bench_what what)
{
    const struct bench_opts *opts = job->opts;
    const char *repeats = bench_number(job, opts->n_repeats);
    const char *args[4] = {NULL};
    size_t n = 0;
    switch (what) {
    case BENCH_MEMORY:
        args[n++] = bench_number(job, opts->memory_bytes);
        break;
    case BENCH_FLOPS:
        args[n++] = bench_number(job, opts->sample_ms);
        break;
    case BENCH_DISK:
        args[n++] = job->work[node];
        args[n++] = bench_number(job, opts->disk_bytes);
        break;
    case BENCH_CLOCK:
    case BENCH_NET:
    case BENCH_RING:
    case BENCH_GPU:
    case BENCH_WHATS:
    default:
        break;
    }
    args[n++] = repeats;
    bench_task_is(job, task, node, what == BENCH_CLOCK ? "loop" : bench_what_name(what), args);
}

static int run_alone(struct bench_job *job, enum bench_what what, struct err *err)
{
    size_t n = 0;
    struct bench_task *tasks = bench_tasks_new(job, job->fleet->n_nodes);
    int rc;
    for (size_t idx = 0; idx < job->fleet->n_nodes; idx++) {
        if (job->fleet->nodes[idx].is_left_out) {
            all_lack(job, idx, what, job->result->nodes[idx].err.msg);
        } else {
            make_task(job, &tasks[n++], idx, what);
        }
    }
    rc = bench_round(job, tasks, n, err);
    for (size_t idx = 0; idx < n && rc == 0; idx++) {
        take_answer(job, &tasks[idx], what);
    }
    bench_tasks_release(tasks, job->fleet->n_nodes);
    return rc;
}

/* ---- the clock ---- */

static void take_drift(struct bench_job *job)
{
    const struct bench_measure *measure = bench_measure_of(STR_LIT("clock.drift"));
    for (size_t idx = 0; idx < job->fleet->n_nodes; idx++) {
        struct bench_node *node = &job->result->nodes[idx];
        struct bench_figure *figure = &node->figures[measure - BENCH_MEASURE];
        double spread, drift = bench_drift(job->arena, node->ticks, node->n_ticks, &spread);
        if (isnan(drift)) {
            struct str why = node->err.code == ERR_NONE ? STR_LIT("too few times arrived")
                                                        : str_of(node->err.msg);
            bench_figure_lacks(job, idx, measure, why, false);
            continue;
        }
        figure->values = arena_array(job->arena, double, 1);
        figure->values[0] = fabs(drift);
        figure->n = 1;
        figure->spread_given = spread;
        bench_figure_sum(job->arena, figure);
    }
}

/* ---- judging ---- */

struct bench_all bench_all_of(struct bench_job *job)
{
    struct bench_result *result = job->result;
    struct str *groups = arena_array(job->arena, struct str, result->n_nodes + 1);
    struct bench_all all = {.groups = groups,
                            .figures =
                                arena_array(job->arena, struct bench_figure *, result->n_nodes + 1),
                            .n_nodes = result->n_nodes,
                            .links = result->links,
                            .n_links = result->n_links};
    for (size_t idx = 0; idx < result->n_nodes; idx++) {
        struct bench_node *node = &result->nodes[idx];
        all.figures[idx] = node->figures;
        groups[idx] = node->group = node->spec->n_groups  ? node->spec->groups[0]
                                    : node->cpu_model.len ? node->cpu_model
                                                          : STR_LIT("unknown");
    }
    return all;
}

/* Of single nodes there may be nothing to measure, as GPUs of those without; of all of them that is no success. */
static void check_any(struct bench_job *job)
{
    struct bench_result *result = job->result;
    struct str why = STR_EMPTY;
    for (size_t idx = 0; idx < result->n_nodes; idx++) {
        for (size_t at = 0; at < BENCH_MEASURES; at++) {
            const struct bench_figure *figure = &result->nodes[idx].figures[at];
            if (figure->n) {
                return;
            }
            why = !why.len && job->opts->wants[figure->measure->what] ? figure->why : why;
        }
    }
    for (size_t idx = 0; idx < result->n_nodes; idx++) {
        if (result->nodes[idx].err.code == ERR_NONE) {
            (void)!err_set(&result->nodes[idx].err, ERR_NODE, "nothing was measured: %.*s",
                           STR_ARG(why));
        }
    }
}

static void judge_all(struct bench_job *job)
{
    struct bench_result *result = job->result;
    struct bench_all all = bench_all_of(job);
    bench_judge(job->arena, job->opts->limits, &all);
    check_any(job);
    for (size_t idx = 0; idx < result->n_nodes; idx++) {
        struct bench_node *node = &result->nodes[idx];
        for (size_t at = 0; at < BENCH_MEASURES; at++) {
            const struct bench_figure *figure = &node->figures[at];
            if (node->err.code == ERR_NONE && !figure->n && !figure->is_excused &&
                job->opts->wants[figure->measure->what]) {
                (void)!err_set(&node->err, ERR_NODE, "%s: %.*s", figure->measure->id,
                               STR_ARG(figure->why));
            }
        }
        if (result->err.code == ERR_NONE) {
            result->err = node->err;
        }
    }
}

/* Which measurements have an outlier; whether any has. */
static bool find_suspects(const struct bench_result *result, bool *ret_suspect)
{
    bool has_any = false;
    memset(ret_suspect, 0, BENCH_WHATS * sizeof(*ret_suspect));
    for (size_t idx = 0; idx < result->n_nodes; idx++) {
        for (size_t at = 0; at < BENCH_MEASURES; at++) {
            const struct bench_figure *figure = &result->nodes[idx].figures[at];
            ret_suspect[figure->measure->what] |= figure->verdict == BENCH_OUTLIER;
        }
    }
    for (size_t idx = 0; idx < result->n_links; idx++) {
        const struct bench_figure *figure = &result->links[idx].figure;
        ret_suspect[figure->measure->what] |= figure->verdict == BENCH_OUTLIER;
    }
    for (size_t what = 0; what < BENCH_WHATS; what++) {
        has_any = has_any || ret_suspect[what];
    }
    return has_any;
}

int bench_exit_status(const struct bench_result *result)
{
    bool suspect[BENCH_WHATS];
    if (result->err.code == ERR_INTEGRITY || result->err.code == ERR_AUTH) {
        return err_exit_status(result->err.code);
    }
    if (result->err.code != ERR_NONE) {
        return err_exit_status(ERR_NODE);
    }
    return find_suspects(result, suspect) ? 1 : 0;
}

/* ---- all ---- */

static void stage(const struct bench_job *job, const char *name)
{
    if (job->opts->on_stage) {
        job->opts->on_stage(job->opts->stage_ctx, name);
    }
}

static int run_stage(struct bench_job *job, enum bench_what what, struct err *err)
{
    if (what == BENCH_NET) {
        return bench_net_all(job, err);
    }
    if (what == BENCH_GPU) {
        return bench_gpu_all(job, err);
    }
    if (run_alone(job, what, err) < 0) {
        return -1;
    }
    return job->opts->wants[BENCH_CLOCK] ? bench_tick_all(job, err) : 0;
}

/* Measurements of single nodes, the network, the rest of the clock, GPUs. */
static int run_stages(struct bench_job *job, struct err *err)
{
    static const enum bench_what ORDER[] = {BENCH_CLOCK, BENCH_MEMORY, BENCH_FLOPS,
                                            BENCH_DISK,  BENCH_NET,    BENCH_GPU};
    const bool *wants = job->opts->wants;
    for (size_t idx = 0; idx < ARRAY_LEN(ORDER); idx++) {
        if (!wants[ORDER[idx]]) {
            continue;
        }
        stage(job, bench_what_name(ORDER[idx]));
        if (run_stage(job, ORDER[idx], err) < 0) {
            return -1;
        }
    }
    while (wants[BENCH_CLOCK] && job->n_ticks < BENCH_TICKS_MIN) {
        if (bench_tick_all(job, err) < 0) {
            return -1;
        }
    }
    if (wants[BENCH_CLOCK]) {
        take_drift(job);
    }
    return 0;
}

/* ---- outliers are measured again ---- */

/* A disturbance of a second or two may cover all repeats of one node and none of the others'. So the whole group is measured again
   later, and the verdict is that of all repeats together. */
static int confirm(struct bench_job *job, struct err *err)
{
    bool suspect[BENCH_WHATS];
    for (int64_t round = 0; round < job->opts->n_confirm; round++) {
        struct bench_all all = bench_all_of(job);
        bench_judge(job->arena, job->opts->limits, &all);
        if (!find_suspects(job->result, suspect)) {
            return 0;
        }
        job->is_again = true;
        for (enum bench_what what = 0; what < BENCH_WHATS; what++) {
            if (!suspect[what]) {
                continue;
            }
            stage(job, arena_printf(job->arena, "%s again, as it has an outlier",
                                    bench_what_name(what)));
            if (run_stage(job, what, err) < 0) {
                return -1;
            }
        }
        if (suspect[BENCH_CLOCK]) {
            take_drift(job);
        }
    }
    return 0;
}

static int prepare(struct bench_job *job, struct err *err)
{
    size_t n = job->fleet->n_nodes;
    uint8_t nonce[NONCE_SIZE];
    job->there = arena_array(job->arena, const char *, n + 1);
    job->work = arena_array(job->arena, const char *, n + 1);
    job->result->nodes = arena_array(job->arena, struct bench_node, n + 1);
    job->result->n_nodes = n;
    for (size_t idx = 0; idx < n; idx++) {
        struct bench_node *node = &job->result->nodes[idx];
        node->spec = &job->fleet->inventory->nodes[idx];
        node->notes = arena_array(job->arena, struct str, NOTES_MAX);
        node->ticks = arena_array(job->arena, struct bench_tick, BENCH_TICKS_MAX);
        for (size_t at = 0; at < BENCH_MEASURES; at++) {
            node->figures[at] = (struct bench_figure){.measure = &BENCH_MEASURE[at],
                                                      .spread_given = (double)NAN,
                                                      .why = STR_LIT("not asked for"),
                                                      .is_excused = true,
                                                      .verdict = BENCH_NOT_MEASURED};
        }
    }
    if (relay_random(nonce, sizeof(nonce), err) < 0) {
        return -1;
    }
    hex_encode(nonce, sizeof(nonce), job->nonce);
    return 0;
}

int bench_nodes_run(struct arena *arena, struct fleet *fleet, const struct bench_opts *opts,
                    struct bench_result *ret_result, struct err *err)
{
    struct bench_result result = {0};
    struct bench_job job = {.arena = arena, .fleet = fleet, .opts = opts, .result = &result};
    if (prepare(&job, err) < 0 || bench_reach(&job, err) < 0 || run_stages(&job, err) < 0 ||
        confirm(&job, err) < 0) {
        return -1;
    }
    judge_all(&job);
    *ret_result = result;
    return 0;
}
