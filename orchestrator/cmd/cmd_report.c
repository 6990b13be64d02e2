/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf report`: published reports against their logs, or a run against its report, as tables, JSON, a page or a picture.
   It shows; `reperf audit` and `reperf verify` judge. */
#include "base/base.h"

#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/logs_clone.h"
#include "cmd/run_args.h"
#include "cmd/select.h"
#include "load/audit_logs.h"
#include "load/load.h"
#include "view/audit_out.h"
#include "view/page.h"
#include "view/run_view.h"

struct report_args {
    bool is_all, want_json;
    const char *html, *svg, *logs_folder;
};

#define AT(member) offsetof(struct report_args, member)
static const struct opt OPTS[] = {
    {"all", 0, OPT_FLAG, NULL, "every report there is", AT(is_all), 0, 0},
    {"html", 0, OPT_TEXT, "FILE", "write one self-contained page", AT(html), 0, 0},
    {"json", 0, OPT_FLAG, NULL, "one JSON document", AT(want_json), 0, 0},
    {"logs", 0, OPT_TEXT, "DIR", "read the raw logs below DIR, not the kept series",
     AT(logs_folder), 0, 0},
    {"svg", 0, OPT_TEXT, "FILE", "write one picture of one report", AT(svg), 0, 0},
    OPT_END,
};
#undef AT

static int check_args(const struct report_args *args, size_t n_reports, struct err *err)
{
    if ((args->html != NULL) + (args->svg != NULL) + args->want_json > 1) {
        return err_set(err, ERR_USAGE, "report: one of --html, --json and --svg");
    }
    if (args->svg && n_reports != 1) {
        return err_set(err, ERR_USAGE, "report: --svg is for one report, found %zu", n_reports);
    }
    return 0;
}

static int audit_all(const struct cmd_ctx *ctx, const struct report_args *args, struct arena *arena,
                     const struct report_set *reports, const struct format_set *formats,
                     struct audit_set *ret_set, struct err *err)
{
    CLEANUP(logs_clone) struct logs_clone clone = {0};
    struct report_audit *audits = arena_array(arena, struct report_audit, reports->n);
    struct progress progress = {0};
    struct audit_opts opts = {
        .logs_folder = args->logs_folder, .root = ctx->root, .progress = &progress};
    uint64_t total = 0;
    int rc = 0;
    if (args->logs_folder &&
        logs_clone_read(arena, ctx, args->logs_folder, reports, &clone, err) < 0) {
        return -1;
    }
    if (clone.folder) {
        opts.clone = opts.logs_folder;
        opts.logs_folder = clone.folder;
    }
    for (size_t idx = 0; idx < reports->n; idx++) {
        total += audit_count_logs(&reports->items[idx]);
    }
    progress_start(&progress, ctx->clock, "report", "logs", total);
    for (size_t idx = 0; rc == 0 && idx < reports->n; idx++) {
        rc = audit_report(arena, &reports->items[idx], formats, &opts, &audits[idx], err);
    }
    progress_end(&progress);
    *ret_set = (struct audit_set){audits, reports->n};
    return rc;
}

/* A page or picture goes to its file, whole or not at all; the rest, and what is to go to "-", to standard output. */
static int put(const char *file, const struct strbuf *text, struct err *err)
{
    if (text->is_full) {
        return err_set(err, ERR_INTERNAL, "report: more than %zu bytes of text", text->cap_bytes);
    }
    return file && strcmp(file, "-") != 0 ? fs_write_atomic(file, strbuf_str(text), err)
                                          : cmd_print_painted(strbuf_str(text), err);
}

static int report_reports(const struct cmd_ctx *ctx, const struct report_args *args,
                          const struct opt_list *names, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(format_set) struct format_set formats = {0};
    CLEANUP(strbuf) struct strbuf text = {0};
    struct report_set reports = {0};
    struct audit_set set = {0};
    if (select_reports(&arena, ctx->root, names, args->is_all, &reports, err) < 0 ||
        check_args(args, reports.n, err) < 0 ||
        load_formats(&arena, ctx->root, &formats, err) < 0 ||
        audit_all(ctx, args, &arena, &reports, &formats, &set, err) < 0) {
        return -1;
    }
    strbuf_init(&text, HTML_BYTES_MAX);
    if (args->html) {
        page_audit(&text, set.items, set.n, &formats);
    } else if (args->svg) {
        page_card(&text, &set.items[0], &formats);
    } else if (args->want_json) {
        audit_out_json(&set, &text);
    } else {
        struct audit_text_opts opts = {isatty(STDOUT_FILENO) && log_wants_color(), true};
        audit_out_text(&set, &opts, &text);
    }
    return put(args->html ? args->html : args->svg, &text, err);
}

static int report_run(const struct cmd_ctx *ctx, const struct report_args *args, const char *name,
                      struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(run_view) struct run_view view = {0};
    CLEANUP(strbuf) struct strbuf text = {0};
    struct str result;
    if (args->svg || args->logs_folder) {
        return err_set(err, ERR_USAGE, "report: --svg and --logs are for reports, %.100s is a run",
                       name);
    }
    if (run_view_open(&arena, ctx->clock, ctx->state, name, &view, err) < 0) {
        return -1;
    }
    strbuf_init(&text, HTML_BYTES_MAX);
    if (args->html) {
        if (page_run(&text, &view, err) < 0) {
            return -1;
        }
    } else if (args->want_json) {
        const char *path = fs_join(&arena, view.folder, "result.json");
        if (fs_read(&arena, path, HTML_BYTES_MAX, &result, err) < 0) {
            return -1;
        }
        strbuf_add_str(&text, result);
    } else {
        strbuf_printf(&text, "run %.*s, report %.*s, profile %s\n\n", STR_ARG(view.frozen.run_id),
                      STR_ARG(view.frozen.plan.report), profile_name(view.frozen.plan.profile));
        run_text_cells(&text, &view.frozen, &view.result);
    }
    return put(args->html, &text, err);
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list names = {0};
    struct report_args args = {0};
    size_t n_runs = 0;
    if (opt_parse(OPTS, argc, argv, &args, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        n_runs += run_view_is_run(&arena, ctx->state, names.items[idx]);
    }
    if (n_runs == 0) {
        return report_reports(ctx, &args, &names, err);
    }
    if (names.n != 1 || args.is_all) {
        return err_set(err, ERR_USAGE,
                       "report: a run is shown alone; reperf compare shows two side by side");
    }
    if (check_args(&args, 1, err) < 0) {
        return -1;
    }
    return report_run(ctx, &args, names.items[0], err);
}

const struct cmd CMD_REPORT = {"report", "REPORT... | --all | RUN",
                               "show published numbers beside what the logs, or a run, give", OPTS,
                               run};
