/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/train.h"

#include "core/mlog.h"
#include "train/feed.h"

#include <math.h>

int train_plan(const struct train_opts *opts, struct arena *arena, const struct backend *backend,
               struct net *ret_net, struct err *err)
{
    struct graph *graph = graph_new(arena, opts->dtype);
    opts->model->build(graph, &(struct model_opts){.batch = opts->batch,
                                                   .height = opts->height,
                                                   .width = opts->width,
                                                   .label_smoothing = opts->label_smoothing,
                                                   .has_dropout = opts->mode != TRAIN_CHECK});
    if (graph_finish(graph, err) < 0 || net_plan(ret_net, arena, graph, backend, err) < 0) {
        return err_wrap(err, "%s, batch %" PRId64 ", image %" PRId64 "x%" PRId64, opts->model->name,
                        opts->batch, opts->height, opts->width);
    }
    return 0;
}

int train_alloc(struct net *net, int64_t data_bytes, struct err *err)
{
    struct net_bytes bytes = net_sizes(net);
    int64_t available = memory_available();
    if (bytes.total_bytes > available || data_bytes > available - bytes.total_bytes) {
        return err_set(err, ERR_WORKLOAD,
                       "the network needs %" PRId64 " bytes (%" PRId64
                       " of them activations) and its data %" PRId64 ", %" PRId64
                       " are available; a smaller --batch or --image needs less",
                       bytes.total_bytes, bytes.activation_bytes, data_bytes, available);
    }
    return net_alloc(net, err);
}

static int say_start(const struct train_opts *opts, const struct net *net, const struct feed *feed,
                     const struct mlog *log, struct err *err)
{
    struct mlog_data packed = {0};
    if (feed->is_packed) {
        packed = feed_facts(feed);
    }
    return mlog_run_start(log,
                          &(struct mlog_start){
                              .model = opts->model->name,
                              .device = opts->device,
                              .backend = net->backend->name,
                              .precision = opts->precision,
                              .dtype = opts->dtype,
                              .batch = opts->batch,
                              .height = opts->height,
                              .width = opts->width,
                              .steps = opts->steps,
                              .warmup_steps = opts->warmup_steps,
                              .n_ranks = opts->n_ranks,
                              .n_threads = net->backend->n_threads,
                              .seed = (uint64_t)opts->seed,
                              .parameters = graph_n_trainable(net->graph),
                              .data = feed->name,
                              .lr = opts->lr,
                              .momentum = opts->momentum,
                              .weight_decay = opts->weight_decay,
                              .label_smoothing = opts->label_smoothing,
                              .is_synthetic = !feed->is_packed || feed->pack.is_synthetic,
                              .packed = feed->is_packed ? &packed : NULL,
                          },
                          err);
}

static int say_not_finite(const struct train_opts *opts, const struct mlog *log, int64_t step,
                          double loss, struct err *err)
{
    char where[64];
    char what[64];
    snprintf(where, sizeof(where), "step %" PRId64, step);
    snprintf(what, sizeof(what), "loss is %s", isnan(loss) ? "not a number" : "infinite");
    if (mlog_fatal(log, opts->device, where, what, err) < 0) {
        return -1;
    }
    return err_set(err, ERR_WORKLOAD, "%s: %s", where, what);
}

/* Nanoseconds of one step and its loss. The update comes after the loss is known to be finite, inside the step's time. */
static int one_step(struct net *net, const struct train_opts *opts, struct clock_src clock,
                    const stop_flag *stop, struct mlog_step *ret_step)
{
    int64_t start_ns = clock.mono_ns(clock.ctx);
    if (net_gradients(net, stop)) {
        return -1;
    }
    ret_step->loss = net_loss(net);
    if (isfinite(ret_step->loss)) {
        net_update(net, &(struct net_sgd){.lr = opts->lr,
                                          .momentum = opts->momentum,
                                          .weight_decay = opts->weight_decay});
    }
    ret_step->step_time_ns = clock.mono_ns(clock.ctx) - start_ns;
    return 0;
}

static double rate(int64_t samples, int64_t elapsed_ns)
{
    /* A clock that did not move would make an infinite rate: one nanosecond is its resolution. */
    return (double)samples * (double)NS_PER_S / (double)(elapsed_ns > 0 ? elapsed_ns : 1);
}

/* Data that cannot be read ends the run with a fatal line; a signal without. */
static int say_no_data(const struct train_opts *opts, const struct mlog *log, int64_t step,
                       struct err *err)
{
    char where[64];
    struct err unsaid = {0};
    snprintf(where, sizeof(where), "step %" PRId64, step);
    if (err->code != ERR_INTERRUPTED &&
        mlog_fatal(log, opts->device, where, err->msg, &unsaid) < 0) {
        return err_wrap(err, "%s (%s)", where, unsaid.msg);
    }
    return err_wrap(err, "%s", where);
}

/* One step with its data. What packed data makes it wait for is part of its time, the making of synthetic data is not. */
static int fed_step(struct net *net, struct feed *feed, const struct mlog *log,
                    const stop_flag *stop, struct mlog_step *step, struct err *err)
{
    const struct train_opts *opts = feed->opts;
    int64_t start_ns = feed->clock.mono_ns(feed->clock.ctx);
    if (feed_next(feed, net, step->step, stop, step, err) < 0) {
        return say_no_data(opts, log, step->step, err);
    }
    int64_t fed_ns = feed->clock.mono_ns(feed->clock.ctx) - start_ns;
    set_step(net, opts->start_step + step->step);
    if (one_step(net, opts, feed->clock, stop, step) < 0) {
        return err_set(err, ERR_INTERRUPTED, "signal %d in step %" PRId64 " of %" PRId64,
                       (int)*stop, step->step, opts->steps);
    }
    if (!isfinite(step->loss)) {
        return say_not_finite(opts, log, step->step, step->loss, err);
    }
    step->step_time_ns += feed->is_packed ? fed_ns : 0;
    step->samples_per_s = rate(opts->batch, step->step_time_ns);
    return mlog_step(log, step, err);
}

static int steps(struct net *net, struct feed *feed, const struct mlog *log, const stop_flag *stop,
                 struct err *err)
{
    const struct train_opts *opts = feed->opts;
    struct mlog_stop total = {.steps = opts->steps,
                              .warmup_steps = opts->warmup_steps,
                              .is_packed = feed->is_packed,
                              .next_step = opts->start_step + opts->steps};
    for (int64_t i = 1; i <= opts->steps; i++) {
        struct mlog_step step = {.step = i, .steps = opts->steps, .lr = opts->lr};
        if (fed_step(net, feed, log, stop, &step, err) < 0) {
            return -1;
        }
        bool counts = i > opts->warmup_steps;
        total.elapsed_ns += counts ? step.step_time_ns : 0;
        total.data_wait_ns += counts ? step.data_wait_ns : 0;
        total.loss_first = i == 1 ? step.loss : total.loss_first;
        total.loss_last = step.loss;
    }
    total.first_batch_ns = feed->first_batch_ns;
    total.samples_per_s = rate(opts->batch * (opts->steps - opts->warmup_steps), total.elapsed_ns);
    return mlog_run_stop(log, &total, err);
}

int train_run(const struct train_opts *opts, struct clock_src clock, int fd, const stop_flag *stop,
              struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(cpu) struct cpu cpu = {0};
    CLEANUP(net) struct net net = {0};
    CLEANUP(feed) struct feed feed = {0};
    struct backend backend;
    const struct mlog log = {.fd = fd, .rank = opts->rank};
    if (cpu_init(&cpu, opts->flavour, (int)opts->n_threads, &backend, err) < 0 ||
        train_plan(opts, &arena, &backend, &net, err) < 0 ||
        feed_open(&feed, opts, net.graph, clock, err) < 0 ||
        train_alloc(&net, feed.bytes, err) < 0 || feed_start(&feed, err) < 0) {
        return -1;
    }
    net_init_values(&net, (uint64_t)opts->seed);
    if (say_start(opts, &net, &feed, &log, err) < 0) {
        return -1;
    }
    return steps(&net, &feed, &log, stop, err);
}
