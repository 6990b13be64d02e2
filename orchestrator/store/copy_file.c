/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/copy_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fs.h"

int copy_file(const char *from, const char *to, struct digest_value *ret_value, struct err *err)
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
                                             .kinds = ret_value ? DIGEST_SHA256 : 0},
                       ret_value ? ret_value : &ignored, err);
}
