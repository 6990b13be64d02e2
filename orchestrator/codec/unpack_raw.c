/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_raw.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"

#define WINDOW_BYTES (64u << 10)

static void reader_release(struct archive **reader)
{
    archive_read_free(*reader);
}

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
    struct archive *reader __attribute__((cleanup(reader_release))) = archive_read_new();
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

static void writer_release(struct archive **writer)
{
    archive_write_free(*writer);
}

static void entry_release(struct archive_entry **entry)
{
    archive_entry_free(*entry);
}

int pack_raw(const char *from, const char *to, struct err *err)
{
    struct archive *writer __attribute__((cleanup(writer_release))) = archive_write_new();
    struct archive_entry *entry __attribute__((cleanup(entry_release))) = archive_entry_new();
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
