/* SPDX-License-Identifier: Apache-2.0 */
/* `data fetch`, `repair` and `lock` of names: what each does with a name of each kind is in artifact_ops.c. */
#include "base/base.h"

#include "base/fs.h"
#include "cmd/artifact_ops.h"
#include "cmd/net_args.h"

struct args {
    struct net_args net; /* first: NET_ARGS_OPTS */
    struct opt_list samples;
    const char *locks, *as, *from;
    bool is_synthetic;
    bool keeps_packed;
    bool removes_extra;
    bool is_dry;
    bool want_json;
};

#define OPT_LOCKS(says) OPT(struct args, locks, "locks", says, .value = "DIR")
#define OPT_JSON        OPT(struct args, want_json, "json", "print one JSON document, also on failure")

static const struct opt FETCH_OPTS[] = {
    OPT(struct args, is_synthetic, "synthetic", "make the synthetic dataset instead"),
    OPT(struct args, samples, "samples",
        "number of samples of a synthetic dataset; may be repeated", .value = "SPLIT=N"),
    OPT(struct args, keeps_packed, "no-unpack", "do not unpack a dataset's archives"),
    OPT(struct args, is_dry, "dry-run", "list the files, their sizes and sources; fetch nothing"),
    NET_ARGS_OPTS,
    OPT_LOCKS("check against these locks (default manifests/locks)"),
    OPT_JSON,
    OPT_END,
};

static const struct opt REPAIR_OPTS[] = {
    OPT(struct args, as, "as", "repair the operand, a folder, as this dataset", .value = "NAME"),
    OPT(struct args, from, "from", "a copy of the dataset's files, which are taken first",
        .value = "FOLDER"),
    OPT(struct args, is_synthetic, "synthetic", "the synthetic dataset"),
    OPT(struct args, removes_extra, "remove-extra",
        "remove files of a dataset's tree that none of its archives has"),
    NET_ARGS_OPTS,
    OPT_LOCKS("check against these locks (default manifests/locks)"),
    OPT_JSON,
    OPT_END,
};

static const struct opt LOCK_OPTS[] = {
    NET_ARGS_OPTS,
    OPT_LOCKS("write there instead of manifests/locks"),
    OPT_JSON,
    OPT_END,
};

static int get(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    const struct args *args = call->args;
    const struct cmd *of = call->cmd;
    struct net_opts net;
    struct artifact_job job = {.ctx = ctx,
                               .net_opts = &net,
                               .locks = args->locks,
                               .samples = &args->samples,
                               .wants_tree = !args->keeps_packed,
                               .from = args->from,
                               .removes_extra = args->removes_extra};
    enum artifact_verb verb = of == &CMD_REPAIR ? VERB_REPAIR
                              : of == &CMD_LOCK ? VERB_LOCK
                              : args->is_dry    ? VERB_FORESEE
                                                : VERB_FETCH;
    if (args->samples.n && !args->is_synthetic) {
        return err_set(err, ERR_USAGE, "fetch: --samples goes with --synthetic");
    }
    if (args->from && !fs_is_dir(args->from)) {
        return err_set(err, ERR_NOT_FOUND, "--from %s: no such folder", args->from);
    }
    if (args->as) {
        if (artifact_check_as(call->arena, ctx, of->name, args->as, &call->operands, err) < 0) {
            return -1;
        }
        job.folder = call->operands.items[0];
        call->operands.items[0] = args->as;
    }
    return net_args_opts(ctx, &args->net, &net, err) < 0
               ? -1
               : artifact_ops_run(&job, verb, &call->operands, args->is_synthetic, args->want_json,
                                  err);
}

const struct cmd CMD_FETCH =
    CMD("fetch", "NAME...",
        "get datasets, images and sources into the store, or all that a report needs", FETCH_OPTS,
        get, CMD_ARGS(struct args),
        CMD_OPERANDS(1, SIZE_MAX, "fetch: expected the NAME of a dataset, image or report"));
const struct cmd CMD_REPAIR =
    CMD("repair", "NAME... | FOLDER --as NAME",
        "fetch, unpack or copy what datasets and images lack, and nothing else", REPAIR_OPTS, get,
        CMD_ARGS(struct args),
        CMD_OPERANDS(1, SIZE_MAX, "repair: expected the NAME of a dataset, image or report"));
const struct cmd CMD_LOCK =
    CMD("lock", "NAME...",
        "record the state of datasets, images and sources, and require it from then on", LOCK_OPTS,
        get, CMD_ARGS(struct args),
        CMD_OPERANDS(1, SIZE_MAX, "lock: expected the NAME of a dataset, image or report"));
