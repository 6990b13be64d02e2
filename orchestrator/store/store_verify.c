/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/store_verify.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/publish.h"

struct store_check {
    struct arena *arena;
    struct store *store;
    const struct store_verify_opts *opts;
    struct {
        struct store_finding *items;
        size_t n;
        size_t n_max;
    } findings;
    struct store_verify_result result;
};

const char *const STORE_FAULT_NAMES[4] = {"corrupt", "missing", "unreadable", "foreign"};

static void note(struct store_check *v, enum store_fault fault, const char *name, const char *where)
{
    VEC_PUSH(&v->findings, (struct store_finding){fault, name, where});
}

/* The names of the blobs are the list of what must be in them. */
static int list_blobs(struct arena *arena, const struct store *store, struct tree_list *ret_list,
                      uint64_t *ret_bytes, struct err *err)
{
    const char *folder = fs_join(arena, store->folder, "blobs/sha256");
    struct fs_names names;
    struct tree_list list = {0};
    uint64_t bytes = 0;
    if (fs_list(arena, folder, &names, err) < 0) {
        return -1;
    }
    list.files = arena_array(arena, struct tree_file, names.n ? names.n : 1);
    for (size_t idx = 0; idx < names.n; idx++) {
        struct tree_file file = {.path = names.items[idx]};
        struct stat info;
        if (hex_decode(str_of(file.path), SHA256_BYTES, file.sha256, ERR_IGNORED) < 0) {
            continue; /* the walk will name it as extra */
        }
        if (lstat(fs_join(arena, folder, file.path), &info) < 0) {
            return err_errno(err, "stat", file.path);
        }
        bytes += (uint64_t)info.st_size;
        list.files[list.n++] = file;
    }
    *ret_list = list;
    *ret_bytes = bytes;
    return 0;
}

/* ---- blobs ---- */

/* Renamed, so that from this moment no reader opens it; one that has it open sees the corrupt bytes as before. */
static int quarantine(struct store_check *v, const char *hex, struct err *err)
{
    char time[RFC3339_MAX];
    clock_rfc3339(v->opts->now_ns, time);
    const char *from = store_path(v->store, arena_printf(v->arena, "blobs/sha256/%s", hex));
    const char *name = arena_printf(v->arena, "quarantine/%s.%s", hex, time);
    if (rename(from, store_path(v->store, name)) < 0) {
        return err_errno(err, "move to quarantine", from);
    }
    note(v, STORE_CORRUPT, arena_printf(v->arena, "sha256:%s", hex), name);
    return publish_folder(store_path(v->store, "blobs/sha256"), err);
}

static int judge(struct store_check *v, const struct tree_difference *difference, struct err *err)
{
    switch (difference->fault) {
    case TREE_CORRUPT:
        return quarantine(v, difference->path, err);
    case TREE_UNREADABLE:
        note(v, STORE_UNREADABLE, arena_printf(v->arena, "sha256:%s", difference->path), NULL);
        return 0;
    case TREE_EXTRA:
        note(v, STORE_FOREIGN, difference->path, NULL);
        return 0;
    case TREE_MISSING:
        break; /* vanished between the listing and the walk: not by gc, perhaps by the user; a reference will tell */
    }
    return 0;
}

static void show_bytes(void *ctx, uint64_t bytes_done)
{
    const struct store_check *v = ctx;
    if (v->opts->on_progress) {
        v->opts->on_progress(v->opts->progress_ctx, bytes_done, v->result.blob_bytes);
    }
}

static int check_blobs(struct store_check *v, struct err *err)
{
    struct tree_opts opts = {.folder = store_path(v->store, "blobs/sha256"),
                             .pool = v->opts->pool,
                             .n_threads = v->opts->n_threads,
                             .cache = v->opts->cache,
                             .is_deep = !v->opts->is_quick,
                             .kinds = DIGEST_SHA256,
                             .on_bytes = show_bytes,
                             .progress_ctx = v};
    struct tree_verify_result result;
    struct tree_list list;
    if (list_blobs(v->arena, v->store, &list, &v->result.blob_bytes, err) < 0 ||
        tree_verify(v->arena, &opts, &list, &result, err) < 0) {
        return -1;
    }
    v->result.n_blobs = list.n;
    v->result.n_cached = result.n_cached;
    v->result.bytes_read = result.n_bytes_read;
    for (size_t idx = 0; idx < result.differences.n; idx++) {
        if (judge(v, &result.differences.items[idx], err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- references ---- */

static int check_ref(void *ctx, const struct store_ref *ref, struct err *err UNUSED)
{
    struct store_check *v = ctx;
    for (size_t idx = 0; idx < ref->n_blobs; idx++) {
        if (!store_has(v->store, ref->blobs[idx], NULL)) {
            note(v, STORE_MISSING,
                 arena_printf(v->arena, "sha256:%s", sha256_hex_of(ref->blobs[idx]).text),
                 arena_printf(v->arena, "%s/%s", ref->kind, ref->name));
        }
    }
    return 0;
}

int store_verify(struct arena *arena, struct store *store, const struct store_verify_opts *opts,
                 struct store_verify_result *ret_result, struct err *err)
{
    struct store_check v = {.arena = arena, .store = store, .opts = opts};
    ASSERT(store->lock_fd >= 0);
    /* Blobs first: what goes into quarantine is missing from its references then. */
    int result = check_blobs(&v, err);
    if (result == 0) {
        result = store_each_ref(store, check_ref, &v, err);
    }
    arena_adopt(arena, v.findings.items);
    if (result == 0) {
        v.result.findings = v.findings.items;
        v.result.n = v.findings.n;
        *ret_result = v.result;
    }
    return result;
}

int store_verify_ref(struct arena *arena, struct store *store, const struct store_verify_opts *opts,
                     const struct store_ref *ref, size_t *ret_n_bad, struct err *err)
{
    struct store_check v = {.arena = arena, .store = store, .opts = opts};
    const struct tree_opts tree = {.folder = store_path(store, "blobs/sha256"),
                                   .pool = opts->pool,
                                   .n_threads = opts->n_threads};
    struct store_ref own = *ref;
    struct err absent = {0};
    *ret_n_bad = 0;
    if (store_ref_read(arena, store, &own, &absent) < 0) {
        *err = absent.code == ERR_NOT_FOUND ? *err : absent;
        return absent.code == ERR_NOT_FOUND ? 0 : -1;
    }
    const uint8_t(*sha256)[SHA256_BYTES] = own.blobs;
    const size_t n = own.n_blobs;
    struct tree_file *files = arena_array(arena, struct tree_file, n + 1);
    uint8_t *is_right = arena_array(arena, uint8_t, n + 1);
    for (size_t idx = 0; idx < n; idx++) {
        files[idx].path = hex_dup(arena, sha256[idx], SHA256_BYTES).ptr;
        memcpy(files[idx].sha256, sha256[idx], SHA256_BYTES);
        is_right[idx] = store_has(store, sha256[idx], NULL);
    }
    int result = tree_pick(&tree, files, n, is_right, err);
    for (size_t idx = 0; result == 0 && idx < n; idx++) {
        if (!is_right[idx] && store_has(store, sha256[idx], NULL)) {
            result = quarantine(&v, files[idx].path, err);
            ++*ret_n_bad;
        }
    }
    arena_adopt(arena, v.findings.items);
    return result;
}
