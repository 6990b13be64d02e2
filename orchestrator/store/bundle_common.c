/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/bundle_impl.h"

#define BLOBS_BELOW "store/blobs/sha256/"

/* ---- bundle.json ---- */

static const struct json_field MISSING_ROWS[] = {
    ROW("part", struct bundle_missing, said, JSON_REQUIRED),
    ROW("why", struct bundle_missing, why, JSON_REQUIRED)};

#define LISTS                                                                                      \
    ROW_STRS("parts", struct bundle_info, parts, n_parts, JSON_REQUIRED, .max = BUNDLE_PARTS_MAX), \
        ROW_LIST("missing", struct bundle_info, missing, n_missing, MISSING_ROWS, JSON_REQUIRED,   \
                 .max = BUNDLE_PARTS_MAX)
const struct json_field BUNDLE_LISTS[BUNDLE_LISTS_N] = {LISTS};
const struct json_field BUNDLE_ABOUT_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("made", struct bundle_info, made, JSON_REQUIRED),
    ROW("version", struct bundle_info, version, JSON_REQUIRED),
    ROW("synthetic", struct bundle_info, is_synthetic, JSON_REQUIRED),
    LISTS,
};
const size_t BUNDLE_ABOUT_N_ROWS = ARRAY_LEN(BUNDLE_ABOUT_ROWS);

int bundle_about_read(struct arena *arena, const char *folder, struct bundle_info *ret_info,
                      struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (json_read_file(fs_join(arena, folder, BUNDLE_ABOUT), &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    return json_decode(&root, arena, BUNDLE_ABOUT_ROWS, ARRAY_LEN(BUNDLE_ABOUT_ROWS), ret_info,
                       err);
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
        struct hex hex = sha256_hex_of(file->sha256);
        if (strncmp(file->path, BLOBS_BELOW, prefix) == 0 &&
            strcmp(file->path + prefix, hex.text) != 0) {
            return err_set(err, ERR_INTEGRITY, "blob sha256:%s: its bytes have the digest %s",
                           file->path + prefix, hex.text);
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

bool bundle_may_have(const char *path)
{
    static const char *const NAMES[] = {"HEAD", "shallow", "packed-refs", NULL};
    struct str below = str_of(path), repo;
    return str_next(&below, '/', &repo) &&
           (str_eq_any(below, NAMES) || str_starts(below, STR_LIT("refs/")) ||
            (str_starts(below, STR_LIT("objects/")) &&
             !str_starts(below, STR_LIT("objects/info/"))));
}

int bundle_source(struct arena *arena, const struct store *store, const struct net_opts *net,
                  const char *name, struct source_tree *ret_tree, struct err *err)
{
    struct sources sources;
    const char *at = strrchr(name, '@');
    if (!at) {
        return err_set(err, ERR_USAGE, "source %s: expected URL@COMMIT", name);
    }
    const char *url = arena_strndup(arena, name, (size_t)(at - name));
    if (sources_init(&sources, arena, store, net, err) < 0) {
        return -1;
    }
    return net->mirror ? source_fetch(&sources, url, at + 1, ret_tree, err)
                       : source_verify(&sources, url, at + 1, false, ret_tree, err);
}
