/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fs.h"
#include "codec/unpack_filter.h"

struct unpack_filter {
    struct archive *a;
    const char *name;
    unpack_read_fn read;
    void *ctx;
    struct err err; /* of read: libarchive only passes on that there was one */
};

static la_ssize_t on_read(struct archive *a, void *ctx, const void **ret_ptr)
{
    struct unpack_filter *filter = ctx;
    size_t len;
    if (filter->read(filter->ctx, ret_ptr, &len, &filter->err) < 0) {
        archive_set_error(a, EIO, "read");
        return -1;
    }
    return (la_ssize_t)len;
}

static int fail(struct unpack_filter *filter, struct err *err)
{
    const char *text = archive_error_string(filter->a);
    if (filter->err.code != ERR_NONE) {
        *err = filter->err;
        return -1;
    }
    return err_set(err, ERR_INTEGRITY, "%s: %s", filter->name, text ? text : "truncated");
}

int unpack_filter_new(unpack_read_fn read, void *ctx, bool is_zstd,
                      struct unpack_filter **ret_filter, struct err *err)
{
    CLEANUP(unpack_filter) struct unpack_filter *filter = xcalloc(1, sizeof(*filter));
    struct archive_entry *entry;
    filter->name = is_zstd ? "zstd" : "gzip";
    filter->read = read;
    filter->ctx = ctx;
    filter->a = archive_read_new();
    if (!filter->a ||
        (is_zstd ? archive_read_support_filter_zstd
                 : archive_read_support_filter_gzip)(filter->a) != ARCHIVE_OK ||
        archive_read_support_format_raw(filter->a) != ARCHIVE_OK) {
        return err_set(err, ERR_INTERNAL, "libarchive on this machine cannot read %s",
                       filter->name);
    }
    if (archive_read_open(filter->a, filter, NULL, on_read, NULL) != ARCHIVE_OK ||
        archive_read_next_header(filter->a, &entry) != ARCHIVE_OK) {
        return fail(filter, err);
    }
    if (archive_filter_count(filter->a) < 2) { /* the filter itself, and the file */
        return err_set(err, ERR_INTEGRITY, "%s: its header is damaged or truncated", filter->name);
    }
    *ret_filter = filter;
    filter = NULL;
    return 0;
}

int unpack_filter_next(struct unpack_filter *filter, const void **ret_ptr, size_t *ret_len,
                       struct err *err)
{
    la_int64_t offset;
    int result = archive_read_data_block(filter->a, ret_ptr, ret_len, &offset);
    if (result == ARCHIVE_EOF) {
        *ret_len = 0;
        return 0;
    }
    return result == ARCHIVE_OK ? 0 : fail(filter, err);
}

uint64_t unpack_filter_bytes(const struct unpack_filter *filter)
{
    return (uint64_t)archive_filter_bytes(filter->a, -1);
}

void unpack_filter_free(struct unpack_filter *filter)
{
    if (filter) {
        archive_read_free(filter->a);
        free(filter);
    }
}

#define WINDOW_BYTES (64u << 10)

CLEANUP_POINTER(reader, struct archive, archive_read_free);
CLEANUP_POINTER(writer, struct archive, archive_write_free);
CLEANUP_POINTER(entry, struct archive_entry, archive_entry_free);

static int copy_all(struct archive *reader, const char *path, uint64_t max, int fd, struct err *err)
{
    CLEANUP(free) char *window = xmalloc(WINDOW_BYTES);
    uint64_t n_bytes = 0;
    for (;;) {
        la_ssize_t len = archive_read_data(reader, window, WINDOW_BYTES);
        if (len < 0) {
            return err_set(err, ERR_INTEGRITY, "%s: %s", path, archive_error_string(reader));
        }
        if (len == 0) {
            return 0;
        }
        n_bytes += (uint64_t)len;
        if (n_bytes > max) {
            return err_set(err, ERR_PARSE, "%s: holds more than %" PRIu64 " bytes", path, max);
        }
        if (fs_write_all(fd, window, (size_t)len, "the log's own bytes", err) < 0) {
            return -1;
        }
    }
}

int unpack_raw(const char *path, uint64_t max, int fd, struct err *err)
{
    CLEANUP(reader) struct archive *reader = archive_read_new();
    struct archive_entry *entry;
    ASSERT(reader);
    if (archive_read_support_filter_gzip(reader) < ARCHIVE_WARN ||
        archive_read_support_filter_zstd(reader) < ARCHIVE_WARN ||
        archive_read_support_filter_xz(reader) < ARCHIVE_WARN ||
        archive_read_support_filter_bzip2(reader) < ARCHIVE_WARN ||
        archive_read_support_format_raw(reader) != ARCHIVE_OK) {
        return err_set(err, ERR_INTERNAL, "libarchive: %s", archive_error_string(reader));
    }
    if (archive_read_open_filename(reader, path, WINDOW_BYTES) != ARCHIVE_OK ||
        archive_read_next_header(reader, &entry) != ARCHIVE_OK ||
        archive_filter_count(reader) < 2) {
        const char *why = archive_error_string(reader);
        return err_set(err, ERR_INTEGRITY, "%s: %s", path, why ? why : "it is not compressed");
    }
    return copy_all(reader, path, max, fd, err);
}

int pack_raw(const char *from, const char *to, struct err *err)
{
    CLEANUP(writer) struct archive *writer = archive_write_new();
    CLEANUP(entry) struct archive_entry *entry = archive_entry_new();
    CLEANUP(free) char *window = xmalloc(WINDOW_BYTES);
    CLEANUP(fd) int fd = open(from, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : 0;
    bool is_written = archive_write_add_filter_zstd(writer) == ARCHIVE_OK &&
                      archive_write_set_format_raw(writer) == ARCHIVE_OK &&
                      archive_write_open_filename(writer, to) == ARCHIVE_OK;
    archive_entry_set_filetype(entry, AE_IFREG);
    is_written = is_written && archive_write_header(writer, entry) == ARCHIVE_OK;
    while (is_written && fd >= 0 && (len = read(fd, window, WINDOW_BYTES)) > 0) {
        is_written = archive_write_data(writer, window, (size_t)len) == len;
    }
    if (len < 0) {
        return err_errno(err, "read", from);
    }
    return is_written && archive_write_close(writer) == ARCHIVE_OK
               ? 0
               : err_set(err, ERR_IO, "write %s: %s", to, archive_error_string(writer));
}
