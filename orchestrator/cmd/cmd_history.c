/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <fnmatch.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "load/load.h"
#include "run/runs.h"
#include "view/history.h"

struct args {
    const char *case_glob;
    const char *report;
    bool want_json;
    struct history_text_opts text;
};

static const struct opt OPTS[] = {
    OPT(struct args, case_glob, "case", "only cells of cases that match: one cell over time",
        .value = "GLOB"),
    OPT(struct args, report, "report", "only runs of this report", .value = "REPORT"),
    OPT(struct args, want_json, "json", "one JSON document"),
    OPT(struct args, text.is_quiet, "quiet",
        "in text only what failed, did not run or is damaged, and the summary", .letter = 'q'),
    OPT(struct args, text.wants_folder, "verbose", "in text also where each run is stored",
        .letter = 'v'),
    OPT_END,
};

struct found {
    VEC(struct history_cell) cells;
    VEC(struct run_info) damaged;
    size_t n_runs; /* that were asked for */
};
static void found_cleanup(struct found *found)
{
    VEC_RELEASE(&found->cells);
    VEC_RELEASE(&found->damaged);
}

static void add_run(struct found *found, const struct args *args, const struct run_info *info)
{
    if (strcmp(info->state, RUN_DAMAGED) == 0) { /* its report and cases are unknown */
        log_line(LOG_WARN, "run %s is damaged: %.*s", info->dir.id.ptr, STR_ARG(info->why));
        VEC_PUSH(&found->damaged, *info);
        return;
    }
    if (args->report && !str_eq_z(info->report, args->report)) {
        return;
    }
    found->n_runs++;
    for (size_t idx = 0; idx < info->n_cells; idx++) {
        const struct run_cell *cell = &info->cells[idx];
        if (!args->case_glob || fnmatch(args->case_glob, cell->case_id.ptr, 0) == 0) {
            VEC_PUSH(&found->cells, ((struct history_cell){info, cell}));
        }
    }
}

/* A named report or case that does not occur is an error, not an empty history. */
static int check_found(const struct cmd_ctx *ctx, struct arena *arena, const struct args *args,
                       const struct found *found, struct err *err)
{
    struct report_file file;
    if (args->report && found->n_runs == 0 &&
        load_report_file(arena, ctx->root, args->report, &file, err) < 0) {
        return -1;
    }
    return args->case_glob && found->cells.n == 0
               ? err_set(err, ERR_NOT_FOUND, "history: no finished run has a case %.200s",
                         args->case_glob)
               : 0;
}

static int check_args(const struct args *args, const struct opt_list *operands, struct err *err)
{
    if (operands->n > 0) {
        return err_set(err, ERR_USAGE, "expected no operand, found %.100s", operands->items[0]);
    }
    return args->text.is_quiet && args->text.wants_folder
               ? err_set(err, ERR_USAGE, "either --quiet or --verbose")
               : 0;
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    CLEANUP(found) struct found found = {0};
    struct fs_names ids;
    if (check_args(args, &call->operands, err) < 0 ||
        rundir_list(call->arena, ctx->state, &ids, err) < 0) {
        return -1;
    }
    struct run_info *infos = arena_array(call->arena, struct run_info, ids.n + 1);
    for (size_t idx = 0; idx < ids.n; idx++) {
        struct rundir dir;
        rundir_paths(call->arena, ctx->state, str_of(ids.items[idx]), &dir);
        run_info_look(call->arena, &dir, &infos[idx]);
        infos[idx].name = rundir_name_of(call->arena, ctx->state, dir.id);
        add_run(&found, args, &infos[idx]);
    }
    if (check_found(ctx, call->arena, args, &found, err) < 0) {
        return -1;
    }
    const struct history history = {found.cells.items, found.cells.n, found.damaged.items,
                                    found.damaged.n, found.n_runs};
    if (args->want_json) {
        json_encode_document(call->out, HISTORY_DOCUMENT.rows, HISTORY_DOCUMENT.n_rows, &history);
    } else {
        history_text(&history, &args->text, call->out);
    }
    return 0;
}

const struct cmd CMD_HISTORY =
    CMD("history", "", "verdicts of finished runs on this machine, or one cell over time", OPTS,
        run, CMD_ARGS(struct args));
