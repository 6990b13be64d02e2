/* SPDX-License-Identifier: Apache-2.0 */
/* Training on a device that runs asynchronously to the host: the host enqueues a micro-batch followed by a mark, and continues with
   the next ones while the device works, until opts->ahead of them are in flight; only then does it wait for the oldest and report
   what its mark recorded. The time of a micro-batch is from one mark to the next, by the device's clock: it includes the device's
   wait for the host, or for packed data. It excludes data that the host makes itself: another mark follows that. */
#include "base/base.h"

#include "train/run.h"

#include "graph/player.h"

#define FLIGHTS_MAX (AHEAD_MAX + 1)
_Static_assert(2 * FLIGHTS_MAX <= DEVICE_MARKS, "each micro-batch under way has two marks");

/* A micro-batch in flight. */
struct flight {
    int slot;  /* of the mark after it */
    int since; /* the mark its time counts from */
    bool is_last;
    struct mlog_step step; /* with the last one of a step, except for loss and time */
};

struct ahead {
    struct run *run;
    struct net_player player;
    struct flight flights[FLIGHTS_MAX];
    int64_t n_given, n_taken;
    bool is_flowing; /* the mark after the last one is where the next one's time begins */
    double loss;     /* of the step whose micro-batches are being collected, so far */
    int64_t time_ns;
};

static int mark(const struct ahead *ahead, int slot)
{
    net_mark(ahead->run->net, slot);
    return slot;
}

/* Collects the oldest one when it is done. *ret_step is then the step it belongs to. */
static int take(struct ahead *ahead, int64_t *ret_step, struct err *err)
{
    struct run *run = ahead->run;
    struct flight *flight = &ahead->flights[ahead->n_taken++ % FLIGHTS_MAX];
    struct mlog_step *step = &flight->step;
    struct net_report report = {0};
    int64_t ns = 0;
    *ret_step = step->step;
    if (net_collect(run->net, flight->slot, flight->since, &report, &ns, err) < 0) {
        if (comm_has_failed(&run->job->comm)) {
            *err = (struct err){0};
            return run_say_unfinished(run, step->step, err); /* by a signal, or another rank */
        }
        return say_failure(run->opts, run->log, step->step, err);
    }
    ahead->loss += report.loss / (double)run->opts->rule.n_micro;
    ahead->time_ns += ns;
    if (!flight->is_last) {
        return 0;
    }
    step->loss = ahead->loss;
    step->step_time_ns = ahead->time_ns;
    ahead->loss = 0.0;
    ahead->time_ns = 0;
    return run_end_step(run, step, &report.state, err);
}

static int take_down_to(struct ahead *ahead, int64_t n, int64_t *ret_step, struct err *err)
{
    while (ahead->n_given - ahead->n_taken > n) {
        if (take(ahead, ret_step, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Collects all; the host's following work is no part of the next one's time. */
static int land(struct ahead *ahead, int64_t *ret_step, struct err *err)
{
    ahead->is_flowing = false;
    return take_down_to(ahead, 0, ret_step, err);
}

static int give(struct ahead *ahead, struct mlog_step *step, int64_t micro, struct err *err)
{
    struct run *run = ahead->run;
    const struct train_opts *opts = run->opts;
    int place = (int)(ahead->n_given % FLIGHTS_MAX);
    int before = (int)((ahead->n_given + FLIGHTS_MAX - 1) % FLIGHTS_MAX);
    bool is_made = feed_makes(run->feed, step->step);
    bool is_stopped = false;
    int since = is_made ? -1 : ahead->is_flowing ? 2 * before + 1 : mark(ahead, 2 * place);
    if (feed_next(run->feed, run->net, micro, run->stop, step, err) < 0) {
        return say_failure(opts, run->log, step->step, err);
    }
    set_step(run->net, (opts->start_step + step->step - 1) * opts->rule.n_micro + micro + 1);
    since = is_made ? mark(ahead, 2 * place) : since;
    if (net_player_micro(&ahead->player, step->lr, run->stop, &is_stopped, err) < 0) {
        return say_failure(opts, run->log, step->step, err);
    }
    if (is_stopped) {
        return run_say_unfinished(run, step->step, err);
    }
    ahead->flights[place] = (struct flight){.slot = mark(ahead, 2 * place + 1),
                                            .since = since,
                                            .is_last = micro + 1 == opts->rule.n_micro,
                                            .step = *step};
    ahead->n_given++;
    ahead->is_flowing = true;
    return 0;
}

static int give_step(struct ahead *ahead, int64_t i, int64_t *ret_step, struct err *err)
{
    const struct train_opts *opts = ahead->run->opts;
    struct mlog_step step = {.step = i, .steps = opts->steps};
    step.lr = schedule_lr(&opts->schedule, opts->start_step + i);
    for (int64_t micro = 0; micro < opts->rule.n_micro; micro++) {
        *ret_step = i;
        if (give(ahead, &step, micro, err) < 0 ||
            take_down_to(ahead, opts->ahead, ret_step, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int run_ahead(struct run *run, int64_t *ret_step, struct err *err)
{
    CLEANUP(free) struct ahead *ahead = xcalloc(1, sizeof(*ahead));
    const struct train_opts *opts = run->opts;
    ahead->run = run;
    net_player_init(&ahead->player, run->net, opts->has_programs);
    for (int64_t i = 1; i <= opts->steps; i++) {
        if (run_is_turn(run, i) && land(ahead, ret_step, err) < 0) {
            return -1;
        }
        *ret_step = i;
        if (run_wait_turn(run, i, err) < 0 || give_step(ahead, i, ret_step, err) < 0) {
            return -1;
        }
        if (run_is_saved(run, i) && (land(ahead, ret_step, err) < 0 || run_save(run, i, err) < 0)) {
            return -1;
        }
    }
    return land(ahead, ret_step, err);
}
