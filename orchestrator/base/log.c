/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdatomic.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static enum log_level current_level =
    LOG_INFO; /* set once by main before any other thread exists */

static const char *program = "reperf"; /* likewise */

void log_set_level(enum log_level level)
{
    current_level = level;
}

static atomic_bool is_line_unended;

void log_set_unended(bool is_unended)
{
    atomic_store(&is_line_unended, is_unended);
}

void log_set_program(const char *name)
{
    program = name;
}

bool log_wants_color(void)
{
    const char *no_color = getenv("NO_COLOR");
    return (!no_color || !no_color[0]) && isatty(STDERR_FILENO);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    static const char *const LEVELS[] = {"error: ", "warning: ", "", "debug: "};
    char line[LINE_MAX_BYTES];
    va_list args;
    int start;
    int len;
    int added;
    if (level > current_level) {
        return;
    }
    start = atomic_exchange(&is_line_unended, false)
                ? snprintf(line, sizeof(line), "\r%*s\r", PROGRESS_CELLS, "")
                : 0;
    len = start +
          snprintf(line + start, sizeof(line) - (size_t)start, "%s: %s", program, LEVELS[level]);
    va_start(args, fmt);
    added = vsnprintf(line + len, sizeof(line) - (size_t)len - 1, fmt, args);
    va_end(args);
    len += added < 0 ? 0 : added;
    if (len > (int)sizeof(line) - 2) {
        len = (int)sizeof(line) - 2;
    }
    for (int idx = start; idx < len; idx++) {
        /* Text from outside must not steer the terminal. */
        if ((unsigned char)line[idx] < ' ' || line[idx] == 0x7f) {
            line[idx] = line[idx] == '\t' ? '\t' : '?';
        }
    }
    line[len] = '\n';
    if (write(STDERR_FILENO, line, (size_t)len + 1) < 0) {
        return; /* nobody is left to tell */
    }
}
