/* SPDX-License-Identifier: Apache-2.0 */
/* Fuses everything that a library supports; counts what all calls of a graph move. */
#pragma once

#include "graph/fuse.h"
#include "graph/traffic.h"

static UNUSED bool wants_supported(void *self, const struct graph *graph, enum fuse_pattern pattern,
                                   int op)
{
    return fuse_supports(self, graph, pattern, op);
}

/* All that `support` allows (borrowed). */
static UNUSED struct fuse_policy fuse_supported(const struct fuse_support *support)
{
    return (struct fuse_policy){.wants = wants_supported, .self = (void *)(uintptr_t)support};
}

/* All calls of a step: forward and backward, no optimiser. */
static UNUSED struct traffic traffic_of_graph(const struct graph *graph, memplan_bytes_fn bytes_of,
                                              void *self)
{
    struct traffic total = {0};
    for (int i = 0; i < graph->n_calls; i++) {
        const struct traffic one = traffic_of_call(graph, &graph->calls[i], bytes_of, self);
        total.floor_bytes += one.floor_bytes;
        total.reread_bytes += one.reread_bytes;
    }
    return total;
}
