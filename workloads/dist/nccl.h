/* SPDX-License-Identifier: Apache-2.0 */
/* A job's ranks on CUDA devices: NCCL in addition to the ring. The ring carries what is on the host (the id by which NCCL's ranks meet,
   agreement on data, barriers), NCCL what is on the devices. A communicator is created without blocking and with a deadline; its errors
   are checked whenever the host waits, and it is aborted when another rank fails or a signal comes, so that no kernel waits for a rank
   that is gone. One thread. */
#pragma once

#include "core/comm.h"
#include "dist/watch.h"

#define NCCL_GPU_MAX 64

struct nccl; /* opaque: nccl.h is nccl_api.h's */

struct nccl_opts {
    char gpu[NCCL_GPU_MAX]; /* tells this GPU from every other of any machine */
    /* NCCL ends only after the programs that hold its operations, by an abort too: they are dropped before. NULL: there are none. */
    void (*drop_programs)(void *device);
    void *device;                      /* borrowed */
    struct watch *watch;               /* borrowed */
    const volatile sig_atomic_t *stop; /* borrowed; may be NULL */
    int64_t open_ns;                   /* for all ranks to come */
    int64_t stall_ns;                  /* that the host waits for its device at most */
    int64_t abort_ns; /* that the library's abort may take before the process ends as it is */
};

/* comm is the ring's and gets what devices need. *ret_is_alike: all ranks have found the same error and end by
   themselves. */
MUST_CHECK int nccl_open(struct nccl **ret_nccl, struct comm *comm, const struct nccl_opts *opts,
                         bool *ret_is_alike, struct err *err);

/* Without a failure, waits for pending operations, for seconds at most; after one, or if that takes too long, aborts. NULL does
   nothing. */
void nccl_close(struct nccl *nccl, struct comm *comm);
