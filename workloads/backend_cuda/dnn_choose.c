/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "backend_cuda/dnn_plan.h"
#include "backend_cuda/lt.h"
#include "backend_cuda/tune.h"
#include "base/log.h"

#define ENGINES_TIMED 12

struct dnn_rules dnn_rules_of(const struct cuda *cuda, const struct dnn_call *call)
{
    return (struct dnn_rules){.allows_tensor_cores = call->dtype == DT_F16 || call->has_tf32,
                              .workspace_max_bytes = cuda_workspace_max(cuda, call->dtype)};
}

bool dnn_sums_vary(const struct dnn_call *call)
{
    return call->id == K_CONV_STATS_FWD || call->id == K_CONV_BWD_DATA_BN;
}

struct tuning {
    const struct dnn *dnn;
    const struct dnn_plan *plan;
    const struct dnn_engine *engines;
};

static bool run_engine(void *ctx, int i, void *const *buffers, cudaStream_t stream)
{
    const struct tuning *tuning = ctx;
    const struct dnn_api *api = &tuning->dnn->api;
    const struct dnn_graph *graph = &tuning->plan->graph;
    const void *in[KERNEL_IN_MAX] = {0};
    void *out[KERNEL_OUT_MAX] = {0};
    cudnnHandle_t handle = tuning->dnn->handles[0];
    struct dnn_pointers at = {in, out, buffers[graph->n_bindings]};
    for (int k = 0; k < graph->n_bindings; k++) {
        const struct dnn_binding *binding = &graph->bindings[k];
        if (binding->place == DNN_IN) {
            in[binding->idx] = buffers[k];
        } else if (binding->place == DNN_OUT) {
            out[binding->idx] = buffers[k];
        }
    }
    return api->cudnnSetStream(handle, stream) == CUDNN_STATUS_SUCCESS &&
           dnn_execute(api, handle, graph, tuning->engines[i].plan, &at) == CUDNN_STATUS_SUCCESS;
}

/* Index of the fastest, its time noted. */
static int time_engines(struct cuda *cuda, const struct dnn_plan *plan, struct dnn_engine *engines,
                        int n, int *ret_best, struct err *err)
{
    struct dnn *dnn = cuda->dnn;
    const struct dnn_graph *graph = &plan->graph;
    struct tuning tuning = {dnn, plan, engines};
    struct tune tune = {.n_ways = n,
                        .run = run_engine,
                        .ctx = &tuning,
                        .n_buffers = graph->n_bindings + 1,
                        .dtype = plan->call.dtype};
    int64_t ns[ENGINES_TIMED];
    int64_t *workspace_bytes = &tune.buffer_bytes[graph->n_bindings];
    for (int k = 0; k < graph->n_bindings; k++) {
        tune.buffer_bytes[k] = graph->bindings[k].size_bytes;
    }
    for (int i = 0; i < n; i++) {
        int64_t bytes = graph->scratch_bytes + engines[i].info.workspace_bytes;
        *workspace_bytes = bytes > *workspace_bytes ? bytes : *workspace_bytes;
    }
    int status = tune_choose(&tune, ns, ret_best, err);
    (void)dnn->api.cudnnSetStream(dnn->handles[0], cuda->streams[0]);
    if (status == 0) {
        engines[*ret_best].info.time_ns = ns[*ret_best];
    }
    return status;
}

/* What a choice depends on beside the book's `about`. */
static void call_key(const struct dnn *dnn, const char *call, char key[PLAN_CALL_MAX])
{
    int len = snprintf(key, PLAN_CALL_MAX, "%s%s", call, dnn->allows_compiled ? "; compiled" : "");
    ASSERT(len > 0 && len < PLAN_CALL_MAX);
}

/* An earlier choice for `call`; false: none, or one that cannot be built now. */
static bool take_kept(struct cuda *cuda, struct dnn_plan *plan, const char *call, struct err *why)
{
    const struct dnn *dnn = cuda->dnn;
    char key[PLAN_CALL_MAX];
    struct plan_choice choice;
    struct dnn_rules rules = dnn_rules_of(cuda, &plan->call);
    rules.allows_compiled = true;
    call_key(dnn, call, key);
    if (!plan_book_find(&cuda->book, key, &choice)) {
        return false;
    }
    if (dnn_engine_named(&dnn->device, &plan->graph, &rules, choice.plan, &plan->engine, why) < 0) {
        int failed = err_wrap(why, "%s", choice.plan);
        ASSERT(failed < 0);
        return false;
    }
    plan->engine.info.time_ns = choice.time_ns;
    plan->engine.info.is_from_cache = true;
    return true;
}

/* Within a limit, what was chosen without one will do if it needs no more. */
static bool choose_cached(struct cuda *cuda, struct dnn_plan *plan)
{
    char unlimited[DNN_KEY_MAX];
    struct err larger = {0};
    struct err why = {0};
    dnn_call_key(&plan->call, unlimited);
    if ((cuda->workspace_limit > 0 && take_kept(cuda, plan, unlimited, &larger)) ||
        take_kept(cuda, plan, plan->key, &why)) {
        return true;
    }
    if (why.code != ERR_NONE) {
        log_line(LOG_WARN, "plan cache: %s; the plan is chosen again", why.msg);
    }
    return false;
}

static void keep_choice(struct cuda *cuda, const struct dnn_plan *plan)
{
    char key[PLAN_CALL_MAX];
    struct plan_choice choice = {.time_ns = plan->engine.info.time_ns};
    _Static_assert(sizeof(choice.plan) == sizeof(plan->engine.info.name), "one text in two places");
    memcpy(choice.plan, plan->engine.info.name, sizeof(choice.plan));
    call_key(cuda->dnn, plan->key, key);
    if (choice.time_ns > 0) {
        plan_book_put(&cuda->book, key, &choice);
    }
}

/* Of the engines found: the first, or the fastest. The others are released. */
static int choose_among(struct cuda *cuda, struct dnn_plan *plan, struct dnn_engine *engines, int n,
                        bool is_timed, struct err *err)
{
    int best = 0;
    int status = is_timed ? time_engines(cuda, plan, engines, n, &best, err) : 0;
    for (int i = 0; i < n; i++) {
        if (status == 0 && i == best) {
            plan->engine = engines[i];
        } else {
            dnn_engine_release(&cuda->dnn->api, &engines[i]);
        }
    }
    return status;
}

/* Builds the graph and chosen engine. *ret_found is false where there is none, and *refused says why. */
static int choose(struct cuda *cuda, struct dnn_plan *plan, bool *ret_found,
                  struct dnn_refused *refused, struct err *err)
{
    struct dnn *dnn = cuda->dnn;
    struct dnn_rules rules = dnn_rules_of(cuda, &plan->call);
    struct dnn_engine engines[ENGINES_TIMED];
    *ret_found = !dnn_sums_vary(&plan->call) || dnn->allows_nondeterministic;
    if (!*ret_found) {
        refused->n_any_order++;
        return 0;
    }
    if (cuda_is_tuned(cuda) && choose_cached(cuda, plan)) {
        return 0;
    }
    bool is_timed = cuda_may_time(cuda);
    rules.allows_compiled = is_timed && dnn->allows_compiled;
    int n_max = is_timed ? ENGINES_TIMED : 1;
    int n = dnn_engines_find(&dnn->device, &plan->graph, &rules, n_max, engines, refused);
    if (n == 0 && !rules.allows_compiled && dnn->device.handle) {
        rules.allows_compiled = true;
        n = dnn_engines_find(&dnn->device, &plan->graph, &rules, n_max, engines, refused);
    }
    if (n == 0) {
        *ret_found = false;
        return 0;
    }
    if (choose_among(cuda, plan, engines, n, is_timed, err) < 0) {
        return -1;
    }
    keep_choice(cuda, plan);
    return 0;
}

/* With cuDNN's own += if an engine has it, otherwise the result is computed in the workspace and added. False: no
   plan. */
static int choose_engine(struct cuda *cuda, struct dnn_plan *plan, bool *ret_found,
                         struct dnn_refused *refused, struct err *err)
{
    struct dnn *dnn = cuda->dnn;
    if (dnn_graph_make(&plan->graph, &dnn->api, dnn->device.handle, &plan->call, err) < 0 ||
        choose(cuda, plan, ret_found, refused, err) < 0) {
        return -1;
    }
    if (*ret_found || !plan->call.is_added) {
        return 0;
    }
    dnn_graph_release(&plan->graph);
    plan->call.is_aside = true;
    return dnn_graph_make(&plan->graph, &dnn->api, dnn->device.handle, &plan->call, err) < 0
               ? -1
               : choose(cuda, plan, ret_found, refused, err);
}

/* ---- a convolution that is a product of matrices ---- */

static bool is_product(const struct dnn_call *call)
{
    const struct conv_geom *g = &call->geom;
    bool is_plain =
        call->id == K_CONV_FWD || call->id == K_CONV_BWD_DATA || call->id == K_CONV_BWD_WEIGHT;
    return is_plain && g->r == 1 && g->s == 1 && g->stride_h == 1 && g->stride_w == 1 &&
           g->pad_h == 0 && g->pad_w == 0 && g->groups == 1;
}

/* Pixels are rows and channels columns, as images are stored. */
static int prepare_product(struct cuda *cuda, struct dnn_plan *plan, struct err *err)
{
    const struct dnn_call *call = &plan->call;
    const struct conv_geom *g = &call->geom;
    plan->matmul = (struct kernel_args){
        .dtype = call->dtype, .has_bias = call->has_bias, .accumulate = call->is_added ? 1U : 0U};
    plan->matmul.id = call->id == K_CONV_FWD        ? K_LINEAR_FWD
                      : call->id == K_CONV_BWD_DATA ? K_LINEAR_BWD_DATA
                                                    : K_LINEAR_BWD_WEIGHT;
    plan->matmul.geom.linear =
        (struct linear_geom){.n = g->n * g->p * g->q, .c = g->c, .k = g->k, .n_parts = 1};
    return lt_prepare(cuda, &plan->matmul, err);
}

/* By time; untimed, cuBLASLt where there are no tensor cores: cuDNN then transposes the images there and back. */
static bool prefers_product(const struct dnn_plan *plan, bool has_engine)
{
    int64_t product_ns = lt_plan_info(&plan->matmul).time_ns;
    int64_t engine_ns = plan->engine.info.time_ns;
    bool is_timed = product_ns > 0 && engine_ns > 0;
    bool is_exact = plan->call.dtype == DT_F32 && !plan->call.has_tf32;
    return !has_engine || (is_timed ? product_ns < engine_ns : is_exact);
}

int dnn_choose(struct cuda *cuda, struct dnn_plan *plan, struct err *err)
{
    bool has_engine = false;
    struct dnn_refused refused = {0};
    if (choose_engine(cuda, plan, &has_engine, &refused, err) < 0) {
        return -1;
    }
    if (cuda->lt && is_product(&plan->call)) {
        if (prepare_product(cuda, plan, err) < 0) {
            dnn_engine_release(&cuda->dnn->api, &plan->engine);
            return -1;
        }
        plan->is_matmul = prefers_product(plan, has_engine);
        if (!plan->is_matmul) {
            lt_unprepare(cuda, &plan->matmul);
        }
    } else if (!has_engine) {
        const struct dnn_rules rules = dnn_rules_of(cuda, &plan->call);
        char why[DNN_REFUSED_TEXT_MAX];
        dnn_refused_text(&refused, &rules, why);
        return err_set(err, ERR_WORKLOAD, "no engine for it: %s", why);
    }
    return 0;
}
