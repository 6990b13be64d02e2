/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/run_args.h"

static const struct opt OPTS[] = {
    RUN_ARGS_PLAN_OPTS,
    RUN_OPT_OFFLINE,
    OPT(struct run_args, is_checklist, "checklist",
        "what must hold on the nodes, in the order in which to see to it"),
    OPT(struct run_args, is_verbose, "verbose",
        "also each case's recipe, folders, command and deadline", .letter = 'v'),
    RUN_OPT_JSON,
    OPT_END,
};

static int plan(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct run_args *args = call->args;
    struct run_opts opts;
    struct run_prepared prepared;
    struct address address;
    if (run_args_opts(ctx, args, &opts, err) < 0 ||
        address_open(call->arena, ctx, args->net.opts.is_offline, call->operands.items[0], &address,
                     err) < 0) {
        return -1;
    }
    opts.report = address.report;
    opts.plan.asked.address = str_of(address.pin);
    if (run_read(call->arena, &opts, &prepared, err) < 0 ||
        run_plan(call->arena, &opts, &prepared, err) < 0) {
        return -1;
    }
    return run_print_plan(&prepared, args, call, err);
}

const struct cmd CMD_PLAN =
    CMD("plan", "REPORT", "show what a run would do, on which node, with which command", OPTS, plan,
        CMD_ARGS(struct run_args),
        .defaults = &(const struct run_args){.opts.plan.asked.repeats = REPEATS_DEFAULT},
        CMD_OPERANDS(1, 1, "expected one report"));
