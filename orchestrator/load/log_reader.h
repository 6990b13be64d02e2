/* SPDX-License-Identifier: Apache-2.0 */
/* A log as a descriptor, read window by window. */
#pragma once

#include "base/str.h"

#define LOG_WINDOW_BYTES (64u << 10)

/* Whether it is compressed as a whole: gzip, zstd, xz, bzip2. */
bool log_is_compressed(const char *path);
/* A descriptor of a file that is no folder; of a compressed one, of what it holds, unless it is damaged. */
MUST_CHECK int log_open(const char *path, int *ret_fd, struct err *err);
/* A digest needs a file that can be read again; a pipe cannot, and may never end. */
MUST_CHECK int log_must_be_regular(const char *path, struct err *err);
/* Its first LOG_WINDOW_BYTES; and all of it, where that is at most max: else, or where it cannot be read, ptr is NULL. In the
   arena. */
struct str log_first(struct arena *arena, const char *path);
struct str log_text(struct arena *arena, const char *path, size_t max);
/* Up to a window's bytes; 0 in *ret_len at the end. */
MUST_CHECK int log_read_window(int fd, const char *path, char *window, size_t *ret_len,
                               struct err *err);
