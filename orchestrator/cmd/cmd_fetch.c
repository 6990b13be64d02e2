/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/artifact_ops.h"
#include "cmd/net_args.h"

struct fetch_args {
    struct net_args net; /* first: NET_ARGS_OPTS */
    struct opt_list samples;
    const char *locks;
    bool is_synthetic;
    bool keeps_packed;
    bool is_dry;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct fetch_args, is_synthetic, "synthetic", "make the synthetic dataset instead"),
    OPT(struct fetch_args, samples, "samples",
        "number of samples of a synthetic dataset; may be repeated", .value = "SPLIT=N"),
    OPT(struct fetch_args, keeps_packed, "no-unpack", "do not unpack a dataset's archives"),
    OPT(struct fetch_args, is_dry, "dry-run",
        "list the files, their sizes and sources; fetch nothing"),
    NET_ARGS_OPTS,
    OPT(struct fetch_args, locks, "locks", "check against these locks (default manifests/locks)",
        .value = "DIR"),
    OPT(struct fetch_args, want_json, "json", "print one JSON document, also on failure"),
    OPT_END,
};

static int fetch(const struct cmd_ctx *ctx, const struct fetch_args *args,
                 const struct opt_list *names, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct net_opts net;
    struct artifact_job job = {.ctx = ctx,
                               .net_opts = &net,
                               .locks = args->locks,
                               .samples = &args->samples,
                               .wants_tree = !args->keeps_packed};
    if (names->n == 0) {
        return err_set(err, ERR_USAGE, "fetch: expected the NAME of a dataset, image or report");
    }
    if (args->samples.n && !args->is_synthetic) {
        return err_set(err, ERR_USAGE, "fetch: --samples goes with --synthetic");
    }
    return net_args_opts(ctx, &args->net, &net, err) < 0
               ? -1
               : artifact_ops_run(&job, args->is_dry ? VERB_FORESEE : VERB_FETCH, names,
                                  args->is_synthetic, args->want_json, err);
}

static int run_fetch(const struct cmd_ctx *ctx, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct fetch_args args = {0};
    int status = opt_parse(OPTS, argc, argv, &args, &operands, err);
    status = status < 0 ? -1 : fetch(ctx, &args, &operands, err);
    net_args_cleanup(&args.net);
    VEC_RELEASE(&args.samples);
    return status;
}

const struct cmd CMD_FETCH = {
    .name = "fetch",
    .operands = "NAME...",
    .summary = "get datasets, images and sources into the store, or all that a report needs",
    .opts = OPTS,
    .run = run_fetch,
};
