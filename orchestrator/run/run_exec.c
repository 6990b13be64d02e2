/* SPDX-License-Identifier: Apache-2.0 */
/* Executes a run from the state in its journal to its sealed archive.

   Everything that a run is lies in its folder (evidence/rundir.h): what was frozen, what was collected, and the journal that says
   how far it is. Whether it was just created, was killed, or is over, run_execute does the same: it opens the folder, puts each
   unit (a repeat of a step) where the journal says it is, and does what is left.

     planned --> TODO --J_STARTED--> STARTED --J_FINISHED--> FINISHED --J_PARSED--> PARSED     of each unit
                  ^ |                   |                        |                    |
                  | +--> SPARE          |                        |                    |         the repeats before it are enough
                  +-------J_LOST--------+                        |                    |
                  +-------J_SET_ASIDE----------------------------+--------------------+         it failed and is made again
     all PARSED or SPARE --> J_JUDGED (each case) --> J_RESULT --> J_SEALED                     of the run
     J_INTERRUPTED, J_RESUMED, J_CANCELLED and J_FILES (more files of the evidence) may come between any two of them; J_SET_ASIDE
     may also come after J_SEALED, which it undoes

   (1) What a record announces is on the disk before the record is, and each file that it announces is in it by its digest.
   (2) Nothing goes on from a file that is not the one that was written: all are held against the journal when it is opened.
   (3) A log is parsed once by each process that goes on with the run, when its unit becomes PARSED; the result combines what that
       gave. A resumed run parses again what it finds: a number comes from a log, never from the journal.
   (4) Sealing derives nothing. It reads each file once, into the archive, and refuses what is not the file of (1).
   (5) Only the process that holds run.lock writes to the folder.
   (6) A run that was cancelled is not resumed; one that was sealed is checked, as anybody would, and stays as it is unless
       repeats that failed are made again (--rerun-failed): the archive with them is then kept beside the earlier ones. */
#include "base/base.h"

#include "run/run_impl.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "codec/digest.h"
#include "evidence/seal.h"
#include "evidence/verify_archive.h"
#include "judge/bind.h"
#include "run/journal_check.h"
#include "run/run.h"
#include "run/run_attempt.h"

struct journal_record unit_record(const struct unit *unit, enum journal_state state)
{
    return (struct journal_record){.state = state,
                                   .case_id = unit->step->case_id,
                                   .repeat = unit->repeat,
                                   .attempt = unit->attempt};
}

struct event_fields unit_fields(const struct unit *unit)
{
    return (struct event_fields){
        .case_id = unit->step->case_id, .repeat = unit->repeat, .attempt = unit->attempt};
}

int run_put_file(struct runner *r, const char *name, struct str text, struct journal_file *ret_file,
                 struct err *err)
{
    ret_file->name = str_dup(r->arena, str_of(name));
    ret_file->sha256 = digest_text_hex(r->arena, text);
    return rundir_settle(r->arena, r->dir.evidence, name, text, err);
}

int run_put_derived(void *ctx, const char *name, struct str text, struct err *err)
{
    struct run_put *put = ctx;
    return run_put_file(put->r, name, text, &put->file, err);
}

void runner_cleanup(struct runner *r)
{
    for (size_t idx = 0; r->nodes && idx < r->fleet.n_nodes; idx++) {
        lease_op_release(&r->nodes[idx].lease);
        remote_free(r->nodes[idx].keeper);
    }
    fleet_release(&r->fleet);
    loop_release(&r->loop);
    journal_release(&r->journal);
    map_release(&r->files);
    events_release(&r->events);
    frozen_release(&r->frozen);
    VEC_RELEASE(&r->orphans);
    VEC_RELEASE(&r->images);
    VEC_RELEASE(&r->tokens);
}

static void on_signal(void *ctx, int signal_no)
{
    struct runner *r = ctx;
    r->stop_signal = r->stop_signal ? r->stop_signal : signal_no;
    r->n_signals++;
}

static int append(struct runner *r, enum journal_state state, struct str case_id,
                  const char *verdict, const char *note, struct err *err)
{
    struct journal_record record = {
        .state = state, .case_id = case_id, .verdict = str_of(verdict), .note = str_of(note)};
    return journal_append(&r->journal, &record, err);
}

/* ---- where it is ---- */

/* Steps of one row take turns: the first of them in the plan. */
static size_t row_of(const struct plan *plan, size_t step)
{
    const struct plan_step *steps = plan->steps;
    size_t idx = plan->takes_turns ? 0 : step;
    while (idx < step && !report_same_row(steps[idx].bound.of_case, steps[step].bound.of_case)) {
        idx++;
    }
    return idx;
}

/* Row by row, and of each its repeats in turn: A 1, B 1, A 2, B 2. */
void run_make_units(struct runner *r)
{
    const struct plan *plan = &r->frozen.plan;
    r->units = arena_array(r->arena, struct unit, result_n_repeats(plan) + 1);
    r->repeats = arena_array(r->arena, struct repeat_result, result_n_repeats(plan) + 1);
    for (size_t row = 0; row < plan->n_steps; row++) {
        for (int64_t repeat = 1; row_of(plan, row) == row && repeat <= plan_most_repeats(plan);
             repeat++) {
            for (size_t idx = row; idx < plan->n_steps; idx++) {
                if (plan->steps[idx].cause == ERR_NONE && row_of(plan, idx) == row) {
                    r->units[r->n_units++] =
                        (struct unit){.step = &plan->steps[idx], .repeat = repeat};
                }
            }
        }
    }
}

bool run_has_work(const struct runner *r)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (unit_is_open(&r->units[idx])) {
            return true;
        }
    }
    return false;
}

static struct unit *find_unit(struct runner *r, const struct journal_record *record)
{
    for (size_t idx = 0; idx < r->n_units; idx++) {
        if (r->units[idx].repeat == record->repeat &&
            str_eq(r->units[idx].step->case_id, record->case_id)) {
            return &r->units[idx];
        }
    }
    return NULL;
}

int64_t run_wall_of(struct str rfc3339)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    struct tm parts = {0};
    const char *end = strptime(str_z(&scratch, rfc3339), "%Y-%m-%dT%H:%M:%S", &parts);
    return end ? (int64_t)timegm(&parts) * NS_PER_S : 0;
}

static int replay_run_record(struct runner *r, const struct journal_record *record, struct err *err)
{
    r->n_judged += record->state == J_JUDGED;
    if (record->state == J_SEALED) {
        r->was_sealed = true;
        r->sealed = record->note;
    }
    return record->state != J_CANCELLED
               ? 0
               : err_set(err, ERR_USAGE, "it was cancelled; start a new one");
}

static int replay_record(struct runner *r, const struct journal_record *record, struct err *err)
{
    bool is_of_repeat = record->state == J_STARTED || record->state == J_LOST ||
                        record->state == J_FINISHED || record->state == J_PARSED ||
                        record->state == J_SET_ASIDE;
    struct unit *unit = is_of_repeat ? find_unit(r, record) : NULL;
    if (!is_of_repeat) {
        return replay_run_record(r, record, err);
    }
    if (!unit) {
        return err_set(err, ERR_INTEGRITY, "%s:%lld: %.*s repeat %lld is not in the plan",
                       r->dir.journal, (long long)record->seq, STR_ARG(record->case_id),
                       (long long)record->repeat);
    }
    if (record->state == J_STARTED) {
        unit->state = UNIT_STARTED;
        unit->attempt = record->attempt;
        unit->started_wall_ns = run_wall_of(record->time);
        if (run_place_again(r, unit, record, err) < 0) {
            return -1;
        }
    } else if (record->state == J_SET_ASIDE) {
        run_make_again(r, unit, record->note);
    } else if (record->state == J_LOST) {
        unit->state = UNIT_TODO;
        if (unit->nodes) { /* it may have survived although it was recorded as lost */
            run_note_orphan(r, unit);
        }
    } else {
        /* (3): also where it was parsed, as the number comes from the log, not from here. */
        unit->state = UNIT_FINISHED;
    }
    return 0;
}

void run_make_again(struct runner *r, struct unit *unit, struct str archive)
{
    r->n_archives += r->was_sealed;
    r->was_sealed = false;
    r->n_judged = 0;
    r->dir.archive = rundir_archive(r->arena, r->dir.folder, r->dir.id, r->n_archives);
    unit->state = UNIT_TODO;
    unit->replaces = archive;
    unit->nodes = NULL;
    unit->counts = false;
}

static int check_programs(struct runner *r, struct err *err)
{
    for (size_t idx = 0; idx < r->frozen.n_programs; idx++) {
        const struct frozen_digest *program = &r->frozen.programs[idx];
        struct str hex;
        const char *path = str_eq_z(program->name, TRAIN_PROGRAM)
                               ? planner_train_path(r->arena, r->opts->ctx->self)
                               : r->opts->ctx->self;
        if (digest_file_hex(r->arena, path, &hex, err) < 0) {
            return err_wrap(err, "run %.*s", STR_ARG(r->dir.id));
        }
        if (!str_eq(program->sha256, hex)) {
            return err_set(err, ERR_INTEGRITY,
                           "%s: SHA-256 %.*s is not the pinned one of this run, %.*s", path,
                           STR_ARG(hex), STR_ARG(program->sha256));
        }
    }
    return 0;
}

/* The first record, which stands for all that was frozen: the lock has the digests of the other files. */
static int note_plan(struct runner *r, struct err *err)
{
    struct journal_file lock = {.name = str_of(RUNDIR_FILES[RUNDIR_LOCK].name)};
    struct journal_record record = {
        .state = J_PLANNED, .note = r->frozen.report_sha256, .files = &lock, .n_files = 1};
    return digest_file_hex(r->arena, fs_join(r->arena, r->dir.evidence, lock.name.ptr),
                           &lock.sha256, err) < 0
               ? -1
               : journal_append(&r->journal, &record, err);
}

static struct runner runner_of(struct arena *arena, const struct run_opts *opts,
                               const struct rundir *dir)
{
    return (struct runner){.arena = arena,
                           .opts = opts,
                           .dir = *dir,
                           .journal = JOURNAL_EMPTY,
                           .events = EVENTS_EMPTY,
                           .loop = LOOP_EMPTY,
                           .open = fleet_remote_new};
}

/* What was frozen, the journal and the nodes; each unit is where it was planned. */
static int open_parts(struct runner *r, struct journal_records *ret_records, struct err *err)
{
    if (frozen_load(r->arena, r->dir.evidence, &r->frozen, err) < 0 ||
        journal_open(&r->journal, r->arena, r->dir.journal, r->opts->ctx->clock, ret_records, err) <
            0 ||
        events_open(&r->events, r->dir.events, r->opts->ctx->clock, err) < 0 ||
        run_nodes_open(r, err) < 0) {
        return -1;
    }
    run_make_units(r);
    return 0;
}

static int open_run(struct runner *r, struct err *err)
{
    struct journal_records records = {0};
    if (open_parts(r, &records, err) < 0) {
        return -1;
    }
    if (records.torn_bytes) {
        log_line(LOG_WARN, "%s: a last record that was cut (%llu bytes) is dropped", r->dir.journal,
                 (unsigned long long)records.torn_bytes);
    }
    journal_files(&records, &r->files); /* (2) */
    if (journal_check_files(r->arena, r->dir.evidence, &r->files, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < records.n; idx++) {
        if (replay_record(r, &records.items[idx], err) < 0) {
            return -1;
        }
    }
    if (run_has_work(r) && check_programs(r, err) < 0) {
        return -1;
    }
    struct event_fields fields = {.text = r->frozen.plan.report};
    events_write(&r->events, records.n ? EV_RUN_RESUMED : EV_RUN_PLANNED, &fields);
    if (r->was_sealed) {
        return 0;
    }
    return records.n ? append(r, J_RESUMED, STR_EMPTY, NULL, r->frozen.report_sha256.ptr, err)
                     : note_plan(r, err);
}

/* ---- the way ---- */

static int note_stop(struct runner *r, struct run_end *end, struct err *err)
{
    char note[64];
    struct event_fields fields = {0};
    end->stopped_by = r->stop_signal;
    end->is_cancelled = fs_exists(r->dir.cancel);
    snprintf(note, sizeof(note), "signal %d", r->stop_signal);
    fields.text = str_of(note);
    events_write(&r->events, end->is_cancelled ? EV_RUN_CANCELLED : EV_RUN_INTERRUPTED, &fields);
    return append(r, end->is_cancelled ? J_CANCELLED : J_INTERRUPTED, STR_EMPTY, NULL, note, err);
}

/* The cause of the end is the error; a failure to record it is not. */
static void note_failure(struct runner *r, const struct err *why)
{
    struct err ignored = {0};
    struct event_fields fields = {.text = str_of(why->msg)};
    events_write(&r->events, EV_RUN_INTERRUPTED, &fields);
    if (append(r, J_INTERRUPTED, STR_EMPTY, NULL, why->msg, &ignored) < 0) {
        log_line(LOG_DEBUG, "%s", ignored.msg);
    }
}

/* (3): the repeats were derived as they were collected. */
static int judge(struct runner *r, struct run_end *end, struct err *err)
{
    struct run_put put = {.r = r};
    if (result_combine(r->arena, &r->frozen, r->repeats, (struct derived_to){run_put_derived, &put},
                       &end->result, err) < 0) {
        return -1;
    }
    for (size_t idx = r->n_judged; idx < end->result.n_cells; idx++) {
        const struct cell_result *cell = &end->result.cells[idx];
        const char *verdict = RUN_VERDICT_NAMES[cell->verdict];
        struct event_fields fields = {.case_id = cell->of_case->id, .text = str_of(verdict)};
        if (append(r, J_JUDGED, cell->of_case->id, verdict, NULL, err) < 0) {
            return -1;
        }
        events_write(&r->events, EV_CASE_JUDGED, &fields);
    }
    struct journal_record record = {
        .state = J_RESULT, .note = put.file.sha256, .files = &put.file, .n_files = 1};
    return journal_append(&r->journal, &record, err);
}

/* (4) */
static int seal(struct runner *r, struct run_end *end, struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    CLEANUP(map) struct map files = {0};
    CLEANUP(map) struct map written = {0};
    struct journal_records records = {0};
    struct seal_info info;
    struct event_fields fields = {0};
    if (r->opts->key_path && sign_load_private(r->opts->key_path, &key, err) < 0) {
        return -1;
    }
    end->is_signed = r->opts->key_path != NULL;
    /* A second sealing, after a crash between the archive and its record, gives the same archive again. */
    struct seal_opts opts = {.folder = r->dir.evidence,
                             .archive = r->dir.archive,
                             .is_bytes_only = true,
                             .files = &files,
                             .key = end->is_signed ? &key : NULL,
                             .may_replace = true,
                             .wants_progress = true,
                             .clock = r->opts->ctx->clock};
    if (journal_read(r->arena, r->dir.journal, &records, err) < 0) {
        return -1;
    }
    journal_files(&records, &written);
    journal_expected(&r->frozen, &records, r->arena, &files);
    opts.journal = records.result;
    if (run_tidy(r->arena, r->dir.evidence, &written, err) < 0 ||
        seal_folder(r->arena, &opts, &info, err) < 0 ||
        append(r, J_SEALED, STR_EMPTY, end->is_signed ? "signed" : "unsigned", info.sha256, err) <
            0) {
        return -1;
    }
    fields.text = str_of(info.sha256);
    events_write(&r->events, EV_RUN_SEALED, &fields);
    fs_drop_tree(r->dir.jobs); /* the logs are in the evidence */
    return 0;
}

/* (6): what was sealed once still follows from its logs, and its archive is the one that was made of it. */
static int check_sealed(struct runner *r, struct run_end *end, struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    struct verify_info info = {0};
    const struct verify_opts opts = {.path = r->dir.archive,
                                     .allows_unsigned = true,
                                     .is_bytes_only = true,
                                     .clock = r->opts->ctx->clock};
    if (run_derive(r->arena, r->dir.evidence, &derived, err) < 0 ||
        discrepancies_refuse(&derived.discrepancies, err) < 0) {
        return -1;
    }
    if (!fs_exists(r->dir.archive)) {
        return err_set(err, ERR_INTEGRITY, "%s: is not there any more; reperf seal makes it again",
                       r->dir.archive);
    }
    if (verify_archive(r->arena, &opts, &info, err) < 0 ||
        run_check(r->dir.archive, &(struct run_claim){info.run_id, info.journal, NULL}, err) < 0) {
        return err_wrap(err, "%s", r->dir.archive);
    }
    end->is_signed = info.signer != VERIFY_SIGNER_NONE;
    end->result = derived.result;
    frozen_release(&r->frozen);
    r->frozen = derived.frozen; /* given away, the result borrows from it */
    derived = (struct derived){0};
    return 0;
}

/* --rerun-failed: repeats that ended and do not count. Of a sealed run, once it was checked as anybody would. */
static int make_failed_again(struct runner *r, struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    size_t n = 0;
    if (r->was_sealed ? run_derive(r->arena, r->dir.evidence, &derived, err) < 0
                      : run_parse_collected(r, err) < 0) {
        return -1;
    }
    const struct str sealed = r->was_sealed ? r->sealed : STR_EMPTY;
    for (size_t idx = 0; idx < derived.result.n_cells; idx++) {
        const struct cell_result *cell = &derived.result.cells[idx];
        size_t at = cell->n_repeats ? result_repeat_at(&derived.frozen.plan, cell->step, 1) : 0;
        memcpy(&r->repeats[at], cell->repeats, cell->n_repeats * sizeof(*cell->repeats));
    }
    for (size_t idx = 0; idx < r->n_units; idx++) {
        struct unit *unit = &r->units[idx];
        const struct repeat_result *repeat =
            &r->repeats[result_repeat_at(&r->frozen.plan, unit->step, unit->repeat)];
        if (unit->state >= UNIT_FINISHED && unit->state != UNIT_SPARE && !repeat->counts) {
            n++;
            if (unit_set_aside(r, unit, sealed, err) < 0) {
                return -1;
            }
        }
    }
    log_line(LOG_INFO, "%zu repeat%s that failed %s made again", n, n == 1 ? "" : "s",
             n == 1 ? "is" : "are");
    return n ? check_programs(r, err) : 0;
}

static int carry_out(struct runner *r, struct run_end *end, struct err *err)
{
    if (open_run(r, err) < 0) {
        return -1;
    }
    if (r->opts->reruns_failed && make_failed_again(r, err) < 0) {
        return -1;
    }
    if (r->was_sealed) {
        log_line(LOG_INFO, "run %.*s is finished and sealed", STR_ARG(r->dir.id));
        return check_sealed(r, end, err);
    }
    if (run_provision(r, err) < 0 || run_schedule(r, err) < 0) {
        run_leave_nodes(r, false);
        if (!r->stop_signal || err->code != ERR_INTERRUPTED) {
            note_failure(r, err);
            return -1;
        }
        *err = (struct err){0}; /* what was under way was given up because of the signal */
        return note_stop(r, end, err);
    }
    run_leave_nodes(r, !r->stop_signal);
    if (r->stop_signal) {
        return note_stop(r, end, err);
    }
    if (judge(r, end, err) < 0 || seal(r, end, err) < 0) {
        return -1;
    }
    return 0;
}

int run_execute(struct arena *arena, const struct run_opts *opts, const struct rundir *dir,
                struct run_end *ret_end, struct err *err)
{
    CLEANUP(runner) struct runner r = runner_of(arena, opts, dir);
    CLEANUP(fd) int lock = -1;
    struct run_end end = {0};
    if (rundir_lock(dir, &lock, err) < 0) { /* (5) */
        return -1;
    }
    loop_init(&r.loop, opts->ctx->clock);
    if (loop_catch_signals(&r.loop, on_signal, &r, err) < 0) {
        return -1;
    }
    if (carry_out(&r, &end, err) < 0) {
        struct event_fields fields = {.text = str_of(err->msg)};
        events_write(&r.events, EV_RUN_FAILED, &fields);
        return -1;
    }
    end.frozen = r.frozen;
    r.frozen.formats = (struct format_set){0}; /* given away */
    *ret_end = end;
    return 0;
}

static int discard(void *ctx UNUSED, const char *name UNUSED, struct str text UNUSED,
                   struct err *err UNUSED)
{
    return 0;
}

int run_nothing(struct arena *arena, const struct run_prepared *prepared, struct run_end *ret_end,
                struct err *err)
{
    struct run_end end = {.frozen = {.report = prepared->report,
                                     .plan = prepared->plan,
                                     .inventory = prepared->inventory,
                                     .vocabulary = vocabulary_builtin(arena)}};
    bind_plan(arena, &end.frozen.report, &end.frozen.formats, &end.frozen.plan);
    if (result_combine(arena, &end.frozen, NULL, (struct derived_to){discard, NULL}, &end.result,
                       err) < 0) {
        return -1;
    }
    *ret_end = end;
    return 0;
}

/* ---- cancelling ---- */

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
                return err_pass(err, &why);
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
    CLEANUP(runner) struct runner r = runner_of(arena, opts, dir);
    struct journal_records records = {0};
    const struct journal_record cancelled = {.state = J_CANCELLED, .note = STR_LIT("cancel")};
    loop_init(&r.loop, opts->ctx->clock);
    if (open_parts(&r, &records, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < records.n; idx++) {
        if (is_asked && records.items[idx].state == J_CANCELLED) {
            return 0;
        }
        if (records.items[idx].state == J_SEALED) {
            return err_set(err, ERR_USAGE, "run %.*s is finished: nothing to cancel",
                           STR_ARG(dir->id));
        }
        if (replay_record(&r, &records.items[idx], err) < 0) {
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
    struct clock_src clock = opts->ctx->clock;
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
