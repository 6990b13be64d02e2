/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a tree, in the order of their whole paths' bytes. A symlink counts as the file that it leads to. */
#include "base/base.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "sys/tree_impl.h"

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

int tree_walk(const char *folder, bool (*should_stop)(void), tree_visit_fn visit, void *ctx,
              struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct fs_names files, folders, others;
    if (fs_walk_all(&arena, folder, &files, &folders, &others, err) < 0 ||
        check_others(&arena, folder, &others, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < files.n; idx++) {
        const char *path = files.items[idx];
        size_t len = strlen(path);
        if ((idx & 1023) == 0 && should_stop && should_stop()) {
            return err_set(err, ERR_INTERRUPTED, "%s: interrupted", folder);
        }
        if (len >= TREE_PATH_MAX) {
            return err_set(err, ERR_IO, "%s/%.200s...: the path is too long", folder, path);
        }
        if (visit(ctx, path, len, err) < 0) {
            return -1;
        }
    }
    return 0;
}
