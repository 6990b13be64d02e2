/* SPDX-License-Identifier: Apache-2.0 */
/* The patterns of the norms and of the loss: what our own kernels do in one pass. */
#include "base/base.h"

#include "graph/fuse_internal.h"

/* ---- upsampling and loss ---- */

struct loss_calls {
    int upsample_fwd, loss_fwd, loss_bwd, upsample_bwd;
};

static bool find_loss(const struct graph *graph, int op, bool keeps_outputs,
                      struct loss_calls *ret_calls)
{
    struct loss_calls at = {.loss_fwd = fuse_call_of(graph, K_LOSS_FWD, op),
                            .loss_bwd = fuse_call_of(graph, K_LOSS_BWD, op)};
    if (at.loss_fwd == NO_CALL || at.loss_bwd == NO_CALL) {
        return false;
    }
    int logits = graph->calls[at.loss_fwd].in[LOSS_LOGITS_IN];
    int dlogits = graph->calls[at.loss_bwd].out[0];
    at.upsample_fwd = fuse_writer(graph, logits, at.loss_fwd);
    at.upsample_bwd = fuse_call_with(graph, K_UPSAMPLE_BWD, 0, dlogits);
    if (at.upsample_fwd == NO_CALL || at.upsample_bwd == NO_CALL ||
        graph->calls[at.upsample_fwd].args.id != K_UPSAMPLE_FWD) {
        return false;
    }
    *ret_calls = at;
    bool is_read_elsewhere = fuse_count_reads(graph, logits, 0) > 1;
    bool is_made_elsewhere = (graph->calls[at.loss_bwd].args.accumulate & 1U) != 0 ||
                             fuse_count_reads(graph, dlogits, 0) > 1;
    bool is_dropped = graph->values[logits].is_kept && !keeps_outputs;
    return !is_made_elsewhere && !(is_read_elsewhere && is_dropped);
}

bool fuse_upsample_loss(struct graph *graph, int op, bool keeps_outputs, bool do_it)
{
    struct loss_calls at;
    if (graph->ops[op].kind != OP_LOSS || !find_loss(graph, op, keeps_outputs, &at)) {
        return false;
    }
    if (!do_it) {
        return true;
    }
    const struct call upsample = graph->calls[at.upsample_fwd];
    const struct call upsample_bwd = graph->calls[at.upsample_bwd];
    struct call *loss_fwd = &graph->calls[at.loss_fwd];
    int x = upsample.in[0];
    int logits = loss_fwd->in[LOSS_LOGITS_IN];
    int labels = loss_fwd->in[LOSS_LABELS_IN];
    struct value lse = {
        .shape = graph->values[labels].shape, .dtype = graph->types.stat, .kind = VALUE_ACT};
    int lse_value = graph_add_value(graph, lse);
    int n_labels = fuse_scalar_value(graph, graph->types.stat);
    struct call fused = fuse_call(K_UPSAMPLE_LOSS_FWD, loss_fwd);
    fused.args.geom.upsample_loss = (struct upsample_loss_geom){.resize = upsample.args.geom.resize,
                                                                .loss = loss_fwd->args.geom.loss};
    fused.in[LOSS_LOGITS_IN] = x;
    fused.in[LOSS_LABELS_IN] = labels;
    fuse_take_out(&fused, LOSS_LOSS_OUT, loss_fwd, LOSS_LOSS_OUT);
    fused.out[LOSS_LSE_OUT] = lse_value;
    fused.out[LOSS_N_LABELS_OUT] = n_labels;
    struct call fused_bwd = fuse_call(K_UPSAMPLE_LOSS_BWD, &graph->calls[at.loss_bwd]);
    fused_bwd.args.geom = fused.args.geom;
    fused_bwd.in[LOSS_LOGITS_IN] = x;
    fused_bwd.in[LOSS_LABELS_IN] = labels;
    fused_bwd.in[LOSS_LSE_IN] = lse_value;
    fused_bwd.in[LOSS_N_LABELS_IN] = n_labels;
    fuse_take_out(&fused_bwd, 0, &upsample_bwd, 0);
    *loss_fwd = fused;
    graph->calls[at.upsample_bwd] = fused_bwd;
    fuse_remove(graph, at.loss_bwd);
    graph->values[logits].grad = NO_VALUE;
    bool is_needed =
        (graph->values[logits].is_kept && keeps_outputs) || fuse_count_reads(graph, logits, 0) > 0;
    if (!is_needed) {
        graph->values[logits].is_kept = false;
        graph->values[logits].name = NULL;
        fuse_remove(graph, at.upsample_fwd);
    }
    return true;
}

/* ---- batch norm and addition ---- */

struct bn_add_calls {
    int bn_fwd, add_fwd, add_bwd, other_bwd, bn_bwd; /* other_bwd: NO_CALL if it is not needed */
    int other;                                       /* value that is added */
};

static int add_bwd_to(const struct graph *graph, int op, int grad)
{
    for (int i = 0; i < graph->n_calls && grad != NO_VALUE; i++) {
        const struct call *call = &graph->calls[i];
        if (call->op == op && call->args.id == K_ADD_BWD && call->out[0] == grad) {
            return i;
        }
    }
    return NO_CALL;
}

/* The batch norm without ReLU whose result y only that addition reads, or NO_CALL. */
static int norm_for_addition(const struct graph *graph, int y, int add_fwd)
{
    int bn = fuse_writer(graph, y, add_fwd);
    bool is_fit = bn != NO_CALL && graph->calls[bn].args.id == K_BN_FWD &&
                  !graph->calls[bn].args.geom.bn.has_relu && !graph->values[y].is_kept &&
                  fuse_count_reads(graph, y, 0) == 1;
    return is_fit ? bn : NO_CALL;
}

static bool find_bn_add(const struct graph *graph, int op, struct bn_add_calls *ret_calls)
{
    struct bn_add_calls at = {.bn_fwd = fuse_call_of(graph, K_BN_FWD, op)};
    if (at.bn_fwd == NO_CALL) {
        return false;
    }
    int y = graph->calls[at.bn_fwd].out[NORM_Y_OUT];
    int slot = fuse_call_with(graph, K_ADD_FWD, 0, y) != NO_CALL ? 0 : 1;
    at.add_fwd = fuse_call_with(graph, K_ADD_FWD, slot, y);
    if (at.add_fwd == NO_CALL || norm_for_addition(graph, y, at.add_fwd) != at.bn_fwd) {
        return false;
    }
    const struct call *add = &graph->calls[at.add_fwd];
    at.other = add->in[1 - slot];
    /* Of two batch norms that are added the later one takes the addition. */
    if (at.other == y || norm_for_addition(graph, at.other, at.add_fwd) > at.bn_fwd) {
        return false;
    }
    at.add_bwd = add_bwd_to(graph, add->op, graph->values[y].grad);
    at.other_bwd = add_bwd_to(graph, add->op, graph->values[at.other].grad);
    at.bn_bwd = fuse_call_of(graph, K_BN_BWD, op);
    *ret_calls = at;
    return at.add_bwd != NO_CALL && at.bn_bwd != NO_CALL &&
           (graph->calls[at.bn_bwd].args.accumulate & OPERAND_BIT(NORM_BWD_DX_OUT)) == 0;
}

static void remove_calls(struct graph *graph, int a, int b, int c)
{
    int at[3] = {a, b, c};
    for (int round = 0; round < 3;
         round++) { /* the last one first, so that the others keep their places */
        int last = 0;
        for (int i = 1; i < 3; i++) {
            last = at[i] > at[last] ? i : last;
        }
        if (at[last] != NO_CALL) {
            fuse_remove(graph, at[last]);
        }
        at[last] = NO_CALL;
    }
}

/* One call where the first of the three was. */
static void fuse_bn_add_bwd(struct graph *graph, const struct bn_add_calls *at, int y)
{
    const struct call *add = &graph->calls[at->add_bwd];
    const struct call *bn = &graph->calls[at->bn_bwd];
    struct call fused = fuse_call(K_BN_ADD_BWD, bn);
    fused.args.geom.bn.has_relu = add->args.geom.elem.has_relu;
    for (int j = NORM_BWD_X_IN; j <= NORM_BWD_RSTD_IN; j++) {
        fused.in[j] = bn->in[j];
    }
    fused.in[NORM_BWD_DY_IN] = add->in[0];
    fused.in[NORM_BWD_Y_IN] = fused.args.geom.bn.has_relu ? y : NO_VALUE;
    for (int j = NORM_BWD_DX_OUT; j <= NORM_BWD_DBETA_OUT; j++) {
        fuse_take_out(&fused, j, bn, j);
    }
    if (at->other_bwd != NO_CALL) {
        fuse_take_out(&fused, NORM_BWD_DA_OUT, &graph->calls[at->other_bwd], 0);
    }
    fused.inplace[NORM_BWD_DX_OUT] = OPERAND_BIT(NORM_BWD_DY_IN);
    bool is_other_first = at->other_bwd != NO_CALL && at->other_bwd < at->add_bwd;
    int where = is_other_first ? at->other_bwd : at->add_bwd;
    remove_calls(graph, at->add_bwd, at->other_bwd, at->bn_bwd);
    fuse_insert(graph, where, &fused);
}

bool fuse_bn_add(struct graph *graph, int op, bool do_it)
{
    struct bn_add_calls at;
    if (graph->ops[op].kind != OP_BN || !find_bn_add(graph, op, &at)) {
        return false;
    }
    if (!do_it) {
        return true;
    }
    const struct call bn = graph->calls[at.bn_fwd];
    const struct call add = graph->calls[at.add_fwd];
    struct call fused = fuse_call(K_BN_ADD_FWD, &bn);
    fused.args.geom.bn.has_relu = add.args.geom.elem.has_relu;
    for (int j = NORM_X_IN; j <= NORM_BETA_IN; j++) {
        fused.in[j] = bn.in[j];
    }
    fused.in[NORM_A_IN] = at.other;
    fuse_take_out(&fused, NORM_Y_OUT, &add, 0);
    for (int j = NORM_MEAN_OUT; j <= NORM_RUNNING_VAR_OUT; j++) {
        fuse_take_out(&fused, j, &bn, j);
    }
    fused.inplace[NORM_Y_OUT] = OPERAND_BIT(NORM_X_IN) | OPERAND_BIT(NORM_A_IN);
    fuse_bn_add_bwd(graph, &at, add.out[0]); /* after the forward calls, whose places stay */
    graph->calls[at.add_fwd] = fused;
    fuse_remove(graph, at.bn_fwd);
    graph->values[bn.out[NORM_Y_OUT]].grad = NO_VALUE;
    return true;
}

/* ---- dropout, addition and layer norm ---- */

struct drop_add_calls {
    int drop_fwd, add_fwd, norm_fwd, norm_bwd, add_bwd, other_bwd, drop_bwd;
    int other; /* value that is added */
};

/* The dropout of single elements whose result only that addition reads, or NO_CALL. */
static int drop_for_addition(const struct graph *graph, int y, int add_fwd)
{
    int drop = fuse_writer(graph, y, add_fwd);
    bool is_fit = drop != NO_CALL && graph->calls[drop].args.id == K_DROPOUT_FWD &&
                  graph->calls[drop].args.geom.dropout.run == 1 &&
                  graph->calls[drop].args.geom.dropout.plane == 0 && !graph->values[y].is_kept &&
                  fuse_count_reads(graph, y, 0) == 1;
    return is_fit ? drop : NO_CALL;
}

static bool find_drop_add_bwd(const struct graph *graph, int sum, struct drop_add_calls *at)
{
    const struct call *add = &graph->calls[at->add_fwd];
    const struct call *drop = &graph->calls[at->drop_fwd];
    at->add_bwd = add_bwd_to(graph, add->op, graph->values[drop->out[0]].grad);
    at->other_bwd = add_bwd_to(graph, add->op, graph->values[at->other].grad);
    at->drop_bwd = fuse_call_of(graph, K_DROPOUT_BWD, drop->op);
    int n_reads = 1 + (at->other_bwd != NO_CALL);
    /* What the other gradient adds to is there when the layer norm's turn comes. */
    bool is_begun = at->other_bwd == NO_CALL ||
                    (graph->calls[at->other_bwd].args.accumulate & 1U) == 0 ||
                    fuse_writer(graph, graph->values[at->other].grad, at->norm_bwd) != NO_CALL;
    return is_begun && at->add_bwd != NO_CALL && at->drop_bwd != NO_CALL &&
           fuse_count_reads(graph, graph->values[sum].grad, 0) == n_reads &&
           (graph->calls[at->norm_bwd].args.accumulate & OPERAND_BIT(NORM_BWD_DX_OUT)) == 0 &&
           (graph->calls[at->drop_bwd].args.accumulate & 1U) == 0;
}

static bool find_drop_add(const struct graph *graph, int op, struct drop_add_calls *ret_calls)
{
    struct drop_add_calls at = {.norm_fwd = fuse_call_of(graph, K_LAYER_NORM_FWD, op),
                                .norm_bwd = fuse_call_of(graph, K_LAYER_NORM_BWD, op),
                                .drop_fwd = NO_CALL};
    if (at.norm_fwd == NO_CALL || at.norm_bwd == NO_CALL) {
        return false;
    }
    int sum = graph->calls[at.norm_fwd].in[NORM_X_IN];
    at.add_fwd = fuse_writer(graph, sum, at.norm_fwd);
    if (at.add_fwd == NO_CALL || graph->calls[at.add_fwd].args.id != K_ADD_FWD ||
        graph->calls[at.add_fwd].args.geom.elem.has_relu || graph->values[sum].is_kept ||
        fuse_count_reads(graph, sum, 0) != 2) {
        return false;
    }
    const int *in = graph->calls[at.add_fwd].in;
    for (int slot = 0; slot < 2 && at.drop_fwd == NO_CALL; slot++) {
        at.drop_fwd = drop_for_addition(graph, in[slot], at.add_fwd);
        at.other = in[1 - slot];
    }
    if (at.drop_fwd == NO_CALL || !find_drop_add_bwd(graph, sum, &at)) {
        return false;
    }
    *ret_calls = at;
    return true;
}

bool fuse_drop_add_norm(struct graph *graph, int op, bool do_it)
{
    struct drop_add_calls at;
    if (graph->ops[op].kind != OP_LAYER_NORM || !find_drop_add(graph, op, &at)) {
        return false;
    }
    if (!do_it) {
        return true;
    }
    const struct call drop = graph->calls[at.drop_fwd];
    const struct call add = graph->calls[at.add_fwd];
    const struct call norm = graph->calls[at.norm_fwd];
    const struct call norm_bwd = graph->calls[at.norm_bwd];
    struct call fused = fuse_call(K_DROP_ADD_NORM_FWD, &norm);
    fused.args.geom.drop_add_norm = (struct drop_add_norm_geom){.norm = norm.args.geom.layer_norm,
                                                                .dropout = drop.args.geom.dropout};
    struct call fused_bwd = fuse_call(K_DROP_ADD_NORM_BWD, &norm_bwd);
    fused_bwd.args.geom = fused.args.geom;
    memcpy(fused.in, norm.in, sizeof(fused.in));
    fused.in[NORM_X_IN] = drop.in[0];
    fused.in[NORM_A_IN] = at.other;
    fused.in[NORM_STEP_IN] = drop.in[1];
    memcpy(fused.out, norm.out, sizeof(fused.out));
    fuse_take_out(&fused, NORM_SUM_OUT, &add, 0);
    fused.inplace[NORM_SUM_OUT] = OPERAND_BIT(NORM_X_IN) | OPERAND_BIT(NORM_A_IN);
    memcpy(fused_bwd.in, norm_bwd.in, sizeof(fused_bwd.in));
    fused_bwd.in[NORM_BWD_STEP_IN] = drop.in[1];
    for (int j = NORM_BWD_DGAMMA_OUT; j <= NORM_BWD_DBETA_OUT; j++) {
        fuse_take_out(&fused_bwd, j, &norm_bwd, j);
    }
    fuse_take_out(&fused_bwd, NORM_BWD_DX_OUT, &graph->calls[at.drop_bwd], 0);
    if (at.other_bwd != NO_CALL) {
        fuse_take_out(&fused_bwd, NORM_BWD_DA_OUT, &graph->calls[at.other_bwd], 0);
    }
    fused_bwd.inplace[NORM_BWD_DX_OUT] = OPERAND_BIT(NORM_BWD_DY_IN);
    graph->calls[at.norm_bwd] = fused_bwd;
    remove_calls(graph, at.add_bwd, at.other_bwd, at.drop_bwd);
    graph->calls[at.norm_fwd] = fused;
    remove_calls(graph, at.add_fwd, at.drop_fwd, NO_CALL);
    graph->values[add.out[0]].grad = NO_VALUE;
    graph->values[drop.out[0]].grad = NO_VALUE;
    return true;
}

/* ---- the mask from x ---- */

bool fuse_mask(struct graph *graph, int op, bool do_it)
{
    int at = graph->ops[op].kind == OP_BN ? fuse_call_of(graph, K_BN_BWD, op) : NO_CALL;
    if (at == NO_CALL || !graph->calls[at].args.geom.bn.has_relu ||
        graph->calls[at].in[NORM_BWD_Y_IN] == NO_VALUE) {
        return false;
    }
    if (do_it) {
        graph->calls[at].in[NORM_BWD_Y_IN] = NO_VALUE;
        graph->calls[at].in[NORM_BWD_BETA_IN] = graph->ops[op].in[NORM_BETA_IN];
    }
    return true;
}

/* ---- two batch norms that are added ---- */

bool fuse_bn_pair(struct graph *graph, int op, bool do_it)
{
    int at = graph->ops[op].kind == OP_BN ? fuse_call_of(graph, K_BN_APPLY, op) : NO_CALL;
    if (at == NO_CALL || graph->calls[at].in[APPLY_A_IN] == NO_VALUE ||
        graph->calls[at].in[APPLY_A_GAMMA_IN] != NO_VALUE) {
        return false;
    }
    int a = graph->calls[at].in[APPLY_A_IN];
    int from = fuse_writer(graph, a, at);
    if (from == NO_CALL || graph->calls[from].args.id != K_BN_APPLY ||
        graph->calls[from].args.geom.bn.has_relu || graph->calls[from].in[APPLY_A_IN] != NO_VALUE ||
        graph->values[a].is_kept || fuse_count_reads(graph, a, 0) != 1) {
        return false;
    }
    if (do_it) {
        memcpy(&graph->calls[at].in[APPLY_A_IN], graph->calls[from].in,
               5 * sizeof(int)); /* x, and its four */
        fuse_remove(graph, from);
    }
    return true;
}
