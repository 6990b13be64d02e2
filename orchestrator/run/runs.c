/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/runs.h"

#include <math.h>

#include "judge/number.h"
#include "load/measure.h"
#include "run/journal.h"
#include "run/journal_check.h"
#include "run/run_impl.h"

static int load_plan(struct arena *arena, struct run_info *info, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct plan plan;
    if (json_read_file(fs_join(arena, info->dir.evidence, RUNDIR_FILES[RUNDIR_PLAN].name), &doc,
                       err) < 0 ||
        plan_decode(&doc.root, arena, &plan, err) < 0) {
        return -1;
    }
    info->report = plan.report;
    info->profile = plan.profile;
    info->is_rehearsal = plan.is_rehearsal;
    info->repeats = arena_array(arena, struct run_repeat,
                                plan_runnable(&plan) * (size_t)plan_most_repeats(&plan) + 1);
    for (size_t idx = 0; idx < plan.n_steps; idx++) {
        for (int64_t n = 1; plan.steps[idx].cause == ERR_NONE && n <= plan_most_repeats(&plan);
             n++) {
            info->repeats[info->n_total++] = (struct run_repeat){.case_id = plan.steps[idx].case_id,
                                                                 .repeat = n,
                                                                 .state = "waiting",
                                                                 .value = (double)NAN,
                                                                 .step = -1,
                                                                 .n_steps = -1,
                                                                 .left_s = (double)NAN};
        }
    }
    return 0;
}

static void note_record(struct run_info *info, const struct journal_record *record)
{
    for (size_t idx = 0; record->repeat > 0 && idx < info->n_total; idx++) {
        struct run_repeat *at = &info->repeats[idx];
        if (at->repeat != record->repeat || !str_eq(at->case_id, record->case_id)) {
            continue;
        }
        at->since = record->time;
        at->attempt = record->attempt;
        static const char *const STATES[J_STATE_COUNT] = {[J_STARTED] = "running",
                                                          [J_SET_ASIDE] = "waiting",
                                                          [J_LOST] = "lost",
                                                          [J_FINISHED] = "collected"};
        at->state = STATES[record->state]                                 ? STATES[record->state]
                    : record->note.len && str_eq_z(record->verdict, "ok") ? "failed"
                                                                          : record->verdict.ptr;
        at->nodes = record->state == J_STARTED ? record->note : at->nodes;
        at->n_lost += record->state == J_LOST;
        info->n_done -= record->state == J_SET_ASIDE;
        if (record->state != J_STARTED && record->state != J_SET_ASIDE) {
            at->why = record->state == J_FINISHED                    ? STR_EMPTY
                      : record->state == J_LOST && !record->note.len ? record->outcome
                                                                     : record->note;
        }
        return;
    }
}

/* Repeats that a sealed run did not need. */
static void drop_spare(struct run_info *info)
{
    size_t n = 0;
    for (size_t idx = 0; strcmp(info->state, "sealed") == 0 && idx < info->n_total; idx++) {
        if (info->repeats[idx].attempt) {
            info->repeats[n++] = info->repeats[idx];
        }
    }
    info->n_total = n ? n : info->n_total;
}

bool run_can_resume(const struct run_info *info)
{
    return strcmp(info->state, "died") == 0 || strcmp(info->state, "interrupted") == 0;
}

static int load_journal(struct arena *arena, struct run_info *info, struct err *err)
{
    struct journal_records records = {0};
    if (journal_read(arena, info->dir.journal, &records, err) < 0) {
        return -1;
    }
    info->state = "died"; /* no process works on it, for no recorded reason */
    for (size_t idx = 0; idx < records.n; idx++) {
        enum journal_state state = records.items[idx].state;
        note_record(info, &records.items[idx]);
        info->n_done += state == J_FINISHED;
        info->n_lost += state == J_LOST;
        info->state = state == J_SEALED        ? "sealed"
                      : state == J_CANCELLED   ? "cancelled"
                      : state == J_INTERRUPTED ? "interrupted"
                                               : "died";
        info->why = state == J_INTERRUPTED ? records.items[idx].note : STR_EMPTY;
    }
    if (rundir_holder(&info->dir)) {
        info->state = "running";
    }
    drop_spare(info);
    return 0;
}

/* What is there may be of an unfinished run, until it is sealed. */
static int load_result(struct arena *arena, struct run_info *info, struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    const struct run_result *result = &derived.result;
    if (strcmp(info->state, "sealed") != 0) {
        return 0;
    }
    if (run_derive(arena, info->dir.evidence, &derived, err) < 0 ||
        run_check(info->dir.evidence, &(struct run_claim){.run_id = derived.frozen.run_id}, err) <
            0) {
        return -1;
    }
    info->exit_status = result->exit_status;
    info->cells = arena_array(arena, struct run_cell, result->n_cells + 1);
    for (; info->n_cells < result->n_cells; info->n_cells++) {
        const struct cell_result *cell = &result->cells[info->n_cells];
        info->cells[info->n_cells] =
            (struct run_cell){.case_id = cell->of_case->id,
                              .verdict = str_of(RUN_VERDICT_NAMES[cell->verdict]),
                              .unit = cell->unit,
                              .value = cell->value};
    }
    return 0;
}

void run_info_look(struct arena *arena, const struct rundir *dir, struct run_info *ret_info)
{
    struct run_info info = {.dir = *dir, .exit_status = -1};
    char time[RFC3339_MAX];
    struct err err = {0};
    run_id_time(dir->id, time);
    info.time = arena_printf(arena, "%s", time);
    *ret_info = info;
    if (load_plan(arena, &info, &err) < 0 || load_journal(arena, &info, &err) < 0 ||
        load_result(arena, &info, &err) < 0) {
        ret_info->state = RUN_DAMAGED;
        ret_info->why = str_printf(arena, "%s", err.msg);
    } else {
        *ret_info = info;
    }
}

enum clean_run run_use(struct arena *arena, const char *state, struct str run, const char **ret_why)
{
    struct rundir dir;
    struct run_info info;
    rundir_paths(arena, state, run, &dir);
    if (!fs_is_dir(dir.folder)) {
        return CLEAN_RUN_UNKNOWN;
    }
    int64_t holder = rundir_holder(&dir);
    if (holder) {
        *ret_why = arena_printf(arena, "process %lld works on the run", (long long)holder);
        return CLEAN_RUN_HELD;
    }
    run_info_look(arena, &dir, &info);
    return strcmp(info.state, "sealed") == 0 || strcmp(info.state, "cancelled") == 0
               ? CLEAN_RUN_OVER
               : CLEAN_RUN_RESUMABLE;
}

/* What the logs of a run say while it is under way: each time read again, by the frozen formats and rules. */

#define JOBS_MAX 64 /* nodes of one attempt whose logs are looked at */

struct live {
    struct arena *arena;
    const struct frozen *frozen;
    const struct rundir *dir;
};

static void measure_log(const struct live *live, const struct plan_step *step, const char *path,
                        struct run_repeat *at)
{
    const struct frozen *frozen = live->frozen;
    const struct format *format = step->bound.format;
    struct rule_case of = result_rule_case(frozen, step);
    struct measurement m;
    struct made_number number;
    struct str why = STR_EMPTY;
    struct err ignored = {0}; /* a log that has nothing yet has no number */
    if ((!format && result_choose_format(live->arena, frozen, path, &format, &why, &ignored) < 0) ||
        !format ||
        measure_file(live->arena, &(struct reading){.format = format, .path = path}, &m, NULL,
                     &ignored) < 0) {
        return;
    }
    at->step = m.last_step;
    at->n_steps = m.total_steps;
    if (number_of_log(format, &m, step->bound.rule, &of, &number, &ignored) == 0) {
        at->value = number.made.value;
        at->n_samples = number.made.n_used;
        at->unit = number.unit;
    }
}

/* A log that is kept, else those that are on their way; then the time left, at the pace of the steps that are done, start-up
   among them. */
static void look_at(const struct live *live, int64_t now_ns, struct run_repeat *at)
{
    const struct plan *plan = &live->frozen->plan;
    const struct plan_step *step = STR_NAMED(plan->steps, plan->n_steps, case_id, at->case_id);
    const char *path = fs_join(live->arena, live->dir->evidence,
                               rundir_of_repeat(live->arena, RUNDIR_LOG, at->case_id, at->repeat));
    if (fs_exists(path)) {
        measure_log(live, step, path, at);
        return;
    }
    for (size_t job = 0; job < JOBS_MAX && at->step < 0 && !isfinite(at->value); job++) {
        path = arena_printf(live->arena, "%s/" RUN_PART_NAME, live->dir->folder,
                            result_repeat_at(plan, step, at->repeat), job);
        if (!fs_exists(path)) {
            break;
        }
        measure_log(live, step, path, at);
    }
    double elapsed_s = (double)(now_ns - run_wall_of(at->since)) / (double)NS_PER_S;
    if (at->step > 0 && at->n_steps >= at->step && elapsed_s >= 0) {
        at->left_s = elapsed_s * (double)(at->n_steps - at->step) / (double)at->step;
    }
}

int run_info_measure(struct arena *arena, struct clock_src clock, struct run_info *info,
                     struct err *err)
{
    CLEANUP(frozen) struct frozen frozen = {0};
    const struct live live = {arena, &frozen, &info->dir};
    if (frozen_load(arena, info->dir.evidence, &frozen, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < info->n_total; idx++) {
        if (strcmp(info->repeats[idx].state, "waiting") != 0) {
            look_at(&live, clock.wall_ns(clock.ctx), &info->repeats[idx]);
        }
    }
    return 0;
}
