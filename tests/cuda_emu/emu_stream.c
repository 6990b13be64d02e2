/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events, capture: what each call waits for. */
#include "emu_internal.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX   64 /* that the next node of a stream comes after */
#define STREAMS_MAX 256

struct capture {
    cudaGraph_t graph;
    cudaStream_t origin;
    bool is_broken;
    int refs; /* streams and events */
};
struct nodes {
    struct capture *capture; /* NULL: not capturing */
    int n, node[NODES_MAX];
};
struct CUstream_st {
    bool is_blocking; /* waits for the legacy stream, and the other way round */
    struct emu_op *last;
    struct emu_op **wait; /* of events, for the next op */
    int n_wait, cap_wait;
    struct nodes nodes;
};
struct CUevent_st {
    bool has_timing;
    struct emu_op *op;
    struct nodes nodes;
};

static struct CUstream_st legacy = {.is_blocking = true};
static cudaStream_t streams[STREAMS_MAX] = {&legacy};
static int n_streams = 1;

static cudaStream_t stream_of(cudaStream_t stream)
{
    if (stream == NULL || stream == cudaStreamLegacy) {
        return &legacy;
    }
    for (int i = 1; i < n_streams; i++) {
        if (streams[i] == stream) {
            return stream;
        }
    }
    return NULL;
}

bool emu_stream_captures(cudaStream_t stream)
{
    cudaStream_t s = stream_of(stream);
    return s != NULL && s->nodes.capture != NULL;
}

/* --- capture ------------------------------------------------------------------------------------- */
static void nodes_clear(struct nodes *nodes)
{
    if (nodes->capture != NULL && --nodes->capture->refs == 0) {
        if (nodes->capture->graph != NULL) {
            (void)cudaGraphDestroy(nodes->capture->graph);
        }
        free(nodes->capture);
    }
    *nodes = (struct nodes){0};
}

static void nodes_join(struct nodes *to, const struct nodes *from)
{
    if (to->capture == NULL) {
        to->capture = from->capture;
        to->capture->refs++;
    }
    for (int i = 0; i < from->n; i++) {
        bool is_there = false;
        for (int k = 0; k < to->n; k++) {
            is_there |= to->node[k] == from->node[i];
        }
        if (!is_there) {
            if (to->n == NODES_MAX) {
                emu_die("a captured stream waits for more than %d others", NODES_MAX);
            }
            to->node[to->n++] = from->node[i];
        }
    }
}

bool emu_is_capturing(void)
{
    for (int i = 0; i < n_streams; i++) {
        if (streams[i]->nodes.capture != NULL) {
            return true;
        }
    }
    return false;
}

void emu_capture_break(void)
{
    for (int i = 0; i < n_streams; i++) {
        if (streams[i]->nodes.capture != NULL) {
            streams[i]->nodes.capture->is_broken = true;
        }
    }
}

/* Calls that are not allowed during a capture. */
static cudaError_t may_wait(void)
{
    cudaError_t error = emu_ready();
    if (error == cudaSuccess && emu_is_capturing()) {
        emu_capture_break();
        error = cudaErrorStreamCaptureUnsupported;
    }
    return emu_fail(error);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    cudaStream_t s = stream_of(stream);
    (void)mode; /* all are as strict as the global one */
    if (s == NULL) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    if (s == &legacy || s->nodes.capture != NULL) {
        return emu_fail(cudaErrorStreamCaptureUnsupported);
    }
    struct capture *capture = calloc(1, sizeof(*capture));
    if (capture == NULL) {
        emu_die("out of memory");
    }
    *capture = (struct capture){.graph = emu_graph_new(), .origin = s, .refs = 1};
    s->nodes.capture = capture;
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    cudaStream_t s = stream_of(stream);
    *graph = NULL;
    if (s == NULL || s->nodes.capture == NULL || s->nodes.capture->origin != s) {
        return emu_fail(s == NULL ? cudaErrorInvalidResourceHandle
                                  : cudaErrorStreamCaptureUnmatched);
    }
    struct capture *capture = s->nodes.capture;
    cudaError_t error = cudaSuccess;
    if (capture->is_broken) {
        error = cudaErrorStreamCaptureInvalidated;
    } else if (!emu_graph_reaches_all(capture->graph, s->nodes.node, s->nodes.n)) {
        error = cudaErrorStreamCaptureUnjoined;
    } else {
        *graph = capture->graph;
        capture->graph = NULL;
    }
    capture->is_broken = true; /* for events that still name it */
    for (int i = 0; i < n_streams; i++) {
        if (streams[i]->nodes.capture == capture && streams[i] != s) {
            nodes_clear(&streams[i]->nodes);
        }
    }
    nodes_clear(&s->nodes);
    return emu_fail(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    cudaStream_t s = stream_of(stream);
    if (s == NULL) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    const struct capture *capture = s->nodes.capture;
    *status = capture == NULL      ? cudaStreamCaptureStatusNone
              : capture->is_broken ? cudaStreamCaptureStatusInvalidated
                                   : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

/* --- queueing ------------------------------------------------------------------------------------ */
static void set_last(cudaStream_t s, struct emu_op *op)
{
    emu_op_hold(op);
    emu_op_drop(s->last);
    s->last = op;
}

static cudaError_t capture_work(cudaStream_t s, struct emu_work *work)
{
    struct nodes *nodes = &s->nodes;
    if (nodes->capture->is_broken) {
        emu_work_free(work);
        return emu_fail(cudaErrorStreamCaptureInvalidated);
    }
    nodes->node[0] = emu_graph_add(nodes->capture->graph, work, nodes->node, nodes->n);
    nodes->n = 1;
    return cudaSuccess;
}

/* Takes the work; ret_op, if not NULL, is the caller's to drop, and NULL where the work was captured. */
cudaError_t emu_enqueue(struct emu_work *work, cudaStream_t stream, struct emu_op **ret_op)
{
    cudaStream_t s = stream_of(stream);
    cudaError_t error = emu_ready();
    if (error == cudaSuccess && s == NULL) {
        error = cudaErrorInvalidResourceHandle;
    }
    if (error == cudaSuccess && s == &legacy && emu_is_capturing()) {
        emu_capture_break();
        error = cudaErrorStreamCaptureImplicit;
    }
    if (error != cudaSuccess) {
        emu_work_free(work);
        return emu_fail(error);
    }
    if (s->nodes.capture != NULL) {
        return capture_work(s, work);
    }
    struct emu_op *op = emu_op_add(work, true);
    emu_op_after(op, s->last);
    for (int i = 0; i < s->n_wait; i++) {
        emu_op_after(op, s->wait[i]);
        emu_op_drop(s->wait[i]);
    }
    s->n_wait = 0;
    if (s == &legacy) {
        for (int i = 1; i < n_streams; i++) {
            emu_op_after(op, streams[i]->is_blocking ? streams[i]->last : NULL);
        }
    } else if (s->is_blocking) {
        emu_op_after(op, legacy.last);
    }
    set_last(s, op);
    emu_op_submit(op);
    if (ret_op != NULL) {
        *ret_op = op;
    } else {
        emu_op_drop(op);
    }
    return cudaSuccess;
}

struct emu_op *emu_stream_replace_last(cudaStream_t stream, const struct emu_work *work)
{
    cudaStream_t s = stream_of(stream);
    if (s == NULL) {
        emu_die("work for an unknown stream");
    }
    struct emu_op *op = emu_op_add(work, true);
    set_last(s, op);
    return op;
}

cudaError_t emu_enqueue_and_wait(struct emu_work *work, cudaStream_t stream)
{
    struct emu_op *op = NULL;
    cudaError_t error = emu_enqueue(work, stream, &op);
    if (error == cudaSuccess && op != NULL) {
        emu_op_wait(op);
        emu_op_drop(op);
    }
    return error;
}

cudaError_t emu_drain(void)
{
    cudaError_t error = may_wait();
    if (error == cudaSuccess) {
        emu_op_wait_all();
    }
    return error;
}

cudaError_t cudaDeviceSynchronize(void)
{
    return emu_drain();
}

/* --- streams ------------------------------------------------------------------------------------ */
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    cudaError_t error = emu_ready();
    if (error == cudaSuccess && n_streams == STREAMS_MAX) {
        error = cudaErrorMemoryAllocation;
    }
    if (error != cudaSuccess) {
        return emu_fail(error);
    }
    *stream = calloc(1, sizeof(**stream));
    if (*stream == NULL) {
        emu_die("out of memory");
    }
    (*stream)->is_blocking = (flags & cudaStreamNonBlocking) == 0;
    streams[n_streams++] = *stream;
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)priority;
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return emu_fail(emu_ready());
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    cudaStream_t s = stream_of(stream);
    if (s == NULL || s == &legacy) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    nodes_clear(&s->nodes);
    emu_op_drop(s->last);
    for (int i = 0; i < s->n_wait; i++) {
        emu_op_drop(s->wait[i]);
    }
    free(s->wait);
    for (int i = 1; i < n_streams; i++) {
        if (streams[i] == s) {
            streams[i] = streams[--n_streams];
            break;
        }
    }
    free(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    cudaStream_t s = stream_of(stream);
    if (s == NULL) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    if (s->nodes.capture != NULL || (s == &legacy && emu_is_capturing())) {
        return may_wait();
    }
    struct emu_work empty = {.kind = EMU_EMPTY}; /* so that events it waits for count */
    return emu_enqueue_and_wait(&empty, stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    cudaStream_t s = stream_of(stream);
    if (s == NULL) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    if (s->nodes.capture != NULL) {
        return may_wait();
    }
    emu_op_step();
    return s->last == NULL || emu_op_done(s->last) ? cudaSuccess : cudaErrorNotReady;
}

/* --- events ------------------------------------------------------------------------------------- */
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    if (emu_ready() != cudaSuccess) {
        return emu_fail(emu_ready());
    }
    *event = calloc(1, sizeof(**event));
    if (*event == NULL) {
        emu_die("out of memory");
    }
    (*event)->has_timing = (flags & cudaEventDisableTiming) == 0;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    if (event == NULL) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    nodes_clear(&event->nodes);
    emu_op_drop(event->op);
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaStream_t s = stream_of(stream);
    if (event == NULL || s == NULL) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    nodes_clear(&event->nodes);
    if (s->nodes.capture != NULL) {
        nodes_join(&event->nodes, &s->nodes);
        return cudaSuccess;
    }
    struct emu_work empty = {.kind = EMU_EMPTY};
    struct emu_op *op = NULL;
    cudaError_t error = emu_enqueue(&empty, stream, &op);
    if (error == cudaSuccess) {
        emu_op_drop(event->op);
        event->op = op;
    }
    return error;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    cudaStream_t s = stream_of(stream);
    (void)flags;
    if (event == NULL || s == NULL) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    struct capture *of_event = event->nodes.capture;
    if (of_event != NULL && of_event->graph == NULL) {
        return emu_fail(cudaErrorInvalidValue); /* recorded in a capture that has ended */
    }
    if (of_event != NULL) {
        if (s == &legacy || (s->nodes.capture != NULL && s->nodes.capture != of_event)) {
            emu_capture_break();
            return emu_fail(s == &legacy ? cudaErrorStreamCaptureImplicit
                                         : cudaErrorStreamCaptureIsolation);
        }
        nodes_join(&s->nodes, &event->nodes);
        return cudaSuccess;
    }
    if (event->op == NULL) {
        return cudaSuccess;
    }
    if (s->nodes.capture != NULL) {
        s->nodes.capture->is_broken = true;
        return emu_fail(cudaErrorStreamCaptureIsolation);
    }
    if (s->n_wait == s->cap_wait) {
        s->cap_wait = s->cap_wait == 0 ? 8 : s->cap_wait * 2;
        s->wait = realloc(s->wait, (size_t)s->cap_wait * sizeof(struct emu_op *));
        if (s->wait == NULL) {
            emu_die("out of memory");
        }
    }
    emu_op_hold(event->op);
    s->wait[s->n_wait++] = event->op;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event == NULL) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    if (event->nodes.capture != NULL) {
        return may_wait();
    }
    if (event->op != NULL) {
        emu_op_wait(event->op);
    }
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (event == NULL) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    if (event->nodes.capture != NULL) {
        return may_wait();
    }
    emu_op_step();
    return event->op == NULL || emu_op_done(event->op) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ret_ms, cudaEvent_t start, cudaEvent_t stop)
{
    if (start == NULL || stop == NULL || start->op == NULL || stop->op == NULL ||
        !start->has_timing || !stop->has_timing) {
        return emu_fail(cudaErrorInvalidResourceHandle);
    }
    if (!emu_op_done(start->op) || !emu_op_done(stop->op)) {
        return emu_fail(cudaErrorNotReady);
    }
    *ret_ms = (float)(emu_op_ended_ns(stop->op) - emu_op_ended_ns(start->op)) * 1e-6f;
    return cudaSuccess;
}
