/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of files: the first byte selects one of ours (strict) or a published one. What our reader accepts is what our writer
   writes, byte for byte; what the other accepts is sorted, clean, and the same when written and read again. */
#include "tests/fuzz/fuzz.h"

#include "sys/tree.h"
#include "tests/unit/tree_text.h"

static void check_list(const struct tree_list *list)
{
    ASSERT(!list->lacks_sha256 || list->md5);
    for (size_t idx = 0; idx < list->n; idx++) {
        const char *path = list->files[idx].path;
        ASSERT(path[0] != '\0');
        ASSERT(path[0] != '/');
        ASSERT(strlen(path) < TREE_PATH_MAX);
        ASSERT(strncmp(path, "../", 3) != 0);
        ASSERT(!strstr(path, "/../"));
        ASSERT(!strstr(path, "//"));
        ASSERT(idx == 0 || strcmp(list->files[idx - 1].path, path) < 0);
    }
}

static void try_strict(struct arena *arena, struct str text)
{
    struct tree_list list;
    struct err err = {0};
    uint8_t of_list[SHA256_BYTES], of_text[SHA256_BYTES];
    if (tree_text_read(tree_list_read, arena, text, &list, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
        return;
    }
    check_list(&list);
    tree_list_sha256(&list, of_list);
    sha256_of(text, of_text);
    ASSERT(memcmp(of_list, of_text, SHA256_BYTES) == 0);
}

static void try_published(struct arena *arena, struct str text)
{
    struct tree_list list;
    struct tree_differences differences;
    struct err err = {0};
    if (tree_text_read(tree_sums_read, arena, text, &list, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
        return;
    }
    check_list(&list);
    tree_compare(arena, &list, &list, &differences);
    ASSERT(differences.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    if (size == 0) {
        return 0;
    }
    struct str text = {(const char *)data + 1, size - 1};
    if (data[0] & 1) {
        try_published(&arena, text);
    } else {
        try_strict(&arena, text);
    }
    /* Memory stays in proportion to the input: a line of 36 bytes is the shortest that counts. */
    ASSERT(arena.used_bytes < 4096 + 16 * size);
    return 0;
}
