/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/eval.h"

#include "models/tokens.h"
#include "train/network.h"
#include "train/run.h"

#define SYNTHETIC_BATCHES 8 /* of all ranks */

/* Other batches than the run's: those of the next seed. */
static uint64_t synthetic_seed(const struct eval *eval)
{
    return (uint64_t)eval->opts.seed + 1;
}

/* Rejects samples that the run trains on. */
static int check_held_out(const struct eval *eval, const struct feed *trained, struct err *err)
{
    const struct pack *own = &eval->feed.pack;
    const struct pack *theirs = &trained->pack;
    if (!eval->feed.is_packed) {
        return 0;
    }
    if (strcmp(own->dataset, theirs->dataset) != 0 || own->is_synthetic != theirs->is_synthetic) {
        return err_set(err, ERR_USAGE, "--eval-data %s: of %s, but --data is of %s",
                       eval->opts.data_path, eval->feed.name, trained->name);
    }
    if (strcmp(own->split, theirs->split) == 0 || strcmp(own->sha256, theirs->sha256) == 0) {
        return err_set(err, ERR_USAGE,
                       "--eval-data %s: split %s is what --data trains on, expected a held-out one",
                       eval->opts.data_path, own->split);
    }
    return 0;
}

static int logits_of(const struct eval *eval)
{
    return graph_find(eval->net.graph, "logits");
}

static int labels_of(const struct eval *eval)
{
    bool is_tokens = eval->opts.model->kind == MODEL_TOKENS;
    return graph_find(eval->net.graph, is_tokens ? token_part_name(TOKENS_MASKED) : "labels");
}

int eval_open(struct eval *eval, struct arena *arena, const struct train_opts *opts,
              const struct net *net, const struct feed *feed, struct err *err)
{
    struct graph *graph = NULL;
    eval->opts = *opts;
    eval->opts.is_inference = true;
    eval->opts.data_path = opts->eval_path;
    eval->opts.size = opts->eval_size;
    eval->opts.start_step = 0;
    eval->opts.rule.n_micro = 1;
    metric_init(&eval->metric, opts->model);
    if (network_build(&eval->opts, arena, net->backend, false, &graph, err) < 0 ||
        net_plan(&eval->net, arena, graph, net->backend, err) < 0 ||
        feed_open(&eval->feed, &eval->opts, graph, feed->clock, err) < 0 ||
        check_held_out(eval, feed, err) < 0) {
        return -1;
    }
    net_share(&eval->net, arena, net);
    const struct value *logits = &graph->values[logits_of(eval)];
    const struct value *labels = &graph->values[labels_of(eval)];
    eval->bytes = shape_count(&logits->shape) * dtype_bytes(logits->dtype) +
                  shape_count(&labels->shape) * dtype_bytes(labels->dtype) + eval->feed.bytes;
    return 0;
}

void eval_release(struct eval *eval)
{
    free(eval->logits);
    free(eval->labels);
    metric_release(&eval->metric);
    feed_release(&eval->feed);
    net_release(&eval->net);
    *eval = (struct eval){0};
}

int64_t eval_bytes(const struct eval *eval)
{
    return eval->bytes + net_sizes(&eval->net).total_bytes;
}

int eval_alloc(struct eval *eval, struct err *err)
{
    const struct graph *graph = eval->net.graph;
    const struct value *logits = &graph->values[logits_of(eval)];
    eval->logits = xcalloc((size_t)shape_count(&logits->shape), (size_t)dtype_bytes(logits->dtype));
    eval->labels =
        xcalloc((size_t)shape_count(&graph->values[labels_of(eval)].shape), sizeof(int64_t));
    return net_alloc(&eval->net, err);
}

struct mlog_eval_setup eval_facts(const struct eval *eval)
{
    const struct train_opts *opts = &eval->opts;
    bool is_packed = eval->feed.is_packed;
    return (struct mlog_eval_setup){
        .metric = metric_name(eval->metric.kind),
        .every = opts->eval_every,
        .has_target = opts->has_target,
        .target = opts->target,
        .data = eval->feed.name,
        .split = is_packed ? eval->feed.pack.split : NULL,
        .pack_sha256 = is_packed ? eval->feed.pack.sha256 : NULL,
        .seed = synthetic_seed(eval),
        .size = opts->size,
    };
}

static int64_t now_ns(const struct eval *eval)
{
    return eval->feed.clock.mono_ns(eval->feed.clock.ctx);
}

/* Loads this rank's share of batch idx into the network. */
static int fetch(struct eval *eval, int64_t idx, const stop_flag *stop, struct err *err)
{
    const struct train_opts *opts = &eval->opts;
    struct mlog_step unused = {.step = idx + 1};
    if (eval->feed.is_packed) {
        return feed_next(&eval->feed, &eval->net, 0, stop, &unused, err);
    }
    const struct synthetic what = {.seed = synthetic_seed(eval),
                                   .idx = idx,
                                   .micro = opts->ranks.rank,
                                   .n_micro = opts->ranks.n_ranks,
                                   .is_learnable = opts->is_learnable};
    synthetic_micro(&eval->net, opts->model, &what);
    eval->feed.n_samples = opts->batch;
    return 0;
}

static int count_batch(struct eval *eval, struct err *err)
{
    const struct graph *graph = eval->net.graph;
    const struct value *logits = &graph->values[logits_of(eval)];
    int64_t per_sample = shape_count(&graph->values[labels_of(eval)].shape) / eval->opts.batch;
    bool is_rows = logits->shape.n_dims == 2; /* of classes, one a label */
    net_read(&eval->net, logits_of(eval), eval->logits);
    net_read(&eval->net, labels_of(eval), eval->labels);
    return metric_add(&eval->metric,
                      &(struct metric_batch){.logits = eval->logits,
                                             .dtype = logits->dtype,
                                             .labels = eval->labels,
                                             .n_samples = eval->feed.n_samples,
                                             .n = eval->feed.n_samples * (is_rows ? per_sample : 1),
                                             .plane = is_rows ? 1 : per_sample},
                      err);
}

static int each_batch(struct run *run, int64_t step, struct err *err)
{
    struct eval *eval = run->eval;
    bool is_packed = eval->feed.is_packed;
    int64_t n_batches = is_packed ? eval->feed.reader_opts.n_steps : SYNTHETIC_BATCHES;
    for (int64_t i = 0; i < n_batches; i++) {
        if (fetch(eval, i, run->stop, err) < 0) {
            return say_failure(run->opts, run->log, step, err);
        }
        if (eval->feed.n_samples == 0) {
            continue;
        }
        if (net_gradients(&eval->net, run->stop)) {
            return run_say_unfinished(run, step, err);
        }
        if (count_batch(eval, err) < 0) {
            return say_failure(run->opts, run->log, step, err);
        }
    }
    return 0;
}

static int evaluate(struct run *run, int64_t step, struct err *err)
{
    struct eval *eval = run->eval;
    struct metric *metric = &eval->metric;
    metric_clear(metric);
    net_take_running(&eval->net, &run->job->comm);
    if (feed_start(&eval->feed, err) < 0) {
        return say_failure(run->opts, run->log, step, err);
    }
    int status = each_batch(run, step, err);
    feed_stop(&eval->feed);
    if (status < 0) {
        return -1;
    }
    comm_all_reduce(&run->job->comm, metric->counts, metric->n_counts, DT_F64);
    if (comm_has_failed(&run->job->comm)) {
        return run_say_unfinished(run, step, err);
    }
    if (metric_value(metric, &eval->value, err) < 0) {
        job_ends_alike(run->job);
        return say_failure(run->opts, run->log, step, err);
    }
    return 0;
}

int eval_step(struct run *run, int64_t step, struct err *err)
{
    struct eval *eval = run->eval;
    const struct train_opts *opts = run->opts;
    if (!eval || (step % opts->eval_every != 0 && step != opts->steps)) {
        return 0;
    }
    int64_t start_ns = now_ns(eval);
    if (evaluate(run, step, err) < 0) {
        return -1;
    }
    int64_t end_ns = now_ns(eval);
    eval->elapsed_ns = end_ns - eval->start_ns;
    eval->is_target_there = opts->has_target && eval->value >= opts->target;
    return opts->ranks.rank != 0
               ? 0
               : mlog_eval(run->log,
                           &(struct mlog_eval){.step = step,
                                               .metric = metric_name(eval->metric.kind),
                                               .value = eval->value,
                                               .n_samples = metric_n_samples(&eval->metric),
                                               .n_counted = metric_n_counted(&eval->metric),
                                               .n_unanswered = metric_n_unanswered(&eval->metric),
                                               .eval_time_ns = end_ns - start_ns,
                                               .elapsed_ns = eval->elapsed_ns},
                           err);
}

int eval_say_target(const struct run *run, int64_t step, struct err *err)
{
    const struct eval *eval = run->eval;
    const struct train_opts *opts = run->opts;
    if (!eval || !opts->has_target || opts->ranks.rank != 0) {
        return 0;
    }
    return mlog_time_to_train(run->log,
                              &(struct mlog_time_to_train){
                                  .step = step,
                                  .metric = metric_name(eval->metric.kind),
                                  .target = opts->target,
                                  .is_reached = eval->is_target_there,
                                  .value = eval->value,
                                  .n_samples = step * samples_per_step(opts),
                                  .elapsed_ns = eval->elapsed_ns,
                              },
                              err);
}

int eval_end(const struct run *run, struct err *err)
{
    const struct eval *eval = run->eval;
    if (!eval || !run->opts->has_target || eval->is_target_there) {
        return 0;
    }
    job_ends_alike(run->job);
    return err_set(err, ERR_WORKLOAD,
                   "--until %g: %s is %g after the last of %" PRId64 " steps, the target was not "
                   "reached",
                   run->opts->target, metric_name(eval->metric.kind), eval->value,
                   run->opts->steps);
}
