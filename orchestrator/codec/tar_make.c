/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/tar_make.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "codec/ustar.h"

#define READ_BYTES (1u << 20)
#define FILE_MODE  0644

static int fail(struct tar_maker *maker, const char *name, struct err *err)
{
    int code = archive_errno(maker->archive);
    return err_set(err, code ? err_code_of_errno(code) : ERR_IO, "tar: %s: %s", name,
                   archive_error_string(maker->archive));
}

int tar_make_open(struct tar_maker *maker, int fd, struct err *err)
{
    maker->archive = archive_write_new();
    if (!maker->archive) {
        return err_set(err, ERR_INTERNAL, "tar: no memory");
    }
    return archive_write_set_format_pax_restricted(maker->archive) == ARCHIVE_OK &&
                   archive_write_set_bytes_in_last_block(maker->archive, 1) == ARCHIVE_OK &&
                   archive_write_open_fd(maker->archive, fd) == ARCHIVE_OK
               ? 0
               : fail(maker, "open", err);
}

static int put_header(struct tar_maker *maker, const char *name, int64_t size_bytes,
                      struct err *err)
{
    struct archive_entry *entry = archive_entry_new();
    int result;
    if (!entry) {
        return err_set(err, ERR_INTERNAL, "tar: no memory");
    }
    archive_entry_set_pathname_utf8(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, FILE_MODE);
    archive_entry_set_size(entry, size_bytes);
    archive_entry_set_mtime(entry, USTAR_MTIME, 0);
    result = archive_write_header(maker->archive, entry);
    archive_entry_free(entry);
    return result == ARCHIVE_OK ? 0 : fail(maker, name, err);
}

static int put_bytes(struct tar_maker *maker, int fd, const char *path, int64_t size_bytes,
                     struct err *err)
{
    CLEANUP(free) char *buf = xmalloc(READ_BYTES);
    int64_t done = 0;
    ssize_t n = 1;
    while (n > 0) {
        n = read(fd, buf, READ_BYTES);
        if (n < 0) {
            return err_set(err, err_code_of_errno(errno), "read %s: %s", path,
                           err_errno_text(errno));
        }
        done += n;
        if (done > size_bytes || (n == 0 && done != size_bytes)) {
            return err_set(err, ERR_INTEGRITY, "%s: its size changed while it was read", path);
        }
        if (n > 0 && archive_write_data(maker->archive, buf, (size_t)n) != n) {
            return fail(maker, path, err);
        }
    }
    return 0;
}

int tar_make_file(struct tar_maker *maker, const char *name, const char *path, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0) {
        return err_set(err, err_code_of_errno(errno), "open %s: %s", path, err_errno_text(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return err_set(err, ERR_INTEGRITY, "%s: no regular file", path);
    }
    return put_header(maker, name, st.st_size, err) < 0
               ? -1
               : put_bytes(maker, fd, path, st.st_size, err);
}

int tar_make_close(struct tar_maker *maker, struct err *err)
{
    return archive_write_close(maker->archive) == ARCHIVE_OK ? 0 : fail(maker, "close", err);
}

void tar_maker_cleanup(struct tar_maker *maker)
{
    if (maker->archive) {
        archive_write_free(maker->archive);
    }
    *maker = TAR_MAKER_EMPTY;
}
