/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA emulator's streams, events and graphs: order is kept where it was requested, and nowhere else. */
#include "unit.h"

#include "emu.h"
#include "probe.h"

#define OK(call) assert_int_equal(call, cudaSuccess)
#define SEEDS    24

static float *zero_on_device(void)
{
    void *ptr = NULL;
    OK(cudaMalloc(&ptr, sizeof(float)));
    OK(cudaMemset(ptr, 0, sizeof(float)));
    OK(cudaDeviceSynchronize());
    return ptr;
}

static float value_of(const float *device)
{
    float value = 0.0F;
    OK(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
    return value;
}

/* (x + 1) * 2 is 2 in order and 1 the other way round. */
static float add_then_multiply(bool has_event)
{
    cudaStream_t first = NULL;
    cudaStream_t second = NULL;
    cudaEvent_t event = NULL;
    float *x = zero_on_device();
    OK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    probe_add(x, 1, 1.0F, first);
    OK(cudaEventRecord(event, first));
    if (has_event) {
        OK(cudaStreamWaitEvent(second, event, 0));
    }
    probe_multiply(x, 1, 2.0F, second);
    OK(cudaStreamSynchronize(second));
    OK(cudaStreamSynchronize(first));
    float value = value_of(x);
    OK(cudaStreamDestroy(first));
    OK(cudaStreamDestroy(second));
    OK(cudaEventDestroy(event));
    OK(cudaFree(x));
    return value;
}

TEST(test_streams)
{
    int n_reversed = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        emu_seed(seed);
        assert_true(add_then_multiply(true) == 2.0F);
        float value = add_then_multiply(false);
        assert_true(value == 2.0F || value == 1.0F);
        n_reversed += value == 1.0F;
    }
    assert_true(n_reversed > 2 && n_reversed < SEEDS);
}

TEST(test_legacy_stream)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        cudaStream_t blocking = NULL;
        emu_seed(seed);
        float *x = zero_on_device();
        OK(cudaStreamCreate(&blocking));
        probe_add(x, 1, 1.0F, blocking);
        probe_multiply(x, 1, 2.0F, NULL); /* the legacy stream waits for blocking ones */
        probe_add(x, 1, 0.5F, blocking);  /* and they for it */
        assert_true(value_of(x) == 2.5F);
        OK(cudaStreamDestroy(blocking));
        OK(cudaFree(x));
    }
}

/* Copies from pageable memory are staged at once, those from pinned memory read it when their turn comes. */
TEST(test_late_copies)
{
    cudaStream_t stream = NULL;
    float pageable = 1.0F;
    void *pinned_ptr = NULL;
    OK(cudaMallocHost(&pinned_ptr, sizeof(float)));
    float *pinned = pinned_ptr;
    float *x = zero_on_device();
    float *y = zero_on_device();
    OK(cudaStreamCreate(&stream));
    emu_progress(EMU_LATE);
    *pinned = 1.0F;
    OK(cudaMemcpyAsync(x, &pageable, sizeof(float), cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyAsync(y, pinned, sizeof(float), cudaMemcpyHostToDevice, stream));
    pageable = 2.0F;
    *pinned = 2.0F; /* too early: the fault to be detected */
    assert_int_equal(cudaStreamQuery(stream), cudaErrorNotReady);
    OK(cudaStreamSynchronize(stream));
    assert_true(value_of(x) == 1.0F);
    assert_true(value_of(y) == 2.0F);
    emu_progress(EMU_BY_SEED);
    (void)cudaGetLastError();
    OK(cudaStreamDestroy(stream));
    OK(cudaFree(x));
    OK(cudaFree(y));
    OK(cudaFreeHost(pinned));
}

struct forked {
    cudaStream_t main, side;
    cudaEvent_t fork, join;
};

static void forked_open(struct forked *f)
{
    OK(cudaStreamCreateWithFlags(&f->main, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&f->side, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&f->fork, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&f->join, cudaEventDisableTiming));
}

static void forked_close(struct forked *f)
{
    OK(cudaStreamDestroy(f->main));
    OK(cudaStreamDestroy(f->side));
    OK(cudaEventDestroy(f->fork));
    OK(cudaEventDestroy(f->join));
    (void)cudaGetLastError();
}

/* x += 1 on the main stream; then y += x's part on the side stream, joined again; then both doubled. */
static cudaGraphExec_t capture(struct forked *f, float *x, float *y, bool joins)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    OK(cudaStreamBeginCapture(f->main, cudaStreamCaptureModeGlobal));
    probe_add(x, 1, 1.0F, f->main);
    OK(cudaEventRecord(f->fork, f->main));
    OK(cudaStreamWaitEvent(f->side, f->fork, 0));
    probe_accumulate(x, y, f->side);
    OK(cudaEventRecord(f->join, f->side));
    if (joins) {
        OK(cudaStreamWaitEvent(f->main, f->join, 0));
    }
    probe_multiply(x, 1, 2.0F, f->main);
    cudaError_t status = cudaStreamEndCapture(f->main, &graph);
    assert_int_equal(status, joins ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    if (joins) {
        OK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
        OK(cudaGraphDestroy(graph));
    }
    return exec;
}

TEST(test_graph)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct forked f;
        emu_seed(seed);
        forked_open(&f);
        float *x = zero_on_device();
        float *y = zero_on_device();
        cudaGraphExec_t exec = capture(&f, x, y, true);
        assert_true(value_of(x) == 0.0F); /* captured, not run */
        for (int i = 0; i < 3; i++) {
            OK(cudaGraphLaunch(exec, f.main));
        }
        OK(cudaStreamSynchronize(f.main));
        assert_true(value_of(x) == 14.0F);              /* 2, 6, 14 */
        assert_true(value_of(y) == 1.0F + 3.0F + 7.0F); /* x before it is doubled */
        OK(cudaGraphExecDestroy(exec));
        OK(cudaFree(x));
        OK(cudaFree(y));
        forked_close(&f);
    }
}

TEST(test_bad_captures)
{
    struct forked f;
    cudaGraph_t graph = NULL;
    void *ptr = NULL;
    forked_open(&f);
    float *x = zero_on_device();
    float *y = zero_on_device();
    assert_null(capture(&f, x, y, false));
    /* What waits, allocates or is on the legacy stream. */
    for (int kind = 0; kind < 4; kind++) {
        OK(cudaStreamBeginCapture(f.main, cudaStreamCaptureModeGlobal));
        probe_add(x, 1, 1.0F, f.main);
        if (kind == 0) {
            assert_int_equal(cudaStreamSynchronize(f.main), cudaErrorStreamCaptureUnsupported);
        } else if (kind == 1) {
            assert_int_equal(cudaMalloc(&ptr, 8), cudaErrorStreamCaptureUnsupported);
        } else if (kind == 2) {
            probe_add(x, 1, 1.0F, NULL);
            assert_int_equal(cudaGetLastError(), cudaErrorStreamCaptureImplicit);
        } else {
            OK(cudaEventRecord(f.fork, f.side));
            assert_int_equal(cudaStreamWaitEvent(f.main, f.fork, 0),
                             cudaErrorStreamCaptureIsolation);
        }
        assert_int_equal(cudaStreamEndCapture(f.main, &graph), cudaErrorStreamCaptureInvalidated);
        assert_null(graph);
    }
    assert_int_equal(cudaStreamEndCapture(f.main, &graph), cudaErrorStreamCaptureUnmatched);
    assert_true(value_of(x) == 0.0F);
    OK(cudaFree(x));
    OK(cudaFree(y));
    forked_close(&f);
}
