/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf lint`: reproducibility defects that can be seen in reports' manifests. */
#include "base/base.h"

#include <unistd.h>

#include "base/command.h"
#include "base/log.h"
#include "judge/bind.h"
#include "lint/lint.h"
#include "load/load.h"
#include "run/run_address.h"
#include "view/findings_out.h"

struct lint_args {
    bool is_all, want_json, want_sarif;
};

static const struct opt OPTS[] = {
    OPT(struct lint_args, is_all, "all", "all reports"),
    OPT(struct lint_args, want_json, "json", "one JSON document"),
    OPT(struct lint_args, want_sarif, "sarif", "SARIF 2.1.0, for code hosts and editors"),
    OPT_END,
};

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct lint_args *args = call->args;
    struct report_set reports = {0};
    struct findings all = {.arena = call->arena};
    CLEANUP(format_set) struct format_set formats = {0};
    if (args->want_json && args->want_sarif) {
        return err_set(err, ERR_USAGE, "either --json or --sarif");
    }
    if (address_open_all(call->arena, ctx, &call->operands, err) < 0 ||
        load_reports_of(call->arena, ctx->root, &call->operands, args->is_all, &reports, err) < 0 ||
        load_formats(call->arena, ctx->root, &formats, err) < 0) {
        return -1;
    }
    struct findings *lists = arena_array(call->arena, struct findings, reports.n + 1);
    for (size_t idx = 0; idx < reports.n; idx++) {
        lists[idx].n_max = all.n; /* where its part of `all` begins */
        lint_report(call->arena, &reports.items[idx], &all);
        bind_findings(call->arena, &reports.items[idx], &formats, &all);
        lists[idx].n = all.n - lists[idx].n_max;
    }
    for (size_t idx = 0; idx < reports.n; idx++) {
        lists[idx].items = all.items + lists[idx].n_max;
    }
    if (args->want_json) {
        lint_out_json(&reports, lists, call->out);
    } else if (args->want_sarif) {
        struct sarif_report *each = arena_array(call->arena, struct sarif_report, reports.n + 1);
        for (size_t idx = 0; idx < reports.n; idx++) {
            each[idx] = (struct sarif_report){&reports.items[idx], lists[idx]};
        }
        sarif_write(call->arena, ctx->root, each, reports.n, call->out);
    } else {
        findings_out_text(&all, isatty(STDOUT_FILENO) && log_wants_color(), call->out);
    }
    call->is_painted = true;
    return findings_count(&all, LEVEL_ERROR) ? 1 : 0;
}

const struct cmd CMD_LINT =
    CMD("lint", "REPORT... | --all", "find reproducibility defects in reports", OPTS, run,
        CMD_ARGS(struct lint_args));
