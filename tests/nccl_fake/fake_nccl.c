/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces NCCL under its own names: sums, gathers and broadcasts between processes, each with an emulated device,
   through a file that all have mapped. An operation is two pieces of work in the stream: the first puts this rank's
   data into the file, the second begins when all have, and takes theirs. So the host is never blocked, and can poll and
   abort, as with the real one.

   A communicator of several ranks ends only after every recorded program that has one of its operations: until then it
   is being finalized, and its abort waits too (NCCL's commDestroySync, from 2.18 to 2.30, waits for localPersistentRefs
   to become 0). Two ranks may not be on one device of one host; NCCL_HOSTID is the host's name.

   REPERF_FAKE_NCCL_DIR: the folder of the file. REPERF_FAKE_NCCL: the fault of this rank's library, a word or
   WORD:NUMBER: version (too old), no_id, init (fails), init_hang (never done), async:N (an error after N operations),
   hang:N (operation N never begins), abort_hang, wrong (every sum is one too many). */
#include "base/base.h"

#include <fcntl.h>
#include <nccl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/cuda_emu/emu.h"
#include "tests/cuda_fake/fake.h"

#define RANKS_MAX 16
#define SLOT_MAX  ((size_t)256 << 20) /* bytes of one operation; the file is sparse */
#define RUNS_MAX  4096

/* One of a rank's two places in the file, used in turn: a rank that writes operation n has read n - 1, so all have written n - 1,
   and so all have read n - 2. */
struct slot {
    _Atomic uint64_t number; /* of the operation whose data it is, from 1; 0: none */
    int kind;
    size_t bytes;
    int root;
};

struct shared {
    struct {
        uint64_t host; /* a hash */
        int device;
    } peers[RANKS_MAX]; /* valid where has_joined is */
    _Atomic int has_joined[RANKS_MAX];
    _Atomic int has_left[RANKS_MAX];
    struct slot slots[RANKS_MAX][2];
};

struct ncclComm {
    int rank, n_ranks;
    int fd;
    struct shared *shared;
    unsigned char *data; /* (RANKS_MAX, 2, SLOT_MAX) */
    uint64_t n_begun, n_ended;
    bool is_aborted, is_finalized;
    int n_enqueued, refs;
    int n_recorded; /* operations that a program has, which lives */
};

enum kind { SUM = 1, GATHER, BROADCAST };

struct run {
    const unsigned char *from;
    unsigned char *to;
    size_t count;
    ncclDataType_t type;
};

struct operation {
    ncclComm_t comm;
    enum kind kind;
    int root;
    int n_runs, refs;
    bool is_recorded;
    struct run runs[];
};

static struct {
    int depth;
    ncclComm_t comm;
    cudaStream_t stream;
    int n_runs;
    struct run runs[RUNS_MAX];
} group;

static char last_error[128];

/* ---- planted faults ---- */

/* -1: no such fault. */
static int fault(const char *name)
{
    const char *text = getenv("REPERF_FAKE_NCCL");
    size_t len = strlen(name);
    if (!text || strncmp(text, name, len) != 0 || (text[len] != '\0' && text[len] != ':')) {
        return -1;
    }
    return text[len] == ':' ? (int)strtol(text + len + 1, NULL, 10) : 0;
}

ncclResult_t ncclGetVersion(int *version)
{
    *version = fault("version") >= 0 ? 21003 : 22809;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    return result == ncclSuccess       ? "no error"
           : result == ncclSystemError ? "unhandled system error"
           : result == ncclRemoteError ? "remote process exited or there was a network error"
                                       : "invalid usage";
}

const char *ncclGetLastError(ncclComm_t comm)
{
    (void)comm;
    return last_error;
}

static void say(const char *text)
{
    (void)snprintf(last_error, sizeof(last_error), "%s", text);
}

/* ---- meeting ---- */

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    const char *folder = getenv("REPERF_FAKE_NCCL_DIR");
    memset(id, 0, sizeof(*id));
    if (fault("no_id") >= 0 || !folder) {
        say("no interface to listen at");
        return ncclSystemError;
    }
    (void)snprintf(id->internal, sizeof(id->internal), "%.90s/nccl.XXXXXX", folder);
    int fd = mkstemp(id->internal);
    if (fd < 0) {
        fake_die("nccl: REPERF_FAKE_NCCL_DIR cannot be written");
    }
    size_t bytes = sizeof(struct shared) + (size_t)RANKS_MAX * 2 * SLOT_MAX;
    if (ftruncate(fd, (off_t)bytes) != 0) {
        fake_die("nccl: its file cannot be made");
    }
    (void)close(fd);
    return ncclSuccess;
}

static uint64_t hash(const char *text)
{
    uint64_t sum = 14695981039346656037U; /* FNV-1a */
    for (; *text != '\0'; text++) {
        sum = (sum ^ (unsigned char)*text) * 1099511628211U;
    }
    return sum;
}

static void introduce(struct ncclComm *comm)
{
    const char *host = getenv("NCCL_HOSTID");
    comm->shared->peers[comm->rank].host = hash(host ? host : "this machine");
    if (cudaGetDevice(&comm->shared->peers[comm->rank].device) != cudaSuccess) {
        fake_die("nccl: no device");
    }
    atomic_store(&comm->shared->has_joined[comm->rank], 1);
}

/* All have joined. */
static bool shares_its_device(const struct ncclComm *comm)
{
    const struct shared *shared = comm->shared;
    for (int i = 0; i < comm->n_ranks; i++) {
        if (i != comm->rank && shared->peers[i].host == shared->peers[comm->rank].host &&
            shared->peers[i].device == shared->peers[comm->rank].device) {
            return true;
        }
    }
    return false;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n_ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    size_t bytes = sizeof(struct shared) + (size_t)RANKS_MAX * 2 * SLOT_MAX;
    if (config->blocking != 0 || n_ranks > RANKS_MAX || rank < 0 || rank >= n_ranks) {
        return ncclInvalidArgument;
    }
    if (fault("init") >= 0) {
        say("Call to connect returned Connection refused");
        return ncclSystemError;
    }
    struct ncclComm *made = calloc(1, sizeof(*made));
    int fd = open(id.internal, O_RDWR | O_CLOEXEC);
    if (!made || fd < 0) {
        fake_die("nccl: the other ranks' id is of no file");
    }
    unsigned char *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (at == MAP_FAILED) {
        fake_die("nccl: mmap");
    }
    *made = (struct ncclComm){.rank = rank,
                              .n_ranks = n_ranks,
                              .fd = fd,
                              .shared = (void *)at,
                              .data = at + sizeof(struct shared),
                              .refs = 1};
    if (fault("init_hang") < 0) {
        introduce(made);
    }
    *comm = made;
    return ncclInProgress;
}

static bool all_have(const struct ncclComm *comm, _Atomic int *flags)
{
    for (int i = 0; i < comm->n_ranks; i++) {
        if (atomic_load(&flags[i]) == 0) {
            return false;
        }
    }
    return true;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    int after = fault("async");
    bool is_there = all_have(comm, comm->shared->has_joined);
    bool is_done = is_there && (!comm->is_finalized ||
                                (comm->n_recorded == 0 && all_have(comm, comm->shared->has_left)));
    *state = is_done ? ncclSuccess : ncclInProgress;
    if (is_there && shares_its_device(comm)) {
        say("Duplicate GPU detected");
        *state = ncclInvalidUsage;
    }
    if (after >= 0 && comm->n_enqueued > after) {
        say("socket closed by peer");
        *state = ncclRemoteError;
    }
    return ncclSuccess;
}

/* Work in a stream may outlive the communicator. */
static void drop_comm(ncclComm_t comm)
{
    if (--comm->refs == 0) {
        (void)munmap(comm->shared, sizeof(struct shared) + (size_t)RANKS_MAX * 2 * SLOT_MAX);
        (void)close(comm->fd);
        free(comm);
    }
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    comm->is_finalized = true;
    atomic_store(&comm->shared->has_left[comm->rank], 1);
    return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (!comm->is_finalized || comm->n_begun != comm->n_ended) {
        fake_die("nccl: a communicator is destroyed that was not finalized, or is at work");
    }
    comm->is_aborted = true;
    drop_comm(comm);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    while (fault("abort_hang") >= 0) {
        (void)sleep(1);
    }
    comm->is_aborted = true;
    while (comm->n_recorded > 0) {
        (void)cudaDeviceSynchronize(); /* an emulated device works only when it is called */
        (void)usleep(1000);
    }
    drop_comm(comm);
    return ncclSuccess;
}

/* ---- operations ---- */

static size_t size_of(ncclDataType_t type)
{
    return type == ncclUint8 ? 1 : type == ncclFloat16 ? 2 : type == ncclFloat32 ? 4 : 8;
}

static struct slot *slot_of(const struct operation *op, int rank)
{
    return &op->comm->shared->slots[rank][op->comm->n_begun % 2];
}

static unsigned char *data_of(const struct operation *op, int rank)
{
    return op->comm->data + ((size_t)rank * 2 + op->comm->n_begun % 2) * SLOT_MAX;
}

static void put(void *closure)
{
    struct operation *op = closure;
    struct ncclComm *comm = op->comm;
    size_t at = 0;
    if (comm->is_aborted) {
        return;
    }
    if (comm->n_begun != comm->n_ended) {
        fake_die("nccl: two operations of a communicator at the same time");
    }
    comm->n_begun++;
    int hangs = fault("hang");
    if (hangs >= 0 && comm->n_begun > (uint64_t)hangs) {
        return;
    }
    unsigned char *to = data_of(op, comm->rank);
    for (int i = 0; i < op->n_runs; i++) {
        size_t bytes = op->runs[i].count * size_of(op->runs[i].type);
        if (at + bytes > SLOT_MAX) {
            fake_die("nccl: an operation of more bytes than this one has room for");
        }
        memcpy(to + at, op->runs[i].from, bytes);
        at += bytes;
    }
    struct slot *slot = slot_of(op, comm->rank);
    slot->kind = (int)op->kind;
    slot->bytes = at;
    slot->root = op->root;
    atomic_store(&slot->number, comm->n_begun);
}

static int is_there(void *closure)
{
    const struct operation *op = closure;
    for (int i = 0; i < op->comm->n_ranks && !op->comm->is_aborted; i++) {
        if (atomic_load(&slot_of(op, i)->number) != op->comm->n_begun) {
            return 0;
        }
    }
    return 1;
}

static double value_of(const unsigned char *at, ncclDataType_t type)
{
    float f;
    double d;
    uint16_t h;
    switch (type) {
    case ncclFloat16:
        memcpy(&h, at, sizeof(h));
        return (double)fake_half_to_float(h);
    case ncclFloat32:
        memcpy(&f, at, sizeof(f));
        return (double)f;
    case ncclUint8:
    case ncclFloat64:
    default:
        memcpy(&d, at, sizeof(d));
        return d;
    }
}

static void set_value(unsigned char *at, ncclDataType_t type, double value)
{
    float f = (float)value;
    uint16_t h = type == ncclFloat16 ? fake_half_from_float(f) : 0;
    memcpy(at,
           type == ncclFloat16   ? (const void *)&h
           : type == ncclFloat32 ? (const void *)&f
                                 : (const void *)&value,
           size_of(type));
}

/* In the order of the ranks; a half is rounded after each addition, as is a float: like a ring. */
static void add_up(const struct operation *op)
{
    size_t at = 0;
    double extra = fault("wrong") >= 0 ? 1.0 : 0.0;
    for (int i = 0; i < op->n_runs; i++) {
        const struct run *run = &op->runs[i];
        size_t size = size_of(run->type);
        for (size_t k = 0; k < run->count; k++, at += size) {
            for (int rank = 0; rank < op->comm->n_ranks; rank++) {
                double term = value_of(data_of(op, rank) + at, run->type);
                double sum = rank == 0 ? 0.0 : value_of(run->to + k * size, run->type);
                set_value(run->to + k * size, run->type, rank == 0 ? term + extra : sum + term);
            }
        }
    }
}

static void take(void *closure)
{
    const struct operation *op = closure;
    struct ncclComm *comm = op->comm;
    const struct slot *own = slot_of(op, comm->rank);
    const struct run *run = &op->runs[0];
    if (comm->is_aborted) {
        return;
    }
    for (int i = 0; i < comm->n_ranks; i++) {
        const struct slot *slot = slot_of(op, i);
        if (slot->kind != own->kind || slot->bytes != own->bytes || slot->root != own->root) {
            fake_die("nccl: ranks are at different operations");
        }
    }
    if (op->kind == SUM) {
        add_up(op);
    } else if (op->kind == BROADCAST) {
        memcpy(run->to, data_of(op, op->root), run->count);
    } else {
        for (int i = 0; i < comm->n_ranks; i++) {
            memcpy(run->to + (size_t)i * run->count, data_of(op, i), run->count);
        }
    }
    comm->n_ended++;
}

/* Both pieces of work have it. */
static void drop(void *closure)
{
    struct operation *op = closure;
    if (--op->refs == 0) {
        op->comm->n_recorded -= op->is_recorded;
        drop_comm(op->comm);
        free(op);
    }
}

static ncclResult_t enqueue(ncclComm_t comm, enum kind kind, int root, const struct run *runs,
                            int n_runs, cudaStream_t stream)
{
    struct operation *op = calloc(1, sizeof(*op) + (size_t)n_runs * sizeof(*runs));
    if (!op || !comm || comm->is_aborted || !all_have(comm, comm->shared->has_joined)) {
        fake_die("nccl: an operation of a communicator that is not ready");
    }
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    (void)cudaStreamIsCapturing(stream, &capture);
    *op = (struct operation){.comm = comm,
                             .kind = kind,
                             .root = root,
                             .n_runs = n_runs,
                             .refs = 2,
                             .is_recorded =
                                 comm->n_ranks > 1 && capture == cudaStreamCaptureStatusActive};
    memcpy(op->runs, runs, (size_t)n_runs * sizeof(*runs));
    comm->refs++;
    comm->n_recorded += op->is_recorded;
    comm->n_enqueued++;
    fake_enqueue(stream, "nccl put", put, op, drop);
    emu_enqueue_when("nccl take", stream, is_there, take, op, drop);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void)
{
    group.depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
    if (--group.depth > 0 || group.n_runs == 0) {
        return ncclSuccess;
    }
    int n = group.n_runs;
    group.n_runs = 0;
    return enqueue(group.comm, SUM, 0, group.runs, n, group.stream);
}

ncclResult_t ncclAllReduce(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    const struct run run = {from, to, count, type};
    if (op != ncclSum || count == 0) {
        return ncclInvalidArgument;
    }
    if (group.depth == 0) {
        return enqueue(comm, SUM, 0, &run, 1, stream);
    }
    if (group.n_runs == RUNS_MAX || (group.n_runs > 0 && group.stream != stream)) {
        fake_die("nccl: a group of too many operations, or of several streams");
    }
    group.comm = comm;
    group.stream = stream;
    group.runs[group.n_runs++] = run;
    return ncclSuccess;
}

ncclResult_t ncclAllGather(const void *from, void *to, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    const struct run run = {from, to, count * size_of(type), type};
    return enqueue(comm, GATHER, 0, &run, 1, stream);
}

ncclResult_t ncclBroadcast(const void *from, void *to, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    const struct run run = {from, to, count * size_of(type), type};
    return enqueue(comm, BROADCAST, root, &run, 1, stream);
}
