/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for people on stderr, with a level. Results never go here, and nothing here goes to stdout. Thread-safe per line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/base.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level); /* default LOG_INFO */
void log_set_program(
    const char *name); /* what stands before each line; default "reperf"; borrowed */
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Columns of the terminal that stderr is, now: it may be resized. Where it does not say: COLUMNS, else 80. */
int log_columns(void);
/* A progress line of that many cells stands on the terminal without its break: the next message takes its place. 0: none. */
void log_set_unended(int n_cells);
/* What takes it away, in front of what comes next; at most dst's size. Returns its length: 0 where none stands there. */
size_t log_take_unended(char *dst, size_t size);

/* True when stderr is a terminal and NO_COLOR is not set. */
bool log_wants_color(void);

#endif
