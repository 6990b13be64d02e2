/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a bundle's references and locks before the store takes them over: a reference claims digests that nobody checks
   again, and a lock decides what every later fetch must deliver. */
#include "base/base.h"

#include "store/bundle_impl.h"
#include "store/dataset_store.h"
#include "store/image_store.h"
#include "store/lock_file.h"

bool bundle_lists(const uint8_t (*blobs)[SHA256_BYTES], size_t n, const uint8_t *sha256)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (memcmp(blobs[idx], sha256, SHA256_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static int check_record(struct arena *arena, const char *name, struct str text, struct err *err)
{
    struct dataset_record record;
    uint8_t(*blobs)[SHA256_BYTES];
    size_t n = 0;
    if (dataset_record_parse(arena, text, name, &record, err) < 0 ||
        store_ref_blobs(arena, text, name, &blobs, &n, err) < 0) {
        return -1;
    }
    const char *own = arena_printf(arena, "%s%s", record.seen.id.ptr,
                                   record.is_synthetic ? DATASET_SYNTHETIC_SUFFIX : "");
    if (strcmp(own, name) != 0) {
        return err_set(err, ERR_INTEGRITY, "expected the reference of dataset %s, found that of %s",
                       name, own);
    }
    for (size_t idx = 0; idx < record.seen.n_items; idx++) {
        if (!bundle_lists((const uint8_t(*)[SHA256_BYTES])blobs, n,
                          record.seen.items[idx].sha256)) {
            return err_set(err, ERR_INTEGRITY, "%s: its blob is not among those that are kept",
                           record.seen.items[idx].name.ptr);
        }
    }
    return 0;
}

int bundle_check_ref(struct arena *arena, const char *kind, const char *name, struct str text,
                     struct err *err)
{
    int result;
    if (strcmp(kind, DATASET_REF_KIND) == 0) {
        result = check_record(arena, name, text, err);
    } else if (strcmp(kind, IMAGE_KIND) == 0) {
        result = image_ref_check(text, name, err);
    } else {
        return err_set(err, ERR_INTEGRITY, "reference %s: expected one of a dataset or an image",
                       name);
    }
    if (result < 0) {
        err->code = ERR_INTEGRITY;
        return err_wrap(err, "reference %s %s", kind, name);
    }
    return 0;
}

/* The blob's own MD5: the store's alias is made from the bytes; if it has none, the bytes are read. */
static int check_md5(const struct store *store, const struct lock_item *item, struct err *err)
{
    struct digest_value value;
    struct err none = {0};
    uint8_t sha256[SHA256_BYTES];
    if (store_find_md5(store, item->md5, sha256, &none) == 0 &&
        memcmp(sha256, item->sha256, SHA256_BYTES) == 0) {
        return 0;
    }
    if (digest_file(store_blob_path(store, item->sha256), DIGEST_MD5, &value, err) < 0) {
        return -1;
    }
    return memcmp(value.md5, item->md5, MD5_BYTES) == 0
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "its bytes do not have the MD5 that the reference says");
}

int bundle_check_claims(struct arena *arena, const struct store *store, const char *kind,
                        const char *name, struct str text, struct err *err)
{
    struct dataset_record record;
    if (strcmp(kind, DATASET_REF_KIND) != 0) {
        return 0;
    }
    if (dataset_record_parse(arena, text, name, &record, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < record.seen.n_items; idx++) {
        const struct lock_item *item = &record.seen.items[idx];
        uint64_t size_bytes = 0;
        int result = 0;
        if (!store_has(store, item->sha256, &size_bytes) ||
            size_bytes != (uint64_t)item->size_bytes) {
            result = err_set(err, ERR_INTEGRITY, "expected %lld bytes, found %llu",
                             (long long)item->size_bytes, (unsigned long long)size_bytes);
        } else if (item->has_md5) {
            result = check_md5(store, item, err);
        }
        if (result < 0) {
            return err_wrap(err, "reference %s %s: %s", kind, name, item->name.ptr);
        }
    }
    return 0;
}

int bundle_check_lock(struct arena *arena, const char *path, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct lock lock;
    char *own = NULL;
    if (json_read_file(path, &doc, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    struct json root = json_root(&doc);
    if (lock_decode(&root, arena, &lock, err) < 0 ||
        lock_path(arena, "locks", lock.kind, lock.id.ptr, &own, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    return str_ends(str_of(path), str_of(own))
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: is the lock of %s %s", path,
                         lock_kind_name(lock.kind), lock.id.ptr);
}
