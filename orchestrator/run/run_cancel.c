/* SPDX-License-Identifier: Apache-2.0 */
/* Cancelling a run. */
#include "base/base.h"

#include "run/run.h"

#include <signal.h>
#include <time.h>

#include "base/log.h"
#include "run/run_impl.h"

#define CANCEL_WAIT_NS (30 * NS_PER_S)
#define CANCEL_TICK_NS (50 * NS_PER_MS)

/* Where its orchestrator died, its jobs may run on. Jobs that it had lost may be on a dead node: that is reported and does not
   block. */
static int stop_left_jobs(struct runner *r, struct err *err)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        const struct unit *unit = &r->units[idx];
        const struct run_orphan job = {run_job_id(r, unit), unit->nodes,
                                       (size_t)plan_step_nodes(unit->step)};
        if (unit->state == UNIT_STARTED && run_kill_job(r, &job, err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < r->orphans.n; idx++) {
        struct err why = {0};
        if (run_kill_job(r, &r->orphans.items[idx], &why) < 0) {
            if (!run_is_node_error(&why)) {
                *err = why;
                return -1;
            }
            log_line(LOG_WARN, "job %s may run on: %s; reperf nodes clean ends it",
                     r->orphans.items[idx].job_id, why.msg);
        }
    }
    return 0;
}

/* is_asked: its orchestrator was asked before, and may have complied, or ended otherwise. */
static int cancel_left(struct arena *arena, const struct run_opts *opts, const struct rundir *dir,
                       bool is_asked, struct err *err)
{
    CLEANUP(runner)
    struct runner r = {.arena = arena,
                       .opts = opts,
                       .dir = *dir,
                       .journal = JOURNAL_EMPTY,
                       .events = EVENTS_EMPTY,
                       .loop = LOOP_EMPTY};
    struct journal_records records = {0};
    const struct journal_record cancelled = {.state = J_CANCELLED, .note = STR_LIT("cancel")};
    loop_init(&r.loop, opts->clock);
    if (frozen_load(arena, dir->evidence, &r.frozen, err) < 0 ||
        journal_open(&r.journal, arena, dir->journal, opts->clock, &records, err) < 0 ||
        events_open(&r.events, dir->events, opts->clock, err) < 0 || run_nodes_open(&r, err) < 0) {
        return -1;
    }
    run_make_units(&r);
    for (size_t idx = 0; idx < records.n; idx++) {
        if (is_asked && records.items[idx].state == J_CANCELLED) {
            return 0;
        }
        if (records.items[idx].state == J_SEALED) {
            return err_set(err, ERR_USAGE, "run %.*s is finished: nothing to cancel",
                           STR_ARG(dir->id));
        }
        if (run_replay_record(&r, &records.items[idx], err) < 0) {
            return -1;
        }
    }
    if (stop_left_jobs(&r, err) < 0 || journal_append(&r.journal, &cancelled, err) < 0) {
        return -1;
    }
    struct event_fields fields = {0};
    events_write(&r.events, EV_RUN_CANCELLED, &fields);
    return 0;
}

int run_cancel(struct arena *arena, const struct run_opts *opts, const struct rundir *dir,
               struct err *err)
{
    struct clock_src clock = opts->clock;
    int64_t until_ns = clock.mono_ns(clock.ctx) + CANCEL_WAIT_NS;
    int64_t holder = rundir_holder(dir);
    CLEANUP(fd) int lock = -1;
    if (holder) {
        if (fs_write_atomic(dir->cancel, STR_LIT("cancel\n"), err) < 0) {
            return -1;
        }
        (void)kill((pid_t)holder, SIGTERM);
        while (rundir_holder(dir) && clock.mono_ns(clock.ctx) < until_ns) {
            const struct timespec tick = {0, CANCEL_TICK_NS};
            (void)nanosleep(&tick, NULL);
        }
        if (rundir_holder(dir)) {
            return err_set(err, ERR_TIMEOUT, "process %lld did not stop within %d s",
                           (long long)holder, (int)(CANCEL_WAIT_NS / NS_PER_S));
        }
    }
    if (rundir_lock(dir, &lock, err) < 0) {
        return -1;
    }
    return cancel_left(arena, opts, dir, holder != 0, err);
}
