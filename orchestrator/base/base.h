/* SPDX-License-Identifier: Apache-2.0 */
/* What every file of reperf starts with: the few macros that all rooms share, and the ban list. libc only; no state. */
#pragma once

#include <inttypes.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/banned.h"

#define MUST_CHECK        __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define NORETURN          __attribute__((noreturn))
#define UNUSED            __attribute__((unused))
#define ARRAY_LEN(a)      (sizeof(a) / sizeof((a)[0]))
#define CLEANUP(kind)     __attribute__((cleanup(kind##_cleanup)))
/* What CLEANUP(kind) calls at the end of a variable's block: release(&variable); of a pointer, release(variable). */
#define CLEANUP_BY(kind, T, release)                                                               \
    static inline void kind##_cleanup(T *of)                                                       \
    {                                                                                              \
        release(of);                                                                               \
    }                                                                                              \
    static inline void kind##_cleanup(T *of)
#define CLEANUP_POINTER(kind, T, release)                                                          \
    static inline void kind##_cleanup(T **of)                                                      \
    {                                                                                              \
        release(*of);                                                                              \
    }                                                                                              \
    static inline void kind##_cleanup(T **of)

/* A broken invariant of ours: on in every build, never for outside data. */
#define ASSERT(cond)                                                                               \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0)) {                                                        \
            assert_failed(#cond, __FILE__, __LINE__);                                              \
        }                                                                                          \
    } while (0)

NORETURN void assert_failed(const char *cond, const char *file, int line);

#define REPERF_VERSION "0.1.0"
