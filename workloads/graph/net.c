/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "graph/net.h"

#include <math.h>

#include "base/rng.h"

#define WORKSPACE_ALIGN 256 /* as cudaMalloc's; more than any kernel needs */

static void unprepare(struct net *net, int n)
{
    for (int i = 0; i < n; i++) {
        net->backend->unprepare(net->backend->self, &net->calls[i].args);
    }
}

/* Calls of one stream follow each other and share a workspace; each stream has its own. */
static void place_workspaces(struct net *net)
{
    int64_t bytes[NET_STREAMS_MAX] = {0};
    for (int i = 0; i < net->graph->n_calls; i++) {
        const struct kernel_args *args = &net->calls[i].args;
        ASSERT(args->stream >= 0 && args->stream < net->n_streams);
        if (args->workspace_bytes > bytes[args->stream]) {
            bytes[args->stream] = args->workspace_bytes;
        }
    }
    for (int i = 0; i < net->n_streams; i++) {
        net->stream_at[i] = net->workspace_bytes;
        net->workspace_bytes +=
            (bytes[i] + WORKSPACE_ALIGN - 1) / WORKSPACE_ALIGN * WORKSPACE_ALIGN;
    }
}

static int prepare(struct net *net, struct err *err)
{
    const struct backend *backend = net->backend;
    for (int i = 0; i < net->graph->n_calls; i++) {
        struct kernel_args *args = &net->calls[i].args;
        args->comm = net->comm;
        ASSERT(!net->comm || args->stream == 0 || backend->async.join_ranks);
        args->has_in = 0;
        for (int k = 0; k < KERNEL_IN_MAX; k++) {
            args->has_in |= (unsigned)(net->calls[i].in[k] != NO_VALUE) << k;
        }
        if (!backend->run[args->id]) {
            unprepare(net, i);
            return err_set(err, ERR_USAGE, "backend %s has no kernel %s", backend->name,
                           kernel_name(args->id));
        }
        if (backend->prepare(backend->self, args, err) < 0) {
            unprepare(net, i);
            return err_wrap(err, "backend %s", backend->name);
        }
    }
    place_workspaces(net);
    return 0;
}

/* Gradients are stored in the order in which they become complete, so a bucket is ready with its last one. */
static void plan_buckets(struct net *net, struct arena *arena)
{
    const struct graph *graph = net->graph;
    bool is_on_device = net->backend->async.join_ranks != NULL;
    int64_t least = is_on_device ? NET_BUCKET_DEVICE_BYTES : NET_BUCKET_BYTES;
    int64_t start = 0;
    int first = 0;
    net->runs = arena_array(arena, struct comm_run, (size_t)graph->n_params + 1);
    net->buckets = arena_array(arena, struct net_bucket, (size_t)graph->n_params + 1);
    for (int i = 0; i < graph->n_params; i++) {
        const struct place *place = &net->plan.places[graph->grad_order[i]];
        int64_t end = place->offset_bytes + place->size_bytes;
        if (end - start >= least || i == graph->n_params - 1) {
            net->buckets[net->n_buckets++] = (struct net_bucket){.offset_bytes = start,
                                                                 .size_bytes = end - start,
                                                                 .first_param = first,
                                                                 .n_params = i + 1 - first,
                                                                 .last_call = graph->grad_ready[i]};
            start = end;
            first = i + 1;
        }
    }
}

int net_plan(struct net *net, struct arena *arena, const struct graph *graph,
             const struct backend *backend, struct err *err)
{
    ASSERT(graph->ranks.n_ranks == 1);
    return net_plan_ranks(net, arena, graph, backend, NULL, err);
}

int net_plan_ranks(struct net *net, struct arena *arena, const struct graph *graph,
                   const struct backend *backend, struct comm *comm, struct err *err)
{
    bool has_ranks = graph->ranks.n_ranks > 1;
    ASSERT(!has_ranks || comm);
    *net = (struct net){.graph = graph,
                        .backend = backend,
                        .comm = has_ranks ? comm : NULL,
                        .n_streams = backend->async.n_streams};
    ASSERT(net->n_streams >= 1 && net->n_streams <= NET_STREAMS_MAX);
    if (memplan_make(arena, graph, backend->tensor_bytes, backend->self, &net->plan, err) < 0) {
        return -1;
    }
    if (net->comm && backend->async.join_ranks &&
        backend->async.join_ranks(backend->self, net->comm, err) < 0) {
        *net = (struct net){0};
        return -1;
    }
    net->calls = arena_array(arena, struct call, (size_t)graph->n_calls);
    memcpy(net->calls, graph->calls, (size_t)graph->n_calls * sizeof(*net->calls));
    if (prepare(net, err) < 0) {
        *net = (struct net){0};
        return -1;
    }
    if (net->comm && !graph->is_inference) {
        plan_buckets(net, arena);
    }
    return 0;
}

void net_share(struct net *net, struct arena *arena, const struct net *owner)
{
    const struct graph *graph = net->graph;
    ASSERT(graph->is_inference && owner->backend == net->backend);
    net->owner = owner;
    net->owned = arena_array(arena, int, (size_t)graph->n_values + 1);
    for (int i = 0; i < graph->n_values; i++) {
        const struct value *value = &graph->values[i];
        net->owned[i] = NO_VALUE;
        if (value->kind == VALUE_PARAM || value->kind == VALUE_STATE) {
            int there = graph_find(owner->graph, value->name);
            ASSERT(there != NO_VALUE);
            ASSERT(owner->graph->values[there].dtype == value->dtype);
            ASSERT(shape_eq(&owner->graph->values[there].shape, &value->shape));
            net->owned[i] = there;
        }
    }
    net->plan.arena_bytes[MEMPLAN_PARAM] = 0;
    net->plan.arena_bytes[MEMPLAN_STATE] = 0;
}

void net_plan_staging(struct net *net, struct arena *arena)
{
    const struct graph *graph = net->graph;
    if (!net->backend->async.upload_async) {
        return;
    }
    net->staging_at = arena_array(arena, int64_t, (size_t)graph->n_values);
    for (int i = 0; i < graph->n_values; i++) {
        if (graph->values[i].kind == VALUE_INPUT) {
            net->staging_at[i] = net->staging_bytes;
            net->staging_bytes += (net->plan.places[i].size_bytes + WORKSPACE_ALIGN - 1) /
                                  WORKSPACE_ALIGN * WORKSPACE_ALIGN;
        }
    }
}

struct net_bytes net_sizes(const struct net *net)
{
    const int64_t *arenas = net->plan.arena_bytes;
    struct net_bytes bytes = {
        .parameter_bytes = arenas[MEMPLAN_PARAM],
        .gradient_bytes = arenas[MEMPLAN_GRAD],
        .state_bytes = arenas[MEMPLAN_STATE],
        .optimizer_bytes = net_optimizer_bytes(net),
        .activation_bytes = arenas[MEMPLAN_ACT],
        .workspace_bytes = net->workspace_bytes,
        .staging_bytes = net->staging_bytes,
    };
    bytes.total_bytes = bytes.parameter_bytes + bytes.gradient_bytes + bytes.optimizer_bytes +
                        bytes.state_bytes + bytes.activation_bytes + bytes.workspace_bytes +
                        bytes.staging_bytes;
    return bytes;
}

static void *value_ptr(const struct net *net, int value)
{
    if (value == NO_VALUE) {
        return NULL;
    }
    bool is_theirs = net->owned && net->owned[value] != NO_VALUE;
    const struct net *in = is_theirs ? net->owner : net;
    const struct place *place = &in->plan.places[is_theirs ? net->owned[value] : value];
    return (char *)in->mem[place->arena] + place->offset_bytes;
}

static void bind_calls(struct net *net)
{
    for (int i = 0; i < net->graph->n_calls; i++) {
        struct call *call = &net->calls[i];
        for (int j = 0; j < KERNEL_IN_MAX; j++) {
            call->args.in[j] = value_ptr(net, call->in[j]);
        }
        for (int j = 0; j < KERNEL_OUT_MAX; j++) {
            call->args.out[j] = value_ptr(net, call->out[j]);
        }
        call->args.workspace = (char *)net->workspace + net->stream_at[call->args.stream];
        /* The optimiser's state has the scale for half precision. */
        bool is_scaled = net->graph->dtype == DT_F16 && net->has_optimizer;
        call->args.loss_scale = is_scaled ? &net->update.state->loss_scale : NULL;
    }
}

static int alloc_one(const struct net *net, int64_t bytes, void **ret_ptr, struct err *err)
{
    *ret_ptr = net->backend->alloc(net->backend->self, bytes);
    return *ret_ptr ? 0
                    : err_set(err, ERR_WORKLOAD, "no memory for %" PRId64 " bytes on %s", bytes,
                              net->backend->name);
}

int net_alloc(struct net *net, struct err *err)
{
    for (int i = 0; i < MEMPLAN_ARENA_COUNT; i++) {
        if (alloc_one(net, net->plan.arena_bytes[i], &net->mem[i], err) < 0) {
            return -1;
        }
    }
    if (net_alloc_optimizer(net, err) < 0 ||
        alloc_one(net, net->workspace_bytes, &net->workspace, err) < 0 ||
        (net->staging_bytes > 0 && alloc_one(net, net->staging_bytes, &net->staging, err) < 0)) {
        return -1;
    }
    bind_calls(net);
    return 0;
}

void net_release(struct net *net)
{
    if (!net->backend) {
        return;
    }
    unprepare(net, net->graph->n_calls);
    for (int i = 0; i < MEMPLAN_ARENA_COUNT; i++) {
        net->backend->free(net->backend->self, net->mem[i]);
    }
    net_release_optimizer(net);
    net->backend->free(net->backend->self, net->workspace);
    net->backend->free(net->backend->self, net->staging);
    *net = (struct net){0};
}

void net_write(struct net *net, int value, const void *host)
{
    const struct value *v = &net->graph->values[value];
    const struct tensor_desc desc = value_desc(v);
    if (net->staging && v->kind == VALUE_INPUT) {
        void *staging = (char *)net->staging + net->staging_at[value];
        net->backend->async.upload_async(net->backend->self, &desc, host, staging,
                                         value_ptr(net, value));
        return;
    }
    net->backend->upload(net->backend->self, &desc, host, value_ptr(net, value));
    if (v->kind == VALUE_PARAM && net_has_opt(net, value, NET_MASTER)) {
        net_write_opt(net, value, NET_MASTER, host);
    }
}

bool net_takes_images(const struct net *net)
{
    return net->backend->async.open_images != NULL && net->staging_bytes > 0;
}

int net_open_images(struct net *net, int64_t image_bytes_max, struct err *err)
{
    return net->backend->async.open_images(net->backend->self, image_bytes_max, err);
}

static struct image_place image_place(const struct net *net, int value)
{
    const struct tensor_desc desc = value_desc(&net->graph->values[value]);
    return (struct image_place){
        .staging = (char *)net->staging + net->staging_at[value],
        .device = value_ptr(net, value),
        .bytes = net->backend->tensor_bytes(net->backend->self, &desc),
    };
}

void net_write_images(struct net *net, int input, int labels, const struct image_batch *batch)
{
    ASSERT(net->staging);
    const struct image_place pixels = image_place(net, input);
    struct image_place pixel_labels = {0};
    if (labels != NO_VALUE) {
        pixel_labels = image_place(net, labels);
    }
    net->backend->async.images_async(net->backend->self, batch, &pixels,
                                     labels != NO_VALUE ? &pixel_labels : NULL);
}

void net_read(const struct net *net, int value, void *host)
{
    const struct value *v = &net->graph->values[value];
    const struct tensor_desc desc = value_desc(v);
    net->backend->download(net->backend->self, &desc, value_ptr(net, value), host);
}

void net_write_f64(struct net *net, int value, const double *host)
{
    const struct value *v = &net->graph->values[value];
    if (v->dtype == DT_F64) {
        net_write(net, value, host);
        return;
    }
    ASSERT(v->dtype == DT_F32 || v->dtype == DT_F16); /* a host holds both as float */
    int64_t count = shape_count(&v->shape);
    CLEANUP(free) float *narrow = xcalloc((size_t)count, sizeof(*narrow));
    for (int64_t i = 0; i < count; i++) {
        narrow[i] = (float)host[i];
    }
    net_write(net, value, narrow);
}

static double *read_f64(const struct net *net, int value)
{
    const struct value *v = &net->graph->values[value];
    int64_t count = shape_count(&v->shape);
    double *wide = xcalloc((size_t)count, sizeof(*wide));
    if (v->dtype == DT_F64) {
        net_read(net, value, wide);
        return wide;
    }
    CLEANUP(free) float *narrow = xcalloc((size_t)count, sizeof(*narrow));
    net_read(net, value, narrow);
    for (int64_t i = 0; i < count; i++) {
        wide[i] = (double)narrow[i];
    }
    return wide;
}

void net_take_running(struct net *net, struct comm *comm)
{
    ASSERT(net->graph->is_inference);
    for (int i = 0; i < net->graph->n_ops; i++) {
        const struct op *op = &net->graph->ops[i];
        if (op->kind != OP_BN) {
            continue;
        }
        CLEANUP(free) double *mean = read_f64(net, op->in[3]);
        CLEANUP(free) double *rstd = read_f64(net, op->in[4]);
        for (int64_t c = 0; c < op->geom.bn.c; c++) {
            rstd[c] = 1.0 / sqrt(rstd[c] + op->geom.bn.eps);
        }
        if (comm) {
            comm_broadcast(comm, mean, op->geom.bn.c * (int64_t)sizeof(*mean), 0);
            comm_broadcast(comm, rstd, op->geom.bn.c * (int64_t)sizeof(*rstd), 0);
        }
        net_write_f64(net, op->out[1], mean);
        net_write_f64(net, op->out[2], rstd);
    }
}

/* Each value has a random stream of its own, from the seed and its name, so that it does not depend on the other
   values. Source of the hash: FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/, 64 bits. */
static uint64_t name_seed(uint64_t seed, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char *c = name; *c; c++) {
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ULL;
    }
    struct rng rng;
    rng_init(&rng, seed);
    return rng_u64(&rng) ^ hash;
}

static double draw(struct rng *rng, const struct init *init)
{
    switch (init->kind) {
    case INIT_NORMAL:
        return init->scale * rng_normal(rng);
    case INIT_UNIFORM:
        return init->scale * (2.0 * rng_f64(rng) - 1.0);
    case INIT_CONST:
        break;
    }
    return init->scale;
}

void net_init_values(struct net *net, uint64_t seed)
{
    for (int i = 0; i < net->graph->n_values; i++) {
        const struct value *value = &net->graph->values[i];
        if (value->kind != VALUE_PARAM && value->kind != VALUE_STATE) {
            continue;
        }
        int64_t count = shape_count(&value->shape);
        CLEANUP(free) double *host = xcalloc((size_t)count, sizeof(*host));
        struct rng rng;
        rng_init(&rng, name_seed(seed, value->name));
        for (int64_t j = 0; j < count; j++) {
            host[j] = draw(&rng, &value->init);
        }
        net_write_f64(net, i, host);
    }
}

void net_broadcast_memory(struct net *net, void *data, int64_t bytes)
{
    const struct backend_async *async = &net->backend->async;
    if (bytes > 0 && async->broadcast_ranks) {
        async->broadcast_ranks(net->backend->self, data, bytes, 0);
    } else {
        comm_broadcast(net->comm, data, bytes, 0);
    }
}

void net_broadcast(struct net *net)
{
    if (net->comm) {
        net_broadcast_memory(net, net->mem[MEMPLAN_PARAM], net->plan.arena_bytes[MEMPLAN_PARAM]);
        if (net->has_masters) {
            net_broadcast_memory(net, net->update.master, net->wide_bytes);
        }
        net_broadcast_memory(net, net->mem[MEMPLAN_STATE], net->plan.arena_bytes[MEMPLAN_STATE]);
    }
}

/* With half precision a norm's gradients are float among filters' of half: stretches of one type each, in one operation. */
static void sum_on_device(struct net *net, const struct net_bucket *bucket)
{
    const struct graph *graph = net->graph;
    int n = 0;
    for (int i = bucket->first_param; i < bucket->first_param + bucket->n_params; i++) {
        int grad = graph->values[graph->grad_order[i]].grad;
        const struct place *place = &net->plan.places[grad];
        enum dtype dtype = graph->values[grad].dtype;
        char *data = (char *)net->mem[MEMPLAN_GRAD] + place->offset_bytes;
        int64_t count = place->size_bytes / dtype_bytes(dtype);
        struct comm_run *last = &net->runs[n > 0 ? n - 1 : 0];
        if (n > 0 && last->dtype == dtype &&
            (char *)last->to + last->count * dtype_bytes(dtype) == data) {
            last->count += count;
        } else {
            net->runs[n++] = (struct comm_run){data, data, count, dtype};
        }
    }
    net->backend->async.sum_ranks(net->backend->self, net->runs, n);
}

static void sum_bucket(struct net *net, const struct net_bucket *bucket)
{
    if (net->backend->async.sum_ranks) {
        sum_on_device(net, bucket);
        return;
    }
    /* The gaps between gradients are zero on every rank and stay so. */
    comm_all_reduce(net->comm, (char *)net->mem[MEMPLAN_GRAD] + bucket->offset_bytes,
                    bucket->size_bytes / dtype_bytes(net->graph->dtype), net->graph->dtype);
}

bool net_gradients(struct net *net, const volatile sig_atomic_t *stop)
{
    bool is_summed_later = net->has_optimizer && net->update.rule.n_micro > 1;
    int bucket = is_summed_later ? net->n_buckets : 0;
    const struct backend_async *async = &net->backend->async;
    if (net->n_streams > 1) {
        async->fork(net->backend->self);
    }
    for (int i = 0; i < net->graph->n_calls; i++) {
        if ((stop && *stop != 0) || (net->comm && comm_has_failed(net->comm))) {
            return true;
        }
        const struct call *call = &net->calls[i];
        for (int w = 0; w < call->n_waits; w++) {
            async->wait(net->backend->self, call->waits[w], call->args.stream);
        }
        net->backend->run[call->args.id](net->backend->self, &call->args);
        if (call->is_recorded) {
            async->record(net->backend->self, call->event, call->args.stream);
        }
        for (; bucket < net->n_buckets && net->buckets[bucket].last_call == i; bucket++) {
            sum_bucket(net, &net->buckets[bucket]);
        }
    }
    if (net->n_streams > 1) {
        async->join(net->backend->self);
    }
    if (net->comm && async->end_sums) {
        async->end_sums(net->backend->self);
    }
    net_add_micro(net);
    return net->comm && net->comm->err.code != ERR_NONE;
}

double net_loss(const struct net *net)
{
    if (net->graph->types.norm == DT_F64) {
        double loss;
        net_read(net, net->graph->loss, &loss);
        return loss;
    }
    float loss;
    net_read(net, net->graph->loss, &loss);
    return (double)loss;
}
