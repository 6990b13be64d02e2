/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/job.h"

#include <dirent.h>
#include <fcntl.h>

#include "base/vec.h"

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
            struct job_entry of = {.below = below, .name = entry->d_name};
            if (strcmp(of.name, ".") == 0 || strcmp(of.name, "..") == 0 ||
                fstatat(dirfd(folder), of.name, &of.info, AT_SYMLINK_NOFOLLOW) < 0) {
                continue;
            }
            int len =
                snprintf(of.path, sizeof(of.path), "%s%s%s", below, below[0] ? "/" : "", of.name);
            if (len < 0 || strlen(root) + 1 + (size_t)len >= sizeof(of.path)) {
                continue;
            }
            next = fn(ctx, &of);
            if (next == WALK_INTO && S_ISDIR(of.info.st_mode)) {
                VEC_PUSH(&left, xstrdup(of.path));
            }
        }
        if (folder) {
            closedir(folder);
        }
    }
    VEC_RELEASE(&left);
}
