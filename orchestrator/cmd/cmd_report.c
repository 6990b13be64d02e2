/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf report`: published reports against their logs, or a run against its report, as tables, JSON, a page or a picture.
   It shows; `reperf audit` and `reperf verify` judge. */
#include "base/base.h"

#include <unistd.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/run_args.h"
#include "cmd/select.h"
#include "report/plan.h"
#include "view/run_text.h"
#include "view/run_view.h"

struct args {
    bool is_all;
    const char *logs_folder;
    struct outputs outputs;
    struct shown_args shown;
    enum text_level level;
};
static const struct opt OPTS[] = {
    OPT(struct args, is_all, "all", "all reports"),
    OUTPUTS_OPT_CSV(struct args, outputs),
    OUTPUTS_OPT_HTML(struct args, outputs),
    OUTPUTS_OPT_JSON(struct args, outputs),
    OUTPUTS_OPT_MARKDOWN(struct args, outputs),
    OPT(struct args, logs_folder, "logs", "read the raw logs, as audit does", .value = "DIR"),
    OUTPUTS_OPT_SVG(struct args, outputs),
    SHOWN_ARGS_OPTS(struct args, shown),
    OPT_END,
};

/* ---- runs ---- */

/* Leaves the cells of the cases that are selected. */
static int select_cells(struct arena *arena, const struct args *args, struct run_view *view,
                        struct err *err)
{
    const struct opt_list *cases = &args->shown.cases;
    struct str *globs = arena_array(arena, struct str, cases->n + 1);
    struct str *ids = arena_array(arena, struct str, view->result.n_cells + 1);
    struct cell_result *cells = arena_array(arena, struct cell_result, view->result.n_cells + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < cases->n; idx++) {
        globs[idx] = str_of(cases->items[idx]);
    }
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        if (plan_selects(globs, cases->n, view->result.cells[idx].of_case->id)) {
            ids[n] = view->result.cells[idx].of_case->id;
            cells[n++] = view->result.cells[idx];
        }
    }
    struct str idle = plan_idle_glob(globs, cases->n, ids, n);
    if (idle.ptr) {
        return err_set(err, ERR_USAGE, "run %.*s has no case %.200s", STR_ARG(view->frozen.run_id),
                       idle.ptr);
    }
    view->result.cells = cells;
    view->result.n_cells = n;
    return 0;
}

static void write_run_text(const struct args *args, const struct run_view *view,
                           struct strbuf *text)
{
    const struct plan *plan = &view->frozen.plan;
    size_t n_of[RUN_NOT_RUN + 1] = {0};
    if (args->level != TEXT_QUIET) {
        strbuf_printf(text, "run %.*s, report %.*s, profile %s\n\n", STR_ARG(view->frozen.run_id),
                      STR_ARG(plan->report), plan_kind_name(plan->profile, plan->is_rehearsal));
        run_out_text(&view->frozen, &view->result, view->audit, args->level == TEXT_VERBOSE, text);
        strbuf_add_char(text, '\n');
    }
    for (size_t idx = 0; idx < view->result.n_cells; idx++) {
        const struct cell_result *cell = &view->result.cells[idx];
        bool is_error = cell->verdict == RUN_FAILED || cell->verdict == RUN_NOT_RUN;
        n_of[cell->verdict]++;
        if (args->level == TEXT_QUIET && is_error) {
            strbuf_printf(text, "%.*s: %s: %.*s\n", STR_ARG(cell->of_case->id),
                          RUN_VERDICT_NAMES[cell->verdict], STR_ARG(cell->why));
        }
    }
    strbuf_printf(text, "run %.*s: %zu cell%s", STR_ARG(view->frozen.run_id), view->result.n_cells,
                  plural_s(view->result.n_cells));
    run_out_counts(n_of, text);
    strbuf_add_char(text, '\n');
}

struct run_written {
    const struct args *args;
    const struct run_view *view;
};

static int write_run(const void *of, enum output_form form, struct strbuf *text,
                     struct err *err UNUSED)
{
    const struct run_written *w = of;
    if (form == OUTPUT_HTML) {
        run_out_page(w->view, text);
    } else if (form == OUTPUT_JSON) {
        strbuf_add_str(text, w->view->result.text);
    } else if (form == OUTPUT_TEXT) {
        write_run_text(w->args, w->view, text);
    } else {
        run_out_table(w->view, form == OUTPUT_CSV, text);
    }
    return 0;
}

static int report_reports(const struct cmd_ctx *ctx, const struct args *args,
                          struct opt_list *names, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(audited) struct audited audited = {0};
    const struct audit_ask ask = {"report",          names, args->is_all,
                                  args->logs_folder, NULL,  &args->shown};
    const struct audit_text_opts text = {isatty(STDOUT_FILENO) && log_wants_color(), true,
                                         args->level, args->is_all && args->level == TEXT_PLAIN};
    if (audited_make(&arena, ctx, &ask, &audited, err) < 0) {
        return -1;
    }
    return audited_put(&audited, &text, &args->outputs, err);
}

static int check_run_args(const struct args *args, const char *name, struct err *err)
{
    if (args->outputs.svg || args->logs_folder) {
        return err_set(err, ERR_USAGE, "report: --svg and --logs are for reports, %.100s is a run",
                       name);
    }
    if (args->shown.cases.n && (args->outputs.html || args->outputs.want_json)) {
        return err_set(err, ERR_USAGE,
                       "report: a run's page and its result.json are whole: --case is for text, "
                       "--csv and --markdown");
    }
    return 0;
}

static struct str digest_or_none(struct str hex)
{
    return hex.ptr ? hex : STR_LIT("none");
}

static void note_series(struct arena *arena, struct run_view *view)
{
    struct str today = view->audit->report->series_sha256;
    struct str frozen = view->frozen.report.series_sha256;
    if (!str_eq(today, frozen)) {
        view->audit_note =
            str_printf(arena,
                       "Audited by the series of the published logs that are kept here today, "
                       "sha256 %.*s; when this run began it was %.*s.",
                       STR_ARG(digest_or_none(today)), STR_ARG(digest_or_none(frozen)));
    }
}

/* Without it the page is complete except for that column, and says why. */
static void audit_run(struct arena *arena, const struct cmd_ctx *ctx, struct format_set *formats,
                      struct run_view *view)
{
    struct err why = {0};
    if (view->frozen.report.is_unpublished) {
        return;
    }
    if (run_audit_today(arena, ctx->root, &view->frozen, formats, &view->audit, &why) == 0) {
        note_series(arena, view);
        return;
    }
    log_line(LOG_WARN, "the published logs are not shown with the run: %s", why.msg);
    view->audit_note = str_printf(arena, "Not audited: %s.", why.msg);
}

static int report_run(const struct cmd_ctx *ctx, const struct args *args, const char *name,
                      struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(format_set) struct format_set formats = {0};
    CLEANUP(run_view) struct run_view view = {0};
    if (check_run_args(args, name, err) < 0 ||
        run_view_open(&arena, ctx->clock, ctx->state, name, &view, err) < 0 ||
        run_health_of(&arena, ctx->root, NULL, &view, err) < 0 ||
        select_cells(&arena, args, &view, err) < 0) {
        return -1;
    }
    if (args->outputs.html || (outputs_want_text(&args->outputs) && run_may_claim(&view.frozen))) {
        audit_run(&arena, ctx, &formats, &view);
    }
    const struct run_written of = {args, &view};
    return outputs_put(&args->outputs, write_run, &of, true, err);
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct args *args = call->args;
    size_t n_runs = 0;
    if (outputs_check(&args->outputs, "report", err) < 0 ||
        shown_level(&args->shown, &args->level, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < call->operands.n; idx++) {
        n_runs += run_view_is_run(call->arena, ctx->state, call->operands.items[idx]);
    }
    if (n_runs == 0) {
        return report_reports(ctx, args, &call->operands, err);
    }
    if (call->operands.n != 1 || args->is_all) {
        return err_set(err, ERR_USAGE,
                       "report: a run is shown alone; reperf compare shows two side by side");
    }
    return report_run(ctx, args, call->operands.items[0], err);
}

const struct cmd CMD_REPORT = CMD("report", "REPORT... | --all | RUN",
                                  "show published numbers next to what the logs, or a run, give",
                                  OPTS, run, CMD_ARGS(struct args));
