/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/lock.h"

#include "codec/json_table.h"
#include "report/report_decode.h"

#define BYTES_MAX      (1LL << 53)
#define PIECE_MAX      (1LL << 32)
#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)

static const char *const KINDS[] = {
    [LOCK_DATASET] = "dataset",
    [LOCK_IMAGE] = "image",
    [LOCK_SOURCE] = "source",
};

const char *lock_kind_name(enum lock_kind kind)
{
    return KINDS[kind];
}

/* ---- reading ---- */

struct item_text {
    struct lock_item item;
    struct str md5, sha256;
};

static int decode_item(const struct json *at, struct arena *arena, struct lock_item *ret,
                       struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("name", struct item_text, item.name, JSON_REQUIRED),
        ROW("bytes", struct item_text, item.size_bytes, NULLABLE_FIELD, .max = BYTES_MAX),
        ROW("md5", struct item_text, md5, NULLABLE_FIELD),
        ROW("sha256", struct item_text, sha256, NULLABLE_FIELD),
        ROW("piece_bytes", struct item_text, item.piece_bytes, NULLABLE_FIELD,
            .min = DATASET_PIECE_MIN, .max = PIECE_MAX),
        ROW("pieces", struct item_text, item.pieces_path, NULLABLE_FIELD),
        ROW("ref", struct item_text, item.ref, NULLABLE_FIELD),
        ROW("commit", struct item_text, item.commit, NULLABLE_FIELD),
        ROW("tree", struct item_text, item.tree, NULLABLE_FIELD),
        ROW("paths", struct item_text, item.paths, 0),
        ROW("selection", struct item_text, item.selection, 0),
        ROW("url", struct item_text, item.url, NULLABLE_FIELD),
        ROW("date", struct item_text, item.date, JSON_REQUIRED),
    };
    struct item_text text = {.item.size_bytes = -1};
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &text, err) < 0 ||
        check_line(at, "name", text.item.name, err) < 0 ||
        json_hex(at, "md5", text.md5,
                 (struct json_bytes){text.item.md5, MD5_BYTES, &text.item.has_md5}, err) < 0 ||
        json_hex(at, "sha256", text.sha256,
                 (struct json_bytes){text.item.sha256, SHA256_BYTES, &text.item.has_sha256},
                 err) < 0 ||
        (text.item.pieces_path.ptr && check_rel_path(at, text.item.pieces_path, err) < 0) ||
        check_line(at, "ref", text.item.ref, err) < 0 ||
        check_commit(at, "commit", text.item.commit, err) < 0 ||
        check_commit(at, "tree", text.item.tree, err) < 0 ||
        check_line(at, "paths", text.item.paths, err) < 0 ||
        check_commit(at, "selection", text.item.selection, err) < 0 ||
        check_line(at, "url", text.item.url, err) < 0 ||
        check_line(at, "date", text.item.date, err) < 0) {
        return -1;
    }
    if (!text.item.pieces_path.ptr != !text.item.piece_bytes) {
        return json_fail(at, err, "expected both pieces and piece_bytes or neither, found one");
    }
    *ret = text.item;
    return 0;
}

static int decode_items(const struct json *at, struct arena *arena, struct lock *ret,
                        struct err *err)
{
    struct json list;
    struct json item;
    size_t n = 0;
    if (json_member(at, "items", &list, err) < 0 ||
        json_expect_array(&list, LOCK_ITEMS_MAX, &n, err) < 0) {
        return -1;
    }
    ret->items = arena_array(arena, struct lock_item, n + 1);
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (decode_item(&item, arena, &ret->items[ret->n_items], err) < 0) {
            return -1;
        }
        if (lock_find(ret, ret->items[ret->n_items].name)) {
            return json_fail(&item, err, "two items are named \"%.100s\"",
                             ret->items[ret->n_items].name.ptr);
        }
        ret->n_items++;
    }
    return 0;
}

int lock_decode(const struct json *root, struct arena *arena, struct lock *ret_lock,
                struct err *err)
{
    struct lock_head {
        int64_t version;
        struct lock lock;
        struct str kind, list_sha256;
    } head = {.lock = {.n_files = -1, .file_bytes = -1}};
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct lock_head, version, JSON_REQUIRED, .min = 1, .max = 1),
        ROW("kind", struct lock_head, kind, JSON_REQUIRED),
        ROW("id", struct lock_head, lock.id, JSON_REQUIRED),
        ROW_ANY("items", JSON_REQUIRED),
        ROW("list_sha256", struct lock_head, list_sha256, NULLABLE_FIELD),
        ROW("files", struct lock_head, lock.n_files, NULLABLE_FIELD, .max = BYTES_MAX),
        ROW("file_bytes", struct lock_head, lock.file_bytes, NULLABLE_FIELD, .max = BYTES_MAX),
    };
    size_t kind = 0;
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), &head, err) < 0 ||
        check_line(root, "id", head.lock.id, err) < 0 ||
        json_hex(root, "list_sha256", head.list_sha256,
                 (struct json_bytes){head.lock.list_sha256, SHA256_BYTES, &head.lock.has_list},
                 err) < 0 ||
        decode_items(root, arena, &head.lock, err) < 0) {
        return -1;
    }
    while (kind < ARRAY_LEN(KINDS) && !str_eq_z(head.kind, KINDS[kind])) {
        kind++;
    }
    if (kind == ARRAY_LEN(KINDS)) {
        return json_fail(root, err, "kind: expected dataset, image or source, found \"%.60s\"",
                         head.kind.ptr);
    }
    head.lock.kind = (enum lock_kind)kind;
    *ret_lock = head.lock;
    return 0;
}

/* ---- writing ---- */

static void put_hex(struct json_out *out, const char *key, const uint8_t *bytes, size_t n, bool has)
{
    char hex[SHA256_HEX_SIZE];
    if (has) {
        hex_encode(bytes, n, hex);
    }
    jw_z(out, key, has ? hex : NULL);
}

static void put_count(struct json_out *out, const char *key, int64_t value, bool has)
{
    if (has) {
        jw_i64(out, key, value);
    } else {
        jw_null(out, key);
    }
}

void lock_encode(const struct lock *lock, struct strbuf *out)
{
    struct json_out json;
    jw_begin(&json, out, false);
    jw_object(&json, NULL);
    jw_i64(&json, "schema_version", 1);
    jw_z(&json, "kind", KINDS[lock->kind]);
    jw_str(&json, "id", lock->id);
    jw_array(&json, "items");
    for (size_t idx = 0; idx < lock->n_items; idx++) {
        const struct lock_item *item = &lock->items[idx];
        jw_object(&json, NULL);
        jw_str(&json, "name", item->name);
        put_count(&json, "bytes", item->size_bytes, item->size_bytes >= 0);
        put_hex(&json, "md5", item->md5, MD5_BYTES, item->has_md5);
        put_hex(&json, "sha256", item->sha256, SHA256_BYTES, item->has_sha256);
        put_count(&json, "piece_bytes", item->piece_bytes, item->piece_bytes > 0);
        jw_str(&json, "pieces", item->pieces_path);
        jw_str(&json, "ref", item->ref);
        jw_str(&json, "commit", item->commit);
        jw_str(&json, "tree", item->tree);
        if (item->paths.ptr) {
            jw_str(&json, "paths", item->paths);
            jw_str(&json, "selection", item->selection);
        }
        jw_str(&json, "url", item->url);
        jw_str(&json, "date", item->date);
        jw_end_object(&json);
    }
    jw_end_array(&json);
    put_hex(&json, "list_sha256", lock->list_sha256, SHA256_BYTES, lock->has_list);
    put_count(&json, "files", lock->n_files, lock->n_files >= 0);
    put_count(&json, "file_bytes", lock->file_bytes, lock->file_bytes >= 0);
    jw_end_object(&json);
}

/* ---- comparing ---- */

const struct lock_item *lock_find(const struct lock *lock, struct str name)
{
    for (size_t idx = 0; idx < lock->n_items; idx++) {
        if (str_eq(lock->items[idx].name, name)) {
            return &lock->items[idx];
        }
    }
    return NULL;
}

struct two_digests {
    const char *kind;
    const uint8_t *wanted, *found;
    size_t n;
};

static int check_hex(const struct lock_item *known, const char *what, const struct two_digests *two,
                     struct err *err)
{
    char wanted_hex[SHA256_HEX_SIZE];
    char found_hex[SHA256_HEX_SIZE];
    if (memcmp(two->wanted, two->found, two->n) == 0) {
        return 0;
    }
    hex_encode(two->wanted, two->n, wanted_hex);
    hex_encode(two->found, two->n, found_hex);
    return err_set(err, ERR_INTEGRITY, "%s: locked on %.10s with %s %s, found %s", what,
                   known->date.ptr ? known->date.ptr : "?", two->kind, wanted_hex, found_hex);
}

static int check_text_of(const struct lock_item *known, const char *what, const char *kind,
                         struct str wanted, struct str found, struct err *err)
{
    return !wanted.ptr || !found.ptr || str_eq(wanted, found)
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: locked on %.10s at %s %.64s, found %.64s", what,
                         known->date.ptr ? known->date.ptr : "?", kind, wanted.ptr, found.ptr);
}

int lock_check_item(const struct lock_item *known, const struct lock_item *found, const char *what,
                    struct err *err)
{
    if (known->size_bytes >= 0 && found->size_bytes >= 0 &&
        known->size_bytes != found->size_bytes) {
        return err_set(err, ERR_INTEGRITY, "%s: locked on %.10s with %lld bytes, found %lld", what,
                       known->date.ptr ? known->date.ptr : "?", (long long)known->size_bytes,
                       (long long)found->size_bytes);
    }
    const struct two_digests sha256 = {"SHA-256", known->sha256, found->sha256, SHA256_BYTES};
    const struct two_digests md5 = {"MD5", known->md5, found->md5, MD5_BYTES};
    if ((known->has_sha256 && found->has_sha256 && check_hex(known, what, &sha256, err) < 0) ||
        (known->has_md5 && found->has_md5 && check_hex(known, what, &md5, err) < 0)) {
        return -1;
    }
    if (check_text_of(known, what, "commit", known->commit, found->commit, err) < 0) {
        return -1;
    }
    if (check_text_of(known, what, "tree", known->tree, found->tree, err) < 0) {
        return -1;
    }
    return check_text_of(known, what, "tree of its part", known->selection, found->selection, err);
}

int lock_check(const struct lock *known, const struct lock *found, struct err *err)
{
    struct lock_item of_list = {.date = STR_LIT("an earlier day")};
    for (size_t idx = 0; idx < found->n_items; idx++) {
        const struct lock_item *item = lock_find(known, found->items[idx].name);
        if (item && lock_check_item(item, &found->items[idx], item->name.ptr, err) < 0) {
            return -1;
        }
    }
    if (known->n_items) {
        of_list.date = known->items[0].date;
    }
    const struct two_digests lists = {"a list of files of SHA-256", known->list_sha256,
                                      found->list_sha256, SHA256_BYTES};
    return known->has_list && found->has_list ? check_hex(&of_list, known->id.ptr, &lists, err) : 0;
}

static int merge_item(const struct lock *lock, const struct lock_item *item,
                      struct dataset_file *file, struct err *err)
{
    struct lock_item stated = {
        .size_bytes = file->size_bytes, .has_md5 = file->has_md5, .has_sha256 = file->has_sha256};
    struct err differs = {0};
    memcpy(stated.md5, file->md5, MD5_BYTES);
    memcpy(stated.sha256, file->sha256, SHA256_BYTES);
    if (lock_check_item(item, &stated, file->name.ptr, &differs) < 0) {
        return err_set(err, ERR_MANIFEST, "the lock of %s contradicts its description: %s",
                       lock->id.ptr, differs.msg);
    }
    if (file->size_bytes < 0) {
        file->size_bytes = item->size_bytes;
    }
    if (!file->has_md5 && item->has_md5) {
        file->has_md5 = true;
        memcpy(file->md5, item->md5, MD5_BYTES);
    }
    if (!file->has_sha256 && item->has_sha256) {
        file->has_sha256 = true;
        memcpy(file->sha256, item->sha256, SHA256_BYTES);
    }
    if (!file->piece_bytes && item->piece_bytes) {
        file->piece_bytes = item->piece_bytes;
        file->pieces_path = item->pieces_path;
        file->pieces_are_locks = true;
    }
    return 0;
}

int lock_merge_dataset(struct arena *arena, const struct lock *lock, struct dataset *dataset,
                       struct err *err)
{
    struct dataset_file *files = arena_array(arena, struct dataset_file, dataset->n_files + 1);
    if (lock->kind != LOCK_DATASET || !str_eq(lock->id, dataset->id)) {
        return err_set(err, ERR_MANIFEST, "expected the lock of dataset %s, found that of %s %s",
                       dataset->id.ptr, KINDS[lock->kind], lock->id.ptr);
    }
    for (size_t idx = 0; idx < dataset->n_files; idx++) {
        const struct lock_item *item = lock_find(lock, dataset->files[idx].name);
        files[idx] = dataset->files[idx];
        if (item && merge_item(lock, item, &files[idx], err) < 0) {
            return -1;
        }
    }
    dataset->files = files;
    if (lock->has_list && !dataset->has_list_sha256) {
        dataset->has_list_sha256 = true;
        memcpy(dataset->list_sha256, lock->list_sha256, SHA256_BYTES);
    }
    return 0;
}
