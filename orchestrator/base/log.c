/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdatomic.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/secret.h"
#include "base/str.h"

#define LINE_MAX_BYTES  2048
#define COLUMNS_DEFAULT 80
#define COLUMNS_MAX     65535 /* of struct winsize */

/* main sets it once, before any other thread exists. */
static enum log_level current_level = LOG_INFO;

static const char *program = "reperf"; /* likewise */

void log_set_level(enum log_level level)
{
    current_level = level;
}

static int columns_of(int fd)
{
    const char *said = getenv("COLUMNS");
    struct winsize size = {0};
    int64_t columns;
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return said && str_to_i64(str_of(said), 1, COLUMNS_MAX, &columns, ERR_IGNORED) == 0
               ? (int)columns
               : COLUMNS_DEFAULT;
}

int log_columns(void)
{
    return columns_of(STDERR_FILENO);
}

int log_output_columns(void)
{
    return isatty(STDOUT_FILENO) ? columns_of(STDOUT_FILENO) : 0;
}

static atomic_int unended_cells;

void log_set_unended(int n_cells)
{
    atomic_store(&unended_cells, n_cells);
}

size_t log_take_unended(char *dst, size_t size)
{
    int n = atomic_exchange(&unended_cells, 0);
    int columns = log_columns();
    if (n <= 0) {
        return 0;
    }
    /* A terminal may wrap already when its last column is written. */
    n = n < columns ? n : columns - 1;
    n = snprintf(dst, size, "\r%*s\r", n, "");
    return (size_t)n < size ? (size_t)n : size - 1;
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
    if (level > current_level) {
        return;
    }
    int start = (int)log_take_unended(line, sizeof(line) / 2);
    int len = start + snprintf(line + start, sizeof(line) - (size_t)start, "%s: %s", program,
                               LEVELS[level]);
    va_start(args, fmt);
    int added = vsnprintf(line + len, sizeof(line) - (size_t)len - 1, fmt, args);
    va_end(args);
    len += added < 0 ? 0 : added;
    if (len > (int)sizeof(line) - 2) {
        len = (int)sizeof(line) - 2;
    }
    secret_hide(line + start, (size_t)(len - start));
    text_plain(line + start,
               (size_t)(len - start)); /* text from outside must not steer the terminal */
    for (int idx = start; idx < len; idx++) {
        line[idx] = line[idx] == '\n' ? '?' : line[idx];
    }
    line[len] = '\n';
    if (write(STDERR_FILENO, line, (size_t)len + 1) < 0) {
        return; /* nobody is left to tell */
    }
}
