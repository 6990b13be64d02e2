/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/document_text.h"
#include "codec/json_document.h"
#include "prep/ordered.h"
#include "prep/pack_check.h"
#include "prep/verb.h"
#include "sys/pool.h"

#define HAS_FAULTS 5

struct verify_verb_args {
    int64_t n_threads;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct verify_verb_args, n_threads, "threads", "default: one a core", .value = "N",
        .min = POOL_THREADS_MIN, .max = POOL_THREADS_MAX),
    OPT(struct verify_verb_args, want_json, "json", "print one JSON document"),
    OPT_END,
};

static void print(const char *folder, const struct check_result *result, struct strbuf *buf)
{
    struct json_out out;
    jw_document(&out, buf);
    jw_z(&out, "folder", folder);
    jw_str(&out, "dataset", result->pack.dataset);
    jw_bool(&out, "synthetic", result->pack.is_synthetic);
    jw_str(&out, "split", result->pack.split);
    jw_i64(&out, "samples", (int64_t)result->pack.n_samples);
    jw_i64(&out, "shards", (int64_t)result->pack.n_shards);
    jw_i64(&out, "bytes", (int64_t)result->bytes);
    jw_i64(&out, "n_faults", (int64_t)result->n_faults);
    jw_words(&out, "faults", result->faults, result->n_faults);
    jw_end_object(&out);
}

static int verify(const struct cmd_ctx *ctx UNUSED, struct cmd_call *call, struct err *err)
{
    const char *folder = call->operands.items[0];
    const struct verify_verb_args *args = call->args;
    struct check_result result;
    if (check_folder(call->arena, folder,
                     args->n_threads ? (size_t)args->n_threads : ordered_cores(), &result,
                     err) < 0) {
        return -1;
    }
    print(folder, &result, call->out);
    if (!args->want_json) {
        document_to_text(call->out, SIZE_MAX);
    }
    return result.n_faults ? HAS_FAULTS : 0;
}

const struct cmd VERB_VERIFY =
    CMD("verify", "FOLDER", "check shards against their checksums", OPTS, verify,
        CMD_ARGS(struct verify_verb_args), CMD_OPERANDS(1, 1, "expected one folder of shards"));
