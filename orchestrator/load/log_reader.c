/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/log_reader.h"

#include "base/fs.h"
#include "base/temp.h"
#include "codec/unpack_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNPACKED_MAX (4ull << 30)

static bool is_compressed(int fd)
{
    static const struct str MAGIC[] = {
        {"\x1f\x8b", 2}, {"\x28\xb5\x2f\xfd", 4}, {"\xfd\x37zXZ", 5}, {"BZh", 3}};
    char first[5];
    struct stat st;
    ssize_t len =
        fstat(fd, &st) == 0 && S_ISREG(st.st_mode) ? pread(fd, first, sizeof(first), 0) : -1;
    bool is_one = false;
    for (size_t idx = 0; len > 0 && idx < ARRAY_LEN(MAGIC); idx++) {
        is_one = is_one || str_starts((struct str){first, (size_t)len}, MAGIC[idx]);
    }
    return is_one;
}

bool log_is_compressed(const char *path)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return fd >= 0 && is_compressed(fd);
}

int log_open(const char *path, int *ret_fd, struct err *err)
{
    struct stat st;
    struct err why = {0};
    CLEANUP(fd) int spool = -1;
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    int *found = &fd;
    if (fd < 0) {
        return err_set(err, err_code_of_errno(errno), "%s: %s", path, err_errno_text(errno));
    }
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        return err_set(err, ERR_IO, "%s: expected a file, found a folder", path);
    }
    if (is_compressed(fd) && temp_spool(&spool, &why) == 0 &&
        unpack_raw(path, UNPACKED_MAX, spool, &why) == 0 && lseek(spool, 0, SEEK_SET) == 0) {
        found = &spool;
    }
    (void)posix_fadvise(*found, 0, 0, POSIX_FADV_SEQUENTIAL); /* only a hint */
    *ret_fd = *found;
    *found = -1;
    return 0;
}

int log_must_be_regular(const char *path, struct err *err)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode)
               ? err_set(err, ERR_IO, "%s: expected a regular file", path)
               : 0;
}

int log_read_window(int fd, const char *path, char *window, size_t *ret_len, struct err *err)
{
    ssize_t len;
    do {
        len = read(fd, window, LOG_WINDOW_BYTES);
    } while (len < 0 && errno == EINTR);
    if (len < 0) {
        return err_set(err, ERR_IO, "%s: %s", path, err_errno_text(errno));
    }
    *ret_len = (size_t)len;
    return 0;
}

struct str log_first(struct arena *arena, const char *path)
{
    CLEANUP(fd) int fd = -1;
    char *window = arena_array(arena, char, LOG_WINDOW_BYTES);
    size_t len = 0;
    return log_open(path, &fd, ERR_IGNORED) == 0 &&
                   log_read_window(fd, path, window, &len, ERR_IGNORED) == 0
               ? (struct str){window, len}
               : STR_EMPTY;
}

struct str log_text(struct arena *arena, const char *path, size_t max)
{
    struct str text;
    return fs_read(arena, path, max, &text, ERR_IGNORED) == 0 ? text : STR_EMPTY;
}
