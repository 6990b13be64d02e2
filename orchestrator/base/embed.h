/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of a file of the source tree, in the program. The Makefile names the file beside the object, which is made anew
   with it. After its last byte is a NUL. */
#pragma once

#include "base/str.h"

/* Declares and defines NAME_begin and NAME_end, which no other file may have. */
#define EMBED(name, path)                                                                          \
    __asm__(".section .rodata\n.global " #name "_begin\n.global " #name "_end\n" #name             \
            "_begin:\n.incbin \"" path "\"\n" #name "_end:\n.byte 0\n.previous\n");                \
    extern const char name##_begin[], name##_end[]
#define EMBEDDED(name) ((struct str){name##_begin, (size_t)(name##_end - name##_begin)})

/* Without the comments that it begins with, up to its first empty line. */
static inline struct str embedded_body(struct str file)
{
    return str_sub(file, (size_t)str_find(file, STR_LIT("\n\n")) + 2, SIZE_MAX);
}
