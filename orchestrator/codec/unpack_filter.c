/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fs.h"
#include "codec/libarchive_impl.h"
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
        la.set_error(a, EIO, "read");
        return -1;
    }
    return (la_ssize_t)len;
}

static int fail(struct unpack_filter *filter, struct err *err)
{
    const char *text = la.error_string(filter->a);
    if (filter->err.code != ERR_NONE) {
        return err_pass(err, &filter->err);
    }
    return err_set(err, ERR_INTEGRITY, "%s: %s", filter->name, text ? text : "truncated");
}

int unpack_filter_new(unpack_read_fn read, void *ctx, bool is_zstd,
                      struct unpack_filter **ret_filter, struct err *err)
{
    CLEANUP(unpack_filter) struct unpack_filter *filter = xcalloc(1, sizeof(*filter));
    struct archive_entry *entry;
    if (libarchive_open(err) < 0) {
        return -1;
    }
    filter->name = is_zstd ? "zstd" : "gzip";
    filter->read = read;
    filter->ctx = ctx;
    filter->a = la.read_new();
    if (!filter->a ||
        (is_zstd ? la.read_support_filter_zstd : la.read_support_filter_gzip)(filter->a) !=
            ARCHIVE_OK ||
        la.read_support_format_raw(filter->a) != ARCHIVE_OK) {
        return err_set(err, ERR_INTERNAL, "libarchive on this machine cannot read %s",
                       filter->name);
    }
    if (la.read_open(filter->a, filter, NULL, on_read, NULL) != ARCHIVE_OK ||
        la.read_next_header(filter->a, &entry) != ARCHIVE_OK) {
        return fail(filter, err);
    }
    if (la.filter_count(filter->a) < 2) { /* the filter itself, and the file */
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
    int result = la.read_data_block(filter->a, ret_ptr, ret_len, &offset);
    if (result == ARCHIVE_EOF) {
        *ret_len = 0;
        return 0;
    }
    return result == ARCHIVE_OK ? 0 : fail(filter, err);
}

uint64_t unpack_filter_bytes(const struct unpack_filter *filter)
{
    return (uint64_t)la.filter_bytes(filter->a, -1);
}

void unpack_filter_free(struct unpack_filter *filter)
{
    if (filter) {
        libarchive_read_free(filter->a);
        free(filter);
    }
}

#define WINDOW_BYTES (64u << 10)

CLEANUP_POINTER(reader, struct archive, libarchive_read_free);
CLEANUP_POINTER(writer, struct archive, libarchive_write_free);
CLEANUP_POINTER(entry, struct archive_entry, la.entry_free);

static int copy_all(struct archive *reader, const char *path, uint64_t max, int fd, struct err *err)
{
    CLEANUP(free) char *window = xmalloc(WINDOW_BYTES);
    uint64_t n_bytes = 0;
    for (;;) {
        la_ssize_t len = la.read_data(reader, window, WINDOW_BYTES);
        if (len < 0) {
            return err_set(err, ERR_INTEGRITY, "%s: %s", path, la.error_string(reader));
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
    CLEANUP(reader) struct archive *reader = NULL;
    struct archive_entry *entry;
    if (libarchive_open(err) < 0) {
        return -1;
    }
    reader = la.read_new();
    ASSERT(reader);
    if (la.read_support_filter_gzip(reader) < ARCHIVE_WARN ||
        la.read_support_filter_zstd(reader) < ARCHIVE_WARN ||
        la.read_support_filter_xz(reader) < ARCHIVE_WARN ||
        la.read_support_filter_bzip2(reader) < ARCHIVE_WARN ||
        la.read_support_format_raw(reader) != ARCHIVE_OK) {
        return err_set(err, ERR_INTERNAL, "libarchive: %s", la.error_string(reader));
    }
    if (la.read_open_filename(reader, path, WINDOW_BYTES) != ARCHIVE_OK ||
        la.read_next_header(reader, &entry) != ARCHIVE_OK || la.filter_count(reader) < 2) {
        const char *why = la.error_string(reader);
        return err_set(err, ERR_INTEGRITY, "%s: %s", path, why ? why : "it is not compressed");
    }
    return copy_all(reader, path, max, fd, err);
}

static int pack_opened(int fd, const char *from, const char *to, struct err *err)
{
    CLEANUP(writer) struct archive *writer = la.write_new();
    CLEANUP(entry) struct archive_entry *entry = la.entry_new();
    CLEANUP(free) char *window = xmalloc(WINDOW_BYTES);
    ssize_t len = 0;
    bool is_written = la.write_add_filter_zstd(writer) == ARCHIVE_OK &&
                      la.write_set_format_raw(writer) == ARCHIVE_OK &&
                      la.write_open_filename(writer, to) == ARCHIVE_OK;
    la.entry_set_filetype(entry, AE_IFREG);
    is_written = is_written && la.write_header(writer, entry) == ARCHIVE_OK;
    while (is_written && (len = read(fd, window, WINDOW_BYTES)) > 0) {
        is_written = la.write_data(writer, window, (size_t)len) == len;
    }
    if (len < 0) {
        return err_errno(err, "read", from);
    }
    return is_written && la.write_close(writer) == ARCHIVE_OK
               ? 0
               : err_set(err, ERR_IO, "write %s: %s", to, la.error_string(writer));
}

int pack_raw(const char *from, const char *to, struct err *err)
{
    CLEANUP(fd) int fd = open(from, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(err, "read", from);
    }
    return libarchive_open(err) < 0 ? -1 : pack_opened(fd, from, to, err);
}
