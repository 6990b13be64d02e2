/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of convolution and batch norm: what a library's convolutions do besides the product. */
#include "base/base.h"

#include "graph/fuse_internal.h"

static int conv_call(const struct graph *graph, enum kernel_id id, int op)
{
    return graph->ops[op].kind == OP_CONV ? fuse_call_of(graph, id, op) : NO_CALL;
}

/* ---- statistics ---- */

/* The batch norm that reads the convolution's result: K_BN_FWD or K_BN_ADD_FWD, the only one. */
static int norm_behind(const struct graph *graph, int y)
{
    int bn = fuse_call_with(graph, K_BN_FWD, NORM_X_IN, y);
    int bn_add = fuse_call_with(graph, K_BN_ADD_FWD, NORM_X_IN, y);
    return bn == NO_CALL ? bn_add : bn_add == NO_CALL ? bn : NO_CALL;
}

bool fuse_conv_stats(struct graph *graph, int op, bool do_it)
{
    int at = conv_call(graph, K_CONV_FWD, op);
    if (at == NO_CALL || graph->calls[at].args.has_bias) {
        return false;
    }
    int y = graph->calls[at].out[FWD_Y_OUT];
    int bn_at = norm_behind(graph, y);
    if (bn_at == NO_CALL || !do_it) {
        return bn_at != NO_CALL;
    }
    const struct call bn = graph->calls[bn_at];
    enum dtype stat = graph->types.stat;
    int sums[2] = {fuse_channel_value(graph, y, stat), fuse_channel_value(graph, y, stat)};
    struct call *conv = &graph->calls[at];
    conv->args.id = K_CONV_STATS_FWD;
    conv->out[FWD_SUM_OUT] = sums[0];
    conv->out[FWD_SQUARES_OUT] = sums[1];
    struct call apply = fuse_call(K_BN_APPLY, &bn);
    apply.in[APPLY_X_IN] = y;
    apply.in[APPLY_GAMMA_IN] = bn.in[NORM_GAMMA_IN];
    apply.in[APPLY_BETA_IN] = bn.in[NORM_BETA_IN];
    apply.in[APPLY_MEAN_IN] = bn.out[NORM_MEAN_OUT];
    apply.in[APPLY_RSTD_IN] = bn.out[NORM_RSTD_OUT];
    apply.in[APPLY_A_IN] = bn.in[NORM_A_IN];
    apply.out[APPLY_Y_OUT] = bn.out[NORM_Y_OUT];
    apply.inplace[APPLY_Y_OUT] = OPERAND_BIT(APPLY_X_IN) | OPERAND_BIT(APPLY_A_IN);
    graph->calls[bn_at] = apply;
    struct call finalize = fuse_call(K_BN_FINALIZE, &bn);
    finalize.in[FINALIZE_SUM_IN] = sums[0];
    finalize.in[FINALIZE_SQUARES_IN] = sums[1];
    finalize.in[FINALIZE_GAMMA_IN] = bn.in[NORM_GAMMA_IN];
    finalize.in[FINALIZE_BETA_IN] = bn.in[NORM_BETA_IN];
    fuse_take_out(&finalize, FINALIZE_MEAN_OUT, &bn, NORM_MEAN_OUT);
    fuse_take_out(&finalize, FINALIZE_RSTD_OUT, &bn, NORM_RSTD_OUT);
    fuse_take_out(&finalize, FINALIZE_RUNNING_MEAN_OUT, &bn, NORM_RUNNING_MEAN_OUT);
    fuse_take_out(&finalize, FINALIZE_RUNNING_VAR_OUT, &bn, NORM_RUNNING_VAR_OUT);
    fuse_insert(graph, at + 1, &finalize);
    return true;
}

/* ---- normalised inputs ---- */

struct norm_conv_calls {
    int conv_fwd, apply, finalize;
    int conv_bwd_weight; /* NO_CALL: its gradient is not needed */
    int bn_bwd;          /* NO_CALL: it does not read the normalised value */
};

static bool find_norm_conv(const struct graph *graph, int op, struct norm_conv_calls *ret_calls)
{
    struct norm_conv_calls at = {.conv_fwd = conv_call(graph, K_CONV_STATS_FWD, op)};
    if (at.conv_fwd == NO_CALL || graph->calls[at.conv_fwd].in[FWD_SCALE_IN] != NO_VALUE) {
        return false;
    }
    int z = graph->calls[at.conv_fwd].in[FWD_X_IN];
    at.apply = fuse_writer(graph, z, at.conv_fwd);
    if (at.apply == NO_CALL || graph->calls[at.apply].args.id != K_BN_APPLY ||
        graph->values[z].is_kept) {
        return false;
    }
    const struct call *apply = &graph->calls[at.apply];
    at.finalize = fuse_writer(graph, apply->in[APPLY_MEAN_IN], at.apply);
    at.conv_bwd_weight = fuse_call_with(graph, K_CONV_BWD_WEIGHT, WEIGHT_X_IN, z);
    at.bn_bwd = fuse_call_with(graph, K_BN_BWD, NORM_BWD_Y_IN, z);
    int n_reads = 1 + (at.conv_bwd_weight != NO_CALL) + (at.bn_bwd != NO_CALL);
    *ret_calls = at;
    return apply->args.geom.bn.has_relu && apply->in[APPLY_A_IN] == NO_VALUE &&
           at.finalize != NO_CALL && graph->calls[at.finalize].args.id == K_BN_FINALIZE &&
           (at.conv_bwd_weight == NO_CALL || graph->calls[at.conv_bwd_weight].op == op) &&
           fuse_count_reads(graph, z, 0) == n_reads;
}

bool fuse_norm_conv(struct graph *graph, int op, bool do_it)
{
    struct norm_conv_calls at;
    if (!find_norm_conv(graph, op, &at)) {
        return false;
    }
    if (!do_it) {
        return true;
    }
    int x = graph->calls[at.apply].in[APPLY_X_IN];
    int scale = fuse_channel_value(graph, x, graph->dtype);
    int shift = fuse_channel_value(graph, x, graph->dtype);
    graph->calls[at.finalize].out[FINALIZE_SCALE_OUT] = scale;
    graph->calls[at.finalize].out[FINALIZE_SHIFT_OUT] = shift;
    struct call *conv = &graph->calls[at.conv_fwd];
    conv->in[FWD_X_IN] = x;
    conv->in[FWD_SCALE_IN] = scale;
    conv->in[FWD_SHIFT_IN] = shift;
    if (at.conv_bwd_weight != NO_CALL) {
        struct call *weight = &graph->calls[at.conv_bwd_weight];
        weight->args.id = K_NORM_CONV_BWD_WEIGHT;
        weight->in[WEIGHT_X_IN] = x;
        weight->in[WEIGHT_SCALE_IN] = scale;
        weight->in[WEIGHT_SHIFT_IN] = shift;
    }
    if (at.bn_bwd != NO_CALL) {
        (void)fuse_mask(graph, graph->calls[at.bn_bwd].op, true);
    }
    fuse_remove(graph, at.apply);
    return true;
}

/* ---- the data gradient ---- */

struct bn_bwd_calls {
    int conv, bn; /* K_CONV_BWD_DATA; K_BN_BWD or K_BN_ADD_BWD */
    int a;        /* value that the forward pass added before the ReLU, or NO_VALUE */
};

/* The value added to the batch norm of x before the ReLU; false if it is not available any more. */
static bool find_added(const struct graph *graph, int x, int *ret_a)
{
    int at = fuse_call_with(graph, K_BN_ADD_FWD, NORM_X_IN, x);
    if (at != NO_CALL) {
        *ret_a = graph->calls[at].in[NORM_A_IN];
        return true;
    }
    at = fuse_call_with(graph, K_BN_APPLY, APPLY_X_IN, x);
    if (at != NO_CALL && graph->calls[at].in[APPLY_A_GAMMA_IN] == NO_VALUE) {
        *ret_a = graph->calls[at].in[APPLY_A_IN];
        return true;
    }
    return false;
}

static bool find_bn_bwd(const struct graph *graph, int op, struct bn_bwd_calls *ret_calls)
{
    struct bn_bwd_calls at = {.conv = conv_call(graph, K_CONV_BWD_DATA, op), .a = NO_VALUE};
    if (at.conv == NO_CALL) {
        return false;
    }
    int grad = graph->calls[at.conv].out[DATA_DX_OUT];
    int bn = fuse_call_with(graph, K_BN_BWD, NORM_BWD_DY_IN, grad);
    int bn_add = fuse_call_with(graph, K_BN_ADD_BWD, NORM_BWD_DY_IN, grad);
    at.bn = bn != NO_CALL ? bn : bn_add;
    /* The gradient is complete after this convolution, and only the batch norm reads it then. */
    if (at.bn == NO_CALL || fuse_writer(graph, grad, at.bn) != at.conv ||
        fuse_count_reads(graph, grad, at.conv + 1) != 1) {
        return false;
    }
    const struct call *call = &graph->calls[at.bn];
    bool is_fit = call->args.geom.bn.has_relu && call->out[NORM_BWD_DX_OUT] != NO_VALUE &&
                  (call->args.accumulate & OPERAND_BIT(NORM_BWD_DX_OUT)) == 0;
    bool is_found = at.bn == bn || find_added(graph, call->in[NORM_BWD_X_IN], &at.a);
    *ret_calls = at;
    return is_fit && is_found;
}

bool fuse_conv_bn_bwd_adds(const struct graph *graph, int op)
{
    struct bn_bwd_calls at;
    return find_bn_bwd(graph, op, &at) &&
           ((graph->calls[at.conv].args.accumulate & OPERAND_BIT(DATA_DX_OUT)) != 0 ||
            at.a != NO_VALUE);
}

static void replace_value(struct graph *graph, int from, int to)
{
    for (int i = 0; i < graph->n_calls; i++) {
        struct call *call = &graph->calls[i];
        for (int k = 0; k < KERNEL_IN_MAX; k++) {
            call->in[k] = call->in[k] == from ? to : call->in[k];
        }
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            call->out[j] = call->out[j] == from ? to : call->out[j];
        }
    }
    for (int i = 0; i < graph->n_values; i++) {
        graph->values[i].grad = graph->values[i].grad == from ? to : graph->values[i].grad;
    }
}

/* dz, masked, is the gradient of what was added: it replaces that gradient, or is added to it. */
static void pass_on(struct graph *graph, const struct call *bn, int bn_at, int dz)
{
    int da = bn->out[NORM_BWD_DA_OUT];
    if (bn->args.id != K_BN_ADD_BWD || da == NO_VALUE) {
        return;
    }
    bool is_first = (bn->args.accumulate & OPERAND_BIT(NORM_BWD_DA_OUT)) == 0;
    if (is_first && graph->values[da].kind == VALUE_GRAD_ACT) {
        replace_value(graph, da, dz);
        return;
    }
    struct call add = fuse_call(K_ADD_BWD, bn);
    add.args.geom.elem = graph_elem_geom(&graph->values[dz].shape, false);
    add.in[0] = dz;
    fuse_take_out(&add, 0, bn, NORM_BWD_DA_OUT);
    fuse_insert(graph, bn_at + 1, &add);
}

bool fuse_conv_bn_bwd(struct graph *graph, int op, bool do_it)
{
    struct bn_bwd_calls at;
    if (!find_bn_bwd(graph, op, &at)) {
        return false;
    }
    if (!do_it) {
        return true;
    }
    const struct call conv = graph->calls[at.conv];
    const struct call bn = graph->calls[at.bn];
    int grad = conv.out[DATA_DX_OUT];
    int x = bn.in[NORM_BWD_X_IN];
    struct value like = graph->values[grad];
    like.name = NULL;
    int dz = graph_add_value(graph, like);
    enum dtype stat = graph->types.stat;
    int sums[2] = {fuse_channel_value(graph, x, stat), fuse_channel_value(graph, x, stat)};
    bool is_added = (conv.args.accumulate & OPERAND_BIT(DATA_DX_OUT)) != 0;
    struct call data = fuse_call(K_CONV_BWD_DATA_BN, &conv);
    data.in[DATA_DY_IN] = conv.in[DATA_DY_IN];
    data.in[DATA_W_IN] = conv.in[DATA_W_IN];
    data.in[DATA_X_IN] = x;
    data.in[DATA_GAMMA_IN] = bn.in[NORM_BWD_GAMMA_IN];
    data.in[DATA_BETA_IN] = graph->ops[bn.op].in[NORM_BETA_IN];
    data.in[DATA_MEAN_IN] = bn.in[NORM_BWD_MEAN_IN];
    data.in[DATA_RSTD_IN] = bn.in[NORM_BWD_RSTD_IN];
    data.in[DATA_DA_IN] = is_added ? grad : NO_VALUE;
    data.in[DATA_A_IN] = at.a;
    data.out[DATA_DZ_OUT] = dz;
    data.out[DATA_SUM_DZ_OUT] = sums[0];
    data.out[DATA_SUM_HAT_OUT] = sums[1];
    struct call apply = fuse_call(K_BN_BWD_APPLY, &bn);
    apply.args.geom.bn.has_relu = false; /* dz is masked */
    for (int j = NORM_BWD_X_IN; j <= NORM_BWD_RSTD_IN; j++) {
        apply.in[j] = bn.in[j];
    }
    apply.in[NORM_BWD_DZ_IN] = dz;
    apply.in[NORM_BWD_SUM_DZ_IN] = sums[0];
    apply.in[NORM_BWD_SUM_HAT_IN] = sums[1];
    for (int j = NORM_BWD_DX_OUT; j <= NORM_BWD_DBETA_OUT; j++) {
        fuse_take_out(&apply, j, &bn, j);
    }
    apply.inplace[NORM_BWD_DX_OUT] = OPERAND_BIT(NORM_BWD_DZ_IN);
    graph->calls[at.conv] = data;
    graph->calls[at.bn] = apply;
    pass_on(graph, &bn, at.bn, dz);
    return true;
}
