/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt of a repeat, on all its nodes: finds its jobs or starts them, waits, stops them if necessary, reads their logs.
   Each job is stepped by itself; what concerns all of them is decided in attempt_step.

     FIND --absent--> READY --> START --> WAIT <--> LOOK          each job
      | |               |                 ^ | ^
      | +---running-----|-----------------+ | +---> TERM, KILL    the attempt is stopping (deadline, signal, a peer that failed)
      |                 |                   v
      +------ended------|----------------> REAP --> READ --> DIGEST --> UNWATCH --> OVER
                        +-----------stopped before its start------------------------^
     any --> GONE       its node cannot be reached any more
     any --> WAIT       its log cannot be written here: the run fails, and the job has still to be stopped

   (1) No job is started before all of the attempt's are known to be absent and J_STARTED is on the disk: a process that is killed
       here finds them again by their id (FIND), and none is started twice.
   (2) A log becomes evidence only if what arrived here and what the node has are of one digest (DIGEST).
   (3) The first job that fails is the cause; one that was ended by a signal comes before those that noticed it. How the attempt
       ended stays what was known first, but for a signal to this process, which explains all others, and then a lost node.
   (4) Peers of a job that failed have a grace in which to say so; then all are stopped. TERM comes first, KILL after a grace.
   (5) It is over only when each job is OVER or GONE: no attempt leaves a job behind that nobody knows. */
#include "base/base.h"

#include "run/run_attempt.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"
#include "run/run_data.h"

#define WATCH_LOG_MAX    (16u << 20)
#define STOP_GRACE_NS    (5 * NS_PER_S)
#define PEER_GRACE_NS    (20 * NS_PER_S) /* for ranks to notice that another is gone and to say so */
#define LOOK_LOCAL_NS    (500 * NS_PER_MS) /* how often the log is read while the job runs */
#define LOOK_NS          (2 * NS_PER_S)
#define DISK_START_BYTES (1 << 20)

struct str attempt_node(const struct attempt *a, const struct rank_job *job)
{
    return a->r->fleet.nodes[job->node].spec->name;
}

static void event(struct attempt *a, const struct rank_job *job, enum event what, const char *text)
{
    struct event_fields fields = a->fields;
    if (job) {
        fields.node = attempt_node(a, job);
    }
    fields.text = str_of(text);
    events_write(&a->r->events, what, &fields);
}

static bool is_at_end(const struct rank_job *job)
{
    return job->phase == RANK_JOB_OVER || job->phase == RANK_JOB_GONE;
}

/* ---- beginning ---- */

static int journal_start(struct attempt *a, struct err *err)
{
    struct runner *r = a->r;
    struct unit *unit = a->unit;
    struct journal_record record = unit_record(unit, J_STARTED);
    record.note = inventory_fold(r->arena, r->fleet.inventory, unit->nodes,
                                 (size_t)plan_step_nodes(unit->step));
    record.files = &unit->commands;
    record.n_files = unit->commands.name.ptr != NULL;
    return journal_append(&r->journal, &record, err);
}

static void drop_part(struct rank_job *job)
{
    if (job->fd >= 0) {
        (void)unlink(job->part);
    }
    fd_close(&job->fd);
}

static int open_part(struct attempt *a, struct rank_job *job, struct err *err)
{
    struct runner *r = a->r;
    job->part = arena_printf(r->arena, "%s/" RUN_PART_NAME, r->dir.folder,
                             result_repeat_at(&r->frozen.plan, a->unit->step, a->unit->repeat),
                             (size_t)(job - a->jobs));
    job->fd = open(job->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (job->fd < 0) {
        return err_errno(err, "create", job->part);
    }
    digest_start(&job->digest, DIGEST_SHA256);
    return 0;
}

static int make_jobs(struct attempt *a, bool is_new, struct err *err)
{
    struct runner *r = a->r;
    struct launch_job *jobs = NULL;
    size_t n = 0;
    if (run_jobs(r, a->unit, &jobs, &n, err) < 0 ||
        (is_new && run_write_commands(r, a->unit, jobs, n, err) < 0)) {
        return -1;
    }
    if (r->frozen.plan.launcher == LAUNCHER_SLURM) {
        a->batch = run_batch_open(r, err);
        if (!a->batch) {
            return -1;
        }
    }
    a->n_jobs = n;
    a->jobs = xcalloc(a->n_jobs, sizeof(*a->jobs));
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        a->jobs[idx] = (struct rank_job){
            .launch = jobs[idx], .node = a->unit->nodes[jobs[idx].place_idx], .fd = -1};
        a->jobs[idx].remote = a->batch ? a->batch : r->fleet.nodes[a->jobs[idx].node].remote;
        /* A new attempt's id is unknown to others; until it is journaled nothing of it is started or lost. */
        a->jobs[idx].phase = is_new ? RANK_JOB_READY : RANK_JOB_FIND;
    }
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        if (open_part(a, &a->jobs[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int begin_new(struct attempt *a, int64_t now_ns, struct err *err)
{
    struct runner *r = a->r;
    struct unit *unit = a->unit;
    if (run_expect_disk(r, DISK_START_BYTES + 2 * unit->step->log_bytes, err) < 0 ||
        run_data_check(&r->frozen.plan.data, err) < 0) {
        return -1;
    }
    unit->attempt++;
    unit->started_wall_ns = now_ns;
    if (make_jobs(a, true, err) < 0 || journal_start(a, err) < 0) {
        return -1;
    }
    unit->state = UNIT_STARTED;
    return 0;
}

int attempt_begin(struct attempt *a, struct runner *r, struct unit *unit, struct err *err)
{
    int64_t now_ns = r->opts->ctx->clock.wall_ns(r->opts->ctx->clock.ctx);
    bool is_new = unit->state == UNIT_TODO;
    *a = (struct attempt){.r = r, .unit = unit};
    if ((is_new ? begin_new(a, now_ns, err) : make_jobs(a, false, err)) < 0) {
        return -1;
    }
    int64_t spent_ns = now_ns - unit->started_wall_ns;
    int64_t left_ns = plan_step_deadline_s(&r->frozen.plan, unit->step) * NS_PER_S -
                      (spent_ns > 0 ? spent_ns : 0);
    a->deadline_ns = loop_now_ns(&r->loop) + (left_ns > 0 ? left_ns : 0);
    a->fields = unit_fields(unit);
    a->fields.node = inventory_fold(r->arena, r->fleet.inventory, unit->nodes,
                                    (size_t)plan_step_nodes(unit->step));
    return 0;
}

void attempt_release(struct attempt *a)
{
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        struct rank_job *job = &a->jobs[idx];
        if (!is_at_end(job)) {
            job->remote->ops->abort(job->remote);
        }
        drop_part(job);
        digest_release(&job->digest);
        strbuf_release(&job->watch.log);
    }
    free(a->jobs);
    a->jobs = NULL;
    a->n_jobs = 0;
    remote_free(a->batch);
    a->batch = NULL;
}

/* ---- the log, as it grows ---- */

/* Appends what the node has from our offset on. *ret_len 0: nothing new. */
static enum step read_part(struct attempt *a, struct rank_job *job, size_t *ret_len,
                           struct err *err)
{
    struct remote *remote = job->remote;
    char *chunk = a->r->chunk;
    struct log_part part = {.offset = job->log_bytes, .dst = chunk, .size = RUN_CHUNK_BYTES};
    enum step step = remote->ops->read_log(remote, job->launch.job.id, &part, err);
    *ret_len = part.len;
    if (step != STEP_DONE) {
        return step;
    }
    for (size_t idx = 0; idx < *ret_len; idx++) {
        job->log_lines += chunk[idx] == '\n';
    }
    if (fs_write_all(job->fd, chunk, *ret_len, job->part, err) < 0) {
        drop_part(job);
        return STEP_FAIL;
    }
    digest_update(&job->digest, chunk, *ret_len);
    job->log_bytes += *ret_len;
    return STEP_DONE;
}

static enum step rank_job_look(struct attempt *a, struct rank_job *job, struct err *err)
{
    size_t len = 0;
    enum step step = read_part(a, job, &len, err);
    if (step == STEP_DONE) {
        job->next_look_ns =
            loop_now_ns(&a->r->loop) + (a->r->fleet.inventory->is_local ? LOOK_LOCAL_NS : LOOK_NS);
        job->phase = RANK_JOB_WAIT;
    }
    return step;
}

static enum step rank_job_read(struct attempt *a, struct rank_job *job, struct err *err)
{
    size_t len = 0;
    if (job->fd < 0) { /* no space for it: the attempt is given up */
        job->phase = RANK_JOB_OVER;
        return STEP_DONE;
    }
    enum step step = read_part(a, job, &len, err);
    if (step == STEP_DONE && len == 0) {
        job->phase = RANK_JOB_DIGEST;
    }
    return step;
}

/* Its monitor has not begun. */
static bool was_short(const struct attempt *a, const struct rank_job *job)
{
    return job->started_ns &&
           loop_now_ns(&a->r->loop) - job->started_ns < NODE_WATCH_DELAY_S * NS_PER_S;
}

/* (2): our copy must be what the node has. */
static enum step rank_job_digest(struct attempt *a, struct rank_job *job, struct err *err)
{
    const char *there = job->there;
    hex_encode(digest_finish(&job->digest).sha256, SHA256_BYTES, job->sha256);
    if (there[0] && strcmp(there, job->sha256) != 0 && a->end != END_NONE && a->end != END_EXITED &&
        a->end != END_DEADLINE) {
        event(a, job, EV_LOG_NOT_CHECKED, "another log there; the attempt is lost anyway");
    } else if (there[0] && strcmp(there, job->sha256) != 0) {
        return step_fail(err_set(err, ERR_INTEGRITY,
                                 "log of %s: SHA-256 %s there, %s as it arrived here",
                                 job->launch.job.id, there, job->sha256));
    }
    if (!there[0] && job->log_bytes) {
        event(a, job, EV_LOG_NOT_CHECKED, "the node has no tool for SHA-256");
    }
    job->phase = run_watches(a->r) && !was_short(a, job) ? RANK_JOB_UNWATCH : RANK_JOB_OVER;
    return STEP_DONE;
}

/* ---- its monitor ---- */

/* Each job of an attempt on remote nodes has one, whose log is fetched once the job's is here. It never causes an attempt to be
   lost: its failure is logged, and the repeat then counts as not watched. */

/* Runs of the inventory "local" have no monitors. */
bool run_watches(const struct runner *r)
{
    return !r->fleet.inventory->is_local && r->frozen.plan.launcher != LAUNCHER_SLURM;
}

/* STEP_FAIL becomes STEP_DONE without a monitor, and the job goes on. */
static enum step go_on(struct attempt *a, struct rank_job *job, enum step step, struct err *err)
{
    if (step == STEP_FAIL) {
        log_line(LOG_DEBUG, "%.*s: its monitor: %s",
                 STR_ARG(a->r->fleet.nodes[job->node].spec->name), err->msg);
        job->watch.is_over = true;
        *err = (struct err){0};
        return STEP_DONE;
    }
    return step;
}

/* The job is over, so the log is complete. */
static enum step rank_job_unwatch(struct attempt *a, struct rank_job *job, struct err *err)
{
    struct watch *watch = &job->watch;
    if (!watch->id) {
        watch->id = arena_printf(a->r->arena, "%s/monitor", job->launch.job.id);
        strbuf_init(&watch->log, WATCH_LOG_MAX);
    }
    if (watch->is_over) {
        return STEP_DONE;
    }
    struct log_part part = {.offset = watch->log.len, .dst = a->r->chunk, .size = RUN_CHUNK_BYTES};
    enum step step = job->remote->ops->read_log(job->remote, watch->id, &part, err);
    if (step != STEP_DONE) {
        return go_on(a, job, step, err);
    }
    strbuf_add(&watch->log, a->r->chunk, part.len);
    watch->is_over = part.len < RUN_CHUNK_BYTES || watch->log.is_full;
    return watch->is_over ? STEP_DONE : STEP_AGAIN;
}

int watch_keep(struct attempt *a, const struct rank_job *job, struct outcome_node *node,
               struct journal_file *ret_file, struct err *err)
{
    struct runner *r = a->r;
    const struct unit *unit = a->unit;
    const char *name;
    if (!job->watch.log.len) {
        return 0;
    }
    name = rundir_name(r->arena, RUNDIR_MONITOR,
                       (struct rundir_of){unit->step->case_id, unit->repeat, .name = node->name});
    if (run_put_file(r, name, strbuf_str(&job->watch.log), ret_file, err) < 0) {
        return -1;
    }
    node->monitor = str_of(name);
    return 0;
}

/* ---- a job's way ---- */

/* (3): the first that is seen to fail, unless one was ended by a signal: its peers, which report that they lost it, may be seen
   first. */
static bool is_cause(const struct attempt *a, const struct rank_job *job)
{
    return a->way == ATTEMPT_RUNS && job->exit_status != 0 &&
           (a->exit_status == 0 || (job->exit_status > 128 && a->exit_status <= 128));
}

static void rank_job_ended(struct attempt *a, struct rank_job *job, const struct job_report *report)
{
    bool is_lost =
        report->state != JOB_ENDED ||
        (report->cause == ERR_NODE && report->exit_status == 0 && a->way == ATTEMPT_RUNS);
    job->is_ended = true;
    snprintf(job->left, sizeof(job->left), "%s", report->left);
    job->exit_status = is_lost ? 128 + SIGTERM : report->exit_status;
    if (report->cause == ERR_WORKLOAD && job->exit_status == 0) {
        job->exit_status = 128 + SIGKILL; /* a part of it was killed, whatever the rest reported */
    }
    job->phase = RANK_JOB_REAP;
    if (report->cause != ERR_NONE && a->way == ATTEMPT_RUNS) {
        log_line(LOG_WARN, "%s: %s", job->launch.job.id, report->why);
        a->end = report->cause == ERR_TIMEOUT ? END_DEADLINE : a->end;
    }
    if (is_lost && a->way == ATTEMPT_RUNS && a->end == END_NONE) {
        a->end = report->cause == ERR_NODE ? END_NODE : END_LOST;
        a->failed_job = (size_t)(job - a->jobs);
        snprintf(job->err.msg, sizeof(job->err.msg), "%s", report->why);
    }
    if (is_cause(a, job)) {
        a->exit_status = job->exit_status;
        a->failed_job = (size_t)(job - a->jobs);
        a->peers_ns = a->peers_ns ? a->peers_ns : loop_now_ns(&a->r->loop) + PEER_GRACE_NS;
    }
}

static enum step rank_job_find(struct attempt *a, struct rank_job *job, struct err *err)
{
    struct job_report report = {0};
    enum step step = job->remote->ops->poll(job->remote, job->launch.job.id, &report, err);
    if (step != STEP_DONE) {
        return step;
    }
    if (report.state == JOB_ABSENT) {
        job->phase = RANK_JOB_READY;
    } else if (report.state == JOB_RUNNING) {
        job->phase = RANK_JOB_WAIT;
        event(a, job, EV_JOB_ATTACHED, NULL);
    } else {
        rank_job_ended(a, job, &report);
    }
    return STEP_AGAIN;
}

static enum step rank_job_start(struct attempt *a, struct rank_job *job, struct err *err)
{
    job->started_ns = job->started_ns ? job->started_ns : loop_now_ns(&a->r->loop);
    enum step step = job->remote->ops->start(job->remote, &job->launch.job, err);
    if (step == STEP_DONE) {
        job->phase = RANK_JOB_WAIT;
        event(a, job, EV_JOB_STARTED, NULL);
    }
    return step;
}

static enum step rank_job_pass(enum step step, struct rank_job *job, enum rank_job_phase next)
{
    if (step == STEP_DONE) {
        job->phase = next;
    }
    return step;
}

static enum step rank_job_wait(struct attempt *a, struct rank_job *job, struct err *err)
{
    struct job_report report = {0};
    enum step step = job->remote->ops->poll(job->remote, job->launch.job.id, &report, err);
    if (step != STEP_DONE) {
        return step;
    }
    if (report.is_waiting) { /* its time runs from when the batch system begins it */
        a->deadline_ns = loop_now_ns(&a->r->loop) +
                         plan_step_deadline_s(&a->r->frozen.plan, a->unit->step) * NS_PER_S;
    }
    if (report.state != JOB_RUNNING) {
        rank_job_ended(a, job, &report);
    } else if (job->launch.has_metric && a->way == ATTEMPT_RUNS &&
               loop_now_ns(&a->r->loop) >= job->next_look_ns) {
        job->phase = RANK_JOB_LOOK;
    } else {
        return STEP_AGAIN;
    }
    return STEP_DONE;
}

static enum step rank_job_signal(struct rank_job *job, int signal_no, struct err *err)
{
    return rank_job_pass(job->remote->ops->signal(job->remote, job->launch.job.id, signal_no, err),
                         job, RANK_JOB_WAIT);
}

/* STEP_DONE: something happened, look again; STEP_AGAIN: wait. */
static enum step rank_job_step(struct attempt *a, struct rank_job *job, struct err *err)
{
    switch (job->phase) {
    case RANK_JOB_FIND:
        return rank_job_find(a, job, err);
    case RANK_JOB_START:
        return rank_job_start(a, job, err);
    case RANK_JOB_WAIT:
        return rank_job_wait(a, job, err);
    case RANK_JOB_LOOK:
        return rank_job_look(a, job, err);
    case RANK_JOB_TERM:
        return rank_job_signal(job, SIGTERM, err);
    case RANK_JOB_KILL:
        return rank_job_signal(job, SIGKILL, err);
    case RANK_JOB_REAP:
        /* Processes that the program left in its session would disturb the next repeat. */
        return rank_job_pass(
            job->remote->ops->reap(job->remote, job->launch.job.id, job->there, err), job,
            RANK_JOB_READ);
    case RANK_JOB_READ:
        return rank_job_read(a, job, err);
    case RANK_JOB_DIGEST:
        return rank_job_digest(a, job, err);
    case RANK_JOB_UNWATCH:
        return rank_job_pass(rank_job_unwatch(a, job, err), job, RANK_JOB_OVER);
    case RANK_JOB_READY:
    case RANK_JOB_OVER:
    case RANK_JOB_GONE:
        break;
    }
    return STEP_AGAIN;
}

/* ---- the attempt ---- */

/* Journaled before the first signal: otherwise, to a later orchestrator, a job that we ended would seem to have ended by
   itself. */
static void note_cut(struct attempt *a, size_t n_cut)
{
    struct err ignored = {0};
    bool is_lost = a->end == END_STOPPED || a->end == END_NODE || a->end == END_LOST;
    if (is_lost && n_cut && attempt_note_lost(a, &ignored) < 0) {
        log_line(LOG_DEBUG, "%s", ignored.msg); /* attempt_lose tries again */
    }
}

void attempt_stop(struct attempt *a, enum attempt_end why)
{
    size_t n_cut = 0;
    if (a->way != ATTEMPT_RUNS) {
        return;
    }
    a->way = ATTEMPT_STOPPING;
    /* An end that is already known stays: a part lost with its node is not a failure of the others. */
    if (a->end == END_NONE || why == END_STOPPED || why == END_NODE) {
        a->end = why;
    }
    a->kill_ns = loop_now_ns(&a->r->loop) + STOP_GRACE_NS;
    if (a->end == END_DEADLINE) {
        event(a, NULL, EV_JOB_DEADLINE, NULL);
    }
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        struct rank_job *job = &a->jobs[idx];
        if (job->phase == RANK_JOB_READY) {
            job->phase = RANK_JOB_OVER; /* never started */
        } else if (job->phase <= RANK_JOB_LOOK) {
            job->remote->ops->abort(job->remote);
            job->phase = RANK_JOB_TERM;
            n_cut++;
        }
    }
    note_cut(a, n_cut);
}

static void kill_jobs(struct attempt *a)
{
    a->way = ATTEMPT_KILLING;
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        struct rank_job *job = &a->jobs[idx];
        if (job->phase == RANK_JOB_WAIT || job->phase == RANK_JOB_TERM) {
            job->remote->ops->abort(job->remote);
            job->phase = RANK_JOB_KILL;
        }
    }
}

static void lose_job(struct attempt *a, struct rank_job *job, const struct err *why)
{
    job->err = *why;
    if (a->end != END_STOPPED) {
        a->end = END_NODE;
        a->failed_job = (size_t)(job - a->jobs);
    }
    attempt_stop(a, a->end);
}

/* An unreachable node ends its attempt, not the run; any other failure there is the run's own error. */
static enum step rank_job_failed(struct attempt *a, struct rank_job *job, struct err *err)
{
    struct err cause = *err;
    /* A job whose log cannot be written here keeps running and must still be stopped. */
    job->phase =
        job->fd < 0 && !job->is_ended && a->way == ATTEMPT_RUNS ? RANK_JOB_WAIT : RANK_JOB_GONE;
    if (!run_is_node_error(err)) {
        return step_fail(err_wrap(err, "%.*s", STR_ARG(attempt_node(a, job))));
    }
    *err = (struct err){0};
    run_leave_out(a->r, job->node, &cause);
    lose_job(a, job, &cause);
    return STEP_DONE;
}

/* A node of a resumed attempt may not be reached, or its lease be another run's by now: the
   attempt's jobs elsewhere are ended. */
static void leave_bad_nodes(struct attempt *a)
{
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        struct rank_job *job = &a->jobs[idx];
        if (a->r->nodes[job->node].is_bad && !is_at_end(job)) {
            job->remote->ops->abort(job->remote);
            job->phase = RANK_JOB_GONE;
            lose_job(a, job, &a->r->fleet.nodes[job->node].err);
        }
    }
}

/* (1): once all were looked for: none is there and all are started, or some are and the rest must still be. */
static void start_ready(struct attempt *a)
{
    size_t n_ready = 0;
    size_t n_ended = 0;
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        if (a->jobs[idx].phase == RANK_JOB_FIND) {
            return;
        }
        n_ready += a->jobs[idx].phase == RANK_JOB_READY;
        n_ended += a->jobs[idx].is_ended;
    }
    /* Incomplete; or not started in time, which is not its own failure. */
    if (n_ready && (n_ended || loop_now_ns(&a->r->loop) >= a->deadline_ns)) {
        attempt_stop(a, END_LOST);
        return;
    }
    for (size_t idx = 0; n_ready && idx < a->n_jobs; idx++) {
        if (a->jobs[idx].phase == RANK_JOB_READY) {
            a->jobs[idx].phase = RANK_JOB_START;
        }
    }
}

static void look_at_clock(struct attempt *a)
{
    int64_t now_ns = loop_now_ns(&a->r->loop);
    if (a->r->stop_signal) {
        attempt_stop(a, END_STOPPED);
    } else if (now_ns >= a->deadline_ns) {
        bool is_running = false;
        for (size_t idx = 0; idx < a->n_jobs; idx++) {
            enum rank_job_phase phase = a->jobs[idx].phase;
            /* Not before it was searched for: it may have ended in the meantime. */
            is_running = is_running || (phase != RANK_JOB_FIND && phase < RANK_JOB_REAP);
        }
        if (is_running) {
            attempt_stop(a, END_DEADLINE);
        }
    } else if (a->peers_ns && now_ns >= a->peers_ns) { /* (4) */
        attempt_stop(a, END_EXITED);
    }
    if (a->way == ATTEMPT_STOPPING && (now_ns >= a->kill_ns || a->r->n_signals > 1)) {
        kill_jobs(a);
    }
}

enum step attempt_step(struct attempt *a, struct err *err)
{
    bool is_moving = true;
    while (is_moving) {
        size_t n_over = 0;
        is_moving = false;
        leave_bad_nodes(a);
        start_ready(a);
        look_at_clock(a);
        for (size_t idx = 0; idx < a->n_jobs; idx++) {
            struct rank_job *job = &a->jobs[idx];
            enum rank_job_phase before = job->phase;
            enum step step = is_at_end(job) ? STEP_AGAIN : rank_job_step(a, job, err);
            if (step == STEP_FAIL && rank_job_failed(a, job, err) == STEP_FAIL) {
                return STEP_FAIL;
            }
            is_moving = is_moving || job->phase != before || step == STEP_DONE;
            n_over += is_at_end(job);
        }
        if (n_over == a->n_jobs) { /* (5) */
            a->end = a->end == END_NONE ? END_EXITED : a->end;
            return STEP_DONE;
        }
    }
    return STEP_AGAIN;
}
