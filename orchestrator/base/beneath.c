/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fs.h"

#define PATH_BYTES 4096

static int walk(int root_fd, const char *path, int flags, mode_t mode)
{
    CLEANUP(fd) int at = -1;
    char part[PATH_BYTES];
    for (;;) {
        size_t len = strcspn(path, "/");
        if (len == 0 || len >= sizeof(part)) {
            errno = len ? ENAMETOOLONG : EINVAL;
            return -1;
        }
        memcpy(part, path, len);
        part[len] = '\0';
        if (strcmp(part, ".") == 0 || strcmp(part, "..") == 0) {
            errno = EXDEV;
            return -1;
        }
        if (path[len] == '\0') {
            return openat(at < 0 ? root_fd : at, part, flags | O_NOFOLLOW | O_CLOEXEC, mode);
        }
        int next =
            openat(at < 0 ? root_fd : at, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) {
            return -1;
        }
        fd_close(&at);
        at = next;
        path += len + 1;
    }
}

int beneath_open(int root_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)(flags | O_CLOEXEC | O_NOFOLLOW),
        .mode = (flags & O_CREAT) ? mode : 0u,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
    };
    long fd = syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
    /* Before Linux 5.6, or in a container whose seccomp filter does not know the call. */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        return walk(root_fd, path, flags, mode);
    }
    return (int)fd;
}

/* The folder that holds the last part: root_fd itself if the path has one part only. */
static int open_parent(int root_fd, const char *path, const char **ret_last)
{
    char parent[PATH_BYTES];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    *ret_last = slash ? slash + 1 : path;
    if (len >= sizeof(parent)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    if (!slash) {
        return fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    }
    memcpy(parent, path, len);
    parent[len] = '\0';
    return beneath_open(root_fd, parent, O_RDONLY | O_DIRECTORY, 0);
}

int beneath_mkdir(int root_fd, const char *path, mode_t mode)
{
    const char *last;
    CLEANUP(fd) int parent = open_parent(root_fd, path, &last);
    CLEANUP(fd) int made = -1;
    if (parent < 0 || (mkdirat(parent, last, mode) < 0 && errno != EEXIST)) {
        return -1;
    }
    made = openat(parent, last, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return made < 0 ? -1 : fchmod(made, mode);
}

int beneath_symlink(int root_fd, const char *path, const char *target)
{
    const char *last;
    CLEANUP(fd) int parent = open_parent(root_fd, path, &last);
    return parent < 0 ? -1 : symlinkat(target, parent, last);
}

int beneath_link(int root_fd, const char *old_path, const char *path)
{
    const char *last, *old_last;
    CLEANUP(fd) int parent = open_parent(root_fd, path, &last);
    CLEANUP(fd) int old_parent = open_parent(root_fd, old_path, &old_last);
    return parent < 0 || old_parent < 0 ? -1 : linkat(old_parent, old_last, parent, last, 0);
}
