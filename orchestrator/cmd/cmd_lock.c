/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/artifact_ops.h"
#include "cmd/net_args.h"

struct lock_args {
    struct net_args net; /* first: NET_ARGS_OPTS */
    const char *locks;
    bool want_json;
};

static const struct opt OPTS[] = {
    NET_ARGS_OPTS,
    OPT(struct lock_args, locks, "locks", "write there instead of manifests/locks", .value = "DIR"),
    OPT(struct lock_args, want_json, "json", "print one JSON document, also on failure"),
    OPT_END,
};

static int lock(const struct cmd_ctx *ctx, const struct lock_args *args,
                const struct opt_list *names, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct net_opts net;
    struct artifact_job job = {
        .ctx = ctx, .net_opts = &net, .locks = args->locks, .wants_tree = true};
    if (names->n == 0) {
        return err_set(err, ERR_USAGE, "lock: expected the NAME of a dataset, image or report");
    }
    return net_args_opts(ctx, &args->net, &net, err) < 0
               ? -1
               : artifact_ops_run(&job, VERB_LOCK, names, false, args->want_json, err);
}

static int run_lock(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct lock_args args = {0};
    int status = opt_parse(OPTS, argc, argv, &args, &operands, err);
    status = status < 0 ? -1 : lock(ctx, &args, &operands, err);
    net_args_cleanup(&args.net);
    return status;
}

const struct cmd CMD_LOCK = {
    .name = "lock",
    .operands = "NAME...",
    .summary = "record the state of datasets, images and sources, and require it from then on",
    .opts = OPTS,
    .run = run_lock,
};
