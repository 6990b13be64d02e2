/* SPDX-License-Identifier: Apache-2.0 */
/* The text of some lines of a log. */
#pragma once

#include "base/str.h"

#define LOG_LINE_SHOWN_MAX 400 /* bytes of a line; the rest is not read */

/* ret_texts has one item for each of lines (from 1, counted by LF, not falling): without its line break, cut at
   LOG_LINE_SHOWN_MAX bytes; ptr NULL where the file has no such line. */
MUST_CHECK int log_lines_read(struct arena *arena, const char *path, const int64_t *lines, size_t n,
                              struct str *ret_texts, struct err *err);
