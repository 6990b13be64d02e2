/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/log.h"
#include "cmd/cmd.h"
#include "cmd/run_args.h"
#include "codec/sign.h"
#include "report/run_id.h"
#include "view/run_health.h"

#define REPEATS_MAX_DEFAULT 20  /* with --within */
#define GATE_FRESH_H        168 /* a week */

static const struct opt OPTS[] = {
    RUN_ARGS_PLAN_OPTS,
    NET_ARGS_ASK_OPTS,
    RUN_OPT_OFFLINE,
    RUN_OPT_RETRY,
    RUN_OPT_KEY,
    OPT(struct run_args, opts.run_id, "run-id", "the run's id, instead of a generated one",
        .value = "ID"),
    OPT(struct run_args, name, "name",
        "a name for the run, accepted by every command in place of its id", .value = "NAME"),
    OPT(struct run_args, gate, "gate",
        "only if this run with --each-node has nothing against the nodes (else status 6)",
        .value = "RUN|ARCHIVE"),
    OPT(struct run_args, opts.limits, "limits",
        "when a node is an outlier, instead of manifests/node-health.json", .value = "FILE"),
    OPT(struct run_args, trust, "trust",
        "run what the report at this address names, unasked, if it is exactly this commit",
        .value = "COMMIT"),
    OPT(struct run_args, opts.plan.asked.within, "within",
        "more repeats, until half the 95 % interval of each mean is at most this (\"2%\")",
        .value = "SHARE"),
    OPT(struct run_args, opts.plan.asked.repeats_max, "repeats-max",
        "with --within: at most so many (20)", .value = "N", .min = 1, .max = REPEATS_RUN_MAX),
    OPT(struct run_args, opts.plan.asked.tolerance, "tolerance",
        "how far from the published number still counts as reproduced (5%)", .value = "SHARE"),
    OPT(struct run_args, format, "format",
        "of a command's log, by name or file (default: whichever reads it)", .letter = 'f',
        .value = "FORMAT"),
    OPT(struct run_args, is_dry_run, "dry-run",
        "print the plan, as `reperf plan` does, and do nothing"),
    RUN_OPT_JSON,
    OPT_END,
};

/* Signing comes last: that the key can be read is known before hours of work. */
static int check_key(const struct run_args *args, struct err *err)
{
    CLEANUP(sign_key) struct sign_key key = SIGN_KEY_EMPTY;
    return args->opts.key_path ? sign_load_private(args->opts.key_path, &key, err) : 0;
}

static int check_gate(const struct cmd_ctx *ctx, const struct run_args *args,
                      const struct inventory *inventory, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(run_view) struct run_view view = {0};
    char time[RFC3339_MAX];
    if (run_view_open(&arena, ctx->clock, ctx->state, args->gate, &view, err) < 0 ||
        run_health_of(&arena, ctx->root, args->opts.limits, &view, err) < 0) {
        return -1;
    }
    if (run_health_admits(&view, inventory, err) < 0) {
        return err_wrap(err, "gate %s", args->gate);
    }
    int64_t hours =
        (ctx->clock.wall_ns(ctx->clock.ctx) / NS_PER_S - run_id_wall_s(view.frozen.run_id)) / 3600;
    run_id_time(view.frozen.run_id, time);
    log_line(hours < GATE_FRESH_H && hours >= 0 ? LOG_INFO : LOG_WARN,
             "gate %s: %zu nodes measured, nothing against any; measured %s, %" PRId64
             " hours ago; limits: %s",
             args->gate, inventory->n_nodes, time, hours,
             args->opts.limits ? args->opts.limits : "reperf's");
    if (view.health->n_alone) {
        log_line(LOG_WARN, "gate %s: %zu figures could not be compared with others'", args->gate,
                 view.health->n_alone);
    }
    return 0;
}

/* What can be refused is refused before anything is fetched or takes hours. */
static int check_args(const struct cmd_ctx *ctx, struct arena *arena, const struct run_args *args,
                      struct err *err)
{
    if (args->opts.limits && !args->gate && !args->opts.plan.asked.is_each_node) {
        return err_set(err, ERR_USAGE, "--limits needs --each-node or --gate");
    }
    if (args->name && rundir_check_name(arena, ctx->state, args->name, err) < 0) {
        return -1;
    }
    return check_key(args, err);
}

static int create_and_run(const struct cmd_ctx *ctx, struct arena *arena,
                          const struct run_args *args, const struct run_opts *opts,
                          const struct run_prepared *prepared, struct err *err)
{
    struct rundir dir;
    if (run_create(arena, opts, prepared, &dir, err) < 0 ||
        (args->name && rundir_give_name(arena, ctx->state, args->name, &dir, err) < 0)) {
        return -1;
    }
    return run_and_print(opts, &dir, args->want_json, err);
}

static int open_address(const struct cmd_ctx *ctx, struct arena *arena, const struct run_args *args,
                        const char *name, struct address *ret, struct err *err)
{
    if (address_open(arena, ctx, args->net.opts.is_offline, name, ret, err) < 0) {
        return -1;
    }
    return args->trust && !ret->pin
               ? err_set(err, ERR_USAGE, "--trust: %s is no address of a report", name)
               : 0;
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    struct run_args *args = call->args;
    struct run_opts opts;
    struct run_prepared prepared;
    struct address address = {0};
    const struct opt_list *operands = &call->operands;
    bool is_command = operands->n > call->n_before;
    if (is_command ? call->n_before > 0 : call->n_before != 1) {
        return err_set(err, ERR_USAGE, "expected one report, or -- and a command");
    }
    if (args->format && !is_command) {
        return err_set(err, ERR_USAGE, "--format: a report names the formats of its cases itself");
    }
    if (run_args_opts(ctx, args, &opts, err) < 0 || check_args(ctx, call->arena, args, err) < 0 ||
        (is_command
             ? run_command_report(call->arena, args, ctx->root, operands, &opts.command, err)
             : open_address(ctx, call->arena, args, operands->items[0], &address, err)) < 0) {
        return -1;
    }
    opts.report = address.report;
    opts.plan.asked.address = str_of(address.pin);
    if (run_read(call->arena, &opts, &prepared, err) < 0) {
        return -1;
    }
    /* Before anything that it names is fetched: what it would run is known from a plan, which is made again when that is
       there. */
    if (address.pin && !args->is_dry_run &&
        (run_plan(call->arena, &opts, &prepared, err) < 0 ||
         run_trust(args, &address, &prepared.plan, err) < 0)) {
        return -1;
    }
    if ((args->gate && check_gate(ctx, args, &prepared.inventory, err) < 0) ||
        (!args->is_dry_run && run_get(ctx, args, &opts, &prepared, err) < 0)) {
        return -1;
    }
    if (run_plan(call->arena, &opts, &prepared, err) < 0) {
        return -1;
    }
    if (args->is_dry_run) {
        return run_print_plan(&prepared, args, call, err);
    }
    return plan_runnable(&prepared.plan) == 0
               ? run_nothing_and_print(&opts, &prepared, args->want_json, err)
               : create_and_run(ctx, call->arena, args, &opts, &prepared, err);
}

const struct cmd CMD_RUN =
    CMD("run", "REPORT | -- COMMAND...",
        "run cases of a report, or a command: judge and seal the results", OPTS, run,
        CMD_ARGS(struct run_args),
        .defaults = &(const struct run_args){
            .opts.plan.asked = {.repeats = REPEATS_DEFAULT, .repeats_max = REPEATS_MAX_DEFAULT}});
