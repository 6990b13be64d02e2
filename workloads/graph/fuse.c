/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "graph/fuse.h"

#include "graph/fuse_internal.h"

const char *fuse_pattern_name(enum fuse_pattern pattern)
{
    static const char *const names[FUSE_PATTERN_COUNT] = {
        [FUSE_UPSAMPLE_LOSS] = "upsample_loss",
        [FUSE_BN_ADD] = "bn_add",
        [FUSE_MASK] = "mask",
        [FUSE_CONV_STATS] = "conv_stats",
        [FUSE_NORM_CONV] = "norm_conv",
        [FUSE_CONV_BN_BWD] = "conv_bn_bwd",
        [FUSE_BN_PAIR] = "bn_pair",
        [FUSE_DROP_ADD_NORM] = "drop_add_norm",
    };
    return names[pattern];
}

/* ---- reading and changing the calls ---- */

int fuse_call_of(const struct graph *graph, enum kernel_id id, int op)
{
    for (int i = 0; i < graph->n_calls; i++) {
        if (graph->calls[i].op == op && graph->calls[i].args.id == id) {
            return i;
        }
    }
    return NO_CALL;
}

int fuse_call_with(const struct graph *graph, enum kernel_id id, int slot, int value)
{
    for (int i = 0; i < graph->n_calls && value != NO_VALUE; i++) {
        if (graph->calls[i].args.id == id && graph->calls[i].in[slot] == value) {
            return i;
        }
    }
    return NO_CALL;
}

static bool writes(const struct call *call, int value)
{
    for (int j = 0; j < KERNEL_OUT_MAX; j++) {
        if (call->out[j] == value) {
            return true;
        }
    }
    return false;
}

static bool reads(const struct call *call, int value)
{
    for (int k = 0; k < KERNEL_IN_MAX; k++) {
        if (call->in[k] == value) {
            return true;
        }
    }
    for (int j = 0; j < KERNEL_OUT_MAX; j++) {
        if (call->out[j] == value && (call->reads_out >> j & 1U) != 0) {
            return true;
        }
    }
    return false;
}

int fuse_writer(const struct graph *graph, int value, int call_idx)
{
    for (int i = call_idx - 1; i >= 0; i--) {
        if (writes(&graph->calls[i], value)) {
            return i;
        }
    }
    return NO_CALL;
}

int fuse_count_reads(const struct graph *graph, int value, int call_idx)
{
    int n = 0;
    for (int i = call_idx; i < graph->n_calls; i++) {
        n += reads(&graph->calls[i], value);
    }
    return n;
}

struct call fuse_call(enum kernel_id id, const struct call *like)
{
    struct call call = {.args = {.id = id, .dtype = like->args.dtype, .geom = like->args.geom},
                        .op = like->op,
                        .is_backward = like->is_backward};
    for (int k = 0; k < KERNEL_IN_MAX; k++) {
        call.in[k] = NO_VALUE;
    }
    for (int j = 0; j < KERNEL_OUT_MAX; j++) {
        call.out[j] = NO_VALUE;
    }
    return call;
}

void fuse_insert(struct graph *graph, int call_idx, const struct call *call)
{
    (void)graph_add_call(graph);
    size_t n_behind = (size_t)(graph->n_calls - 1 - call_idx);
    memmove(&graph->calls[call_idx + 1], &graph->calls[call_idx], n_behind * sizeof(*call));
    graph->calls[call_idx] = *call;
}

void fuse_remove(struct graph *graph, int call_idx)
{
    graph->n_calls--;
    memmove(&graph->calls[call_idx], &graph->calls[call_idx + 1],
            (size_t)(graph->n_calls - call_idx) * sizeof(*graph->calls));
}

void fuse_take_out(struct call *call, int to, const struct call *old, int from)
{
    call->out[to] = old->out[from];
    call->args.accumulate |= (old->args.accumulate >> from & 1U) << to;
    call->reads_out |= (old->reads_out >> from & 1U) << to;
}

int fuse_channel_value(struct graph *graph, int x, enum dtype dtype)
{
    return graph_add_value(graph, (struct value){.shape = SHAPE(graph->values[x].shape.dim[1]),
                                                 .dtype = dtype,
                                                 .role = ROLE_CHANNEL,
                                                 .kind = VALUE_ACT});
}

int fuse_scalar_value(struct graph *graph, enum dtype dtype)
{
    return graph_add_value(
        graph, (struct value){.shape = SHAPE_SCALAR, .dtype = dtype, .kind = VALUE_ACT});
}

/* ---- the driver ---- */

_Static_assert((int)FUSE_PATTERN_COUNT <= (int)GRAPH_FUSIONS_MAX, "a graph counts each");

bool fuse_at(struct graph *graph, enum fuse_pattern pattern, int op, bool keeps_outputs, bool do_it)
{
    switch (pattern) {
    case FUSE_UPSAMPLE_LOSS:
        return fuse_upsample_loss(graph, op, keeps_outputs, do_it);
    case FUSE_BN_ADD:
        return fuse_bn_add(graph, op, do_it);
    case FUSE_MASK:
        return fuse_mask(graph, op, do_it);
    case FUSE_CONV_STATS:
        return fuse_conv_stats(graph, op, do_it);
    case FUSE_NORM_CONV:
        return fuse_norm_conv(graph, op, do_it);
    case FUSE_CONV_BN_BWD:
        return fuse_conv_bn_bwd(graph, op, do_it);
    case FUSE_BN_PAIR:
        return fuse_bn_pair(graph, op, do_it);
    case FUSE_DROP_ADD_NORM:
        return fuse_drop_add_norm(graph, op, do_it);
    case FUSE_PATTERN_COUNT:
        break;
    }
    ASSERT(false);
}

int graph_fuse(struct graph *graph, const struct fuse_policy *policy,
               struct fuse_report *ret_report, struct err *err)
{
    ASSERT(graph->is_finished);
    struct fuse_report report = {0};
    for (int pattern = 0; pattern < FUSE_PATTERN_COUNT; pattern++) {
        for (int op = 0; op < graph->n_ops; op++) {
            bool keeps = policy->keeps_outputs;
            if (!fuse_at(graph, (enum fuse_pattern)pattern, op, keeps, false)) {
                continue;
            }
            report.n_sites[pattern]++;
            if (policy->wants(policy->self, graph, (enum fuse_pattern)pattern, op)) {
                report.n_fused[pattern]++;
                (void)fuse_at(graph, (enum fuse_pattern)pattern, op, keeps, true);
            }
        }
    }
    memcpy(graph->n_fused, report.n_fused, sizeof(report.n_fused));
    graph_order_gradients(graph);
    if (graph->err.code != ERR_NONE) {
        return err_set(err, graph->err.code, "%s", graph->err.msg);
    }
    if (ret_report) {
        *ret_report = report;
    }
    return 0;
}

/* ---- policies ---- */

struct fuse_support fuse_support_hopper(void)
{
    return (struct fuse_support){
        .dtype = DT_F16, .channel_pad = 8, .channel_multiple = 8, .dilation_max = 8};
}

static bool are_channels_supported(const struct fuse_support *support, int64_t channels)
{
    int64_t padded = (channels + support->channel_pad - 1) / support->channel_pad;
    return padded * support->channel_pad % support->channel_multiple == 0;
}

bool fuse_is_of_conv(enum fuse_pattern pattern)
{
    return pattern == FUSE_CONV_STATS || pattern == FUSE_NORM_CONV || pattern == FUSE_CONV_BN_BWD;
}

bool fuse_supports(const struct fuse_support *support, const struct graph *graph,
                   enum fuse_pattern pattern, int op)
{
    if (!fuse_is_of_conv(pattern)) {
        return true;
    }
    const struct conv_geom *g = &graph->ops[op].geom.conv;
    return graph->dtype == support->dtype && g->p * g->q > 1 && g->groups == 1 && g->r == g->s &&
           (g->r == 1 || g->r == 3) && g->stride_h == g->stride_w && g->stride_h <= 2 &&
           g->dil_h == g->dil_w && g->dil_h <= support->dilation_max &&
           are_channels_supported(support, g->c) && are_channels_supported(support, g->k) &&
           (pattern != FUSE_CONV_BN_BWD || g->stride_h == 1 || support->adds_strided ||
            !fuse_conv_bn_bwd_adds(graph, op));
}

static bool wants_listed(void *self, const struct graph *graph UNUSED, enum fuse_pattern pattern,
                         int op)
{
    struct fuse_list *list = self;
    for (int i = 0; i < list->n_choices; i++) {
        struct fuse_choice *choice = &list->choices[i];
        if (choice->pattern == pattern && choice->op == op) {
            choice->is_seen = true;
            return choice->is_fused;
        }
    }
    return false;
}

static int check_all_seen(const struct fuse_list *list, const struct graph *graph, struct err *err)
{
    for (int i = 0; i < list->n_choices; i++) {
        const struct fuse_choice *choice = &list->choices[i];
        if (choice->is_fused && !choice->is_seen) {
            const struct op *op =
                choice->op >= 0 && choice->op < graph->n_ops ? &graph->ops[choice->op] : NULL;
            return err_set(err, ERR_INTERNAL, "fusion %s at op %d (%s): the calls do not allow it",
                           fuse_pattern_name(choice->pattern), choice->op,
                           op ? op_kind_name(op->kind) : "there is none");
        }
    }
    return 0;
}

int graph_fuse_listed(struct graph *graph, struct fuse_list *list, struct fuse_report *ret_report,
                      struct err *err)
{
    const struct fuse_policy policy = {
        .wants = wants_listed, .self = list, .keeps_outputs = list->keeps_outputs};
    for (int i = 0; i < list->n_choices; i++) {
        list->choices[i].is_seen = false;
    }
    return graph_fuse(graph, &policy, ret_report, err) < 0 ? -1 : check_all_seen(list, graph, err);
}
