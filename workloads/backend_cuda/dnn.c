/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/dnn.h"

#include "backend_cuda/dnn_plan.h"
#include "backend_cuda/lt.h"
#include "backend_cuda/sums.h"
#include "base/arena.h"

/* ---- opening ---- */

/* A later library answers for Volta with a few slow engines that do not use its tensor cores. */
static int check_volta(const struct dnn_api *api, int device, struct err *err)
{
    int major = 0;
    int minor = 0;
    char found[LOAD_VERSION_MAX];
    cudaError_t status = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (status == cudaSuccess) {
        status = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    }
    if (status != cudaSuccess) {
        return err_set(err, ERR_WORKLOAD, "device %d: %s", device, cudaGetErrorString(status));
    }
    bool is_volta = major == 7 && minor < 5; /* Turing is 7.5 */
    if (!is_volta || api->load.version < DNN_VOLTA_VERSION_END) {
        return 0;
    }
    load_version_text(api->load.version, found);
    return err_set(err, ERR_USAGE,
                   "cudnn: a GPU of compute capability 7.%d needs cuDNN from 9.0.0 to below "
                   "9.11.0; %s is version %s (REPERF_CUDNN_DIR names another folder)",
                   minor, api->load.path, found);
}

static int open_handles(struct cuda *cuda, struct dnn *dnn, struct err *err)
{
    if (check_volta(&dnn->api, cuda->device, err) < 0) {
        return -1;
    }
    for (int i = 0; i < cuda->n_streams; i++) {
        cudnnStatus_t created = dnn->api.cudnnCreate(&dnn->handles[i]);
        if (created == CUDNN_STATUS_SUCCESS) {
            dnn->n_handles++;
            created = dnn->api.cudnnSetStream(dnn->handles[i], cuda->streams[i]);
        }
        if (created != CUDNN_STATUS_SUCCESS) {
            dnn_api_error(&dnn->api, created, "handle", err);
            return -1;
        }
    }
    dnn->device.handle = dnn->handles[0];
    return 0;
}

int dnn_open(struct cuda *cuda, const struct plan_opts *opts, struct err *err)
{
    struct dnn *dnn = xcalloc(1, sizeof(*dnn));
    ASSERT(!cuda->dnn && (opts->device_json || cuda->n_streams > 0));
    cuda->dnn = dnn;
    dnn->allows_compiled = opts->allows_compiled;
    dnn->allows_nondeterministic = opts->allows_nondeterministic;
    if (dnn_api_open(&dnn->api, err) < 0) {
        dnn_close(cuda);
        return -1;
    }
    char version[LOAD_VERSION_MAX];
    load_version_text(dnn->api.load.version, version);
    (void)snprintf(dnn->version, sizeof(dnn->version), "cudnn %s", version);
    dnn->device.api = &dnn->api;
    int status = opts->device_json ? dnn_device_describe(&dnn->device, opts->device_json, err)
                                   : open_handles(cuda, dnn, err);
    if (status < 0) {
        dnn_close(cuda);
    }
    return status;
}

/* cuBLASLt may have been closed before, and its part of the plan with it. */
static void plan_free(struct cuda *cuda, struct dnn_plan *plan)
{
    if (plan->is_matmul && cuda->lt) {
        lt_unprepare(cuda, &plan->matmul);
    }
    dnn_engine_release(&cuda->dnn->api, &plan->engine);
    dnn_graph_release(&plan->graph);
    free(plan);
}

void dnn_close(struct cuda *cuda)
{
    struct dnn *dnn = cuda->dnn;
    if (!dnn) {
        return;
    }
    while (dnn->plans) {
        struct dnn_plan *plan = dnn->plans;
        dnn->plans = plan->next;
        plan_free(cuda, plan);
    }
    if (dnn->device.property) {
        (void)dnn->api.cudnnBackendDestroyDescriptor(dnn->device.property);
    }
    for (int i = 0; i < dnn->n_handles; i++) {
        (void)dnn->api.cudnnDestroy(dnn->handles[i]);
    }
    dnn_api_close(&dnn->api);
    free(dnn);
    cuda->dnn = NULL;
}

const char *dnn_version(const struct cuda *cuda)
{
    return cuda->dnn->version;
}

/* ---- running ---- */

static void *pointer_of(const struct dnn_binding *binding, const struct dnn_pointers *at)
{
    if (binding->place == DNN_SCRATCH) {
        return at->workspace + binding->offset_bytes;
    }
    if (binding->place == DNN_OUT) {
        return at->out[binding->idx];
    }
    return (void *)(uintptr_t)
        at->in[binding->idx]; /* cuDNN has one type for both; it only reads these */
}

cudnnStatus_t dnn_execute(const struct dnn_api *api, cudnnHandle_t handle,
                          const struct dnn_graph *graph, cudnnBackendDescriptor_t plan,
                          const struct dnn_pointers *at)
{
    int64_t uids[DNN_BINDINGS_MAX];
    void *pointers[DNN_BINDINGS_MAX];
    void *workspace = at->workspace + graph->scratch_bytes;
    cudnnBackendDescriptor_t pack = NULL;
    for (int i = 0; i < graph->n_bindings; i++) {
        uids[i] = graph->bindings[i].uid;
        pointers[i] = pointer_of(&graph->bindings[i], at);
    }
    cudnnStatus_t status =
        api->cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);
    if (status == CUDNN_STATUS_SUCCESS) {
        status = api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
                                               CUDNN_TYPE_INT64, graph->n_bindings, uids);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
                                               CUDNN_TYPE_VOID_PTR, graph->n_bindings, pointers);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = api->cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
                                               CUDNN_TYPE_VOID_PTR, 1, &workspace);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = api->cudnnBackendFinalize(pack);
    }
    if (status == CUDNN_STATUS_SUCCESS) {
        status = api->cudnnBackendExecute(handle, plan, pack);
    }
    if (pack) {
        (void)api->cudnnBackendDestroyDescriptor(pack);
    }
    return status;
}

/* The graph's part of the workspace holds only the result to be added. */
static void add_result(struct cuda *cuda, const struct kernel_args *args,
                       const struct dnn_plan *plan)
{
    struct add_args add = {.dtype = args->dtype,
                           .from = args->workspace,
                           .to = args->out[0],
                           .stream = cuda_stream(cuda, args)};
    for (int i = 0; i < plan->graph.n_bindings; i++) {
        if (plan->graph.bindings[i].place == DNN_SCRATCH) {
            add.count = plan->graph.bindings[i].size_bytes / dtype_bytes(args->dtype);
        }
    }
    cuda_add_to(cuda, &add);
}

/* The bias's gradient is a sum of our own: cuDNN has no reduction that is compiled ahead of time. */
static void run_dbias(struct cuda *cuda, const struct kernel_args *args)
{
    const struct conv_geom *g = &args->geom.conv;
    struct column_sum_args sum = {.dtype = args->dtype,
                                  .rows = g->n * g->p * g->q,
                                  .columns = cuda_channels(cuda, g->k),
                                  .x = args->in[WEIGHT_DY_IN],
                                  .sums = args->out[WEIGHT_DBIAS_OUT],
                                  .is_added =
                                      (args->accumulate & OPERAND_BIT(WEIGHT_DBIAS_OUT)) != 0,
                                  .partial = args->workspace,
                                  .stream = cuda_stream(cuda, args)};
    cuda_column_sum(cuda, &sum);
}

static void run_engine(struct cuda *cuda, const struct kernel_args *args,
                       const struct dnn_plan *plan)
{
    struct dnn *dnn = cuda->dnn;
    struct dnn_pointers at = {args->in, args->out, args->workspace};
    cudnnHandle_t handle = dnn->handles[args->stream];
    cudnnStatus_t status = dnn_execute(&dnn->api, handle, &plan->graph, plan->engine.plan, &at);
    if (status != CUDNN_STATUS_SUCCESS) {
        dnn_api_error(&dnn->api, status, plan->key, &cuda->err);
    } else if (plan->call.is_aside) {
        add_result(cuda, args, plan);
    }
}

static void run_product(struct cuda *cuda, const struct kernel_args *args,
                        const struct dnn_plan *plan)
{
    struct kernel_args matmul = plan->matmul;
    memcpy(matmul.in, args->in, sizeof(matmul.in));
    matmul.out[0] = args->out[0];
    matmul.workspace = args->workspace;
    matmul.stream = args->stream;
    lt_run(cuda, &matmul);
}

void dnn_run(void *self, const struct kernel_args *args)
{
    struct cuda *cuda = self;
    const struct dnn_plan *plan = args->prepared;
    if (cuda->err.code != ERR_NONE) {
        return;
    }
    if (args->out[0] && plan->is_matmul) {
        run_product(cuda, args, plan);
    } else if (args->out[0]) {
        run_engine(cuda, args, plan);
    }
    if (cuda->err.code != ERR_NONE) {
        return;
    }
    if (args->id == K_CONV_BWD_WEIGHT && args->out[1]) {
        run_dbias(cuda, args);
    }
}

static struct dnn_plan *plan_find(struct dnn *dnn, const char *key)
{
    for (struct dnn_plan *plan = dnn->plans; plan; plan = plan->next) {
        if (strcmp(plan->key, key) == 0) {
            return plan;
        }
    }
    return NULL;
}

static struct dnn_plan *plan_get(struct cuda *cuda, const struct kernel_args *args, struct err *err)
{
    struct dnn *dnn = cuda->dnn;
    char key[DNN_KEY_MAX];
    struct dnn_call call = dnn_call_of(cuda, args);
    dnn_call_key(&call, key);
    if (cuda->workspace_limit > 0) {
        size_t len = strlen(key);
        int more = snprintf(key + len, sizeof(key) - len, " within %" PRId64,
                            cuda_workspace_max(cuda, call.dtype));
        ASSERT(more > 0 && len + (size_t)more < sizeof(key));
    }
    struct dnn_plan *plan = plan_find(dnn, key);
    if (plan) {
        return plan;
    }
    plan = xcalloc(1, sizeof(*plan));
    plan->call = call;
    memcpy(plan->key, key, sizeof(key));
    if (dnn_choose(cuda, plan, err) < 0) {
        dnn_graph_release(&plan->graph);
        free(plan);
        int failed = err_wrap(err, "cudnn: %s", key);
        ASSERT(failed < 0);
        return NULL;
    }
    plan->next = dnn->plans;
    dnn->plans = plan;
    return plan;
}

int dnn_prepare(struct cuda *cuda, struct kernel_args *args, struct err *err)
{
    struct dnn_plan *plan = plan_get(cuda, args, err);
    if (!plan) {
        return -1;
    }
    plan->n_users++;
    args->prepared = plan;
    args->workspace_bytes = plan->is_matmul
                                ? plan->matmul.workspace_bytes
                                : plan->graph.scratch_bytes + plan->engine.info.workspace_bytes;
    if (args->id == K_CONV_BWD_WEIGHT && args->has_bias) {
        const struct conv_geom *g = &args->geom.conv;
        int64_t bytes = cuda_column_sum_bytes(g->n * g->p * g->q, cuda_channels(cuda, g->k));
        args->workspace_bytes = bytes > args->workspace_bytes ? bytes : args->workspace_bytes;
    }
    return 0;
}

/* When a network is prepared again, with another batch or after it was released, the plan of the last use is gone. */
void dnn_unprepare(struct cuda *cuda, struct kernel_args *args)
{
    struct dnn_plan *plan = args->prepared;
    args->prepared = NULL;
    if (!plan || --plan->n_users > 0) {
        return;
    }
    struct dnn_plan **at = &cuda->dnn->plans;
    while (*at != plan) {
        at = &(*at)->next;
    }
    *at = plan->next;
    plan_free(cuda, plan);
}

bool dnn_supports(struct cuda *cuda, const struct kernel_args *args)
{
    struct dnn *dnn = cuda->dnn;
    struct dnn_call call = dnn_call_of(cuda, args);
    struct dnn_rules rules = dnn_rules_of(cuda, &call);
    struct dnn_graph graph;
    struct dnn_engine engine;
    struct dnn_refused refused;
    struct err why = {0};
    if (dnn_sums_vary(&call) && !dnn->allows_nondeterministic) {
        return false;
    }
    call.is_aside = call.is_added;
    if (dnn_graph_make(&graph, &dnn->api, dnn->device.handle, &call, &why) < 0) {
        return false;
    }
    int n = dnn_engines_find(&dnn->device, &graph, &rules, 1, &engine, &refused);
    if (n > 0) {
        dnn_engine_release(&dnn->api, &engine);
    }
    dnn_graph_release(&graph);
    return n > 0;
}
