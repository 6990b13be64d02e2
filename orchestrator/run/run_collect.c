/* SPDX-License-Identifier: Apache-2.0 */
/* After an attempt: its logs become evidence and its outcome is recorded, or they are kept apart. Then the log is parsed. */
#include "base/base.h"

#include "run/run_attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/publish.h"

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

static struct str node_name(const struct attempt *a, const struct rank_job *m)
{
    return a->r->fleet.nodes[m->node].spec->name;
}

/* The log that metrics are read from has the plain name. */
static const char *log_name(struct attempt *a, const struct rank_job *m)
{
    const struct unit *unit = a->unit;
    return rundir_name(
        a->r->arena, m->job.has_metric ? RUNDIR_LOG : RUNDIR_NODE_LOG,
        (struct rundir_of){unit->step->case_id, unit->repeat, .name = node_name(a, m)});
}

/* All of them before the first is moved: then one commit of the file system serves for all. */
static int sync_logs(struct attempt *a, struct err *err)
{
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        (void)sync_file_range(a->jobs[idx].fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* begun */
    }
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        const struct rank_job *m = &a->jobs[idx];
        if (publish_data(m->fd, m->part, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Synced already, it is moved below the evidence folder: whole, or not there at all. */
static int keep_log(struct attempt *a, struct rank_job *m, const char *name, struct err *err)
{
    const char *path = fs_join(a->r->arena, a->r->dir.evidence, name);
    if (fs_mkdir_above(path, err) < 0) {
        return -1;
    }
    if (rename(m->part, path) < 0) {
        return err_errno(err, "rename to", path);
    }
    close(m->fd);
    m->fd = -1;
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
        if (a->jobs[idx].job.has_metric) {
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
        const struct rank_job *m = &a->jobs[idx];
        outcome->nodes[outcome->n_nodes++] =
            (struct outcome_node){.name = node_name(a, m),
                                  .exit_status = m->exit_status,
                                  .log = str_of(log_name(a, m)),
                                  .log_sha256 = str_of(m->sha256),
                                  .log_bytes = (int64_t)m->log_bytes};
        if (watch_keep(a, m, &outcome->nodes[idx], &record->files[record->n_files], err) < 0) {
            return -1;
        }
        record->n_files += outcome->nodes[idx].monitor.ptr != NULL;
    }
    if (a->exit_status != 0) {
        outcome->failed_node = node_name(a, &a->jobs[a->failed_job]);
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
        const struct rank_job *m = &a->jobs[idx];
        if (m->left[0]) {
            text = arena_printf(a->r->arena, "%s%s%.*s: %s", text ? text : "", text ? "; " : "",
                                STR_ARG(node_name(a, m)), m->left);
        }
    }
    if (text) {
        log_line(LOG_WARN, "%.*s repeat %lld: processes outlived the job and were ended: %s",
                 STR_ARG(a->unit->step->case_id), (long long)a->unit->repeat, text);
    }
    return text ? str_of(text) : STR_EMPTY;
}

int attempt_collect(struct attempt *a, struct err *err)
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
    struct journal_record record = {.state = J_FINISHED,
                                    .case_id = unit->step->case_id,
                                    .repeat = unit->repeat,
                                    .attempt = unit->attempt,
                                    .outcome = str_of(OUTCOME_NAMES[outcome.outcome]),
                                    .exit_status = exit_status,
                                    .log_sha256 = outcome.log_sha256,
                                    .log_bytes = outcome.log_bytes};
    record.files = arena_array(r->arena, struct journal_file, 2 * a->n_jobs + 1);
    outcome.left = left_of(a);
    if (note_nodes(a, &outcome, &record, err) < 0 || sync_logs(a, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < a->n_jobs; idx++) {
        struct rank_job *m = &a->jobs[idx];
        const char *name = log_name(a, m);
        record.files[record.n_files++] = (struct journal_file){str_of(name), str_of(m->sha256)};
        if (keep_log(a, m, name, err) < 0) {
            return -1;
        }
    }
    if (sync_names(a, &record.files[record.n_files - 1], err) < 0 ||
        record_outcome(a, &outcome, &record.files[record.n_files++], err) < 0 ||
        journal_append(&r->journal, &record, err) < 0) {
        return -1;
    }
    unit->state = UNIT_FINISHED;
    unit->log_bytes = outcome.log_bytes;
    a->fields.value_name = "exit_status";
    a->fields.value = (double)exit_status;
    events_write(&r->events, EV_REPEAT_FINISHED, &a->fields);
    return 0;
}

/* ---- one that does not ---- */

void attempt_look_for_engines(struct attempt *a)
{
    for (size_t idx = 0; idx < a->n_jobs && a->end == END_EXITED && a->exit_status; idx++) {
        struct rank_job *m = &a->jobs[idx];
        const char *const *words = m->job.job.cleanup;
        if (m->fd < 0 || !runtime_is_lost(a->r->frozen.plan.runtime, m->exit_status,
                                          fs_read_tail(a->r->arena, m->part))) {
            continue;
        }
        while (words && words[0] && words[1]) {
            words++;
        }
        (void)!err_set(&m->err, ERR_NODE,
                       "its container engine was lost in mid-job; container %s may be left there, "
                       "which resume and reperf nodes clean remove",
                       words && words[0] ? words[0] : "of the job");
        run_leave_out(a->r, m->node, &m->err);
        a->failed_job = idx;
        a->end = END_NODE;
    }
}

void unit_blame(struct unit *unit, const char *why)
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
    return arena_printf(a->r->arena, "%.*s: %s", STR_ARG(node_name(a, failed)), failed->err.msg);
}

int attempt_note_lost(struct attempt *a, struct err *err)
{
    struct runner *r = a->r;
    struct journal_record record = {.state = J_LOST,
                                    .case_id = a->unit->step->case_id,
                                    .repeat = a->unit->repeat,
                                    .attempt = a->unit->attempt,
                                    .outcome = str_of(why_lost(a))};
    if (a->is_noted_lost) {
        return 0;
    }
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
        struct rank_job *m = &a->jobs[idx];
        struct journal_file *file = &kept->files[kept->n_files];
        const char *name =
            rundir_name(r->arena, m->job.has_metric ? RUNDIR_LOST : RUNDIR_LOST_NODE,
                        (struct rundir_of){unit->step->case_id, unit->repeat,
                                           .attempt = unit->attempt, .name = node_name(a, m)});
        if (!m->log_bytes) {
            continue;
        }
        file->name = str_of(name);
        kept->n_files++;
        if (keep_log(a, m, name, err) < 0 ||
            digest_file_hex(r->arena, fs_join(r->arena, r->dir.evidence, name), &file->sha256,
                            err) < 0) {
            return -1;
        }
    }
    return 0;
}

int attempt_lose(struct attempt *a, struct err *err)
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

/* Both names until the next attempt's files take the place of this one's: whoever is killed in between finds what the journal has. */
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
    struct event_fields fields = {
        .case_id = of.case_id, .repeat = of.repeat, .attempt = of.attempt};
    struct journal_record record = {.state = J_SET_ASIDE,
                                    .case_id = of.case_id,
                                    .repeat = of.repeat,
                                    .attempt = of.attempt,
                                    .note = archive};
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

int unit_parse(struct runner *r, struct unit *unit, struct err *err)
{
    struct run_put put = {.r = r};
    struct repeat_result *result =
        &r->repeats[result_repeat_at(&r->frozen.plan, unit->step, unit->repeat)];
    struct event_fields fields = {
        .case_id = unit->step->case_id, .repeat = unit->repeat, .attempt = unit->attempt};
    struct journal_record record = {.state = J_PARSED,
                                    .case_id = unit->step->case_id,
                                    .repeat = unit->repeat,
                                    .attempt = unit->attempt,
                                    .files = &put.file,
                                    .n_files = 1};
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
    unit->value = result->value;
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
