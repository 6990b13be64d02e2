/* SPDX-License-Identifier: Apache-2.0 */
/* What the builder functions share. */
#include "base/base.h"

#include "graph/internal.h"

/* The value's shape if it is usable and has n_dims dimensions, else NULL with the graph's error set. */
const struct shape *graph_shape_of(struct graph *graph, int x, int n_dims, const char *what)
{
    if (graph->err.code != ERR_NONE) {
        return NULL;
    }
    ASSERT(x >= 0);
    ASSERT(x < graph->n_values);
    const struct value *value = &graph->values[x];
    if (value->shape.n_dims != n_dims || value->dtype != graph->dtype) {
        char text[SHAPE_TEXT_MAX];
        shape_text(&value->shape, text);
        graph_fail(graph, ERR_INTERNAL, "%s: input is %s %s, expected %d dimensions of %s", what,
                   dtype_name(value->dtype), text, n_dims, dtype_name(graph->dtype));
        return NULL;
    }
    return &graph->values[x].shape;
}

/* (N, C, H, W) is an image, whatever its use. */
static enum role role_of(const struct shape *shape)
{
    return shape->n_dims == 4 ? ROLE_IMAGE : ROLE_PLAIN;
}

int graph_activation(struct graph *graph, struct shape shape, enum dtype dtype, bool needs_grad)
{
    return graph_add_value(graph, (struct value){.shape = shape,
                                                 .dtype = dtype,
                                                 .role = role_of(&shape),
                                                 .kind = VALUE_ACT,
                                                 .needs_grad = needs_grad});
}

/* A number for each channel of a batch: its mean, its deviation. For inference they are given. */
int graph_channel_stat(struct graph *graph, int64_t channels)
{
    return graph_add_value(graph,
                           (struct value){.shape = SHAPE(channels),
                                          .dtype = graph->types.stat,
                                          .role = ROLE_CHANNEL,
                                          .kind = graph->is_inference ? VALUE_INPUT : VALUE_ACT,
                                          .is_kept = graph->is_inference});
}

struct elem_geom graph_elem_geom(const struct shape *shape, bool has_relu)
{
    bool is_image = role_of(shape) == ROLE_IMAGE;
    return (struct elem_geom){.count = shape_count(shape),
                              .c = is_image ? shape->dim[1] : 0,
                              .plane = is_image ? shape->dim[2] * shape->dim[3] : 0,
                              .has_relu = has_relu};
}

bool graph_needs_grad(const struct graph *graph, int x)
{
    return x != NO_VALUE && graph->values[x].needs_grad;
}

/* Parameter or state OWNER.FIELD. */
int graph_owned(struct graph *graph, const char *owner, const char *field, struct value value)
{
    if (graph->err.code != ERR_NONE) {
        return NO_VALUE;
    }
    value.name = arena_printf(graph->arena, "%s.%s", owner, field);
    value.needs_grad = value.kind == VALUE_PARAM;
    return graph_add_value(graph, value);
}

int graph_owned_param(struct graph *graph, const char *owner, const char *field, struct shape shape,
                      enum role role, struct init init)
{
    return graph_owned(graph, owner, field,
                       (struct value){.shape = shape,
                                      .dtype = graph->dtype,
                                      .role = role,
                                      .kind = VALUE_PARAM,
                                      .init = init});
}

/* The values of a norm for each channel. */
int graph_owned_norm(struct graph *graph, const char *owner, const char *field,
                     enum value_kind kind, int64_t channels, double start)
{
    return graph_owned(graph, owner, field,
                       (struct value){.shape = SHAPE(channels),
                                      .dtype = graph->types.norm,
                                      .role = ROLE_CHANNEL,
                                      .kind = kind,
                                      .init = {INIT_CONST, start}});
}

int graph_input(struct graph *graph, const char *name, struct shape shape, enum dtype dtype)
{
    return graph_add_value(graph, (struct value){.name = name,
                                                 .shape = shape,
                                                 .dtype = dtype,
                                                 .role = role_of(&shape),
                                                 .kind = VALUE_INPUT,
                                                 .is_kept = true});
}
