/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/fs.h"
#include "codec/json_document.h"
#include "prep/pack_file.h"
#include "prep/verb.h"

static const struct opt OPTS[] = {OPT_END};

/* What pack.json says; the shards are not opened, but each must be there with its size. */
static int describe(const struct cmd_ctx *ctx UNUSED, struct cmd_call *call, struct err *err)
{
    const char *folder = call->operands.items[0];
    struct pack_file pack;
    struct json_out out;
    struct str text;
    uint64_t bytes = 0;
    if (pack_file_read(call->arena, folder, &pack, &text, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < pack.n_shards; idx++) {
        bytes += pack.shards[idx].bytes;
        if (!fs_exists(fs_join(call->arena, folder, pack.shards[idx].name.ptr))) {
            return err_set(err, ERR_INTEGRITY, "%s: %.*s is missing", folder,
                           STR_ARG(pack.shards[idx].name));
        }
    }
    jw_document(&out, call->out);
    jw_str(&out, "dataset", pack.dataset);
    jw_bool(&out, "synthetic", pack.is_synthetic);
    jw_z(&out, "kind", pack_file_kind_name(pack.kind));
    jw_str(&out, "split", pack.split);
    jw_i64(&out, "samples", (int64_t)pack.n_samples);
    if (pack.kind == SHARD_TOKENS) {
        jw_null(&out, "classes");
    } else {
        jw_i64(&out, "classes", pack.n_classes);
    }
    jw_i64(&out, "shards", (int64_t)pack.n_shards);
    jw_i64(&out, "bytes", (int64_t)bytes);
    jw_z(&out, "source_sha256", pack.has_source ? sha256_hex_of(pack.source_sha256).text : NULL);
    jw_z(&out, "sample_order_sha256", sha256_hex_of(pack.order_sha256).text);
    jw_raw(&out, "recipe", pack.recipe);
    jw_end_object(&out);
    return 0;
}

const struct cmd VERB_DESCRIBE =
    CMD("describe", "FOLDER", "describe a folder of shards, as one JSON document", OPTS, describe,
        CMD_OPERANDS(1, 1, "expected one folder of shards"));
