/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of fleet/bench. */
#ifndef FLEET_BENCH_IMPL_H
#define FLEET_BENCH_IMPL_H

#include "fleet/bench_nodes.h"

#define BENCH_ARGS_MAX 12

enum task_phase { TASK_START, TASK_POLL, TASK_READ, TASK_FORGET, TASK_OVER };

struct bench_task { /* one run of reperf-node on one node */
    size_t node;
    const char *id;
    const char *args[BENCH_ARGS_MAX]; /* after `bench`; ended by NULL */
    const char *const *env;
    const char *const *argv, *const *cleanup; /* argv: instead of reperf-node and args */
    /* its state */
    enum task_phase phase;
    bool is_started; /* a job there must be forgotten */
    bool is_looking; /* it runs, and its log is read */
    bool is_killed, has_ended;
    int exit_status;
    int64_t begin_ns, took_ns;
    struct strbuf output;
    struct err err; /* it has no answer; the reason */
};

struct bench_job { /* all of it */
    struct arena *arena;
    struct fleet *fleet;
    const struct bench_opts *opts;
    struct bench_result *result;
    const char **there; /* of each node: its path there; NULL: not known yet */
    const char **work;  /* of each node */
    char nonce[17];
    size_t n_tasks_made;
    struct net_bench *net;    /* bench_net.c's; NULL: not measured yet */
    size_t n_ticks;           /* how often all nodes were asked for their time */
    bool is_again;            /* values are added to the earlier ones */
    struct bench_task *tasks; /* of the round under way, sorted by node */
    size_t n_tasks;
};

/* bench_round.c. Starts all tasks, waits for all, reads and forgets them. Tasks of a failed node get its error. -1: stopped. */
MUST_CHECK int bench_round(struct bench_job *job, struct bench_task *tasks, size_t n,
                           struct err *err);
/* Finds out where each node has its work folder, and will have reperf-node. */
MUST_CHECK int bench_reach(struct bench_job *job, struct err *err);
/* In the arena of the job: zeroed tasks, their buffers ready until bench_tasks_release. */
struct bench_task *bench_tasks_new(struct bench_job *job, size_t n);
void bench_tasks_release(struct bench_task *tasks, size_t n);
/* Fills id and args: "LIMIT", what, then the rest. */
void bench_task_is(struct bench_job *job, struct bench_task *task, size_t node, const char *what,
                   const char *const *args);
const char *bench_number(struct bench_job *job, int64_t number);
/* The first error of a node stays. */
void bench_node_fails(struct bench_job *job, size_t node, const struct err *why);

/* bench_clock.c: 20 lines with each node's time. */
MUST_CHECK int bench_tick_all(struct bench_job *job, struct err *err);

/* bench_net.c: every pair, and the ring. */
MUST_CHECK int bench_net_all(struct bench_job *job, struct err *err);

/* bench_gpu.c: everything that GPUs are asked for, where there are any. */
MUST_CHECK int bench_gpu_all(struct bench_job *job, struct err *err);

/* bench_nodes.c */
/* The answer of a task that ended well; else false, and node and task have the reason. */
bool bench_read_task(struct bench_job *job, struct bench_task *task, enum bench_what what,
                     struct bench_answer *ret_answer);
/* The measurements so far, for judge/bench_judge.h; gives each node its group. */
struct bench_all bench_all_of(struct bench_job *job);
/* Adds the values of a series to the figure's. */
void bench_figure_add(struct bench_job *job, struct bench_figure *figure,
                      const struct bench_series *series);
/* The figures of a node that the answer has, and what it lacks. */
void bench_take_figures(struct bench_job *job, size_t node, const struct bench_answer *answer);
void bench_figure_lacks(struct bench_job *job, size_t node, const struct bench_measure *measure,
                        struct str why, bool is_excused);

#endif
