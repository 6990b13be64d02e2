/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank of how many this process is, and where rank 0 listens, from what a launcher has put into the environment:
   torchrun's names (RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT), else Open MPI's
   (OMPI_COMM_WORLD_*), else Slurm's (SLURM_PROCID, SLURM_NTASKS, SLURM_LOCALID). Pure: the environment is a function. */
#pragma once

#include "base/err.h"

#define RANKS_ADDR_MAX     256
#define RANKS_PORT_DEFAULT 29500 /* Source: PyTorch, torch.distributed.run, as read 2026-11-21 */

struct ranks {
    const char *launcher; /* "torchrun", "openmpi", "slurm", or "none" for a process on its own */
    int rank, n_ranks;
    int local_rank, n_local_ranks;    /* 0 of 0 where the launcher does not say */
    char master_addr[RANKS_ADDR_MAX]; /* "" where there is one rank */
    int master_port;
};

typedef const char *(*ranks_env_fn)(void *ctx, const char *name); /* NULL: not set */

/* Whole and free of contradictions, or an error that names the variables. With is_alone, for uses without other ranks:
   addresses are not checked, and a WORLD_SIZE without a RANK is rank 0. */
MUST_CHECK int ranks_read(ranks_env_fn env, void *ctx, bool is_alone, struct ranks *ret_ranks,
                          struct err *err);

/* The first host of a Slurm node list: "gpu[07-09,12],x" is gpu07. */
MUST_CHECK int ranks_first_host(const char *list, char *ret_host, struct err *err);
