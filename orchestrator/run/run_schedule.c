/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an attempt, and which repeat runs where and when: in plan order, each on as many nodes as it needs, several at
   once if they use different nodes. */
#include "base/base.h"

#include <errno.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/publish.h"
#include "run/run_attempt.h"

/* At its end an attempt's logs become evidence and its outcome is recorded, or they are kept apart. Then the log is parsed. */

#define OUTCOME_TEXT_MAX (8u << 20)

/* ---- disk ---- */

static int64_t free_bytes(const struct runner *r)
{
    struct statvfs info;
    return statvfs(r->dir.folder, &info) < 0 ? INT64_MAX : (int64_t)(info.f_bavail * info.f_frsize);
}

int run_expect_disk(const struct runner *r, int64_t bytes, struct err *err)
{
    int64_t left = free_bytes(r);
    return left >= bytes
               ? 0
               : err_set(err, ERR_DISK,
                         "%s: %lld bytes left on its disk, expected %lld; free some, then "
                         "reperf resume %.*s",
                         r->dir.folder, (long long)left, (long long)bytes, STR_ARG(r->dir.id));
}

/* ---- logs ---- */

/* The log that metrics are read from has the plain name. */
static const char *log_name(struct attempt *a, const struct rank_job *job)
{
    const struct unit *unit = a->unit;
    return rundir_name(
        a->r->arena, job->launch.has_metric ? RUNDIR_LOG : RUNDIR_NODE_LOG,
        (struct rundir_of){unit->step->case_id, unit->repeat, .name = attempt_node(a, job)});
}

/* All of them before the first is moved: then one commit of the file system serves for all. */
static int sync_logs(struct attempt *a, struct err *err)
{
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        const struct rank_job *job = &a->jobs[idx];
        if (publish_data(job->fd, job->part, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Synced already, it is moved below the evidence folder: whole, or not there at all. */
static int keep_log(struct attempt *a, struct rank_job *job, const char *name, struct err *err)
{
    const char *path = fs_join(a->r->arena, a->r->dir.evidence, name);
    if (fs_mkdir_above(path, err) < 0) {
        return -1;
    }
    if (rename(job->part, path) < 0) {
        return err_errno(err, "rename to", path);
    }
    close(job->fd);
    job->fd = -1;
    return 0;
}

/* All lie in one folder: one sync for all their names. */
static int sync_names(struct attempt *a, const struct journal_file *of, struct err *err)
{
    return publish_parent(
        arena_printf(a->r->arena, "%s/%.*s", a->r->dir.evidence, STR_ARG(of->name)), err);
}

/* ---- an attempt that counts ---- */

static const struct rank_job *metric_job(const struct attempt *a)
{
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        if (a->jobs[idx].launch.has_metric) {
            return &a->jobs[idx];
        }
    }
    return &a->jobs[0];
}

/* For a job on this machine alone the record keeps its old form. Monitors' logs are added to the record's files. */
static int note_nodes(struct attempt *a, struct outcome_record *outcome,
                      struct journal_record *record, struct err *err)
{
    struct runner *r = a->r;
    if (r->fleet.inventory->is_local) {
        return 0;
    }
    outcome->nodes = arena_array(r->arena, struct outcome_node, a->n_jobs);
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        const struct rank_job *job = &a->jobs[idx];
        outcome->nodes[outcome->n_nodes++] =
            (struct outcome_node){.name = attempt_node(a, job),
                                  .exit_status = job->exit_status,
                                  .log = str_of(log_name(a, job)),
                                  .log_sha256 = str_of(job->sha256),
                                  .log_bytes = (int64_t)job->log_bytes};
        if (watch_keep(a, job, &outcome->nodes[idx], &record->files[record->n_files], err) < 0) {
            return -1;
        }
        record->n_files += outcome->nodes[idx].monitor.ptr != NULL;
    }
    if (a->exit_status != 0) {
        outcome->failed_node = attempt_node(a, &a->jobs[a->failed_job]);
    }
    return 0;
}

static int record_outcome(struct attempt *a, const struct outcome_record *outcome,
                          struct journal_file *ret_file, struct err *err)
{
    struct runner *r = a->r;
    CLEANUP(strbuf) struct strbuf text = STRBUF(OUTCOME_TEXT_MAX);
    outcome_encode(outcome, &text);
    return run_put_file(
        r, rundir_of_repeat(r->arena, RUNDIR_OUTCOME, outcome->case_id, outcome->repeat),
        strbuf_str(&text), ret_file, err);
}

/* "n1: sleep; n2: python3"; NULL: nothing outlived the jobs. */
static struct str left_of(struct attempt *a)
{
    char *text = NULL;
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        const struct rank_job *job = &a->jobs[idx];
        if (job->left[0]) {
            text = arena_printf(a->r->arena, "%s%s%.*s: %s", text ? text : "", text ? "; " : "",
                                STR_ARG(attempt_node(a, job)), job->left);
        }
    }
    if (text) {
        log_line(LOG_WARN, "%.*s repeat %lld: processes outlived the job and were ended: %s",
                 STR_ARG(a->unit->step->case_id), (long long)a->unit->repeat, text);
    }
    return text ? str_of(text) : STR_EMPTY;
}

/* The log becomes evidence, the outcome is recorded. */
static int attempt_collect(struct attempt *a, struct err *err)
{
    struct runner *r = a->r;
    struct unit *unit = a->unit;
    const struct rank_job *metric = metric_job(a);
    int64_t exit_status = a->end == END_DEADLINE ? metric->exit_status : a->exit_status;
    struct outcome_record outcome = {
        .case_id = unit->step->case_id,
        .repeat = unit->repeat,
        .attempt = unit->attempt,
        .outcome = a->end == END_DEADLINE ? OUTCOME_DEADLINE : OUTCOME_EXITED,
        .exit_status = exit_status,
        .log = str_of(rundir_of_repeat(r->arena, RUNDIR_LOG, unit->step->case_id, unit->repeat)),
        .log_sha256 = str_of(metric->sha256),
        .log_bytes = (int64_t)metric->log_bytes,
        .replaces = unit->replaces};
    struct journal_record record = unit_record(unit, J_FINISHED);
    record.outcome = str_of(OUTCOME_NAMES[outcome.outcome]);
    record.exit_status = exit_status;
    record.log_sha256 = outcome.log_sha256;
    record.log_bytes = outcome.log_bytes;
    record.files = arena_array(r->arena, struct journal_file, 2 * a->n_jobs + 1);
    outcome.left = left_of(a);
    if (note_nodes(a, &outcome, &record, err) < 0 || sync_logs(a, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        struct rank_job *job = &a->jobs[idx];
        const char *name = log_name(a, job);
        record.files[record.n_files++] = (struct journal_file){str_of(name), str_of(job->sha256)};
        if (keep_log(a, job, name, err) < 0) {
            return -1;
        }
    }
    if (sync_names(a, &record.files[record.n_files - 1], err) < 0 ||
        record_outcome(a, &outcome, &record.files[record.n_files++], err) < 0 ||
        journal_append(&r->journal, &record, err) < 0) {
        return -1;
    }
    unit->state = UNIT_FINISHED;
    a->fields.value_name = "exit_status";
    a->fields.value = (double)exit_status;
    events_write(&r->events, EV_REPEAT_FINISHED, &a->fields);
    return 0;
}

/* ---- one that does not ---- */

/* A container whose engine died in mid-job says nothing of the workload: its node is lost, not the repeat. */
static void attempt_look_for_engines(struct attempt *a)
{
    for (size_t idx = 0; idx < a->n_jobs && a->end == END_EXITED && a->exit_status; idx++) {
        struct rank_job *job = &a->jobs[idx];
        const char *const *words = job->launch.job.cleanup;
        if (job->fd < 0 || !runtime_is_lost(a->r->frozen.plan.runtime, job->exit_status,
                                            fs_read_tail(a->r->arena, job->part))) {
            continue;
        }
        while (words && words[0] && words[1]) {
            words++;
        }
        (void)!err_set(&job->err, ERR_NODE,
                       "its container engine was lost in mid-job; container %s may be left there, "
                       "which resume and reperf nodes clean remove",
                       words && words[0] ? words[0] : "of the job");
        run_leave_out(a->r, job->node, &job->err);
        a->failed_job = idx;
        a->end = END_NODE;
    }
}

/* A node's failure during this repeat: it ends the run unless another attempt succeeds. */
static void unit_blame(struct unit *unit, const char *why)
{
    unit->err = (struct err){.code = ERR_NODE};
    snprintf(unit->err.msg, sizeof(unit->err.msg), "%s", why);
}

static const char *why_lost(const struct attempt *a)
{
    return a->end == END_STOPPED ? "interrupted" : a->end == END_NODE ? LOST_BY_NODE : "lost";
}

static const char *lost_by(struct attempt *a)
{
    const struct rank_job *failed = &a->jobs[a->failed_job];
    return arena_printf(a->r->arena, "%.*s: %s", STR_ARG(attempt_node(a, failed)), failed->err.msg);
}

int attempt_note_lost(struct attempt *a, struct err *err)
{
    struct runner *r = a->r;
    struct journal_record record = unit_record(a->unit, J_LOST);
    if (a->is_noted_lost) {
        return 0;
    }
    record.outcome = str_of(why_lost(a));
    if (a->end == END_NODE) {
        record.note = str_sub(str_of(lost_by(a)), 0, 300);
    }
    if (journal_append(&r->journal, &record, err) < 0) {
        return -1;
    }
    a->is_noted_lost = true;
    return 0;
}

/* They are evidence of what happened; no number is ever taken from them. */
static int keep_lost_logs(struct attempt *a, struct journal_record *kept, struct err *err)
{
    struct runner *r = a->r;
    const struct unit *unit = a->unit;
    kept->files = arena_array(r->arena, struct journal_file, a->n_jobs + 1);
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        struct rank_job *job = &a->jobs[idx];
        struct journal_file *file = &kept->files[kept->n_files];
        const char *name =
            rundir_name(r->arena, job->launch.has_metric ? RUNDIR_LOST : RUNDIR_LOST_NODE,
                        (struct rundir_of){unit->step->case_id, unit->repeat,
                                           .attempt = unit->attempt, .name = attempt_node(a, job)});
        if (!job->log_bytes) {
            continue;
        }
        file->name = str_of(name);
        kept->n_files++;
        if (keep_log(a, job, name, err) < 0 ||
            digest_file_hex(r->arena, fs_join(r->arena, r->dir.evidence, name), &file->sha256,
                            err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* The attempt does not count; its logs are kept apart. */
static int attempt_lose(struct attempt *a, struct err *err)
{
    struct runner *r = a->r;
    struct unit *unit = a->unit;
    struct journal_record kept = {.state = J_FILES};
    if (sync_logs(a, err) < 0) {
        return -1;
    }
    if (keep_lost_logs(a, &kept, err) < 0) {
        return -1;
    }
    if (a->end == END_NODE) {
        const char *text = lost_by(a);
        run_note_orphan(r, unit);
        unit_blame(unit, text);
        log_line(LOG_WARN, "%.*s repeat %lld: attempt %lld is lost: %s",
                 STR_ARG(unit->step->case_id), (long long)unit->repeat, (long long)unit->attempt,
                 text);
    }
    if ((kept.n_files && sync_names(a, &kept.files[0], err) < 0) || attempt_note_lost(a, err) < 0 ||
        (kept.n_files && journal_append(&r->journal, &kept, err) < 0)) {
        return -1;
    }
    events_write(&r->events, EV_JOB_LOST, &a->fields);
    unit->state = UNIT_TODO;
    unit->n_lost += a->end != END_STOPPED;
    return 0;
}

static int set_file_aside(struct runner *r, const char *name, const char *aside,
                          struct journal_record *record, struct err *err)
{
    const char *path = fs_join(r->arena, r->dir.evidence, name);
    const char *to = aside ? fs_join(r->arena, r->dir.evidence, aside) : NULL;
    if (!fs_exists(path)) {
        return 0;
    }
    record->files[record->n_files++] = (struct journal_file){str_of(name), STR_LIT("")};
    if (!aside) {
        return 0;
    }
    struct journal_file *kept = &record->files[record->n_files++];
    kept->name = str_of(aside);
    if (fs_mkdir_above(to, err) < 0 ||
        (link(path, to) < 0 && errno != EEXIST && err_errno(err, "link", to) < 0) ||
        digest_file_hex(r->arena, to, &kept->sha256, err) < 0) {
        return -1;
    }
    return publish_parent(to, err);
}

/* Both names until the next attempt's files take the place of this one's: whoever is killed in between finds what the journal
   has. */
int unit_set_aside(struct runner *r, struct unit *unit, struct str archive, struct err *err)
{
    static const struct {
        enum rundir_kind kind, aside; /* RUNDIR_FILES_N: it is not kept */
        bool is_of_node;
    } KINDS[] = {
        {RUNDIR_LOG, RUNDIR_LOST, false},          {RUNDIR_OUTCOME, RUNDIR_LOST_OUTCOME, false},
        {RUNDIR_COMMANDS, RUNDIR_FILES_N, false},  {RUNDIR_SERIES, RUNDIR_FILES_N, false},
        {RUNDIR_NODE_LOG, RUNDIR_LOST_NODE, true}, {RUNDIR_MONITOR, RUNDIR_FILES_N, true},
    };
    struct rundir_of of = {
        .case_id = unit->step->case_id, .repeat = unit->repeat, .attempt = unit->attempt};
    const struct event_fields fields = unit_fields(unit);
    struct journal_record record = unit_record(unit, J_SET_ASIDE);
    record.note = archive;
    record.files =
        arena_array(r->arena, struct journal_file, 2 * ARRAY_LEN(KINDS) * (r->fleet.n_nodes + 1));
    for (size_t idx = 0; idx < ARRAY_LEN(KINDS); idx++) {
        for (size_t node = 0; node < (KINDS[idx].is_of_node ? r->fleet.n_nodes : 1); node++) {
            of.name = r->fleet.nodes[node].spec->name;
            const char *name = rundir_name(r->arena, KINDS[idx].kind, of);
            const char *aside = KINDS[idx].aside < RUNDIR_FILES_N
                                    ? rundir_name(r->arena, KINDS[idx].aside, of)
                                    : NULL;
            if (set_file_aside(r, name, aside, &record, err) < 0) {
                return -1;
            }
        }
    }
    if (journal_append(&r->journal, &record, err) < 0) {
        return -1;
    }
    run_make_again(r, unit, archive);
    events_write(&r->events, EV_REPEAT_SET_ASIDE, &fields);
    return 0;
}

/* ---- parsing ---- */

static int unit_parse(struct runner *r, struct unit *unit, struct err *err)
{
    struct run_put put = {.r = r};
    struct repeat_result *result =
        &r->repeats[result_repeat_at(&r->frozen.plan, unit->step, unit->repeat)];
    struct event_fields fields = unit_fields(unit);
    struct journal_record record = unit_record(unit, J_PARSED);
    record.files = &put.file;
    record.n_files = 1;
    if (result_repeat(r->arena, &r->frozen, (struct repeat_of){unit->step, unit->repeat},
                      (struct derived_to){run_put_derived, &put}, result, err) < 0) {
        return -1;
    }
    record.verdict = str_of(PARSE_VERDICT_NAMES[result->parse]);
    record.note = result->why.len ? result->why : STR_EMPTY;
    if (journal_append(&r->journal, &record, err) < 0) {
        return -1;
    }
    unit->state = UNIT_PARSED;
    unit->counts = result->counts;
    fields.text = record.note;
    if (result->counts) {
        fields.value_name = "value";
        fields.value = result->value;
        log_line(LOG_INFO, "%.*s repeat %lld: %.6g %.*s", STR_ARG(unit->step->case_id),
                 (long long)unit->repeat, result->value, STR_ARG(result->unit));
    } else {
        log_line(
            LOG_WARN, "%.*s repeat %lld does not count: %.*s; its log: %s",
            STR_ARG(unit->step->case_id), (long long)unit->repeat, STR_ARG(result->why),
            fs_join(r->arena, r->dir.evidence,
                    rundir_of_repeat(r->arena, RUNDIR_LOG, unit->step->case_id, unit->repeat)));
    }
    events_write(&r->events, EV_REPEAT_PARSED, &fields);
    return 0;
}

#define LOST_MAX        3           /* attempts of a repeat by one orchestrator */
#define DISK_FULL_BYTES (256 << 10) /* with less than this free, a log may have been truncated */
#define ABANDON_NS      (15 * NS_PER_S)

struct schedule {
    struct runner *r;
    struct attempt *active; /* one slot for each unit that runs; unit NULL: free */
    size_t n_slots;
    struct code code; /* of a command of one's own: all repeats are of one */
};

/* ---- progress ---- */

static uint64_t steps_of(const struct unit *unit)
{
    return (uint64_t)(unit->step->n_steps > 0 ? unit->step->n_steps : 1);
}

/* Lines stand for steps: near enough for a bar, and for nothing else. A repeat that does not count is not done: the bar does
   not fill up over it. */
static void show_progress(struct schedule *s)
{
    struct runner *r = s->r;
    uint64_t done = 0;
    for (size_t idx = 0; idx < r->n_units; idx++) {
        bool is_done = r->units[idx].state == UNIT_SPARE ||
                       (r->units[idx].state == UNIT_PARSED && r->units[idx].counts);
        done += is_done ? steps_of(&r->units[idx]) : 0;
    }
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        const struct attempt *a = &s->active[idx];
        for (size_t at = 0; a->unit && at < a->n_jobs; at++) {
            uint64_t lines = a->jobs[at].launch.has_metric ? a->jobs[at].log_lines : 0;
            uint64_t seen = lines ? lines - 1 : 0; /* the first says what it will do */
            uint64_t most = a->unit->step->n_steps > 0 ? steps_of(a->unit) : 0; /* unknown: none */
            done += seen < most ? seen : most;
        }
    }
    progress_set(&r->progress, done);
}

/* ---- placing ---- */

static bool is_free(const struct runner *r, size_t node)
{
    return !r->nodes[node].is_busy && !r->nodes[node].is_bad;
}

/* Whether enough nodes have the GPUs it needs, of all that are not bad or of those that are free. */
static bool has_room(const struct runner *r, const struct unit *unit, bool is_now)
{
    size_t n = 0;
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        n += (is_now ? is_free(r, idx) : !r->nodes[idx].is_bad) &&
             plan_step_fits(unit->step, r->fleet.nodes[idx].spec);
    }
    return n >= (size_t)plan_step_nodes(unit->step);
}

/* The unit gets the first free nodes that have the GPUs it needs, in the inventory's order. Who takes turns finds all of them
   free (must_wait), and so gets the same each time. Who finds no room asks again at each turn of the loop, which must take no
   memory. */
static bool place(struct runner *r, struct unit *unit)
{
    size_t n_wanted = (size_t)plan_step_nodes(unit->step);
    if (!has_room(r, unit, true)) {
        return false;
    }
    size_t *nodes = arena_array(r->arena, size_t, n_wanted);
    size_t n = 0;
    for (size_t idx = 0; n < n_wanted; idx++) {
        if (is_free(r, idx) && plan_step_fits(unit->step, r->fleet.nodes[idx].spec)) {
            nodes[n++] = idx;
        }
    }
    unit->nodes = nodes;
    return true;
}

/* For one that was begun before: a node of it that is bad since does not keep it from its end. */
static bool nodes_are_idle(const struct runner *r, const struct unit *unit)
{
    for (size_t idx = 0; idx < (size_t)plan_step_nodes(unit->step); idx++) {
        if (r->nodes[unit->nodes[idx]].is_busy) {
            return false;
        }
    }
    return true;
}

static bool is_pending(const struct unit *unit)
{
    return unit_is_open(unit) && !unit->is_given_up;
}

static bool is_active(const struct schedule *s, const struct unit *unit)
{
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        if (s->active[idx].unit == unit) {
            return true;
        }
    }
    return false;
}

static void set_busy(struct runner *r, const struct unit *unit, bool is_busy)
{
    for (size_t idx = 0; idx < (size_t)plan_step_nodes(unit->step); idx++) {
        r->nodes[unit->nodes[idx]].is_busy = is_busy;
    }
}

/* ---- beginning and ending ---- */

static void give_up(struct unit *unit)
{
    unit->is_given_up = true;
    log_line(LOG_ERROR, "%.*s repeat %lld is given up: %s", STR_ARG(unit->step->case_id),
             (long long)unit->repeat, unit->err.msg);
}

static int begin(struct schedule *s, struct unit *unit, struct err *err)
{
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        struct attempt *a = &s->active[idx];
        if (!a->unit) {
            set_busy(s->r, unit, true);
            return attempt_begin(a, s->r, unit, err);
        }
    }
    return err_set(err, ERR_INTERNAL, "no room for another attempt");
}

static const char *why_too_few(struct runner *r, const struct unit *unit)
{
    long long n_wanted = (long long)plan_step_nodes(unit->step);
    const char *text = arena_printf(r->arena, "needs %lld node%s: too few are left", n_wanted,
                                    n_wanted == 1 ? "" : "s");
    for (size_t idx = 0; idx < r->fleet.n_nodes; idx++) {
        const struct fleet_node *node = &r->fleet.nodes[idx];
        if (r->nodes[idx].is_bad && !r->nodes[idx].is_spare) {
            return arena_printf(r->arena, "%s; %.*s: %s", text, STR_ARG(node->spec->name),
                                node->err.msg);
        }
    }
    return text;
}

/* A repeat whose nodes are gone, or that was lost too many times, waits for `resume`. */
static bool must_give_up(struct runner *r, struct unit *unit)
{
    if (unit->n_lost >= LOST_MAX) {
        struct err before = unit->err;
        unit_blame(unit,
                   arena_printf(r->arena,
                                "%d attempts left no status (were they killed?)%s%s; reperf resume "
                                "%.*s tries again",
                                LOST_MAX, before.code ? "; the last: " : "", before.msg,
                                STR_ARG(r->dir.id)));
        return true;
    }
    if (!has_room(r, unit, false)) {
        if (unit->err.code == ERR_NONE) {
            unit_blame(unit, why_too_few(r, unit));
        }
        return true;
    }
    return false;
}

/* Who takes turns waits until the one before is over, so that both have the same nodes to themselves. */
static bool must_wait(const struct schedule *s)
{
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        if (s->active[idx].unit && s->r->frozen.plan.takes_turns) {
            return true;
        }
    }
    return false;
}

/* A repeat that is run only if those before it do not suffice waits for them. */
static bool is_held(struct runner *r, struct unit *unit)
{
    const struct plan *plan = &r->frozen.plan;
    if (unit->repeat <= plan->repeats) {
        return false;
    }
    for (size_t idx = 0; idx < r->n_units; idx++) {
        const struct unit *other = &r->units[idx];
        if (other->step == unit->step && other->repeat < unit->repeat &&
            other->state < UNIT_PARSED) {
            unit->is_given_up = other->is_given_up;
            unit->err = other->err;
            return true;
        }
    }
    if (result_has_enough(plan, &r->repeats[result_repeat_at(plan, unit->step, 1)],
                          unit->repeat - 1)) {
        unit->state = UNIT_SPARE;
        return true;
    }
    return false;
}

static bool may_begin(const struct schedule *s, struct unit *unit)
{
    if (is_held(s->r, unit)) {
        return false;
    }
    if (must_give_up(s->r, unit)) {
        give_up(unit);
        return false;
    }
    return !must_wait(s);
}

/* One log line for all: what is changed is put back, or a new run is made of it. */
static bool has_changed_code(struct schedule *s)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err why = {0};
    if (code_check(&arena, s->r->opts->ctx->clock, &s->code, NULL, &why) == 0) {
        return false;
    }
    if (why.code == ERR_INTEGRITY) {
        struct err what = why;
        why = (struct err){0};
        (void)!err_set(&why, what.code,
                       "%s: a repeat now would be of another program; put it back and resume, or "
                       "start a new run",
                       what.msg);
    }
    for (size_t idx = 0; idx < s->r->n_units; idx++) {
        struct unit *unit = &s->r->units[idx];
        if (unit->state == UNIT_TODO && !unit->is_given_up) {
            unit->is_given_up = true;
            unit->err = why;
        }
    }
    return true;
}

/* First those that run already, on the nodes that they have; then in plan order whatever fits. */
static int begin_what_fits(struct schedule *s, struct err *err)
{
    struct runner *r = s->r;
    for (int is_new = 0; is_new < 2; is_new++) {
        for (size_t idx = 0; idx < r->n_units; idx++) {
            struct unit *unit = &r->units[idx];
            if (!is_pending(unit) || is_active(s, unit) ||
                (unit->state == UNIT_TODO) != (is_new == 1)) {
                continue;
            }
            if (is_new && !may_begin(s, unit)) {
                continue;
            }
            bool is_ready = is_new ? place(r, unit) : nodes_are_idle(r, unit);
            if (is_ready && is_new && has_changed_code(s)) {
                return 0;
            }
            if (is_ready && begin(s, unit, err) < 0) {
                return -1;
            }
        }
    }
    return 0;
}

/* A log written to a full disk proves nothing, whatever the program reports: resume repeats it. */
static void forget_jobs(struct attempt *a)
{
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        struct remote *remote = a->jobs[idx].remote;
        while (remote->ops->forget(remote, a->jobs[idx].launch.job.id, ERR_IGNORED) == STEP_AGAIN) {
            if (loop_once(&a->r->loop, RUN_TICK_NS, ERR_IGNORED) < 0) {
                return;
            }
        }
    }
}

static int end_attempt(struct schedule *s, struct attempt *a, struct err *err)
{
    struct runner *r = s->r;
    struct unit *unit = a->unit;
    int rc = 0;
    attempt_look_for_engines(a);
    if (a->end != END_STOPPED && run_expect_disk(r, DISK_FULL_BYTES, err) < 0) {
        forget_jobs(a);
        rc = -1;
    } else if (a->end == END_EXITED || a->end == END_DEADLINE) {
        rc = attempt_collect(a, err);
    } else {
        rc = attempt_lose(a, err);
    }
    set_busy(r, unit, false);
    attempt_release(a);
    *a = (struct attempt){0};
    if (rc == 0 && unit->state == UNIT_FINISHED) {
        rc = unit_parse(r, unit, err);
    }
    if (rc == 0 && unit->state == UNIT_PARSED && !unit->counts &&
        unit->n_retries < r->opts->retries) {
        unit->n_retries++;
        rc = unit_set_aside(r, unit, STR_EMPTY, err);
    }
    return rc;
}

/* Jobs must not go on when we cannot follow them. */
static void abandon(struct schedule *s)
{
    struct runner *r = s->r;
    int64_t until_ns = loop_now_ns(&r->loop) + ABANDON_NS;
    bool is_any = true;
    while (is_any && loop_now_ns(&r->loop) < until_ns) {
        is_any = false;
        for (size_t idx = 0; idx < s->n_slots; idx++) {
            struct attempt *a = &s->active[idx];
            if (a->unit) {
                attempt_stop(a, END_STOPPED);
                is_any = attempt_step(a, ERR_IGNORED) != STEP_DONE || is_any; /* each of them */
            }
        }
        if (is_any && loop_once(&r->loop, RUN_TICK_NS, ERR_IGNORED) < 0) {
            return;
        }
    }
}

/* ---- the loop ---- */

static int step_all(struct schedule *s, size_t *ret_n_active, struct err *err)
{
    size_t n = 0;
    for (size_t idx = 0; idx < s->n_slots; idx++) {
        struct attempt *a = &s->active[idx];
        enum step step = a->unit ? attempt_step(a, err) : STEP_AGAIN;
        if (step == STEP_FAIL || (step == STEP_DONE && end_attempt(s, a, err) < 0)) {
            return -1;
        }
        n += a->unit != NULL;
    }
    *ret_n_active = n;
    return 0;
}

int run_parse_collected(struct runner *r, struct err *err)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (r->units[idx].state == UNIT_FINISHED && unit_parse(r, &r->units[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static bool is_anything_pending(const struct runner *r)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (is_pending(&r->units[idx])) {
            return true;
        }
    }
    return false;
}

static int carry_on(struct schedule *s, struct err *err)
{
    struct runner *r = s->r;
    size_t n_active = 0;
    while (n_active > 0 || (is_anything_pending(r) && !r->stop_signal)) {
        size_t n_before = n_active;
        run_keep_leases(r);
        if ((!r->stop_signal && begin_what_fits(s, err) < 0) || step_all(s, &n_active, err) < 0) {
            return -1;
        }
        show_progress(s);
        /* A unit that ended has freed nodes: others that fit need not wait. */
        if (n_active >= n_before && loop_once(&r->loop, RUN_TICK_NS, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int first_given_up(const struct runner *r, struct err *err)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        const struct unit *unit = &r->units[idx];
        if (unit->is_given_up) {
            return err_set(err, unit->err.code, "%.*s repeat %lld: %s",
                           STR_ARG(unit->step->case_id), (long long)unit->repeat, unit->err.msg);
        }
    }
    return 0;
}

int run_schedule(struct runner *r, struct err *err)
{
    struct schedule s = {.r = r, .n_slots = r->fleet.n_nodes};
    uint64_t total = 0;
    s.active = arena_array(r->arena, struct attempt, s.n_slots + 1);
    for (size_t idx = 0; idx < r->n_units; idx++) {
        total += steps_of(&r->units[idx]);
    }
    bool is_command = str_eq_z(r->frozen.report.cases[0].stack_id, COMMAND_STACK);
    if (run_parse_collected(r, err) < 0 ||
        (is_command && code_load(r->arena, r->dir.evidence, &s.code, err) < 0)) {
        return -1;
    }
    progress_start(&r->progress, r->opts->ctx->clock, "run",
                   total == r->n_units ? "repeats" : "steps", total);
    int rc = carry_on(&s, err);
    if (rc < 0) {
        abandon(&s);
    }
    progress_end(&r->progress);
    for (size_t idx = 0; idx < s.n_slots; idx++) {
        attempt_release(&s.active[idx]);
    }
    return rc < 0 || r->stop_signal ? rc : first_given_up(r, err);
}
