/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions with their locks, and what the store remembers of a dataset. */
#include "base/base.h"

#include "store/dataset_store.h"

#include "base/fs.h"
#include "codec/json_table.h"
#include "load/places.h"
#include "store/lock_file.h"

#define RECORD_MAX     (4u << 20)
#define BYTES_MAX      (1LL << 53)
#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)

static int read_description(struct arena *arena, const char *root, const char *id,
                            struct dataset_here *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    const char *folder = places_path(arena, root, "datasets", id);
    const char *path = fs_join(arena, folder, "dataset.json");
    struct json at;
    if (!fs_exists(path)) {
        return err_set(err, ERR_MANIFEST, "no dataset \"%.100s\"; reperf list datasets names them",
                       id);
    }
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    at = json_root(&doc);
    if (dataset_decode(&at, arena, &ret->dataset, err) < 0) {
        return -1;
    }
    if (!str_eq_z(ret->dataset.id, id)) {
        return json_fail(&at, err, "id: expected \"%s\" as the folder is named, found \"%s\"", id,
                         ret->dataset.id.ptr);
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
    struct err none = {0};
    if (read_description(arena, root, id, &here, err) < 0) {
        return -1;
    }
    here.locks = lock_folder(arena, root, which->locks, LOCK_DATASET, id);
    here.name = dataset_tree_name(arena, &here.dataset, is_synthetic);
    if (is_synthetic && !here.dataset.synthetic.is_there) {
        return err_set(err, ERR_USAGE, "%s: this dataset has no synthetic version%s", id,
                       here.dataset.is_synthetic ? "; it is synthetic itself" : "");
    }
    if (!is_synthetic) {
        if (lock_read(arena, here.locks, LOCK_DATASET, id, &lock, &none) == 0) {
            here.has_lock = true;
            if (lock_merge_dataset(arena, &lock, &here.dataset, err) < 0) {
                return -1;
            }
        } else if (none.code != ERR_NOT_FOUND) {
            *err = none;
            return -1;
        }
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

static void encode_digest(struct json_out *out, const char *key, const uint8_t *bytes, size_t n,
                          bool has)
{
    char hex[SHA256_HEX_SIZE];
    if (has) {
        hex_encode(bytes, n, hex);
    }
    jw_z(out, key, has ? hex : NULL);
}

void dataset_record_encode(const struct dataset_record *record, struct strbuf *out)
{
    struct json_out json;
    jw_begin(&json, out, false);
    jw_object(&json, NULL);
    jw_i64(&json, "schema_version", 1);
    jw_str(&json, "dataset", record->seen.id);
    jw_bool(&json, "synthetic", record->is_synthetic);
    jw_str(&json, "recipe", record->recipe);
    jw_str(&json, "date", record->date);
    jw_array(&json, "blobs");
    for (size_t idx = 0; idx < record->seen.n_items; idx++) {
        char hex[SHA256_HEX_SIZE];
        char text[sizeof("sha256:") + SHA256_HEX_SIZE];
        hex_encode(record->seen.items[idx].sha256, SHA256_BYTES, hex);
        snprintf(text, sizeof(text), "sha256:%s", hex);
        jw_z(&json, NULL, text);
    }
    jw_end_array(&json);
    jw_array(&json, "archives");
    for (size_t idx = 0; idx < record->seen.n_items; idx++) {
        const struct lock_item *item = &record->seen.items[idx];
        jw_object(&json, NULL);
        jw_str(&json, "name", item->name);
        jw_i64(&json, "bytes", item->size_bytes);
        encode_digest(&json, "md5", item->md5, MD5_BYTES, item->has_md5);
        encode_digest(&json, "sha256", item->sha256, SHA256_BYTES, item->has_sha256);
        jw_str(&json, "url", item->url);
        jw_str(&json, "date", item->date);
        jw_end_object(&json);
    }
    jw_end_array(&json);
    jw_array(&json, "splits");
    for (size_t idx = 0; idx < record->n_splits; idx++) {
        jw_object(&json, NULL);
        jw_str(&json, "name", record->splits[idx].name);
        jw_i64(&json, "samples", record->splits[idx].n_samples);
        jw_i64(&json, "folders", record->splits[idx].n_folders);
        jw_end_object(&json);
    }
    jw_end_array(&json);
    encode_digest(&json, "list_sha256", record->seen.list_sha256, SHA256_BYTES,
                  record->seen.has_list);
    if (record->seen.has_list) {
        jw_i64(&json, "files", record->seen.n_files);
        jw_i64(&json, "file_bytes", record->seen.file_bytes);
    } else {
        jw_null(&json, "files");
        jw_null(&json, "file_bytes");
    }
    jw_end_object(&json);
}

static int decode_archive(const struct json *at, struct arena *arena, struct lock_item *ret,
                          struct err *err)
{
    struct text {
        struct lock_item item;
        struct str md5, sha256;
    } text = {.item.size_bytes = -1};
    static const struct json_field FIELDS[] = {
        ROW("name", struct text, item.name, JSON_REQUIRED),
        ROW("bytes", struct text, item.size_bytes, JSON_REQUIRED, .max = BYTES_MAX),
        ROW("md5", struct text, md5, NULLABLE_FIELD),
        ROW("sha256", struct text, sha256, JSON_REQUIRED),
        ROW("url", struct text, item.url, NULLABLE_FIELD),
        ROW("date", struct text, item.date, JSON_REQUIRED),
    };
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &text, err) < 0 ||
        json_hex(at, "md5", text.md5,
                 (struct json_bytes){text.item.md5, MD5_BYTES, &text.item.has_md5}, err) < 0 ||
        json_hex(at, "sha256", text.sha256,
                 (struct json_bytes){text.item.sha256, SHA256_BYTES, &text.item.has_sha256},
                 err) < 0) {
        return -1;
    }
    *ret = text.item;
    return 0;
}

static int decode_arrays(const struct json *at, struct arena *arena, struct dataset_record *ret,
                         struct err *err)
{
    static const struct json_field SPLIT[] = {
        ROW("name", struct dataset_synthetic_split, name, JSON_REQUIRED),
        ROW("samples", struct dataset_synthetic_split, n_samples, JSON_REQUIRED, .min = 1,
            .max = BYTES_MAX),
        ROW("folders", struct dataset_synthetic_split, n_folders, JSON_REQUIRED, .min = 1,
            .max = BYTES_MAX),
    };
    struct json list;
    struct json item;
    size_t idx = 0;
    if (json_member(at, "archives", &list, err) < 0 ||
        json_expect_array(&list, DATASET_FILES_MAX, &ret->seen.n_items, err) < 0) {
        return -1;
    }
    ret->seen.items = arena_array(arena, struct lock_item, ret->seen.n_items + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_archive(&item, arena, &ret->seen.items[idx++], err) < 0) {
            return -1;
        }
    }
    idx = 0;
    if (json_member(at, "splits", &list, err) < 0 ||
        json_expect_array(&list, DATASET_SPLITS_MAX, &ret->n_splits, err) < 0) {
        return -1;
    }
    ret->splits = arena_array(arena, struct dataset_synthetic_split, ret->n_splits + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (json_decode(&item, arena, SPLIT, ARRAY_LEN(SPLIT), &ret->splits[idx++], err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int decode_record(const struct json *at, struct arena *arena, struct dataset_record *ret,
                         struct err *err)
{
    struct head {
        int64_t version;
        struct dataset_record record;
        struct str list_sha256;
    } head = {.record.seen = {.n_files = -1, .file_bytes = -1}};
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct head, version, JSON_REQUIRED, .min = 1, .max = 1),
        ROW("dataset", struct head, record.seen.id, JSON_REQUIRED),
        ROW("synthetic", struct head, record.is_synthetic, JSON_REQUIRED),
        ROW("recipe", struct head, record.recipe, NULLABLE_FIELD),
        ROW("date", struct head, record.date, JSON_REQUIRED),
        ROW_ANY("blobs", JSON_REQUIRED),
        ROW_ANY("archives", JSON_REQUIRED),
        ROW_ANY("splits", JSON_REQUIRED),
        ROW("list_sha256", struct head, list_sha256, NULLABLE_FIELD),
        ROW("files", struct head, record.seen.n_files, NULLABLE_FIELD, .max = BYTES_MAX),
        ROW("file_bytes", struct head, record.seen.file_bytes, NULLABLE_FIELD, .max = BYTES_MAX),
    };
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &head, err) < 0 ||
        json_hex(at, "list_sha256", head.list_sha256,
                 (struct json_bytes){head.record.seen.list_sha256, SHA256_BYTES,
                                     &head.record.seen.has_list},
                 err) < 0 ||
        decode_arrays(at, arena, &head.record, err) < 0) {
        return -1;
    }
    *ret = head.record;
    return 0;
}

int dataset_record_parse(struct arena *arena, struct str text, const char *name,
                         struct dataset_record *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    if (json_parse(text, name, &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    return decode_record(&root, arena, ret, err);
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
    CLEANUP(strbuf) struct strbuf text = {0};
    strbuf_init(&text, RECORD_MAX);
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

/* ---- state ---- */

enum dataset_state dataset_state(struct arena *arena, const struct store *store,
                                 const struct dataset_here *here)
{
    struct dataset_record record;
    struct err ignored = {0};
    size_t n_files;
    size_t n_there = 0;
    const struct dataset_file *files = dataset_files_of(here, &n_files);
    if (dataset_tree_read(arena, store, here->name, &record, &ignored) == 0) {
        return DATASET_TREE;
    }
    ignored = (struct err){0};
    if (dataset_ref_read(arena, store, here->name, &record, &ignored) == 0) {
        return record.seen.n_items == n_files ? DATASET_ARCHIVES : DATASET_PARTIAL;
    }
    for (size_t idx = 0; idx < n_files; idx++) {
        uint8_t sha256[SHA256_BYTES];
        struct err none = {0};
        n_there +=
            (files[idx].has_sha256 && store_has(store, files[idx].sha256, NULL)) ||
            (files[idx].has_md5 && store_find_md5(store, files[idx].md5, sha256, &none) == 0);
    }
    return n_there ? DATASET_PARTIAL : DATASET_ABSENT;
}

const char *dataset_state_name(enum dataset_state state)
{
    static const char *const NAMES[] = {
        [DATASET_ABSENT] = "absent",
        [DATASET_PARTIAL] = "partial",
        [DATASET_ARCHIVES] = "archives",
        [DATASET_TREE] = "tree",
    };
    return NAMES[state];
}

int dataset_no_tree(struct arena *arena, const struct store *store, const struct dataset_here *here,
                    struct err *err)
{
    bool has_archives = dataset_state(arena, store, here) == DATASET_ARCHIVES;
    *err = (struct err){0};
    return err_set(err, ERR_FETCH,
                   has_archives ? "%s is in the store %s, but not unpacked: reperf fetch %s%s first"
                                : "%s is not in the store %s: reperf fetch %s%s first",
                   here->name, store->folder, here->dataset.id.ptr,
                   here->is_synthetic ? " --synthetic" : "");
}
