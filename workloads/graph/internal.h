/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of graph/ share and no other room calls. */
#pragma once

#include "graph/graph.h"

int graph_add_value(struct graph *graph, struct value value);
void graph_fail(struct graph *graph, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void graph_lower(struct graph *graph);

/* Fills params, grad_order and grad_ready; call it again after the calls have changed. */
void graph_order_gradients(struct graph *graph);

/* A new last op, every id NO_VALUE; NULL with the graph's error set when there are too many. */
struct op *graph_add_op(struct graph *graph, enum op_kind kind);

/* A new last call, every id NO_VALUE. */
struct call *graph_add_call(struct graph *graph);

/* ---- for the builder functions ---- */

/* The value's shape if it is usable and has n_dims dimensions, else NULL with the graph's error set. */
const struct shape *graph_shape_of(struct graph *graph, int x, int n_dims, const char *what);
bool graph_needs_grad(const struct graph *graph, int x);

int graph_activation(struct graph *graph, struct shape shape, enum dtype dtype, bool needs_grad);
int graph_channel_stat(struct graph *graph, int64_t channels); /* its mean, its deviation */
struct elem_geom graph_elem_geom(const struct shape *shape, bool has_relu);

/* Parameter or state OWNER.FIELD, otherwise as `value` says; a parameter of the graph's type; a batch norm's value for each
   channel. */
int graph_owned(struct graph *graph, const char *owner, const char *field, struct value value);
int graph_owned_param(struct graph *graph, const char *owner, const char *field, struct shape shape,
                      enum role role, struct init init);
int graph_owned_norm(struct graph *graph, const char *owner, const char *field,
                     enum value_kind kind, int64_t channels, double start);
