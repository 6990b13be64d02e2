/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions with their locks, and what the store remembers of a dataset. */
#include "base/base.h"

#include "store/dataset_store.h"

#include "base/fs.h"
#include "codec/json_document.h"
#include "codec/json_table.h"
#include "codec/oci_ref.h"
#include "load/places.h"
#include "store/lock_file.h"

#define RECORD_MAX     (4u << 20)
#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)

static int read_description(struct arena *arena, const char *root, const char *id,
                            struct dataset_here *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *folder = places_path(arena, root, "datasets", id);
    const char *path = fs_join(arena, folder, "dataset.json");
    if (!fs_exists(path)) {
        return err_set(err, ERR_MANIFEST, "no dataset \"%.100s\"; reperf list datasets names them",
                       id);
    }
    if (json_read_file(path, &doc, err) < 0 ||
        dataset_decode(&doc.root, arena, &ret->dataset, err) < 0) {
        return -1;
    }
    if (!str_eq_z(ret->dataset.id, id)) {
        return json_fail(&doc.root, err, "id: expected \"%s\" as the folder is named, found \"%s\"",
                         id, ret->dataset.id.ptr);
    }
    ret->folder = folder;
    return 0;
}

int dataset_load(struct arena *arena, const struct dataset_which *which,
                 struct dataset_here *ret_here, struct err *err)
{
    const char *root = which->root, *id = which->id;
    bool is_synthetic = which->is_synthetic;
    struct dataset_here here = {.is_synthetic = is_synthetic};
    struct lock lock;
    if (read_description(arena, root, id, &here, err) < 0) {
        return -1;
    }
    if (here.dataset.made_from.recipe) {
        struct dataset_here *from = arena_new(arena, struct dataset_here);
        const struct dataset_which other = {root, which->locks, here.dataset.made_from.dataset.ptr,
                                            is_synthetic};
        if (strcmp(other.id, id) == 0 || dataset_load(arena, &other, from, err) < 0 || from->from) {
            return err->code ? err_wrap(err, "%s", id)
                             : err_set(err, ERR_MANIFEST,
                                       "%s: made_from: expected a dataset that is fetched", id);
        }
        here.from = from;
    }
    here.locks = lock_folder(arena, root, which->locks, LOCK_DATASET, id);
    here.name = dataset_tree_name(arena, &here.dataset, is_synthetic);
    if (is_synthetic && !here.from && !here.dataset.synthetic.is_there) {
        return err_set(err, ERR_USAGE, "%s: this dataset has no synthetic version%s", id,
                       here.dataset.is_synthetic ? "; it is synthetic itself" : "");
    }
    if (!is_synthetic) {
        if (lock_read(arena, here.locks, LOCK_DATASET, id, &lock, err) < 0 ||
            (lock.id.ptr && lock_merge_dataset(arena, &lock, &here.dataset, err) < 0)) {
            return -1;
        }
        here.has_lock = lock.id.ptr;
    }
    *ret_here = here;
    return 0;
}

const struct dataset_file *dataset_files_of(const struct dataset_here *here, size_t *ret_n)
{
    *ret_n = here->is_synthetic ? here->dataset.synthetic.n_files : here->dataset.n_files;
    return here->is_synthetic ? here->dataset.synthetic.files : here->dataset.files;
}

/* ---- records ---- */

static void put_blobs(struct json_out *out, const char *key, const void *of)
{
    const struct dataset_record *record = of;
    jw_array(out, key);
    for (size_t idx = 0; idx < record->seen.n_items; idx++) {
        jw_z(out, NULL, oci_digest_of(record->seen.items[idx].sha256).text);
    }
    jw_end_array(out);
}

/* A number of the tree's list, where there is one. */
static void put_of_list(struct json_out *out, const char *key, const void *of)
{
    const struct dataset_record *record = of;
    jw_i64_if(out, key, record->seen.has_list,
              strcmp(key, "files") == 0 ? record->seen.n_files : record->seen.file_bytes);
}

static const struct json_field ARCHIVE_ROWS[] = {
    ROW("name", struct lock_item, name, JSON_REQUIRED),
    ROW("bytes", struct lock_item, size_bytes, JSON_REQUIRED),
    ROW_HEX("md5", struct lock_item, md5, has_md5, NULLABLE_FIELD),
    ROW_HEX("sha256", struct lock_item, sha256, has_sha256, JSON_REQUIRED),
    ROW("url", struct lock_item, url, NULLABLE_FIELD),
    ROW("date", struct lock_item, date, JSON_REQUIRED),
};
static const struct json_field SPLIT_ROWS[] = {
    ROW("name", struct dataset_synthetic_split, name, JSON_REQUIRED),
    ROW("samples", struct dataset_synthetic_split, n_samples, JSON_REQUIRED, .min = 1),
    ROW("folders", struct dataset_synthetic_split, n_folders, JSON_REQUIRED, .min = 1),
};
static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("dataset", struct dataset_record, seen.id, JSON_REQUIRED),
    ROW("synthetic", struct dataset_record, is_synthetic, JSON_REQUIRED),
    ROW("recipe", struct dataset_record, recipe, NULLABLE_FIELD),
    ROW("date", struct dataset_record, date, JSON_REQUIRED),
    ROW_OUT("blobs", JSON_ANY, put_blobs, JSON_REQUIRED),
    ROW_LIST("archives", struct dataset_record, seen.items, seen.n_items, ARCHIVE_ROWS,
             JSON_REQUIRED, .max = DATASET_FILES_MAX),
    ROW_LIST("splits", struct dataset_record, splits, n_splits, SPLIT_ROWS, JSON_REQUIRED,
             .max = DATASET_SPLITS_MAX),
    ROW_HEX("list_sha256", struct dataset_record, seen.list_sha256, seen.has_list, NULLABLE_FIELD),
    ROW("files", struct dataset_record, seen.n_files, NULLABLE_FIELD | JSON_MINUS,
        .put = put_of_list),
    ROW("file_bytes", struct dataset_record, seen.file_bytes, NULLABLE_FIELD | JSON_MINUS,
        .put = put_of_list),
};

void dataset_record_encode(const struct dataset_record *record, struct strbuf *out)
{
    json_encode_document(out, ROWS, ARRAY_LEN(ROWS), record);
}

int dataset_record_parse(struct arena *arena, struct str text, const char *name,
                         struct dataset_record *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    *ret = (struct dataset_record){.is_synthetic = false};
    return json_decode(&doc.root, arena, ROWS, ARRAY_LEN(ROWS), ret, err);
}

int dataset_ref_read(struct arena *arena, const struct store *store, const char *name,
                     struct dataset_record *ret_record, struct err *err)
{
    struct str text;
    return store_ref_get(store, DATASET_REF_KIND, name, &text, err) < 0
               ? -1
               : dataset_record_parse(arena, text, arena_printf(arena, "reference of %s", name),
                                      ret_record, err);
}

int dataset_ref_write(struct store *store, const char *name, const struct dataset_record *record,
                      struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(RECORD_MAX);
    dataset_record_encode(record, &text);
    return store_ref_put(store, DATASET_REF_KIND, name, strbuf_str(&text), err);
}

char *dataset_tree_path(const struct store *store, const char *name)
{
    return store_path(store, arena_printf(store->arena, "trees/%s", name));
}

int dataset_tree_read(struct arena *arena, const struct store *store, const char *name,
                      struct dataset_record *ret_record, struct err *err)
{
    const char *path = fs_join(arena, dataset_tree_path(store, name), DATASET_TREE_JSON);
    struct str text;
    if (!fs_exists(path)) {
        return err_set(err, ERR_NOT_FOUND, "%s: there is no whole tree", path);
    }
    if (fs_read(arena, path, RECORD_MAX, &text, err) < 0 ||
        dataset_record_parse(arena, text, path, ret_record, err) < 0) {
        return -1;
    }
    return ret_record->seen.has_list
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: expected the digest of its list, found none",
                         path);
}

int dataset_list_holds(const struct store *store, const char *name,
                       const struct dataset_record *tree, struct err *err)
{
    const char *list = fs_join(store->arena, dataset_tree_path(store, name), DATASET_TREE_LIST);
    struct digest_value value;
    if (digest_file(list, DIGEST_SHA256, &value, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    return memcmp(value.sha256, tree->seen.list_sha256, SHA256_BYTES) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: not the list that %s names: it was changed", list,
                         DATASET_TREE_JSON);
}

/* ---- state ---- */

bool dataset_has_file(const struct store *store, const struct dataset_file *file)
{
    uint8_t sha256[SHA256_BYTES];
    return (file->has_sha256 && store_has(store, file->sha256, NULL)) ||
           (file->has_md5 && store_find_md5(store, file->md5, sha256, ERR_IGNORED) == 0);
}

enum dataset_state dataset_state(struct arena *arena, const struct store *store,
                                 const struct dataset_here *here)
{
    struct dataset_record record;
    size_t n_files;
    const struct dataset_file *files = dataset_files_of(here, &n_files);
    if (dataset_tree_read(arena, store, here->name, &record, ERR_IGNORED) == 0) {
        return DATASET_TREE;
    }
    if (here->from) { /* made without a network once the other one is here */
        return dataset_state(arena, store, here->from) >= DATASET_ARCHIVES ? DATASET_ARCHIVES
                                                                           : DATASET_ABSENT;
    }
    if (dataset_ref_read(arena, store, here->name, &record, ERR_IGNORED) == 0) {
        return record.seen.n_items == n_files ? DATASET_ARCHIVES : DATASET_PARTIAL;
    }
    for (size_t idx = 0; idx < n_files; idx++) {
        if (dataset_has_file(store, &files[idx])) {
            return DATASET_PARTIAL;
        }
    }
    return DATASET_ABSENT;
}

const char *const DATASET_STATE_NAMES[] = {
    [DATASET_ABSENT] = "absent",
    [DATASET_PARTIAL] = "partial",
    [DATASET_ARCHIVES] = "archives",
    [DATASET_TREE] = "tree",
};

int dataset_no_tree(struct arena *arena, const struct store *store, const struct dataset_here *here,
                    struct err *err)
{
    bool has_archives = dataset_state(arena, store, here) == DATASET_ARCHIVES;
    *err = (struct err){0};
    return err_set(
        err, ERR_FETCH,
        has_archives ? "%s is in the store %s, but has no tree yet: reperf data fetch %s%s first"
                     : "%s is not in the store %s: reperf data fetch %s%s first",
        here->name, store->folder, here->dataset.id.ptr, here->is_synthetic ? " --synthetic" : "");
}
