/* SPDX-License-Identifier: Apache-2.0 */
/* A network's optimiser: the places of masters, moments and sums, and the updates (core/optim.h). */
#include "base/base.h"

#include "graph/net.h"

static struct tensor_desc wide_desc(const struct value *value, enum dtype wide)
{
    return (struct tensor_desc){value->shape, wide, value->role};
}

static const struct tensor_desc STATE_DESC = {
    .shape = {.n_dims = 1, .dim = {sizeof(struct opt_state) / sizeof(int64_t)}},
    .dtype = DT_I64,
};

/* Biases and norms' parameters are vectors; BERT's implementations decay only matrices. */
static bool has_decay(const struct value *value, enum net_decay decay)
{
    return decay == NET_DECAY_ALL || value->shape.n_dims > 1;
}

static struct opt_segment segment_of(const struct net *net, int param, enum net_decay decay,
                                     int64_t wide)
{
    const struct value *value = &net->graph->values[param];
    const struct tensor_desc desc = value_desc(value);
    enum dtype wide_type = value->dtype == DT_F64 ? DT_F64 : DT_F32;
    int64_t bytes = net->backend->tensor_bytes(net->backend->self, &desc);
    return (struct opt_segment){
        .param = net->plan.places[param].offset_bytes,
        .grad = net->plan.places[value->grad].offset_bytes,
        .wide = wide,
        .count = bytes / dtype_bytes(value->dtype),
        .param_type = (int32_t)value->dtype,
        .wide_type = (int32_t)wide_type,
        .has_master = value->dtype != wide_type,
        .has_decay = has_decay(value, decay),
    };
}

int net_plan_optimizer(struct net *net, struct arena *arena, const struct opt_rule *rule,
                       enum net_decay decay, struct err *err)
{
    const struct graph *graph = net->graph;
    ASSERT(!net->has_optimizer && rule->n_micro >= 1);
    struct opt_segment *segments =
        arena_array(arena, struct opt_segment, (size_t)graph->n_params + 1);
    net->wide_bytes = 0;
    for (int i = 0; i < graph->n_params; i++) {
        segments[i] = segment_of(net, graph->grad_order[i], decay, net->wide_bytes);
        int64_t bytes = segments[i].count * dtype_bytes((enum dtype)segments[i].wide_type);
        net->wide_bytes +=
            (bytes + MEMPLAN_ALIGN_BYTES - 1) / MEMPLAN_ALIGN_BYTES * MEMPLAN_ALIGN_BYTES;
        net->has_masters = net->has_masters || segments[i].has_master;
    }
    net->update =
        (struct opt_args){.rule = *rule, .segments = segments, .n_segments = graph->n_params};
    if (net->backend->prepare_update(net->backend->self, &net->update, err) < 0) {
        return err_wrap(err, "backend %s", net->backend->name);
    }
    net->has_optimizer = true;
    return 0;
}

int64_t net_optimizer_bytes(const struct net *net)
{
    if (!net->has_optimizer) {
        return 0;
    }
    const struct opt_rule *rule = &net->update.rule;
    int n_wide = 1 + opt_has_moment2(rule->method) + net->has_masters + (rule->n_micro > 1);
    return n_wide * net->wide_bytes + net->update.workspace_bytes +
           (int64_t)sizeof(struct opt_state);
}

static int take(struct net *net, int64_t bytes, bool is_wanted, void **ret_ptr, struct err *err)
{
    if (!is_wanted) {
        return 0;
    }
    *ret_ptr = net->backend->alloc(net->backend->self, bytes);
    return *ret_ptr ? 0
                    : err_set(err, ERR_WORKLOAD, "no memory for %" PRId64 " bytes on %s", bytes,
                              net->backend->name);
}

int net_alloc_optimizer(struct net *net, struct err *err)
{
    struct opt_args *args = &net->update;
    int64_t wide = net->wide_bytes;
    void *state = NULL;
    if (!net->has_optimizer) {
        return 0;
    }
    int status = take(net, sizeof(struct opt_state), true, &state, err);
    args->state = state;
    if (status < 0 || take(net, wide, net->has_masters, &args->master, err) < 0 ||
        take(net, wide, true, &args->moment1, err) < 0 ||
        take(net, wide, opt_has_moment2(args->rule.method), &args->moment2, err) < 0 ||
        take(net, wide, args->rule.n_micro > 1, &args->sum, err) < 0 ||
        take(net, args->workspace_bytes, args->workspace_bytes > 0, &args->workspace, err) < 0) {
        return -1;
    }
    args->param = net->mem[MEMPLAN_PARAM];
    args->grad = net->mem[MEMPLAN_GRAD];
    struct opt_state start = opt_state_start(&args->rule);
    net_write_opt_state(net, &start);
    return 0;
}

void net_release_optimizer(struct net *net)
{
    const struct backend *backend = net->backend;
    if (net->has_optimizer) {
        void *const owned[] = {net->update.state,   net->update.master, net->update.moment1,
                               net->update.moment2, net->update.sum,    net->update.workspace};
        for (size_t i = 0; i < ARRAY_LEN(owned); i++) {
            backend->free(backend->self, owned[i]);
        }
        backend->unprepare_update(backend->self, &net->update);
    }
}

/* ---- single values ---- */

static const struct opt_segment *find_segment(const struct net *net, int param)
{
    for (int i = 0; net->has_optimizer && i < net->graph->n_params; i++) {
        if (net->graph->grad_order[i] == param) {
            return &net->update.segments[i];
        }
    }
    return NULL;
}

static void *opt_memory(const struct net *net, enum net_opt_part part)
{
    switch (part) {
    case NET_MASTER:
        return net->update.master;
    case NET_MOMENT1:
        return net->update.moment1;
    case NET_MOMENT2:
        break;
    }
    return net->update.moment2;
}

bool net_has_opt(const struct net *net, int param, enum net_opt_part part)
{
    const struct opt_segment *segment = find_segment(net, param);
    bool is_planned = part == NET_MASTER    ? segment && segment->has_master
                      : part == NET_MOMENT2 ? opt_has_moment2(net->update.rule.method)
                                            : true;
    return segment &&
           is_planned; /* before net_alloc, too: a checkpoint is checked against the plan */
}

void net_write_opt(struct net *net, int param, enum net_opt_part part, const void *host)
{
    const struct opt_segment *segment = find_segment(net, param);
    ASSERT(segment && opt_memory(net, part));
    const struct tensor_desc desc =
        wide_desc(&net->graph->values[param], (enum dtype)segment->wide_type);
    net->backend->upload(net->backend->self, &desc, host,
                         (char *)opt_memory(net, part) + segment->wide);
}

void net_read_opt(const struct net *net, int param, enum net_opt_part part, void *host)
{
    const struct opt_segment *segment = find_segment(net, param);
    ASSERT(segment && opt_memory(net, part));
    const struct tensor_desc desc =
        wide_desc(&net->graph->values[param], (enum dtype)segment->wide_type);
    net->backend->download(net->backend->self, &desc,
                           (const char *)opt_memory(net, part) + segment->wide, host);
}

void net_write_opt_state(struct net *net, const struct opt_state *state)
{
    net->backend->upload(net->backend->self, &STATE_DESC, state, net->update.state);
}

void net_read_opt_state(const struct net *net, struct opt_state *ret_state)
{
    net->backend->download(net->backend->self, &STATE_DESC, net->update.state, ret_state);
}

void net_broadcast_optimizer(struct net *net)
{
    if (net->comm) {
        net_broadcast_memory(net, net->update.moment1, net->wide_bytes);
        if (net->update.moment2) {
            net_broadcast_memory(net, net->update.moment2, net->wide_bytes);
        }
        net_broadcast_memory(net, net->update.state, sizeof(struct opt_state));
    }
}

/* ---- updates ---- */

static void sum_over_ranks(struct net *net)
{
    const struct backend *backend = net->backend;
    enum dtype wide = (enum dtype)net->update.segments[0].wide_type;
    int64_t count = net->wide_bytes / dtype_bytes(wide);
    if (backend->async.sum_ranks) {
        const struct comm_run run = {net->update.sum, net->update.sum, count, wide};
        backend->async.sum_ranks(backend->self, &run, 1);
        backend->async.end_sums(backend->self);
    } else {
        comm_all_reduce(net->comm, net->update.sum, count, wide);
    }
}

/* Called after each backward pass; the last of an update sums over the ranks. */
void net_add_micro(struct net *net)
{
    if (!net->has_optimizer || net->update.rule.n_micro == 1) {
        return;
    }
    net->backend->add_gradients(net->backend->self, &net->update, net->n_micro_done == 0);
    net->n_micro_done++;
    if (net->n_micro_done == net->update.rule.n_micro && net->comm) {
        sum_over_ranks(net);
    }
}

void net_set_lr(struct net *net, double lr)
{
    net->backend->set_hyper(net->backend->self, &net->update, &(struct opt_hyper){.lr = lr});
}

void net_apply_update(struct net *net)
{
    ASSERT(net->has_optimizer);
    ASSERT(net->update.rule.n_micro == 1 || net->n_micro_done == net->update.rule.n_micro);
    net->n_micro_done = 0;
    net->backend->update(net->backend->self, &net->update);
}

void net_update(struct net *net, double lr)
{
    net_set_lr(net, lr);
    net_apply_update(net);
}
