/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for people on stderr, with a level. Results never go here, and nothing here goes to stdout. Thread-safe per line. */
#pragma once

#include "base/base.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level); /* default LOG_INFO */
void log_set_program(const char *name);   /* prefix of each line; default "reperf"; borrowed */
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Width of the terminal on stderr, asked for anew at each call because it may be resized. If unknown: COLUMNS, else
   80. */
int log_columns(void);
/* Of standard output; 0 where that is no terminal. */
int log_output_columns(void);
/* A progress line that is n_cells wide is on the terminal, without a line break: the next message overwrites it. 0: none. */
void log_set_unended(int n_cells);
/* What erases that line, to be written before anything else; at most size bytes. Returns the length: 0 if there is no
   such line. */
size_t log_take_unended(char *dst, size_t size);

/* True when stderr is a terminal and NO_COLOR is not set. */
bool log_wants_color(void);
