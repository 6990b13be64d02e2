/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/pack_file.h"

#include "base/fs.h"
#include "codec/json_override.h"
#include "codec/json_table.h"

static const char *const KINDS[] = {
    [SHARD_CLASSES] = "classes", [SHARD_SEGMENTS] = "segments", [SHARD_TOKENS] = "tokens"};

const char *pack_file_kind_name(enum shard_kind kind)
{
    return KINDS[kind];
}

static void put_text(struct strbuf *out, const char *key, struct str value)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(PACK_TEXT_MAX);
    struct json_out json;
    jw_begin(&json, &text, true);
    jw_str(&json, NULL, value);
    strbuf_printf(out, "  \"%s\": ", key);
    strbuf_add_str(out, str_trim(strbuf_str(&text)));
    strbuf_add_z(out, ",\n");
}

static void add_digest(struct strbuf *out, const char *key, const uint8_t *sha256)
{
    strbuf_printf(out, "  \"%s\": \"%s\",\n", key, sha256_hex_of(sha256).text);
}

void pack_file_head(const struct pack_file *pack, struct strbuf *out)
{
    strbuf_add_z(out, "{\n  \"schema_version\": 1,\n");
    put_text(out, "dataset", pack->dataset);
    strbuf_printf(out, "  \"synthetic\": %s,\n", pack->is_synthetic ? "true" : "false");
    strbuf_printf(out, "  \"kind\": \"%s\",\n", KINDS[pack->kind]);
    put_text(out, "split", pack->split);
    strbuf_printf(out, "  \"n_samples\": %" PRIu64 ",\n", pack->n_samples);
    if (pack->kind == SHARD_TOKENS) {
        strbuf_add_z(out, "  \"n_classes\": null,\n");
    } else {
        strbuf_printf(out, "  \"n_classes\": %u,\n", pack->n_classes);
    }
    if (pack->has_source) {
        add_digest(out, "source_sha256", pack->source_sha256);
    } else {
        strbuf_add_z(out, "  \"source_sha256\": null,\n");
    }
    strbuf_printf(out, "  \"recipe\": %.*s,\n", STR_ARG(pack->recipe));
    add_digest(out, "sample_order_sha256", pack->order_sha256);
}

void pack_file_text(const struct pack_file *pack, struct strbuf *out)
{
    pack_file_head(pack, out);
    strbuf_add_z(out, "  \"shards\": [\n");
    for (size_t idx = 0; idx < pack->n_shards; idx++) {
        const struct pack_file_shard *shard = &pack->shards[idx];
        strbuf_printf(out,
                      "    {\"name\": \"%.*s\", \"bytes\": %" PRIu64 ", \"samples\": %" PRIu64
                      ", \"sha256\": \"%s\"}%s\n",
                      STR_ARG(shard->name), shard->bytes, shard->n_samples,
                      sha256_hex_of(shard->sha256).text, idx + 1 < pack->n_shards ? "," : "");
    }
    strbuf_add_z(out, "  ]\n}\n");
}

/* ---- reading ---- */

static int get_digest(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct str text;
    struct err ignored = {0};
    if (json_str(at, arena, &text, err) < 0) {
        return -1;
    }
    return hex_decode(text, SHA256_BYTES, out, &ignored) < 0
               ? json_fail(at, err, "expected 64 lower-case hex digits")
               : 0;
}

static int get_source(const struct json *at, struct arena *arena, void *out, struct err *err)
{
    struct pack_file *pack = out;
    pack->has_source = true;
    return get_digest(at, arena, pack->source_sha256, err);
}

/* Its text is cut out afterwards. */
static int get_recipe(const struct json *at, struct arena *arena UNUSED, void *out UNUSED,
                      struct err *err)
{
    return json_is_object(at) ? 0 : json_fail(at, err, "expected an object");
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
    ROW_GET("sha256", struct pack_file_shard, sha256, get_digest, JSON_REQUIRED),
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
    ROW_ANY("source_sha256", JSON_REQUIRED | JSON_NULLABLE, .get = get_source),
    ROW_ANY("recipe", JSON_REQUIRED, .get = get_recipe),
    ROW_GET("sample_order_sha256", struct pack_file, order_sha256, get_digest, JSON_REQUIRED),
    ROW_LIST("shards", struct pack_file, shards, n_shards, SHARD_ROWS, JSON_REQUIRED,
             .max = PACK_SHARDS_MAX, .get = check_shards),
};

/* Its text stands in one line, as pack_file_head writes it. */
static int cut_recipe(struct str text, struct arena *arena, struct str *ret_recipe,
                      const char *name, struct err *err)
{
    const struct json_path_part key = {.key = STR_LIT("recipe")};
    int64_t brace = str_find(text, STR_LIT("{"));
    struct json_span at = {.from = brace < 0 ? 0 : (size_t)brace, .to = text.len};
    struct str recipe = json_place_step(text, &key, &at) && !at.is_absent
                            ? str_sub(text, at.from, at.to - at.from)
                            : STR_EMPTY;
    if (!recipe.len || str_find(recipe, STR_LIT("\n")) >= 0) {
        return err_set(err, ERR_INTEGRITY, "%s: the recipe does not stand in a line of its own",
                       name);
    }
    *ret_recipe = str_dup(arena, recipe);
    return 0;
}

int pack_file_parse(struct arena *arena, struct str text, const char *name,
                    struct pack_file *ret_pack, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct pack_file pack = {0};
    int result = json_parse(text, name, &doc, err);
    if (result == 0) {
        const struct json root = json_root(&doc);
        result = json_decode(&root, arena, ROWS, ARRAY_LEN(ROWS), &pack, err);
        if (result == 0 && ((pack.kind == SHARD_TOKENS) != (pack.n_classes == 0) ||
                            (pack.kind == SHARD_SEGMENTS && pack.n_classes > 255))) {
            result = json_fail(&root, err, "n_classes %d does not fit the kind", pack.n_classes);
        }
    }
    if (result == 0) {
        result = cut_recipe(text, arena, &pack.recipe, name, err);
    }
    if (result < 0) {
        err->code = ERR_INTEGRITY; /* not a manifest that a person wrote */
        return -1;
    }
    *ret_pack = pack;
    return 0;
}

int pack_file_read(struct arena *arena, const char *folder, struct pack_file *ret_pack,
                   struct str *ret_text, struct err *err)
{
    const char *path = fs_join(arena, folder, PACK_NAME);
    if (fs_read(arena, path, PACK_TEXT_MAX, ret_text, err) < 0) {
        if (err->code == ERR_NOT_FOUND) {
            err->code = ERR_INTEGRITY; /* without it the folder is not whole */
        }
        return -1;
    }
    return pack_file_parse(arena, *ret_text, path, ret_pack, err);
}
