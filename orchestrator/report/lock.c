/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/lock.h"

#include "codec/json_table.h"
#include "report/report_decode.h"

#define PIECE_MAX      (1LL << 32)
#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)

const char *const LOCK_KIND_NAMES[] = {
    [LOCK_DATASET] = "dataset",
    [LOCK_IMAGE] = "image",
    [LOCK_SOURCE] = "source",
};

/* ---- as JSON ---- */

#define ITEM struct lock_item
static const struct json_form MOMENT = {.pattern = "^20[0-9]{2}-[01][0-9]-[0-3][0-9]T[0-9:.]+Z$",
                                        .check = check_line};
static const struct json_field ITEM_ROWS[] = {
    ROW("name", ITEM, name, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("bytes", ITEM, size_bytes, NULLABLE_FIELD | JSON_MINUS),
    ROW_HEX("md5", ITEM, md5, has_md5, NULLABLE_FIELD),
    ROW_HEX("sha256", ITEM, sha256, has_sha256, NULLABLE_FIELD),
    ROW("piece_bytes", ITEM, piece_bytes, NULLABLE_FIELD, .min = DATASET_PIECE_MIN,
        .max = PIECE_MAX),
    ROW("pieces", ITEM, pieces_path, NULLABLE_FIELD, .form = &FORM_PATH),
    ROW("ref", ITEM, ref, NULLABLE_FIELD, .form = &FORM_LINE),
    ROW("commit", ITEM, commit, NULLABLE_FIELD, .form = &FORM_COMMIT),
    ROW("tree", ITEM, tree, NULLABLE_FIELD, .form = &FORM_COMMIT),
    ROW("paths", ITEM, paths, JSON_OMIT, .form = &FORM_LINE,
        .about = "of a part of a source: joined by commas"),
    ROW("selection", ITEM, selection, JSON_OMIT, .form = &FORM_COMMIT,
        .about = "git's tree of just that part"),
    ROW("url", ITEM, url, NULLABLE_FIELD, .form = &FORM_LINE),
    ROW("date", ITEM, date, JSON_REQUIRED, .form = &MOMENT),
};

static int check_item(const struct json *at, struct arena *arena UNUSED, void *out, struct err *err)
{
    const struct lock_item *item = out;
    return !item->pieces_path.ptr == !item->piece_bytes
               ? 0
               : json_fail(at, err, "expected both pieces and piece_bytes or neither, found one");
}

static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW_WORD("kind", struct lock, kind, LOCK_KIND_NAMES, JSON_REQUIRED),
    ROW("id", struct lock, id, JSON_REQUIRED, .form = &FORM_LINE),
    ROW_LIST("items", struct lock, items, n_items, ITEM_ROWS, JSON_REQUIRED | JSON_UNIQUE,
             .max = LOCK_ITEMS_MAX, .check = check_item),
    ROW_HEX("list_sha256", struct lock, list_sha256, has_list, NULLABLE_FIELD),
    ROW("files", struct lock, n_files, NULLABLE_FIELD | JSON_MINUS),
    ROW("file_bytes", struct lock, file_bytes, NULLABLE_FIELD | JSON_MINUS),
};
const struct json_document LOCK_DOCUMENT = {
    JSON_DOCUMENT("lock.json", "a lock", ROWS),
    .about =
        "manifests/locks/KIND/ID.json: what was resolved at first sight, with date and source"};

int lock_decode(const struct json *root, struct arena *arena, struct lock *ret_lock,
                struct err *err)
{
    struct lock lock = {0};
    if (json_decode(root, arena, ROWS, ARRAY_LEN(ROWS), &lock, err) < 0) {
        return -1;
    }
    *ret_lock = lock;
    return 0;
}

void lock_encode(const struct lock *lock, struct strbuf *out)
{
    json_encode_document(out, ROWS, ARRAY_LEN(ROWS), lock);
}

/* ---- comparing ---- */

const struct lock_item *lock_find(const struct lock *lock, struct str name)
{
    return STR_NAMED(lock->items, lock->n_items, name, name);
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
    if (check_text_of(known, what, "commit", known->commit, found->commit, err) < 0 ||
        check_text_of(known, what, "tree", known->tree, found->tree, err) < 0) {
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
                       dataset->id.ptr, LOCK_KIND_NAMES[lock->kind], lock->id.ptr);
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
