/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/log.h"

#include "codec/json_document.h"
#include "prep/ordered.h"
#include "prep/packing.h"
#include "prep/verb.h"
#include "sys/pool.h"

#define JSON_MAX (1u << 20)

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

static int print(const struct pack_verb_args *args, const struct packing_opts *opts,
                 const struct packing_result *result, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = {0};
    struct json_out out;
    strbuf_init(&buf, JSON_MAX);
    if (!args->want_json) {
        strbuf_printf(&buf, "%s: %zu samples in %zu shards, %" PRIu64 " bytes%s%s\n", opts->folder,
                      opts->samples->n, result->n_shards, result->total_bytes,
                      opts->is_synthetic ? ", synthetic" : "",
                      result->was_there ? ", all there before" : "");
        return verb_print(strbuf_str(&buf), err);
    }
    jw_document(&out, &buf);
    jw_str(&out, "dataset", opts->dataset_id);
    jw_bool(&out, "synthetic", opts->is_synthetic);
    jw_str(&out, "split", opts->split);
    jw_z(&out, "folder", opts->folder);
    jw_i64(&out, "samples", (int64_t)opts->samples->n);
    jw_i64(&out, "shards", (int64_t)result->n_shards);
    jw_i64(&out, "shards_kept", (int64_t)result->n_kept);
    jw_i64(&out, "bytes", (int64_t)result->total_bytes);
    jw_end_object(&out);
    return verb_print(strbuf_str(&buf), err);
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

static int pack(struct arena *arena, const struct pack_verb_args *args, struct err *err)
{
    CLEANUP(samples) struct samples samples = {0};
    struct tree_source source = {.folder = args->tree};
    struct dataset dataset = {0};
    struct packing_result result = {0};
    if (!args->tree || !args->split || !args->out) {
        return err_set(err, ERR_USAGE, "--tree, --split and --out are needed");
    }
    if (verb_dataset(arena, args->dataset, &dataset, err) < 0 ||
        (args->list && tree_source_list(arena, args->list, &source, err) < 0)) {
        return -1;
    }
    struct samples_opts samples_opts = {.dataset = &dataset,
                                        .split = str_of(args->split),
                                        .source = &source,
                                        .is_synthetic = args->is_synthetic,
                                        .n_threads = args->n_threads ? (size_t)args->n_threads
                                                                     : ordered_cores(),
                                        .should_stop = stop_is_asked};
    if (samples_find(arena, &samples_opts, &samples, err) < 0) {
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
                                .n_threads = samples_opts.n_threads,
                                .should_stop = stop_is_asked};
    say_size(&opts);
    if (packing_write(arena, &opts, &result, err) < 0) {
        return -1;
    }
    return print(args, &opts, &result, err);
}

static int run(int argc, char **argv, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(opt_list) struct opt_list operands = {0};
    struct pack_verb_args args = {.shard_bytes = SHARD_BYTES_DEFAULT};
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    if (operands.n) {
        return err_set(err, ERR_USAGE, "unexpected operand %s", operands.items[0]);
    }
    return pack(&arena, &args, err);
}

const struct verb VERB_PACK = {
    .name = "pack",
    .operands = "--dataset FILE --tree FOLDER --split NAME --out FOLDER",
    .summary = "make shards of one split of an unpacked dataset",
    .opts = OPTS,
    .run = run,
};
