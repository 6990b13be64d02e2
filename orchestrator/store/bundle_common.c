/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/bundle_impl.h"

#include "codec/json_table.h"

#define BLOBS_BELOW "store/blobs/sha256/"

/* ---- bundle.json ---- */

static void encode_texts(struct json_out *out, const struct bundle_info *info)
{
    jw_array(out, "parts");
    for (size_t idx = 0; idx < info->n_parts; idx++) {
        jw_z(out, NULL, info->parts[idx]);
    }
    jw_end_array(out);
    jw_array(out, "missing");
    for (size_t idx = 0; idx < info->n_missing; idx++) {
        jw_object(out, NULL);
        jw_z(out, "part", info->missing[idx].said);
        jw_z(out, "why", info->missing[idx].why);
        jw_end_object(out);
    }
    jw_end_array(out);
}

void bundle_about_encode(const struct bundle_info *info, struct clock_src clock, struct strbuf *out)
{
    struct json_out json;
    char date[RFC3339_MAX];
    clock_rfc3339(clock.wall_ns(clock.ctx), date);
    jw_begin(&json, out, false);
    jw_object(&json, NULL);
    jw_i64(&json, "schema_version", 1);
    jw_z(&json, "made", date);
    jw_z(&json, "version", REPERF_VERSION);
    jw_bool(&json, "synthetic", info->is_synthetic);
    encode_texts(&json, info);
    jw_end_object(&json);
}

struct about_text {
    int64_t schema_version;
    struct str made, version;
    bool is_synthetic;
};

static int decode_missing(const struct json *at, struct arena *arena, struct bundle_missing *ret,
                          struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW_ALONE("part", JSON_STR, JSON_REQUIRED),
        ROW_ALONE("why", JSON_STR, JSON_REQUIRED, .offset = sizeof(struct str))};
    struct str texts[2];
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), texts, err) < 0) {
        return -1;
    }
    *ret = (struct bundle_missing){str_z(arena, texts[0]), str_z(arena, texts[1])};
    return 0;
}

static int decode_lists(const struct json *root, struct arena *arena, struct bundle_info *info,
                        struct err *err)
{
    struct json list;
    struct json item;
    struct str *parts;
    size_t idx = 0;
    if (json_member(root, "parts", &list, err) < 0 ||
        json_str_list(&list, arena, BUNDLE_PARTS_MAX, &parts, &info->n_parts, err) < 0) {
        return -1;
    }
    info->parts = arena_array(arena, const char *, info->n_parts + 1);
    for (size_t at = 0; at < info->n_parts; at++) {
        info->parts[at] = str_z(arena, parts[at]);
    }
    if (json_member(root, "missing", &list, err) < 0 ||
        json_expect_array(&list, BUNDLE_PARTS_MAX, &info->n_missing, err) < 0) {
        return -1;
    }
    info->missing = arena_array(arena, struct bundle_missing, info->n_missing + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_missing(&item, arena, &info->missing[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

int bundle_about_read(struct arena *arena, const char *folder, struct bundle_info *ret_info,
                      struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct about_text, schema_version, JSON_REQUIRED, .min = 1, .max = 1),
        ROW("made", struct about_text, made, JSON_REQUIRED),
        ROW("version", struct about_text, version, JSON_REQUIRED),
        ROW("synthetic", struct about_text, is_synthetic, JSON_REQUIRED),
        ROW_ANY("parts", JSON_REQUIRED),
        ROW_ANY("missing", JSON_REQUIRED),
    };
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct about_text text = {0};
    struct bundle_info info = {0};
    struct json root;
    if (json_read_file(fs_join(arena, folder, BUNDLE_ABOUT), &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    if (json_decode(&root, arena, FIELDS, ARRAY_LEN(FIELDS), &text, err) < 0 ||
        decode_lists(&root, arena, &info, err) < 0) {
        return -1;
    }
    info.is_synthetic = text.is_synthetic;
    *ret_info = info;
    return 0;
}

/* ---- digests ---- */

int bundle_hash(struct arena *arena, const char *folder, bool (*should_stop)(void),
                struct tree_list *ret_list, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    struct tree_opts opts = {.folder = folder,
                             .n_threads = POOL_THREADS_MIN + 1,
                             .kinds = DIGEST_SHA256,
                             .should_stop = should_stop};
    if (pool_new(opts.n_threads, &pool, err) < 0) {
        return -1;
    }
    opts.pool = pool;
    return tree_hash(arena, &opts, ret_list, err);
}

int bundle_check_blobs(const struct tree_list *list, struct err *err)
{
    size_t prefix = strlen(BLOBS_BELOW);
    for (size_t idx = 0; idx < list->n; idx++) {
        const struct tree_file *file = &list->files[idx];
        char hex[SHA256_HEX_SIZE];
        if (strncmp(file->path, BLOBS_BELOW, prefix) != 0) {
            continue;
        }
        hex_encode(file->sha256, SHA256_BYTES, hex);
        if (strcmp(file->path + prefix, hex) != 0) {
            return err_set(err, ERR_INTEGRITY, "blob sha256:%s: its bytes have the digest %s",
                           file->path + prefix, hex);
        }
    }
    return 0;
}

/* ---- references ---- */

bool bundle_is_synthetic(struct str ref_text)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct err ignored = {0};
    struct json member;
    bool is_synthetic = false;
    if (json_parse(ref_text, "reference", &doc, &ignored) < 0) {
        return false;
    }
    struct json root = json_root(&doc);
    return json_find(&root, "synthetic", &member) &&
           json_bool(&member, &is_synthetic, &ignored) == 0 && is_synthetic;
}

static bool is_hex(const char *text, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (!strchr("0123456789abcdef", text[idx]) || text[idx] == '\0') {
            return false;
        }
    }
    return true;
}

static bool is_object(const char *name)
{
    static const char *const ENDS[] = {".pack", ".idx", ".rev"};
    if (strncmp(name, "pack/pack-", 10) == 0 && is_hex(name + 10, 40)) {
        for (size_t idx = 0; idx < ARRAY_LEN(ENDS); idx++) {
            if (strcmp(name + 50, ENDS[idx]) == 0) {
                return true;
            }
        }
        return false;
    }
    return is_hex(name, 2) && name[2] == '/' && is_hex(name + 3, 38) && name[41] == '\0';
}

bool bundle_skips_in_source(const char *below)
{
    static const char *const NAMES[] = {"HEAD", "shallow", "packed-refs"};
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        if (strcmp(below, NAMES[idx]) == 0) {
            return false;
        }
    }
    return strncmp(below, "refs/", 5) != 0 &&
           !(strncmp(below, "objects/", 8) == 0 && is_object(below + 8));
}

int bundle_check_source(struct arena *arena, const struct store *store, const struct net_opts *net,
                        const char *name, struct source_tree *ret_tree, struct err *err)
{
    struct sources sources;
    const char *at = strrchr(name, '@');
    if (!at) {
        return err_set(err, ERR_USAGE, "source %s: expected URL@COMMIT", name);
    }
    return sources_init(&sources, arena, store, net, err) < 0
               ? -1
               : source_verify(&sources, arena_strndup(arena, name, (size_t)(at - name)), at + 1,
                               true, ret_tree, err);
}
