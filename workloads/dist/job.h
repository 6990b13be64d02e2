/* SPDX-License-Identifier: Apache-2.0 */
/* This process as one of a job's ranks: the rendezvous, the watch for dead ranks, and the communicator. A job of one rank is
   a job too and touches no network. Must not be moved once it is open. */
#pragma once

#include "dist/ranks.h"
#include "dist/rendezvous.h"
#include "dist/ring.h"

#define JOB_STALLS_A_TIMEOUT                                                                       \
    20 /* time-outs granted to a rank that beats but does not enter an operation */

struct job_opts {
    const struct ranks *ranks; /* borrowed */
    const char *token, *iface; /* REPERF_JOB, REPERF_DIST_IFACE; may be NULL */
    const char *facts;         /* dist/rendezvous.h */
    const char *network;
    int listener; /* dist/rendezvous.h */
    int64_t rendezvous_ns, timeout_ns;
    const volatile sig_atomic_t *stop; /* may be NULL */
};

/* This rank's device among those of all ranks. */
struct job_device {
    const char *gpu;                   /* tells it from every other of any machine */
    void *self;                        /* borrowed until job_close */
    void (*drop_programs)(void *self); /* dist/nccl.h */
};

struct nccl;

struct job {
    struct comm comm;
    struct ring ring;
    struct nccl *nccl;   /* owned; NULL: the ranks' data lies on the host */
    struct watch *watch; /* owned; NULL with one rank */
    int rank;
    bool is_open;
    bool ends_alike; /* job_ends_alike */
};

/* Returns when every rank is present and connected to its neighbours. */
MUST_CHECK int job_open(struct job *job, const struct job_opts *opts, struct err *err);

/* From here on the ranks' data is on CUDA devices. After a failure, as after any of an open job, job_fail and job_close. The
   process has chosen its device. */
MUST_CHECK int job_use_cuda(struct job *job, const struct job_device *device,
                            const struct job_opts *opts, struct err *err);

/* This rank cannot go on: tells the others why, unless the failure comes from them, or all ranks fail alike. */
void job_fail(struct job *job, const char *why);

/* What ends this rank is in numbers that all ranks have: each finds it by itself and ends with the same message. So nobody is
   told: a verdict could overtake the numbers, and ranks that receive it first would end differently from those that see the
   numbers first. */
void job_ends_alike(struct job *job);

/* After a failure: devices no longer wait for other ranks, so that their memory can be freed. */
void job_abort(struct job *job);

/* Without a failure, waits for the others, for seconds at most. */
void job_close(struct job *job);
static inline void job_cleanup(struct job *job)
{
    job_close(job);
}
