/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/unpack_library.h"

#include <archive.h>
#include <archive_entry.h>

#include "base/library.h"

#define TEXT_BYTES 256

#define FUNCTIONS(X)                                                                               \
    X(OWN, void, archive_set_error, (), ())                                                        \
    X(VALUE, struct archive *, archive_read_new, (void), ())                                       \
    X(FREE_VALUE, int, archive_read_free, (struct archive * a), (a))                               \
    X(VALUE, int, archive_read_support_filter_gzip, (struct archive * a), (a))                     \
    X(VALUE, int, archive_read_support_filter_zstd, (struct archive * a), (a))                     \
    X(VALUE, int, archive_read_support_format_raw, (struct archive * a), (a))                      \
    X(VALUE, int, archive_read_support_format_tar, (struct archive * a), (a))                      \
    X(VALUE, int, archive_read_support_format_zip_seekable, (struct archive * a), (a))             \
    X(VALUE, int, archive_read_set_seek_callback,                                                  \
      (struct archive * a, archive_seek_callback * on_seek), (a, on_seek))                         \
    X(VALUE, int, archive_read_open,                                                               \
      (struct archive * a, void *ctx, archive_open_callback *on_open,                              \
       archive_read_callback *on_read, archive_close_callback *on_close),                          \
      (a, ctx, on_open, on_read, on_close))                                                        \
    X(VALUE, int, archive_read_next_header, (struct archive * a, struct archive_entry * *entry),   \
      (a, entry))                                                                                  \
    X(VALUE, int, archive_read_data_block,                                                         \
      (struct archive * a, const void **ptr, size_t *len, la_int64_t *offset),                     \
      (a, ptr, len, offset))                                                                       \
    X(VALUE, la_int64_t, archive_read_header_position, (struct archive * a), (a))                  \
    X(VALUE, la_int64_t, archive_filter_bytes, (struct archive * a, int idx), (a, idx))            \
    X(VALUE, int, archive_filter_count, (struct archive * a), (a))                                 \
    X(VALUE, const char *, archive_error_string, (struct archive * a), (a))                        \
    X(VALUE, __LA_MODE_T, archive_entry_filetype, (struct archive_entry * entry), (entry))         \
    X(VALUE, __LA_MODE_T, archive_entry_perm, (struct archive_entry * entry), (entry))             \
    X(VALUE, const char *, archive_entry_pathname, (struct archive_entry * entry), (entry))        \
    X(VALUE, const char *, archive_entry_hardlink, (struct archive_entry * entry), (entry))        \
    X(VALUE, const char *, archive_entry_symlink, (struct archive_entry * entry), (entry))         \
    X(VALUE, int, archive_entry_is_encrypted, (struct archive_entry * entry), (entry))             \
    X(VALUE, int, archive_entry_size_is_set, (struct archive_entry * entry), (entry))              \
    X(VALUE, la_int64_t, archive_entry_size, (struct archive_entry * entry), (entry))              \
    X(VALUE, int, archive_entry_sparse_count, (struct archive_entry * entry), (entry))

LIBRARY_DEFINE("libarchive.so.13", FUNCTIONS)

int unpack_library_open(struct err *err)
{
    return library_open(&LIBRARY, err);
}

LIBRARY_HIDDEN void archive_set_error(struct archive *a, int code, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list list;
    va_start(list, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, list);
    va_end(list);
    LIBRARY_CALL(archive_set_error)(a, code, "%s", text);
}
