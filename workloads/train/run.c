/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/train.h"

#include "core/mlog.h"

#include <math.h>

int train_plan(const struct train_opts *opts, struct arena *arena, const struct backend *backend,
               struct net *ret_net, struct err *err)
{
    struct graph *graph = graph_new(arena, opts->dtype);
    opts->model->build(graph, &(struct model_opts){.batch = opts->batch,
                                                   .height = opts->height,
                                                   .width = opts->width,
                                                   .label_smoothing = opts->label_smoothing});
    if (graph_finish(graph, err) < 0 || net_plan(ret_net, arena, graph, backend, err) < 0) {
        return err_wrap(err, "%s, batch %" PRId64 ", image %" PRId64 "x%" PRId64, opts->model->name,
                        opts->batch, opts->height, opts->width);
    }
    return 0;
}

int train_alloc(struct net *net, struct err *err)
{
    struct net_bytes bytes = net_sizes(net);
    int64_t available = memory_available();
    if (bytes.total_bytes > available) {
        return err_set(err, ERR_WORKLOAD,
                       "the network needs %" PRId64 " bytes (%" PRId64
                       " of them activations), %" PRId64
                       " are available; a smaller --batch or --image needs less",
                       bytes.total_bytes, bytes.activation_bytes, available);
    }
    return net_alloc(net, err);
}

static int say_start(const struct train_opts *opts, const struct net *net, const struct mlog *log,
                     struct err *err)
{
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
                              .data = opts->is_fresh_data ? "synthetic-fresh" : "synthetic",
                              .lr = opts->lr,
                              .momentum = opts->momentum,
                              .weight_decay = opts->weight_decay,
                              .label_smoothing = opts->label_smoothing,
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

static int steps(struct net *net, const struct train_opts *opts, struct clock_src clock,
                 const struct mlog *log, const stop_flag *stop, struct err *err)
{
    struct mlog_stop total = {.steps = opts->steps, .warmup_steps = opts->warmup_steps};
    for (int64_t i = 1; i <= opts->steps; i++) {
        struct mlog_step step = {.step = i, .steps = opts->steps, .lr = opts->lr};
        if (i == 1 || opts->is_fresh_data) {
            synthetic_batch(net, opts->model, (uint64_t)opts->seed, i - 1);
        }
        if (one_step(net, opts, clock, stop, &step) < 0) {
            return err_set(err, ERR_INTERRUPTED, "signal %d in step %" PRId64 " of %" PRId64,
                           (int)*stop, i, opts->steps);
        }
        if (!isfinite(step.loss)) {
            return say_not_finite(opts, log, i, step.loss, err);
        }
        step.samples_per_s = rate(opts->batch, step.step_time_ns);
        if (mlog_step(log, &step, err) < 0) {
            return -1;
        }
        total.elapsed_ns += i > opts->warmup_steps ? step.step_time_ns : 0;
        total.loss_first = i == 1 ? step.loss : total.loss_first;
        total.loss_last = step.loss;
    }
    total.samples_per_s = rate(opts->batch * (opts->steps - opts->warmup_steps), total.elapsed_ns);
    return mlog_run_stop(log, &total, err);
}

int train_run(const struct train_opts *opts, struct clock_src clock, int fd, const stop_flag *stop,
              struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(cpu) struct cpu cpu = {0};
    CLEANUP(net) struct net net = {0};
    struct backend backend;
    const struct mlog log = {.fd = fd, .rank = opts->rank};
    if (cpu_init(&cpu, opts->flavour, (int)opts->n_threads, &backend, err) < 0 ||
        train_plan(opts, &arena, &backend, &net, err) < 0 || train_alloc(&net, err) < 0) {
        return -1;
    }
    net_init_values(&net, (uint64_t)opts->seed);
    if (say_start(opts, &net, &log, err) < 0) {
        return -1;
    }
    return steps(&net, opts, clock, &log, stop, err);
}
