/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/lt_plan.h"
#include "backend_cuda/tune.h"
#include "base/log.h"

#define WAYS_ASKED  10 /* of each of the two ways to compute dbias */
#define ALIGN_BYTES 16 /* alignment promised for the pointers */
#define NAME_PLAIN  "cublaslt "
#define NAME_BGRAD  "cublaslt bgrad "

/* ---- choosing ---- */

static bool passed(const struct lt_api *api, cublasStatus_t status, const char *what,
                   struct err *err)
{
    if (status != CUBLAS_STATUS_SUCCESS) {
        lt_api_error(api, status, what, err);
    }
    return status == CUBLAS_STATUS_SUCCESS;
}

static bool prefer(const struct lt_api *api, cublasLtMatmulPreference_t preference,
                   int64_t workspace_bytes, struct err *err)
{
    /* No partial sums in the type of the result, and no order that may vary. */
    const uint32_t schemes =
        CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const uint64_t workspace = (uint64_t)workspace_bytes;
    const uint32_t align = ALIGN_BYTES;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t bytes;
    } wishes[] = {{CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof(schemes)},
                  {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace)},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align, sizeof(align)},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align, sizeof(align)},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align, sizeof(align)},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align, sizeof(align)}};
    for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
        if (!passed(api,
                    api->cublasLtMatmulPreferenceSetAttribute(preference, wishes[i].name,
                                                              wishes[i].value, wishes[i].bytes),
                    "preference", err)) {
            return false;
        }
    }
    return true;
}

/* Appends up to n_max ways with the epilogue set in the plan's description; none is no error. */
static int ask(const struct lt *lt, struct lt_plan *plan, bool has_bgrad, int n_max,
               struct lt_way *ret_ways, struct err *err)
{
    const struct lt_api *api = &lt->api;
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t results[WAYS_ASKED];
    int n_results = 0;
    int n = 0;
    if (!lt_set_epilogue(api, plan, has_bgrad, err) ||
        !passed(api, api->cublasLtMatmulPreferenceCreate(&preference), "preference", err)) {
        return -1;
    }
    bool is_ok = prefer(api, preference, plan->workspace_max_bytes, err);
    if (is_ok && api->cublasLtMatmulAlgoGetHeuristic(lt->handle, plan->how, plan->a, plan->b,
                                                     plan->d, plan->d, preference, n_max, results,
                                                     &n_results) != CUBLAS_STATUS_SUCCESS) {
        n_results = 0;
    }
    (void)api->cublasLtMatmulPreferenceDestroy(preference);
    for (int i = 0; i < n_results; i++) {
        if (results[i].state == CUBLAS_STATUS_SUCCESS) {
            ret_ways[n++] = (struct lt_way){.algo = results[i].algo,
                                            .workspace_bytes = (int64_t)results[i].workspaceSize,
                                            .has_bgrad = has_bgrad};
        }
    }
    return is_ok ? n : -1;
}

struct tuning {
    struct cuda *cuda;
    struct lt_plan *plan;
    const struct lt_way *ways;
};

enum buffer { BUFFER_A, BUFFER_B, BUFFER_D, BUFFER_BIAS, BUFFER_WORKSPACE, BUFFER_COUNT };

static bool try_way(void *ctx, int i, void *const *buffers, cudaStream_t stream)
{
    const struct tuning *tuning = ctx;
    struct err why = {0};
    struct lt_operands at = {.a = buffers[BUFFER_A],
                             .b = buffers[BUFFER_B],
                             .d = buffers[BUFFER_D],
                             .bias = buffers[BUFFER_BIAS],
                             .dbias = buffers[BUFFER_BIAS],
                             .workspace = buffers[BUFFER_WORKSPACE],
                             .stream = stream};
    return lt_set_epilogue(&tuning->cuda->lt->api, tuning->plan, tuning->ways[i].has_bgrad, &why) &&
           lt_run_way(tuning->cuda, tuning->plan, &tuning->ways[i], &at, &why);
}

static int time_ways(struct cuda *cuda, struct lt_plan *plan, const struct lt_way *ways, int n,
                     int *ret_best, struct err *err)
{
    const struct lt_problem *p = &plan->problem;
    struct tuning tuning = {cuda, plan, ways};
    int64_t element = dtype_bytes(p->dtype);
    int64_t x = p->n * p->c * element;
    int64_t w = p->k * p->c * element;
    int64_t y = p->n * p->k * element;
    bool is_weight = p->id == K_LINEAR_BWD_WEIGHT;
    int64_t ns[2 * WAYS_ASKED];
    struct tune tune = {
        .n_ways = n, .run = try_way, .ctx = &tuning, .n_buffers = BUFFER_COUNT, .dtype = p->dtype};
    tune.buffer_bytes[BUFFER_A] = is_weight ? x : w;
    tune.buffer_bytes[BUFFER_B] = p->id == K_LINEAR_FWD ? x : y;
    tune.buffer_bytes[BUFFER_D] = p->id == K_LINEAR_FWD ? y : is_weight ? w : x;
    tune.buffer_bytes[BUFFER_BIAS] = p->k * element;
    tune.buffer_bytes[BUFFER_WORKSPACE] = lt_sum_bytes(p);
    for (int i = 0; i < n; i++) {
        int64_t *bytes = &tune.buffer_bytes[BUFFER_WORKSPACE];
        *bytes = ways[i].workspace_bytes > *bytes ? ways[i].workspace_bytes : *bytes;
    }
    if (tune_choose(&tune, ns, ret_best, err) < 0) {
        return -1;
    }
    plan->info.time_ns = ns[*ret_best];
    return cuda->err.code == ERR_NONE ? 0 : err_set(err, cuda->err.code, "%s", cuda->err.msg);
}

/* ---- names: the algorithm's bytes, which the same version of the library understands ---- */

static void name_way(const struct lt_way *way, char name[PLAN_NAME_MAX])
{
    const unsigned char *bytes = (const unsigned char *)&way->algo;
    int len = snprintf(name, PLAN_NAME_MAX, "%s", way->has_bgrad ? NAME_BGRAD : NAME_PLAIN);
    _Static_assert(sizeof(NAME_BGRAD) + 2 * sizeof(way->algo) <= PLAN_NAME_MAX, "a name holds it");
    for (size_t i = 0; i < sizeof(way->algo); i++) {
        len += snprintf(name + len, (size_t)(PLAN_NAME_MAX - len), "%02x", bytes[i]);
    }
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_name(const char *name, struct lt_way *ret_way)
{
    bool has_bgrad = strncmp(name, NAME_BGRAD, strlen(NAME_BGRAD)) == 0;
    const char *prefix = has_bgrad ? NAME_BGRAD : NAME_PLAIN;
    const char *hex = name + strlen(prefix);
    if (strncmp(name, prefix, strlen(prefix)) != 0 || strlen(hex) != 2 * sizeof(ret_way->algo)) {
        return false;
    }
    unsigned char *bytes = (unsigned char *)&ret_way->algo;
    for (size_t i = 0; i < sizeof(ret_way->algo); i++) {
        int high = hex_value(hex[2 * i]);
        int low = hex_value(hex[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i] = (unsigned char)(high * 16 + low);
    }
    ret_way->has_bgrad = has_bgrad;
    return true;
}

/* An earlier choice, if the library still accepts it. */
static bool choose_cached(struct cuda *cuda, struct lt_plan *plan)
{
    const struct lt *lt = cuda->lt;
    struct plan_choice choice;
    struct err why = {0};
    struct lt_way way = {0};
    cublasLtMatmulHeuristicResult_t result = {0};
    if (!plan_book_find(&cuda->book, plan->key, &choice)) {
        return false;
    }
    bool allows_bgrad = plan->problem.id == K_LINEAR_BWD_WEIGHT && plan->problem.has_bias &&
                        !plan->problem.is_bias_added;
    if (!read_name(choice.plan, &way) || (way.has_bgrad && !allows_bgrad) ||
        !lt_set_epilogue(&lt->api, plan, way.has_bgrad, &why) ||
        lt->api.cublasLtMatmulAlgoCheck(lt->handle, plan->how, plan->a, plan->b, plan->d, plan->d,
                                        &way.algo, &result) != CUBLAS_STATUS_SUCCESS ||
        result.workspaceSize > (size_t)plan->workspace_max_bytes) {
        log_line(LOG_WARN,
                 "plan cache: %s: \"%.40s...\" is not available; the plan is chosen again",
                 plan->key, choice.plan);
        return false;
    }
    way.workspace_bytes = (int64_t)result.workspaceSize;
    plan->way = way;
    plan->info.time_ns = choice.time_ns;
    plan->info.is_from_cache = true;
    name_way(&plan->way, plan->info.name);
    return true;
}

static void keep_choice(struct cuda *cuda, const struct lt_plan *plan)
{
    struct plan_choice choice = {.time_ns = plan->info.time_ns};
    memcpy(choice.plan, plan->info.name, sizeof(choice.plan));
    bool is_limited =
        plan->workspace_max_bytes < PLAN_WORKSPACE_MAX_BYTES; /* by this run's memory */
    if (choice.time_ns > 0 && !is_limited) {
        plan_book_put(&cuda->book, plan->key, &choice);
    }
}

int lt_choose(struct cuda *cuda, struct lt_plan *plan, struct err *err)
{
    struct lt *lt = cuda->lt;
    const struct lt_problem *p = &plan->problem;
    struct lt_way ways[2 * WAYS_ASKED];
    int n = 0;
    int best = 0;
    if (cuda_is_tuned(cuda) && choose_cached(cuda, plan)) {
        return 0;
    }
    bool is_timed = cuda_may_time(cuda);
    int n_max = is_timed ? WAYS_ASKED : 1;
    if (p->id == K_LINEAR_BWD_WEIGHT && p->has_bias && !p->is_bias_added) {
        n = ask(lt, plan, true, n_max, ways, err);
    }
    int more = n < 0 ? -1 : ask(lt, plan, false, n_max, ways + n, err);
    if (more < 0) {
        return -1;
    }
    n += more;
    if (n == 0) {
        return err_set(err, ERR_WORKLOAD, "no algorithm within %" PRId64 " bytes of workspace",
                       plan->workspace_max_bytes);
    }
    if (is_timed && time_ways(cuda, plan, ways, n, &best, err) < 0) {
        return -1;
    }
    plan->way = ways[best];
    name_way(&plan->way, plan->info.name);
    keep_choice(cuda, plan);
    return 0;
}
