/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/tar_make.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/stop.h"
#include "codec/ustar.h"

#define READ_BYTES   (1u << 20)
#define FILE_MODE    0644
#define PROGRAM_MODE 0755
/* Level 1: most of what is packed are images. No time, so that equal input gives equal bytes. */
#define GZIP_OPTIONS "gzip:compression-level=1,gzip:!timestamp"

static int fail(struct tar_maker *maker, const char *name, struct err *err)
{
    int code = archive_errno(maker->archive);
    if (maker->err.code != ERR_NONE) {
        *err = maker->err;
        return -1;
    }
    return err_set(err, code ? err_code_of_errno(code) : ERR_IO, "tar: %s: %s", name,
                   archive_error_string(maker->archive));
}

static la_ssize_t on_write(struct archive *archive, void *ctx, const void *ptr, size_t len)
{
    struct tar_maker *maker = ctx;
    int result = 0;
    if (maker->err.code != ERR_NONE) { /* libarchive tries again when it is closed */
        return -1;
    }
    if (maker->buf) {
        strbuf_add(maker->buf, ptr, len);
        result = maker->buf->is_full
                     ? err_set(&maker->err, ERR_INTERNAL, "the inner archive has over %zu bytes",
                               maker->buf->cap_bytes)
                     : 0;
    } else {
        digest_update(&maker->digest, ptr, len);
        result = fs_write_all(maker->fd, ptr, len, "the tar", &maker->err);
    }
    if (result < 0) {
        archive_set_error(archive, EIO, "write");
        return -1;
    }
    return (la_ssize_t)len;
}

static int open_archive(struct tar_maker *maker, bool is_gzip, struct err *err)
{
    maker->archive = archive_write_new();
    if (!maker->archive) {
        return err_set(err, ERR_INTERNAL, "tar: no memory");
    }
    digest_start(&maker->digest, DIGEST_MD5 | DIGEST_SHA256);
    return archive_write_set_format_pax_restricted(maker->archive) == ARCHIVE_OK &&
                   (!is_gzip ||
                    (archive_write_add_filter_gzip(maker->archive) == ARCHIVE_OK &&
                     archive_write_set_options(maker->archive, GZIP_OPTIONS) == ARCHIVE_OK)) &&
                   archive_write_set_bytes_in_last_block(maker->archive, 1) == ARCHIVE_OK &&
                   archive_write_open(maker->archive, maker, NULL, on_write, NULL) == ARCHIVE_OK
               ? 0
               : fail(maker, "open", err);
}

int tar_make_open(struct tar_maker *maker, int fd, bool is_gzip, struct err *err)
{
    *maker = (struct tar_maker){.fd = fd};
    return open_archive(maker, is_gzip, err);
}

int tar_make_open_inner(struct tar_maker *maker, struct strbuf *buf, struct err *err)
{
    *maker = (struct tar_maker){.fd = -1, .buf = buf};
    return open_archive(maker, false, err);
}

static int put_header(struct tar_maker *maker, const char *name, int64_t size_bytes,
                      struct err *err)
{
    struct archive_entry *entry = archive_entry_new();
    if (!entry) {
        return err_set(err, ERR_INTERNAL, "tar: no memory");
    }
    archive_entry_set_pathname_utf8(entry, name);
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, maker->is_executable ? PROGRAM_MODE : FILE_MODE);
    archive_entry_set_size(entry, size_bytes);
    archive_entry_set_mtime(entry, USTAR_MTIME, 0);
    int result = archive_write_header(maker->archive, entry);
    archive_entry_free(entry);
    return result == ARCHIVE_OK ? 0 : fail(maker, name, err);
}

static int put_bytes(struct tar_maker *maker, int fd, const char *path, int64_t size_bytes,
                     struct digest *digest, struct err *err)
{
    CLEANUP(free) char *buf = xmalloc(READ_BYTES);
    int64_t done = 0;
    ssize_t n = 1;
    while (n > 0) {
        n = read(fd, buf, READ_BYTES);
        if (n < 0) {
            return err_errno(err, "read", path);
        }
        done += n;
        if (done > size_bytes || (n == 0 && done != size_bytes)) {
            return err_set(err, ERR_INTEGRITY, "%s: its size changed while it was read", path);
        }
        if (stop_is_asked()) {
            return err_set(err, ERR_INTERRUPTED, "stopped");
        }
        if (n > 0 && archive_write_data(maker->archive, buf, (size_t)n) != n) {
            return fail(maker, path, err);
        }
        digest_update(digest, buf, (size_t)n);
    }
    return 0;
}

int tar_make_file(struct tar_maker *maker, const char *name, const char *path, uint8_t *ret_sha256,
                  struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    struct stat st;
    digest_start(&digest, DIGEST_SHA256);
    if (fs_open(path, &fd, &st, err) < 0 || put_header(maker, name, st.st_size, err) < 0 ||
        put_bytes(maker, fd, path, st.st_size, &digest, err) < 0) {
        return -1;
    }
    if (ret_sha256) {
        memcpy(ret_sha256, digest_finish(&digest).sha256, SHA256_BYTES);
    }
    return 0;
}

int tar_make_bytes(struct tar_maker *maker, struct str name, const void *ptr, size_t len,
                   struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *text = str_z(&arena, name);
    if (put_header(maker, text, (int64_t)len, err) < 0) {
        return -1;
    }
    return archive_write_data(maker->archive, ptr, len) == (la_ssize_t)len ? 0
                                                                           : fail(maker, text, err);
}

int tar_make_close(struct tar_maker *maker, struct digest_value *ret_value, struct err *err)
{
    if (archive_write_close(maker->archive) != ARCHIVE_OK) {
        return fail(maker, "close", err);
    }
    *ret_value = digest_finish(&maker->digest);
    return 0;
}

void tar_maker_cleanup(struct tar_maker *maker)
{
    if (maker->archive) {
        archive_write_free(maker->archive);
    }
    digest_release(&maker->digest);
    *maker = TAR_MAKER_EMPTY;
}
