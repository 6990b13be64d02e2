/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/store_gc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/publish.h"
#include "codec/json_table.h"
#include "codec/oci_ref.h"

/* ---- what is kept ---- */

/* The blobs that references name, and those that the image layout's index leads to (another tool may have put an image there). What cannot
   be read is an error: then nobody knows what it names. */

#define DESCRIPTORS_MAX 100000

struct digest_set {
    struct {
        uint8_t bytes[SHA256_BYTES];
    } * items;
    size_t n;
    size_t n_max;
};

struct marking {
    struct arena *arena;
    const struct store *store;
    struct digest_set found; /* with doubles until the end */
    struct digest_set todo;  /* manifests and indexes still to read */
    size_t n_descriptors;
};

static void push(struct digest_set *set, const uint8_t *sha256)
{
    if (set->n == set->n_max) {
        set->items = vec_grow(set->items, &set->n_max, sizeof(*set->items));
    }
    memcpy(set->items[set->n++].bytes, sha256, SHA256_BYTES);
}

/* ---- references ---- */

static int each_of_kind(const struct store *store, const char *kind, store_ref_fn fn, void *ctx,
                        struct err *err)
{
    struct fs_names names;
    if (store_ref_list(store, kind, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct store here = *store;
        struct store_ref ref = {.kind = kind, .name = names.items[idx]};
        uint8_t(*blobs)[SHA256_BYTES];
        here.arena = &arena;
        if (store_ref_get(&here, kind, ref.name, &ref.text, err) < 0 ||
            store_ref_blobs(&arena, ref.text, ref.name, &blobs, &ref.n_blobs, err) < 0) {
            return err_wrap(err, "reference %s", kind);
        }
        ref.blobs = (const uint8_t(*)[SHA256_BYTES])blobs;
        if (fn(ctx, &ref, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int store_each_ref(const struct store *store, store_ref_fn fn, void *ctx, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct store here = *store;
    struct fs_names kinds;
    here.arena = &arena;
    if (store_ref_kinds(&here, &kinds, err) < 0) {
        return -1;
    }
    for (size_t kind = 0; kind < kinds.n; kind++) {
        if (each_of_kind(&here, kinds.items[kind], fn, ctx, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int mark_ref(void *ctx, const struct store_ref *ref, struct err *err UNUSED)
{
    struct marking *marking = ctx;
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        push(&marking->found, ref->blobs[idx]);
    }
    return 0;
}

/* ---- the image layout ---- */

struct mark_entry { /* a descriptor, as far as it matters here */
    struct str type, digest;
};
struct mark_list {
    struct mark_entry config;
    struct mark_entry *layers, *manifests;
    size_t n_layers, n_manifests;
};
static const struct json_field ENTRY_ROWS[] = {
    ROW("digest", struct mark_entry, digest, JSON_REQUIRED),
    ROW("mediaType", struct mark_entry, type, 0),
    ROW_OTHERS,
};
static const struct json_field LIST_ROWS[] = {
    ROW_OBJECT("config", struct mark_list, config, ENTRY_ROWS, 0),
    ROW_LIST("layers", struct mark_list, layers, n_layers, ENTRY_ROWS, 0, .max = DESCRIPTORS_MAX),
    ROW_LIST("manifests", struct mark_list, manifests, n_manifests, ENTRY_ROWS, 0,
             .max = DESCRIPTORS_MAX),
    ROW_OTHERS,
};

/* Manifests and indexes lead on; a media type that is missing is taken for one that may. Another algorithm's blobs lie elsewhere,
   where nothing is dropped. */
static int mark_entries(struct marking *marking, const struct mark_entry *entries, size_t n,
                        const char *path, struct err *err)
{
    marking->n_descriptors += n;
    if (marking->n_descriptors > DESCRIPTORS_MAX) {
        return err_set(err, ERR_MANIFEST, "%s: more than %d descriptors", path, DESCRIPTORS_MAX);
    }
    for (size_t idx = 0; idx < n; idx++) {
        const struct mark_entry *entry = &entries[idx];
        uint8_t sha256[SHA256_BYTES];
        if (!str_starts(entry->digest, STR_LIT("sha256:"))) {
            continue;
        }
        if (oci_digest_parse(entry->digest, sha256, err) < 0) {
            return err_wrap(err, "%s", path);
        }
        push(&marking->found, sha256);
        if (entry->type.len == 0 || str_find(entry->type, STR_LIT("manifest")) >= 0 ||
            str_find(entry->type, STR_LIT("image.index")) >= 0) {
            push(&marking->todo, sha256);
        }
    }
    return 0;
}

static int mark_document(struct marking *marking, const char *path, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct mark_list list = {0};
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    struct json root = json_root(&doc);
    if (json_decode(&root, &arena, LIST_ROWS, ARRAY_LEN(LIST_ROWS), &list, err) < 0 ||
        mark_entries(marking, &list.config, list.config.digest.ptr != NULL, path, err) < 0 ||
        mark_entries(marking, list.layers, list.n_layers, path, err) < 0) {
        return -1;
    }
    return mark_entries(marking, list.manifests, list.n_manifests, path, err);
}

static int mark_layout(struct marking *marking, struct err *err)
{
    if (mark_document(marking, store_path(marking->store, "index.json"), err) < 0) {
        return -1;
    }
    while (marking->todo.n) {
        const uint8_t *sha256 = marking->todo.items[--marking->todo.n].bytes;
        const char *path = store_blob_path(marking->store, sha256);
        if (store_has(marking->store, sha256, NULL) && mark_document(marking, path, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- both ---- */

static int by_digest(const void *a, const void *b)
{
    return memcmp(a, b, SHA256_BYTES);
}

int store_roots(struct arena *arena, const struct store *store, struct store_roots *ret_roots,
                struct err *err)
{
    struct marking marking = {.arena = arena, .store = store};
    struct store_roots roots = {0};
    int result = store_each_ref(store, mark_ref, &marking, err);
    if (result == 0) {
        result = mark_layout(&marking, err);
    }
    VEC_RELEASE(&marking.todo);
    if (result == 0 && marking.found.n) {
        qsort(marking.found.items, marking.found.n, SHA256_BYTES, by_digest);
        roots.sha256 = arena_alloc_array(arena, SHA256_BYTES, marking.found.n, 1);
        for (size_t idx = 0; idx < marking.found.n; idx++) {
            if (roots.n == 0 ||
                by_digest(roots.sha256[roots.n - 1], marking.found.items[idx].bytes) != 0) {
                memcpy(roots.sha256[roots.n++], marking.found.items[idx].bytes, SHA256_BYTES);
            }
        }
    }
    VEC_RELEASE(&marking.found);
    if (result == 0) {
        *ret_roots = roots;
    }
    return result;
}

bool store_roots_have(const struct store_roots *roots, const uint8_t *sha256)
{
    return roots->n && bsearch(sha256, roots->sha256, roots->n, SHA256_BYTES, by_digest);
}

/* ---- what goes ---- */

struct gc {
    struct arena *arena;
    struct store *store;
    const struct store_gc_opts *opts;
    struct store_roots roots;
    struct {
        struct store_gc_item *items;
        size_t n;
        size_t n_max;
    } items;
    size_t n_dropped_blobs;
    struct store_gc_result result;
};

const char *const STORE_GC_KIND_NAMES[STORE_GC_KINDS] = {"blob", "alias",   "tree",      "packed",
                                                         "tmp",  "partial", "quarantine"};

/* The ctime: a rename into the store or a new look at the blob sets it, and nobody can set it back. */
static bool is_young(const struct gc *gc, int64_t changed_s, int64_t grace_s)
{
    return grace_s > 0 && changed_s > gc->opts->now_ns / NS_PER_S - grace_s;
}

static void note_young(struct gc *gc, uint64_t size_bytes)
{
    gc->result.n_young++;
    gc->result.young_bytes += size_bytes;
}

static int drop(struct gc *gc, enum store_gc_kind kind, const char *name, uint64_t size_bytes,
                struct err *err)
{
    const char *path = store_path(gc->store, name);
    if (!gc->opts->is_dry_run && fs_remove_tree(path, err) < 0) {
        return -1;
    }
    gc->result.bytes += size_bytes;
    gc->n_dropped_blobs += kind == GC_BLOB;
    VEC_PUSH(&gc->items, (struct store_gc_item){kind, name, size_bytes});
    return 0;
}

/* ---- blobs and aliases ---- */

static bool parse_name(const char *name, size_t n_bytes, uint8_t *ret_bytes)
{
    struct err ignored = {0};
    return hex_decode(str_of(name), n_bytes, ret_bytes, &ignored) == 0;
}

static int gc_blob(struct gc *gc, const char *hex, struct err *err)
{
    const char *name = arena_printf(gc->arena, "blobs/sha256/%s", hex);
    const char *path = store_path(gc->store, name);
    uint8_t sha256[SHA256_BYTES];
    struct stat info;
    if (!parse_name(hex, SHA256_BYTES, sha256)) {
        return 0; /* another tool's: it may be writing it now, without our lock */
    }
    if (lstat(path, &info) < 0) {
        return err_errno(err, "stat", path);
    }
    if (store_roots_have(&gc->roots, sha256)) {
        gc->result.n_kept++;
        gc->result.kept_bytes += (uint64_t)info.st_size;
        return 0;
    }
    if (is_young(gc, info.st_ctim.tv_sec, gc->opts->grace_s)) {
        note_young(gc, (uint64_t)info.st_size);
        return 0;
    }
    return drop(gc, GC_BLOB, name, (uint64_t)info.st_size, err);
}

static int by_name(const void *a, const void *b)
{
    const struct store_gc_item *left = a, *right = b;
    return strcmp(left->name, right->name);
}

/* Dropped just now, or to be dropped in a dry run: so far the items are blobs alone, in the order of their names. */
static bool is_dropped(const struct gc *gc, const uint8_t *sha256)
{
    char name[sizeof("blobs/sha256/") + SHA256_HEX_SIZE] = "blobs/sha256/";
    struct store_gc_item wanted = {.name = name};
    hex_encode(sha256, SHA256_BYTES, name + strlen(name));
    return gc->n_dropped_blobs &&
           bsearch(&wanted, gc->items.items, gc->n_dropped_blobs, sizeof(wanted), by_name);
}

static int gc_alias(struct gc *gc, const char *hex, struct err *err)
{
    uint8_t md5[MD5_BYTES], sha256[SHA256_BYTES];
    struct err why = {0};
    if (!parse_name(hex, MD5_BYTES, md5) ||
        (store_find_md5(gc->store, md5, sha256, &why) == 0 && !is_dropped(gc, sha256))) {
        return 0;
    }
    return drop(gc, GC_ALIAS, arena_printf(gc->arena, "md5/%s", hex), SHA256_HEX_SIZE, err);
}

/* ---- folders of what is under way ---- */

struct extent { /* of a file, or of a folder with all that is in it */
    uint64_t size_bytes;
    int64_t changed_s; /* the youngest */
    bool is_locked;
};

static int add_extent(struct extent *extent, const char *path, struct err *err)
{
    struct stat info;
    if (lstat(path, &info) < 0) {
        return err_errno(err, "stat", path);
    }
    extent->size_bytes += S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    extent->changed_s =
        info.st_ctim.tv_sec > extent->changed_s ? info.st_ctim.tv_sec : extent->changed_s;
    if (S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)) {
        CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        extent->is_locked = extent->is_locked ||
                            (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK);
    }
    return 0;
}

static int measure(const char *path, struct extent *ret_extent, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct extent extent = {0};
    struct fs_names files = {0};
    if (add_extent(&extent, path, err) < 0 ||
        (fs_is_dir(path) && fs_walk(&arena, path, &files, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n; idx++) {
        if (add_extent(&extent, fs_join(&arena, path, files.items[idx]), err) < 0) {
            return -1;
        }
    }
    *ret_extent = extent;
    return 0;
}

static const char *const FOLDERS[STORE_GC_KINDS] = {
    "blobs/sha256", "md5", "trees", "packed", "tmp", "partial", "quarantine"};

static int gc_leftover(struct gc *gc, enum store_gc_kind kind, const char *entry, int64_t grace_s,
                       struct err *err)
{
    const char *name = arena_printf(gc->arena, "%s/%s", FOLDERS[kind], entry);
    struct extent extent;
    if (measure(store_path(gc->store, name), &extent, err) < 0) {
        return -1;
    }
    if (extent.is_locked) {
        gc->result.n_busy++;
        return 0;
    }
    if (is_young(gc, extent.changed_s, grace_s)) {
        note_young(gc, extent.size_bytes);
        return 0;
    }
    return drop(gc, kind, name, extent.size_bytes, err);
}

/* Unpacked trees and shards of a dataset are dropped once its reference is gone: they can be made again. */
static int gc_dataset(struct gc *gc, enum store_gc_kind kind, const char *entry, struct err *err)
{
    struct str text;
    struct err absent = {0};
    if (store_ref_get(gc->store, "dataset", entry, &text, &absent) == 0) {
        return 0;
    }
    if (absent.code != ERR_NOT_FOUND) {
        *err = absent;
        return -1;
    }
    return gc_leftover(gc, kind, entry, gc->opts->grace_s, err);
}

/* ---- all of it ---- */

static int gc_entry(struct gc *gc, enum store_gc_kind kind, const char *entry, struct err *err)
{
    return kind == GC_BLOB    ? gc_blob(gc, entry, err)
           : kind == GC_ALIAS ? gc_alias(gc, entry, err)
           : kind == GC_TREE || kind == GC_PACKED
               ? gc_dataset(gc, kind, entry, err)
               : gc_leftover(gc, kind, entry,
                             kind == GC_PARTIAL ? gc->opts->partial_grace_s : gc->opts->grace_s,
                             err);
}

/* In the order of the kinds: an alias goes after its blob. */
static int gc_all(struct gc *gc, struct err *err)
{
    for (unsigned kind = 0; kind < STORE_GC_KINDS; kind++) {
        const char *folder = store_path(gc->store, FOLDERS[kind]);
        struct fs_names names;
        size_t before = gc->items.n;
        if (fs_list(gc->arena, folder, &names, err) < 0) {
            return -1;
        }
        for (size_t idx = 0; idx < names.n; idx++) {
            if (gc_entry(gc, (enum store_gc_kind)kind, names.items[idx], err) < 0) {
                return -1;
            }
        }
        if (gc->items.n != before && !gc->opts->is_dry_run && publish_folder(folder, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int lock_alone(const struct store *store, struct err *err)
{
    if (flock(store->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        return 0;
    }
    int saved = errno;
    /* Turning a lock into another may lose it: ours is taken again before anything else happens. */
    while (flock(store->lock_fd, LOCK_SH) < 0 && errno == EINTR) {
        continue;
    }
    if (saved == EWOULDBLOCK) {
        return err_set(err, ERR_USAGE, "store %s: another process is using it; nothing was dropped",
                       store->folder);
    }
    return err_set(err, ERR_IO, "lock the store %s: %s", store->folder, err_errno_text(saved));
}

int store_gc(struct arena *arena, struct store *store, const struct store_gc_opts *opts,
             struct store_gc_result *ret_result, struct err *err)
{
    struct gc gc = {.arena = arena, .store = store, .opts = opts};
    ASSERT(store->lock_fd >= 0);
    if (!opts->is_dry_run && lock_alone(store, err) < 0) {
        return -1;
    }
    int result = store_roots(arena, store, &gc.roots, err);
    if (result < 0) {
        result = err_wrap(err, "nothing was dropped");
    } else {
        result = gc_all(&gc, err);
    }
    while (!opts->is_dry_run && flock(store->lock_fd, LOCK_SH) < 0 && errno == EINTR) {
        continue;
    }
    arena_adopt(arena, gc.items.items);
    if (result == 0) {
        gc.result.items = gc.items.items;
        gc.result.n = gc.items.n;
        *ret_result = gc.result;
    }
    return result;
}
