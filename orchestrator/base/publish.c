/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"

#define PATH_LEN_MAX 4096
int publish_data(int fd, const char *name, struct err *err)
{
    /* Some file systems cannot sync a folder and return EINVAL: nothing more can be done there. */
    return fsync(fd) < 0 && errno != EINVAL ? err_errno(err, "sync", name) : 0;
}

int publish_folder(const char *path, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? err_errno(err, "open", path) : publish_data(fd, path, err);
}

int publish_parent(const char *path, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str folder = str_rcut(str_rtrim(str_of(path), 1, "/"), 0, "/");
    return publish_folder(folder.len ? str_z(&arena, folder) : ".", err);
}

int publish_all(int fd, const char *name, struct err *err)
{
    return syncfs(fd) < 0 ? err_errno(err, "sync", name) : 0;
}

int publish_name(const char *temp, const char *path, struct err *err)
{
    return rename(temp, path) < 0 ? err_errno(err, "rename to", path) : publish_parent(path, err);
}

int publish_file(int fd, const char *temp, const char *path, struct err *err)
{
    return publish_data(fd, temp, err) < 0 ? -1 : publish_name(temp, path, err);
}

int publish_tree(const char *made, const char *path, struct err *err)
{
    CLEANUP(fd) int fd = open(made, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(err, "open", made);
    }
    if (publish_all(fd, made, err) < 0) {
        return -1;
    }
    /* Some file systems (NFS) do not know "not over another": there a rename replaces an empty folder at most. */
    if (renameat2(AT_FDCWD, made, AT_FDCWD, path, RENAME_NOREPLACE) < 0 &&
        (errno != EINVAL || rename(made, path) < 0)) {
        return err_errno(err, "rename to", path);
    }
    return publish_parent(path, err);
}
