/* SPDX-License-Identifier: Apache-2.0 */
/* One repeat: find its job or start it, wait, stop it where need be, collect its log, parse it. */
#include "base/base.h"

#include "engine/run_data.h"
#include "engine/run_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "codec/digest.h"

#define TICK_NS          (50 * NS_PER_MS)
#define STOP_GRACE_NS    (5 * NS_PER_S)
#define LOOK_NS          (500 * NS_PER_MS) /* how often the log is read for the progress bar */
#define LOST_MAX         3                 /* attempts in a row of one orchestrator */
#define DISK_FULL_BYTES  (256 << 10)       /* with less than this left a log may have been cut */
#define DISK_START_BYTES (1 << 20)
#define CHUNK_BYTES      65536

enum phase { PHASE_FIND, PHASE_START, PHASE_WAIT, PHASE_STOP, PHASE_OVER };
enum end { END_NONE, END_EXITED, END_DEADLINE, END_LOST, END_STOPPED };

struct attempt {
    struct runner *r;
    struct unit *unit;
    const char *job; /* id on the remote */
    enum phase phase;
    enum end end; /* why it is being stopped, then how it ended */
    int exit_status;
    int64_t deadline_ns; /* monotonic */
    int64_t kill_ns;     /* KILL from then on */
    uint64_t seen_bytes; /* of the log, for the progress bar */
    uint64_t seen_lines;
    int64_t look_ns;
};

static struct event_fields fields_of(const struct unit *unit)
{
    return (struct event_fields){.node = STR_LIT("local"),
                                 .case_id = unit->step->case_id,
                                 .repeat = unit->repeat,
                                 .attempt = unit->attempt};
}

static int note(struct runner *r, const struct unit *unit, enum journal_state state,
                const char *outcome, struct err *err)
{
    struct journal_record record = {.state = state,
                                    .case_id = unit->step->case_id,
                                    .repeat = unit->repeat,
                                    .attempt = unit->attempt,
                                    .outcome = str_of(outcome)};
    return journal_append(&r->journal, &record, err);
}

/* ---- disk ---- */

static int64_t free_bytes(const struct runner *r)
{
    struct statvfs info;
    return statvfs(r->dir.folder, &info) < 0 ? INT64_MAX : (int64_t)(info.f_bavail * info.f_frsize);
}

static int expect_disk(const struct runner *r, int64_t bytes, struct err *err)
{
    int64_t left = free_bytes(r);
    return left >= bytes
               ? 0
               : err_set(err, ERR_DISK,
                         "%s: %lld bytes left on its disk, expected %lld; free some, then "
                         "reperf resume %.*s",
                         r->dir.folder, (long long)left, (long long)bytes, STR_ARG(r->dir.id));
}

/* ---- starting ---- */

/* The program beside reperf, not one of that name in PATH. */
static const char *program_path(struct runner *r, struct str name)
{
    return str_eq_z(name, TRAIN_PROGRAM) ? planner_train_path(r->arena, r->opts->self)
                                         : str_z(r->arena, name);
}

static struct remote_job job_of(struct attempt *a)
{
    struct runner *r = a->r;
    const struct plan_step *step = a->unit->step;
    const char **argv = arena_array(r->arena, const char *, step->n_argv + 1);
    const char **env = arena_array(r->arena, const char *, r->n_child_env + step->n_env + 2);
    size_t n = 0;
    argv[0] = program_path(r, step->argv[0]);
    for (size_t idx = 1; idx < step->n_argv; idx++) {
        argv[idx] = str_z(r->arena, step->argv[idx]);
    }
    for (size_t idx = 0; idx < r->n_child_env; idx++) {
        env[n++] = r->child_env[idx];
    }
    for (size_t idx = 0; idx < step->n_env; idx++) {
        env[n++] = arena_printf(r->arena, "%.*s=%.*s", STR_ARG(step->env[idx].name),
                                STR_ARG(step->env[idx].value));
    }
    env[n++] = arena_printf(r->arena, "REPERF_RUN_ID=%.*s", STR_ARG(r->dir.id));
    return (struct remote_job){.id = a->job, .argv = argv, .env = env};
}

static int begin_attempt(struct attempt *a, struct err *err)
{
    struct runner *r = a->r;
    struct unit *unit = a->unit;
    if (unit->state == UNIT_TODO) {
        if (expect_disk(r, DISK_START_BYTES + 2 * unit->step->log_bytes, err) < 0) {
            return -1;
        }
        unit->attempt++;
        unit->started_wall_ns = r->opts->clock.wall_ns(r->opts->clock.ctx);
        if (note(r, unit, J_STARTED, NULL, err) < 0) {
            return -1;
        }
        unit->state = UNIT_STARTED;
    }
    int64_t spent_ns = r->opts->clock.wall_ns(r->opts->clock.ctx) - unit->started_wall_ns;
    int64_t left_ns = r->frozen.plan.deadline_s * NS_PER_S - (spent_ns > 0 ? spent_ns : 0);
    a->deadline_ns = loop_now_ns(&r->loop) + (left_ns > 0 ? left_ns : 0);
    a->job = arena_printf(r->arena, "%.*s/repeat-%lld/attempt-%lld", STR_ARG(unit->step->case_id),
                          (long long)unit->repeat, (long long)unit->attempt);
    return 0;
}

/* ---- progress ---- */

/* Lines stand for steps: near enough for a bar, and for nothing else. */
static void look_at_log(struct attempt *a)
{
    struct runner *r = a->r;
    char chunk[CHUNK_BYTES];
    struct err ignored = {0};
    size_t len = 0;
    int64_t now_ns = loop_now_ns(&r->loop);
    if (now_ns < a->look_ns) {
        return;
    }
    a->look_ns = now_ns + LOOK_NS;
    if (r->remote->ops->read_log(r->remote, a->job, a->seen_bytes, chunk, sizeof(chunk), &len,
                                 &ignored) != STEP_DONE) {
        return;
    }
    for (size_t idx = 0; idx < len; idx++) {
        a->seen_lines += chunk[idx] == '\n';
    }
    a->seen_bytes += len;
    uint64_t steps = (uint64_t)(a->unit->step->n_steps > 0 ? a->unit->step->n_steps : 1);
    uint64_t seen = a->seen_lines ? a->seen_lines - 1 : 0; /* the first says what it will do */
    uint64_t before = 0;
    for (const struct unit *unit = r->units; unit < a->unit; unit++) {
        before += (uint64_t)(unit->step->n_steps > 0 ? unit->step->n_steps : 1);
    }
    progress_set(&r->progress, before + (seen < steps ? seen : steps));
}

/* ---- the attempt's state machine ---- */

static enum step stop_attempt(struct attempt *a, enum end why, struct err *err)
{
    struct runner *r = a->r;
    a->end = why;
    a->phase = PHASE_STOP;
    a->kill_ns = loop_now_ns(&r->loop) + STOP_GRACE_NS;
    if (why == END_DEADLINE) {
        struct event_fields fields = fields_of(a->unit);
        events_write(&r->events, EV_JOB_DEADLINE, &fields);
    }
    return r->remote->ops->signal(r->remote, a->job, SIGTERM, err);
}

static enum step attempt_find(struct attempt *a, struct err *err)
{
    struct job_report report = {0};
    struct event_fields fields = fields_of(a->unit);
    enum step step = a->r->remote->ops->poll(a->r->remote, a->job, &report, err);
    if (step != STEP_DONE) {
        return step;
    }
    a->phase = report.state == JOB_ABSENT ? PHASE_START : PHASE_WAIT;
    if (report.state == JOB_RUNNING) {
        events_write(&a->r->events, EV_JOB_ATTACHED, &fields);
    }
    return STEP_AGAIN;
}

static enum step attempt_start(struct attempt *a, struct err *err)
{
    struct remote_job job = job_of(a);
    struct event_fields fields = fields_of(a->unit);
    if (run_data_check(&a->r->frozen.plan.data, err) < 0) {
        return STEP_FAIL;
    }
    enum step step = a->r->remote->ops->start(a->r->remote, &job, err);
    if (step == STEP_DONE) {
        a->phase = PHASE_WAIT;
        events_write(&a->r->events, EV_JOB_STARTED, &fields);
    }
    return step == STEP_FAIL ? STEP_FAIL : STEP_AGAIN;
}

/* PHASE_WAIT and PHASE_STOP. */
static enum step attempt_wait(struct attempt *a, struct err *err)
{
    struct runner *r = a->r;
    struct job_report report = {0};
    enum step step = r->remote->ops->poll(r->remote, a->job, &report, err);
    if (step != STEP_DONE) {
        return step;
    }
    if (report.state == JOB_RUNNING) {
        if (a->phase == PHASE_WAIT && loop_now_ns(&r->loop) >= a->deadline_ns) {
            return stop_attempt(a, END_DEADLINE, err) == STEP_FAIL ? STEP_FAIL : STEP_AGAIN;
        }
        if (a->phase == PHASE_STOP && (loop_now_ns(&r->loop) >= a->kill_ns || r->n_signals > 1)) {
            return r->remote->ops->signal(r->remote, a->job, SIGKILL, err) == STEP_FAIL
                       ? STEP_FAIL
                       : STEP_AGAIN;
        }
        look_at_log(a);
        return STEP_AGAIN;
    }
    if (a->phase == PHASE_WAIT) {
        a->end = report.state == JOB_ENDED ? END_EXITED : END_LOST;
    }
    a->exit_status = report.state == JOB_ENDED ? report.exit_status : 128 + SIGTERM;
    a->phase = PHASE_OVER;
    /* What the program left running in its session would disturb the next repeat. */
    return r->remote->ops->signal(r->remote, a->job, SIGKILL, err) == STEP_FAIL ? STEP_FAIL
                                                                                : STEP_DONE;
}

static enum step attempt_step(struct attempt *a, struct err *err)
{
    if (a->r->stop_signal && a->phase != PHASE_STOP && a->phase != PHASE_OVER) {
        return stop_attempt(a, END_STOPPED, err) == STEP_FAIL ? STEP_FAIL : STEP_AGAIN;
    }
    switch (a->phase) {
    case PHASE_FIND:
        return attempt_find(a, err);
    case PHASE_START:
        return attempt_start(a, err);
    case PHASE_WAIT:
    case PHASE_STOP:
        return attempt_wait(a, err);
    case PHASE_OVER:
        break;
    }
    return STEP_DONE;
}

/* ---- collecting ---- */

/* The job's log, byte for byte, to a file below the evidence folder; complete, or not there at all. */
static int collect_log(struct attempt *a, const char *name, char *ret_sha256_hex,
                       int64_t *ret_bytes, struct err *err)
{
    struct runner *r = a->r;
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    struct digest_value value;
    char chunk[CHUNK_BYTES];
    const char *part = fs_join(r->arena, r->dir.folder, "collect.part");
    char *path = fs_join(r->arena, r->dir.evidence, name);
    CLEANUP(fd) int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    uint64_t offset = 0;
    size_t len = 1;
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "create %s: %s", part, err_errno_text(errno));
    }
    if (digest_start(&digest, DIGEST_SHA256, err) < 0) {
        return -1;
    }
    while (len > 0) {
        enum step step =
            r->remote->ops->read_log(r->remote, a->job, offset, chunk, sizeof(chunk), &len, err);
        if (step == STEP_FAIL || (step == STEP_AGAIN && loop_once(&r->loop, TICK_NS, err) < 0)) {
            return -1;
        }
        if (step == STEP_AGAIN) {
            len = 1;
            continue;
        }
        if (digest_update(&digest, chunk, len, err) < 0 ||
            fs_write_all(fd, chunk, len, part, err) < 0) {
            return -1;
        }
        offset += len;
    }
    if (fsync(fd) < 0) {
        return err_set(err, err_code_of_errno(errno), "sync %s: %s", part, err_errno_text(errno));
    }
    char *slash = strrchr(path, '/');
    *slash = '\0';
    if (fs_mkdir_p(path, err) < 0) {
        return -1;
    }
    *slash = '/';
    if (rename(part, path) < 0) {
        return err_set(err, err_code_of_errno(errno), "rename to %s: %s", path,
                       err_errno_text(errno));
    }
    if (digest_finish(&digest, &value, err) < 0) {
        return -1;
    }
    hex_encode(value.sha256, SHA256_BYTES, ret_sha256_hex);
    *ret_bytes = (int64_t)offset;
    return 0;
}

static int collect(struct attempt *a, struct err *err)
{
    struct runner *r = a->r;
    struct unit *unit = a->unit;
    CLEANUP(strbuf) struct strbuf text;
    char sha256[SHA256_HEX_SIZE];
    struct event_fields fields = fields_of(unit);
    struct outcome_record outcome = {.case_id = unit->step->case_id,
                                     .repeat = unit->repeat,
                                     .attempt = unit->attempt,
                                     .outcome =
                                         a->end == END_DEADLINE ? OUTCOME_DEADLINE : OUTCOME_EXITED,
                                     .exit_status = a->exit_status};
    struct journal_record record = {.state = J_FINISHED,
                                    .case_id = unit->step->case_id,
                                    .repeat = unit->repeat,
                                    .attempt = unit->attempt,
                                    .exit_status = a->exit_status};
    strbuf_init(&text, 1 << 20);
    if (collect_log(a, rundir_log_name(r->arena, unit->step->case_id, unit->repeat), sha256,
                    &outcome.log_bytes, err) < 0) {
        return -1;
    }
    outcome.log_sha256 = str_of(sha256);
    outcome_encode(&outcome, r->arena, &text);
    if (rundir_write(r->arena, r->dir.evidence,
                     rundir_outcome_name(r->arena, unit->step->case_id, unit->repeat),
                     strbuf_str(&text), err) < 0) {
        return -1;
    }
    record.outcome = str_of(outcome_name(outcome.outcome));
    record.log_sha256 = outcome.log_sha256;
    record.log_bytes = outcome.log_bytes;
    if (journal_append(&r->journal, &record, err) < 0) {
        return -1;
    }
    unit->state = UNIT_FINISHED;
    unit->log_bytes = outcome.log_bytes;
    fields.value_name = "exit_status";
    fields.value = a->exit_status;
    events_write(&r->events, EV_REPEAT_FINISHED, &fields);
    return 0;
}

static int parse(struct runner *r, struct unit *unit, struct err *err)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    struct repeat_result result;
    struct event_fields fields = fields_of(unit);
    struct journal_record record = {.state = J_PARSED,
                                    .case_id = unit->step->case_id,
                                    .repeat = unit->repeat,
                                    .attempt = unit->attempt};
    if (result_repeat(&scratch, &r->frozen, unit->step, unit->repeat, run_put_file,
                      (void *)(uintptr_t)r->dir.evidence, &result, err) < 0) {
        return -1;
    }
    record.verdict = str_of(parse_verdict_name(result.parse));
    record.note = result.why.len ? result.why : STR_EMPTY;
    if (journal_append(&r->journal, &record, err) < 0) {
        return -1;
    }
    unit->state = UNIT_PARSED;
    unit->counts = result.counts;
    unit->value = result.value;
    fields.text = record.note;
    if (result.counts) {
        fields.value_name = "value";
        fields.value = result.value;
        log_line(LOG_INFO, "%.*s repeat %lld: %.6g %.*s", STR_ARG(unit->step->case_id),
                 (long long)unit->repeat, result.value, STR_ARG(result.unit));
    } else {
        log_line(LOG_WARN, "%.*s repeat %lld does not count: %.*s; its log: %s",
                 STR_ARG(unit->step->case_id), (long long)unit->repeat, STR_ARG(result.why),
                 fs_join(&scratch, r->dir.evidence,
                         rundir_log_name(&scratch, unit->step->case_id, unit->repeat)));
    }
    events_write(&r->events, EV_REPEAT_PARSED, &fields);
    return 0;
}

/* ---- the unit ---- */

/* The job must not go on when we cannot follow it. */
static void abandon(struct attempt *a)
{
    struct runner *r = a->r;
    int64_t until_ns = loop_now_ns(&r->loop) + STOP_GRACE_NS;
    struct job_report report = {.state = JOB_RUNNING};
    struct err ignored = {0};
    if (a->phase == PHASE_FIND || a->phase == PHASE_OVER) {
        return;
    }
    (void)r->remote->ops->signal(r->remote, a->job, SIGTERM, &ignored);
    while (report.state == JOB_RUNNING && loop_now_ns(&r->loop) < until_ns) {
        struct err wait = {0};
        if (loop_once(&r->loop, TICK_NS, &wait) < 0 ||
            r->remote->ops->poll(r->remote, a->job, &report, &wait) == STEP_FAIL) {
            break;
        }
    }
    (void)r->remote->ops->signal(r->remote, a->job, SIGKILL, &ignored);
}

static int attempt_run(struct attempt *a, struct err *err)
{
    enum step step = STEP_AGAIN;
    while (step == STEP_AGAIN) {
        step = attempt_step(a, err);
        if (step == STEP_AGAIN && loop_once(&a->r->loop, TICK_NS, err) < 0) {
            step = STEP_FAIL;
        }
    }
    if (step == STEP_FAIL) {
        abandon(a);
        return -1;
    }
    return 0;
}

static int lose(struct attempt *a, struct err *err)
{
    struct runner *r = a->r;
    struct unit *unit = a->unit;
    struct event_fields fields = fields_of(unit);
    char sha256[SHA256_HEX_SIZE];
    int64_t bytes = 0;
    /* Kept as evidence of what happened; no number is ever taken from it. */
    if (collect_log(
            a, rundir_lost_log_name(r->arena, unit->step->case_id, unit->repeat, unit->attempt),
            sha256, &bytes, err) < 0 ||
        note(r, unit, J_LOST, a->end == END_STOPPED ? "interrupted" : "lost", err) < 0) {
        return -1;
    }
    events_write(&r->events, EV_JOB_LOST, &fields);
    unit->state = UNIT_TODO;
    return 0;
}

int run_unit(struct runner *r, struct unit *unit, struct err *err)
{
    for (int n_lost = 0; unit->state < UNIT_FINISHED && !r->stop_signal; n_lost++) {
        struct attempt a = {.r = r, .unit = unit};
        if (n_lost >= LOST_MAX) {
            return err_set(err, ERR_NODE,
                           "%.*s repeat %lld: %d attempts left no status (were they killed?); "
                           "reperf resume %.*s tries again",
                           STR_ARG(unit->step->case_id), (long long)unit->repeat, LOST_MAX,
                           STR_ARG(r->dir.id));
        }
        if (begin_attempt(&a, err) < 0 || attempt_run(&a, err) < 0) {
            return -1;
        }
        /* A log that met a full disk proves nothing, whatever the program says of itself. */
        if (a.end != END_STOPPED && expect_disk(r, DISK_FULL_BYTES, err) < 0) {
            struct err ignored = {0};
            (void)r->remote->ops->forget(r->remote, a.job, &ignored); /* resume makes it again */
            return -1;
        }
        int rc = a.end == END_EXITED || a.end == END_DEADLINE ? collect(&a, err) : lose(&a, err);
        if (rc < 0) {
            return -1;
        }
    }
    if (unit->state == UNIT_FINISHED && parse(r, unit, err) < 0) {
        return -1;
    }
    return 0;
}
