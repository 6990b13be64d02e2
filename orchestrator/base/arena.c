/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "base/str.h"

#include <unistd.h>

#define BLOCK_BYTES_MIN 65536

struct arena_block {
    struct arena_block *next;
    size_t size;
    size_t used;
    alignas(max_align_t) unsigned char data[];
};

struct arena_adopted {
    struct arena_adopted *next;
    void *heap_ptr;
};

static NORETURN void out_of_memory(size_t size)
{
    fprintf(stderr, "reperf: out of memory (%zu bytes asked)\n", size);
    _exit(70);
}

void *xmalloc(size_t size)
{
    void *ptr = malloc(size ? size : 1);
    if (!ptr) {
        out_of_memory(size);
    }
    return ptr;
}

void *xcalloc(size_t count, size_t size)
{
    void *ptr = calloc(count ? count : 1, size ? size : 1);
    if (!ptr) {
        out_of_memory(size);
    }
    return ptr;
}

void *xrealloc(void *ptr, size_t size)
{
    void *grown = realloc(ptr, size ? size : 1);
    if (!grown) {
        out_of_memory(size);
    }
    return grown;
}

char *xstrdup(const char *z)
{
    size_t len = strlen(z) + 1;
    return memcpy(xmalloc(len), z, len);
}

void arena_release(struct arena *arena)
{
    struct arena_block *block = arena->head;
    for (struct arena_adopted *a = arena->adopted; a;
         a = a->next) { /* the list itself is in the blocks */
        free(a->heap_ptr);
    }
    while (block) {
        struct arena_block *next = block->next;
        free(block);
        block = next;
    }
    *arena = ARENA_EMPTY;
}

void arena_join(struct arena *into, struct arena *from)
{
    struct arena_block **block = &into->head;
    struct arena_adopted **adopted = &into->adopted;
    while (*block) {
        block = &(*block)->next;
    }
    while (*adopted) {
        adopted = &(*adopted)->next;
    }
    *block = from->head;
    *adopted = from->adopted;
    into->used_bytes += from->used_bytes;
    *from = ARENA_EMPTY;
}

static struct arena_block *block_new(struct arena *arena, size_t need)
{
    size_t size = need > BLOCK_BYTES_MIN ? need : BLOCK_BYTES_MIN;
    struct arena_block *block = xmalloc(sizeof(*block) + size);
    block->size = size;
    block->used = 0;
    block->next = arena->head;
    arena->head = block;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size, size_t align)
{
    struct arena_block *block = arena->head;
    size_t start = 0;
    ASSERT(align && (align & (align - 1)) == 0 && align <= alignof(max_align_t));
    if (size > ARENA_ALLOC_MAX) {
        out_of_memory(size);
    }
    if (block) {
        start = (block->used + align - 1) & ~(align - 1);
    }
    if (!block || start > block->size || block->size - start < size) {
        block = block_new(arena, size);
        start = 0;
    }
    block->used = start + size;
    arena->used_bytes += size;
    return memset(block->data + start, 0, size);
}

void arena_adopt(struct arena *arena, void *heap_ptr)
{
    if (heap_ptr) {
        struct arena_adopted *adopted = arena_new(arena, struct arena_adopted);
        *adopted = (struct arena_adopted){arena->adopted, heap_ptr};
        arena->adopted = adopted;
    }
}

void *arena_alloc_array(struct arena *arena, size_t elem_size, size_t count, size_t align)
{
    size_t size;
    if (__builtin_mul_overflow(elem_size, count, &size)) {
        out_of_memory(SIZE_MAX);
    }
    return arena_alloc(arena, size, align);
}

char *arena_strndup(struct arena *arena, const char *ptr, size_t len)
{
    char *copy = arena_alloc(arena, len + 1, 1);
    if (len) {
        memcpy(copy, ptr, len);
    }
    return copy;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    char *text = (char *)(uintptr_t)str_vprintf(arena, fmt, args).ptr;
    va_end(args);
    return text;
}
