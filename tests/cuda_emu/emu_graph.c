/* SPDX-License-Identifier: Apache-2.0 */
/* Captured graphs. Launching one makes an op of each node, so that its nodes mix with other streams' work. */
#include "emu_internal.h"

#include <stdlib.h>
#include <string.h>

struct node {
    struct emu_work work;
    int *after;
    int n_after;
};
struct CUgraph_st {
    struct node *nodes;
    int n_nodes, cap_nodes;
    int refs; /* its own, of what was instantiated from it, of launches in flight */
};
struct CUgraphExec_st {
    cudaGraph_t graph;
};

cudaGraph_t emu_graph_new(void)
{
    cudaGraph_t graph = calloc(1, sizeof(*graph));
    if (graph == NULL) {
        emu_die("out of memory");
    }
    graph->refs = 1;
    return graph;
}

int emu_graph_add(cudaGraph_t graph, struct emu_work *work, const int *after, int n_after)
{
    if (graph->n_nodes == graph->cap_nodes) {
        graph->cap_nodes = graph->cap_nodes == 0 ? 64 : graph->cap_nodes * 2;
        graph->nodes = realloc(graph->nodes, (size_t)graph->cap_nodes * sizeof(*graph->nodes));
    }
    int *copy = malloc((size_t)(n_after + 1) * sizeof(*copy));
    if (graph->nodes == NULL || copy == NULL) {
        emu_die("out of memory");
    }
    for (int i = 0; i < n_after; i++) {
        copy[i] = after[i];
    }
    graph->nodes[graph->n_nodes] = (struct node){.work = *work, .after = copy, .n_after = n_after};
    return graph->n_nodes++;
}

/* Nodes come after earlier ones only: one pass from the last to the first. */
bool emu_graph_reaches_all(cudaGraph_t graph, const int *ends, int n_ends)
{
    bool *is_reached = calloc((size_t)graph->n_nodes + 1, sizeof(*is_reached));
    if (is_reached == NULL) {
        emu_die("out of memory");
    }
    for (int i = 0; i < n_ends; i++) {
        is_reached[ends[i]] = true;
    }
    bool are_all = true;
    for (int i = graph->n_nodes - 1; i >= 0; i--) {
        are_all &= is_reached[i];
        for (int k = 0; is_reached[i] && k < graph->nodes[i].n_after; k++) {
            is_reached[graph->nodes[i].after[k]] = true;
        }
    }
    free(is_reached);
    return are_all;
}

void emu_graph_drop(cudaGraph_t graph)
{
    if (--graph->refs > 0) {
        return;
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        emu_work_free(&graph->nodes[i].work);
        free(graph->nodes[i].after);
    }
    free(graph->nodes);
    free(graph);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    (void)flags;
    if (exec == NULL || graph == NULL) {
        return emu_fail(cudaErrorInvalidValue);
    }
    *exec = calloc(1, sizeof(**exec));
    if (*exec == NULL) {
        emu_die("out of memory");
    }
    (*exec)->graph = graph;
    graph->refs++;
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (exec == NULL) {
        return emu_fail(cudaErrorInvalidValue);
    }
    struct emu_work empty = {.kind = EMU_EMPTY};
    struct emu_op *head = NULL;
    cudaError_t error = emu_enqueue(&empty, stream, &head);
    if (error != cudaSuccess) {
        return error;
    }
    if (head == NULL) { /* a graph in a graph */
        emu_capture_break();
        return emu_fail(cudaErrorNotSupported);
    }
    cudaGraph_t graph = exec->graph;
    const struct emu_work end = {.kind = EMU_EMPTY, .launched = graph};
    struct emu_op **ops = calloc((size_t)graph->n_nodes + 1, sizeof(struct emu_op *));
    struct emu_op *tail = emu_stream_replace_last(stream, &end);
    graph->refs++;
    if (ops == NULL) {
        emu_die("out of memory");
    }
    emu_op_after(tail, head);
    for (int i = 0; i < graph->n_nodes; i++) {
        const struct node *node = &graph->nodes[i];
        ops[i] = emu_op_add(&node->work, false);
        emu_op_after(ops[i], head);
        for (int k = 0; k < node->n_after; k++) {
            emu_op_after(ops[i], ops[node->after[k]]);
        }
        emu_op_after(tail, ops[i]);
    }
    for (int i = 0; i < graph->n_nodes; i++) {
        emu_op_submit(ops[i]);
        emu_op_drop(ops[i]);
    }
    emu_op_submit(tail);
    emu_op_drop(tail);
    emu_op_drop(head);
    free(ops);
    return cudaSuccess;
}

/* One in flight ends first, and nobody waits for it. */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    if (exec == NULL) {
        return emu_fail(cudaErrorInvalidValue);
    }
    emu_graph_drop(exec->graph);
    free(exec);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (graph == NULL) {
        return emu_fail(cudaErrorInvalidValue);
    }
    emu_graph_drop(graph);
    return cudaSuccess;
}
