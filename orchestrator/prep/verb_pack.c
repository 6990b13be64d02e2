/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/log.h"

#include "codec/document_text.h"
#include "codec/json_document.h"
#include "prep/ordered.h"
#include "prep/packing.h"
#include "prep/verb.h"
#include "sys/pool.h"

struct pack_verb_args {
    const char *dataset, *tree, *list, *split, *out;
    int64_t n_threads, shard_bytes;
    bool is_synthetic, is_forced, want_json;
};

static const struct opt OPTS[] = {
    OPT(struct pack_verb_args, dataset, "dataset", "the dataset.json that describes the tree",
        .value = "FILE"),
    OPT(struct pack_verb_args, tree, "tree", "the unpacked dataset", .value = "FOLDER"),
    OPT(struct pack_verb_args, list, "list",
        "the tree's list of SHA-256, as sha256sum writes it; each file is compared with it",
        .value = "FILE"),
    OPT(struct pack_verb_args, split, "split", "which part of the dataset", .value = "NAME"),
    OPT(struct pack_verb_args, out, "out",
        "where the shards are written; an interrupted packing there is continued",
        .value = "FOLDER"),
    OPT(struct pack_verb_args, n_threads, "threads",
        "default: one a core; the result does not depend on it", .value = "N",
        .min = POOL_THREADS_MIN, .max = POOL_THREADS_MAX),
    OPT(struct pack_verb_args, shard_bytes, "shard-bytes",
        "a shard is at most this large, or one sample; default 256 MiB", .value = "N",
        .min = SHARD_BYTES_MIN, .max = SHARD_BYTES_MAX),
    OPT(struct pack_verb_args, is_synthetic, "synthetic",
        "the tree is the synthetic dataset; pack.json says so"),
    OPT(struct pack_verb_args, is_forced, "force", "replace shards of another recipe or source"),
    OPT(struct pack_verb_args, want_json, "json", "print one JSON document"),
    OPT_END,
};

static void print(const struct cmd_call *call, const struct packing_opts *opts,
                  const struct packing_result *result)
{
    const struct pack_verb_args *args = call->args;
    struct json_out out;
    jw_document(&out, call->out);
    jw_str(&out, "dataset", opts->dataset_id);
    jw_bool(&out, "synthetic", opts->is_synthetic);
    jw_str(&out, "split", opts->split);
    jw_z(&out, "folder", opts->folder);
    jw_i64(&out, "samples", (int64_t)opts->samples->n);
    jw_i64(&out, "shards", (int64_t)result->n_shards);
    jw_i64(&out, "shards_kept", (int64_t)result->n_kept);
    jw_i64(&out, "bytes", (int64_t)result->total_bytes);
    jw_end_object(&out);
    if (!args->want_json) {
        document_to_text(call->out, SIZE_MAX);
    }
}

/* Before it begins: shards hold decoded pixels, which are many times the size of a JPEG. */
static void say_size(const struct packing_opts *opts)
{
    uint64_t bytes = 0;
    for (size_t idx = 0; idx < opts->samples->n; idx++) {
        bytes += opts->samples->items[idx].bytes;
    }
    log_line(LOG_INFO, "%.*s, split %.*s: %zu samples, %.1f MB as packed, in %s",
             STR_ARG(opts->dataset_id), STR_ARG(opts->split), opts->samples->n, (double)bytes / 1e6,
             opts->folder);
}

static int pack(const struct cmd_ctx *ctx UNUSED, struct cmd_call *call, struct err *err)
{
    const struct pack_verb_args *args = call->args;
    CLEANUP(samples) struct samples samples = {0};
    struct tree_source source = {.folder = args->tree};
    struct dataset dataset = {0};
    struct packing_result result = {0};
    if (!args->tree || !args->split || !args->out) {
        return err_set(err, ERR_USAGE, "--tree, --split and --out are needed");
    }
    if (verb_dataset(call->arena, args->dataset, &dataset, err) < 0 ||
        (args->list && tree_source_list(call->arena, args->list, &source, err) < 0)) {
        return -1;
    }
    struct samples_opts samples_opts = {.dataset = &dataset,
                                        .dataset_path = args->dataset,
                                        .split = str_of(args->split),
                                        .source = &source,
                                        .is_synthetic = args->is_synthetic,
                                        .n_threads = args->n_threads ? (size_t)args->n_threads
                                                                     : ordered_cores()};
    if (samples_find(call->arena, &samples_opts, &samples, err) < 0) {
        return -1;
    }
    struct packing_opts opts = {.folder = args->out,
                                .dataset_id = dataset.id,
                                .split = samples_opts.split,
                                .is_synthetic = args->is_synthetic,
                                .is_forced = args->is_forced,
                                .shard_bytes = (uint64_t)args->shard_bytes,
                                .source = &source,
                                .samples = &samples,
                                .n_threads = samples_opts.n_threads};
    say_size(&opts);
    if (packing_write(call->arena, &opts, &result, err) < 0) {
        return -1;
    }
    print(call, &opts, &result);
    return 0;
}

const struct cmd VERB_PACK = CMD(
    "pack", "--dataset FILE --tree FOLDER --split NAME --out FOLDER",
    "make shards of one split of an unpacked dataset", OPTS, pack, CMD_ARGS(struct pack_verb_args),
    .defaults = &(const struct pack_verb_args){.shard_bytes = SHARD_BYTES_DEFAULT},
    CMD_OPERANDS(0, 0, "expected no operand"));
