/* SPDX-License-Identifier: Apache-2.0 */
/* `nodes doctor`: the state of the nodes, and whether a report's cases could run there. */
#include "base/base.h"

#include <unistd.h>

#include "base/log.h"
#include "cmd/nodes.h"
#include "load/load.h"
#include "load/load_inventory.h"
#include "sys/stop.h"
#include "view/doctor_out.h"

#define OUTPUT_MAX (256u << 20)
#define PORT_MAX   65535

struct doctor_args {
    struct opt_list cases;
    const char *report;
    const char *profile;
    int64_t port;
    bool allow_unknown, want_all, want_json;
};

static const struct opt OPTS[] = {
    OPT(struct doctor_args, report, "report", "also check what this report's launches need",
        .value = "REPORT"),
    OPT(struct doctor_args, cases, "case",
        "only its cases that match; may be repeated; * also matches /", .value = "GLOB"),
    OPT(struct doctor_args, profile, "profile", "as for run; smoke needs no GPU",
        .value = "full|smoke"),
    OPT(struct doctor_args, port, "port", "tried between the nodes (29500)", .value = "N",
        .min = 1024, .max = PORT_MAX),
    OPT(struct doctor_args, allow_unknown, "allow-unknown",
        "an unknown requirement is not a failure"),
    OPT(struct doctor_args, want_all, "all", "show also what holds"),
    OPT(struct doctor_args, want_json, "json", "print one JSON document"),
    OPT_END,
};

static int read_args(struct arena *arena, const struct cmd_ctx *ctx, const struct doctor_args *args,
                     struct report *report, struct doctor_opts *opts, struct err *err)
{
    enum profile profile = PROFILE_FULL;
    if (profile_of_option(args->profile, &profile, err) < 0) {
        return -1;
    }
    if (args->cases.n && !args->report) {
        return err_set(err, ERR_USAGE, "--case: of which report? give --report");
    }
    if (args->report && load_report(arena, ctx->root, args->report, report, err) < 0) {
        return -1;
    }
    *opts = (struct doctor_opts){.root = ctx->root,
                                 .report = args->report ? report : NULL,
                                 .globs = args->cases.items,
                                 .n_globs = args->cases.n,
                                 .profile = profile,
                                 .port = args->port ? args->port : DOCTOR_PORT_DEFAULT,
                                 .clock = ctx->clock,
                                 .work_folder = ctx->state,
                                 .should_stop = stop_is_asked};
    return 0;
}

static int examine(struct arena *arena, const struct cmd_ctx *ctx, const struct doctor_args *args,
                   const char *nodes, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    struct report report = {0};
    struct inventory inventory;
    struct doctor_opts opts;
    struct doctor_result result;
    strbuf_init(&text, OUTPUT_MAX);
    if (read_args(arena, ctx, args, &report, &opts, err) < 0 ||
        inventory_load(arena, ctx->root, nodes, &inventory, err) < 0) {
        return -1;
    }
    opts.inventory = &inventory;
    stop_hold();
    if (doctor_run(arena, &opts, &result, err) < 0) {
        return stop_end(err);
    }
    struct doctor_view view = {&inventory, opts.report, &result, args->want_all,
                               isatty(STDOUT_FILENO) && log_wants_color()};
    if (args->want_json) {
        doctor_out_json(&view, &text);
    } else {
        doctor_out_text(&view, &text);
    }
    if (text.is_full) {
        return err_set(err, ERR_INTERNAL, "more than %u bytes to print", OUTPUT_MAX);
    }
    return cmd_print_painted(strbuf_str(&text), err) < 0
               ? -1
               : doctor_exit_status(&result, args->allow_unknown);
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct doctor_args args = {0};
    int status = opt_parse(OPTS, argc, argv, &args, &operands, err);
    if (status == 0 && operands.n != 1) {
        status = err_set(err, ERR_USAGE, "nodes doctor: expected one inventory");
    } else if (status == 0) {
        status = examine(&arena, ctx, &args, operands.items[0], err);
    }
    opt_list_cleanup(&args.cases);
    return status;
}

const struct cmd NODES_DOCTOR = {"doctor", "INVENTORY",
                                 "what the nodes are, and what they lack for a report", OPTS, run};
