/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <unistd.h>

void assert_failed(const char *cond, const char *file, int line)
{
    fprintf(stderr, "reperf: internal error: %s does not hold at %s:%d\n", cond, file, line);
    abort();
}

static void format_into(char *dst, size_t size, const char *fmt, va_list args)
{
    /* A message longer than the buffer is cut, which is what vsnprintf does. */
    if (vsnprintf(dst, size, fmt, args) < 0) {
        dst[0] = '\0';
    }
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
    va_list args;
    ASSERT(err->code == ERR_NONE);
    ASSERT(code != ERR_NONE);
    va_start(args, fmt);
    format_into(err->msg, sizeof(err->msg), fmt, args);
    va_end(args);
    err->code = code;
    return -1;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
    char context[ERR_MSG_MAX];
    char joined[sizeof(context) + ERR_MSG_MAX + 3];
    va_list args;
    ASSERT(err->code != ERR_NONE);
    va_start(args, fmt);
    format_into(context, sizeof(context), fmt, args);
    va_end(args);
    snprintf(joined, sizeof(joined), "%s: %s", context, err->msg);
    joined[sizeof(err->msg) - 1] = '\0';
    memcpy(err->msg, joined, strlen(joined) + 1);
    return -1;
}

enum err_code err_code_of_errno(int errnum)
{
    switch (errnum) {
    case ENOSPC:
    case EDQUOT:
    case EROFS:
    case EFBIG:
        return ERR_DISK;
    case ENOENT:
        return ERR_NOT_FOUND;
    case EINTR:
        return ERR_INTERRUPTED;
    default:
        return ERR_IO;
    }
}

const char *err_errno_text(int errnum)
{
    const char *text = strerrordesc_np(errnum);
    return text ? text : "unknown error";
}

struct code_row {
    const char *name;
    int status;
};

static const struct code_row CODE_ROWS[ERR_CODE_COUNT] = {
    [ERR_NONE] = {"none", 0},
    [ERR_USAGE] = {"usage", 2},
    [ERR_MANIFEST] = {"manifest", 3},
    [ERR_FETCH] = {"fetch", 4},
    [ERR_NET] = {"net", 4},
    [ERR_TIMEOUT] = {"timeout", 124},
    [ERR_AUTH] = {"auth", 5},
    [ERR_INTEGRITY] = {"integrity", 5},
    [ERR_NODE] = {"node", 6},
    [ERR_CONTAINER] = {"container", 7},
    [ERR_WORKLOAD] = {"workload", 8},
    [ERR_PARSE] = {"parse", 9},
    [ERR_IO] = {"io", 10},
    [ERR_DISK] = {"disk", 10},
    [ERR_NOT_FOUND] = {"not_found", 2},
    [ERR_INTERRUPTED] = {"interrupted", 130},
    [ERR_INTERNAL] = {"internal", 70},
};

int err_exit_status(enum err_code code)
{
    return CODE_ROWS[code].status;
}

const char *err_code_name(enum err_code code)
{
    return CODE_ROWS[code].name;
}
