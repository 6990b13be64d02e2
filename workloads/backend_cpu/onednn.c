/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN behind one file: float convolutions, forward and backward. Where the library wants another tensor layout, an operand
   is reordered into the workspace, so nothing outside this file depends on it. C API of version 2 (Debian 12 has 2.6). In a
   build without it (REPERF_HAVE_DNNL is not set) asking for it is an error. */
#include "base/base.h"

#include "backend_cpu/cpu.h"

#include "base/arena.h"
#include "core/mlog.h"

#ifdef REPERF_HAVE_DNNL

#include <oneapi/dnnl/dnnl.h>

#define N_OPERANDS  3
#define N_IN        2
#define ALIGN_BYTES 64

struct onednn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

/* One operand of a convolution: where the graph has it and, if the library wants another layout, where its copy lies. */
struct operand {
    dnnl_memory_t given;
    dnnl_memory_t wanted;     /* NULL: the given layout is used */
    dnnl_primitive_t reorder; /* given -> wanted, for the result wanted -> given */
    int64_t offset_bytes;     /* of wanted in the workspace */
};

struct onednn_call {
    dnnl_primitive_t conv;
    struct operand operands[N_OPERANDS]; /* in[0], in[1], out[0] */
    dnnl_memory_t bias;                  /* or NULL */
    dnnl_memory_t scratchpad;
    int64_t scratchpad_offset_bytes;
};

/* How oneDNN names the operands of each kernel. */
static const struct dnnl_role {
    int arg;
    dnnl_query_t query;
} ROLES[][N_OPERANDS] = {
    [K_CONV_FWD] = {{DNNL_ARG_SRC, dnnl_query_src_md},
                    {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                    {DNNL_ARG_DST, dnnl_query_dst_md}},
    [K_CONV_BWD_DATA] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                         {DNNL_ARG_WEIGHTS, dnnl_query_weights_md},
                         {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md}},
    [K_CONV_BWD_WEIGHT] = {{DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md},
                           {DNNL_ARG_SRC, dnnl_query_src_md},
                           {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md}},
};

bool cpu_has_onednn(void)
{
    return true;
}

static int refused(const char *what, dnnl_status_t status, struct err *err)
{
    return err_set(err, ERR_WORKLOAD, "oneDNN: %s: status %d", what, (int)status);
}

int onednn_init(void **ret_engine, struct err *err)
{
    struct onednn *dnn = xcalloc(1, sizeof(*dnn));
    dnnl_status_t status = dnnl_engine_create(&dnn->engine, dnnl_cpu, 0);
    if (status == dnnl_success) {
        status = dnnl_stream_create(&dnn->stream, dnn->engine, dnnl_stream_default_flags);
    }
    if (status != dnnl_success) {
        onednn_release(dnn);
        return refused("engine", status, err);
    }
    *ret_engine = dnn;
    return 0;
}

void onednn_release(void *engine)
{
    struct onednn *dnn = engine;
    if (dnn->stream) {
        dnnl_stream_destroy(dnn->stream);
    }
    if (dnn->engine) {
        dnnl_engine_destroy(dnn->engine);
    }
    free(dnn);
}

/* ---- descriptors ---- */

/* Memory descriptors of x, w and y, the layout given or left to the library. */
struct trio {
    dnnl_memory_desc_t x, w, y;
};

static dnnl_status_t describe(const struct conv_geom *g, bool is_given, struct trio *ret_trio)
{
    const dnnl_dims_t x = {g->n, g->c, g->h, g->w};
    const dnnl_dims_t y = {g->n, g->k, g->p, g->q};
    const dnnl_dims_t w = {g->k, g->c, g->r, g->s};
    const dnnl_dims_t wg = {g->groups, g->k / g->groups, g->c / g->groups, g->r, g->s};
    bool has_groups = g->groups > 1;
    dnnl_format_tag_t image = is_given ? dnnl_abcd : dnnl_format_tag_any;
    dnnl_format_tag_t filter = !is_given    ? dnnl_format_tag_any
                               : has_groups ? dnnl_abcde
                                            : dnnl_abcd;
    dnnl_status_t status = dnnl_memory_desc_init_by_tag(&ret_trio->x, 4, x, dnnl_f32, image);
    if (status == dnnl_success) {
        status = dnnl_memory_desc_init_by_tag(&ret_trio->y, 4, y, dnnl_f32, image);
    }
    if (status == dnnl_success) {
        status = dnnl_memory_desc_init_by_tag(&ret_trio->w, has_groups ? 5 : 4, has_groups ? wg : w,
                                              dnnl_f32, filter);
    }
    return status;
}

static dnnl_status_t describe_conv(const struct kernel_args *args, const struct trio *any,
                                   const dnnl_memory_desc_t *bias, enum kernel_id id,
                                   dnnl_convolution_desc_t *ret_desc)
{
    const struct conv_geom *g = &args->geom.conv;
    const dnnl_dims_t strides = {g->stride_h, g->stride_w};
    const dnnl_dims_t dilates = {g->dil_h - 1, g->dil_w - 1};
    const dnnl_dims_t before = {g->pad_h, g->pad_w};
    /* What the last window reaches past the image; negative where a stride leaves a border unused. */
    const dnnl_dims_t after = {
        (g->p - 1) * g->stride_h + g->dil_h * (g->r - 1) + 1 - g->h - g->pad_h,
        (g->q - 1) * g->stride_w + g->dil_w * (g->s - 1) + 1 - g->w - g->pad_w};
    if (id == K_CONV_BWD_DATA) {
        return dnnl_dilated_convolution_backward_data_desc_init(ret_desc, dnnl_convolution_direct,
                                                                &any->x, &any->w, &any->y, strides,
                                                                dilates, before, after);
    }
    if (id == K_CONV_BWD_WEIGHT) {
        return dnnl_dilated_convolution_backward_weights_desc_init(
            ret_desc, dnnl_convolution_direct, &any->x, &any->w, NULL, &any->y, strides, dilates,
            before, after);
    }
    return dnnl_dilated_convolution_forward_desc_init(
        ret_desc, dnnl_forward_training, dnnl_convolution_direct, &any->x, &any->w, bias, &any->y,
        strides, dilates, before, after);
}

/* A convolution whose scratch memory is ours; the backward ones need the forward one as a hint. */
static dnnl_status_t plan_conv(const struct onednn *dnn, const struct kernel_args *args,
                               enum kernel_id id, dnnl_primitive_desc_t hint,
                               dnnl_primitive_desc_t *ret_plan)
{
    struct trio any;
    dnnl_memory_desc_t bias;
    dnnl_convolution_desc_t desc;
    dnnl_primitive_attr_t attr = NULL;
    const dnnl_dims_t bias_dims = {args->geom.conv.k};
    bool has_bias = id == K_CONV_FWD && args->has_bias;
    dnnl_status_t status = describe(&args->geom.conv, false, &any);
    if (status == dnnl_success && has_bias) {
        status = dnnl_memory_desc_init_by_tag(&bias, 1, bias_dims, dnnl_f32, dnnl_a);
    }
    if (status == dnnl_success) {
        status = describe_conv(args, &any, has_bias ? &bias : NULL, id, &desc);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_create(&attr);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_desc_create(ret_plan, &desc, attr, dnn->engine, hint);
    }
    if (attr) {
        dnnl_primitive_attr_destroy(attr);
    }
    return status;
}

/* ---- prepare ---- */

static int64_t reserve(int64_t *used_bytes, size_t bytes)
{
    int64_t offset = *used_bytes;
    *used_bytes += ((int64_t)bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    return offset;
}

/* from -> to; is_added: to += from. */
static dnnl_status_t make_reorder(const struct onednn *dnn, const dnnl_memory_desc_t *from,
                                  const dnnl_memory_desc_t *to, bool is_added,
                                  dnnl_primitive_t *ret_reorder)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t sum = NULL;
    dnnl_primitive_desc_t plan = NULL;
    dnnl_status_t status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success) {
        status = dnnl_post_ops_create(&sum);
    }
    if (status == dnnl_success && is_added) {
        status = dnnl_post_ops_append_sum(sum, 1.0F);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_attr_set_post_ops(attr, sum);
    }
    if (status == dnnl_success) {
        status =
            dnnl_reorder_primitive_desc_create(&plan, from, dnn->engine, to, dnn->engine, attr);
    }
    if (status == dnnl_success) {
        status = dnnl_primitive_create(ret_reorder, plan);
    }
    dnnl_primitive_desc_destroy(plan);
    dnnl_post_ops_destroy(sum);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

struct operand_form {
    const dnnl_memory_desc_t *given, *wanted;
    bool is_result, is_added;
};
static dnnl_status_t make_operand(const struct onednn *dnn, const struct operand_form *form,
                                  struct operand *operand, int64_t *used_bytes)
{
    dnnl_status_t status = dnnl_memory_create(&operand->given, form->given, dnn->engine, NULL);
    if (status != dnnl_success ||
        (dnnl_memory_desc_equal(form->given, form->wanted) && !form->is_added)) {
        return status;
    }
    operand->offset_bytes = reserve(used_bytes, dnnl_memory_desc_get_size(form->wanted));
    status = dnnl_memory_create(&operand->wanted, form->wanted, dnn->engine, NULL);
    if (status != dnnl_success) {
        return status;
    }
    return form->is_result
               ? make_reorder(dnn, form->wanted, form->given, form->is_added, &operand->reorder)
               : make_reorder(dnn, form->given, form->wanted, false, &operand->reorder);
}

static dnnl_status_t make_operands(const struct onednn *dnn, const struct kernel_args *args,
                                   dnnl_primitive_desc_t plan, struct onednn_call *call,
                                   int64_t *used_bytes)
{
    struct trio given;
    dnnl_status_t status = describe(&args->geom.conv, true, &given);
    for (int i = 0; i < N_OPERANDS && status == dnnl_success; i++) {
        const struct dnnl_role *role = &ROLES[args->id][i];
        bool is_filter = role->arg == DNNL_ARG_WEIGHTS || role->arg == DNNL_ARG_DIFF_WEIGHTS;
        bool is_input = role->arg == DNNL_ARG_SRC || role->arg == DNNL_ARG_DIFF_SRC;
        bool is_result = i == N_IN;
        const struct operand_form form = {.given = is_filter  ? &given.w
                                                   : is_input ? &given.x
                                                              : &given.y,
                                          .wanted =
                                              dnnl_primitive_desc_query_md(plan, role->query, 0),
                                          .is_result = is_result,
                                          .is_added = is_result && (args->accumulate & 1U) != 0};
        status = make_operand(dnn, &form, &call->operands[i], used_bytes);
    }
    return status;
}

static dnnl_status_t make_call(const struct onednn *dnn, const struct kernel_args *args,
                               dnnl_primitive_desc_t plan, struct onednn_call *call,
                               int64_t *used_bytes)
{
    dnnl_status_t status = make_operands(dnn, args, plan, call, used_bytes);
    if (status == dnnl_success) {
        status = dnnl_primitive_create(&call->conv, plan);
    }
    if (status == dnnl_success && args->id == K_CONV_FWD && args->has_bias) {
        status = dnnl_memory_create(&call->bias,
                                    dnnl_primitive_desc_query_md(plan, dnnl_query_weights_md, 1),
                                    dnn->engine, NULL);
    }
    if (status == dnnl_success) {
        const dnnl_memory_desc_t *md =
            dnnl_primitive_desc_query_md(plan, dnnl_query_scratchpad_md, 0);
        call->scratchpad_offset_bytes = reserve(used_bytes, dnnl_memory_desc_get_size(md));
        status = dnnl_memory_create(&call->scratchpad, md, dnn->engine, NULL);
    }
    return status;
}

int onednn_prepare(void *engine, struct kernel_args *args, struct err *err)
{
    const struct onednn *dnn = engine;
    if (args->id != K_CONV_FWD && args->id != K_CONV_BWD_DATA && args->id != K_CONV_BWD_WEIGHT) {
        return 0;
    }
    dnnl_primitive_desc_t forward = NULL;
    dnnl_primitive_desc_t plan = NULL;
    int64_t used_bytes = 0;
    struct onednn_call *call = xcalloc(1, sizeof(*call));
    args->prepared = call;
    dnnl_status_t status = plan_conv(dnn, args, K_CONV_FWD, NULL, &forward);
    if (status == dnnl_success && args->id != K_CONV_FWD) {
        status = plan_conv(dnn, args, args->id, forward, &plan);
    }
    if (status == dnnl_success) {
        status = make_call(dnn, args, plan ? plan : forward, call, &used_bytes);
    }
    dnnl_primitive_desc_destroy(plan);
    dnnl_primitive_desc_destroy(forward);
    if (status != dnnl_success) {
        onednn_unprepare(args);
        return refused("convolution", status, err);
    }
    args->workspace_bytes = used_bytes;
    return 0;
}

void onednn_unprepare(struct kernel_args *args)
{
    struct onednn_call *call = args->prepared;
    for (int i = 0; i < N_OPERANDS; i++) {
        dnnl_primitive_destroy(call->operands[i].reorder);
        dnnl_memory_destroy(call->operands[i].given);
        dnnl_memory_destroy(call->operands[i].wanted);
    }
    dnnl_memory_destroy(call->bias);
    dnnl_memory_destroy(call->scratchpad);
    dnnl_primitive_destroy(call->conv);
    free(call);
    args->prepared = NULL;
}

/* ---- run ---- */

static void must(dnnl_status_t status, const char *where)
{
    if (status != dnnl_success) {
        char what[64];
        snprintf(what, sizeof(what), "oneDNN: status %d", (int)status);
        fatal_stop(0, "cpu", where, what); /* a process of this backend is rank 0 of 1 */
    }
}

static void reorder(const struct onednn *dnn, const struct operand *operand, bool is_result)
{
    const dnnl_exec_arg_t args[] = {
        {DNNL_ARG_FROM, is_result ? operand->wanted : operand->given},
        {DNNL_ARG_TO, is_result ? operand->given : operand->wanted},
    };
    must(dnnl_primitive_execute(operand->reorder, dnn->stream, 2, args), FATAL_WHERE);
}

static void bind(const struct onednn_call *call, const struct kernel_args *args)
{
    char *workspace = args->workspace;
    for (int i = 0; i < N_OPERANDS; i++) {
        const struct operand *operand = &call->operands[i];
        /* The library takes every handle without const; it only reads the inputs. */
        void *ptr = i < N_IN ? (void *)(uintptr_t)args->in[i] : args->out[0];
        must(dnnl_memory_set_data_handle(operand->given, ptr), FATAL_WHERE);
        if (operand->wanted) {
            must(dnnl_memory_set_data_handle(operand->wanted, workspace + operand->offset_bytes),
                 FATAL_WHERE);
        }
    }
    if (call->bias) {
        must(dnnl_memory_set_data_handle(call->bias, (void *)(uintptr_t)args->in[2]), FATAL_WHERE);
    }
    must(dnnl_memory_set_data_handle(call->scratchpad, workspace + call->scratchpad_offset_bytes),
         FATAL_WHERE);
}

void onednn_run(void *engine, const struct kernel_args *args)
{
    const struct onednn *dnn = engine;
    const struct onednn_call *call = args->prepared;
    dnnl_exec_arg_t list[N_OPERANDS + 2];
    int n = 0;
    bind(call, args);
    for (int i = 0; i < N_OPERANDS; i++) {
        const struct operand *operand = &call->operands[i];
        if (operand->wanted && i < N_IN) {
            reorder(dnn, operand, false);
        }
        list[n++] = (dnnl_exec_arg_t){ROLES[args->id][i].arg,
                                      operand->wanted ? operand->wanted : operand->given};
    }
    if (call->bias) {
        list[n++] = (dnnl_exec_arg_t){DNNL_ARG_BIAS, call->bias};
    }
    list[n++] = (dnnl_exec_arg_t){DNNL_ARG_SCRATCHPAD, call->scratchpad};
    must(dnnl_primitive_execute(call->conv, dnn->stream, n, list), FATAL_WHERE);
    if (call->operands[N_IN].wanted) {
        reorder(dnn, &call->operands[N_IN], true);
    }
    must(dnnl_stream_wait(dnn->stream), FATAL_WHERE);
}

#else

bool cpu_has_onednn(void)
{
    return false;
}

int onednn_init(void **ret_engine UNUSED, struct err *err)
{
    return err_set(err, ERR_USAGE, "this build has no oneDNN");
}

void onednn_release(void *engine UNUSED)
{
}

int onednn_prepare(void *engine UNUSED, struct kernel_args *args UNUSED, struct err *err UNUSED)
{
    return 0;
}

void onednn_unprepare(struct kernel_args *args UNUSED)
{
}

void onednn_run(void *engine UNUSED, const struct kernel_args *args UNUSED)
{
    ASSERT(false);
}

#endif
