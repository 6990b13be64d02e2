/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a run, as `run` and `resume` print it. */
#include "base/base.h"

#include "base/log.h"
#include "cmd/guests.h"
#include "cmd/run_args.h"
#include "codec/json_document.h"
#include "load/audit_logs.h"
#include "load/load.h"
#include "view/run_health.h"
#include "view/run_text.h"

#define OUTPUT_MAX (256u << 20)

int run_audit_today(struct arena *arena, const char *root, const struct frozen *frozen,
                    struct format_set *formats, const struct report_audit **ret_audit,
                    struct err *err)
{
    const struct audit_opts opts = {.root = root, .lint = GUESTS.lint};
    struct report_audit *audit = arena_new(arena, struct report_audit);
    struct report *today = arena_new(arena, struct report);
    if (load_report(arena, root, str_z(arena, frozen->report.id), today, err) < 0 ||
        load_formats(arena, root, formats, err) < 0 ||
        audit_report(arena, today, formats, &opts, audit, err) < 0) {
        return -1;
    }
    *ret_audit = audit;
    return 0;
}

bool run_may_claim(const struct frozen *frozen)
{
    return frozen->plan.takes_turns && !plan_claims_none(&frozen->plan) &&
           !frozen->report.is_unpublished;
}

/* dir NULL: nothing could run. */
static void print_text(struct strbuf *buf, const struct run_view *view, const struct rundir *dir,
                       bool is_signed)
{
    run_out_text(&view->frozen, &view->result, view->audit, false, buf);
    if (view->health) {
        strbuf_add_char(buf, '\n');
        run_health_text(view->health, buf);
    }
    if (!dir) {
        strbuf_add_z(buf, "nothing could run: no run was started, nothing is sealed\n");
        return;
    }
    strbuf_printf(buf, "run     %.*s\narchive %s%s\n", STR_ARG(dir->id), dir->archive,
                  is_signed ? "" : " (not signed)");
}

static void print_json(struct strbuf *buf, struct arena *arena, const struct run_view *view,
                       const struct rundir *dir, int status)
{
    const struct plan *plan = &view->frozen.plan;
    struct json_out out;
    struct columns columns;
    jw_document(&out, buf);
    jw_z(&out, "run", dir ? dir->id.ptr : NULL);
    jw_str(&out, "report", plan->report);
    jw_z(&out, "profile", PROFILE_NAMES[plan->profile]);
    if (plan->is_rehearsal) {
        jw_bool(&out, "rehearsal", true);
    }
    jw_z(&out, "folder", dir ? dir->folder : NULL);
    jw_z(&out, "archive", dir ? dir->archive : NULL);
    jw_i64(&out, "exit_status", status);
    json_encode(&out, RESULT_CELLS_ROWS, ARRAY_LEN(RESULT_CELLS_ROWS), &view->result);
    columns_of(arena, &view->frozen, &view->result, view->audit, &columns);
    json_encode(&out, COLUMNS_ROWS, ARRAY_LEN(COLUMNS_ROWS), &columns);
    run_health_encode(view->health, "health", &out);
    jw_end_object(&out);
}

static int print_end(struct arena *arena, const struct run_opts *opts, const struct rundir *dir,
                     const struct run_end *end, bool want_json, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(OUTPUT_MAX);
    CLEANUP(format_set) struct format_set formats = {0};
    struct run_view view = {
        .frozen = end->frozen, .result = end->result, .folder = dir ? dir->evidence : NULL};
    struct err why = {0};
    int status = end->result.exit_status;
    if (run_may_claim(&view.frozen) &&
        run_audit_today(arena, opts->ctx->root, &view.frozen, &formats, &view.audit, &why) < 0) {
        log_line(LOG_WARN, "the claims are judged without the published logs: %s", why.msg);
    }
    if (dir && view.frozen.plan.is_each_node &&
        (run_view_settings(arena, &view, err) < 0 ||
         run_health_of(arena, opts->ctx->root, opts->limits, &view, err) < 0)) {
        return -1;
    }
    status = view.health && status == 0 ? run_health_status(view.health) : status;
    if (want_json) {
        print_json(&buf, arena, &view, dir, status);
    } else {
        print_text(&buf, &view, dir, end->is_signed);
    }
    return cmd_print(strbuf_str(&buf), err) < 0 ? -1 : status;
}

int run_nothing_and_print(const struct run_opts *opts, const struct run_prepared *prepared,
                          bool want_json, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct run_end end = {0};
    if (run_nothing(&arena, prepared, &end, err) < 0) {
        return -1;
    }
    return print_end(&arena, opts, NULL, &end, want_json, err);
}

int run_and_print(const struct run_opts *opts, const struct rundir *dir, bool want_json,
                  struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct run_end end;
    int status;
    log_line(LOG_INFO, "run %.*s in %s", STR_ARG(dir->id), dir->folder);
    if (run_execute(&arena, opts, dir, &end, err) < 0) {
        if (err->code == ERR_NODE || err->code == ERR_CONTAINER) {
            log_line(LOG_INFO,
                     "nothing is sealed: reperf resume %.*s runs what is open, reperf cancel gives "
                     "it up",
                     STR_ARG(dir->id));
        }
        return err_wrap(err, "run %.*s", STR_ARG(dir->id));
    }
    if (end.stopped_by) {
        log_line(LOG_ERROR,
                 end.is_cancelled ? "run %.*s was cancelled"
                                  : "run %.*s was interrupted; reperf resume %.*s continues it",
                 STR_ARG(dir->id), STR_ARG(dir->id));
        status = 128 + end.stopped_by;
    } else {
        status = print_end(&arena, opts, dir, &end, want_json, err);
    }
    frozen_release(&end.frozen);
    return status;
}
