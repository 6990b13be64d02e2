/* SPDX-License-Identifier: Apache-2.0 */
/* A Slurm cluster as a place for jobs: a remote over another one, of the machine on which sbatch is called (this one or a login
   node). Jobs are submitted with sbatch and found again by name, so never submitted twice; exec and work_folder are that other
   remote's. A job that waits in the queue is JOB_RUNNING with is_waiting. Its argv runs in the batch script, on the first node of
   the allocation, and is expected to call srun (run/launch_slurm).
   Inside an allocation no sbatch is needed: launch's job then runs as it is, on the remote of this machine. */
#ifndef FLEET_REMOTE_SLURM_H
#define FLEET_REMOTE_SLURM_H

#include "fleet/remote.h"

struct remote_slurm_opts {
    const char *
        folder; /* absolute, the same on the login node and the compute nodes; NULL: via's work folder, which then must be */
    const char *const
        *extra; /* words for sbatch, such as "--partition=gpu"; ended by NULL; may be NULL */
};

/* Takes via over: it is freed with the new remote. Strings are copied. */
struct remote *remote_slurm_new(struct loop *loop, struct remote *via,
                                const struct remote_slurm_opts *opts);

#endif
