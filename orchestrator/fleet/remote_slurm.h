/* SPDX-License-Identifier: Apache-2.0 */
/* A Slurm cluster as a place for jobs: a remote over another one, of the machine on which sbatch is called (this one or a login
   node), whose work folder must be absolute and the same on the compute nodes. Jobs are submitted with sbatch and found again by name,
   so never submitted twice. A job that waits in the queue is JOB_RUNNING with is_waiting. Its argv runs in the batch job, on the first
   node of the allocation, and is expected to call srun (run/launch.c).
   Inside an allocation no sbatch is needed: launch's job then runs as it is, on the remote of this machine. */
#pragma once

#include "fleet/remote.h"

/* Takes via over: it is freed with the new remote. */
struct remote *remote_slurm_new(struct loop *loop, struct remote *via);

/* The login node's answer about a job. gone_ns: since when Slurm has called the job over without a status of its own; 0: it has
   not. */
MUST_CHECK int slurm_read_report(struct str line, int64_t now_ns, int64_t *gone_ns,
                                 struct job_report *ret_report, struct err *err);
