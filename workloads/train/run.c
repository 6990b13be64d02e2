/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/train.h"

#include "train/run.h"
#include "train/team.h"

#include <errno.h>
#include <math.h>
#include <unistd.h>

#define SKIPS_MAX 100 /* in a row: no loss scale will save such a run */

static double rate(int64_t samples, int64_t elapsed_ns)
{
    /* A clock that did not advance would give an infinite rate: one nanosecond is its resolution. */
    return (double)samples * (double)NS_PER_S / (double)(elapsed_ns > 0 ? elapsed_ns : 1);
}

int run_say_unfinished(const struct run *run, int64_t step, struct err *err)
{
    if (*run->stop != 0) {
        return err_set(err, ERR_INTERRUPTED, "signal %d in step %" PRId64 " of %" PRId64,
                       (int)*run->stop, step, run->opts->steps);
    }
    *err = run->job->comm.err;
    return -1; /* team_fail reports it */
}

bool run_is_turn(const struct run *run, int64_t step)
{
    int64_t turn_steps = run->opts->turn_steps;
    return turn_steps > 0 && (step - 1) % turn_steps == 0;
}

int run_wait_turn(const struct run *run, int64_t step, struct err *err)
{
    int64_t turn_steps = run->opts->turn_steps;
    if (!run_is_turn(run, step)) {
        return 0;
    }
    char c = '\0';
    while (c != '\n') {
        ssize_t n = read(STDIN_FILENO, &c, 1);
        if (*run->stop != 0) {
            return run_say_unfinished(run, step, err);
        }
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return err_set(err, ERR_USAGE,
                           "--turn %" PRId64 ": standard input ended before step %" PRId64
                           " of %" PRId64,
                           turn_steps, step, run->opts->steps);
        }
    }
    return 0;
}

/* One micro-batch with its data. Waiting for packed data is part of the step's time, making synthetic data is not. The update
   comes with the last one, after the loss is known to be finite. */
static int micro_step(const struct run *run, int64_t micro, struct mlog_step *step, struct err *err)
{
    const struct train_opts *opts = run->opts;
    const struct clock_src *clock = &run->feed->clock;
    int64_t n_micro = opts->rule.n_micro;
    int64_t start_ns = clock->mono_ns(clock->ctx);
    if (feed_next(run->feed, run->net, micro, run->stop, step, err) < 0) {
        return say_failure(opts, run->log, step->step, err);
    }
    int64_t fed_ns = clock->mono_ns(clock->ctx);
    set_step(run->net, (opts->start_step + step->step - 1) * n_micro + micro + 1);
    int64_t ready_ns = clock->mono_ns(clock->ctx);
    if (net_gradients(run->net, run->stop)) {
        return run_say_unfinished(run, step->step, err);
    }
    step->loss += net_loss(run->net) / (double)n_micro;
    if (micro + 1 == n_micro && isfinite(step->loss)) {
        net_update(run->net, step->lr);
    }
    step->step_time_ns += clock->mono_ns(clock->ctx) - ready_ns;
    step->step_time_ns += run->feed->is_packed ? fed_ns - start_ns : 0;
    return 0;
}

/* Loss and gradients are those of all ranks, and so is their end. */
static int end_alike(const struct run *run, int64_t step, const char *what, struct err *err)
{
    job_ends_alike(run->job);
    return say_end(run->opts, run->log, step, what, err);
}

/* The outcome of the update. */
static int look_at_update(struct run *run, struct mlog_step *step, const struct opt_state *state,
                          struct err *err)
{
    const struct opt_rule *rule = &run->opts->rule;
    step->is_scaled = rule->scaling != OPT_SCALE_NONE;
    step->loss_scale = (double)run->loss_scale;
    step->is_skipped = state->found_inf != 0;
    run->loss_scale = state->loss_scale;
    run->n_skipped = step->is_skipped ? run->n_skipped + 1 : 0;
    if (!step->is_skipped || (step->is_scaled && run->n_skipped < SKIPS_MAX)) {
        return 0;
    }
    const char *what = step->is_scaled ? "gradients are not finite in 100 steps in a row"
                                       : "a gradient is not finite";
    return end_alike(run, step->step, what, err);
}

int run_end_step(struct run *run, struct mlog_step *step, const struct opt_state *state,
                 struct err *err)
{
    const struct train_opts *opts = run->opts;
    if (!isfinite(step->loss)) {
        const char *what = isnan(step->loss) ? "loss is not a number" : "loss is infinite";
        return end_alike(run, step->step, what, err);
    }
    if (look_at_update(run, step, state, err) < 0) {
        return -1;
    }
    step->samples_per_s = rate(samples_per_step(opts), step->step_time_ns);
    bool counts = step->step > opts->warmup_steps;
    run->total.elapsed_ns += counts ? step->step_time_ns : 0;
    run->total.data_wait_ns += counts ? step->data_wait_ns : 0;
    run->total.loss_first = step->step == 1 ? step->loss : run->total.loss_first;
    run->total.loss_last = step->loss;
    return opts->ranks.rank == 0 ? mlog_step(run->log, step, err) : 0;
}

static int one_step(struct run *run, struct mlog_step *step, struct err *err)
{
    const struct train_opts *opts = run->opts;
    struct opt_state state;
    step->lr = schedule_lr(&opts->schedule, opts->start_step + step->step);
    for (int64_t micro = 0; micro < opts->rule.n_micro; micro++) {
        if (micro_step(run, micro, step, err) < 0) {
            return -1;
        }
    }
    net_read_opt_state(run->net, &state);
    return run_end_step(run, step, &state, err);
}

static const char *data_of(const struct run *run)
{
    return run->feed->is_packed ? run->feed->pack.sha256 : run->feed->name;
}

bool run_is_saved(const struct run *run, int64_t step)
{
    const struct train_opts *opts = run->opts;
    int64_t done = opts->start_step + step;
    bool is_last = step == opts->steps || (run->eval && run->eval->is_target_there);
    bool is_due = is_last || (opts->save_every > 0 && done % opts->save_every == 0);
    return opts->save_path && is_due && opts->ranks.rank == 0;
}

int run_save(const struct run *run, int64_t step, struct err *err)
{
    const struct train_opts *opts = run->opts;
    const struct clock_src *clock = &run->feed->clock;
    struct checkpoint_saved saved = {0};
    int64_t done = opts->start_step + step;
    if (!run_is_saved(run, step)) {
        return 0;
    }
    int64_t start_ns = clock->mono_ns(clock->ctx);
    if (checkpoint_write(opts, run->net, data_of(run), done, &saved, err) < 0) {
        return say_failure(opts, run->log, step, err);
    }
    return mlog_checkpoint(run->log,
                           &(struct mlog_checkpoint){
                               .step = done,
                               .sha256 = saved.sha256,
                               .n_bytes = saved.n_bytes,
                               .elapsed_ns = clock->mono_ns(clock->ctx) - start_ns,
                           },
                           err);
}

static int each_step(struct run *run, int64_t *ret_step, struct err *err)
{
    const struct clock_src *clock = &run->feed->clock;
    bool is_done = false;
    for (int64_t i = 1; i <= run->opts->steps && !is_done; i++) {
        struct mlog_step step = {.step = i, .steps = run->opts->steps};
        *ret_step = i;
        if (run->eval && i == 1) {
            run->eval->start_ns = clock->mono_ns(clock->ctx);
        }
        if (run_wait_turn(run, i, err) < 0 || one_step(run, &step, err) < 0 ||
            eval_step(run, i, err) < 0 || run_save(run, i, err) < 0) {
            return -1;
        }
        is_done = run->eval && run->eval->is_target_there;
    }
    return 0;
}

/* *ret_step is the step it has reached. */
static int steps(struct run *run, int64_t *ret_step, struct err *err)
{
    const struct train_opts *opts = run->opts;
    const struct backend *backend = run->net->backend;
    struct mlog_stop *total = &run->total;
    bool is_ahead = backend->async.mark != NULL;
    *total =
        (struct mlog_stop){.warmup_steps = opts->warmup_steps, .is_packed = run->feed->is_packed};
    ASSERT(!is_ahead || !run->eval); /* the options refuse it */
    if ((is_ahead ? run_ahead : each_step)(run, ret_step, err) < 0) {
        return -1;
    }
    comm_barrier(&run->job->comm); /* the job is done with its steps when every rank is */
    if (comm_has_failed(&run->job->comm)) {
        return run_say_unfinished(run, *ret_step, err);
    }
    total->steps = *ret_step;
    total->next_step = opts->start_step + *ret_step;
    total->peak_memory_bytes = is_ahead ? backend->async.memory_peak(backend->self) : 0;
    total->first_batch_ns = run->feed->first_batch_ns;
    total->samples_per_s =
        rate(samples_per_step(opts) * (*ret_step - opts->warmup_steps), total->elapsed_ns);
    if (eval_say_target(run, *ret_step, err) < 0 ||
        (opts->ranks.rank == 0 && mlog_run_stop(run->log, total, err) < 0)) {
        return -1;
    }
    return eval_end(run, err);
}

/* Rank 0 reads the checkpoint, and all continue from its step. */
static int read_checkpoint(struct run *run, struct err *err)
{
    struct train_opts *opts = run->opts;
    int64_t step = 0;
    if (opts->ranks.rank == 0) {
        if (checkpoint_read(run->arena, opts, run->net, opts->load_path, &run->checkpoint, err) <
            0) {
            return -1;
        }
        step = run->checkpoint.step;
        opts->loaded_sha256 = run->checkpoint.sha256;
    }
    comm_broadcast(&run->job->comm, &step, sizeof(step), 0);
    if (comm_has_failed(&run->job->comm)) {
        return run_say_unfinished(run, 0, err);
    }
    opts->start_step = step;
    fit_schedule(opts);
    return 0;
}

/* The same parameters everywhere. */
static int make_values(struct run *run, struct err *err)
{
    const struct train_opts *opts = run->opts;
    bool is_first = opts->ranks.rank == 0;
    if (is_first && opts->load_path) {
        checkpoint_fill(&run->checkpoint, run->net);
    } else if (is_first) {
        net_init_values(run->net, (uint64_t)opts->seed);
    }
    net_broadcast(run->net);
    if (opts->load_path) {
        struct opt_state state;
        net_broadcast_optimizer(run->net);
        net_read_opt_state(run->net, &state);
        run->loss_scale = state.loss_scale;
    }
    return comm_has_failed(&run->job->comm) ? run_say_unfinished(run, 0, err) : 0;
}

/* Memory of an evaluation. */
static int open_eval(struct run *run, int64_t *ret_bytes, struct err *err)
{
    const struct train_opts *opts = run->opts;
    if (!run->eval) {
        return 0;
    }
    if (eval_open(run->eval, run->arena, opts, run->net, run->feed, err) < 0) {
        return err_wrap(err, "evaluation");
    }
    *ret_bytes += eval_bytes(run->eval);
    return 0;
}

/* All ranks have the same data. */
static int agree_on_data(struct run *run, struct err *err)
{
    const struct feed *feed = run->feed;
    if (!feed->is_packed) {
        return 0;
    }
    if (team_agree_on_data(run->job, "--data", feed->pack.sha256, err) < 0) {
        return -1;
    }
    return run->eval ? team_agree_on_data(run->job, "--eval-data", run->eval->feed.pack.sha256, err)
                     : 0;
}

/* Checkpoint, data, memory. */
static int make_ready(struct run *run, struct err *err)
{
    struct feed *feed = run->feed;
    int64_t bytes = 0;
    const struct train_opts *opts = run->opts;
    bool is_first = opts->ranks.rank == 0;
    if ((opts->save_path && is_first && checkpoint_try_path(opts->save_path, err) < 0) ||
        (opts->load_path && read_checkpoint(run, err) < 0) ||
        feed_open(feed, opts, run->net->graph, feed->clock, err) < 0 ||
        (opts->load_path && is_first &&
         checkpoint_check_data(&run->checkpoint, opts, data_of(run), err) < 0) ||
        feed_plan(feed, run->net, err) < 0 || open_eval(run, &bytes, err) < 0 ||
        train_alloc(opts, run->net, bytes + feed->bytes, err) < 0 ||
        (run->eval && eval_alloc(run->eval, err) < 0) || feed_start(feed, err) < 0 ||
        agree_on_data(run, err) < 0 || make_values(run, err) < 0) {
        return -1;
    }
    return is_first ? say_start(run, err) : 0;
}

int train_run(const struct train_opts *given, struct clock_src clock, int fd, const stop_flag *stop,
              struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(device) struct device device = {0};
    CLEANUP(job) struct job job = {0};
    CLEANUP(net) struct net net = {0};
    CLEANUP(feed) struct feed feed = {.clock = clock};
    CLEANUP(eval) struct eval eval = {0};
    struct backend backend;
    struct graph *plain = NULL;
    struct train_opts own = *given; /* a checkpoint has the step to start from */
    const struct train_opts *opts = &own;
    const struct mlog log = {.fd = fd, .rank = opts->ranks.rank};
    struct run run = {.opts = &own,
                      .net = &net,
                      .feed = &feed,
                      .eval = opts->eval_every > 0 ? &eval : NULL,
                      .job = &job,
                      .log = &log,
                      .stop = stop,
                      .device = &device,
                      .loss_scale = opts->rule.loss_scale,
                      .arena = &arena};
    int64_t step = 0;
    if (device_open(&device, opts, &backend, err) < 0 ||
        train_graph(opts, &arena, &plain, err) < 0 ||
        team_open(&job, &(struct team_opts){opts, &backend, plain, "", stop, &log}, err) < 0) {
        return -1;
    }
    if (team_plan(&job, &own, &arena, &backend, &net, err) < 0 || make_ready(&run, err) < 0 ||
        steps(&run, &step, err) < 0) {
        char where[64];
        snprintf(where, sizeof(where), step > 0 ? "step %" PRId64 : "start", step);
        return team_fail(&job, &log, opts->device, where, err);
    }
    return 0;
}
