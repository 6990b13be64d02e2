/* SPDX-License-Identifier: Apache-2.0 */
/* The one error type (STYLE.md section 2). The caller owns it on its stack; it holds no pointer. */
#pragma once

#include "base/base.h"

/* Policy reads the code; people read the message. err_exit_status() gives the documented exit status of each. */
enum err_code {
    ERR_NONE = 0,
    ERR_USAGE,
    ERR_MANIFEST,
    ERR_FETCH,
    ERR_NET,
    ERR_TIMEOUT,
    ERR_AUTH,
    ERR_INTEGRITY,
    ERR_NODE,
    ERR_CONTAINER,
    ERR_WORKLOAD,
    ERR_PARSE,
    ERR_IO,
    ERR_DISK,
    ERR_NOT_FOUND,
    ERR_INTERRUPTED,
    ERR_INTERNAL,
    ERR_CODE_COUNT,
};

#define ERR_MSG_MAX 508

struct err {
    enum err_code code;
    char msg[ERR_MSG_MAX];
};

/* For a call whose failure is told by its status alone. */
#define ERR_IGNORED (&(struct err){ERR_NONE})

/* Fill an unset error and return -1, so that the call is the return statement. */
MUST_CHECK int err_set(struct err *err, enum err_code code, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Put context in front of a set error: "context: message". Returns -1. */
MUST_CHECK int err_wrap(struct err *err, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* The error is another's: fills an unset one with it and returns -1. */
MUST_CHECK int err_pass(struct err *err, const struct err *why);

/* The code for an errno of a file operation: ERR_DISK for ENOSPC, EDQUOT, EROFS and EFBIG, ERR_NOT_FOUND for ENOENT, else
   ERR_IO. */
enum err_code err_code_of_errno(int errnum);

/* "OP PATH: why", of errno and with its code. */
MUST_CHECK int err_errno(struct err *err, const char *op, const char *path);

/* Text of an errno, thread-safe, never NULL. */
const char *err_errno_text(int errnum);

/* The exit status of reperf(1), EXIT STATUS; 0 for ERR_NONE. */
int err_exit_status(enum err_code code);

/* "manifest", "disk", ...: for JSON and log events. */
/* By code; ERR_NONE has none. */
extern const char *const ERR_CODE_NAMES[ERR_CODE_COUNT];
const char *err_code_name(enum err_code code);
