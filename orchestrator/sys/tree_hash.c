/* SPDX-License-Identifier: Apache-2.0 */
/* The results of hashing a folder: a list, or the differences from one. */
#include "base/base.h"

#include "base/vec.h"
#include "sys/tree_impl.h"

/* ---- a list of what is there ---- */

struct hash_listing {
    struct arena *arena;
    struct {
        struct tree_file *items;
        size_t n;
        size_t n_max;
    } files;
};

static int list_file(void *ctx, const char *path, size_t len, struct err *err UNUSED)
{
    struct hash_listing *listing = ctx;
    struct tree_file file = {.path = arena_strndup(listing->arena, path, len)};
    VEC_PUSH(&listing->files, file);
    return 0;
}

static void keep_value(void *ctx, size_t idx, const struct digest_value *value)
{
    struct tree_list *list = ctx;
    memcpy(list->files[idx].sha256, value->sha256, SHA256_BYTES);
    if (list->md5) {
        memcpy(list->md5[idx], value->md5, MD5_BYTES);
    }
}

int tree_hash(struct arena *arena, const struct tree_opts *opts, struct tree_list *ret_list,
              struct err *err)
{
    struct hash_listing listing = {.arena = arena};
    int result = tree_walk(opts->folder, opts->should_stop, list_file, &listing, err);
    struct tree_list list = {.files = listing.files.items, .n = listing.files.n};
    arena_adopt(arena, listing.files.items);
    if (result < 0) {
        return -1;
    }
    list.lacks_sha256 = !(opts->kinds & DIGEST_SHA256);
    if (opts->kinds & DIGEST_MD5) {
        list.md5 = arena_alloc_array(arena, MD5_BYTES, list.n ? list.n : 1, 1);
    }
    struct tree_run run = {.opts = opts,
                           .kinds = opts->kinds,
                           .files = list.files,
                           .n = list.n,
                           .on_value = keep_value,
                           .ctx = &list};
    if (tree_run(&run, err) < 0) {
        return -1;
    }
    if (opts->ret_stats) {
        opts->ret_stats->n_cached = atomic_load(&run.n_cached);
        opts->ret_stats->n_bytes_read = atomic_load(&run.bytes_read);
    }
    *ret_list = list;
    return 0;
}

/* ---- the differences from a list ---- */

enum { FOUND_NOT, FOUND_WANTED, FOUND_SAME, FOUND_OTHER, FOUND_UNREADABLE };

struct tree_check {
    struct arena *arena;
    const struct tree_list *expected;
    uint8_t *states;             /* parallel to expected->files */
    struct digest_value **found; /* next to them: of those that differ; on the heap */
    size_t next_idx;
    struct {
        const char **items;
        size_t n;
        size_t n_max;
    } extra;
};

/* Files come in the list's order: one walk along both. */
static int match_file(void *ctx, const char *path, size_t len, struct err *err UNUSED)
{
    struct tree_check *verifying = ctx;
    const struct tree_list *expected = verifying->expected;
    int order = 1;
    while (verifying->next_idx < expected->n &&
           (order = strcmp(expected->files[verifying->next_idx].path, path)) < 0) {
        verifying->next_idx++;
    }
    if (verifying->next_idx < expected->n && order == 0) {
        verifying->states[verifying->next_idx++] = FOUND_WANTED;
    } else {
        VEC_PUSH(&verifying->extra, arena_strndup(verifying->arena, path, len));
    }
    return 0;
}

static void judge_value(void *ctx, size_t idx, const struct digest_value *value)
{
    struct tree_check *verifying = ctx;
    const struct tree_list *expected = verifying->expected;
    bool is_same = true;
    if (!expected->lacks_sha256) {
        is_same = memcmp(expected->files[idx].sha256, value->sha256, SHA256_BYTES) == 0;
    }
    if (expected->md5) {
        is_same = is_same && memcmp(expected->md5[idx], value->md5, MD5_BYTES) == 0;
    }
    verifying->states[idx] = is_same ? FOUND_SAME : FOUND_OTHER;
    if (!is_same) {
        verifying->found[idx] = xcalloc(1, sizeof(*value));
        *verifying->found[idx] = *value;
    }
}

static void note_unreadable(void *ctx, size_t idx)
{
    struct tree_check *verifying = ctx;
    verifying->states[idx] = FOUND_UNREADABLE;
}

static const struct digest_value *kept_value(const struct tree_check *verifying, size_t idx)
{
    struct digest_value *kept = NULL;
    if (verifying->found[idx]) {
        kept = arena_new(verifying->arena, struct digest_value);
        *kept = *verifying->found[idx];
    }
    return kept;
}

static void collect(const struct tree_check *verifying, struct tree_differences *ret_differences)
{
    static const enum tree_fault FAULTS[] = {[FOUND_NOT] = TREE_MISSING,
                                             [FOUND_OTHER] = TREE_CORRUPT,
                                             [FOUND_UNREADABLE] = TREE_UNREADABLE};
    const struct tree_list *expected = verifying->expected;
    struct {
        struct tree_difference *items;
        size_t n;
        size_t n_max;
    } differences = {0};
    size_t at = 0;
    for (size_t idx = 0; idx <= expected->n; idx++) {
        while (at < verifying->extra.n &&
               (idx == expected->n ||
                strcmp(verifying->extra.items[at], expected->files[idx].path) < 0)) {
            VEC_PUSH(&differences, (struct tree_difference){.fault = TREE_EXTRA,
                                                            .path = verifying->extra.items[at++]});
        }
        if (idx < expected->n && verifying->states[idx] != FOUND_SAME) {
            ASSERT(verifying->states[idx] != FOUND_WANTED);
            const struct tree_file *file = &expected->files[idx];
            VEC_PUSH(&differences,
                     (struct tree_difference){FAULTS[verifying->states[idx]], file->path,
                                              expected->lacks_sha256 ? NULL : file->sha256,
                                              kept_value(verifying, idx)});
        }
    }
    arena_adopt(verifying->arena, differences.items);
    *ret_differences = (struct tree_differences){differences.items, differences.n};
}

static int verify_states(const struct tree_opts *opts, struct tree_check *verifying,
                         struct tree_verify_result *ret_result, struct err *err)
{
    const struct tree_list *expected = verifying->expected;
    struct tree_run run = {.opts = opts,
                           .files = expected->files,
                           .n = expected->n,
                           .is_wanted = verifying->states,
                           .on_value = judge_value,
                           .on_unreadable = note_unreadable,
                           .ctx = verifying};
    struct tree_verify_result result = {0};
    run.kinds = (expected->lacks_sha256 ? 0u : DIGEST_SHA256) | (expected->md5 ? DIGEST_MD5 : 0u);
    if (tree_walk(opts->folder, opts->should_stop, match_file, verifying, err) < 0 ||
        (expected->n && tree_run(&run, err) < 0)) {
        return -1;
    }
    for (size_t idx = 0; idx < expected->n; idx++) {
        result.n_checked +=
            verifying->states[idx] == FOUND_SAME || verifying->states[idx] == FOUND_OTHER;
    }
    collect(verifying, &result.differences);
    result.n_cached = atomic_load(&run.n_cached);
    result.n_bytes_read = atomic_load(&run.bytes_read);
    *ret_result = result;
    return 0;
}

int tree_verify(struct arena *arena, const struct tree_opts *opts, const struct tree_list *expected,
                struct tree_verify_result *ret_result, struct err *err)
{
    CLEANUP(free) uint8_t *states = xcalloc(expected->n, 1);
    CLEANUP(free) struct digest_value **found = xcalloc(expected->n, sizeof(struct digest_value *));
    struct tree_check verifying = {
        .arena = arena, .expected = expected, .states = states, .found = found};
    int result = verify_states(opts, &verifying, ret_result, err);
    for (size_t idx = 0; idx < expected->n; idx++) {
        free(found[idx]);
    }
    VEC_RELEASE(&verifying.extra);
    return result;
}

/* ---- a small one ---- */

int tree_hash_folder(struct arena *arena, const char *folder, struct tree_list *ret_list,
                     struct str *ret_version, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    struct tree_opts opts = {.folder = folder, .n_threads = 1, .kinds = DIGEST_SHA256};
    uint8_t sha256[SHA256_BYTES];
    if (pool_new(1, &pool, err) < 0) {
        return -1;
    }
    opts.pool = pool;
    if (tree_hash(arena, &opts, ret_list, err) < 0) {
        return -1;
    }
    tree_list_sha256(ret_list, sha256);
    *ret_version = hex_dup(arena, sha256, SHA256_BYTES);
    return 0;
}
