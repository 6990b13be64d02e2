/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_impl.h"

#include <errno.h>
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>

#define ZERO_BYTES (64u << 10)
#define ZIP_BYTES  (64u << 10)

const char *const UNPACK_KIND_NAMES[KIND_COUNT] = {"tar", "tar.gz", "tar.zst", "zip"};
static const uint8_t ZERO[ZERO_BYTES];

/* The error of our own read function takes precedence over libarchive's message about it. */
int unpack_fail(struct unpack *unpack, struct archive *a, struct err *err)
{
    const char *text = a ? archive_error_string(a) : NULL;
    if (unpack->err.code != ERR_NONE) {
        *err = unpack->err;
        return -1;
    }
    return err_set(err, ERR_INTEGRITY, "%s", text ? text : "libarchive refuses it");
}

/* Bytes unpacked so far, against bytes read. */
static int check_ratio(const struct unpack *unpack, uint64_t out_bytes, struct err *err)
{
    uint64_t read = unpack->kind == KIND_ZIP ? unpack->opts.archive_bytes
                                             : unpack->file.offset + unpack->file.len;
    uint64_t allowed;
    if (__builtin_mul_overflow(read, unpack->opts.limits.ratio, &allowed) ||
        __builtin_add_overflow(allowed, UNPACK_RATIO_FREE_BYTES, &allowed)) {
        return 0;
    }
    if (out_bytes > allowed) {
        return err_set(err, ERR_INTEGRITY,
                       "more than %" PRIu64 " times as many bytes unpacked as read",
                       unpack->opts.limits.ratio);
    }
    return 0;
}

static la_ssize_t layer_read(struct archive *a, void *ctx, const void **ret_ptr)
{
    struct layer *layer = ctx;
    size_t len;
    if (unpack_source_next(&layer->source, ret_ptr, &len, &layer->unpack->err) < 0) {
        archive_set_error(a, EIO, "read");
        return -1;
    }
    return (la_ssize_t)len;
}

static int file_read(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct unpack *unpack = ctx;
    if (unpack->is_peeked) {
        unpack->is_peeked = false;
        *ret_ptr = unpack->file.ptr;
        *ret_len = unpack->file.len;
        return 0;
    }
    return unpack_source_next(&unpack->file, ret_ptr, ret_len, err);
}

static int filter_read(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct unpack *unpack = ctx;
    if (unpack_filter_next(unpack->filter, ret_ptr, ret_len, err) < 0) {
        return -1;
    }
    return *ret_len == 0
               ? unpack_source_pad(&unpack->file, unpack_filter_bytes(unpack->filter), err)
               : check_ratio(unpack, unpack->outer.source.offset + *ret_len, err);
}

/* --- a zip, whose directory is at its end ------------------------------------------------------------------------------------ */

static int zip_open(struct unpack *unpack, struct err *err)
{
    char path[32]; /* libarchive gets an offset of its own: ours moves while the bytes are hashed */
    struct archive *a;
    struct stat st;
    if (unpack->opts.fd <= 0 || fstat(unpack->opts.fd, &st) < 0) {
        return err_set(err, ERR_INTEGRITY, "a zip is read from a file only");
    }
    unpack->opts.archive_bytes = (uint64_t)st.st_size;
    a = archive_read_new();
    unpack->outer = (struct layer){.a = a, .unpack = unpack, .is_drained = true};
    if (!a || archive_read_support_format_zip_seekable(a) != ARCHIVE_OK) {
        return err_set(err, ERR_INTERNAL, "libarchive on this machine cannot read zip");
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", unpack->opts.fd);
    return archive_read_open_filename(a, path, ZIP_BYTES) == ARCHIVE_OK
               ? 0
               : unpack_fail(unpack, a, err);
}

static int layer_open(struct unpack *unpack, struct layer *layer, unpack_read_fn read,
                      struct err *err)
{
    *layer = (struct layer){.unpack = unpack, .source = {.read = read, .ctx = unpack}};
    layer->a = archive_read_new();
    if (!layer->a || archive_read_support_format_tar(layer->a) != ARCHIVE_OK) {
        return err_set(err, ERR_INTERNAL, "libarchive on this machine cannot read tar");
    }
    layer->is_drained = true;
    return archive_read_open(layer->a, layer, NULL, layer_read, NULL) == ARCHIVE_OK
               ? 0
               : unpack_fail(unpack, layer->a, err);
}

static int find_kind(struct unpack *unpack, struct err *err)
{
    static const struct {
        const char *magic;
        int kind; /* -1: known, but not taken */
        const char *name;
    } MAGICS[] = {
        {"\x1f\x8b", KIND_TAR_GZ, NULL}, {"\x28\xb5\x2f\xfd", KIND_TAR_ZST, NULL},
        {"PK\x03\x04", KIND_ZIP, NULL},  {"PK\x05\x06", KIND_ZIP, NULL},
        {"\xfd\x37zXZ", -1, "xz"},       {"BZh", -1, "bzip2"},
        {"7z\xbc\xaf", -1, "7-zip"},     {"Rar!", -1, "rar"},
        {"<!DOCTYPE", -1, "a web page"}, {"<html", -1, "a web page"},
    };
    const void *ptr;
    struct str head;
    if (unpack_source_next(&unpack->file, &ptr, &head.len, err) < 0) {
        return -1;
    }
    head.ptr = ptr;
    unpack->is_peeked = true;
    unpack->kind = KIND_TAR;
    if (head.len == 0) {
        return err_set(err, ERR_INTEGRITY, "it is empty");
    }
    for (size_t idx = 0; idx < ARRAY_LEN(MAGICS); idx++) {
        if (str_starts(head, str_of(MAGICS[idx].magic))) {
            if (MAGICS[idx].kind < 0) {
                return err_set(err, ERR_INTEGRITY, "it is %s, expected tar, tar.gz, tar.zst or zip",
                               MAGICS[idx].name);
            }
            unpack->kind = (enum unpack_kind)MAGICS[idx].kind;
            break;
        }
    }
    if (unpack->opts.format && !unpack->opts.takes_other_format &&
        strcmp(unpack->opts.format, UNPACK_KIND_NAMES[unpack->kind]) != 0) {
        return err_set(err, ERR_INTEGRITY, "expected %s, its bytes are %s", unpack->opts.format,
                       UNPACK_KIND_NAMES[unpack->kind]);
    }
    return 0;
}

int unpack_open(struct unpack *unpack, struct err *err)
{
    unpack_read_fn read = file_read;
    if (find_kind(unpack, err) < 0) {
        return -1;
    }
    if (unpack->kind == KIND_ZIP) {
        return zip_open(unpack, err);
    }
    if (unpack->kind != KIND_TAR) {
        read = filter_read;
        if (unpack_filter_new(file_read, unpack, unpack->kind == KIND_TAR_ZST, &unpack->filter,
                              err) < 0) {
            return -1;
        }
    }
    return layer_open(unpack, &unpack->outer, read, err);
}

/* --- data of an entry ------------------------------------------------------------------------------------------------------- */

/* The next block of libarchive, and the hole in front of it. */
static int pull_block(struct layer *layer, struct err *err)
{
    la_int64_t offset = 0;
    uint64_t end;
    int result = archive_read_data_block(layer->a, &layer->ptr, &layer->len, &offset);
    if (result == ARCHIVE_EOF) {
        layer->len = 0;
        layer->has_data = false;
        if (layer->is_sparse && layer->size_bytes > layer->done_bytes) {
            layer->hole_bytes = layer->size_bytes - layer->done_bytes;
        } else if (layer->is_size_known && layer->done_bytes != layer->size_bytes) {
            return err_set(err, ERR_INTEGRITY, "%" PRIu64 " bytes, its header says %" PRIu64,
                           layer->done_bytes, layer->size_bytes);
        }
        return 0;
    }
    if (result != ARCHIVE_OK) {
        return unpack_fail(layer->unpack, layer->a, err);
    }
    if (offset < 0 || (uint64_t)offset < layer->done_bytes ||
        __builtin_add_overflow((uint64_t)offset, layer->len, &end) || end > INT64_MAX ||
        (layer->is_size_known && end > layer->size_bytes)) {
        return err_set(err, ERR_INTEGRITY, "data at byte %" PRId64 ", its size is %" PRIu64,
                       (int64_t)offset, layer->size_bytes);
    }
    layer->hole_bytes = (uint64_t)offset - layer->done_bytes;
    return 0;
}

static int layer_data(struct layer *layer, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    while (layer->hole_bytes == 0 && layer->len == 0 && layer->has_data) {
        if (pull_block(layer, err) < 0) {
            return -1;
        }
    }
    if (layer->hole_bytes > 0) {
        *ret_ptr = ZERO;
        *ret_len = layer->hole_bytes < ZERO_BYTES ? (size_t)layer->hole_bytes : ZERO_BYTES;
        layer->hole_bytes -= *ret_len;
    } else {
        *ret_ptr = layer->ptr;
        *ret_len = layer->len;
        layer->len = 0;
    }
    layer->done_bytes += *ret_len;
    layer->is_drained = *ret_len == 0;
    return 0;
}

/* The bytes of the nested tar. */
static int inner_read(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct unpack *unpack = ctx;
    if (layer_data(&unpack->outer, ret_ptr, ret_len, err) < 0) {
        return -1;
    }
    return check_ratio(unpack, unpack->outer.done_bytes, err);
}

/* The archive's bytes in their order, for who hashes them and shows how far it is: as far as libarchive is in a zip. */
static int follow_zip(struct unpack *unpack, struct err *err)
{
    const uint64_t zip_at = (uint64_t)archive_filter_bytes(unpack->outer.a, -1);
    const void *ptr;
    size_t len = 1;
    while (len > 0 && unpack->file.offset + unpack->file.len < zip_at) {
        if (unpack_source_next(&unpack->file, &ptr, &len, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int unpack_pull(struct unpack *unpack, const void **ret_ptr, size_t *ret_len, struct err *err)
{
    struct layer *layer = unpack->inner.a ? &unpack->inner : &unpack->outer;
    if (layer->is_drained) {
        *ret_len = 0;
        return 0;
    }
    if (layer_data(layer, ret_ptr, ret_len, err) < 0) {
        return -1;
    }
    if (*ret_len > unpack->opts.limits.file_bytes - (layer->done_bytes - *ret_len) ||
        *ret_len > unpack->opts.limits.bytes - unpack->total_bytes) {
        return err_set(err, ERR_INTEGRITY, "more bytes than the limit");
    }
    if (check_ratio(unpack, unpack->total_bytes + *ret_len, err) < 0) {
        return -1;
    }
    unpack->total_bytes += *ret_len;
    if (unpack->kind == KIND_ZIP && layer == &unpack->outer && follow_zip(unpack, err) < 0) {
        return -1;
    }
    if (*ret_len > 0 && unpack->entry.type == UNPACK_HARDLINK) {
        return err_set(err, ERR_INTEGRITY, "a hard link with bytes of its own");
    }
    return 0;
}

int unpack_open_inner(struct unpack *unpack, struct err *err)
{
    return layer_open(unpack, &unpack->inner, inner_read, err);
}

void unpack_close(struct unpack *unpack)
{
    archive_read_free(unpack->inner.a);
    archive_read_free(unpack->outer.a);
    unpack_filter_free(unpack->filter);
}
