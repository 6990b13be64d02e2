/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend: cuDNN's graph API, cuBLASLt and own kernels behind core/kernel.h. FP32 (TF32 only where asked for)
   or AMP: half precision storage, sums in float, float master parameters (struct graph_types {DT_F16, DT_F32, DT_F32}).

   Images lie as N, H, W, C and filters as K, R, S, C/G, with channels rounded up to channel_pad; a filter of a
   depthwise convolution lies as R, S, C (layout.h). What is added by rounding up is zero and stays zero: the kernels
   are written so.

   Errors stick, as in a graph: the first one is in `err`, later calls do nothing, and the caller checks it before it
   uses a number (struct backend_async, check and collect). One thread. */
#pragma once

#include "backend_cuda/plans.h"
#include "core/plan_book.h"

#include <cuda_runtime_api.h>

#define CUDA_STREAMS_MAX  8
#define CUDA_EVENTS_MAX   4096 /* HRNet-W18 on four streams has some hundreds */
#define CUDA_PROGRAMS_MAX 4
#define CUDA_MARKS_MAX    1025

struct dnn;          /* backend_cuda/dnn.h: cuDNN */
struct lt;           /* backend_cuda/lt.h: cuBLASLt */
struct cuda_memory;  /* backend_cuda/memory.c: allocations, and copies to and from the host */
struct cuda_images;  /* backend_cuda/images.c: where a batch's bytes lie */
struct cuda_forms;   /* backend_cuda/forms.c: what was compared */
struct cuda_streams; /* backend_cuda/stream_order.c: events, programs, marks */
struct cuda_ranks;   /* backend_cuda/rank_stream.c: what is sent to the other ranks' devices */

struct cuda_opts {
    int device; /* of those visible, from 0 */
    bool is_amp, has_tf32;
    int n_streams; /* 1 to CUDA_STREAMS_MAX */
    int n_marks;   /* at most CUDA_MARKS_MAX */
    struct plan_opts plan;
};

/* Whether choices are made by timing. */
struct cuda_tuning {
    bool is_asked, has_limit;
    int64_t limit_ns, begin_ns; /* begin_ns: of the first choice; 0: there was none */
    int n_untimed;              /* set_untimed, nested */
    int64_t n_late;             /* choices that the limit left untimed */
    bool is_over; /* the ranks have shared their choices: from here on nothing is timed */
};

struct cuda {
    struct err err;
    int device;
    int channel_pad; /* 8 with AMP, 4 with FP32 */
    bool is_amp;
    bool has_tf32;
    int n_multiprocessors;
    int n_streams;
    cudaStream_t streams[CUDA_STREAMS_MAX]; /* owned */
    struct dnn *dnn;                        /* owned */
    struct lt *lt;                          /* owned */
    struct cuda_memory *memory;             /* owned */
    struct cuda_images *images;             /* owned; NULL: no images_async */
    struct cuda_streams *async;             /* owned */
    struct cuda_forms *forms;               /* owned */
    struct cuda_tuning tuning;
    int64_t
        workspace_limit; /* of a call's plan, below PLAN_WORKSPACE_MAX_BYTES and its like; 0: none */
    struct plan_book book;
    struct cuda_ranks *ranks; /* owned; NULL: this rank is alone */
};

/* Opens device and libraries and fills *ret_backend, which borrows cuda until cuda_release. No driver, no GPU, one that is too old
   or that this build has no kernels for, no cuDNN: an error that says which. On failure nothing is owned. */
MUST_CHECK int cuda_init(struct cuda *cuda, const struct cuda_opts *opts,
                         struct backend *ret_backend, struct err *err);
void cuda_release(struct cuda *cuda);

/* What a run says of where it ran. */
#define CUDA_NAME_MAX 256
struct cuda_facts {
    char gpu[CUDA_NAME_MAX]; /* "NVIDIA H100 80GB HBM3" */
    char driver
        [CUDA_NAME_MAX]; /* "580.95.05, CUDA 13.0"; without the first where it cannot be read */
    char runtime[16];    /* "13.0": of the CUDA this build is made with */
    char libraries[CUDA_NAME_MAX]; /* "cudnn 9.19.0, cublaslt 13.0.2", as dnn_version has it */
    int64_t memory_bytes;
};
struct cuda_facts cuda_facts(const struct cuda *cuda);

/* ---- for backend_cuda/ itself ---- */

static inline cudaStream_t cuda_stream(const struct cuda *cuda, const struct kernel_args *args)
{
    return cuda->streams[args->stream];
}

static inline int64_t cuda_channels(const struct cuda *cuda, int64_t channels)
{
    return (channels + cuda->channel_pad - 1) / cuda->channel_pad * cuda->channel_pad;
}

/* A recorded graph as a program. CUDA 11's runtime calls the driver of 11.4 for the form with flags, and 450 knows 11.0. Source:
   cudaTypedefs.h of 11.8, PFN_cuGraphInstantiateWithFlags_v11040. */
static inline cudaError_t cuda_make_program(cudaGraphExec_t *ret_program, cudaGraph_t graph)
{
#if CUDART_VERSION < 12000
    return cudaGraphInstantiate(ret_program, graph, NULL, NULL, 0);
#else
    return cudaGraphInstantiateWithFlags(ret_program, graph, 0);
#endif
}

/* Keeps the first failure; true if there was none in this call. */
bool cuda_ok(struct cuda *cuda, cudaError_t status, const char *what);

/* Whether choices are made by timing, and those of earlier runs used. */
static inline bool cuda_is_tuned(const struct cuda *cuda)
{
    return cuda->tuning.is_asked && cuda->tuning.n_untimed == 0;
}

/* Bytes that a plan of this type may need. */
int64_t cuda_workspace_max(const struct cuda *cuda, enum dtype dtype);

/* The same, for a choice that is due now: false, and counted, once the time limit is used up. */
bool cuda_may_time(struct cuda *cuda);

/* Each fills its part of the backend. */
MUST_CHECK int cuda_memory_open(struct cuda *cuda, struct backend *backend, struct err *err);
void cuda_memory_close(struct cuda *cuda);
MUST_CHECK int cuda_streams_open(struct cuda *cuda, const struct cuda_opts *opts,
                                 struct backend *backend, struct err *err);
void cuda_streams_close(struct cuda *cuda);
bool cuda_is_capturing(const struct cuda *cuda);
void cuda_forms_open(struct cuda *cuda);
void cuda_forms_close(struct cuda *cuda);
void cuda_fill_ranks(struct backend *backend);
void cuda_ranks_close(struct cuda *cuda);

/* The host waits for the event, or for all work queued on the stream; with several ranks it also watches the job. False
   if the device or the job failed; the failure sticks. */
bool cuda_wait_event(struct cuda *cuda, cudaEvent_t event);
bool cuda_wait_stream(struct cuda *cuda, cudaStream_t stream);

/* Within a call: work queued later on its stream comes after the sum over the ranks, or after the rows of all. */
void cuda_sum_over_ranks(struct cuda *cuda, const struct kernel_args *args,
                         const struct comm_run *runs, int n_runs);
void cuda_gather_ranks(struct cuda *cuda, const struct kernel_args *args, void *data,
                       int64_t bytes);
void cuda_fill_kernels(struct backend *backend);

/* One call, as the backend's functions of these names have it; and whether it is supported at all. */
bool cuda_supports(void *self, const struct kernel_args *args);
MUST_CHECK int cuda_prepare(void *self, struct kernel_args *args, struct err *err);
void cuda_unprepare(void *self, struct kernel_args *args);
void cuda_run(void *self, const struct kernel_args *args);
MUST_CHECK int cuda_compare(void *self, const struct forms *forms, enum form_choice *ret_choice,
                            struct form_times *ret_times, struct err *err);
