/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed as a whole. Everything read from outside lives in one (STYLE.md section 3). Not thread-safe. Out
   of memory, or a request over ARENA_ALLOC_MAX, ends the process: check sizes from outside first. */
#pragma once

#include "base/base.h"

#define ARENA_ALLOC_MAX (1ULL << 36)

struct arena_block;
struct arena_adopted;

struct arena {
    struct arena_block *head; /* owned; newest first */
    size_t used_bytes;        /* handed out in all */
    struct arena_adopted *adopted;
};

#define ARENA_EMPTY ((struct arena){0})

void arena_release(struct arena *arena);
CLEANUP_BY(arena, struct arena, arena_release);

/* Zeroed memory. */
void *arena_alloc(struct arena *arena, size_t size, size_t align);
/* Moves everything from `from` to `into`, leaving `from` empty. */
void arena_join(struct arena *into, struct arena *from);
/* Takes ownership of a heap block, which is then freed with the arena. NULL does nothing. */
void arena_adopt(struct arena *arena, void *heap_ptr);
char *arena_strndup(struct arena *arena, const char *ptr, size_t len);
char *arena_printf(struct arena *arena, const char *fmt, ...) PRINTF_LIKE(2, 3);

#define arena_new(arena, type) ((type *)arena_alloc((arena), sizeof(type), alignof(type)))
#define arena_array(arena, type, count)                                                            \
    ((type *)arena_alloc_array((arena), sizeof(type), (count), alignof(type)))
void *arena_alloc_array(struct arena *arena, size_t elem_size, size_t count, size_t align);

/* Heap for long-lived objects: never NULL. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *ptr, size_t size);
char *xstrdup(const char *z);

static inline void free_cleanup(void *ptr_to_ptr)
{
    free(*(void **)ptr_to_ptr);
}
