/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/network.h"

#include "graph/fuse_choose.h"
#include "graph/streams.h"
#include "train/device.h"

/* A call's memory is free this many calls later, on any stream: tests/unit/test_wl_plans.c prints how much memory this takes
   (README, "Planned memory"). */
#define STREAMS_WINDOW 64

int network_plain(const struct train_opts *opts, struct arena *arena, bool has_ranks,
                  struct graph **ret_graph, struct err *err)
{
    const struct graph_types types = device_types(opts);
    bool is_check = opts->mode == TRAIN_CHECK || opts->mode == TRAIN_MAKE_CHECK;
    struct graph *graph = graph_new_typed(arena, &types);
    if (opts->is_inference) {
        graph_set_inference(graph);
    }
    if (has_ranks) {
        graph_set_ranks(graph, &(struct graph_ranks){.rank = opts->ranks.rank,
                                                     .n_ranks = opts->ranks.n_ranks,
                                                     .has_sync_bn = opts->has_sync_bn});
    }
    opts->model->build(
        graph, &(struct model_opts){.batch = opts->batch,
                                    .height = opts->size.height,
                                    .width = opts->size.width,
                                    .sequence = opts->size.sequence,
                                    .predictions = opts->size.predictions,
                                    .has_logits = opts->mode == TRAIN_CHECK || opts->is_inference,
                                    .label_smoothing = opts->label_smoothing,
                                    .has_dropout = !is_check && !opts->is_inference});
    *ret_graph = graph;
    return graph_finish(graph, err);
}

/* The sites that the device does faster fused, and those that it was not asked about. */
static int choose(const struct train_opts *opts, struct arena *arena, const struct backend *backend,
                  bool has_ranks, struct fuse_list *ret_list, struct err *err)
{
    const struct fuse_support support = fuse_support_hopper();
    const struct fuse_asked asked = {
        .support = &support, .backend = backend, .keeps_outputs = opts->mode == TRAIN_CHECK};
    struct graph *used_up = NULL;
    struct fuse_tally tally;
    return network_plain(opts, arena, has_ranks, &used_up, err) < 0
               ? -1
               : fuse_choose(arena, used_up, &asked, ret_list, &tally, err);
}

static int spread(const struct train_opts *opts, const struct backend *backend, struct graph *graph,
                  struct err *err)
{
    const struct streams_opts streams = {.n_streams = (int)opts->n_streams,
                                         .n_events = backend->async.n_events,
                                         .window = STREAMS_WINDOW,
                                         .bytes_of = backend->tensor_bytes,
                                         .self = backend->self};
    return streams_assign(graph, &streams, NULL, err);
}

int network_build(const struct train_opts *opts, struct arena *arena, const struct backend *backend,
                  bool has_ranks, struct graph **ret_graph, struct err *err)
{
    struct fuse_list list = {0};
    if ((opts->is_fused && choose(opts, arena, backend, has_ranks, &list, err) < 0) ||
        network_plain(opts, arena, has_ranks, ret_graph, err) < 0 ||
        (opts->is_fused && graph_fuse_listed(*ret_graph, &list, NULL, err) < 0)) {
        return -1;
    }
    return opts->n_streams > 1 ? spread(opts, backend, *ret_graph, err) : 0;
}
