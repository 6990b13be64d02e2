/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/text.h"

struct str str_vprintf(struct arena *arena, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    ASSERT(len >= 0);
    char *text = arena_alloc(arena, (size_t)len + 1, 1);
    vsnprintf(text, (size_t)len + 1, fmt, again);
    va_end(again);
    return (struct str){text, (size_t)len};
}

struct str str_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    struct str text = str_vprintf(arena, fmt, args);
    va_end(args);
    return text;
}
