/* SPDX-License-Identifier: Apache-2.0 */
/* What the three launchers share. */
#ifndef RUN_LAUNCH_IMPL_H
#define RUN_LAUNCH_IMPL_H

#include "run/launch.h"

#define LAUNCH_GRACE_S     "5" /* between TERM and KILL for ranks that outlive one that failed */
#define LAUNCH_NODE_INSIDE "/reperf-node" /* where a container has the node's reperf-node */

struct launch_list { /* of words; ended by NULL */
    const char **items;
    size_t n, n_max;
};

struct launch {
    struct arena *arena;
    const struct launch_opts *opts;
    const struct plan_step *step;
    const struct launch_place *place;
    int64_t n_ranks;
    struct launch_list program; /* argv of one rank, or of one node where the step is per node */
};

struct launch_list launch_list_new(struct arena *arena, size_t n_max);
void launch_add(struct launch_list *list, const char *word);
size_t launch_count(const char *const *words);
void launch_add_all(struct launch_list *list, const char *const *words);

/* The environment that all ranks share: the step's, and ours. */
MUST_CHECK int launch_env(const struct launch *launch, struct launch_list *ret_env,
                          struct err *err);

/* argv of what starts a node's ranks, with the number of its first one; an empty one: counted from NODE_RANK_NAME. */
struct launch_list launch_starter(const struct launch *launch, const char *rank_base);

/* From what runs on a node to what is started there: itself, or a container around it. */
MUST_CHECK int launch_wrap(const struct launch *launch, size_t place_idx,
                           const struct launch_list *argv, const struct launch_list *env,
                           struct remote_job *ret_job, struct err *err);

/* Whether mpirun and srun start one process a node, not one a rank. */
bool launch_is_per_node(const struct launch *launch);
/* argv and environment of that process. */
MUST_CHECK int launch_task(const struct launch *launch, struct remote_job *ret_job,
                           struct err *err);

MUST_CHECK int launch_by_mpirun(const struct launch *launch, struct launch_job *ret_job,
                                struct err *err);
MUST_CHECK int launch_by_slurm(const struct launch *launch, struct launch_job *ret_job,
                               struct err *err);
MUST_CHECK int launch_by_ssh(const struct launch *launch, struct launch_job *ret_jobs,
                             struct err *err);

#endif
