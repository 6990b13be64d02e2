/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/job.h"

#include "base/clock.h"
#include "base/fs.h"
#include "dist/nccl.h"

/* Decides whose failure it is: the watch's verdict comes first; otherwise it is ours, and the others are told. */
static int settle(struct job *job, const struct job_opts *opts, struct err *err)
{
    struct err verdict = {0};
    bool is_stopped = opts->stop && *opts->stop != 0;
    if (!is_stopped && watch_check(job->watch, &verdict) < 0) {
        *err = verdict;
    } else {
        job_fail(job, err->msg);
    }
    return -1;
}

static int make_ring(struct job *job, struct rendezvous_opts *opts, const struct meeting *meeting,
                     const struct job_opts *all, struct err *err)
{
    int next = -1;
    int prev = -1;
    const struct ranks *ranks = opts->ranks;
    opts->wait.cancel_fd = watch_fd(job->watch);
    if (rendezvous_ring(opts, meeting, &next, &prev, err) < 0) {
        return settle(job, all, err);
    }
    ring_init(&job->ring, ranks->rank, ranks->n_ranks, next, prev);
    job->ring.watch = job->watch;
    job->ring.stop = all->stop;
    job->ring.timeout_ns = all->timeout_ns;
    job->comm = ring_comm(&job->ring);
    comm_barrier(&job->comm);
    if (comm_has_failed(&job->comm)) {
        *err = job->comm.err;
        return -1;
    }
    return 0;
}

int job_open(struct job *job, const struct job_opts *opts, struct err *err)
{
    const struct ranks *ranks = opts->ranks;
    *job = (struct job){.comm = comm_self(), .rank = ranks->rank, .is_open = true};
    if (ranks->n_ranks == 1) {
        return 0;
    }
    struct meeting meeting;
    struct rendezvous_opts meet = {
        .ranks = ranks,
        .job = opts->token,
        .iface = opts->iface,
        .facts = opts->facts,
        .network = opts->network,
        .listener = opts->listener,
        .wait = {.deadline_ns = clock_now_ns() + opts->rendezvous_ns, .stop = opts->stop}};
    if (rendezvous(&meet, &meeting, err) < 0) {
        return -1;
    }
    const struct watch_opts watch = {.rank = ranks->rank,
                                     .n_ranks = ranks->n_ranks,
                                     .timeout_ns = opts->timeout_ns,
                                     .stall_ns = opts->timeout_ns * JOB_STALLS_A_TIMEOUT};
    int status = watch_start(&job->watch, &watch, meeting.control, err);
    if (status == 0) {
        status = make_ring(job, &meet, &meeting, opts, err);
    }
    meeting_release(&meeting, ranks->n_ranks);
    if (status < 0) {
        job_close(job);
        return err_wrap(err, "rendezvous at %s port %d", ranks->master_addr, ranks->master_port);
    }
    return 0;
}

void job_fail(struct job *job, const char *why)
{
    struct err verdict = {0};
    char text[WIRE_TEXT_MAX];
    if (job->watch && !job->ends_alike && watch_check(job->watch, &verdict) == 0) {
        snprintf(text, sizeof(text), "rank %d failed: %.400s", job->rank, why);
        watch_tell(job->watch, job->rank, text);
    }
}

void job_ends_alike(struct job *job)
{
    job->ends_alike = true;
}

#ifdef REPERF_HAVE_NCCL
#define ABORT_LEAST_NS (10 * NS_PER_S)

/* What is on the device must end first: a slow one is given longer by whoever waits longer for it. */
static int64_t abort_ns(int64_t timeout_ns)
{
    int64_t third_ns = timeout_ns / 3;
    return third_ns > ABORT_LEAST_NS ? third_ns : ABORT_LEAST_NS;
}

int job_use_cuda(struct job *job, const struct job_device *device, const struct job_opts *opts,
                 struct err *err)
{
    struct nccl_opts nccl = {.drop_programs = device->drop_programs,
                             .device = device->self,
                             .watch = job->watch,
                             .stop = opts->stop,
                             .open_ns = opts->rendezvous_ns,
                             .stall_ns = opts->timeout_ns * JOB_STALLS_A_TIMEOUT,
                             .abort_ns = abort_ns(opts->timeout_ns)};
    bool is_alike = false;
    if (opts->ranks->n_ranks == 1) {
        return 0;
    }
    (void)snprintf(nccl.gpu, sizeof(nccl.gpu), "%s", device->gpu);
    int status = nccl_open(&job->nccl, &job->comm, &nccl, &is_alike, err);
    if (is_alike) {
        job_ends_alike(job);
    }
    return status;
}

static void close_nccl(struct job *job)
{
    nccl_close(job->nccl, &job->comm);
}
#else
int job_use_cuda(struct job *job, const struct job_device *device UNUSED,
                 const struct job_opts *opts, struct err *err)
{
    if (opts->ranks->n_ranks == 1) {
        return 0;
    }
    job_ends_alike(job);
    return err_set(err, ERR_USAGE,
                   "several ranks on CUDA devices: this build has no NCCL (there was no nccl.h)");
}

static void close_nccl(struct job *job UNUSED)
{
}
#endif

void job_abort(struct job *job)
{
    comm_device_abort(&job->comm);
}

void job_close(struct job *job)
{
    if (job->is_open) {
        close_nccl(job);
        watch_close(job->watch);
        ring_release(&job->ring);
        *job = (struct job){0};
    }
}
