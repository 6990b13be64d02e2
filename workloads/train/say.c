/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a run other than its steps'. */
#include "base/base.h"

#include "train/say.h"

#include "graph/fuse.h"
#include "train/run.h"

#include <math.h>

_Static_assert((int)MLOG_DROPS_MAX == (int)SCHEDULE_DROPS_MAX, "all drops are said");

static int64_t gradient_bytes(const struct net *net)
{
    return net->comm ? net_sizes(net).gradient_bytes : 0;
}

/* Fields without meaning for the optimiser or the schedule are left out of the line. */
static struct mlog_training training_of(const struct train_opts *opts)
{
    const struct opt_rule *rule = &opts->rule;
    const struct schedule *schedule = &opts->schedule;
    bool has_moments = rule->method != OPT_SGD;
    bool is_piecewise = schedule->kind == SCHEDULE_PIECEWISE;
    bool is_falling = !is_piecewise && schedule->kind != SCHEDULE_CONSTANT;
    struct mlog_training training = {
        .recipe = opts->recipe->name,
        .optimizer = opt_method_name(rule->method),
        .decay = opts->decay == NET_DECAY_ALL ? "all" : "matrices",
        .beta1 = has_moments ? rule->beta1 : (double)NAN,
        .beta2 = has_moments ? rule->beta2 : (double)NAN,
        .eps = has_moments ? rule->eps : (double)NAN,
        .schedule = schedule_name(schedule->kind),
        .schedule_steps = is_falling ? schedule->steps : 0,
        .lr_end = is_falling ? schedule->end : (double)NAN,
        .lr_power = schedule->kind == SCHEDULE_POLY ? schedule->power : (double)NAN,
        .lr_factor = is_piecewise ? schedule->factor : (double)NAN,
        .n_lr_drops = schedule->n_drops,
        .covers_warmup = is_falling && schedule->covers_warmup,
        .warmup_lr_steps = schedule->warmup_steps,
        .warmup_lr_start = schedule->warmup_start,
        .accumulate = rule->n_micro,
        .loss_scaling = opt_scaling_name(rule->scaling),
        .loss_scale = (double)rule->loss_scale,
        .loss_scale_window = rule->scaling == OPT_SCALE_DYNAMIC ? rule->scale_window : 0,
        .start_step = opts->start_step,
        .loaded_sha256 = opts->loaded_sha256,
    };
    memcpy(training.lr_drops, schedule->drops, sizeof(training.lr_drops));
    return training;
}

int say_start(const struct run *run, struct err *err)
{
    const struct train_opts *opts = run->opts;
    const struct net *net = run->net;
    const struct feed *feed = run->feed;
    struct mlog_data packed = {0};
    struct mlog_eval_setup eval = {0};
    const struct device_about *about = &run->device->about;
    const struct backend_async *async = &net->backend->async;
    struct mlog_count fusions[FUSE_PATTERN_COUNT];
    for (int i = 0; i < FUSE_PATTERN_COUNT; i++) {
        fusions[i] =
            (struct mlog_count){fuse_pattern_name((enum fuse_pattern)i), net->graph->n_fused[i]};
    }
    const struct mlog_gpu gpu = {
        .name = about->gpu,
        .driver = about->driver,
        .runtime = about->runtime,
        .libraries = about->libraries,
        .memory_bytes = about->memory_bytes,
        .has_tf32 = opts->has_tf32,
        .has_programs = opts->has_programs,
        .is_tuned = opts->is_tuned,
        .n_late = async->late_choices ? async->late_choices(net->backend->self) : 0,
        .n_streams = (int)opts->n_streams,
        .ahead = opts->ahead,
        .fusions = fusions,
        .n_fusions = FUSE_PATTERN_COUNT};
    if (feed->is_packed) {
        packed = feed_facts(feed);
    }
    if (run->eval) {
        eval = eval_facts(run->eval);
    }
    return mlog_run_start(run->log,
                          &(struct mlog_start){
                              .model = opts->model->name,
                              .device = opts->device,
                              .backend = net->backend->name,
                              .precision = opts->precision,
                              .dtype = opts->dtype,
                              .batch = opts->batch,
                              .global_batch = samples_per_step(opts),
                              .size = opts->size,
                              .steps = opts->steps,
                              .warmup_steps = opts->warmup_steps,
                              .n_ranks = opts->ranks.n_ranks,
                              .comm = run->job->comm.name,
                              .has_sync_bn = opts->has_sync_bn,
                              .gradient_bytes = gradient_bytes(net),
                              .n_threads = net->backend->n_threads,
                              .seed = (uint64_t)opts->seed,
                              .parameters = graph_n_trainable(net->graph),
                              .data = feed->name,
                              .lr = opts->schedule.lr,
                              .momentum = opts->rule.momentum,
                              .weight_decay = opts->rule.weight_decay,
                              .label_smoothing = opts->label_smoothing,
                              .is_synthetic = !feed->is_packed || feed->pack.is_synthetic,
                              .packed = feed->is_packed ? &packed : NULL,
                              .training = training_of(opts),
                              .eval = run->eval ? &eval : NULL,
                              .gpu = about->gpu[0] != '\0' ? &gpu : NULL,
                          },
                          err);
}

int say_end(const struct train_opts *opts, const struct mlog *log, int64_t step, const char *what,
            struct err *err)
{
    char where[64];
    snprintf(where, sizeof(where), "step %" PRId64, step);
    if (mlog_fatal(log, opts->device, where, what, err) < 0) {
        return -1;
    }
    return err_set(err, ERR_WORKLOAD, "%s: %s", where, what);
}

int say_failure(const struct train_opts *opts, const struct mlog *log, int64_t step,
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
