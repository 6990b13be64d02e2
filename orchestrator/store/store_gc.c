/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/store_gc.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/publish.h"
#include "base/vec.h"

/* ---- what goes ---- */

struct gc {
    struct arena *arena;
    struct store *store;
    const struct store_gc_opts *opts;
    struct map named; /* digests of blobs, by a reference */
    struct map gone;  /* likewise: dropped just now, or to be dropped in a dry run */
    VEC(struct store_gc_item) items;
    struct store_gc_result result;
};

static struct str digest_key(const uint8_t *sha256)
{
    return (struct str){(const char *)sha256, SHA256_BYTES};
}

/* A reference that cannot be read is an error: nobody knows what it names. */
static int mark_ref(void *ctx, const struct store_ref *ref, struct err *err UNUSED)
{
    struct gc *gc = ctx;
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        if (!map_get(&gc->named, digest_key(ref->blobs[idx]))) {
            map_add(&gc->named, str_dup(gc->arena, digest_key(ref->blobs[idx])), gc);
        }
    }
    return 0;
}

const char *const STORE_GC_KIND_NAMES[STORE_GC_KINDS] = {"blob", "alias",   "tree",      "packed",
                                                         "tmp",  "partial", "quarantine"};

/* The ctime: a rename into the store or a new look at the blob sets it, and nobody can set it back. */
static bool is_young(const struct gc *gc, int64_t changed_s, int64_t grace_s)
{
    return grace_s > 0 && changed_s > gc->opts->now_ns / NS_PER_S - grace_s;
}

static int drop(struct gc *gc, enum store_gc_kind kind, const char *name, uint64_t size_bytes,
                struct err *err)
{
    const char *path = store_path(gc->store, name);
    if (!gc->opts->is_dry_run && fs_remove_tree(path, err) < 0) {
        return -1;
    }
    gc->result.bytes += size_bytes;
    VEC_PUSH(&gc->items, (struct store_gc_item){kind, name, size_bytes});
    return 0;
}

/* ---- blobs and aliases ---- */

static int gc_blob(struct gc *gc, const char *hex, struct err *err)
{
    const char *name = arena_printf(gc->arena, "blobs/sha256/%s", hex);
    const char *path = store_path(gc->store, name);
    uint8_t sha256[SHA256_BYTES];
    struct stat info;
    if (hex_decode(str_of(hex), SHA256_BYTES, sha256, ERR_IGNORED) < 0) {
        return 0; /* another tool's: it may be writing it now, without our lock */
    }
    if (lstat(path, &info) < 0) {
        return err_errno(err, "stat", path);
    }
    if (map_get(&gc->named, digest_key(sha256))) {
        gc->result.n_kept++;
        gc->result.kept_bytes += (uint64_t)info.st_size;
        return 0;
    }
    if (is_young(gc, info.st_ctim.tv_sec, gc->opts->grace_s)) {
        gc->result.n_young++;
        return 0;
    }
    map_add(&gc->gone, str_dup(gc->arena, digest_key(sha256)), gc);
    return drop(gc, GC_BLOB, name, (uint64_t)info.st_size, err);
}

static int gc_alias(struct gc *gc, const char *hex, struct err *err)
{
    uint8_t md5[MD5_BYTES], sha256[SHA256_BYTES];
    if (hex_decode(str_of(hex), MD5_BYTES, md5, ERR_IGNORED) < 0 ||
        (store_find_md5(gc->store, md5, sha256, ERR_IGNORED) == 0 &&
         !map_get(&gc->gone, digest_key(sha256)))) {
        return 0;
    }
    return drop(gc, GC_ALIAS, arena_printf(gc->arena, "md5/%s", hex), SHA256_HEX_SIZE, err);
}

/* ---- folders of what is under way ---- */

/* What a file takes, or a folder with all that is in it. */
struct extent {
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
        gc->result.n_young++;
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
        return err_pass(err, &absent);
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
    int result = store_each_ref(store, mark_ref, &gc, err) < 0
                     ? err_wrap(err, "nothing was dropped")
                     : gc_all(&gc, err);
    while (!opts->is_dry_run && flock(store->lock_fd, LOCK_SH) < 0 && errno == EINTR) {
        continue;
    }
    map_release(&gc.named);
    map_release(&gc.gone);
    arena_adopt(arena, gc.items.items);
    if (result == 0) {
        gc.result.items = gc.items.items;
        gc.result.n = gc.items.n;
        *ret_result = gc.result;
    }
    return result;
}
