/* SPDX-License-Identifier: Apache-2.0 */
/* Letters: core/kernel.h. cuBLASLt counts columns first: what lies row-major as (N, C) is to it C rows and N columns, so that
   y = x w^T is K x N = (C x K)^T (C x N). Its GELU is the approximation by tanh and not ours (K_GELU_FWD), so that epilogue is not used. */
#include "base/base.h"

#include "backend_cuda/lt.h"

#include "backend_cuda/lt_plan.h"
#include "backend_cuda/sums.h"
#include "base/arena.h"

/* ---- opening ---- */

int lt_open(struct cuda *cuda, const struct plan_opts *opts, struct err *err)
{
    ASSERT(!cuda->lt);
    if (opts->device_json) {
        return err_set(err, ERR_USAGE, "cuBLASLt plans only for the device that is present");
    }
    struct lt *lt = xcalloc(1, sizeof(*lt));
    cuda->lt = lt;
    if (lt_api_open(&lt->api, err) < 0) {
        lt_close(cuda);
        return -1;
    }
    char version[LOAD_VERSION_MAX];
    load_version_text(lt->api.load.version, version);
    (void)snprintf(lt->version, sizeof(lt->version), "cublaslt %s", version);
    cublasStatus_t created = lt->api.cublasLtCreate(&lt->handle);
    if (created != CUBLAS_STATUS_SUCCESS) {
        lt->handle = NULL;
        lt_api_error(&lt->api, created, "handle", err);
        lt_close(cuda);
        return -1;
    }
    return 0;
}

static void plan_free(const struct lt_api *api, struct lt_plan *plan)
{
    if (plan->how) {
        (void)api->cublasLtMatmulDescDestroy(plan->how);
    }
    if (plan->a) {
        (void)api->cublasLtMatrixLayoutDestroy(plan->a);
    }
    if (plan->b) {
        (void)api->cublasLtMatrixLayoutDestroy(plan->b);
    }
    if (plan->d) {
        (void)api->cublasLtMatrixLayoutDestroy(plan->d);
    }
    free(plan);
}

void lt_close(struct cuda *cuda)
{
    struct lt *lt = cuda->lt;
    if (!lt) {
        return;
    }
    while (lt->plans) {
        struct lt_plan *plan = lt->plans;
        lt->plans = plan->next;
        plan_free(&lt->api, plan);
    }
    if (lt->handle) {
        (void)lt->api.cublasLtDestroy(lt->handle);
    }
    lt_api_close(&lt->api);
    free(lt);
    cuda->lt = NULL;
}

const char *lt_version(const struct cuda *cuda)
{
    return cuda->lt->version;
}

/* ---- a problem in the library's terms ---- */

static struct lt_problem problem_of(const struct cuda *cuda, const struct kernel_args *args)
{
    const struct linear_geom *g = &args->geom.linear;
    ASSERT(!g->is_rounded || g->n_parts == 1);
    return (struct lt_problem){.id = args->id,
                               .dtype = args->dtype,
                               .n = g->n,
                               .c = g->c,
                               .k = g->is_rounded ? cuda_channels(cuda, g->k) : g->k,
                               .has_bias = args->has_bias && args->id != K_LINEAR_BWD_DATA,
                               .is_added = (args->accumulate & 1U) != 0,
                               .is_bias_added = (args->accumulate & 2U) != 0,
                               .has_tf32 = cuda->has_tf32 && args->dtype == DT_F32};
}

static void problem_key(const struct lt_problem *p, char key[LT_KEY_MAX])
{
    int len =
        snprintf(key, LT_KEY_MAX, "%s %s n%" PRId64 " c%" PRId64 " k%" PRId64 "%s%s%s%s",
                 kernel_name(p->id), dtype_name(p->dtype), p->n, p->c, p->k,
                 p->has_bias ? " bias" : "", p->is_added ? " added" : "",
                 p->has_bias && p->is_bias_added ? " bias-added" : "", p->has_tf32 ? " tf32" : "");
    ASSERT(len > 0 && len < LT_KEY_MAX);
}

static bool passed(const struct lt_api *api, cublasStatus_t status, const char *what,
                   struct err *err)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        lt_api_error(api, status, what, err);
    }
    return status == CUBLAS_STATUS_SUCCESS;
}

static bool set(const struct lt_api *api, struct lt_plan *plan, cublasLtMatmulDescAttributes_t name,
                const void *value, size_t bytes, struct err *err)
{
    return passed(api, api->cublasLtMatmulDescSetAttribute(plan->how, name, value, bytes),
                  "attribute of a product", err);
}

bool lt_set_epilogue(const struct lt_api *api, struct lt_plan *plan, bool has_bgrad,
                     struct err *err)
{
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    if (has_bgrad) {
        epilogue = CUBLASLT_EPILOGUE_BGRADB;
    } else if (plan->problem.id == K_LINEAR_FWD && plan->problem.has_bias) {
        epilogue = CUBLASLT_EPILOGUE_BIAS;
    }
    return set(api, plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue), err);
}

static bool set_bias(const struct lt_api *api, struct lt_plan *plan, const void *bias,
                     struct err *err)
{
    return set(api, plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(const void *), err);
}

static bool make_layout(const struct lt_api *api, cublasLtMatrixLayout_t *ret_layout,
                        enum dtype dtype, int64_t rows, int64_t columns, struct err *err)
{
    cudaDataType type = dtype == DT_F16 ? CUDA_R_16F : CUDA_R_32F;
    return passed(
        api,
        api->cublasLtMatrixLayoutCreate(ret_layout, type, (uint64_t)rows, (uint64_t)columns, rows),
        "matrix", err);
}

/* a is in[1] and b is in[0] in all three. */
static bool describe(const struct lt_api *api, struct lt_plan *plan, struct err *err)
{
    const struct lt_problem *p = &plan->problem;
    bool is_fwd = p->id == K_LINEAR_FWD;
    bool is_weight = p->id == K_LINEAR_BWD_WEIGHT;
    cublasComputeType_t compute = p->has_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasOperation_t turn_a = is_fwd ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t turn_b = is_weight ? CUBLAS_OP_T : CUBLAS_OP_N;
    return passed(api, api->cublasLtMatmulDescCreate(&plan->how, compute, CUDA_R_32F), "product",
                  err) &&
           set(api, plan, CUBLASLT_MATMUL_DESC_TRANSA, &turn_a, sizeof(turn_a), err) &&
           set(api, plan, CUBLASLT_MATMUL_DESC_TRANSB, &turn_b, sizeof(turn_b), err) &&
           make_layout(api, &plan->a, p->dtype, p->c, is_weight ? p->n : p->k, err) &&
           make_layout(api, &plan->b, p->dtype, is_fwd ? p->c : p->k, p->n, err) &&
           make_layout(api, &plan->d, p->dtype, is_fwd ? p->k : p->c, is_weight ? p->k : p->n, err);
}

/* ---- running ---- */

static cublasStatus_t multiply(const struct lt *lt, struct lt_plan *plan, const struct lt_way *way,
                               const struct lt_operands *at)
{
    const float alpha = 1.0f;
    const float beta = plan->problem.is_added ? 1.0f : 0.0f;
    return lt->api.cublasLtMatmul(lt->handle, plan->how, &alpha, at->a, plan->a, at->b, plan->b,
                                  &beta, at->d, plan->d, at->d, plan->d, &way->algo, at->workspace,
                                  (size_t)way->workspace_bytes, at->stream);
}

static void sum_bias(struct cuda *cuda, const struct lt_problem *p, const struct lt_operands *at)
{
    struct column_sum_args sum = {.dtype = p->dtype,
                                  .rows = p->n,
                                  .columns = p->k,
                                  .x = at->b,
                                  .sums = at->dbias,
                                  .is_added = p->is_bias_added,
                                  .partial = at->workspace,
                                  .stream = at->stream};
    cuda_column_sum(cuda, &sum);
}

int64_t lt_sum_bytes(const struct lt_problem *p)
{
    return p->id == K_LINEAR_BWD_WEIGHT && p->has_bias ? cuda_column_sum_bytes(p->n, p->k) : 0;
}

/* Whether dbias is needed and the product does not compute it. */
static bool needs_sum(const struct lt_plan *plan, const struct lt_way *way)
{
    return plan->problem.id == K_LINEAR_BWD_WEIGHT && plan->problem.has_bias && !way->has_bgrad;
}

bool lt_run_way(struct cuda *cuda, struct lt_plan *plan, const struct lt_way *way,
                const struct lt_operands *at, struct err *err)
{
    const struct lt *lt = cuda->lt;
    bool has_pointer = plan->problem.has_bias && !needs_sum(plan, way);
    const void *bias = plan->problem.id == K_LINEAR_FWD ? at->bias : at->dbias;
    if ((has_pointer && !set_bias(&lt->api, plan, bias, err)) ||
        !passed(&lt->api, multiply(lt, plan, way, at), plan->key, err)) {
        return false;
    }
    if (needs_sum(plan, way)) {
        sum_bias(cuda, &plan->problem, at);
    }
    return true;
}

void lt_run(void *self, const struct kernel_args *args)
{
    struct cuda *cuda = self;
    struct lt_plan *plan = args->prepared;
    if (cuda->err.code != ERR_NONE) {
        return;
    }
    struct lt_operands at = {.a = args->in[FWD_W_IN],
                             .b = args->in[FWD_X_IN],
                             .d = args->out[FWD_Y_OUT],
                             .bias = args->in[FWD_BIAS_IN],
                             .dbias = args->out[WEIGHT_DBIAS_OUT],
                             .workspace = args->workspace,
                             .stream = cuda_stream(cuda, args)};
    if (!at.d) { /* only the bias is trained */
        sum_bias(cuda, &plan->problem, &at);
        return;
    }
    (void)lt_run_way(cuda, plan, &plan->way, &at, &cuda->err);
}

static int make_plan(struct cuda *cuda, struct lt_plan *plan, struct err *err)
{
    const struct lt_api *api = &cuda->lt->api;
    if (!describe(api, plan, err) || lt_choose(cuda, plan, err) < 0 ||
        !lt_set_epilogue(api, plan, plan->way.has_bgrad, err)) {
        return -1;
    }
    int64_t sum = lt_sum_bytes(&plan->problem);
    plan->info.is_deterministic = true;
    plan->info.workspace_bytes = plan->way.workspace_bytes > sum ? plan->way.workspace_bytes : sum;
    return 0;
}

static struct lt_plan *plan_get(struct cuda *cuda, const struct kernel_args *args, struct err *err)
{
    char key[LT_KEY_MAX];
    struct lt_problem problem = problem_of(cuda, args);
    int64_t most = cuda_workspace_max(cuda, DT_F16);
    problem_key(&problem, key);
    for (struct lt_plan *plan = cuda->lt->plans; plan; plan = plan->next) {
        if (strcmp(plan->key, key) == 0 && plan->way.workspace_bytes <= most) {
            return plan;
        }
    }
    struct lt_plan *plan = xcalloc(1, sizeof(*plan));
    plan->problem = problem;
    plan->workspace_max_bytes = most;
    memcpy(plan->key, key, sizeof(key));
    if (make_plan(cuda, plan, err) < 0) {
        plan_free(&cuda->lt->api, plan);
        int failed = err_wrap(err, "cublaslt: %s", key);
        ASSERT(failed < 0);
        return NULL;
    }
    plan->next = cuda->lt->plans;
    cuda->lt->plans = plan;
    return plan;
}

int lt_prepare(struct cuda *cuda, struct kernel_args *args, struct err *err)
{
    struct lt_plan *plan = plan_get(cuda, args, err);
    if (!plan) {
        return -1;
    }
    plan->n_users++;
    args->prepared = plan;
    args->workspace_bytes = plan->info.workspace_bytes;
    return 0;
}

void lt_unprepare(struct cuda *cuda, struct kernel_args *args)
{
    struct lt_plan *plan = args->prepared;
    args->prepared = NULL;
    if (!plan || --plan->n_users > 0) {
        return;
    }
    struct lt_plan **at = &cuda->lt->plans;
    while (*at != plan) {
        at = &(*at)->next;
    }
    *at = plan->next;
    plan_free(&cuda->lt->api, plan);
}

struct plan_info lt_plan_info(const struct kernel_args *args)
{
    return ((const struct lt_plan *)args->prepared)->info;
}
