/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "graph/net.h"

#include "base/rng.h"

static void unprepare(struct net *net, int n)
{
    for (int i = 0; i < n; i++) {
        net->backend->unprepare(net->backend->self, &net->calls[i].args);
    }
}

static int prepare(struct net *net, struct err *err)
{
    const struct backend *backend = net->backend;
    for (int i = 0; i < net->graph->n_calls; i++) {
        struct kernel_args *args = &net->calls[i].args;
        if (!backend->run[args->id]) {
            unprepare(net, i);
            return err_set(err, ERR_USAGE, "backend %s has no kernel %s", backend->name,
                           kernel_name(args->id));
        }
        if (backend->prepare(backend->self, args, err) < 0) {
            unprepare(net, i);
            return err_wrap(err, "backend %s", backend->name);
        }
        if (args->workspace_bytes > net->workspace_bytes) {
            net->workspace_bytes = args->workspace_bytes;
        }
    }
    return 0;
}

int net_plan(struct net *net, struct arena *arena, const struct graph *graph,
             const struct backend *backend, struct err *err)
{
    *net = (struct net){.graph = graph, .backend = backend};
    if (memplan_make(arena, graph, backend->tensor_bytes, backend->self, &net->plan, err) < 0) {
        return -1;
    }
    net->calls = arena_array(arena, struct call, (size_t)graph->n_calls);
    memcpy(net->calls, graph->calls, (size_t)graph->n_calls * sizeof(*net->calls));
    if (prepare(net, err) < 0) {
        *net = (struct net){0};
        return -1;
    }
    return 0;
}

struct net_bytes net_sizes(const struct net *net)
{
    const int64_t *arenas = net->plan.arena_bytes;
    struct net_bytes bytes = {
        .parameter_bytes = arenas[MEMPLAN_PARAM],
        .gradient_bytes = arenas[MEMPLAN_GRAD],
        .velocity_bytes = arenas[MEMPLAN_PARAM],
        .state_bytes = arenas[MEMPLAN_STATE],
        .activation_bytes = arenas[MEMPLAN_ACT],
        .workspace_bytes = net->workspace_bytes,
    };
    bytes.total_bytes = bytes.parameter_bytes + bytes.gradient_bytes + bytes.velocity_bytes +
                        bytes.state_bytes + bytes.activation_bytes + bytes.workspace_bytes;
    return bytes;
}

static void *value_ptr(const struct net *net, int value)
{
    if (value == NO_VALUE) {
        return NULL;
    }
    const struct place *place = &net->plan.places[value];
    return (char *)net->mem[place->arena] + place->offset_bytes;
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
        call->args.workspace = net->workspace;
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
    if (alloc_one(net, net->plan.arena_bytes[MEMPLAN_PARAM], &net->velocity, err) < 0 ||
        alloc_one(net, net->workspace_bytes, &net->workspace, err) < 0) {
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
    net->backend->free(net->backend->self, net->velocity);
    net->backend->free(net->backend->self, net->workspace);
    *net = (struct net){0};
}

void net_write(struct net *net, int value, const void *host)
{
    const struct value *v = &net->graph->values[value];
    net->backend->upload(net->backend->self, &v->shape, v->dtype, host, value_ptr(net, value));
}

void net_read(const struct net *net, int value, void *host)
{
    const struct value *v = &net->graph->values[value];
    net->backend->download(net->backend->self, &v->shape, v->dtype, value_ptr(net, value), host);
}

void net_write_f64(struct net *net, int value, const double *host)
{
    const struct value *v = &net->graph->values[value];
    if (v->dtype == DT_F64) {
        net_write(net, value, host);
        return;
    }
    ASSERT(v->dtype == DT_F32);
    int64_t count = shape_count(&v->shape);
    CLEANUP(free) float *narrow = xcalloc((size_t)count, sizeof(*narrow));
    for (int64_t i = 0; i < count; i++) {
        narrow[i] = (float)host[i];
    }
    net_write(net, value, narrow);
}

/* Each value has a stream of its own, from the seed and its name, so that it does not depend on what else is there.
   Source of the hash: FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/, 64 bits. */
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

bool net_gradients(struct net *net, const volatile sig_atomic_t *stop)
{
    for (int i = 0; i < net->graph->n_calls; i++) {
        if (stop && *stop != 0) {
            return true;
        }
        const struct kernel_args *args = &net->calls[i].args;
        net->backend->run[args->id](net->backend->self, args);
    }
    return false;
}

double net_loss(const struct net *net)
{
    if (net->graph->dtype == DT_F64) {
        double loss;
        net_read(net, net->graph->loss, &loss);
        return loss;
    }
    float loss;
    net_read(net, net->graph->loss, &loss);
    return (double)loss;
}

void net_update(struct net *net, const struct net_sgd *sgd)
{
    /* The gaps between tensors are zero in all three arenas and stay so. */
    struct sgd_args args = {
        .dtype = net->graph->dtype,
        .count = net->plan.arena_bytes[MEMPLAN_PARAM] / dtype_bytes(net->graph->dtype),
        .weight = net->mem[MEMPLAN_PARAM],
        .velocity = net->velocity,
        .grad = net->mem[MEMPLAN_GRAD],
        .lr = sgd->lr,
        .momentum = sgd->momentum,
        .weight_decay = sgd->weight_decay,
    };
    net->backend->sgd(net->backend->self, &args);
}
