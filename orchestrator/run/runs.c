/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/runs.h"

#include <math.h>

#include "run/journal.h"

static int load_plan(struct arena *arena, struct run_info *info, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct plan plan;
    struct json root;
    if (json_read_file(fs_join(arena, info->dir.evidence, "manifest/plan.json"), &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (plan_decode(&root, arena, &plan, err) < 0) {
        return -1;
    }
    info->report = plan.report;
    info->profile = plan.profile;
    info->repeats =
        arena_array(arena, struct run_repeat, plan_runnable(&plan) * (size_t)plan.repeats + 1);
    for (size_t idx = 0; idx < plan.n_steps; idx++) {
        for (int64_t n = 1; plan.steps[idx].cause == ERR_NONE && n <= plan.repeats; n++) {
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
        if (record->state == J_STARTED) {
            at->state = "running";
            at->nodes = record->note;
        } else if (record->state == J_LOST) {
            at->state = "lost";
            at->n_lost++;
            at->why = record->note.len ? record->note : record->outcome;
        } else if (record->state == J_FINISHED) {
            at->state = "collected";
            at->why = STR_EMPTY;
        } else if (record->state == J_PARSED) {
            at->state = record->note.len && str_eq_z(record->verdict, "ok") ? "failed"
                                                                            : record->verdict.ptr;
            at->why = record->note;
        }
        return;
    }
}

static int load_journal(struct arena *arena, struct run_info *info, struct err *err)
{
    struct journal_records records = {0};
    if (journal_read(arena, info->dir.journal, &records, err) < 0) {
        return -1;
    }
    info->state = "died"; /* nobody works on it, and nobody said why */
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
    return 0;
}

static int load_cell(struct arena *arena, const struct json *at, struct run_cell *cell,
                     struct err *err)
{
    struct json member;
    cell->value = (double)NAN;
    if (json_member(at, "case", &member, err) < 0 ||
        json_str(&member, arena, &cell->case_id, err) < 0 ||
        json_member(at, "verdict", &member, err) < 0 ||
        json_str(&member, arena, &cell->verdict, err) < 0 ||
        json_member(at, "value", &member, err) < 0) {
        return -1;
    }
    if (!json_is_null(&member) && json_f64(&member, &cell->value, err) < 0) {
        return -1;
    }
    if (json_member(at, "unit", &member, err) < 0) {
        return -1;
    }
    return json_is_null(&member) ? 0 : json_str(&member, arena, &cell->unit, err);
}

static int load_result(struct arena *arena, struct run_info *info, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *path = fs_join(arena, info->dir.evidence, "result.json");
    struct json root;
    struct json list;
    struct json item;
    size_t n = 0;
    info->exit_status = -1;
    if (strcmp(info->state, "sealed") != 0) {
        return 0; /* what is there may be of an unfinished run */
    }
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (json_member(&root, "exit_status", &item, err) < 0 ||
        json_i64(&item, 0, 255, &info->exit_status, err) < 0 ||
        json_member(&root, "cells", &list, err) < 0 ||
        json_expect_array(&list, PLAN_STEPS_MAX, &n, err) < 0) {
        return -1;
    }
    info->cells = arena_array(arena, struct run_cell, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (load_cell(arena, &item, &info->cells[info->n_cells++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

int run_info_load(struct arena *arena, const struct rundir *dir, struct run_info *ret_info,
                  struct err *err)
{
    struct run_info info = {.dir = *dir};
    const char *id = dir->id.ptr;
    info.time = arena_printf(arena, "%.4s-%.2s-%.2sT%.2s:%.2s:%.6sZ", id, id + 4, id + 6, id + 9,
                             id + 11, id + 13);
    if (load_plan(arena, &info, err) < 0 || load_journal(arena, &info, err) < 0 ||
        load_result(arena, &info, err) < 0) {
        return -1;
    }
    *ret_info = info;
    return 0;
}

enum clean_run run_use(struct arena *arena, const char *state, struct str run, const char **ret_why)
{
    struct rundir dir;
    struct run_info info;
    struct err ignored = {0};
    int64_t holder;
    rundir_paths(arena, state, run, &dir);
    if (!fs_is_dir(dir.folder)) {
        return CLEAN_RUN_UNKNOWN;
    }
    holder = rundir_holder(&dir);
    if (holder) {
        *ret_why = arena_printf(arena, "process %lld works on the run", (long long)holder);
        return CLEAN_RUN_HELD;
    }
    if (run_info_load(arena, &dir, &info, &ignored) < 0) {
        return CLEAN_RUN_RESUMABLE;
    }
    return strcmp(info.state, "sealed") == 0 || strcmp(info.state, "cancelled") == 0
               ? CLEAN_RUN_OVER
               : CLEAN_RUN_RESUMABLE;
}
