/* SPDX-License-Identifier: Apache-2.0 */
/* dist/nccl.c on a fake NCCL (tests/nccl_fake), each rank a process with an emulated device: the results of sums, gathers and
   broadcasts, eagerly and as a program, and how each planted fault ends: status and message on every rank. */
#include "unit.h"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/fs.h"
#include "dist/job.h"
#include "emu.h"
#include "tests/unit/rank_port.h"

#define RANKS_MOST 3
#define COUNT      1000
#define LONG_NS    (120 * NS_PER_S) /* far beyond what anything here takes */
#define HALF_ONE   0x3c00
#define HALF_SIX   0x4600
#define CLOSED     " [closed]"

static const char HEX[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
static char library[4096];
static char folder[] = "/tmp/reperf-nccl.XXXXXX";

struct task {
    const char *faults[RANKS_MOST]; /* of each rank's library; NULL: none */
    const char *gpus[RANKS_MOST];   /* NULL: a GPU of its own */
    bool has_no_library;
    bool is_one_gpu;        /* all ranks have device 0, and may */
    int dies;               /* this rank, by a signal, before the last operation; 0: none */
    int64_t open_s, hang_s; /* that NCCL may take to begin, and for an operation; 0: long */
};

/* The output of a rank, and how it ended. */
struct said {
    int status;     /* 128 and a signal, or the exit status of its error */
    bool is_closed; /* the job too: NCCL did not hang */
    char words[1024];
};

/* ---- a rank, in a process of its own ---- */

static void must(bool is_true, const char *what)
{
    if (!is_true) {
        (void)printf("wrong: %s", what);
        (void)fflush(stdout);
        _exit(99);
    }
}

struct device {
    cudaStream_t stream;
    float *numbers; /* (COUNT) */
    double *pair;   /* (2) */
    uint16_t *half; /* (8) */
    float *rows;    /* (ranks, 4) */
    cudaGraphExec_t program;
};

static void copy_in(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice) == cudaSuccess, "copy in");
}

static void copy_out(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost) == cudaSuccess, "copy out");
}

static void open_device(struct device *d, int rank, int n)
{
    must(cudaSetDevice(rank) == cudaSuccess, "device");
    must(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking) == cudaSuccess, "stream");
    must(cudaMalloc((void **)&d->numbers, COUNT * sizeof(float)) == cudaSuccess, "memory");
    must(cudaMalloc((void **)&d->pair, 2 * sizeof(double)) == cudaSuccess, "memory");
    must(cudaMalloc((void **)&d->half, 8 * sizeof(uint16_t)) == cudaSuccess, "memory");
    must(cudaMalloc((void **)&d->rows, (size_t)n * 4 * sizeof(float)) == cudaSuccess, "memory");
}

static void fill(const struct device *d, int rank)
{
    float numbers[COUNT];
    const double pair[2] = {1.0 + rank, 0.5};
    uint16_t half[8];
    float row[4];
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = (float)(rank + 1) * (float)i;
    }
    for (int i = 0; i < 8; i++) {
        half[i] = (uint16_t)(HALF_ONE + 0x400 * rank); /* 1, 2, 4 */
        row[i % 4] = (float)(10 * rank + i % 4);
    }
    copy_in(d->numbers, numbers, sizeof(numbers));
    copy_in(d->pair, pair, sizeof(pair));
    copy_in(d->half, half, sizeof(half));
    copy_in(d->rows + (ptrdiff_t)rank * 4, row, sizeof(row));
}

static void enqueue(struct comm *comm, const struct device *d)
{
    const struct comm_run runs[] = {
        {d->numbers, d->numbers, COUNT, DT_F32},
        {d->half, d->half, 8, DT_F16},
        {d->pair, d->pair, 2, DT_F64},
    };
    comm_device_sum(comm, runs, ARRAY_LEN(runs), d->stream);
    comm_device_gather(comm, d->rows, 4 * sizeof(float), d->stream);
    comm_device_broadcast(comm, d->numbers, sizeof(float), 1, d->stream);
}

/* As the backend waits: the host watches the job meanwhile. */
static bool wait_for(struct comm *comm, const struct device *d)
{
    cudaEvent_t event;
    int64_t start_ns = clock_now_ns();
    must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess, "event");
    must(cudaEventRecord(event, d->stream) == cudaSuccess, "record");
    while (cudaEventQuery(event) == cudaErrorNotReady) {
        if (comm_fails_waiting(comm, clock_now_ns() - start_ns)) {
            return false;
        }
    }
    (void)cudaEventDestroy(event);
    return true;
}

static void look_at(const struct device *d, int n)
{
    float numbers[COUNT];
    float rows[4 * RANKS_MOST];
    double pair[2];
    uint16_t half[8];
    int sum = n * (n + 1) / 2;
    copy_out(numbers, d->numbers, sizeof(numbers));
    copy_out(pair, d->pair, sizeof(pair));
    copy_out(half, d->half, sizeof(half));
    copy_out(rows, d->rows, (size_t)n * 4 * sizeof(float));
    for (int i = 0; i < COUNT; i++) {
        must(numbers[i] == (float)sum * (float)i, "sum of floats");
    }
    for (int i = 0; i < 4 * n; i++) {
        must(rows[i] == (float)(10 * (i / 4) + i % 4), "rows");
    }
    must(pair[0] == (double)sum && pair[1] == 0.5 * n, "sum of doubles");
    must(half[7] == (n == 2 ? 0x4200 : 0x4700), "sum of halves"); /* 3, 7 */
}

static void close_device(const struct device *d)
{
    (void)cudaFree(d->numbers);
    (void)cudaFree(d->pair);
    (void)cudaFree(d->half);
    (void)cudaFree(d->rows);
    (void)cudaStreamDestroy(d->stream);
}

/* Eagerly, then as a program that is launched twice. */
static bool work(struct comm *comm, const struct task *task, struct device *d)
{
    cudaGraph_t graph;
    fill(d, comm->rank);
    enqueue(comm, d);
    if (comm->err.code != ERR_NONE || !wait_for(comm, d)) {
        return false;
    }
    look_at(d, comm->n_ranks);
    must(cudaStreamBeginCapture(d->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess,
         "capture");
    enqueue(comm, d);
    must(cudaStreamEndCapture(d->stream, &graph) == cudaSuccess, "captured");
    must(cudaGraphInstantiateWithFlags(&d->program, graph, 0) == cudaSuccess, "program");
    must(cudaGraphDestroy(graph) == cudaSuccess, "graph");
    if (task->dies != 0 && task->dies == comm->rank) {
        (void)raise(SIGKILL);
    }
    for (int i = 0; i < 2; i++) {
        fill(d, comm->rank);
        comm_device_count(comm);
        must(cudaGraphLaunch(d->program, d->stream) == cudaSuccess, "launch");
        if (!wait_for(comm, d)) {
            return false;
        }
        look_at(d, comm->n_ranks);
    }
    return true;
}

/* As the backend does, whose device outlives the job. */
static void drop_programs(void *self)
{
    struct device *d = self;
    if (d->program) {
        must(cudaGraphExecDestroy(d->program) == cudaSuccess, "the program's end");
        d->program = NULL;
    }
}

static int be_rank(const struct task *task, int rank, int n, int port)
{
    struct err err = {0};
    struct device device = {0};
    struct job job = {0};
    char gpu[32];
    const struct ranks ranks = {.launcher = "torchrun",
                                .rank = rank,
                                .n_ranks = n,
                                .master_addr = "127.0.0.1",
                                .master_port = port};
    const struct job_opts opts = {.ranks = &ranks,
                                  .facts = "a=1",
                                  .network = HEX,
                                  .rendezvous_ns = LONG_NS,
                                  .timeout_ns = LONG_NS};
    /* Only where NCCL is to be waited for in vain: a rank that this machine lets wait is not silent, nor late for the rendezvous. */
    struct job_opts nccl = opts;
    nccl.rendezvous_ns = task->open_s ? task->open_s * NS_PER_S : LONG_NS;
    nccl.timeout_ns = task->hang_s ? task->hang_s * NS_PER_S / JOB_STALLS_A_TIMEOUT : LONG_NS;
    (void)snprintf(gpu, sizeof(gpu), "GPU-%d", rank);
    open_device(&device, task->is_one_gpu ? 0 : rank, n);
    const struct job_device own = {.gpu = task->gpus[rank] ? task->gpus[rank] : gpu,
                                   .self = &device,
                                   .drop_programs = drop_programs};
    int status = job_open(&job, &opts, &err);
    if (status == 0) {
        status = job_use_cuda(&job, &own, &nccl, &err);
    }
    if (status == 0 && !work(&job.comm, task, &device)) {
        err = job.comm.err;
        status = -1;
    }
    if (status == 0) {
        must(strcmp(job.comm.name, "nccl") == 0, "its name");
        comm_barrier(&job.comm);
    } else {
        (void)printf("%s", err.msg);
        (void)fflush(stdout);
        job_fail(&job, err.msg);
        job_abort(&job);
    }
    job_close(&job);
    close_device(&device);
    (void)printf("%s", CLOSED);
    (void)fflush(stdout);
    return status == 0 ? 0 : err_exit_status(err.code);
}

/* ---- all of them ---- */

static pid_t start(const struct task *task, int rank, int n, int port, int out)
{
    pid_t pid = fork();
    if (pid != 0) {
        return pid;
    }
    (void)dup2(out, STDOUT_FILENO);
    (void)setenv("REPERF_EMU_DEVICES", "4", 1);
    (void)setenv("REPERF_NCCL_DIR", task->has_no_library ? folder : library, 1);
    (void)setenv("REPERF_FAKE_NCCL_DIR", folder, 1);
    if (task->is_one_gpu) {
        (void)setenv("REPERF_NCCL_ONE_GPU", "1", 1);
    }
    if (task->faults[rank]) {
        (void)setenv("REPERF_FAKE_NCCL", task->faults[rank], 1);
    }
    _exit(be_rank(task, rank, n, port));
}

static void run(const struct task *task, int n, struct said *said)
{
    pid_t pids[RANKS_MOST];
    int outs[RANKS_MOST];
    int port = rank_port();
    (void)fflush(stdout);
    for (int i = 0; i < n; i++) {
        int ends[2];
        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        pids[i] = start(task, i, n, port, ends[1]);
        assert_true(pids[i] > 0);
        fd_close(&ends[1]);
        outs[i] = ends[0];
    }
    for (int i = 0; i < n; i++) {
        size_t len = 0;
        ssize_t got;
        while ((got = read(outs[i], said[i].words + len, sizeof(said[i].words) - 1 - len)) > 0) {
            len += (size_t)got;
        }
        said[i].words[len] = '\0';
        char *closed = strstr(said[i].words, CLOSED);
        said[i].is_closed = closed != NULL;
        if (closed) {
            *closed = '\0';
        }
        fd_close(&outs[i]);
        int status = 0;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        said[i].status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

static void expect(const struct said *said, int rank, int status, const char *words)
{
    if (said[rank].status != status || !strstr(said[rank].words, words)) {
        fail_msg("rank %d ended with %d: \"%s\", expected %d: \"%s\"", rank, said[rank].status,
                 said[rank].words, status, words);
    }
    if (status < 128 && !said[rank].is_closed) {
        fail_msg("rank %d: \"%s\": NCCL hung at its end", rank, said[rank].words);
    }
}

TEST(sums_rows_and_broadcasts)
{
    struct said said[RANKS_MOST];
    for (int n = 2; n <= RANKS_MOST; n++) {
        run(&(struct task){0}, n, said);
        for (int i = 0; i < n; i++) {
            expect(said, i, 0, "");
            assert_string_equal(said[i].words, "");
        }
    }
}

TEST(a_library_that_is_not_there_or_too_old)
{
    struct said said[RANKS_MOST];
    run(&(struct task){.has_no_library = true}, 2, said);
    expect(said, 0, 2, "NCCL from 2.18.0 to below 3.0.0 is needed; REPERF_NCCL_DIR: ");
    expect(said, 1, 2, "libnccl.so.2: no such file");
    run(&(struct task){.faults = {"version", "version"}}, 2, said);
    expect(said, 0, 2, "is version 2.10.3");
    expect(said, 1, 2, "is version 2.10.3");
}

TEST(two_ranks_on_one_gpu)
{
    struct said said[RANKS_MOST];
    run(&(struct task){.gpus = {"GPU-7", NULL, "GPU-7"}}, 3, said);
    for (int i = 0; i < 3; i++) {
        expect(said, i, 2,
               "ranks 0 and 2 are on the same GPU (GPU-7), and NCCL wants one for each: "
               "LOCAL_RANK chooses it");
    }
}

/* For tests on a machine with one GPU: each rank is a host of its own to NCCL. */
TEST(two_ranks_that_may_share_a_gpu)
{
    struct said said[RANKS_MOST];
    run(&(struct task){.gpus = {"GPU-7", "GPU-7"}, .is_one_gpu = true}, 2, said);
    for (int i = 0; i < 2; i++) {
        expect(said, i, 0, "");
        assert_string_equal(said[i].words, "");
    }
}

TEST(a_communicator_that_cannot_be_made)
{
    struct said said[RANKS_MOST];
    run(&(struct task){.faults = {"no_id"}}, 2, said);
    expect(said, 0, 70,
           "rank 0 failed: nccl: ncclGetUniqueId: unhandled system error: no interface to listen "
           "at");
    expect(said, 1, 70, "rank 0 failed: nccl: ncclGetUniqueId");
    run(&(struct task){.faults = {NULL, "init"}}, 2, said);
    expect(said, 1, 70, "rank 1 failed: nccl: ncclCommInitRankConfig: unhandled system error");
    expect(said, 0, 70, "rank 1 failed: nccl: ncclCommInitRankConfig: unhandled system error");
    run(&(struct task){.faults = {NULL, "init_hang"}, .open_s = 2}, 2, said);
    for (int i = 0; i < 2; i++) { /* both wait equally long: whichever is first tells the other */
        if (said[i].status != 70) {
            expect(said, i, 124, "nccl: ncclCommInitRankConfig: not done after 2 s");
        }
        expect(said, i, said[i].status, "nccl: ncclCommInitRankConfig: not done after 2 s");
    }
    assert_true(said[0].status == 124 || said[1].status == 124);
}

/* By its connection, which closes: not by its silence, after the time-out. */
TEST(a_rank_that_dies_is_named_at_once)
{
    struct said said[RANKS_MOST];
    run(&(struct task){.dies = 1}, 3, said);
    expect(said, 0, 70, "rank 1 died (");
    expect(said, 1, 137, "");
    expect(said, 2, 70, "rank 1 died (");
}

TEST(an_error_and_a_hang_of_the_library)
{
    struct said said[RANKS_MOST];
    run(&(struct task){.faults = {NULL, "async:4"}}, 2, said);
    expect(said, 1, 70, "rank 1 failed: nccl: ");
    expect(said, 1, 70, "remote process exited or there was a network error: socket closed");
    expect(said, 0, 70, "rank 1 failed: nccl: ");
    run(&(struct task){.faults = {NULL, "hang:2"}, .hang_s = 10}, 2, said);
    for (int i = 0; i < 2; i++) {
        const char *waits = strstr(said[i].words, "waits for its device for ");
        expect(said, i, 70, " s, and no rank is behind: an operation of NCCL hangs");
        assert_true(waits && strtol(waits + strlen("waits for its device for "), NULL, 10) >= 10);
    }
}

/* The messages are printed, but the library hangs: the process ends anyway. */
TEST(an_abort_that_hangs)
{
    struct said said[RANKS_MOST];
    run(&(struct task){.faults = {"abort_hang"}, .dies = 1}, 2, said);
    assert_int_equal(said[0].status, 70);
    assert_non_null(strstr(said[0].words, "rank 1 died"));
    assert_false(said[0].is_closed);
}

static int set_up(void **state UNUSED)
{
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    assert_true(len > 0);
    self[len] = '\0';
    char *slash = strrchr(self, '/');
    assert_non_null(slash);
    *slash = '\0';
    (void)snprintf(library, sizeof(library), "%.4000s/../fake", self);
    assert_non_null(mkdtemp(folder));
    return 0;
}

static int tear_down(void **state UNUSED)
{
    struct err err = {0};
    return fs_remove_tree(folder, &err);
}

UNIT_MAIN(set_up, tear_down)
