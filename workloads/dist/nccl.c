/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/nccl.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "dist/nccl_api.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS      50000          /* between two looks at what is in progress */
#define GRACE_NS    (2 * NS_PER_S) /* for the watch to see a death that NCCL has seen */
#define FINALIZE_NS (5 * NS_PER_S)
#define RUNS_MAX    65536
#define ONE_GPU     "REPERF_NCCL_ONE_GPU" /* for tests, "1": ranks may share a GPU */

struct nccl {
    struct nccl_api api;
    struct nccl_opts opts;
    ncclComm_t comm; /* owned; NULL: none, or aborted */
    int rank, n_ranks;
};

static void nap(void)
{
    const struct timespec some = {.tv_nsec = NAP_NS};
    (void)nanosleep(&some, NULL);
}

/* ---- failures ---- */

/* NCCL sees that a connection broke, not which rank is gone: the watch may know shortly. Else the failure is this
   rank's own. */
static int broken(struct nccl *nccl, ncclResult_t status, const char *what, struct err *err)
{
    char text[WIRE_TEXT_MAX - 32];
    char said[WIRE_TEXT_MAX];
    nccl_api_text(&nccl->api, status, nccl->comm, what, text, sizeof(text));
    for (int64_t end_ns = clock_now_ns() + GRACE_NS; clock_now_ns() < end_ns; nap()) {
        if (watch_check(nccl->opts.watch, err) < 0) {
            return -1;
        }
    }
    (void)snprintf(said, sizeof(said), "rank %d failed: %s", nccl->rank, text);
    return watch_report(nccl->opts.watch, nccl->rank, said, err);
}

/* Success, in progress, or a failure that is told. */
static int look(struct nccl *nccl, ncclResult_t *ret_state, const char *what, struct err *err)
{
    const volatile sig_atomic_t *stop = nccl->opts.stop;
    if (stop && *stop != 0) {
        return err_set(err, ERR_INTERRUPTED, "signal %d", (int)*stop);
    }
    if (watch_check(nccl->opts.watch, err) < 0) {
        return -1;
    }
    *ret_state = ncclSuccess;
    ncclResult_t status =
        nccl->comm ? nccl->api.ncclCommGetAsyncError(nccl->comm, ret_state) : ncclInvalidUsage;
    status = status == ncclSuccess ? *ret_state : status;
    return status == ncclSuccess || status == ncclInProgress ? 0 : broken(nccl, status, what, err);
}

static int check(void *self, int64_t waited_ns, struct err *err)
{
    struct nccl *nccl = self;
    ncclResult_t state;
    if (look(nccl, &state, "an operation", err) < 0) {
        return -1;
    }
    if (waited_ns > nccl->opts.stall_ns) {
        char text[WIRE_TEXT_MAX];
        (void)snprintf(text, sizeof(text),
                       "rank %d waits for its device for %.0f s, and no rank is behind: an "
                       "operation of NCCL hangs",
                       nccl->rank, (double)waited_ns / (double)NS_PER_S);
        return watch_report(nccl->opts.watch, nccl->rank, text, err);
    }
    return 0;
}

/* Waits for what a non-blocking call has started. Nothing may be enqueued after it before it is done. */
static int settle(struct nccl *nccl, ncclResult_t status, const char *what, int64_t limit_ns,
                  struct err *err)
{
    int64_t end_ns = clock_now_ns() + limit_ns;
    while (status == ncclInProgress) {
        if (look(nccl, &status, what, err) < 0) {
            return -1;
        }
        if (status == ncclInProgress && clock_now_ns() >= end_ns) {
            return err_set(err, ERR_TIMEOUT, "nccl: %s: not done after %.0f s", what,
                           (double)limit_ns / (double)NS_PER_S);
        }
        if (status == ncclInProgress) {
            nap();
        }
    }
    return status == ncclSuccess ? 0 : broken(nccl, status, what, err);
}

/* ---- operations ---- */

static ncclDataType_t type_of(enum dtype dtype)
{
    return dtype == DT_F16 ? ncclFloat16 : dtype == DT_F64 ? ncclFloat64 : ncclFloat32;
}

static int sum(void *self, const struct comm_run *runs, int n_runs, void *stream, struct err *err)
{
    struct nccl *nccl = self;
    watch_count(nccl->opts.watch);
    ASSERT(n_runs <= RUNS_MAX);
    ncclResult_t status = nccl->api.ncclGroupStart();
    for (int i = 0; i < n_runs && status == ncclSuccess; i++) {
        status = nccl->api.ncclAllReduce(runs[i].from, runs[i].to, (size_t)runs[i].count,
                                         type_of(runs[i].dtype), ncclSum, nccl->comm, stream);
        status = status == ncclInProgress ? ncclSuccess : status;
    }
    ncclResult_t ended = nccl->api.ncclGroupEnd();
    return settle(nccl, status == ncclSuccess ? ended : status, "ncclAllReduce",
                  nccl->opts.stall_ns, err);
}

static int gather(void *self, void *data, int64_t bytes, void *stream, struct err *err)
{
    struct nccl *nccl = self;
    watch_count(nccl->opts.watch);
    const char *own = (const char *)data + nccl->rank * bytes;
    ncclResult_t status =
        nccl->api.ncclAllGather(own, data, (size_t)bytes, ncclUint8, nccl->comm, stream);
    return settle(nccl, status, "ncclAllGather", nccl->opts.stall_ns, err);
}

static int broadcast(void *self, void *data, int64_t bytes, int root, void *stream, struct err *err)
{
    struct nccl *nccl = self;
    watch_count(nccl->opts.watch);
    ncclResult_t status =
        nccl->api.ncclBroadcast(data, data, (size_t)bytes, ncclUint8, root, nccl->comm, stream);
    return settle(nccl, status, "ncclBroadcast", nccl->opts.stall_ns, err);
}

static void count(void *self)
{
    const struct nccl *nccl = self;
    watch_count(nccl->opts.watch);
}

/* ---- the end ---- */

struct aborting {
    __typeof__(&ncclCommAbort) abort;
    ncclComm_t comm;
};

static void *abort_comm(void *arg)
{
    const struct aborting *it = arg;
    (void)it->abort(it->comm);
    return NULL;
}

/* Both ends of NCCL wait for these. Source: NCCL 2.18 to 2.30, src/init.cc, commDestroySync, which waits for
   localPersistentRefs to become 0. */
static void drop_programs(const struct nccl *nccl)
{
    if (nccl->opts.drop_programs) {
        nccl->opts.drop_programs(nccl->opts.device);
    }
}

/* The reason was reported before: a hanging library must not keep a dead rank alive. */
static void abort_it(void *self)
{
    struct nccl *nccl = self;
    pthread_t thread;
    struct timespec end;
    struct aborting it = {nccl->api.ncclCommAbort, nccl->comm};
    if (!nccl->comm) {
        return;
    }
    drop_programs(nccl);
    nccl->comm = NULL;
    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += nccl->opts.abort_ns / NS_PER_S;
    if (pthread_create(&thread, NULL, abort_comm, &it) != 0) {
        abort_comm(&it);
    } else if (pthread_timedjoin_np(thread, NULL, &end) != 0) {
        (void)fprintf(stderr, "reperf-train: NCCL cannot be aborted; the process ends as it is\n");
        _exit(err_exit_status(ERR_INTERNAL));
    }
}

/* Everything is done: a failure here loses nothing. */
static void part(struct nccl *nccl)
{
    int64_t end_ns = clock_now_ns() + FINALIZE_NS;
    drop_programs(nccl);
    ncclResult_t state = nccl->api.ncclCommFinalize(nccl->comm);
    while (state == ncclInProgress && clock_now_ns() < end_ns) {
        nap();
        if (nccl->api.ncclCommGetAsyncError(nccl->comm, &state) != ncclSuccess) {
            return;
        }
    }
    if (state == ncclSuccess) {
        (void)nccl->api.ncclCommDestroy(nccl->comm);
        nccl->comm = NULL;
    }
}

void nccl_close(struct nccl *nccl, struct comm *comm)
{
    if (!nccl) {
        return;
    }
    if (nccl->comm && comm->err.code == ERR_NONE) {
        part(nccl);
    }
    abort_it(nccl);
    comm->device = (struct comm_device){0};
    nccl_api_close(&nccl->api);
    free(nccl);
}

/* ---- the beginning ---- */

/* What ranks exchange before the rendezvous of NCCL. */
struct card {
    char gpu[NCCL_GPU_MAX];
    int32_t version; /* of the library; 0: the rank has none that it can use */
    int32_t shares;  /* its GPU with other ranks, if it has to */
};

static int compare(const struct card *cards, int n, bool *ret_is_alike, struct err *err)
{
    *ret_is_alike = true;
    for (int i = 0; i < n; i++) {
        if (cards[i].version == 0) {
            return err_set(err, ERR_USAGE, "rank %d has no NCCL that it can use, and says why", i);
        }
    }
    for (int i = 1; i < n; i++) {
        char mine[LOAD_VERSION_MAX];
        char theirs[LOAD_VERSION_MAX];
        load_version_text(cards[0].version, mine);
        load_version_text(cards[i].version, theirs);
        if (cards[i].version != cards[0].version) {
            return err_set(err, ERR_USAGE, "rank %d has NCCL %s, rank 0 %s", i, theirs, mine);
        }
        for (int k = 0; k < i; k++) {
            if (memcmp(cards[i].gpu, cards[k].gpu, sizeof(cards[i].gpu)) == 0 &&
                !(cards[i].shares && cards[k].shares)) {
                return err_set(err, ERR_USAGE,
                               "ranks %d and %d are on the same GPU (%.63s), and NCCL wants one "
                               "for each: LOCAL_RANK chooses it",
                               k, i, cards[i].gpu);
            }
        }
    }
    *ret_is_alike = false;
    return 0;
}

/* A rank without the library reports that here too, so that all end alike; *missing then is its own reason. */
static int introduce(const struct nccl *nccl, struct comm *comm, const struct err *missing,
                     bool *ret_is_alike, struct err *err)
{
    CLEANUP(free) struct card *cards = xcalloc((size_t)comm->n_ranks, sizeof(*cards));
    struct card *own = &cards[comm->rank];
    (void)snprintf(own->gpu, sizeof(own->gpu), "%s", nccl->opts.gpu);
    own->version = nccl->api.load.version;
    own->shares = getenv(ONE_GPU) != NULL;
    comm_all_gather(comm, cards, sizeof(*cards));
    if (comm->err.code != ERR_NONE) {
        *err = comm->err;
        return -1;
    }
    if (missing->code != ERR_NONE) {
        *ret_is_alike = true;
        *err = *missing;
        return -1;
    }
    return compare(cards, comm->n_ranks, ret_is_alike, err);
}

static int meet(struct nccl *nccl, struct comm *comm, struct err *err)
{
    ncclUniqueId id = {0};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclResult_t status = comm->rank == 0 ? nccl->api.ncclGetUniqueId(&id) : ncclSuccess;
    if (status != ncclSuccess) {
        return broken(nccl, status, "ncclGetUniqueId", err);
    }
    comm_broadcast(comm, &id, sizeof(id), 0);
    if (comm->err.code != ERR_NONE) {
        *err = comm->err;
        return -1;
    }
    status = nccl->api.ncclCommInitRankConfig(&nccl->comm, comm->n_ranks, id, comm->rank, &config);
    return settle(nccl, status, "ncclCommInitRankConfig", nccl->opts.open_ns, err);
}

/* NCCL refuses two ranks on one GPU of one host, and the host is what NCCL_HOSTID says: each rank is one of its own, reached
   through sockets. Source: NCCL 2.18 to 2.30, src/init.cc, initTransportsRank (hostHash), src/misc/utils.cc, getHostHash. */
static int become_a_host(int rank, struct err *err)
{
    const char *asked = getenv(ONE_GPU);
    char name[32];
    if (!asked) {
        return 0;
    }
    if (strcmp(asked, "1") != 0) {
        return err_set(err, ERR_USAGE, ONE_GPU "=%s: expected 1", asked);
    }
    (void)snprintf(name, sizeof(name), "reperf-rank-%d", rank);
    if (setenv("NCCL_HOSTID", name, 1) != 0) {
        return err_set(err, ERR_INTERNAL, "NCCL_HOSTID: %s", strerror(errno));
    }
    log_line(LOG_WARN, ONE_GPU ": ranks may share a GPU: nothing measured so is a speed");
    return 0;
}

int nccl_open(struct nccl **ret_nccl, struct comm *comm, const struct nccl_opts *opts,
              bool *ret_is_alike, struct err *err)
{
    struct nccl *nccl = xcalloc(1, sizeof(*nccl));
    *nccl = (struct nccl){.opts = *opts, .rank = comm->rank, .n_ranks = comm->n_ranks};
    struct err missing = {0};
    *ret_is_alike = false;
    if (become_a_host(comm->rank, &missing) == 0) {
        (void)!nccl_api_open(&nccl->api, &missing);
    }
    if (introduce(nccl, comm, &missing, ret_is_alike, err) < 0 || meet(nccl, comm, err) < 0) {
        abort_it(nccl);
        nccl_api_close(&nccl->api);
        free(nccl);
        return -1;
    }
    comm->name = "nccl";
    comm->device = (struct comm_device){.self = nccl,
                                        .sum = sum,
                                        .gather = gather,
                                        .broadcast = broadcast,
                                        .check = check,
                                        .count = count,
                                        .abort = abort_it};
    *ret_nccl = nccl;
    return 0;
}
