/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle into the store. Nothing is changed before every byte of the bundle has been verified and no lock contradicts an
   existing one. An import that was interrupted is simply done again: blobs that came in stay, references come last. */
#include "base/base.h"

#include "base/log.h"
#include "store/bundle_copy.h"
#include "store/bundle_impl.h"
#include "store/dataset_store.h"
#include "store/image_store.h"
#include "store/lock_file.h"

/* Checks a bundle's references and locks before the store takes them over: a reference claims digests that nobody checks
   again, and a lock decides what every later fetch must deliver. */

static bool bundle_lists(const uint8_t (*blobs)[SHA256_BYTES], size_t n, const uint8_t *sha256)
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

/* A reference of a dataset or an image, whole and of that name; ERR_INTEGRITY. */
static int bundle_check_ref(struct arena *arena, const char *kind, const char *name,
                            struct str text, struct err *err)
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

/* What it says of its blobs, which are in the store by now: sizes, and MD5s that later count as checked. */
static int bundle_check_claims(struct arena *arena, const struct store *store, const char *kind,
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

/* A lock, and the one that belongs at KIND/NAME.json. */
static int bundle_check_lock(struct arena *arena, const char *path, struct err *err)
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

#define LOCKS_BELOW   "share/reperf/manifests/locks/"
#define BLOBS_BELOW   "store/blobs/sha256/"
#define REFS_BELOW    "store/refs/"
#define SOURCES_BELOW "store/sources/"
#define SHOWN_MAX     5

struct importer {
    struct arena *arena;
    struct store *store;
    const struct import_opts *opts;
    const char *folder;
    bool (*should_stop)(void);
    struct tree_list list;
    struct bundle_info info;
};

static char *in_bundle(const struct importer *im, const char *path)
{
    return fs_join(im->arena, im->folder, path);
}

/* Every file of the bundle whose path begins so. */
static int for_below(struct importer *im, const char *prefix,
                     int (*fn)(struct importer *im, const struct tree_file *file, struct err *err),
                     struct err *err)
{
    int result = 0;
    for (size_t idx = 0; result == 0 && idx < im->list.n; idx++) {
        const struct tree_file *file = &im->list.files[idx];
        result = str_starts(str_of(file->path), str_of(prefix)) ? fn(im, file, err) : 0;
    }
    return result;
}

/* ---- the bundle holds ---- */

static int report_differences(const struct importer *im, const struct tree_differences *found,
                              struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(4096);
    size_t n = 0;
    for (size_t idx = 0; idx < found->n; idx++) {
        const struct tree_difference *d = &found->items[idx];
        /* The list cannot hold its own digest. */
        if (d->fault == TREE_EXTRA && strcmp(d->path, BUNDLE_SUMS) == 0) {
            continue;
        }
        if (n++ < SHOWN_MAX) {
            strbuf_printf(&text, "%s%s %s", n > 1 ? ", " : "", tree_fault_name(d->fault), d->path);
        }
    }
    return n == 0
               ? 0
               : err_set(err, ERR_INTEGRITY, "bundle %s: %zu files are wrong: %.*s%s", im->folder,
                         n, STR_ARG(strbuf_str(&text)), n > SHOWN_MAX ? ", ..." : "");
}

static int check_bundle(struct importer *im, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    struct tree_verify_result result;
    struct tree_opts opts = {
        .folder = im->folder, .n_threads = POOL_THREADS_MIN + 1, .should_stop = im->should_stop};
    if (tree_list_read(im->arena, in_bundle(im, BUNDLE_SUMS), &im->list, err) < 0) {
        return err_wrap(err, "not a bundle");
    }
    if (pool_new(opts.n_threads, &pool, err) < 0) {
        return -1;
    }
    opts.pool = pool;
    if (tree_verify(im->arena, &opts, &im->list, &result, err) < 0 ||
        report_differences(im, &result.differences, err) < 0) {
        return -1;
    }
    if (bundle_check_blobs(&im->list, err) < 0) {
        return err_wrap(err, "bundle %s", im->folder);
    }
    return bundle_about_read(im->arena, im->folder, &im->info, err);
}

/* ---- locks ---- */

/* Where it belongs; NULL: not a lock. */
static const char *lock_of(const struct importer *im, const char *path)
{
    return str_ends(str_of(path), STR_LIT(".json"))
               ? fs_join(im->arena, im->opts->locks, path + strlen(LOCKS_BELOW))
               : NULL;
}

static int check_lock(struct importer *im, const struct tree_file *file, struct err *err)
{
    const char *from = in_bundle(im, file->path), *to = lock_of(im, file->path);
    struct str ours;
    struct str theirs;
    if (!to) {
        return 0;
    }
    if (bundle_check_lock(im->arena, from, err) < 0) {
        return err_wrap(err, "bundle %s", im->folder);
    }
    if (!fs_exists(to)) {
        return 0;
    }
    if (fs_read(im->arena, from, STORE_TEXT_MAX, &theirs, err) < 0 ||
        fs_read(im->arena, to, STORE_TEXT_MAX, &ours, err) < 0) {
        return -1;
    }
    return str_eq(ours, theirs)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: the lock of the bundle differs; compare both, then remove one", to);
}

static int put_lock(struct importer *im, const struct tree_file *file, struct err *err)
{
    struct str text;
    const char *to = lock_of(im, file->path);
    if (!to || fs_exists(to)) {
        return 0;
    }
    if (fs_read(im->arena, in_bundle(im, file->path), STORE_TEXT_MAX, &text, err) < 0 ||
        fs_mkdir_above(to, err) < 0) {
        return -1;
    }
    return fs_write_atomic(to, text, err);
}

/* ---- into the store ---- */

static int import_blob(struct importer *im, const struct tree_file *file, struct err *err)
{
    const struct store_hooks hooks = {.should_stop = im->should_stop};
    struct digest_value value;
    struct err ignored = {0};
    uint64_t size_bytes = 0;
    /* An existing one may be damaged; the bundle's is known to be correct. */
    if (!store_has(im->store, file->sha256, &size_bytes) ||
        digest_file(store_blob_path(im->store, file->sha256), DIGEST_SHA256, &value, &ignored) <
            0 ||
        memcmp(value.sha256, file->sha256, SHA256_BYTES) != 0) {
        if (store_add_file(im->store, in_bundle(im, file->path), &hooks, &value, err) < 0) {
            return -1;
        }
        if (memcmp(value.sha256, file->sha256, SHA256_BYTES) != 0) {
            return err_set(err, ERR_INTEGRITY, "%s: has changed since it was checked", file->path);
        }
        size_bytes = value.size_bytes;
    }
    im->info.n_blobs++;
    im->info.blob_bytes += size_bytes;
    return 0;
}

/* store/refs/KIND/NAME.json */
static int ref_of(const struct importer *im, const char *path, const char **ret_kind,
                  const char **ret_name, struct str *ret_text, struct err *err)
{
    struct str rest = str_of(path + strlen(REFS_BELOW));
    struct str kind;
    if (!str_next(&rest, '/', &kind) || !str_ends(rest, STR_LIT(".json"))) {
        return err_set(err, ERR_INTEGRITY, "%s: expected store/refs/KIND/NAME.json", path);
    }
    *ret_kind = str_z(im->arena, kind);
    *ret_name = store_unescape(im->arena, str_z(im->arena, str_sub(rest, 0, rest.len - 5)));
    if (!*ret_name) {
        return err_set(err, ERR_INTEGRITY, "%s: not a name of a reference", path);
    }
    return fs_read(im->arena, in_bundle(im, path), STORE_TEXT_MAX, ret_text, err);
}

struct blobs {
    uint8_t (*sha256)[SHA256_BYTES];
    size_t n;
};

static bool has_all(const struct blobs *more, const struct blobs *less)
{
    for (size_t idx = 0; idx < less->n; idx++) {
        if (!bundle_lists((const uint8_t(*)[SHA256_BYTES])more->sha256, more->n,
                          less->sha256[idx])) {
            return false;
        }
    }
    return true;
}

/* A reference grows while it is used, so one with all of the other's blobs counts as the same. */
static int is_same_thing(const struct importer *im, struct str ours_text,
                         const struct blobs *theirs, bool *ret_same, struct err *err)
{
    struct blobs ours;
    if (store_ref_blobs(im->arena, ours_text, "reference in the store", &ours.sha256, &ours.n,
                        err) < 0) {
        return -1;
    }
    *ret_same = has_all(&ours, theirs) || has_all(theirs, &ours);
    return 0;
}

static int check_blobs_there(const struct importer *im, const char *path, const struct blobs *blobs,
                             struct err *err)
{
    for (size_t idx = 0; idx < blobs->n; idx++) {
        const struct hex hex = sha256_hex_of(blobs->sha256[idx]);
        uint64_t size_bytes;
        if (!fs_exists(in_bundle(im, arena_printf(im->arena, BLOBS_BELOW "%s", hex.text))) &&
            !store_has(im->store, blobs->sha256[idx], &size_bytes)) {
            return err_set(err, ERR_INTEGRITY, "%s: neither the bundle nor the store has sha256:%s",
                           path, hex.text);
        }
    }
    return 0;
}

/* A bundle fills the store; it does not change what a name means here. */
static int check_ref(struct importer *im, const struct tree_file *file, struct err *err)
{
    const char *path = file->path;
    const char *kind, *name;
    struct str ours, theirs;
    struct err absent = {0};
    struct blobs blobs;
    bool is_same = false;
    if (ref_of(im, path, &kind, &name, &theirs, err) < 0 ||
        bundle_check_ref(im->arena, kind, name, theirs, err) < 0 ||
        store_ref_blobs(im->arena, theirs, path, &blobs.sha256, &blobs.n, err) < 0 ||
        check_blobs_there(im, path, &blobs, err) < 0) {
        return -1;
    }
    if (store_ref_get(im->store, kind, name, &ours, &absent) < 0) {
        return absent.code == ERR_NOT_FOUND ? 0 : (*err = absent, -1);
    }
    if (is_same_thing(im, ours, &blobs, &is_same, err) < 0) {
        return -1;
    }
    return is_same
               ? 0
               : err_set(
                     err, ERR_INTEGRITY,
                     "%s %s: the store has a different one than the bundle; nothing was imported",
                     kind, name);
}

static int import_ref(struct importer *im, const struct tree_file *file, struct err *err)
{
    const char *kind, *name;
    struct str text, ours;
    struct err absent = {0};
    if (ref_of(im, file->path, &kind, &name, &text, err) < 0 ||
        bundle_check_claims(im->arena, im->store, kind, name, text, err) < 0) {
        return -1;
    }
    bool is_new = store_ref_get(im->store, kind, name, &ours, &absent) < 0;
    if (is_new && store_ref_put(im->store, kind, name, text, err) < 0) {
        return -1;
    }
    if (strcmp(kind, IMAGE_KIND) != 0 || image_list_again(im->store, name, err) == 0) {
        return 0;
    }
    /* Its manifest is invalid: the name means nothing here. */
    absent = (struct err){0};
    if (is_new && store_ref_drop(im->store, kind, name, &absent) < 0) {
        log_line(LOG_WARN, "%s", absent.msg);
    }
    err->code = err->code == ERR_DISK ? ERR_DISK : ERR_INTEGRITY;
    return -1;
}

/* Before anything is changed: no file that could make git run or read something else. */
static int check_source(struct importer *im UNUSED, const struct tree_file *file, struct err *err)
{
    return bundle_may_have(file->path + strlen(SOURCES_BELOW))
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: not a file that a bundle may contain",
                         file->path);
}

/* The bundle is a mirror for every source that it says it has: git checks each object on its way (store/source_store.h). */
static int import_sources(struct importer *im, struct err *err)
{
    struct net_opts net = *im->opts->net;
    net.mirror = in_bundle(im, "store");
    for (size_t idx = 0; idx < im->info.n_parts; idx++) {
        struct source_tree tree;
        struct str name = im->info.parts[idx];
        if (str_starts(name, STR_LIT("source ")) &&
            bundle_source(im->arena, im->store, &net,
                          str_z(im->arena, str_sub(name, strlen("source "), name.len)), &tree,
                          err) < 0) {
            err->code = err->code == ERR_FETCH ? ERR_INTEGRITY : err->code;
            return err_wrap(err, "bundle %s", im->folder);
        }
    }
    return 0;
}

int bundle_import(struct arena *arena, const struct import_opts *opts, struct bundle_info *ret_info,
                  struct err *err)
{
    struct importer im = {.arena = arena,
                          .opts = opts,
                          .store = opts->store,
                          .folder = opts->folder,
                          .should_stop = opts->should_stop};
    if (!fs_is_dir(opts->folder)) {
        return err_set(err, ERR_NOT_FOUND, "%s: no such folder", opts->folder);
    }
    if (check_bundle(&im, err) < 0 || for_below(&im, SOURCES_BELOW, check_source, err) < 0 ||
        for_below(&im, REFS_BELOW, check_ref, err) < 0 ||
        for_below(&im, LOCKS_BELOW, check_lock, err) < 0 ||
        for_below(&im, BLOBS_BELOW, import_blob, err) < 0 || import_sources(&im, err) < 0 ||
        for_below(&im, REFS_BELOW, import_ref, err) < 0 ||
        for_below(&im, LOCKS_BELOW, put_lock, err) < 0) {
        return -1;
    }
    im.info.n_files = im.list.n;
    *ret_info = im.info;
    return 0;
}
