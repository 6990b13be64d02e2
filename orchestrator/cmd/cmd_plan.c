/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/cmd.h"
#include "cmd/run_args.h"
#include "run/run_address.h"

static const struct opt OPTS[] = {
    RUN_OPT_CASE,    RUN_OPT_PROFILE,  RUN_OPT_REHEARSE, RUN_OPT_NODES,   RUN_OPT_EACH_NODE,
    RUN_OPT_IMAGE,   RUN_OPT_SET,      RUN_OPT_REPEATS,  RUN_OPT_TURNS,   RUN_OPT_PACKED,
    RUN_OPT_STEPS,   RUN_OPT_DEADLINE, RUN_OPT_DATA,     RUN_OPT_OFFLINE, RUN_OPT_CHECKLIST,
    RUN_OPT_VERBOSE, RUN_OPT_JSON,     OPT_END,
};

static int plan(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(run_args) struct run_args args = {.repeats = REPEATS_DEFAULT};
    struct run_opts opts;
    struct run_prepared prepared;
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    if (operands.n != 1) {
        return err_set(err, ERR_USAGE, "expected one report");
    }
    struct address address;
    if (address_open(&arena, ctx, args.net.is_offline, operands.items[0], &address, err) < 0 ||
        run_args_opts(ctx, &args, address.report, &opts, err) < 0) {
        return -1;
    }
    opts.plan.address = str_of(address.pin);
    if (run_read(&arena, &opts, &prepared, err) < 0 ||
        run_plan(&arena, &opts, &prepared, err) < 0) {
        return -1;
    }
    return run_print_plan(&prepared, &args, err);
}

const struct cmd CMD_PLAN = {
    "plan", "REPORT", "show what a run would do, on which node, with which command", OPTS, plan};
