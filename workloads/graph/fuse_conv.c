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
    int bn = fuse_call_with(graph, K_BN_FWD, 0, y);
    int bn_add = fuse_call_with(graph, K_BN_ADD_FWD, 0, y);
    return bn == NO_CALL ? bn_add : bn_add == NO_CALL ? bn : NO_CALL;
}

bool fuse_conv_stats(struct graph *graph, int op, bool do_it)
{
    int at = conv_call(graph, K_CONV_FWD, op);
    if (at == NO_CALL || graph->calls[at].args.has_bias) {
        return false;
    }
    int y = graph->calls[at].out[0];
    int bn_at = norm_behind(graph, y);
    if (bn_at == NO_CALL || !do_it) {
        return bn_at != NO_CALL;
    }
    const struct call bn = graph->calls[bn_at];
    enum dtype stat = graph->types.stat;
    int sums[2] = {fuse_channel_value(graph, y, stat), fuse_channel_value(graph, y, stat)};
    struct call *conv = &graph->calls[at];
    conv->args.id = K_CONV_STATS_FWD;
    conv->out[1] = sums[0];
    conv->out[2] = sums[1];
    struct call apply = fuse_call(K_BN_APPLY, &bn);
    const int in[] = {y, bn.in[1], bn.in[2], bn.out[1], bn.out[2], bn.in[3]};
    memcpy(apply.in, in, sizeof(in));
    apply.out[0] = bn.out[0];
    apply.inplace[0] = 1U << 0 | 1U << 5;
    graph->calls[bn_at] = apply;
    struct call finalize = fuse_call(K_BN_FINALIZE, &bn);
    memcpy(finalize.in, (int[]){sums[0], sums[1], bn.in[1], bn.in[2]}, 4 * sizeof(int));
    fuse_take_out(&finalize, 0, &bn, 1);
    fuse_take_out(&finalize, 1, &bn, 2);
    fuse_take_out(&finalize, 4, &bn, 3);
    fuse_take_out(&finalize, 5, &bn, 4);
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
    if (at.conv_fwd == NO_CALL || graph->calls[at.conv_fwd].in[2] != NO_VALUE) {
        return false;
    }
    int z = graph->calls[at.conv_fwd].in[0];
    at.apply = fuse_writer(graph, z, at.conv_fwd);
    if (at.apply == NO_CALL || graph->calls[at.apply].args.id != K_BN_APPLY ||
        graph->values[z].is_kept) {
        return false;
    }
    const struct call *apply = &graph->calls[at.apply];
    at.finalize = fuse_writer(graph, apply->in[3], at.apply);
    at.conv_bwd_weight = fuse_call_with(graph, K_CONV_BWD_WEIGHT, 1, z);
    at.bn_bwd = fuse_call_with(graph, K_BN_BWD, 5, z);
    int n_reads = 1 + (at.conv_bwd_weight != NO_CALL) + (at.bn_bwd != NO_CALL);
    *ret_calls = at;
    return apply->args.geom.bn.has_relu && apply->in[5] == NO_VALUE && at.finalize != NO_CALL &&
           graph->calls[at.finalize].args.id == K_BN_FINALIZE &&
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
    int x = graph->calls[at.apply].in[0];
    int made[2] = {fuse_channel_value(graph, x, graph->dtype),
                   fuse_channel_value(graph, x, graph->dtype)};
    memcpy(&graph->calls[at.finalize].out[2], made, sizeof(made));
    struct call *conv = &graph->calls[at.conv_fwd];
    memcpy(conv->in, (int[]){x, conv->in[1], made[0], made[1]}, 4 * sizeof(int));
    if (at.conv_bwd_weight != NO_CALL) {
        struct call *weight = &graph->calls[at.conv_bwd_weight];
        weight->args.id = K_NORM_CONV_BWD_WEIGHT;
        memcpy(weight->in, (int[]){weight->in[0], x, made[0], made[1]}, 4 * sizeof(int));
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
    int at = fuse_call_with(graph, K_BN_ADD_FWD, 0, x);
    if (at != NO_CALL) {
        *ret_a = graph->calls[at].in[3];
        return true;
    }
    at = fuse_call_with(graph, K_BN_APPLY, 0, x);
    if (at != NO_CALL && graph->calls[at].in[6] == NO_VALUE) {
        *ret_a = graph->calls[at].in[5];
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
    int grad = graph->calls[at.conv].out[0];
    int bn = fuse_call_with(graph, K_BN_BWD, 0, grad);
    int bn_add = fuse_call_with(graph, K_BN_ADD_BWD, 0, grad);
    at.bn = bn != NO_CALL ? bn : bn_add;
    /* The gradient is complete after this convolution, and only the batch norm reads it then. */
    if (at.bn == NO_CALL || fuse_writer(graph, grad, at.bn) != at.conv ||
        fuse_count_reads(graph, grad, at.conv + 1) != 1) {
        return false;
    }
    const struct call *call = &graph->calls[at.bn];
    bool is_fit = call->args.geom.bn.has_relu && call->out[0] != NO_VALUE &&
                  (call->args.accumulate & 1U) == 0;
    bool is_found = at.bn == bn || find_added(graph, call->in[1], &at.a);
    *ret_calls = at;
    return is_fit && is_found;
}

bool fuse_conv_bn_bwd_adds(const struct graph *graph, int op)
{
    struct bn_bwd_calls at;
    return find_bn_bwd(graph, op, &at) &&
           ((graph->calls[at.conv].args.accumulate & 1U) != 0 || at.a != NO_VALUE);
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
    int da = bn->out[3];
    if (bn->args.id != K_BN_ADD_BWD || da == NO_VALUE) {
        return;
    }
    bool is_first = (bn->args.accumulate >> 3 & 1U) == 0;
    if (is_first && graph->values[da].kind == VALUE_GRAD_ACT) {
        replace_value(graph, da, dz);
        return;
    }
    struct call add = fuse_call(K_ADD_BWD, bn);
    add.args.geom.elem = graph_elem_geom(&graph->values[dz].shape, false);
    add.in[0] = dz;
    fuse_take_out(&add, 0, bn, 3);
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
    int grad = conv.out[0];
    int x = bn.in[1];
    struct value like = graph->values[grad];
    like.name = NULL;
    int dz = graph_add_value(graph, like);
    enum dtype stat = graph->types.stat;
    int sums[2] = {fuse_channel_value(graph, x, stat), fuse_channel_value(graph, x, stat)};
    bool is_added = (conv.args.accumulate & 1U) != 0;
    int beta = graph->ops[bn.op].in[2];
    struct call data = fuse_call(K_CONV_BWD_DATA_BN, &conv);
    const int in[] = {conv.in[0], conv.in[1], x,        bn.in[2],
                      beta,       bn.in[3],   bn.in[4], is_added ? grad : NO_VALUE,
                      at.a};
    memcpy(data.in, in, sizeof(in));
    memcpy(data.out, (int[]){dz, sums[0], sums[1]}, 3 * sizeof(int));
    struct call apply = fuse_call(K_BN_BWD_APPLY, &bn);
    apply.args.geom.bn.has_relu = false; /* dz is masked */
    const int apply_in[] = {dz, x, bn.in[2], bn.in[3], bn.in[4], sums[0], sums[1]};
    memcpy(apply.in, apply_in, sizeof(apply_in));
    for (int j = 0; j < 3; j++) {
        fuse_take_out(&apply, j, &bn, j);
    }
    apply.inplace[0] = 1U << 0;
    graph->calls[at.conv] = data;
    graph->calls[at.bn] = apply;
    pass_on(graph, &bn, at.bn, dz);
    return true;
}
