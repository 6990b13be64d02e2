/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/bundle_copy.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_CHUNK_BYTES ((size_t)1 << 20)

static int make_parent(const char *path, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *slash = strrchr(path, '/');
    return slash && slash != path
               ? fs_mkdir_p(arena_strndup(&arena, path, (size_t)(slash - path)), err)
               : 0;
}

static int copy_bytes(int from_fd, const char *from, int to_fd, const char *to,
                      copy_stop_fn should_stop, struct err *err)
{
    CLEANUP(free) uint8_t *chunk = xmalloc(COPY_CHUNK_BYTES);
    for (;;) {
        ssize_t got = read(from_fd, chunk, COPY_CHUNK_BYTES);
        if (got == 0) {
            return 0;
        }
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_set(err, err_code_of_errno(errno), "read %s: %s", from,
                           err_errno_text(errno));
        }
        if (should_stop && should_stop()) {
            return err_set(err, ERR_INTERRUPTED, "stopped while copying %s", from);
        }
        if (fs_write_all(to_fd, chunk, (size_t)got, to, err) < 0) {
            return -1;
        }
    }
}

int copy_file(const char *from, const char *to, copy_stop_fn should_stop, struct err *err)
{
    CLEANUP(fd) int from_fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    CLEANUP(fd) int to_fd = -1;
    struct stat st;
    if (from_fd < 0 || fstat(from_fd, &st) < 0) {
        return err_set(err, err_code_of_errno(errno), "open %s: %s", from, err_errno_text(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return err_set(err, ERR_INTEGRITY, "%s: expected a regular file", from);
    }
    if (make_parent(to, err) < 0) {
        return -1;
    }
    to_fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (st.st_mode & S_IXUSR) ? 0755 : 0644);
    if (to_fd < 0) {
        return err_set(err, err_code_of_errno(errno), "create %s: %s", to, err_errno_text(errno));
    }
    return copy_bytes(from_fd, from, to_fd, to, should_stop, err);
}

int copy_folder(struct arena *arena, const char *from, const char *to, copy_stop_fn should_stop,
                struct err *err)
{
    struct fs_names paths;
    if (fs_walk(arena, from, &paths, err) < 0 || fs_mkdir_p(to, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < paths.n; idx++) {
        if (copy_file(fs_join(arena, from, paths.items[idx]), fs_join(arena, to, paths.items[idx]),
                      should_stop, err) < 0) {
            return -1;
        }
    }
    return 0;
}
