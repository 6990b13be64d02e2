/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/artifact_ops.h"
#include "cmd/net_args.h"

struct repair_args {
    struct net_args net; /* first: NET_ARGS_OPTS */
    const char *locks;
    bool is_synthetic;
    bool removes_extra;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct repair_args, is_synthetic, "synthetic", "the synthetic dataset"),
    OPT(struct repair_args, removes_extra, "remove-extra",
        "remove files of a dataset's tree that none of its archives has"),
    NET_ARGS_OPTS,
    OPT(struct repair_args, locks, "locks", "check against these locks (default manifests/locks)",
        .value = "DIR"),
    OPT(struct repair_args, want_json, "json", "print one JSON document, also on failure"),
    OPT_END,
};

static int repair(const struct cmd_ctx *ctx, const struct repair_args *args,
                  const struct opt_list *names, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct net_opts net;
    struct artifact_job job = {
        .ctx = ctx, .net_opts = &net, .locks = args->locks, .removes_extra = args->removes_extra};
    if (names->n == 0) {
        return err_set(err, ERR_USAGE, "repair: expected the NAME of a dataset, image or report");
    }
    return net_args_opts(ctx, &args->net, &net, err) < 0
               ? -1
               : artifact_ops_run(&job, VERB_REPAIR, names, args->is_synthetic, args->want_json,
                                  err);
}

static int run_repair(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct repair_args args = {0};
    int status = opt_parse(OPTS, argc, argv, &args, &operands, err);
    status = status < 0 ? -1 : repair(ctx, &args, &operands, err);
    net_args_cleanup(&args.net);
    return status;
}

const struct cmd CMD_REPAIR = {
    .name = "repair",
    .operands = "NAME...",
    .summary = "fetch or unpack what the store's datasets and images lack, and nothing else",
    .opts = OPTS,
    .run = run_repair,
};
