/* SPDX-License-Identifier: Apache-2.0 */
/* From ops to kernel calls: the forward calls in the order of the ops, then the backward calls in the opposite order.
   Where a value has several consumers, the first of them in backward order writes (=) its gradient and the others add
   to it (+=), so no gradient is ever cleared. */
#include "base/base.h"

#include "graph/internal.h"

_Static_assert((int)OP_IN_MAX <= (int)KERNEL_IN_MAX, "forward hands an op's inputs to its kernel");
_Static_assert((int)CONCAT_IN_MAX <= (int)OP_IN_MAX, "an op holds what is joined");

static struct call *new_call(struct graph *graph, const struct op *op, enum kernel_id id)
{
    struct call *call = graph_add_call(graph);
    call->args.id = id;
    call->args.dtype = graph->dtype;
    call->args.geom = op->geom;
    call->args.has_bias = (op->kind == OP_CONV || op->kind == OP_LINEAR) && op->in[2] != NO_VALUE;
    call->op = (int)(op - graph->ops);
    return call;
}

static void set_in(struct call *call, int a, int b, int c)
{
    call->in[0] = a;
    call->in[1] = b;
    call->in[2] = c;
}

/* ---- gradients ---- */

/* Makes out[idx] of the call the gradient of value x: written if it is the first contribution, else added to. Leaves it
   absent if that gradient is not needed. */
static void set_grad(struct graph *graph, struct call *call, int idx, int x)
{
    if (x == NO_VALUE || !graph->values[x].needs_grad) {
        return;
    }
    if (graph->values[x].grad != NO_VALUE) {
        call->out[idx] = graph->values[x].grad;
        call->args.accumulate |= 1U << idx;
        call->reads_out |= 1U << idx;
        call->inplace[idx] = 0;
        return;
    }
    const struct value *value = &graph->values[x];
    bool is_param = value->kind == VALUE_PARAM;
    struct value grad = {
        .name = is_param ? arena_printf(graph->arena, "grad.%s", value->name) : NULL,
        .shape = value->shape,
        .dtype = value->dtype,
        .role = value->role,
        .kind = is_param ? VALUE_GRAD_PARAM : VALUE_GRAD_ACT,
    };
    int id = graph_add_value(graph, grad);
    if (id != NO_VALUE) {
        graph->values[x].grad = id;
        call->out[idx] = id;
    }
}

static bool wants_grad(const struct graph *graph, int x)
{
    return x != NO_VALUE && graph->values[x].needs_grad;
}

/* ---- forward ---- */

static void forward_bn(struct graph *graph, const struct op *op)
{
    if (graph->is_inference) {
        struct call *apply = new_call(graph, op, K_BN_APPLY);
        set_in(apply, op->in[0], op->in[1], op->in[2]);
        apply->in[APPLY_MEAN_IN] = op->out[1];
        apply->in[APPLY_RSTD_IN] = op->out[2];
        apply->out[APPLY_Y_OUT] = op->out[0];
        apply->inplace[APPLY_Y_OUT] = OPERAND_BIT(APPLY_X_IN);
        return;
    }
    struct call *call = new_call(graph, op, K_BN_FWD);
    set_in(call, op->in[0], op->in[1], op->in[2]);
    call->out[NORM_Y_OUT] = op->out[0];
    call->out[NORM_MEAN_OUT] = op->out[1];
    call->out[NORM_RSTD_OUT] = op->out[2];
    call->out[NORM_RUNNING_MEAN_OUT] = op->in[3];
    call->out[NORM_RUNNING_VAR_OUT] = op->in[4];
    call->reads_out = OPERAND_BIT(NORM_RUNNING_MEAN_OUT) | OPERAND_BIT(NORM_RUNNING_VAR_OUT);
    call->inplace[NORM_Y_OUT] = OPERAND_BIT(NORM_X_IN);
}

/* The graph's first loss writes the scalar, the others add to it. */
static void add_to_first_loss(const struct graph *graph, struct call *call)
{
    for (int i = 0; i < graph->n_calls - 1; i++) {
        enum kernel_id id = graph->calls[i].args.id;
        if (id == K_LOSS_FWD || id == K_ROW_LOSS) {
            call->args.accumulate |= 1U << 0;
            call->reads_out |= 1U << 0;
        }
    }
}

static void forward(struct graph *graph, const struct op *op)
{
    static const enum kernel_id ids[OP_KIND_COUNT] = {
        [OP_CONV] = K_CONV_FWD,
        [OP_RELU] = K_RELU_FWD,
        [OP_ADD] = K_ADD_FWD,
        [OP_MAXPOOL] = K_MAXPOOL_FWD,
        [OP_AVGPOOL] = K_AVGPOOL_FWD,
        [OP_DROPOUT] = K_DROPOUT_FWD,
        [OP_UPSAMPLE] = K_UPSAMPLE_FWD,
        [OP_CONCAT] = K_CONCAT_FWD,
        [OP_LINEAR] = K_LINEAR_FWD,
        [OP_LOSS] = K_LOSS_FWD,
        [OP_EMBED] = K_EMBED_FWD,
        [OP_LAYER_NORM] = K_LAYER_NORM_FWD,
        [OP_GELU] = K_GELU_FWD,
        [OP_TANH] = K_TANH_FWD,
        [OP_ATTENTION] = K_ATTENTION_FWD,
        [OP_GATHER] = K_GATHER_FWD,
        [OP_ROW_LOSS] = K_ROW_LOSS,
    };
    if (op->kind == OP_BN) {
        forward_bn(graph, op);
        return;
    }
    struct call *call = new_call(graph, op, ids[op->kind]);
    memcpy(call->in, op->in, sizeof(op->in));
    call->out[0] = op->out[0];
    call->out[1] = op->out[1];
    call->out[2] = op->out[2];
    if (op->kind == OP_RELU || op->kind == OP_DROPOUT || op->kind == OP_LAYER_NORM ||
        op->kind == OP_GELU || op->kind == OP_TANH) {
        call->inplace[0] = 1U << 0;
    } else if (op->kind == OP_ADD) {
        call->inplace[0] = 1U << 0 | 1U << 1;
    } else if (op->kind == OP_LOSS) {
        call->inplace[1] = 1U << 0;
        add_to_first_loss(graph, call);
    } else if (op->kind == OP_ROW_LOSS) {
        call->inplace[1] = 1U << 0;
        add_to_first_loss(graph, call);
        set_grad(graph, call, 1, op->in[0]);
    }
}

/* ---- backward ---- */

/* dx from (dy, w) and dw, dbias from (dy, x): convolution and linear alike. A matrix of several parameters names them all. */
static void backward_weighted(struct graph *graph, const struct op *op, int dy,
                              const enum kernel_id ids[2])
{
    struct call *call = new_call(graph, op, ids[1]);
    set_in(call, dy, op->in[0], NO_VALUE);
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        set_grad(graph, call, i, op->in[1 + i]);
    }
    if (wants_grad(graph, op->in[0])) {
        call = new_call(graph, op, ids[0]);
        set_in(call, dy, op->in[1], op->in[3]);
        call->in[3] = op->in[4];
        set_grad(graph, call, 0, op->in[0]);
    }
}

static void set_norm_bwd(struct graph *graph, struct call *call, const struct op *op, int dy)
{
    set_in(call, dy, op->in[0], op->in[1]);
    call->in[NORM_BWD_MEAN_IN] = op->out[1];
    call->in[NORM_BWD_RSTD_IN] = op->out[2];
    call->inplace[NORM_BWD_DX_OUT] = OPERAND_BIT(NORM_BWD_DY_IN);
    set_grad(graph, call, NORM_BWD_DX_OUT, op->in[0]);
    set_grad(graph, call, NORM_BWD_DGAMMA_OUT, op->in[1]);
    set_grad(graph, call, NORM_BWD_DBETA_OUT, op->in[2]);
}

static void backward_bn(struct graph *graph, const struct op *op, int dy)
{
    struct call *call = new_call(graph, op, K_BN_BWD);
    set_norm_bwd(graph, call, op, dy);
    call->in[NORM_BWD_Y_IN] = op->geom.bn.has_relu ? op->out[0] : NO_VALUE;
}

static void backward_elem(struct graph *graph, const struct op *op, int dy, enum kernel_id id)
{
    int n_in = op->kind == OP_ADD ? 2 : 1;
    for (int i = 0; i < n_in; i++) {
        if (wants_grad(graph, op->in[i])) {
            struct call *call = new_call(graph, op, id);
            set_in(call, dy, op->geom.elem.has_relu ? op->out[0] : NO_VALUE, NO_VALUE);
            call->inplace[0] = 1U << 0;
            set_grad(graph, call, 0, op->in[i]);
        }
    }
}

/* From (dy, two more inputs) to the gradients of three. */
static void backward_embed(struct graph *graph, const struct op *op, int dy)
{
    struct call *call = new_call(graph, op, K_EMBED_BWD);
    set_in(call, dy, op->in[0], op->in[1]);
    for (int i = 0; i < 3; i++) {
        set_grad(graph, call, i, op->in[2 + i]);
    }
}

static void backward_layer_norm(struct graph *graph, const struct op *op, int dy)
{
    set_norm_bwd(graph, new_call(graph, op, K_LAYER_NORM_BWD), op, dy);
}

static void backward_attention(struct graph *graph, const struct op *op, int dy)
{
    if (wants_grad(graph, op->in[0])) {
        struct call *call = new_call(graph, op, K_ATTENTION_BWD);
        set_in(call, dy, op->in[0], op->in[1]);
        call->in[ATTEND_BWD_CONTEXT_IN] = op->out[0];
        call->in[ATTEND_BWD_LSE_IN] = op->out[1];
        call->in[ATTEND_BWD_STEP_IN] = op->in[2];
        set_grad(graph, call, 0, op->in[0]);
    }
}

/* One call an input. An input that occurs twice gets both parts. */
static void backward_concat(struct graph *graph, const struct op *op, int dy)
{
    for (int i = 0; i < CONCAT_IN_MAX; i++) {
        if (wants_grad(graph, op->in[i])) {
            struct call *call = new_call(graph, op, K_CONCAT_BWD);
            call->args.geom.concat.part = i;
            set_in(call, dy, NO_VALUE, NO_VALUE);
            set_grad(graph, call, 0, op->in[i]);
        }
    }
}

/* One call from (dy, extra) to dx. */
static void backward_one(struct graph *graph, const struct op *op, int dy, int extra,
                         enum kernel_id id)
{
    if (wants_grad(graph, op->in[0])) {
        struct call *call = new_call(graph, op, id);
        set_in(call, dy, extra, NO_VALUE);
        bool may = op->kind == OP_LOSS || op->kind == OP_DROPOUT || op->kind == OP_GELU ||
                   op->kind == OP_TANH;
        call->inplace[0] = may ? 1U << 0 : 0;
        set_grad(graph, call, 0, op->in[0]);
    }
}

static void backward(struct graph *graph, const struct op *op)
{
    static const enum kernel_id conv[2] = {K_CONV_BWD_DATA, K_CONV_BWD_WEIGHT};
    static const enum kernel_id linear[2] = {K_LINEAR_BWD_DATA, K_LINEAR_BWD_WEIGHT};
    if (op->kind == OP_LOSS) {
        backward_one(graph, op, op->out[1], op->in[1], K_LOSS_BWD);
        return;
    }
    int dy = graph->values[op->out[0]].grad;
    if (dy == NO_VALUE) {
        return; /* the loss does not depend on this op, or the op has computed its gradient already */
    }
    switch (op->kind) {
    case OP_CONV:
        backward_weighted(graph, op, dy, conv);
        break;
    case OP_LINEAR:
        backward_weighted(graph, op, dy, linear);
        break;
    case OP_BN:
        backward_bn(graph, op, dy);
        break;
    case OP_RELU:
        backward_elem(graph, op, dy, K_RELU_BWD);
        break;
    case OP_ADD:
        backward_elem(graph, op, dy, K_ADD_BWD);
        break;
    case OP_MAXPOOL:
        backward_one(graph, op, dy, op->out[1], K_MAXPOOL_BWD);
        break;
    case OP_AVGPOOL:
        backward_one(graph, op, dy, NO_VALUE, K_AVGPOOL_BWD);
        break;
    case OP_DROPOUT:
        backward_one(graph, op, dy, op->in[1], K_DROPOUT_BWD);
        break;
    case OP_UPSAMPLE:
        backward_one(graph, op, dy, NO_VALUE, K_UPSAMPLE_BWD);
        break;
    case OP_CONCAT:
        backward_concat(graph, op, dy);
        break;
    case OP_EMBED:
        backward_embed(graph, op, dy);
        break;
    case OP_LAYER_NORM:
        backward_layer_norm(graph, op, dy);
        break;
    case OP_GELU:
        backward_one(graph, op, dy, op->in[0], K_GELU_BWD);
        break;
    case OP_TANH:
        backward_one(graph, op, dy, op->out[0], K_TANH_BWD);
        break;
    case OP_ATTENTION:
        backward_attention(graph, op, dy);
        break;
    case OP_GATHER:
        backward_one(graph, op, dy, op->in[1], K_GATHER_BWD);
        break;
    case OP_LOSS:
    case OP_ROW_LOSS:
    case OP_KIND_COUNT:
        ASSERT(false);
    }
}

/* ---- the order in which gradients become complete ---- */

/* In the order of their creation. */
static void list_params(struct graph *graph)
{
    graph->n_params = 0;
    graph->params = arena_array(graph->arena, int, (size_t)graph->n_values + 1);
    graph->grad_order = arena_array(graph->arena, int, (size_t)graph->n_values + 1);
    graph->grad_ready = arena_array(graph->arena, int, (size_t)graph->n_values + 1);
    for (int i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind == VALUE_PARAM) {
            graph->grad_order[graph->n_params] = i;
            graph->params[graph->n_params++] = i;
        }
    }
}

void graph_order_gradients(struct graph *graph)
{
    list_params(graph);
    int *last_write = arena_array(graph->arena, int, (size_t)graph->n_values);
    for (int i = 0; i < graph->n_calls; i++) {
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            if (graph->calls[i].out[j] != NO_VALUE) {
                last_write[graph->calls[i].out[j]] = i;
            }
        }
    }
    for (int i = 0; i < graph->n_params; i++) {
        int param = graph->params[i];
        if (graph->values[param].grad == NO_VALUE) {
            graph_fail(graph, ERR_INTERNAL, "the loss does not depend on parameter %s",
                       graph->values[param].name);
            return;
        }
        int ready = last_write[graph->values[param].grad];
        int at = i;
        for (; at > 0 && graph->grad_ready[at - 1] > ready; at--) {
            graph->grad_ready[at] = graph->grad_ready[at - 1];
            graph->grad_order[at] = graph->grad_order[at - 1];
        }
        graph->grad_ready[at] = ready;
        graph->grad_order[at] = param;
    }
}

/* All kernels but two read a row of as many elements as its shape says. */
static void check_roles(struct graph *graph)
{
    for (int i = 0; i < graph->n_ops; i++) {
        const struct op *op = &graph->ops[i];
        for (int k = 0; k < OP_IN_MAX && graph->err.code == ERR_NONE; k++) {
            if (op->in[k] != NO_VALUE && graph->values[op->in[k]].role == ROLE_ROWS &&
                op->kind != OP_ROW_LOSS) {
                graph_fail(graph, ERR_INTERNAL, "%s reads rows that are rounded up",
                           op_kind_name(op->kind));
            }
        }
    }
}

/* ---- forward only ---- */

static bool makes_needed(const struct op *op, const bool *is_needed)
{
    for (int i = 0; i < OP_OUT_MAX; i++) {
        if (op->out[i] != NO_VALUE && is_needed[op->out[i]]) {
            return true;
        }
    }
    return false;
}

/* What the outputs other than the loss need: a head used only in training does not run. */
static void lower_inference(struct graph *graph)
{
    bool *is_needed = arena_array(graph->arena, bool, (size_t)graph->n_values + 1);
    bool *is_run = arena_array(graph->arena, bool, (size_t)graph->n_ops + 1);
    struct value *loss = &graph->values[graph->loss];
    loss->name = NULL;
    loss->is_kept = false;
    for (int i = 0; i < graph->n_values; i++) {
        is_needed[i] = graph->values[i].kind == VALUE_ACT && graph->values[i].is_kept;
    }
    for (int i = graph->n_ops - 1; i >= 0; i--) {
        const struct op *op = &graph->ops[i];
        is_run[i] = makes_needed(op, is_needed);
        for (int k = 0; k < OP_IN_MAX && is_run[i]; k++) {
            if (op->in[k] != NO_VALUE) {
                is_needed[op->in[k]] = true;
            }
        }
    }
    for (int i = 0; i < graph->n_ops; i++) {
        if (is_run[i]) {
            forward(graph, &graph->ops[i]);
        }
    }
    if (graph->n_calls == 0) {
        graph_fail(graph, ERR_INTERNAL, "the network has no output but its loss");
    }
    list_params(graph);
}

void graph_lower(struct graph *graph)
{
    check_roles(graph);
    if (graph->is_inference) {
        lower_inference(graph);
        return;
    }
    for (int i = 0; i < graph->n_ops; i++) {
        forward(graph, &graph->ops[i]);
    }
    int n_forward = graph->n_calls;
    graph->values[graph->loss].is_kept = true;
    for (int i = graph->n_ops - 1; i >= 0; i--) {
        backward(graph, &graph->ops[i]);
    }
    for (int i = n_forward; i < graph->n_calls; i++) {
        graph->calls[i].is_backward = true;
    }
    if (graph->err.code == ERR_NONE) {
        graph_order_gradients(graph);
    }
}
