/* SPDX-License-Identifier: Apache-2.0 */
/* The results of hashing a folder: a list, or the differences from one. */
#include "base/base.h"

#include "base/fs.h"

#include "base/stop.h"
#include "base/vec.h"
#include "sys/tree_impl.h"
#include <errno.h>
#include <sys/stat.h>

/* The files of a tree, in the order of their whole paths' bytes. A symlink counts as the file that it leads to. */

static bool is_below(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (len == 1 || path[len] == '/');
}

/* What is wrong with an entry that is neither a file nor a folder; NULL: it is a link to a file of the tree. */
static const char *judge(const char *path, const char *real_folder)
{
    CLEANUP(free) char *target = NULL;
    struct stat info;
    if (lstat(path, &info) < 0) {
        return err_errno_text(errno);
    }
    if (!S_ISLNK(info.st_mode)) {
        return "expected a file, a folder or a link, found a device, pipe or socket";
    }
    target = realpath(path, NULL);
    if (!target) {
        return "a dangling link";
    }
    if (!is_below(target, real_folder)) {
        return "a link that leads out of the folder";
    }
    return stat(target, &info) < 0 || !S_ISREG(info.st_mode)
               ? "a link to something that is not a file"
               : NULL;
}

static int check_others(struct arena *arena, const char *folder, const struct fs_names *others,
                        struct err *err)
{
    CLEANUP(free) char *real_folder = realpath(folder, NULL);
    if (!real_folder) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", folder, err_errno_text(errno));
    }
    for (size_t idx = 0; idx < others->n; idx++) {
        const char *fault = judge(fs_join(arena, real_folder, others->items[idx]), real_folder);
        if (fault) {
            return err_set(err, ERR_INTEGRITY, "%s/%s: %s", folder, others->items[idx], fault);
        }
    }
    return 0;
}

static int walk(struct arena *arena, const struct tree_opts *opts, struct fs_names *ret_files,
                struct err *err)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    struct fs_names folders, others;
    if (fs_walk_all(arena, opts->folder, ret_files, &folders, &others, err) < 0 ||
        check_others(&scratch, opts->folder, &others, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ret_files->n; idx++) {
        if (strlen(ret_files->items[idx]) >= TREE_PATH_MAX) {
            return err_set(err, ERR_IO, "%s/%.200s...: the path is too long", opts->folder,
                           ret_files->items[idx]);
        }
    }
    return stop_is_asked() ? err_set(err, ERR_INTERRUPTED, "%s: interrupted", opts->folder) : 0;
}

/* ---- a list of what is there ---- */

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
    struct fs_names names;
    if (walk(arena, opts, &names, err) < 0) {
        return -1;
    }
    struct tree_list list = {.files = arena_array(arena, struct tree_file, names.n + 1),
                             .n = names.n};
    for (size_t idx = 0; idx < names.n; idx++) {
        list.files[idx].path = names.items[idx];
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
    unsigned kinds;              /* that decide */
    uint8_t *states;             /* owned; parallel to expected->files */
    struct digest_value **found; /* owned; next to them: of those that differ, from malloc */
    size_t next_idx;
    struct {
        const char **items;
        size_t n;
        size_t n_max;
    } extra;
};

static void tree_check_cleanup(struct tree_check *check)
{
    for (size_t idx = 0; idx < check->expected->n; idx++) {
        free(check->found[idx]);
    }
    free(check->states);
    free(check->found);
    VEC_RELEASE(&check->extra);
}

static struct tree_check check_begin(struct arena *arena, const struct tree_list *expected,
                                     unsigned kinds)
{
    return (struct tree_check){.arena = arena,
                               .expected = expected,
                               .kinds = kinds,
                               .states = xcalloc(expected->n, 1),
                               .found = xcalloc(expected->n, sizeof(struct digest_value *))};
}

/* Files come in the list's order: one walk along both. */
static bool match(struct tree_check *check, const char *path)
{
    const struct tree_list *expected = check->expected;
    int order = 1;
    while (check->next_idx < expected->n &&
           (order = strcmp(expected->files[check->next_idx].path, path)) < 0) {
        check->next_idx++;
    }
    if (order == 0) {
        check->states[check->next_idx++] = FOUND_WANTED;
    } else {
        VEC_PUSH(&check->extra, arena_strndup(check->arena, path, strlen(path)));
    }
    return order == 0;
}

static void judge_value(void *ctx, size_t idx, const struct digest_value *value)
{
    struct tree_check *check = ctx;
    const struct tree_list *expected = check->expected;
    bool is_same =
        (!(check->kinds & DIGEST_SHA256) ||
         memcmp(expected->files[idx].sha256, value->sha256, SHA256_BYTES) == 0) &&
        (!(check->kinds & DIGEST_MD5) || memcmp(expected->md5[idx], value->md5, MD5_BYTES) == 0);
    check->states[idx] = is_same ? FOUND_SAME : FOUND_OTHER;
    if (!is_same) {
        check->found[idx] = xmalloc(sizeof(*value));
        *check->found[idx] = *value;
    }
}

static void note_unreadable(void *ctx, size_t idx)
{
    ((struct tree_check *)ctx)->states[idx] = FOUND_UNREADABLE;
}

static void collect(struct tree_check *check, struct tree_differences *ret_differences)
{
    static const enum tree_fault FAULTS[] = {[FOUND_NOT] = TREE_MISSING,
                                             [FOUND_OTHER] = TREE_CORRUPT,
                                             [FOUND_UNREADABLE] = TREE_UNREADABLE};
    const struct tree_list *expected = check->expected;
    struct {
        struct tree_difference *items;
        size_t n;
        size_t n_max;
    } differences = {0};
    size_t at = 0;
    for (size_t idx = 0; idx <= expected->n; idx++) {
        while (
            at < check->extra.n &&
            (idx == expected->n || strcmp(check->extra.items[at], expected->files[idx].path) < 0)) {
            VEC_PUSH(&differences, (struct tree_difference){.fault = TREE_EXTRA,
                                                            .path = check->extra.items[at++]});
        }
        if (idx < expected->n && check->states[idx] != FOUND_SAME) {
            ASSERT(check->states[idx] != FOUND_WANTED);
            const struct tree_file *file = &expected->files[idx];
            VEC_PUSH(&differences,
                     (struct tree_difference){FAULTS[check->states[idx]], file->path,
                                              expected->lacks_sha256 ? NULL : file->sha256,
                                              check->found[idx]});
            arena_adopt(check->arena, check->found[idx]);
            check->found[idx] = NULL;
        }
    }
    arena_adopt(check->arena, differences.items);
    *ret_differences = (struct tree_differences){differences.items, differences.n};
}

void tree_compare(struct arena *arena, const struct tree_list *expected,
                  const struct tree_list *found, struct tree_differences *ret_differences)
{
    bool has_sha256 = !expected->lacks_sha256 && !found->lacks_sha256;
    CLEANUP(tree_check)
    struct tree_check check = check_begin(arena, expected, has_sha256 ? DIGEST_SHA256 : DIGEST_MD5);
    ASSERT(has_sha256 || (expected->md5 && found->md5) || expected->n == 0 || found->n == 0);
    for (size_t idx = 0; idx < found->n; idx++) {
        struct digest_value value = {0};
        memcpy(value.sha256, found->files[idx].sha256, SHA256_BYTES);
        if (found->md5) {
            memcpy(value.md5, found->md5[idx], MD5_BYTES);
        }
        if (match(&check, found->files[idx].path)) {
            judge_value(&check, check.next_idx - 1, &value);
        }
    }
    collect(&check, ret_differences);
}

int tree_verify(struct arena *arena, const struct tree_opts *opts, const struct tree_list *expected,
                struct tree_verify_result *ret_result, struct err *err)
{
    const unsigned kinds =
        (expected->lacks_sha256 ? 0u : DIGEST_SHA256) | (expected->md5 ? DIGEST_MD5 : 0u);
    CLEANUP(tree_check) struct tree_check check = check_begin(arena, expected, kinds);
    struct tree_run run = {.opts = opts,
                           .kinds = kinds,
                           .files = expected->files,
                           .n = expected->n,
                           .is_wanted = check.states,
                           .on_value = judge_value,
                           .on_unreadable = note_unreadable,
                           .ctx = &check};
    struct tree_verify_result result = {0};
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    struct fs_names names;
    if (walk(&scratch, opts, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        (void)match(&check, names.items[idx]);
    }
    if (expected->n && tree_run(&run, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < expected->n; idx++) {
        result.n_checked += check.states[idx] == FOUND_SAME || check.states[idx] == FOUND_OTHER;
    }
    collect(&check, &result.differences);
    result.n_cached = atomic_load(&run.n_cached);
    result.n_bytes_read = atomic_load(&run.bytes_read);
    *ret_result = result;
    return 0;
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
