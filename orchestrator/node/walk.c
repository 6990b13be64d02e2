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
        struct dirent *entry;
        while (folder && next != WALK_END && (entry = readdir(folder))) {
            struct job_entry of = {.below = below,
                                   .name = entry->d_name,
                                   .folder_fd = dirfd(folder),
                                   .kind = (mode_t)DTTOIF(entry->d_type)};
            struct stat info;
            if (strcmp(of.name, ".") == 0 || strcmp(of.name, "..") == 0 ||
                (entry->d_type == DT_UNKNOWN && !job_entry_stat(&of, &info))) {
                continue;
            }
            of.kind = entry->d_type == DT_UNKNOWN ? info.st_mode & S_IFMT : of.kind;
            int len =
                snprintf(of.path, sizeof(of.path), "%s%s%s", below, below[0] ? "/" : "", of.name);
            if (len < 0 || strlen(root) + 1 + (size_t)len >= sizeof(of.path)) {
                continue;
            }
            next = fn(ctx, &of);
            if (next == WALK_INTO && S_ISDIR(of.kind)) {
                VEC_PUSH(&left, xstrdup(of.path));
            }
        }
        if (folder) {
            closedir(folder);
        }
    }
    VEC_RELEASE(&left);
}
