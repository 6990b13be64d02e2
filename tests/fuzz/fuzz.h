/* SPDX-License-Identifier: Apache-2.0 */
/* What targets are made of: FUZZ is one that gets its input as a text, FUZZ_READERS one whose first byte selects who reads the rest. */
#pragma once

#include "base/base.h"

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ(arena, text)                                                                          \
    static void fuzz(struct arena *arena, struct str text);                                        \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                   \
    {                                                                                              \
        CLEANUP(arena) struct arena own = ARENA_EMPTY;                                             \
        fuzz(&own, (struct str){(const char *)data, size});                                        \
        return 0;                                                                                  \
    }                                                                                              \
    static void fuzz(struct arena *arena UNUSED, struct str text)

#define FUZZ_READERS(...)                                                                          \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)                                   \
    {                                                                                              \
        static void (*const READERS[])(struct arena *, struct str) = {__VA_ARGS__};                \
        CLEANUP(arena) struct arena own = ARENA_EMPTY;                                             \
        if (size > 0) {                                                                            \
            READERS[data[0] % ARRAY_LEN(READERS)](&own,                                            \
                                                  (struct str){(const char *)data + 1, size - 1}); \
        }                                                                                          \
        return 0;                                                                                  \
    }

/* fuzz_decode: a JSON document, by the function that reads its root. */
#define FUZZ_DECODE(type, decode)                                                                  \
    static int fuzz_decode(struct arena *arena, struct str text, type *ret, struct err *err)       \
    {                                                                                              \
        CLEANUP(json_doc) struct json_doc doc = {0};                                               \
        struct json root;                                                                          \
        if (json_parse(text, "fuzz", &doc, err) < 0) {                                             \
            return -1;                                                                             \
        }                                                                                          \
        root = doc.root;                                                                           \
        return decode(&root, arena, ret, err);                                                     \
    }
