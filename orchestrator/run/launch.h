/* SPDX-License-Identifier: Apache-2.0 */
/* From a step of the plan and the nodes it got to the jobs that make one repeat: each with its argv and rank environment. Pure
   but for the arena; the runner starts them. */
#pragma once

#include "fleet/runtime.h"
#include "report/plan.h"

struct launch {          /* of one repeat */
    struct arena *arena; /* in which its jobs are made */
    const struct plan_step *step;
    const struct inventory *inventory;
    const size_t *nodes; /* indices into the inventory, in rank order */
    size_t n_nodes;
    int64_t ranks_per_node;
    int64_t port; /* where the ranks meet: of the first node, on its fast network */
    const char *run_id;
    /* RUN/CASE/repeat-N/attempt-M: REPERF_JOB of every rank, which must be the same for all. */
    const char *job_id;
    /* Path of reperf-train on the nodes where runtime is none; inside an image it is in PATH. */
    const char *program;
    enum runtime_kind runtime;
    const struct runtime_image *image; /* NULL for runtime none */
    /* NULL: none. One that does not hold inside ends the job before the workload begins. */
    const struct container_flags *flags;
    const struct container_mount *mounts;
    size_t n_mounts;
    /* A container of reperf-train has a cache of plans and kernels in RUNTIME_CACHE. */
    bool keeps_cache;
    int64_t limit_s;        /* LAUNCHER_SLURM: what Slurm is asked for; 0: its own default */
    const char *const *env; /* inherited part: of the local node; NULL elsewhere */
    /* argv of one rank, or of one node where the step is per node: made by launch_make. */
    const char *const *argv;
};

struct launch_job {
    size_t place_idx;      /* which of its nodes it is started on */
    struct remote_job job; /* id: job_id, and for several jobs the same on each node */
    bool has_metric;       /* its log is the one that metrics are read from */
};

/* LAUNCHER_SSH, and the inventory "local": n_nodes jobs, each starting its local ranks. Ranks get RANK, LOCAL_RANK, WORLD_SIZE,
   LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, REPERF_RUN_ID, REPERF_JOB, whatever the step's environment says of them; and,
   more than one, OMP_NUM_THREADS (a node's cores / its ranks) and OMP_WAIT_POLICY=passive unless step or inherited part name
   them. A step that is per node starts its own ranks: it runs once a node, with NODE_RANK, NODE_IPS, NNODES, NPROC_PER_NODE,
   MASTER_ADDR, MASTER_PORT. LAUNCHER_MPIRUN and LAUNCHER_SLURM: one job. */
MUST_CHECK int launch_make(const struct launch *launch, struct launch_job **ret_jobs, size_t *ret_n,
                           struct err *err);
