/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/bundle_copy.h"

#include <fcntl.h>
#include <sys/stat.h>

int copy_file(const char *from, const char *to, copy_stop_fn should_stop,
              struct digest_value *ret_value, struct err *err)
{
    CLEANUP(fd) int from_fd = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    CLEANUP(fd) int to_fd = -1;
    struct digest_value ignored;
    struct stat st;
    if (from_fd < 0 || fstat(from_fd, &st) < 0) {
        return err_errno(err, "open", from);
    }
    if (!S_ISREG(st.st_mode)) {
        return err_set(err, ERR_INTEGRITY, "%s: expected a regular file", from);
    }
    if (fs_mkdir_above(to, err) < 0) {
        return -1;
    }
    to_fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (st.st_mode & S_IXUSR) ? 0755 : 0644);
    if (to_fd < 0) {
        return err_errno(err, "create", to);
    }
    return digest_copy(&(struct digest_copy){.from_fd = from_fd,
                                             .to_fd = to_fd,
                                             .name = from,
                                             .kinds = ret_value ? DIGEST_SHA256 : 0,
                                             .should_stop = should_stop},
                       ret_value ? ret_value : &ignored, err);
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
                      should_stop, NULL, err) < 0) {
            return -1;
        }
    }
    return 0;
}
