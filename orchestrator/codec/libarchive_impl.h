/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of libarchive that are used, opened at their first use (base/library.h): la.read_new() is archive_read_new(). */
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include "base/library.h"

#define LIBARCHIVE(X)                                                                              \
    X(archive_, entry_filetype)                                                                    \
    X(archive_, entry_free)                                                                        \
    X(archive_, entry_hardlink)                                                                    \
    X(archive_, entry_is_encrypted)                                                                \
    X(archive_, entry_new)                                                                         \
    X(archive_, entry_pathname)                                                                    \
    X(archive_, entry_perm)                                                                        \
    X(archive_, entry_set_filetype)                                                                \
    X(archive_, entry_set_mtime)                                                                   \
    X(archive_, entry_set_pathname)                                                                \
    X(archive_, entry_set_perm)                                                                    \
    X(archive_, entry_set_size)                                                                    \
    X(archive_, entry_size)                                                                        \
    X(archive_, entry_size_is_set)                                                                 \
    X(archive_, entry_sparse_count)                                                                \
    X(archive_, entry_symlink)                                                                     \
    X(archive_, error_string)                                                                      \
    X(archive_, filter_bytes)                                                                      \
    X(archive_, filter_count)                                                                      \
    X(archive_, read_data)                                                                         \
    X(archive_, read_data_block)                                                                   \
    X(archive_, read_free)                                                                         \
    X(archive_, read_header_position)                                                              \
    X(archive_, read_new)                                                                          \
    X(archive_, read_next_header)                                                                  \
    X(archive_, read_open)                                                                         \
    X(archive_, read_open_filename)                                                                \
    X(archive_, read_support_filter_bzip2)                                                         \
    X(archive_, read_support_filter_gzip)                                                          \
    X(archive_, read_support_filter_xz)                                                            \
    X(archive_, read_support_filter_zstd)                                                          \
    X(archive_, read_support_format_raw)                                                           \
    X(archive_, read_support_format_tar)                                                           \
    X(archive_, read_support_format_zip_seekable)                                                  \
    X(archive_, set_error)                                                                         \
    X(archive_, write_add_filter_gzip)                                                             \
    X(archive_, write_add_filter_zstd)                                                             \
    X(archive_, write_close)                                                                       \
    X(archive_, write_data)                                                                        \
    X(archive_, write_free)                                                                        \
    X(archive_, write_header)                                                                      \
    X(archive_, write_new)                                                                         \
    X(archive_, write_open)                                                                        \
    X(archive_, write_open_filename)                                                               \
    X(archive_, write_set_bytes_in_last_block)                                                     \
    X(archive_, write_set_format_pax_restricted)                                                   \
    X(archive_, write_set_format_raw)                                                              \
    X(archive_, write_set_format_ustar)                                                            \
    X(archive_, write_set_options)

struct libarchive {
    LIBARCHIVE(LIBRARY_FIELD)
};

extern struct libarchive la; /* to be called once libarchive_open() has returned 0 */

/* Before the first call. ERR_INTERNAL as library_open(). Any thread. */
MUST_CHECK int libarchive_open(struct err *err);

/* NULL is allowed, also where libarchive was never opened. */
void libarchive_read_free(struct archive *reader);
void libarchive_write_free(struct archive *writer);
