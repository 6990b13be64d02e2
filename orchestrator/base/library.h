/* SPDX-License-Identifier: Apache-2.0 */
/* A shared library that is opened when it is first needed, not when the program starts: most commands need none, and loading libcurl's
   and libarchive's 30 libraries takes longer than what a short command does. One file of the library's home room defines the functions
   that are used, each as a call of the one that was found; whoever calls them includes the library's header as ever. */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stdatomic.h>

#include "base/err.h"

typedef void (*library_fn)(void);

struct library {
    const char *soname;
    const char *const *names;   /* (n) of functions, all needed */
    _Atomic(library_fn) *found; /* (n) NULL until it is open */
    size_t n;
};

/* Before any call of its functions; again costs nothing. Threads may do it at once. It stays open until the process ends. */
MUST_CHECK int library_open(const struct library *library, struct err *err);

/* NULL: it has none of that name. */
library_fn library_symbol(void *handle, const char *name);

static inline library_fn library_at(const struct library *library, size_t idx)
{
    return atomic_load_explicit(&library->found[idx], memory_order_relaxed);
}

library_fn library_need(const struct library *library, size_t idx);

/* LIBRARY_DEFINE(SONAME, LIST) defines LIBRARY, the struct above, and its functions. LIST(X) is X(KIND, type, name, (parameters),
   (arguments)) for each. Kinds: VALUE, VOID: a call; FREE_VALUE: one that releases what may be NULL, so that it does nothing as
   long as the library is not open; OWN: the file itself defines it, by LIBRARY_CALL(name)(arguments). Each has a name of its own in C,
   so that the header's prototype is free to gain a const. */
#define LIBRARY_HIDDEN                                   __attribute__((visibility("hidden"))) /* from the process' other libraries */
#define LIBRARY_NAME(kind, type, name, params, args)     #name,
#define LIBRARY_INDEX(kind, type, name, params, args)    LIBRARY_AT_##name,
#define LIBRARY_FUNCTION(kind, type, name, params, args) LIBRARY_##kind(type, name, params, args)
#define LIBRARY_CALL(name)                               ((__typeof__(&(name)))library_need(&LIBRARY, LIBRARY_AT_##name))
#define LIBRARY_IS_OPEN(name)                            (library_at(&LIBRARY, LIBRARY_AT_##name) != NULL)
#define LIBRARY_HEAD(type, name, params)                                                           \
    LIBRARY_HIDDEN type library_##name params __asm__(#name);                                      \
    type library_##name params
#define LIBRARY_OWN(type, name, params, args)
#define LIBRARY_VALUE(type, name, params, args)                                                    \
    LIBRARY_HEAD(type, name, params)                                                               \
    {                                                                                              \
        return LIBRARY_CALL(name) args;                                                            \
    }
#define LIBRARY_VOID(type, name, params, args)                                                     \
    LIBRARY_HEAD(type, name, params)                                                               \
    {                                                                                              \
        LIBRARY_CALL(name) args;                                                                   \
    }
#define LIBRARY_FREE_VALUE(type, name, params, args)                                               \
    LIBRARY_HEAD(type, name, params)                                                               \
    {                                                                                              \
        return LIBRARY_IS_OPEN(name) ? LIBRARY_CALL(name) args : 0;                                \
    }
#define LIBRARY_DEFINE(soname, LIST)                                                               \
    enum { LIST(LIBRARY_INDEX) LIBRARY_N };                                                        \
    static const char *const LIBRARY_NAMES[] = {LIST(LIBRARY_NAME)};                               \
    static _Atomic(library_fn) library_found[LIBRARY_N];                                           \
    static const struct library LIBRARY = {soname, LIBRARY_NAMES, library_found, LIBRARY_N};       \
    LIBRARY_NOTE(soname);                                                                          \
    LIST(LIBRARY_FUNCTION)

/* Says in the program's file which library it will open, as packaging tools read it. Source: ELF dlopen metadata,
   https://uapi-group.org/specifications/specs/elf_dlopen_metadata/ */
#define LIBRARY_NOTE_TEXT(soname) "[{\"soname\":[\"" soname "\"],\"priority\":\"required\"}]"
#define LIBRARY_NOTE(soname)                                                                       \
    static const struct {                                                                          \
        uint32_t name_bytes, text_bytes, type;                                                     \
        char name[4];                                                                              \
        char text[(sizeof(LIBRARY_NOTE_TEXT(soname)) + 3) / 4 * 4];                                \
    } LIBRARY_IN_FILE __attribute__((used, aligned(4), section(".note.dlopen"))) = {               \
        4, sizeof(LIBRARY_NOTE_TEXT(soname)), 0x407c0c0a, "FDO", LIBRARY_NOTE_TEXT(soname)}

#endif
