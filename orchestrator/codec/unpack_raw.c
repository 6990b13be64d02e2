/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_raw.h"

#include <archive.h>
#include <archive_entry.h>

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
