/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/json_document.h"
#include "prep/ordered.h"
#include "prep/synth.h"
#include "prep/verb.h"
#include "sys/pool.h"

struct synth_args {
    const char *dataset, *out;
    struct opt_list samples;
    int64_t seed, n_threads;
};

static const struct opt OPTS[] = {
    OPT(struct synth_args, dataset, "dataset", "the dataset.json that describes it",
        .value = "FILE"),
    OPT(struct synth_args, out, "out", "where the archives are written", .value = "FOLDER"),
    OPT(struct synth_args, samples, "samples",
        "how many samples of a split; default: what dataset.json says", .value = "SPLIT=N"),
    OPT(struct synth_args, seed, "seed", "default: what dataset.json says", .value = "N", .min = 0,
        .max = INT64_MAX),
    OPT(struct synth_args, n_threads, "threads",
        "default: one a core; the result does not depend on it", .value = "N",
        .min = POOL_THREADS_MIN, .max = POOL_THREADS_MAX),
    OPT_END,
};

static int read_samples(const struct opt_list *list, const struct dataset_synthetic *synthetic,
                        int64_t *counts, struct err *err)
{
    for (size_t idx = 0; idx < synthetic->n_splits; idx++) {
        counts[idx] = synthetic->splits[idx].n_samples;
    }
    for (size_t item = 0; item < list->n; item++) {
        struct str rest = str_of(list->items[item]), name;
        bool is_known = false;
        (void)str_next(&rest, '=', &name);
        for (size_t idx = 0; idx < synthetic->n_splits; idx++) {
            if (!str_eq(synthetic->splits[idx].name, name)) {
                continue;
            }
            is_known = true;
            if (str_to_i64(rest, 1, SYNTH_SAMPLES_MAX, &counts[idx], err) < 0) {
                err->code = ERR_USAGE;
                return err_wrap(err, "--samples %s", list->items[item]);
            }
        }
        if (!is_known) {
            return err_set(err, ERR_USAGE,
                           "--samples %s: expected SPLIT=N with a split of the synthetic dataset",
                           list->items[item]);
        }
    }
    return 0;
}

static void print(const struct dataset *dataset, const struct synth_result *result,
                  struct strbuf *buf)
{
    struct json_out out;
    jw_document(&out, buf);
    jw_str(&out, "dataset", dataset->id);
    jw_bool(&out, "synthetic", true);
    jw_array(&out, "files");
    for (size_t idx = 0; idx < result->n_files; idx++) {
        const struct synth_file *file = &result->files[idx];
        char md5[MD5_HEX_SIZE], sha256[SHA256_HEX_SIZE];
        hex_encode(file->value.md5, MD5_BYTES, md5);
        hex_encode(file->value.sha256, SHA256_BYTES, sha256);
        jw_object(&out, NULL);
        jw_str(&out, "name", file->name);
        jw_i64(&out, "bytes", (int64_t)file->value.size_bytes);
        jw_z(&out, "md5", md5);
        jw_z(&out, "sha256", sha256);
        jw_end_object(&out);
    }
    jw_end_array(&out);
    jw_end_object(&out);
}

static int synth(const struct cmd_ctx *ctx UNUSED, struct cmd_call *call, struct err *err)
{
    const struct synth_args *args = call->args;
    struct dataset dataset = {0};
    struct synth_result result;
    int64_t counts[DATASET_SPLITS_MAX] = {0};
    if (!args->out) {
        return err_set(err, ERR_USAGE, "--out is needed: a folder");
    }
    if (verb_dataset(call->arena, args->dataset, &dataset, err) < 0) {
        return -1;
    }
    struct synth_opts opts = {.dataset = &dataset,
                              .folder = args->out,
                              .n_samples = counts,
                              .seed = args->seed >= 0 ? args->seed : dataset.synthetic.seed,
                              .n_threads =
                                  args->n_threads ? (size_t)args->n_threads : ordered_cores(),
                              .should_stop = stop_is_asked};
    if (read_samples(&args->samples, &dataset.synthetic, counts, err) < 0 ||
        synth_write(call->arena, &opts, &result, err) < 0) {
        return -1;
    }
    print(&dataset, &result, call->out);
    return 0;
}

const struct cmd VERB_SYNTH =
    CMD("synth", "--dataset FILE --out FOLDER",
        "write a synthetic dataset, as the archives that the original comes in", OPTS, synth,
        CMD_ARGS(struct synth_args), .defaults = &(const struct synth_args){.seed = -1},
        CMD_OPERANDS(0, 0, "expected no operand"));
