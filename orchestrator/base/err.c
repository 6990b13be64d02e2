/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>

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

int err_pass(struct err *err, const struct err *why)
{
    *err = *why;
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

int err_errno(struct err *err, const char *op, const char *path)
{
    int saved = errno;
    return err_set(err, err_code_of_errno(saved), "%s %.400s: %s", op, path, err_errno_text(saved));
}

const char *const ERR_CODE_NAMES[ERR_CODE_COUNT] = {
    [ERR_USAGE] = "usage",
    [ERR_MANIFEST] = "manifest",
    [ERR_FETCH] = "fetch",
    [ERR_NET] = "net",
    [ERR_TIMEOUT] = "timeout",
    [ERR_AUTH] = "auth",
    [ERR_INTEGRITY] = "integrity",
    [ERR_NODE] = "node",
    [ERR_CONTAINER] = "container",
    [ERR_WORKLOAD] = "workload",
    [ERR_PARSE] = "parse",
    [ERR_IO] = "io",
    [ERR_DISK] = "disk",
    [ERR_NOT_FOUND] = "not_found",
    [ERR_INTERRUPTED] = "interrupted",
    [ERR_INTERNAL] = "internal",
};
static const int STATUSES[ERR_CODE_COUNT] = {
    [ERR_USAGE] = 2,     [ERR_MANIFEST] = 3,  [ERR_FETCH] = 4,         [ERR_NET] = 4,
    [ERR_TIMEOUT] = 124, [ERR_AUTH] = 5,      [ERR_INTEGRITY] = 5,     [ERR_NODE] = 6,
    [ERR_CONTAINER] = 7, [ERR_WORKLOAD] = 8,  [ERR_PARSE] = 9,         [ERR_IO] = 10,
    [ERR_DISK] = 10,     [ERR_NOT_FOUND] = 2, [ERR_INTERRUPTED] = 130, [ERR_INTERNAL] = 70,
};

int err_exit_status(enum err_code code)
{
    return STATUSES[code];
}

const char *err_code_name(enum err_code code)
{
    return code == ERR_NONE ? "none" : ERR_CODE_NAMES[code];
}
