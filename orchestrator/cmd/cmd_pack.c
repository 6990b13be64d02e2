/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/stop.h"
#include "cmd/cmd.h"
#include "cmd/document_text.h"
#include "codec/json_document.h"
#include "store/artifact.h"
#include "store/dataset_pack.h"

struct args {
    struct opt_list splits;
    int64_t n_threads;
    int64_t shard_bytes;
    bool is_synthetic;
    bool replaces;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, splits, "split", "only this part; may be given more than once; default: all",
        .value = "SPLIT"),
    OPT(struct args, is_synthetic, "synthetic", "the synthetic dataset"),
    OPT(struct args, n_threads, "threads", "default: one a core; the result does not depend on it",
        .value = "N", .min = POOL_THREADS_MIN, .max = POOL_THREADS_MAX),
    OPT(struct args, shard_bytes, "shard-bytes",
        "a shard is at most this large, or one sample; default 256 MiB", .value = "N", .min = 1,
        .max = INT64_MAX),
    OPT(struct args, replaces, "force", "replace shards of another recipe or source"),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

/* reperf-pack's document for each split is inserted unchanged. */
static void print(struct strbuf *buf, const struct dataset_here *here,
                  const struct dataset_packed *packed, size_t n, bool want_json)
{
    struct json_out out;
    jw_document(&out, buf);
    jw_str(&out, "dataset", here->dataset.id);
    jw_bool(&out, "synthetic", here->is_synthetic);
    jw_array(&out, "splits");
    for (size_t idx = 0; idx < n; idx++) {
        jw_raw(&out, NULL, packed[idx].said);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    if (!want_json) {
        document_to_text(buf, SIZE_MAX);
    }
}

static int run_pack(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    const struct args *args = call->args;
    const char *name = call->operands.items[0];
    CLEANUP(store) struct store store = STORE_EMPTY;
    const struct net_opts net = {.clock = ctx->clock};
    const struct dataset_pack_opts opts = {.net = &net,
                                           .self = ctx->self,
                                           .splits = args->splits.items,
                                           .n_splits = args->splits.n,
                                           .n_threads = args->n_threads,
                                           .shard_bytes = args->shard_bytes,
                                           .replaces = args->replaces};
    struct dataset_here here;
    struct dataset_packed_list packed;
    struct artifact artifact;
    if (artifact_resolve(call->arena, ctx->root, name, &artifact, err) < 0) {
        return -1;
    }
    if (artifact.kind != ARTIFACT_DATASET) {
        return err_set(err, ERR_USAGE, "pack %.100s: expected a dataset, found %s", name,
                       ARTIFACT_KIND_NAMES[artifact.kind]);
    }
    if (dataset_load(call->arena,
                     &(struct dataset_which){ctx->root, NULL, artifact.name.ptr,
                                             artifact.is_synthetic || args->is_synthetic},
                     &here, err) < 0 ||
        store_open(call->arena, ctx->store, &store, err) < 0) {
        return -1;
    }
    stop_hold();
    if (dataset_pack(call->arena, &store, &here, &opts, &packed, err) < 0) {
        return -1;
    }
    print(call->out, &here, packed.items, packed.n, args->want_json);
    return 0;
}

const struct cmd CMD_PACK =
    CMD("pack", "NAME", "make shards for training of a dataset in the store", OPTS, run_pack,
        CMD_ARGS(struct args), CMD_OPERANDS(1, 1, "pack: expected the NAME of one dataset"));
