/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "graph/traffic.h"

static int64_t value_bytes(const struct graph *graph, int value, memplan_bytes_fn bytes_of,
                           void *self)
{
    const struct tensor_desc desc = value_desc(&graph->values[value]);
    return bytes_of(self, &desc);
}

/* A value that occurs twice is read once. */
static bool is_repeated(const struct call *call, int slot)
{
    for (int k = 0; k < slot; k++) {
        if (call->in[k] == call->in[slot]) {
            return true;
        }
    }
    return false;
}

/* Inputs that are read only in part, as much as the output needs: a slice, rows of a table. */
static bool is_partly_read(enum kernel_id id, int slot)
{
    return (id == K_CONCAT_BWD && slot == 0) || (id == K_GATHER_FWD && slot == 0) ||
           (id == K_EMBED_FWD && slot >= 2);
}

/* Batch norm needs a sum over the whole tensor before it can use the tensor, so it reads it twice. */
static bool is_read_twice(enum kernel_id id, int slot)
{
    bool is_forward = id == K_BN_FWD || id == K_BN_ADD_FWD;
    bool is_backward = id == K_BN_BWD || id == K_BN_ADD_BWD;
    return (is_forward && slot == 0) || (is_backward && (slot == 0 || slot == 1 || slot == 5));
}

struct traffic traffic_of_call(const struct graph *graph, const struct call *call,
                               memplan_bytes_fn bytes_of, void *self)
{
    struct traffic traffic = {0};
    int64_t out_bytes =
        call->out[0] == NO_VALUE ? 0 : value_bytes(graph, call->out[0], bytes_of, self);
    for (int k = 0; k < KERNEL_IN_MAX; k++) {
        if (call->in[k] == NO_VALUE || is_repeated(call, k)) {
            continue;
        }
        int64_t bytes = value_bytes(graph, call->in[k], bytes_of, self);
        bool is_part = is_partly_read(call->args.id, k) && out_bytes < bytes;
        traffic.floor_bytes += is_part ? out_bytes : bytes;
        traffic.reread_bytes += is_read_twice(call->args.id, k) ? bytes : 0;
    }
    for (int j = 0; j < KERNEL_OUT_MAX; j++) {
        if (call->out[j] != NO_VALUE) {
            int64_t bytes = value_bytes(graph, call->out[j], bytes_of, self);
            traffic.floor_bytes += (call->reads_out >> j & 1U) != 0 ? 2 * bytes : bytes;
        }
    }
    return traffic;
}
