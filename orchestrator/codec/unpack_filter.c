/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_filter.h"

#include <errno.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/arena.h"

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
