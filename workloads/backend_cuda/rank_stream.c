/* SPDX-License-Identifier: Apache-2.0 */
/* Communication with the other ranks' devices. All of it is on one stream, so that every rank's operations are in one order: a
   communicator whose operations ran in different orders would hang. Events tie that stream to the others, also while a step is
   captured. */
#include "base/base.h"

#include "backend_cuda/cuda.h"

#include "base/arena.h"
#include "base/clock.h"

#include <time.h>

#define NAP_NS 20000 /* between two checks of an event */

struct cuda_ranks {
    struct comm *comm; /* borrowed */
    cudaStream_t stream;
    cudaEvent_t there[CUDA_STREAMS_MAX]; /* from each stream */
    cudaEvent_t back;
    cudaEvent_t waited; /* by the host; never captured */
};

/* ---- waiting ---- */

static void keep(struct cuda *cuda, const struct err *err)
{
    if (cuda->err.code == ERR_NONE) {
        cuda->err = *err;
    }
}

bool cuda_wait_event(struct cuda *cuda, cudaEvent_t event)
{
    struct cuda_ranks *ranks = cuda->ranks;
    int64_t start_ns = clock_now_ns();
    if (!ranks || !ranks->comm->device.self) {
        return cuda_ok(cuda, cudaEventSynchronize(event), "work on the device");
    }
    cudaError_t status;
    while ((status = cudaEventQuery(event)) == cudaErrorNotReady) {
        const struct timespec nap = {.tv_nsec = NAP_NS};
        if (comm_fails_waiting(ranks->comm, clock_now_ns() - start_ns)) {
            keep(cuda, &ranks->comm->err);
            return false;
        }
        (void)nanosleep(&nap, NULL);
    }
    return cuda_ok(cuda, status, "work on the device");
}

bool cuda_wait_stream(struct cuda *cuda, cudaStream_t stream)
{
    struct cuda_ranks *ranks = cuda->ranks;
    if (!ranks || !ranks->comm->device.self) {
        return cuda_ok(cuda, cudaStreamSynchronize(stream), "work on the device");
    }
    return cuda_ok(cuda, cudaEventRecord(ranks->waited, stream), "cudaEventRecord") &&
           cuda_wait_event(cuda, ranks->waited);
}

/* ---- between streams ---- */

static void tie(struct cuda *cuda, cudaEvent_t event, cudaStream_t from, cudaStream_t to)
{
    cuda_ok(cuda, cudaEventRecord(event, from), "cudaEventRecord");
    cuda_ok(cuda, cudaStreamWaitEvent(to, event, 0), "cudaStreamWaitEvent");
}

static bool is_sound(struct cuda *cuda)
{
    if (cuda->ranks->comm->err.code != ERR_NONE) {
        keep(cuda, &cuda->ranks->comm->err);
    }
    return cuda->err.code == ERR_NONE;
}

static void after_all(struct cuda *cuda)
{
    for (int i = 0; i < cuda->n_streams; i++) {
        tie(cuda, cuda->ranks->there[i], cuda->streams[i], cuda->ranks->stream);
    }
}

static void sum_ranks(void *self, const struct comm_run *runs, int n_runs)
{
    struct cuda *cuda = self;
    struct cuda_ranks *ranks = cuda->ranks;
    if (is_sound(cuda)) {
        after_all(cuda);
        comm_device_sum(ranks->comm, runs, n_runs, ranks->stream);
        (void)is_sound(cuda);
    }
}

static void end_sums(void *self)
{
    struct cuda *cuda = self;
    tie(cuda, cuda->ranks->back, cuda->ranks->stream, cuda->streams[0]);
}

static void broadcast_ranks(void *self, void *data, int64_t bytes, int root)
{
    struct cuda *cuda = self;
    struct cuda_ranks *ranks = cuda->ranks;
    if (is_sound(cuda)) {
        after_all(cuda);
        comm_device_broadcast(ranks->comm, data, bytes, root, ranks->stream);
        if (is_sound(cuda)) {
            end_sums(cuda);
        }
    }
}

void cuda_sum_over_ranks(struct cuda *cuda, const struct kernel_args *args,
                         const struct comm_run *runs, int n_runs)
{
    struct cuda_ranks *ranks = cuda->ranks;
    cudaStream_t stream = cuda_stream(cuda, args);
    if (is_sound(cuda)) {
        tie(cuda, ranks->there[args->stream], stream, ranks->stream);
        comm_device_sum(ranks->comm, runs, n_runs, ranks->stream);
        tie(cuda, ranks->back, ranks->stream, stream);
        (void)is_sound(cuda);
    }
}

void cuda_gather_ranks(struct cuda *cuda, const struct kernel_args *args, void *data, int64_t bytes)
{
    struct cuda_ranks *ranks = cuda->ranks;
    cudaStream_t stream = cuda_stream(cuda, args);
    if (is_sound(cuda)) {
        tie(cuda, ranks->there[args->stream], stream, ranks->stream);
        comm_device_gather(ranks->comm, data, bytes, ranks->stream);
        tie(cuda, ranks->back, ranks->stream, stream);
        (void)is_sound(cuda);
    }
}

/* ---- opening ---- */

static void identify(void *self, char *ret_text, size_t size)
{
    const struct cuda *cuda = self;
    struct cudaDeviceProp prop;
    size_t at = (size_t)snprintf(ret_text, size, "GPU-");
    if (cudaGetDeviceProperties(&prop, cuda->device) != cudaSuccess) {
        return;
    }
    for (size_t i = 0; i < sizeof(prop.uuid.bytes) && at + 4 < size; i++) {
        bool has_dash = i == 4 || i == 6 || i == 8 || i == 10;
        at += (size_t)snprintf(ret_text + at, size - at, "%s%02x", has_dash ? "-" : "",
                               (unsigned)(unsigned char)prop.uuid.bytes[i]);
    }
}

/* Its operations take priority over others: the next step waits for them. */
static cudaError_t make(struct cuda *cuda)
{
    struct cuda_ranks *ranks = cuda->ranks;
    int least = 0;
    int greatest = 0;
    cudaError_t status = cudaDeviceGetStreamPriorityRange(&least, &greatest);
    if (status == cudaSuccess) {
        status = cudaStreamCreateWithPriority(&ranks->stream, cudaStreamNonBlocking, greatest);
    }
    for (int i = 0; i < cuda->n_streams && status == cudaSuccess; i++) {
        status = cudaEventCreateWithFlags(&ranks->there[i], cudaEventDisableTiming);
    }
    if (status == cudaSuccess) {
        status = cudaEventCreateWithFlags(&ranks->back, cudaEventDisableTiming);
    }
    return status == cudaSuccess ? cudaEventCreateWithFlags(&ranks->waited, cudaEventDisableTiming)
                                 : status;
}

static int join_ranks(void *self, struct comm *comm, struct err *err)
{
    struct cuda *cuda = self;
    if (!cuda->ranks) {
        cuda->ranks = xcalloc(1, sizeof(*cuda->ranks));
        cudaError_t status = make(cuda);
        if (status != cudaSuccess) {
            return err_set(err, ERR_WORKLOAD, "a stream for the ranks: %s",
                           cudaGetErrorString(status));
        }
    }
    cuda->ranks->comm = comm;
    return 0;
}

void cuda_fill_ranks(struct backend *backend)
{
    backend->async.join_ranks = join_ranks;
    backend->async.sum_ranks = sum_ranks;
    backend->async.broadcast_ranks = broadcast_ranks;
    backend->async.end_sums = end_sums;
    backend->async.identify = identify;
}

void cuda_ranks_close(struct cuda *cuda)
{
    struct cuda_ranks *ranks = cuda->ranks;
    if (!ranks) {
        return;
    }
    for (int i = 0; i < CUDA_STREAMS_MAX; i++) {
        if (ranks->there[i]) {
            (void)cudaEventDestroy(ranks->there[i]);
        }
    }
    if (ranks->back) {
        (void)cudaEventDestroy(ranks->back);
    }
    if (ranks->waited) {
        (void)cudaEventDestroy(ranks->waited);
    }
    if (ranks->stream) {
        (void)cudaStreamDestroy(ranks->stream);
    }
    free(ranks);
    cuda->ranks = NULL;
}
