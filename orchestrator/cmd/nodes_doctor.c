/* SPDX-License-Identifier: Apache-2.0 */
/* `nodes doctor`: the state of the nodes, and whether a report's cases could run there. */
#include "base/base.h"

#include <unistd.h>

#include "base/log.h"
#include "base/stop.h"
#include "cmd/nodes.h"
#include "load/load.h"
#include "load/load_inventory.h"
#include "run/run_address.h"
#include "view/doctor_out.h"

#define PORT_MAX 65535

struct args {
    struct opt_list cases;
    const char *report;
    const char *profile;
    int64_t port;
    bool allow_unknown, want_all, want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, report, "report", "also check what this report's launches need",
        .value = "REPORT"),
    OPT(struct args, cases, "case", "only its cases that match; may be repeated; * also matches /",
        .value = "GLOB"),
    OPT(struct args, profile, "profile", "as for run; smoke needs no GPU", .value = "full|smoke"),
    OPT(struct args, port, "port", "tried between the nodes (29500)", .value = "N", .min = 1024,
        .max = PORT_MAX),
    OPT(struct args, allow_unknown, "allow-unknown", "an unknown requirement is not a failure"),
    OPT(struct args, want_all, "all", "show also what holds"),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

static int read_args(struct arena *arena, const struct cmd_ctx *ctx, const struct args *args,
                     struct report *report, struct doctor_opts *opts, struct err *err)
{
    enum profile profile = PROFILE_FULL;
    if (profile_of_option(args->profile, &profile, err) < 0) {
        return -1;
    }
    if (args->cases.n && !args->report) {
        return err_set(err, ERR_USAGE, "--case: of which report? give --report");
    }
    struct address address;
    if (args->report && (address_open(arena, ctx, false, args->report, &address, err) < 0 ||
                         load_report(arena, ctx->root, address.report, report, err) < 0)) {
        return -1;
    }
    *opts = (struct doctor_opts){.root = ctx->root,
                                 .report = args->report ? report : NULL,
                                 .globs = args->cases.items,
                                 .n_globs = args->cases.n,
                                 .profile = profile,
                                 .port = args->port ? args->port : DOCTOR_PORT_DEFAULT,
                                 .clock = ctx->clock,
                                 .work_folder = ctx->state};
    return 0;
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    const struct args *args = call->args;
    struct report report = {0};
    struct inventory inventory;
    struct doctor_opts opts;
    struct doctor_result result;
    if (read_args(call->arena, ctx, args, &report, &opts, err) < 0 ||
        inventory_load(call->arena, ctx->root, call->operands.items[0], &inventory, err) < 0) {
        return -1;
    }
    opts.inventory = &inventory;
    stop_hold();
    if (doctor_run(call->arena, &opts, &result, err) < 0) {
        return -1;
    }
    struct doctor_view view = {&inventory, opts.report, &result, args->want_all,
                               isatty(STDOUT_FILENO) && log_wants_color()};
    if (args->want_json) {
        doctor_out_json(&view, call->out);
    } else {
        doctor_out_text(&view, call->out);
    }
    call->is_painted = true;
    return doctor_exit_status(&result, args->allow_unknown);
}

const struct cmd NODES_DOCTOR =
    CMD("doctor", "INVENTORY", "what the nodes are, and what they lack for a report", OPTS, run,
        CMD_ARGS(struct args), CMD_OPERANDS(1, 1, "nodes doctor: expected one inventory"));
