/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL with one rank on one GPU: opened without blocking, sums and gathers enqueued, recorded and replayed, closed normally, and
   aborted with work in flight. Several ranks are gpu_ranks.sh's part. Prints TAP. */
#include "base/base.h"

#include "tests/cuda/tap.h"

#ifndef REPERF_HAVE_NCCL

int main(void)
{
    tap_skip("NCCL with one rank", "built without nccl.h");
    return tap_end();
}

#else

#include "backend_cuda/cuda.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/fs.h"
#include "dist/nccl.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT   (1 << 20)
#define ROW     4096
#define WAIT_NS (60 * NS_PER_S)

struct bed {
    struct watch *watch;
    struct comm comm;
    struct nccl *nccl;
    cudaStream_t stream;
    float *from, *to; /* (COUNT) */
    char *rows;       /* (1, ROW) */
};

static bool passed(cudaError_t status, const char *what)
{
    if (status != cudaSuccess) {
        tap_report(false, "%s: %s", what, cudaGetErrorString(status));
    }
    return status == cudaSuccess;
}

/* On the emulated device the fake library is used, which needs a place for what its ranks share. */
static void find_library(struct arena *arena)
{
#ifdef CUDA_EMU
    char path[4096];
    static char folder[] = "/tmp/reperf-nccl.XXXXXX";
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[len > 0 ? len : 0] = '\0';
    for (int i = 0; i < 2 && strrchr(path, '/'); i++) {
        *strrchr(path, '/') = '\0';
    }
    (void)setenv("REPERF_NCCL_DIR", arena_printf(arena, "%s/fake", path), 1);
    (void)setenv("REPERF_FAKE_NCCL_DIR", mkdtemp(folder), 1);
#else
    (void)arena;
#endif
}

static void forget_library(void)
{
#ifdef CUDA_EMU
    struct err unsaid = {0};
    (void)!fs_remove_tree(getenv("REPERF_FAKE_NCCL_DIR"), &unsaid);
#endif
}

static bool open_bed(struct bed *bed)
{
    struct err err = {0};
    int fds[] = {-1};
    bool is_alike = false;
    const struct watch_opts watch = {.n_ranks = 1, .timeout_ns = WAIT_NS, .stall_ns = WAIT_NS};
    *bed = (struct bed){.comm = comm_self()};
    if (watch_start(&bed->watch, &watch, fds, &err) < 0) {
        tap_report(false, "%s", err.msg);
        return false;
    }
    const struct nccl_opts opts = {.gpu = "the only one",
                                   .watch = bed->watch,
                                   .open_ns = WAIT_NS,
                                   .stall_ns = WAIT_NS,
                                   .abort_ns = WAIT_NS};
    bool is_open = nccl_open(&bed->nccl, &bed->comm, &opts, &is_alike, &err) == 0;
    tap_report(is_open, "a communicator of one rank%s%s", is_open ? "" : ": ", err.msg);
    return is_open &&
           passed(cudaStreamCreateWithFlags(&bed->stream, cudaStreamNonBlocking), "stream") &&
           passed(cudaMalloc((void **)&bed->from, COUNT * sizeof(float)), "memory") &&
           passed(cudaMalloc((void **)&bed->to, COUNT * sizeof(float)), "memory") &&
           passed(cudaMalloc((void **)&bed->rows, ROW), "memory");
}

static void close_bed(struct bed *bed)
{
    nccl_close(bed->nccl, &bed->comm);
    watch_close(bed->watch);
    (void)cudaFree(bed->from);
    (void)cudaFree(bed->to);
    (void)cudaFree(bed->rows);
    if (bed->stream) {
        (void)cudaStreamDestroy(bed->stream);
    }
}

/* Not by comm_device_sum, which has nothing to do for one rank. */
static void enqueue(struct bed *bed)
{
    const struct comm_run run = {bed->from, bed->to, COUNT, DT_F32};
    const struct comm_device *device = &bed->comm.device;
    struct err *err = &bed->comm.err;
    (void)(device->sum(device->self, &run, 1, bed->stream, err) == 0 &&
           device->gather(device->self, bed->rows, ROW, bed->stream, err) == 0 &&
           device->broadcast(device->self, bed->rows, ROW, 0, bed->stream, err) == 0);
}

static bool fill(const struct bed *bed, float first)
{
    CLEANUP(free) float *numbers = xmalloc(COUNT * sizeof(*numbers));
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = first + (float)i;
    }
    return passed(cudaMemcpy(bed->from, numbers, COUNT * sizeof(float), cudaMemcpyHostToDevice),
                  "copy") &&
           passed(cudaMemsetAsync(bed->to, 0x7f, COUNT * sizeof(float), bed->stream), "memset");
}

static void hold(const struct bed *bed, float first, const char *what)
{
    CLEANUP(free) float *numbers = xmalloc(COUNT * sizeof(*numbers));
    int n_wrong = 0;
    if (!passed(cudaStreamSynchronize(bed->stream), what) ||
        !passed(cudaMemcpy(numbers, bed->to, COUNT * sizeof(float), cudaMemcpyDeviceToHost),
                what)) {
        return;
    }
    for (int i = 0; i < COUNT; i++) {
        n_wrong += numbers[i] != first + (float)i;
    }
    tap_report(n_wrong == 0 && bed->comm.err.code == ERR_NONE, "%s (%d wrong) %s", what, n_wrong,
               bed->comm.err.msg);
}

static void play(struct bed *bed, bool is_aborted)
{
    cudaGraph_t graph;
    cudaGraphExec_t program;
    if (!passed(cudaStreamBeginCapture(bed->stream, cudaStreamCaptureModeThreadLocal), "capture")) {
        return;
    }
    enqueue(bed);
    if (!passed(cudaStreamEndCapture(bed->stream, &graph), "captured") ||
        !passed(cuda_make_program(&program, graph), "program")) {
        return;
    }
    for (int i = 1; i < 3 && fill(bed, (float)i); i++) {
        bed->comm.device.count(bed->comm.device.self);
        if (passed(cudaGraphLaunch(program, bed->stream), "launch") && !is_aborted) {
            hold(bed, (float)i, "a recorded sum, played back");
        }
    }
    if (is_aborted) {
        bed->comm.device.abort(bed->comm.device.self);
        tap_report(cudaStreamSynchronize(bed->stream) == cudaSuccess, "aborted: the stream ends");
    }
    tap_report(cudaGraphExecDestroy(program) == cudaSuccess &&
                   cudaGraphDestroy(graph) == cudaSuccess,
               "the record is taken down");
}

int main(void)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    find_library(&arena);
    for (int is_aborted = 0; is_aborted < 2; is_aborted++) {
        struct bed bed;
        if (open_bed(&bed) && fill(&bed, 0.0f)) {
            enqueue(&bed);
            hold(&bed, 0.0f, "a sum of one is what it was");
            play(&bed, is_aborted != 0);
        }
        close_bed(&bed);
        tap_report(cudaGetLastError() == cudaSuccess,
                   is_aborted ? "aborted, and closed" : "closed");
    }
    forget_library();
    return tap_end();
}

#endif
