/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for people on stderr, with a level. Results never go here, and nothing here goes to stdout. Thread-safe per line. */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/base.h"

#define PROGRESS_CELLS 100 /* of a progress line on a terminal */

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level); /* default LOG_INFO */
void log_set_program(
    const char *name); /* what stands before each line; default "reperf"; borrowed */
void log_line(enum log_level level, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* A progress line stands on the terminal without its break: the next message takes its place. */
void log_set_unended(bool is_unended);

/* True when stderr is a terminal and NO_COLOR is not set. */
bool log_wants_color(void);

#endif
