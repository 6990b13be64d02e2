/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <fnmatch.h>
#include <math.h>

#include "base/log.h"
#include "base/table.h"
#include "cmd/cmd.h"
#include "codec/json.h"
#include "judge/verdict.h"
#include "load/load.h"
#include "run/runs.h"
#include "view/page_history.h"

#define OUTPUT_MAX (64u << 20)

struct history_args {
    const char *case_glob;
    const char *report;
    const char *html;
    bool want_json, is_quiet, is_verbose;
};

static const struct opt OPTS[] = {
    OPT(struct history_args, case_glob, "case",
        "only cells of cases that match: one cell over time", .value = "GLOB"),
    OPT(struct history_args, report, "report", "only runs of this report", .value = "REPORT"),
    OPT(struct history_args, html, "html",
        "a page with each case over time as a curve; - is standard output", .value = "FILE"),
    OPT(struct history_args, want_json, "json", "print one JSON document"),
    OPT(struct history_args, is_quiet, "quiet",
        "in text only what failed, did not run or is damaged, and the summary", .letter = 'q'),
    OPT(struct history_args, is_verbose, "verbose", "in text also where each run is stored",
        .letter = 'v'),
    OPT_END,
};

struct history { /* what is being written */
    const struct history_args *args;
    size_t n_cells, n_runs; /* that were asked for */
    size_t n_damaged;
    size_t n_of[RUN_NOT_RUN + 1]; /* cells by verdict */
    struct table table;
    struct json_out out;
    struct arena *arena; /* of the points */
    VEC(struct history_point) points;
    struct json_out damaged; /* a list of its own, put in at the end */
};

static bool is_wanted(const struct history_args *args, const struct run_cell *cell)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    return !args->case_glob || fnmatch(args->case_glob, str_z(&arena, cell->case_id), 0) == 0;
}

static bool is_error(const struct run_cell *cell)
{
    return str_eq_z(cell->verdict, run_verdict_name(RUN_FAILED)) ||
           str_eq_z(cell->verdict, run_verdict_name(RUN_NOT_RUN));
}

static void add_folder(struct history *history, const struct run_info *info)
{
    if (history->args->is_verbose) {
        table_add(&history->table, str_of(info->dir.folder));
    }
}

static void add_cell(struct history *history, const struct run_info *info,
                     const struct run_cell *cell)
{
    history->n_cells++;
    for (size_t idx = 0; idx < ARRAY_LEN(history->n_of); idx++) {
        history->n_of[idx] += str_eq_z(cell->verdict, run_verdict_name((enum run_verdict)idx));
    }
    if (history->args->html) {
        VEC_PUSH(&history->points,
                 (struct history_point){.time = str_dup(history->arena, str_of(info->time)),
                                        .run = str_dup(history->arena, info->dir.id),
                                        .name = str_dup(history->arena, str_of(info->name)),
                                        .report = str_dup(history->arena, info->report),
                                        .case_id = str_dup(history->arena, cell->case_id),
                                        .unit = str_dup(history->arena, cell->unit),
                                        .verdict = str_dup(history->arena, cell->verdict),
                                        .kind = plan_kind_name(info->profile, info->is_rehearsal),
                                        .value = cell->value});
        return;
    }
    if (history->args->want_json) {
        jw_object(&history->out, NULL);
        jw_str(&history->out, "run", info->dir.id);
        jw_z(&history->out, "time", info->time);
        jw_str(&history->out, "report", info->report);
        jw_z(&history->out, "profile", profile_name(info->profile));
        if (info->is_rehearsal) {
            jw_bool(&history->out, "rehearsal", true);
        }
        jw_str(&history->out, "case", cell->case_id);
        jw_f64(&history->out, "value", cell->value);
        jw_str(&history->out, "unit", cell->unit);
        jw_str(&history->out, "verdict", cell->verdict);
        jw_end_object(&history->out);
        return;
    }
    if (history->args->is_quiet && !is_error(cell)) {
        return;
    }
    table_add(&history->table, str_of(info->time));
    table_add(&history->table, info->dir.id);
    table_add(&history->table, info->report);
    table_add(&history->table, str_of(plan_kind_name(info->profile, info->is_rehearsal)));
    table_add(&history->table, cell->case_id);
    if (isfinite(cell->value)) {
        table_addf(&history->table, "%.6g", cell->value);
    } else {
        table_add(&history->table, STR_LIT("-"));
    }
    table_add(&history->table, cell->unit.ptr ? cell->unit : STR_LIT("-"));
    table_add(&history->table, cell->verdict);
    add_folder(history, info);
}

/* Its report and cases are unknown: it is in every selection. */
static void add_damaged(struct history *history, const struct run_info *info)
{
    history->n_damaged++;
    if (history->args->want_json) {
        jw_object(&history->damaged, NULL);
        jw_str(&history->damaged, "run", info->dir.id);
        jw_z(&history->damaged, "time", info->time);
        jw_str(&history->damaged, "why", info->why);
        jw_end_object(&history->damaged);
        return;
    }
    table_add(&history->table, str_of(info->time));
    table_add(&history->table, info->dir.id);
    for (int empty = 0; empty < 5; empty++) {
        table_add(&history->table, STR_LIT("-"));
    }
    table_add(&history->table, str_of(RUN_DAMAGED));
    add_folder(history, info);
}

static void add_run(struct history *history, const struct cmd_ctx *ctx, const char *id)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct rundir dir;
    struct run_info info;
    rundir_paths(&arena, ctx->state, str_of(id), &dir);
    run_info_look(&arena, &dir, &info);
    info.name = rundir_name_of(&arena, ctx->state, dir.id);
    if (strcmp(info.state, RUN_DAMAGED) == 0) {
        log_line(LOG_WARN, "run %s is damaged: %.*s", id, STR_ARG(info.why));
        add_damaged(history, &info);
        return;
    }
    if (history->args->report && !str_eq_z(info.report, history->args->report)) {
        return;
    }
    history->n_runs++;
    for (size_t idx = 0; idx < info.n_cells; idx++) {
        if (is_wanted(history->args, &info.cells[idx])) {
            add_cell(history, &info, &info.cells[idx]);
        }
    }
}

static void write_summary(const struct history *history, struct strbuf *buf)
{
    strbuf_printf(buf, "%s%zu runs, %zu cells", buf->len ? "\n" : "", history->n_runs,
                  history->n_cells);
    for (size_t idx = 0, n = 0; idx < ARRAY_LEN(history->n_of); idx++) {
        if (history->n_of[idx]) {
            strbuf_printf(buf, "%s %zu %s", n++ ? "," : ":", history->n_of[idx],
                          run_verdict_name((enum run_verdict)idx));
        }
    }
    if (history->n_damaged) {
        strbuf_printf(buf, "; %zu damaged run%s", history->n_damaged,
                      history->n_damaged == 1 ? "" : "s");
    }
    strbuf_add_char(buf, '\n');
}

/* A named report or case that does not occur is an error, not an empty history. */
static int check_asked(const struct cmd_ctx *ctx, struct arena *arena,
                       const struct history *history, struct err *err)
{
    const struct history_args *args = history->args;
    struct report_file file;
    if (args->report && history->n_runs == 0 &&
        load_report_file(arena, ctx->root, args->report, &file, err) < 0) {
        return -1;
    }
    return args->case_glob && history->n_cells == 0
               ? err_set(err, ERR_NOT_FOUND, "history: no finished run has a case %.200s",
                         args->case_glob)
               : 0;
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    static const struct table_column COLUMNS[] = {
        {"time", false}, {"run", false},  {"report", false},  {"profile", false}, {"case", false},
        {"value", true}, {"unit", false}, {"verdict", false}, {"lies in", false},
    };
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(strbuf) struct strbuf buf = {0};
    CLEANUP(strbuf) struct strbuf damaged = {0};
    struct history_args args = {0};
    struct history history = {.args = &args, .arena = &arena};
    struct fs_names ids;
    strbuf_init(&buf, OUTPUT_MAX);
    strbuf_init(&damaged, OUTPUT_MAX);
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    if (operands.n > 0) {
        return err_set(err, ERR_USAGE, "expected no operand, found %.100s", operands.items[0]);
    }
    if (args.is_quiet && args.is_verbose) {
        return err_set(err, ERR_USAGE, "either --quiet or --verbose");
    }
    if (args.html && args.want_json) {
        return err_set(err, ERR_USAGE, "history: either --html or --json");
    }
    if (rundir_list(&arena, ctx->state, &ids, err) < 0) {
        return -1;
    }
    table_init(&history.table, COLUMNS, ARRAY_LEN(COLUMNS) - !args.is_verbose);
    jw_begin(&history.out, &buf, false);
    if (args.want_json) {
        jw_object(&history.out, NULL);
        jw_i64(&history.out, "schema_version", 1);
        jw_array(&history.out, "cells");
    }
    jw_begin(&history.damaged, &damaged, true);
    jw_array(&history.damaged, NULL);
    for (size_t idx = 0; idx < ids.n; idx++) {
        add_run(&history, ctx, ids.items[idx]);
    }
    jw_end_array(&history.damaged);
    if (args.html) {
        page_history(&buf, history.points.items, history.points.n);
    } else if (args.want_json) {
        jw_end_array(&history.out);
        jw_raw(&history.out, "damaged", strbuf_str(&damaged));
        jw_end_object(&history.out);
    } else {
        if (!args.is_quiet || history.table.n_cells) {
            table_render(&history.table, &buf);
        }
        write_summary(&history, &buf);
    }
    table_release(&history.table);
    VEC_RELEASE(&history.points);
    if (check_asked(ctx, &arena, &history, err) < 0) {
        return -1;
    }
    return args.html && strcmp(args.html, "-") != 0
               ? fs_write_atomic(args.html, strbuf_str(&buf), err)
               : cmd_print(strbuf_str(&buf), err);
}

const struct cmd CMD_HISTORY = {
    "history", "", "verdicts of finished runs on this machine, or one cell over time", OPTS, run};
