/* SPDX-License-Identifier: Apache-2.0 */
/* First, because it declares a function that base/banned.h poisons; uselocale is for this thread alone. */
#include <locale.h>

#include "base/base.h"

#include "codec/libarchive_impl.h"
#include "codec/tar_make.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/stop.h"

#define BLOCK_BYTES  (1u << 20)
#define PROGRAM_MODE 0755
/* Level 1: most of what is packed are images. No time, so that equal input gives equal bytes. */
#define GZIP_OPTIONS "gzip:compression-level=1,gzip:!timestamp"

static int fail(struct tar_maker *maker, const char *name, struct err *err)
{
    if (maker->err.code != ERR_NONE) {
        return err_pass(err, &maker->err);
    }
    return err_set(err, ERR_IO, "tar: %s: %s", name, la.error_string(maker->archive));
}

static la_ssize_t on_write(struct archive *archive, void *ctx, const void *ptr, size_t len)
{
    struct tar_maker *maker = ctx;
    /* After an error libarchive tries again when it is closed. */
    if (maker->err.code != ERR_NONE || maker->write(maker->ctx, ptr, len, &maker->err) < 0) {
        la.set_error(archive, EIO, "write");
        return -1;
    }
    return (la_ssize_t)len;
}

static int to_fd(void *ctx, const void *ptr, size_t len, struct err *err)
{
    struct tar_maker *maker = ctx;
    digest_update(&maker->digest, ptr, len);
    return fs_write_all(maker->fd, ptr, len, "the tar", err);
}

static int to_buf(void *ctx, const void *ptr, size_t len, struct err *err)
{
    struct strbuf *buf = ctx;
    strbuf_add(buf, ptr, len);
    return buf->is_full
               ? err_set(err, ERR_INTERNAL, "the inner archive has over %zu bytes", buf->cap_bytes)
               : 0;
}

static int open_archive(struct tar_maker *maker, bool is_gzip, struct err *err)
{
    if (libarchive_open(err) < 0) {
        return -1;
    }
    maker->archive = la.write_new();
    maker->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!maker->archive || !maker->locale) {
        return err_set(err, ERR_INTERNAL, "tar: no memory, or no locale C.UTF-8");
    }
    digest_start(&maker->digest, DIGEST_MD5 | DIGEST_SHA256);
    /* What is written for another archive's bytes, or into one, is ustar alone (tar_make.h). */
    return (maker->fd < 0 ? la.write_set_format_ustar
                          : la.write_set_format_pax_restricted)(maker->archive) == ARCHIVE_OK &&
                   (!is_gzip ||
                    (la.write_add_filter_gzip(maker->archive) == ARCHIVE_OK &&
                     la.write_set_options(maker->archive, GZIP_OPTIONS) == ARCHIVE_OK)) &&
                   la.write_set_bytes_in_last_block(maker->archive, 1) == ARCHIVE_OK &&
                   la.write_open(maker->archive, maker, NULL, on_write, NULL) == ARCHIVE_OK
               ? 0
               : fail(maker, "open", err);
}

int tar_make_open(struct tar_maker *maker, int fd, bool is_gzip, struct err *err)
{
    *maker = (struct tar_maker){.fd = fd, .write = to_fd, .ctx = maker};
    return open_archive(maker, is_gzip, err);
}

int tar_make_open_inner(struct tar_maker *maker, struct strbuf *buf, struct err *err)
{
    return tar_make_open_to(maker, to_buf, buf, err);
}

int tar_make_open_to(struct tar_maker *maker, tar_make_fn write, void *ctx, struct err *err)
{
    *maker = (struct tar_maker){.fd = -1, .write = write, .ctx = ctx};
    return open_archive(maker, false, err);
}

int tar_make_begin(struct tar_maker *maker, const char *name, uint64_t size_bytes, struct err *err)
{
    /* libarchive converts names by the thread's locale: UTF-8, whatever the user's locale is. */
    locale_t old_locale = uselocale(maker->locale);
    struct archive_entry *entry = la.entry_new();
    ASSERT(entry);
    la.entry_set_pathname(entry, name);
    la.entry_set_filetype(entry, AE_IFREG);
    la.entry_set_perm(entry, maker->is_executable ? PROGRAM_MODE : TAR_MAKE_MODE);
    la.entry_set_size(entry, (int64_t)size_bytes);
    la.entry_set_mtime(entry, TAR_MAKE_MTIME, 0);
    int result = la.write_header(maker->archive, entry);
    la.entry_free(entry);
    uselocale(old_locale);
    maker->left_bytes = size_bytes;
    return result == ARCHIVE_OK ? 0 : fail(maker, name, err);
}

int tar_make_data(struct tar_maker *maker, const void *ptr, size_t len, struct err *err)
{
    if (len > maker->left_bytes) {
        return err_set(err, ERR_INTEGRITY, "it grew while it was read");
    }
    maker->left_bytes -= len;
    return la.write_data(maker->archive, ptr, len) == (la_ssize_t)len ? 0
                                                                      : fail(maker, "data", err);
}

int tar_make_end(struct tar_maker *maker, struct err *err)
{
    return maker->left_bytes == 0
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "it shrank while it was read: %" PRIu64 " bytes are missing",
                         maker->left_bytes);
}

static int put_file(struct tar_maker *maker, int fd, const char *path, struct digest *digest,
                    struct err *err)
{
    CLEANUP(free) char *buf = xmalloc(BLOCK_BYTES);
    size_t len = 1;
    while (len > 0) {
        if (stop_is_asked()) {
            return err_set(err, ERR_INTERRUPTED, "stopped");
        }
        if (fs_fill(fd, buf, BLOCK_BYTES, path, &len, err) < 0 ||
            tar_make_data(maker, buf, len, err) < 0) {
            return -1;
        }
        digest_update(digest, buf, len);
    }
    return tar_make_end(maker, err);
}

int tar_make_file(struct tar_maker *maker, const char *name, const char *path, uint8_t *ret_sha256,
                  struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    struct stat st;
    digest_start(&digest, DIGEST_SHA256);
    if (fs_open(path, &fd, &st, err) < 0 ||
        tar_make_begin(maker, name, (uint64_t)st.st_size, err) < 0) {
        return -1;
    }
    if (put_file(maker, fd, path, &digest, err) < 0) {
        return err_wrap(err, "%s", path);
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
    return tar_make_begin(maker, str_z(&arena, name), len, err) < 0
               ? -1
               : tar_make_data(maker, ptr, len, err);
}

int tar_make_close(struct tar_maker *maker, struct digest_value *ret_value, struct err *err)
{
    if (la.write_close(maker->archive) != ARCHIVE_OK) {
        return fail(maker, "close", err);
    }
    *ret_value = digest_finish(&maker->digest);
    return 0;
}

void tar_maker_cleanup(struct tar_maker *maker)
{
    libarchive_write_free(maker->archive);
    if (maker->locale) {
        freelocale(maker->locale);
    }
    digest_release(&maker->digest);
    *maker = TAR_MAKER_EMPTY;
}
