/* SPDX-License-Identifier: Apache-2.0 */
/* Order of the work of a step: events between streams, a step recorded as a program, and marks that tell when it was done. */
#include "base/base.h"

#include "backend_cuda/cuda.h"

#include "base/arena.h"

struct mark {
    cudaEvent_t event; /* owned */
    void *copy;        /* of MARK_BYTES_MAX, in the pinned memory of all marks */
    int64_t bytes;
};

struct cuda_streams {
    cudaEvent_t events[CUDA_EVENTS_MAX];         /* owned; created at first use */
    cudaEvent_t edges[CUDA_STREAMS_MAX];         /* owned; fork's and join's */
    cudaGraphExec_t programs[CUDA_PROGRAMS_MAX]; /* owned */
    struct mark marks[CUDA_MARKS_MAX];
    char *copies; /* owned, pinned */
    int n_marks;
    bool is_capturing;
};

bool cuda_is_capturing(const struct cuda *cuda)
{
    return cuda->async->is_capturing;
}

static int check(void *self, struct err *err)
{
    struct cuda *cuda = self;
    for (int i = 0; i < cuda->n_streams; i++) {
        (void)cuda_wait_stream(cuda, cuda->streams[i]);
    }
    return cuda->err.code == ERR_NONE ? 0 : err_set(err, cuda->err.code, "%s", cuda->err.msg);
}

/* ---- events ---- */

static void tie(struct cuda *cuda, cudaEvent_t event, int from, int to)
{
    cuda_ok(cuda, cudaEventRecord(event, cuda->streams[from]), "cudaEventRecord");
    cuda_ok(cuda, cudaStreamWaitEvent(cuda->streams[to], event, 0), "cudaStreamWaitEvent");
}

static void fork_streams(void *self)
{
    struct cuda *cuda = self;
    for (int i = 1; i < cuda->n_streams; i++) {
        tie(cuda, cuda->async->edges[0], 0, i);
    }
}

static void join_streams(void *self)
{
    struct cuda *cuda = self;
    for (int i = 1; i < cuda->n_streams; i++) {
        tie(cuda, cuda->async->edges[i], i, 0);
    }
}

static void record(void *self, int event, int stream)
{
    struct cuda *cuda = self;
    cudaEvent_t *slot = &cuda->async->events[event];
    ASSERT(event >= 0 && event < CUDA_EVENTS_MAX);
    if (!*slot && !cuda_ok(cuda, cudaEventCreateWithFlags(slot, cudaEventDisableTiming),
                           "cudaEventCreateWithFlags")) {
        return;
    }
    cuda_ok(cuda, cudaEventRecord(*slot, cuda->streams[stream]), "cudaEventRecord");
}

static void wait(void *self, int event, int stream)
{
    struct cuda *cuda = self;
    cudaEvent_t recorded = cuda->async->events[event];
    if (recorded) { /* else record has failed, and reported it */
        cuda_ok(cuda, cudaStreamWaitEvent(cuda->streams[stream], recorded, 0),
                "cudaStreamWaitEvent");
    }
}

/* ---- programs ---- */

static int said(const struct cuda *cuda, struct err *err)
{
    return err_set(err, cuda->err.code, "%s", cuda->err.msg);
}

static int capture_begin(void *self, struct err *err)
{
    struct cuda *cuda = self;
    ASSERT(!cuda->async->is_capturing);
    if (!cuda_ok(cuda, cudaStreamBeginCapture(cuda->streams[0], cudaStreamCaptureModeThreadLocal),
                 "cudaStreamBeginCapture")) {
        return said(cuda, err);
    }
    cuda->async->is_capturing = true;
    return 0;
}

static int capture_end(void *self, int program, struct err *err)
{
    struct cuda *cuda = self;
    struct cuda_streams *async = cuda->async;
    cudaGraph_t graph = NULL;
    ASSERT(async->is_capturing);
    ASSERT(program >= 0 && program < CUDA_PROGRAMS_MAX);
    ASSERT(!async->programs[program]);
    async->is_capturing = false;
    cuda_ok(cuda, cudaStreamEndCapture(cuda->streams[0], &graph), "cudaStreamEndCapture");
    if (cuda->err.code == ERR_NONE) {
        cuda_ok(cuda, cuda_make_program(&async->programs[program], graph), "cudaGraphInstantiate");
    }
    if (graph) {
        cuda_ok(cuda, cudaGraphDestroy(graph), "cudaGraphDestroy");
    }
    return cuda->err.code == ERR_NONE ? 0 : said(cuda, err);
}

static void replay(void *self, int program)
{
    struct cuda *cuda = self;
    ASSERT(cuda->async->programs[program]);
    cuda_ok(cuda, cudaGraphLaunch(cuda->async->programs[program], cuda->streams[0]),
            "cudaGraphLaunch");
}

static void drop_programs(void *self)
{
    struct cuda_streams *async = ((struct cuda *)self)->async;
    for (int i = 0; i < CUDA_PROGRAMS_MAX; i++) {
        if (async->programs[i]) {
            (void)cudaGraphExecDestroy(async->programs[i]);
            async->programs[i] = NULL;
        }
    }
}

/* ---- marks ---- */

static void mark(void *self, int slot, const struct backend_span *spans, int n_spans)
{
    struct cuda *cuda = self;
    struct mark *mark = &cuda->async->marks[slot];
    ASSERT(slot >= 0 && slot < cuda->async->n_marks);
    ASSERT(!cuda->async->is_capturing);
    mark->bytes = 0;
    for (int i = 0; i < n_spans; i++) {
        ASSERT(mark->bytes + spans[i].bytes <= MARK_BYTES_MAX);
        cuda_ok(cuda,
                cudaMemcpyAsync((char *)mark->copy + mark->bytes, spans[i].device,
                                (size_t)spans[i].bytes, cudaMemcpyDeviceToHost, cuda->streams[0]),
                "copy from the device");
        mark->bytes += spans[i].bytes;
    }
    cuda_ok(cuda, cudaEventRecord(mark->event, cuda->streams[0]), "cudaEventRecord");
}

static int collect(void *self, int slot, int since, void *ret_copy, int64_t *ret_ns,
                   struct err *err)
{
    struct cuda *cuda = self;
    const struct mark *mark = &cuda->async->marks[slot];
    float elapsed_ms = 0.0F;
    if (cuda_wait_event(cuda, mark->event) && cuda->err.code == ERR_NONE) {
        cuda_ok(cuda,
                cudaEventElapsedTime(&elapsed_ms, cuda->async->marks[since].event, mark->event),
                "cudaEventElapsedTime");
    }
    if (cuda->err.code != ERR_NONE) {
        return said(cuda, err);
    }
    memcpy(ret_copy, mark->copy, (size_t)mark->bytes);
    *ret_ns = (int64_t)((double)elapsed_ms * 1e6);
    return 0;
}

/* ---- opening ---- */

static cudaError_t make_marks(struct cuda_streams *async, int n)
{
    void *copies = NULL;
    cudaError_t status = cudaMallocHost(&copies, (size_t)(n > 0 ? n : 1) * MARK_BYTES_MAX);
    async->copies = copies;
    for (int i = 0; i < n && status == cudaSuccess; i++) {
        async->marks[i].copy = async->copies + (size_t)i * MARK_BYTES_MAX;
        status = cudaEventCreateWithFlags(&async->marks[i].event, cudaEventDefault);
        async->n_marks = i + 1;
    }
    return status;
}

int cuda_streams_open(struct cuda *cuda, const struct cuda_opts *opts, struct backend *backend,
                      struct err *err)
{
    cuda->async = xcalloc(1, sizeof(*cuda->async));
    cudaError_t status = cudaSuccess;
    for (int i = 0; i < cuda->n_streams && status == cudaSuccess; i++) {
        status = cudaEventCreateWithFlags(&cuda->async->edges[i], cudaEventDisableTiming);
    }
    if (status == cudaSuccess) {
        status = make_marks(cuda->async, opts->n_marks);
    }
    if (status != cudaSuccess) {
        return err_set(err, ERR_WORKLOAD, "events: %s", cudaGetErrorString(status));
    }
    struct backend_async *to = &backend->async;
    to->n_events = CUDA_EVENTS_MAX;
    to->n_programs = CUDA_PROGRAMS_MAX;
    to->n_marks = opts->n_marks;
    to->check = check;
    to->fork = fork_streams;
    to->join = join_streams;
    to->record = record;
    to->wait = wait;
    to->capture_begin = capture_begin;
    to->capture_end = capture_end;
    to->replay = replay;
    to->drop_programs = drop_programs;
    to->mark = mark;
    to->collect = collect;
    return 0;
}

static void destroy_events(cudaEvent_t *events, int n)
{
    for (int i = 0; i < n; i++) {
        if (events[i]) {
            (void)cudaEventDestroy(events[i]);
        }
    }
}

void cuda_streams_close(struct cuda *cuda)
{
    struct cuda_streams *async = cuda->async;
    if (!async) {
        return;
    }
    drop_programs(cuda);
    destroy_events(async->events, CUDA_EVENTS_MAX);
    destroy_events(async->edges, CUDA_STREAMS_MAX);
    for (int i = 0; i < async->n_marks; i++) {
        destroy_events(&async->marks[i].event, 1);
    }
    if (async->copies) {
        (void)cudaFreeHost(async->copies);
    }
    free(async);
    cuda->async = NULL;
}
