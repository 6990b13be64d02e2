/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/run_args.h"
#include "cmd/run_get.h"
#include "codec/sign.h"
#include "load/load_health.h"
#include "view/run_health.h"

static const struct opt OPTS[] = {
    RUN_OPT_CASE,
    RUN_OPT_PROFILE,
    RUN_OPT_REHEARSE,
    RUN_OPT_NODES,
    RUN_OPT_EACH_NODE,
    RUN_OPT_IMAGE,
    RUN_OPT_SET,
    RUN_OPT_REPEATS,
    RUN_OPT_TURNS,
    RUN_OPT_DEADLINE,
    RUN_OPT_DATA,
    NET_ARGS_ASK_OPTS,
    RUN_OPT_OFFLINE,
    RUN_OPT_KEY,
    {.name = "run-id",
     .kind = OPT_TEXT,
     .value = "ID",
     .help = "the run's id, instead of a generated one",
     .offset = offsetof(struct run_args, run_id)},
    {.name = "name",
     .kind = OPT_TEXT,
     .value = "NAME",
     .help = "a name for the run, accepted by every command in place of its id",
     .offset = offsetof(struct run_args, name)},
    {.name = "gate",
     .kind = OPT_TEXT,
     .value = "RUN|ARCHIVE",
     .help = "only if this run with --each-node has nothing against the nodes (else status 6)",
     .offset = offsetof(struct run_args, gate)},
    {.name = "limits",
     .kind = OPT_TEXT,
     .value = "FILE",
     .help = "when a node is an outlier, instead of manifests/node-health.json",
     .offset = offsetof(struct run_args, limits)},
    {.name = "dry-run",
     .kind = OPT_FLAG,
     .help = "print the plan and each node's commands, and do nothing",
     .offset = offsetof(struct run_args, is_dry_run)},
    RUN_OPT_JSON,
    OPT_END,
};

/* Before hours of work, not after them. */
static int check_key(const struct run_args *args, struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    return args->key ? sign_load_private(args->key, &key, err) : 0;
}

static int check_gate(const struct cmd_ctx *ctx, const struct run_args *args,
                      const struct inventory *inventory, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(run_view) struct run_view view = {0};
    struct health_limits limits;
    struct health health;
    if (load_health_limits(&arena, ctx->root, args->limits, &limits, err) < 0 ||
        run_view_open(&arena, ctx->clock, ctx->state, args->gate, &view, err) < 0) {
        return -1;
    }
    run_health_of(&arena, &view, &limits, &health);
    if (run_health_admits(&view, &health, inventory, err) < 0) {
        return err_wrap(err, "gate %s", args->gate);
    }
    log_line(LOG_INFO, "gate %s: %zu nodes measured, nothing against any", args->gate,
             inventory->n_nodes);
    if (health.n_alone) {
        log_line(LOG_WARN, "gate %s: %zu figures could not be compared with others'", args->gate,
                 health.n_alone);
    }
    return 0;
}

static int run(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct run_args args = {.repeats = REPEATS_DEFAULT};
    struct run_opts opts;
    struct run_prepared prepared;
    struct rundir dir;
    int status = opt_parse(OPTS, argc, argv, &args, &operands, err);
    if (status == 0 && operands.n != 1) {
        status = err_set(err, ERR_USAGE, "expected one report");
    }
    status = status < 0 ? -1 : run_args_opts(ctx, &args, operands.items[0], &opts, err);
    if (status == 0 && args.limits && !args.gate && !args.is_each_node) {
        status = err_set(err, ERR_USAGE, "--limits needs --each-node or --gate");
    }
    if (status == 0 && args.name) {
        status = rundir_check_name(&arena, ctx->state, args.name, err);
    }
    status = status < 0 ? -1 : check_key(&args, err);
    status = status < 0 ? -1 : run_read(&arena, &opts, &prepared, err);
    if (status == 0 && args.gate) {
        status = check_gate(ctx, &args, &prepared.inventory, err);
    }
    if (status == 0 && !args.is_dry_run && !args.net.is_offline) {
        status = run_get(ctx, &args, &opts, &prepared, err);
    }
    if (status == 0) {
        status = run_plan(&arena, &opts, &prepared, err);
    }
    if (status == 0 && args.is_dry_run) {
        status = run_print_dry(&opts, &prepared, args.want_json, err);
    } else if (status == 0 && plan_runnable(&prepared.plan) == 0) {
        status = run_nothing_and_print(&opts, &prepared, args.want_json, err);
    } else if (status == 0) {
        status = run_create(&arena, &opts, &prepared, &dir, err);
        if (status == 0 && args.name) {
            status = rundir_give_name(&arena, ctx->state, args.name, &dir, err);
        }
        status = status < 0 ? -1 : run_and_print(&opts, &dir, args.want_json, err);
    }
    net_args_cleanup(&args.net);
    opt_list_cleanup(&args.cases);
    opt_list_cleanup(&args.images);
    opt_list_cleanup(&args.overrides);
    return status;
}

const struct cmd CMD_RUN = {
    .name = "run",
    .operands = "REPORT",
    .summary = "run cases of a report, judge and seal the results",
    .opts = OPTS,
    .run = run,
};
