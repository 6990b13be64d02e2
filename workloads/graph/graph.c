/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "graph/internal.h"

struct graph *graph_new_typed(struct arena *arena, const struct graph_types *types)
{
    struct graph *graph = arena_new(arena, struct graph);
    graph->arena = arena;
    graph->types = *types;
    graph->dtype = types->dtype;
    graph->loss = NO_VALUE;
    graph->ranks.n_ranks = 1;
    return graph;
}

void graph_set_ranks(struct graph *graph, const struct graph_ranks *ranks)
{
    ASSERT(graph->n_values == 0 && ranks->rank >= 0 && ranks->rank < ranks->n_ranks);
    graph->ranks = *ranks;
}

void graph_set_inference(struct graph *graph)
{
    ASSERT(graph->n_values == 0);
    graph->is_inference = true;
}

void graph_fail(struct graph *graph, enum err_code code, const char *fmt, ...)
{
    if (graph->err.code != ERR_NONE) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    graph->err.code = code;
    vsnprintf(graph->err.msg, sizeof(graph->err.msg), fmt, args);
    va_end(args);
}

/* Room for one more element of an array in the arena; the old array stays there until the arena is freed. */
static void *grown(struct arena *arena, void *items, int n, int *n_max, size_t elem_size)
{
    if (n < *n_max) {
        return items;
    }
    *n_max = *n_max == 0 ? 64 : *n_max * 2;
    void *more = arena_alloc_array(arena, elem_size, (size_t)*n_max, alignof(max_align_t));
    if (n > 0) {
        memcpy(more, items, (size_t)n * elem_size);
    }
    return more;
}

int graph_add_value(struct graph *graph, struct value value)
{
    int64_t count = 0;
    struct err err = {0};
    if (shape_count_checked(&value.shape, &count, &err) < 0) {
        graph_fail(graph, ERR_USAGE, "%s: %s", value.name ? value.name : "activation", err.msg);
        return NO_VALUE;
    }
    if (count < 1 || graph->n_values >= GRAPH_VALUES_MAX) {
        graph_fail(graph, ERR_USAGE, "%s: %s", value.name ? value.name : "activation",
                   count < 1 ? "no elements" : "too many values in the graph");
        return NO_VALUE;
    }
    if (value.name) {
        if (strlen(value.name) > GRAPH_NAME_MAX || graph_find(graph, value.name) != NO_VALUE) {
            graph_fail(graph, ERR_INTERNAL, "value name %.64s is too long or used twice",
                       value.name);
            return NO_VALUE;
        }
        value.name = arena_strndup(graph->arena, value.name, strlen(value.name));
    }
    value.grad = NO_VALUE;
    graph->values = grown(graph->arena, graph->values, graph->n_values, &graph->n_values_max,
                          sizeof(*graph->values));
    graph->values[graph->n_values] = value;
    return graph->n_values++;
}

int graph_find(const struct graph *graph, const char *name)
{
    for (int i = 0; i < graph->n_values; i++) {
        if (graph->values[i].name && strcmp(graph->values[i].name, name) == 0) {
            return i;
        }
    }
    return NO_VALUE;
}

struct op *graph_add_op(struct graph *graph, enum op_kind kind)
{
    if (graph->n_ops >= GRAPH_OPS_MAX) {
        graph_fail(graph, ERR_INTERNAL, "more than %d ops", GRAPH_OPS_MAX);
        return NULL;
    }
    graph->ops =
        grown(graph->arena, graph->ops, graph->n_ops, &graph->n_ops_max, sizeof(*graph->ops));
    struct op *op = &graph->ops[graph->n_ops++];
    *op = (struct op){.kind = kind};
    for (int i = 0; i < OP_IN_MAX; i++) {
        op->in[i] = NO_VALUE;
    }
    for (int i = 0; i < OP_OUT_MAX; i++) {
        op->out[i] = NO_VALUE;
    }
    return op;
}

struct call *graph_add_call(struct graph *graph)
{
    graph->calls = grown(graph->arena, graph->calls, graph->n_calls, &graph->n_calls_max,
                         sizeof(*graph->calls));
    struct call *call = &graph->calls[graph->n_calls++];
    *call = (struct call){0};
    for (int i = 0; i < KERNEL_IN_MAX; i++) {
        call->in[i] = NO_VALUE;
    }
    for (int i = 0; i < KERNEL_OUT_MAX; i++) {
        call->out[i] = NO_VALUE;
    }
    return call;
}

void graph_output(struct graph *graph, const char *name, int value)
{
    if (value == NO_VALUE || graph->err.code != ERR_NONE) {
        return;
    }
    if (graph_find(graph, name) != NO_VALUE) {
        graph_fail(graph, ERR_INTERNAL, "value name %.64s is used twice", name);
        return;
    }
    graph->values[value].name = arena_strndup(graph->arena, name, strlen(name));
    graph->values[value].is_kept = true;
}

int graph_finish(struct graph *graph, struct err *err)
{
    ASSERT(!graph->is_finished);
    if (graph->err.code == ERR_NONE && graph->loss == NO_VALUE) {
        graph_fail(graph, ERR_INTERNAL, "the graph has no loss");
    }
    if (graph->err.code == ERR_NONE) {
        graph_lower(graph);
    }
    if (graph->err.code != ERR_NONE) {
        return err_set(err, graph->err.code, "%s", graph->err.msg);
    }
    graph->is_finished = true;
    return 0;
}

static int64_t count_kind(const struct graph *graph, enum value_kind kind)
{
    int64_t total = 0;
    for (int i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind == kind) {
            total += shape_count(&graph->values[i].shape);
        }
    }
    return total;
}

int64_t graph_n_trainable(const struct graph *graph)
{
    return count_kind(graph, VALUE_PARAM);
}

int64_t graph_n_running(const struct graph *graph)
{
    return count_kind(graph, VALUE_STATE);
}

int64_t graph_macs(const struct graph *graph)
{
    int64_t total = 0;
    for (int i = 0; i < graph->n_ops; i++) {
        total += graph->ops[i].macs;
    }
    return total;
}

const char *op_kind_name(enum op_kind kind)
{
    static const char *const names[OP_KIND_COUNT] = {
        [OP_CONV] = "conv",
        [OP_BN] = "bn",
        [OP_RELU] = "relu",
        [OP_ADD] = "add",
        [OP_MAXPOOL] = "maxpool",
        [OP_AVGPOOL] = "avgpool",
        [OP_DROPOUT] = "dropout",
        [OP_UPSAMPLE] = "upsample",
        [OP_CONCAT] = "concat",
        [OP_LINEAR] = "linear",
        [OP_LOSS] = "loss",
        [OP_EMBED] = "embed",
        [OP_LAYER_NORM] = "layer_norm",
        [OP_GELU] = "gelu",
        [OP_TANH] = "tanh",
        [OP_ATTENTION] = "attention",
        [OP_GATHER] = "gather",
        [OP_ROW_LOSS] = "row_loss",
    };
    return names[kind];
}
