/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/dnn_legacy.h"

#include "backend_cuda/tune.h"
#include "base/arena.h"
#include "base/log.h"
#include "core/plan_cache.h"

#include <cudnn_cnn.h>
#include <cudnn_ops.h>

/* Source: cuDNN's support matrix and research of its libraries: 9.10 is the last with kernels for Volta. */
#define VOLTA_VERSION_END 91100

#define WAYS_MAX 8 /* the library has no more algorithms for one call */

#define LEGACY_SYMBOLS(X)                                                                          \
    X(cudnnCreateTensorDescriptor)                                                                 \
    X(cudnnDestroyTensorDescriptor)                                                                \
    X(cudnnSetTensor4dDescriptor)                                                                  \
    X(cudnnCreateFilterDescriptor)                                                                 \
    X(cudnnDestroyFilterDescriptor)                                                                \
    X(cudnnSetFilter4dDescriptor)                                                                  \
    X(cudnnCreateConvolutionDescriptor)                                                            \
    X(cudnnDestroyConvolutionDescriptor)                                                           \
    X(cudnnSetConvolution2dDescriptor)                                                             \
    X(cudnnSetConvolutionGroupCount)                                                               \
    X(cudnnSetConvolutionMathType)                                                                 \
    X(cudnnGetConvolutionForwardAlgorithm_v7)                                                      \
    X(cudnnGetConvolutionBackwardDataAlgorithm_v7)                                                 \
    X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)                                               \
    X(cudnnConvolutionForward)                                                                     \
    X(cudnnConvolutionBackwardData)                                                                \
    X(cudnnConvolutionBackwardFilter)                                                              \
    X(cudnnAddTensor)

struct dnn_legacy {
    LEGACY_SYMBOLS(LOAD_FIELD)
};

/* An algorithm for one of the three kinds of call. */
struct way {
    int algo;
    cudnnMathType_t math;
    int64_t workspace_bytes;
    bool is_deterministic;
};

struct dnn_legacy_plan {
    cudnnTensorDescriptor_t x, y, bias; /* owned; bias NULL: none */
    cudnnFilterDescriptor_t w;          /* owned */
    cudnnConvolutionDescriptor_t conv;  /* owned */
    struct way way;
};

/* ---- opening ---- */

static const char *const NAMES[] = {LEGACY_SYMBOLS(LOAD_NAME)};

int dnn_legacy_open(struct dnn *dnn, struct err *err)
{
    load_fn table[ARRAY_LEN(NAMES)];
    if (dnn->api.load.version >= VOLTA_VERSION_END) {
        char found[LOAD_VERSION_MAX];
        load_version_text(dnn->api.load.version, found);
        return err_set(err, ERR_USAGE,
                       "cudnn: a GPU of compute capability 7.0 needs cuDNN from 9.0.0 to below "
                       "9.11.0; %s is version %s (REPERF_CUDNN_DIR names another folder)",
                       dnn->api.load.path, found);
    }
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        table[i] = load_symbol(&dnn->api.load, NAMES[i]);
        if (!table[i]) {
            return err_set(err, ERR_USAGE, "cudnn: %s has no %s, which Volta needs",
                           dnn->api.load.path, NAMES[i]);
        }
    }
    dnn->legacy = xcalloc(1, sizeof(*dnn->legacy));
    LOAD_FIELDS_FROM(LEGACY_SYMBOLS, dnn->legacy, table);
    char version[LOAD_VERSION_MAX];
    load_version_text(dnn->api.load.version, version);
    (void)snprintf(dnn->version, sizeof(dnn->version), "cudnn %s (older calls)", version);
    return 0;
}

void dnn_legacy_close(struct dnn *dnn)
{
    free(dnn->legacy);
    dnn->legacy = NULL;
}

bool dnn_legacy_supports(const struct dnn_call *call)
{
    return call->id == K_CONV_FWD || call->id == K_CONV_BWD_DATA || call->id == K_CONV_BWD_WEIGHT;
}

/* ---- descriptors ---- */

void dnn_legacy_release(struct dnn *dnn, struct dnn_plan *plan)
{
    const struct dnn_legacy *api = dnn->legacy;
    struct dnn_legacy_plan *legacy = plan->legacy;
    plan->legacy = NULL;
    if (!legacy) {
        return;
    }
    cudnnTensorDescriptor_t tensors[] = {legacy->x, legacy->y, legacy->bias};
    for (size_t i = 0; i < ARRAY_LEN(tensors); i++) {
        if (tensors[i]) {
            (void)api->cudnnDestroyTensorDescriptor(tensors[i]);
        }
    }
    if (legacy->w) {
        (void)api->cudnnDestroyFilterDescriptor(legacy->w);
    }
    if (legacy->conv) {
        (void)api->cudnnDestroyConvolutionDescriptor(legacy->conv);
    }
    free(legacy);
}

static cudnnStatus_t make_tensor(const struct dnn_legacy *api, cudnnTensorDescriptor_t *ret_desc,
                                 cudnnDataType_t type, const int64_t dim[4])
{
    cudnnStatus_t status = api->cudnnCreateTensorDescriptor(ret_desc);
    return status != CUDNN_STATUS_SUCCESS
               ? status
               : api->cudnnSetTensor4dDescriptor(*ret_desc, CUDNN_TENSOR_NHWC, type, (int)dim[0],
                                                 (int)dim[1], (int)dim[2], (int)dim[3]);
}

/* Half precision on tensor cores with sums in float: KataGo found that this works on a V100, and that a half-precision sum does
   not. */
static cudnnStatus_t make_convolution(const struct dnn_legacy *api, const struct dnn_call *call,
                                      cudnnConvolutionDescriptor_t *ret_conv)
{
    const struct conv_geom *g = &call->geom;
    cudnnMathType_t math = call->dtype == DT_F16 ? CUDNN_TENSOR_OP_MATH
                           : call->has_tf32      ? CUDNN_DEFAULT_MATH
                                                 : CUDNN_FMA_MATH;
    cudnnStatus_t status = api->cudnnCreateConvolutionDescriptor(ret_conv);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = api->cudnnSetConvolution2dDescriptor(
            *ret_conv, (int)g->pad_h, (int)g->pad_w, (int)g->stride_h, (int)g->stride_w,
            (int)g->dil_h, (int)g->dil_w, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = api->cudnnSetConvolutionGroupCount(*ret_conv, (int)g->groups);
    }
    return status == CUDNN_STATUS_SUCCESS ? api->cudnnSetConvolutionMathType(*ret_conv, math)
                                          : status;
}

static cudnnStatus_t describe(const struct dnn_legacy *api, const struct dnn_call *call,
                              struct dnn_legacy_plan *legacy)
{
    const struct conv_geom *g = &call->geom;
    cudnnDataType_t type = call->dtype == DT_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
    cudnnStatus_t status = make_tensor(api, &legacy->x, type, (int64_t[4]){g->n, g->c, g->h, g->w});
    if (status == CUDNN_STATUS_SUCCESS) {
        status = make_tensor(api, &legacy->y, type, (int64_t[4]){g->n, g->k, g->p, g->q});
    }
    if (status == CUDNN_STATUS_SUCCESS && call->has_bias) {
        status = make_tensor(api, &legacy->bias, type, (int64_t[4]){1, g->k, 1, 1});
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = api->cudnnCreateFilterDescriptor(&legacy->w);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = api->cudnnSetFilter4dDescriptor(legacy->w, type, CUDNN_TENSOR_NHWC, (int)g->k,
                                                 (int)(g->c / g->groups), (int)g->r, (int)g->s);
    }
    return status == CUDNN_STATUS_SUCCESS ? make_convolution(api, call, &legacy->conv) : status;
}

/* ---- running ---- */

static cudnnStatus_t run_way(const struct dnn *dnn, cudnnHandle_t handle,
                             const struct dnn_plan *plan, const struct way *way,
                             const struct dnn_pointers *at)
{
    const struct dnn_legacy *api = dnn->legacy;
    const struct dnn_legacy_plan *legacy = plan->legacy;
    const float one = 1.0f;
    const float beta = plan->call.is_added ? 1.0f : 0.0f;
    size_t bytes = (size_t)way->workspace_bytes;
    cudnnStatus_t status = api->cudnnSetConvolutionMathType(legacy->conv, way->math);
    if (status != CUDNN_STATUS_SUCCESS) {
        return status;
    }
    if (plan->call.id == K_CONV_BWD_DATA) {
        return api->cudnnConvolutionBackwardData(
            handle, &one, legacy->w, at->in[1], legacy->y, at->in[0], legacy->conv,
            (cudnnConvolutionBwdDataAlgo_t)way->algo, at->workspace, bytes, &beta, legacy->x,
            at->out[0]);
    }
    if (plan->call.id == K_CONV_BWD_WEIGHT) {
        return api->cudnnConvolutionBackwardFilter(
            handle, &one, legacy->x, at->in[1], legacy->y, at->in[0], legacy->conv,
            (cudnnConvolutionBwdFilterAlgo_t)way->algo, at->workspace, bytes, &beta, legacy->w,
            at->out[0]);
    }
    status = api->cudnnConvolutionForward(handle, &one, legacy->x, at->in[0], legacy->w, at->in[1],
                                          legacy->conv, (cudnnConvolutionFwdAlgo_t)way->algo,
                                          at->workspace, bytes, &beta, legacy->y, at->out[0]);
    return status == CUDNN_STATUS_SUCCESS && legacy->bias
               ? api->cudnnAddTensor(handle, &one, legacy->bias, at->in[2], &one, legacy->y,
                                     at->out[0])
               : status;
}

cudnnStatus_t dnn_legacy_run(const struct dnn *dnn, cudnnHandle_t handle,
                             const struct dnn_plan *plan, const struct dnn_pointers *at)
{
    return run_way(dnn, handle, plan, &plan->legacy->way, at);
}

/* ---- choosing ---- */

/* The heuristics' answers for the three kinds of call differ in one type only. */
#define WAYS_FROM(perf, n, ways)                                                                   \
    do {                                                                                           \
        for (int i = 0; i < (n); i++) {                                                            \
            if ((perf)[i].status == CUDNN_STATUS_SUCCESS) {                                        \
                (ways)[n_ways++] = (struct way){(int)(perf)[i].algo, (perf)[i].mathType,           \
                                                (int64_t)(perf)[i].memory,                         \
                                                (perf)[i].determinism == CUDNN_DETERMINISTIC};     \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* Best first; none is no error. */
static int ask(const struct dnn *dnn, const struct dnn_plan *plan, struct way ways[WAYS_MAX])
{
    const struct dnn_legacy *api = dnn->legacy;
    const struct dnn_legacy_plan *legacy = plan->legacy;
    cudnnHandle_t handle = dnn->handles[0];
    int n = 0;
    int n_ways = 0;
    if (plan->call.id == K_CONV_FWD) {
        cudnnConvolutionFwdAlgoPerf_t perf[WAYS_MAX];
        if (api->cudnnGetConvolutionForwardAlgorithm_v7(handle, legacy->x, legacy->w, legacy->conv,
                                                        legacy->y, WAYS_MAX, &n,
                                                        perf) == CUDNN_STATUS_SUCCESS) {
            WAYS_FROM(perf, n, ways);
        }
    } else if (plan->call.id == K_CONV_BWD_DATA) {
        cudnnConvolutionBwdDataAlgoPerf_t perf[WAYS_MAX];
        if (api->cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, legacy->w, legacy->y,
                                                             legacy->conv, legacy->x, WAYS_MAX, &n,
                                                             perf) == CUDNN_STATUS_SUCCESS) {
            WAYS_FROM(perf, n, ways);
        }
    } else {
        cudnnConvolutionBwdFilterAlgoPerf_t perf[WAYS_MAX];
        if (api->cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, legacy->x, legacy->y,
                                                               legacy->conv, legacy->w, WAYS_MAX,
                                                               &n, perf) == CUDNN_STATUS_SUCCESS) {
            WAYS_FROM(perf, n, ways);
        }
    }
    return n_ways;
}

static int keep_allowed(const struct dnn_rules *rules, enum dtype dtype, struct way *ways, int n)
{
    int n_kept = 0;
    for (int i = 0; i < n; i++) {
        bool is_rounded =
            dtype == DT_F32 && ways[i].math != CUDNN_FMA_MATH && ways[i].math != CUDNN_DEFAULT_MATH;
        if (ways[i].workspace_bytes <= rules->workspace_max_bytes &&
            (ways[i].is_deterministic || rules->allows_nondeterministic) && !is_rounded) {
            ways[n_kept++] = ways[i];
        }
    }
    return n_kept;
}

static void name_way(const struct way *way, char name[PLAN_NAME_MAX])
{
    (void)snprintf(name, PLAN_NAME_MAX, "cudnn-legacy %d math=%d", way->algo, (int)way->math);
}

struct tuning {
    const struct dnn *dnn;
    const struct dnn_plan *plan;
    const struct way *ways;
};

/* Buffers: in[0], in[1], the bias, out[0], workspace. */
enum { BUFFER_IN0, BUFFER_IN1, BUFFER_BIAS, BUFFER_OUT, BUFFER_WORKSPACE, BUFFER_COUNT };

static bool try_way(void *ctx, int i, void *const *buffers, cudaStream_t stream)
{
    const struct tuning *tuning = ctx;
    cudnnHandle_t handle = tuning->dnn->handles[0];
    const void *in[] = {buffers[BUFFER_IN0], buffers[BUFFER_IN1], buffers[BUFFER_BIAS]};
    void *out[] = {buffers[BUFFER_OUT]};
    struct dnn_pointers at = {in, out, buffers[BUFFER_WORKSPACE]};
    return tuning->dnn->api.cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS &&
           run_way(tuning->dnn, handle, tuning->plan, &tuning->ways[i], &at) ==
               CUDNN_STATUS_SUCCESS;
}

static int time_ways(struct cuda *cuda, struct dnn_plan *plan, const struct way *ways, int n,
                     int *ret_best, struct err *err)
{
    const struct conv_geom *g = &plan->call.geom;
    struct tuning tuning = {cuda->dnn, plan, ways};
    int64_t element = dtype_bytes(plan->call.dtype);
    int64_t x = g->n * g->c * g->h * g->w * element;
    int64_t w = g->k * (g->c / g->groups) * g->r * g->s * element;
    int64_t y = g->n * g->k * g->p * g->q * element;
    bool is_fwd = plan->call.id == K_CONV_FWD;
    bool is_data = plan->call.id == K_CONV_BWD_DATA;
    int64_t ns[WAYS_MAX];
    struct tune tune = {.n_ways = n,
                        .run = try_way,
                        .ctx = &tuning,
                        .n_buffers = BUFFER_COUNT,
                        .dtype = plan->call.dtype};
    tune.buffer_bytes[BUFFER_IN0] = is_fwd ? x : y;
    tune.buffer_bytes[BUFFER_IN1] = is_fwd || is_data ? w : x;
    tune.buffer_bytes[BUFFER_BIAS] = g->k * element;
    tune.buffer_bytes[BUFFER_OUT] = is_fwd ? y : is_data ? x : w;
    for (int i = 0; i < n; i++) {
        int64_t *bytes = &tune.buffer_bytes[BUFFER_WORKSPACE];
        *bytes = ways[i].workspace_bytes > *bytes ? ways[i].workspace_bytes : *bytes;
    }
    int status = tune_choose(&tune, ns, ret_best, err);
    (void)cuda->dnn->api.cudnnSetStream(cuda->dnn->handles[0], cuda->streams[0]);
    if (status == 0) {
        plan->engine.info.time_ns = ns[*ret_best];
    }
    return status;
}

/* Index of an earlier run's choice, or -1. */
static int find_cached(const struct dnn *dnn, struct dnn_plan *plan, const struct way *ways, int n)
{
    char key[PLAN_KEY_MAX];
    char name[PLAN_NAME_MAX];
    struct plan_choice choice;
    dnn_cache_key(dnn, plan, key);
    if (!dnn->cache_folder || !plan_cache_find(dnn->cache_folder, key, &choice)) {
        return -1;
    }
    for (int i = 0; i < n; i++) {
        name_way(&ways[i], name);
        if (strcmp(name, choice.plan) == 0) {
            plan->engine.info.time_ns = choice.time_ns;
            plan->engine.info.is_from_cache = true;
            return i;
        }
    }
    log_line(LOG_WARN, "plan cache: %s is not available; the plan is chosen again", choice.plan);
    return -1;
}

int dnn_legacy_choose(struct cuda *cuda, struct dnn_plan *plan, bool *ret_found, struct err *err)
{
    struct dnn *dnn = cuda->dnn;
    struct dnn_rules rules = dnn_rules_of(dnn, &plan->call);
    struct way ways[WAYS_MAX];
    *ret_found = false;
    if (!dnn_legacy_supports(&plan->call)) {
        return 0;
    }
    plan->legacy = xcalloc(1, sizeof(*plan->legacy));
    cudnnStatus_t status = describe(dnn->legacy, &plan->call, plan->legacy);
    if (status != CUDNN_STATUS_SUCCESS) {
        dnn_api_error(&dnn->api, status, "description", err);
        dnn_legacy_release(dnn, plan);
        return -1;
    }
    int n = keep_allowed(&rules, plan->call.dtype, ways, ask(dnn, plan, ways));
    int best = n > 0 && cuda_is_tuned(cuda) ? find_cached(dnn, plan, ways, n) : -1;
    if (n > 0 && best < 0) {
        best = 0;
        if (cuda_may_time(cuda) && time_ways(cuda, plan, ways, n, &best, err) < 0) {
            dnn_legacy_release(dnn, plan);
            return -1;
        }
    }
    if (n == 0) {
        dnn_legacy_release(dnn, plan);
        return 0;
    }
    plan->legacy->way = ways[best];
    plan->engine.info.workspace_bytes = ways[best].workspace_bytes;
    plan->engine.info.is_deterministic = ways[best].is_deterministic;
    name_way(&ways[best], plan->engine.info.name);
    dnn_keep_choice(dnn, plan);
    *ret_found = true;
    return 0;
}
