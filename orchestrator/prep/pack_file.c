/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/pack_file.h"

#include "base/fs.h"
#include "codec/json_table.h"

static const char *const KINDS[] = {
    [SHARD_CLASSES] = "classes", [SHARD_SEGMENTS] = "segments", [SHARD_TOKENS] = "tokens"};

const char *pack_file_kind_name(enum shard_kind kind)
{
    return KINDS[kind];
}

static void add_str(struct strbuf *out, const char *key, struct str value)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    struct json_out json;
    strbuf_init(&text, PACK_TEXT_MAX);
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
    add_str(out, "dataset", pack->dataset);
    strbuf_printf(out, "  \"synthetic\": %s,\n", pack->is_synthetic ? "true" : "false");
    strbuf_printf(out, "  \"kind\": \"%s\",\n", KINDS[pack->kind]);
    add_str(out, "split", pack->split);
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

static int read_digest(const struct json *at, struct arena *arena, uint8_t *ret, struct err *err)
{
    struct str text;
    struct err ignored = {0};
    if (json_str(at, arena, &text, err) < 0) {
        return -1;
    }
    return hex_decode(text, SHA256_BYTES, ret, &ignored) < 0
               ? json_fail(at, err, "expected 64 lower-case hex digits")
               : 0;
}

static int member_digest(const struct json *root, const char *key, struct arena *arena,
                         uint8_t *ret, struct err *err)
{
    struct json member;
    return json_member(root, key, &member, err) < 0 ? -1 : read_digest(&member, arena, ret, err);
}

struct shard_row {
    struct str name, sha256;
    int64_t bytes, samples;
};

static int read_shard(const struct json *at, struct arena *arena, size_t idx,
                      struct pack_file_shard *shard, struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("name", struct shard_row, name, JSON_REQUIRED),
        ROW("bytes", struct shard_row, bytes, JSON_REQUIRED, .min = SHARD_ALIGN, .max = INT64_MAX),
        ROW("samples", struct shard_row, samples, JSON_REQUIRED, .min = 1, .max = UINT32_MAX),
        ROW("sha256", struct shard_row, sha256, JSON_REQUIRED),
    };
    struct shard_row row = {0};
    char name[32];
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &row, err) < 0 ||
        member_digest(at, "sha256", arena, shard->sha256, err) < 0) {
        return -1;
    }
    snprintf(name, sizeof(name), SHARD_NAME, (unsigned)idx);
    if (!str_eq_z(row.name, name)) {
        return json_fail(at, err, "expected the shard %s, found %.*s", name, STR_ARG(row.name));
    }
    shard->name = row.name;
    shard->bytes = (uint64_t)row.bytes;
    shard->n_samples = (uint64_t)row.samples;
    return 0;
}

static int read_shards(const struct json *root, struct arena *arena, struct pack_file *pack,
                       struct err *err)
{
    struct json list, item;
    uint64_t n_samples = 0;
    size_t idx = 0;
    if (json_member(root, "shards", &list, err) < 0 ||
        json_expect_array(&list, PACK_SHARDS_MAX, &pack->n_shards, err) < 0) {
        return -1;
    }
    pack->shards = arena_array(arena, struct pack_file_shard, pack->n_shards + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item), idx++) {
        if (read_shard(&item, arena, idx, &pack->shards[idx], err) < 0) {
            return -1;
        }
        n_samples += pack->shards[idx].n_samples;
    }
    return n_samples == pack->n_samples
               ? 0
               : json_fail(&list, err, "%" PRIu64 " samples in the shards, n_samples says %" PRIu64,
                           n_samples, pack->n_samples);
}

struct head_row {
    struct str dataset, kind, split;
    int64_t version, n_samples, n_classes;
    bool is_synthetic;
};

static int read_head(const struct json *root, struct arena *arena, struct pack_file *pack,
                     struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct head_row, version, JSON_REQUIRED, .min = 1, .max = 1),
        ROW("dataset", struct head_row, dataset, JSON_REQUIRED),
        ROW("synthetic", struct head_row, is_synthetic, JSON_REQUIRED),
        ROW("kind", struct head_row, kind, JSON_REQUIRED),
        ROW("split", struct head_row, split, JSON_REQUIRED),
        ROW("n_samples", struct head_row, n_samples, JSON_REQUIRED, .min = 1, .max = UINT32_MAX),
        ROW("n_classes", struct head_row, n_classes, JSON_REQUIRED | JSON_NULLABLE, .min = 1,
            .max = INT32_MAX),
        ROW_ANY("source_sha256", JSON_REQUIRED | JSON_NULLABLE),
        ROW_ANY("recipe", JSON_REQUIRED),
        ROW_ANY("sample_order_sha256", JSON_REQUIRED),
        ROW_ANY("shards", JSON_REQUIRED),
    };
    struct head_row row = {0};
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), &row, err) < 0) {
        return -1;
    }
    pack->kind = 0;
    for (enum shard_kind kind = SHARD_CLASSES; kind <= SHARD_TOKENS; kind++) {
        pack->kind = str_eq_z(row.kind, KINDS[kind]) ? kind : pack->kind;
    }
    if (!pack->kind) {
        return json_fail(root, err, "kind is \"%.*s\"", STR_ARG(row.kind));
    }
    if ((pack->kind == SHARD_TOKENS) != (row.n_classes == 0) ||
        (pack->kind == SHARD_SEGMENTS && row.n_classes > 255)) {
        return json_fail(root, err, "n_classes %" PRId64 " does not fit the kind", row.n_classes);
    }
    pack->dataset = row.dataset;
    pack->split = row.split;
    pack->is_synthetic = row.is_synthetic;
    pack->n_samples = (uint64_t)row.n_samples;
    pack->n_classes = (uint32_t)row.n_classes;
    return 0;
}

/* Its text stands in one line, as pack_file_head writes it. */
static int cut_recipe(struct str text, struct arena *arena, struct str *ret_recipe,
                      const char *name, struct err *err)
{
    const struct str key = STR_LIT("\n  \"recipe\": ");
    int64_t at = str_find(text, key);
    struct str rest = at < 0 ? STR_EMPTY : str_sub(text, (size_t)at + key.len, SIZE_MAX);
    struct str line;
    if (at < 0 || !str_next(&rest, '\n', &line) || !str_ends(line, STR_LIT("},"))) {
        return err_set(err, ERR_INTEGRITY, "%s: the recipe does not stand in a line of its own",
                       name);
    }
    *ret_recipe = str_dup(arena, str_sub(line, 0, line.len - 1));
    return 0;
}

int pack_file_parse(struct arena *arena, struct str text, const char *name,
                    struct pack_file *ret_pack, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct pack_file pack = {0};
    struct json root, source, recipe;
    int result = json_parse(text, name, &doc, err);
    if (result == 0) {
        root = json_root(&doc);
        result = read_head(&root, arena, &pack, err);
    }
    if (result == 0) {
        result = member_digest(&root, "sample_order_sha256", arena, pack.order_sha256, err);
    }
    if (result == 0 && (result = json_member(&root, "recipe", &recipe, err)) == 0 &&
        !json_is_object(&recipe)) {
        result = json_fail(&recipe, err, "expected an object");
    }
    if (result == 0) {
        result = cut_recipe(text, arena, &pack.recipe, name, err);
    }
    if (result == 0 && (result = json_member(&root, "source_sha256", &source, err)) == 0 &&
        !json_is_null(&source)) {
        pack.has_source = true;
        result = read_digest(&source, arena, pack.source_sha256, err);
    }
    if (result == 0) {
        result = read_shards(&root, arena, &pack, err);
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
