/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of graph/ share and nobody else calls. */
#ifndef GRAPH_INTERNAL_H
#define GRAPH_INTERNAL_H

#include "graph/graph.h"

int graph_add_value(struct graph *graph, struct value value);
void graph_fail(struct graph *graph, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void graph_lower(struct graph *graph);

/* A new last op, every id NO_VALUE; NULL with the graph's error set when there are too many. */
struct op *graph_add_op(struct graph *graph, enum op_kind kind);

/* A new last call, every id NO_VALUE. */
struct call *graph_add_call(struct graph *graph);

#endif
