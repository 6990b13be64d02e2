/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf audit`: recomputes every published cell of the reports from their logs. */
#include "base/base.h"

#include <unistd.h>

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/select.h"
#include "view/audit_out.h"

struct args {
    bool is_all, want_like, is_strict;
    const char *logs_folder, *series_folder;
    struct outputs outputs;
    struct shown_args shown;
    enum text_level level;
};
static const struct opt OPTS[] = {
    OPT(struct args, is_all, "all", "all reports"),
    OPT(struct args, logs_folder, "logs",
        "read raw logs from DIR, a clone or the \"store\" instead of the published series",
        .value = "DIR"),
    OUTPUTS_OPT_CSV(struct args, outputs),
    OUTPUTS_OPT_HTML(struct args, outputs),
    OUTPUTS_OPT_JSON(struct args, outputs),
    OUTPUTS_OPT_MARKDOWN(struct args, outputs),
    OUTPUTS_OPT_SVG(struct args, outputs),
    OPT(struct args, outputs.want_sarif, "sarif", "findings as SARIF 2.1.0"),
    OPT(struct args, outputs.want_junit, "junit", "cells as JUnit XML"),
    OPT(struct args, want_like, "like-for-like",
        "also compare each row of two frameworks by one rule"),
    OPT(struct args, is_strict, "strict", "a cell that its log proves only in part does not hold"),
    OPT(struct args, series_folder, "write-series",
        "with --logs: write the series of each report below DIR", .value = "DIR"),
    SHOWN_ARGS_OPTS(struct args, shown),
    OPT_END,
};

/* A report of which no cell was checked does not pass for one that holds, whatever is named beside it; one that has no cell
   among those selected was not asked for. */
static int status_of(const struct audit_set *set, bool is_strict)
{
    bool holds = true, is_unread = false, is_proposed = false;
    size_t n_checked = 0;
    for (size_t idx = 0; idx < set->n; idx++) {
        const struct report_audit *audit = &set->items[idx];
        size_t before = n_checked;
        for (size_t at = 0; at < audit->n_cells; at++) {
            const struct cell_audit *a = &audit->cells[at];
            bool is_checked = a->verdict != AUDIT_NO_LOG;
            bool is_proven = !is_strict || !is_checked || a->proof == PROOF_FULL;
            holds = holds && is_proven && a->verdict != AUDIT_DIFFERS;
            is_proposed = is_proposed || a->is_proposed;
            n_checked += is_checked;
        }
        for (size_t at = 0; at < audit->findings.n; at++) {
            holds = holds && audit->findings.items[at].level != LEVEL_ERROR;
        }
        is_unread = is_unread || (n_checked == before && audit->n_cells > 0);
    }
    return !holds                        ? 1
           : is_unread || n_checked == 0 ? STATUS_NOT_READ
           : is_proposed                 ? STATUS_PROPOSED
                                         : 0;
}

static int check_args(struct args *args, struct err *err)
{
    if (outputs_check(&args->outputs, "audit", err) < 0) {
        return -1;
    }
    if (args->series_folder && !args->logs_folder) {
        return err_set(err, ERR_USAGE, "--write-series needs --logs");
    }
    return shown_level(&args->shown, &args->level, err);
}

/* A manifest holds the digest of its series, which differs for new ones. */
static void say_written(const struct report_audit *audit)
{
    if (audit->written_sha256.ptr && !str_eq(audit->written_sha256, audit->report->series_sha256)) {
        log_line(LOG_WARN, "%.*s: logs.series_sha256 of the series just written is %.*s",
                 STR_ARG(audit->report->path), STR_ARG(audit->written_sha256));
    }
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(audited) struct audited audited = {0};
    struct args *args = call->args;
    if (check_args(args, err) < 0) {
        return -1;
    }
    const struct audit_ask ask = {"audit",           &call->operands,     args->is_all,
                                  args->logs_folder, args->series_folder, &args->shown};
    if (audited_make(call->arena, ctx, &ask, &audited, err) < 0) {
        return -1;
    }
    const struct audit_set set = {audited.audits, audited.reports.n};
    for (size_t idx = 0; idx < set.n; idx++) {
        say_written(&set.items[idx]);
    }
    const struct audit_text_opts text = {
        isatty(STDOUT_FILENO) && log_wants_color(), args->want_like, args->level,
        args->is_all && !args->want_like && args->level == TEXT_PLAIN};
    return audited_put(&audited, &text, &args->outputs, err) < 0 ? -1
                                                                 : status_of(&set, args->is_strict);
}

const struct cmd CMD_AUDIT =
    CMD("audit", "REPORT... | --all", "recompute published numbers from their logs", OPTS, run,
        CMD_ARGS(struct args));
