/* SPDX-License-Identifier: Apache-2.0 */
/* A network of the requested size, and whether it fits. */
#include "base/base.h"

#include "train/train.h"

#include "train/network.h"

/* Whether every step has a new batch. */
static bool is_written_often(const struct train_opts *opts)
{
    return (opts->mode == TRAIN_RUN || opts->mode == TRAIN_DESCRIBE) &&
           (opts->data_path || opts->is_fresh_data || opts->rule.n_micro > 1);
}

static int of_what(const struct train_opts *opts, struct err *err)
{
    return opts->model->kind == MODEL_TOKENS
               ? err_wrap(err, "%s, batch %" PRId64 ", sequence %" PRId64, opts->model->name,
                          opts->batch, opts->size.sequence)
               : err_wrap(err, "%s, batch %" PRId64 ", image %" PRId64 "x%" PRId64,
                          opts->model->name, opts->batch, opts->size.height, opts->size.width);
}

int train_graph(const struct train_opts *opts, struct arena *arena, struct graph **ret_graph,
                struct err *err)
{
    return network_plain(opts, arena, true, ret_graph, err) < 0 ? of_what(opts, err) : 0;
}

int train_plan(const struct train_opts *opts, struct arena *arena, const struct backend *backend,
               struct comm *comm, struct net *ret_net, struct err *err)
{
    struct graph *graph = NULL;
    if (network_build(opts, arena, backend, comm != NULL, &graph, err) < 0 ||
        net_plan_ranks(ret_net, arena, graph, backend, comm, err) < 0) {
        return of_what(opts, err);
    }
    /* The loss scale belongs to the optimiser: with half precision a check needs it, too. */
    bool is_trained = opts->mode == TRAIN_RUN || opts->mode == TRAIN_DESCRIBE ||
                      (opts->mode == TRAIN_CHECK && (opts->steps > 0 || opts->dtype == DT_F16));
    if (is_written_often(opts)) {
        net_plan_staging(ret_net, arena);
    }
    return is_trained ? net_plan_optimizer(ret_net, arena, &opts->rule, opts->decay, err) : 0;
}

/* Bytes still available to a network and its data. */
struct room {
    bool is_shared; /* the device's memory is the host's */
    int64_t device, host;
};

static bool fits(const struct net *net, int64_t data_bytes, const struct room *room)
{
    int64_t total = net_sizes(net).total_bytes;
    if (!room->is_shared) {
        return total <= room->device && data_bytes <= room->host;
    }
    return total <= room->host && data_bytes <= room->host - total;
}

static bool batch_fits(const struct train_opts *opts, const struct net *net, int64_t batch,
                       int64_t data_bytes, const struct room *room)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(net) struct net other = {0};
    struct train_opts smaller = *opts;
    struct err ignored = {0};
    smaller.batch = batch;
    /* A batch too small for a network does not fit either. */
    return train_plan(&smaller, &arena, net->backend, net->comm, &other, &ignored) == 0 &&
           fits(&other, data_bytes / opts->batch * batch, room);
}

/* Of those smaller than the requested one; 0 if none fits. */
static int64_t largest_batch(const struct train_opts *opts, const struct net *net,
                             int64_t data_bytes, const struct room *room)
{
    const struct backend_async *async = &net->backend->async;
    int64_t good = 0;
    int64_t bad = opts->batch;
    if (async->set_untimed) {
        async->set_untimed(net->backend->self, true);
    }
    while (good + 1 < bad) {
        int64_t middle = good + (bad - good) / 2;
        if (batch_fits(opts, net, middle, data_bytes, room)) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    if (async->set_untimed) {
        async->set_untimed(net->backend->self, false);
    }
    return good;
}

static int refuse_size(const struct train_opts *opts, const struct net *net, int64_t data_bytes,
                       const struct room *room, struct err *err)
{
    struct net_bytes bytes = net_sizes(net);
    int64_t largest = largest_batch(opts, net, data_bytes, room);
    char advice[96];
    if (largest > 0) {
        snprintf(advice, sizeof(advice), "the largest --batch that fits is %" PRId64, largest);
    } else {
        snprintf(advice, sizeof(advice), "no smaller --batch fits either");
    }
    if (room->is_shared) {
        return err_set(err, ERR_WORKLOAD,
                       "the network needs %" PRId64 " bytes (%" PRId64
                       " of them activations) and its data %" PRId64 ", %" PRId64
                       " are available; %s",
                       bytes.total_bytes, bytes.activation_bytes, data_bytes, room->host, advice);
    }
    return err_set(err, ERR_WORKLOAD,
                   "the network needs %" PRId64 " bytes of the GPU (%" PRId64
                   " of them activations), where %" PRId64 " are free, and its data %" PRId64
                   " of the host, where %" PRId64 " are available; %s",
                   bytes.total_bytes, bytes.activation_bytes, room->device, data_bytes, room->host,
                   advice);
}

int train_alloc(const struct train_opts *opts, struct net *net, int64_t data_bytes, struct err *err)
{
    const struct backend_async *async = &net->backend->async;
    const struct room room = {
        .is_shared = !async->memory_available,
        .device = async->memory_available ? async->memory_available(net->backend->self) : 0,
        .host = memory_available()};
    return fits(net, data_bytes, &room) ? net_alloc(net, err)
                                        : refuse_size(opts, net, data_bytes, &room, err);
}
