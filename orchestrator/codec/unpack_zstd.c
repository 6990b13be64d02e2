/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_zstd.h"

#include <errno.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/arena.h"

struct unzstd {
    struct archive *a;
    gunzip_read_fn read;
    void *ctx;
    struct err err; /* of read: libarchive only passes on that there was one */
};

static la_ssize_t on_read(struct archive *a, void *ctx, const void **ret_ptr)
{
    struct unzstd *unzstd = ctx;
    size_t len;
    if (unzstd->read(unzstd->ctx, ret_ptr, &len, &unzstd->err) < 0) {
        archive_set_error(a, EIO, "read");
        return -1;
    }
    return (la_ssize_t)len;
}

static int fail(struct unzstd *unzstd, struct err *err)
{
    const char *text = archive_error_string(unzstd->a);
    if (unzstd->err.code != ERR_NONE) {
        *err = unzstd->err;
        return -1;
    }
    return err_set(err, ERR_INTEGRITY, "zstd: %s", text ? text : "cannot be read");
}

int unzstd_new(gunzip_read_fn read, void *ctx, struct unzstd **ret_unzstd, struct err *err)
{
    CLEANUP(unzstd) struct unzstd *unzstd = xcalloc(1, sizeof(*unzstd));
    struct archive_entry *entry;
    unzstd->read = read;
    unzstd->ctx = ctx;
    unzstd->a = archive_read_new();
    if (!unzstd->a || archive_read_support_filter_zstd(unzstd->a) != ARCHIVE_OK ||
        archive_read_support_format_raw(unzstd->a) != ARCHIVE_OK) {
        return err_set(err, ERR_INTERNAL, "libarchive on this machine cannot read zstd");
    }
    if (archive_read_open(unzstd->a, unzstd, NULL, on_read, NULL) != ARCHIVE_OK ||
        archive_read_next_header(unzstd->a, &entry) != ARCHIVE_OK) {
        return fail(unzstd, err);
    }
    if (archive_filter_count(unzstd->a) < 2) { /* the filter itself, and the file */
        return err_set(err, ERR_INTEGRITY, "zstd: expected a frame, found other bytes");
    }
    *ret_unzstd = unzstd;
    unzstd = NULL;
    return 0;
}

int unzstd_next(struct unzstd *unzstd, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    la_int64_t offset;
    int result = archive_read_data_block(unzstd->a, ret_ptr, ret_len, &offset);
    if (result == ARCHIVE_EOF) {
        *ret_len = 0;
        return 0;
    }
    return result == ARCHIVE_OK ? 0 : fail(unzstd, err);
}

void unzstd_free(struct unzstd *unzstd)
{
    if (unzstd) {
        archive_read_free(unzstd->a);
        free(unzstd);
    }
}
