/* SPDX-License-Identifier: Apache-2.0 */
/* A network of the requested size, and whether it fits. */
#include "base/base.h"

#include "train/train.h"

#include "base/log.h"
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

/* ---- what fits ---- */

/* What calls may use beside the network, from most to least: fewer streams need fewer workspaces and cost some percent where branches
   overlap; less workspace costs more, above all in FP32. */
static const struct form {
    int64_t n_streams_max;
    int64_t workspace_max_bytes; /* 0: the library's own limit */
} FORMS[] = {
    {NET_STREAMS_MAX, 0}, {2, 0}, {1, 0}, {1, 256 << 20}, {1, 64 << 20}, {1, 16 << 20},
};
#define FORM_LAST ((int)ARRAY_LEN(FORMS) - 1)

/* Left to what the driver takes when kernels are loaded and steps recorded. An estimate: never measured on a GPU. */
#define SPARE_BYTES (INT64_C(256) << 20)

static void take_form(struct train_opts *opts, const struct backend *backend, int form)
{
    int64_t most = FORMS[form].n_streams_max;
    opts->n_streams = opts->n_streams < most ? opts->n_streams : most;
    if (backend->async.limit_workspace) {
        backend->async.limit_workspace(backend->self, FORMS[form].workspace_max_bytes);
    }
}

static bool has_room(const struct net *net, int64_t *ret_free_bytes)
{
    const struct backend_async *async = &net->backend->async;
    *ret_free_bytes = async->memory_available ? async->memory_available(net->backend->self) : 0;
    return !async->memory_available || net_sizes(net).total_bytes + SPARE_BYTES <= *ret_free_bytes;
}

int train_plan_to_fit(struct train_opts *opts, struct arena *arena, const struct backend *backend,
                      const struct train_planner *planner, struct net *ret_net, struct err *err)
{
    const int64_t asked = opts->n_streams;
    int64_t needed = 0;
    int64_t free_bytes = 0;
    for (int form = 0; form <= FORM_LAST; form++) {
        bool is_room = false;
        take_form(opts, backend, form);
        if (planner->plan(planner->self, opts, arena, backend, ret_net, err) < 0) {
            return form == 0
                       ? -1
                       : err_wrap(err,
                                  "the network needs %" PRId64 " bytes of the GPU, where %" PRId64
                                  " are free; with less workspace",
                                  needed, free_bytes);
        }
        is_room = has_room(ret_net, &free_bytes);
        if (planner->agree && planner->agree(planner->self, &is_room, err) < 0) {
            return -1;
        }
        needed = form == 0 ? net_sizes(ret_net).total_bytes : needed;
        if (form > 0 && (is_room || form == FORM_LAST)) {
            log_line(LOG_WARN,
                     "with %" PRId64 " streams the network needs %" PRId64
                     " bytes of the GPU, where %" PRId64 " are free: it is planned with %" PRId64
                     ", and %" PRId64 " bytes of workspace in all",
                     asked, needed, free_bytes, opts->n_streams,
                     net_sizes(ret_net).workspace_bytes);
        }
        if (is_room || form == FORM_LAST) {
            break;
        }
        net_release(ret_net);
    }
    return 0;
}

static int plan_alone(void *self UNUSED, const struct train_opts *opts, struct arena *arena,
                      const struct backend *backend, struct net *ret_net, struct err *err)
{
    return train_plan(opts, arena, backend, NULL, ret_net, err);
}

const struct train_planner train_planner_alone = {.plan = plan_alone};

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
    struct train_opts narrow = *opts;
    narrow.n_streams = 1;
    bool is_narrow_enough =
        opts->n_streams > 1 && batch_fits(&narrow, net, opts->batch, data_bytes, room);
    int64_t largest = is_narrow_enough ? 0 : largest_batch(opts, net, data_bytes, room);
    char advice[96];
    if (is_narrow_enough) {
        snprintf(advice, sizeof(advice), "with --streams 1 it fits");
    } else if (largest > 0) {
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
