/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/pack_file.h"

#include "base/fs.h"
#include "codec/json_table.h"

#define LINE_BYTES_MAX 1024
#define NO_SHARDS      "  \"shards\": []\n}\n" /* how a text without them ends */

static const char *const KINDS[] = {
    [SHARD_CLASSES] = "classes", [SHARD_SEGMENTS] = "segments", [SHARD_TOKENS] = "tokens"};

/* JSON in one line, as it was written. */
static int get_recipe(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(PACK_TEXT_MAX);
    struct json_out json;
    if (!json_is_object(at)) {
        return json_fail(at, err, "expected an object");
    }
    jw_begin(&json, &text, true);
    jw_json(&json, NULL, at);
    *(struct str *)out = str_dup(arena, strbuf_str(&text));
    return 0;
}

static void put_recipe(struct json_out *out, const char *key, const void *of)
{
    jw_raw(out, key, ((const struct pack_file *)of)->recipe);
}

/* A line each. */
static void put_shards(struct json_out *out, const char *key, const void *of)
{
    const struct pack_file *pack = of;
    jw_array(out, key);
    for (size_t idx = 0; idx < pack->n_shards; idx++) {
        CLEANUP(strbuf) struct strbuf line = STRBUF(LINE_BYTES_MAX);
        const struct pack_file_shard *shard = &pack->shards[idx];
        strbuf_printf(&line,
                      "{\"name\": \"%.*s\", \"bytes\": %" PRIu64 ", \"samples\": %" PRIu64
                      ", \"sha256\": \"%s\"}",
                      STR_ARG(shard->name), shard->bytes, shard->n_samples,
                      sha256_hex_of(shard->sha256).text);
        jw_raw(out, NULL, strbuf_str(&line));
    }
    jw_end_array(out);
}

static int check_shards(const struct json *list, struct arena *arena UNUSED, void *out,
                        struct err *err)
{
    const struct pack_file *pack = out;
    uint64_t n_samples = 0;
    for (size_t idx = 0; idx < pack->n_shards; idx++) {
        char name[32];
        snprintf(name, sizeof(name), SHARD_NAME, (unsigned)idx);
        if (!str_eq_z(pack->shards[idx].name, name)) {
            return json_fail(list, err, "expected the shard %s, found %.*s", name,
                             STR_ARG(pack->shards[idx].name));
        }
        n_samples += pack->shards[idx].n_samples;
    }
    return n_samples == pack->n_samples
               ? 0
               : json_fail(list, err, "%" PRIu64 " samples in the shards, n_samples says %" PRIu64,
                           n_samples, pack->n_samples);
}

static const struct json_field SHARD_ROWS[] = {
    ROW("name", struct pack_file_shard, name, JSON_REQUIRED),
    ROW("bytes", struct pack_file_shard, bytes, JSON_REQUIRED, .min = SHARD_ALIGN,
        .max = INT64_MAX),
    ROW("samples", struct pack_file_shard, n_samples, JSON_REQUIRED, .min = 1, .max = UINT32_MAX),
    ROW_HEX("sha256", struct pack_file_shard, sha256, has_sha256, JSON_REQUIRED),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("dataset", struct pack_file, dataset, JSON_REQUIRED),
    ROW("synthetic", struct pack_file, is_synthetic, JSON_REQUIRED),
    ROW_WORD("kind", struct pack_file, kind, KINDS, JSON_REQUIRED),
    ROW("split", struct pack_file, split, JSON_REQUIRED),
    ROW("n_samples", struct pack_file, n_samples, JSON_REQUIRED, .min = 1, .max = UINT32_MAX),
    {ROW_AT("n_classes", JSON_INT, struct pack_file, n_classes),
     .flags = JSON_REQUIRED | JSON_NULLABLE, .min = 1, .max = INT32_MAX},
    ROW_HEX("source_sha256", struct pack_file, source_sha256, has_source,
            JSON_REQUIRED | JSON_NULLABLE),
    ROW_GET("recipe", struct pack_file, recipe, get_recipe, JSON_REQUIRED, .put = put_recipe),
    ROW_HEX("sample_order_sha256", struct pack_file, order_sha256, has_order, JSON_REQUIRED),
    ROW_LIST("shards", struct pack_file, shards, n_shards, SHARD_ROWS, JSON_REQUIRED,
             .max = PACK_SHARDS_MAX, .get = check_shards, .put = put_shards),
};

void pack_file_text(const struct pack_file *pack, struct strbuf *out)
{
    json_encode_document(out, ROWS, ARRAY_LEN(ROWS), pack);
}

void pack_file_head(const struct pack_file *pack, struct strbuf *out)
{
    struct pack_file head = *pack;
    head.n_shards = 0;
    pack_file_text(&head, out);
    out->len -= out->is_full ? 0 : sizeof(NO_SHARDS) - 1;
    out->ptr[out->len] = '\0';
}

int pack_file_parse(struct arena *arena, struct str text, const char *name,
                    struct pack_file *ret_pack, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct pack_file pack = {0};
    int result = json_parse(text, name, &doc, err);
    if (result == 0) {
        result = json_decode(&doc.root, arena, ROWS, ARRAY_LEN(ROWS), &pack, err);
        if (result == 0 && ((pack.kind == SHARD_TOKENS) != (pack.n_classes == 0) ||
                            (pack.kind == SHARD_SEGMENTS && pack.n_classes > 255))) {
            result =
                json_fail(&doc.root, err, "n_classes %d does not fit the kind", pack.n_classes);
        }
    }
    if (result < 0) {
        err->code = ERR_INTEGRITY; /* not a manifest that a person wrote */
        return -1;
    }
    *ret_pack = pack;
    return 0;
}

int pack_file_read(struct arena *arena, const char *folder, struct pack_file *ret_pack,
                   struct err *err)
{
    struct str text;
    const char *path = fs_join(arena, folder, PACK_NAME);
    if (fs_read(arena, path, PACK_TEXT_MAX, &text, err) < 0) {
        if (err->code == ERR_NOT_FOUND) {
            err->code = ERR_INTEGRITY; /* without it the folder is not whole */
        }
        return -1;
    }
    return pack_file_parse(arena, text, path, ret_pack, err);
}
