/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/job.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/vec.h"

bool job_entry_stat(const struct job_entry *entry, struct stat *ret_info)
{
    return fstatat(entry->folder_fd, entry->name, ret_info, AT_SYMLINK_NOFOLLOW) == 0;
}

/* False: it is "." or "..", gone, or its path is too long. */
static bool entry_of(const char *root, const char *below, DIR *folder, const struct dirent *found,
                     struct job_entry *ret_entry)
{
    struct job_entry entry = {.below = below,
                              .name = found->d_name,
                              .folder_fd = dirfd(folder),
                              .kind = (mode_t)DTTOIF(found->d_type)};
    struct stat info;
    int len;
    if (strcmp(entry.name, ".") == 0 || strcmp(entry.name, "..") == 0) {
        return false;
    }
    if (found->d_type == DT_UNKNOWN) {
        if (!job_entry_stat(&entry, &info)) {
            return false;
        }
        entry.kind = info.st_mode & S_IFMT;
    }
    len =
        snprintf(entry.path, sizeof(entry.path), "%s%s%s", below, below[0] ? "/" : "", entry.name);
    *ret_entry = entry;
    return len >= 0 && strlen(root) + 1 + (size_t)len < sizeof(entry.path);
}

void job_walk(const char *root, job_walk_fn fn, void *ctx)
{
    VEC(char *) left = {0}; /* folders, below root */
    enum job_walk next = WALK_ON;
    VEC_PUSH(&left, xstrdup(""));
    while (left.n > 0) {
        char *below CLEANUP(free) = left.items[--left.n];
        char path[JOB_PATH_BYTES];
        snprintf(path, sizeof(path), "%s/%s", root, below);
        DIR *folder = next == WALK_END ? NULL : opendir(path);
        struct dirent *found;
        while (folder && next != WALK_END && (found = readdir(folder))) {
            struct job_entry entry;
            if (entry_of(root, below, folder, found, &entry)) {
                next = fn(ctx, &entry);
                if (next == WALK_INTO && S_ISDIR(entry.kind)) {
                    VEC_PUSH(&left, xstrdup(entry.path));
                }
            }
        }
        if (folder) {
            closedir(folder);
        }
    }
    VEC_RELEASE(&left);
}
