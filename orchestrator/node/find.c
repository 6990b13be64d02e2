/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/job.h"

#include <dirent.h>
#include <sys/stat.h>

#include "base/vec.h"

#define PATH_MAX_BYTES 5120

struct folders { /* still to be looked into; owned */
    char **items;
    size_t n, n_max;
};

static bool is_folder(const char *path, const struct dirent *entry)
{
    struct stat info;
    if (entry->d_type != DT_UNKNOWN) {
        return entry->d_type == DT_DIR;
    }
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* What lies in dir; true: it is a job's own. */
static bool look_into(const char *dir, struct folders *below)
{
    DIR *folder = opendir(dir);
    bool is_job = false;
    struct dirent *entry;
    while (folder && (entry = readdir(folder))) {
        char path[PATH_MAX_BYTES];
        int len = snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || len < 0 ||
            (size_t)len >= sizeof(path)) {
            continue;
        }
        if (strcmp(entry->d_name, "claim") == 0 || strcmp(entry->d_name, "pid") == 0) {
            is_job = true;
        } else if (is_folder(path, entry)) {
            VEC_PUSH(below, xstrdup(path));
        }
    }
    if (folder) {
        closedir(folder);
    }
    return is_job;
}

void job_find(const char *root, job_found_fn fn, void *ctx)
{
    struct folders left = {0};
    bool goes_on = true;
    VEC_PUSH(&left, xstrdup(root));
    while (left.n > 0) {
        char *dir CLEANUP(free) = left.items[--left.n];
        if (goes_on && look_into(dir, &left)) {
            goes_on = fn(ctx, dir);
        }
    }
    VEC_RELEASE(&left);
}
