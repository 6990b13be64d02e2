/* SPDX-License-Identifier: Apache-2.0 */
/* --make-check: a file from which this program and any other framework can start with the same numbers. */
#include "base/base.h"

#include "train/train.h"

#include "core/safetensors.h"

static int collect(const struct net *net, struct arena *arena, struct st_tensor *tensors)
{
    int n = 0;
    for (int i = 0; i < net->graph->n_values; i++) {
        const struct value *value = &net->graph->values[i];
        if (value->kind != VALUE_PARAM && value->kind != VALUE_STATE &&
            value->kind != VALUE_INPUT) {
            continue;
        }
        int64_t bytes = shape_count(&value->shape) * dtype_bytes(value->dtype);
        char *data = arena_alloc(arena, (size_t)bytes, alignof(max_align_t));
        net_read(net, i, data);
        tensors[n++] = (struct st_tensor){.name = value->name,
                                          .dtype = value->dtype,
                                          .shape = value->shape,
                                          .data = data,
                                          .bytes = bytes};
    }
    return n;
}

int train_make_check(const struct train_opts *opts, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(cpu) struct cpu cpu = {0};
    CLEANUP(net) struct net net = {0};
    struct backend backend;
    /* No kernel runs: any backend that knows its tensors will do, and only these allocations are used. */
    if (cpu_init(&cpu, CPU_PLAIN, (int)opts->n_threads, &backend, err) < 0 ||
        train_plan(opts, &arena, &backend, NULL, &net, err) < 0 ||
        train_alloc(opts, &net, 0, err) < 0) {
        return -1;
    }
    net_init_values(&net, (uint64_t)opts->seed);
    synthetic_batch(&net, opts->model, (uint64_t)opts->seed, 0);
    struct st_tensor *tensors = arena_array(&arena, struct st_tensor, (size_t)net.graph->n_values);
    int n = collect(&net, &arena, tensors);
    return st_write(opts->out_path, tensors, n, err);
}
