/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over saved inputs without a fuzzing engine: each argument is a file or a folder of files. TAP out. */
#include "base/base.h"
#include "base/fs.h"

#define INPUT_BYTES_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, int n)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct str text;
    if (fs_read(&arena, path, INPUT_BYTES_MAX, &text, &err) < 0) {
        printf("not ok %d - %s\n", n, err.msg);
        return -1;
    }
    /* A copy of exactly this size, so that ASan sees a read past its end. */
    uint8_t *copy = xmalloc(text.len);
    memcpy(copy, text.ptr, text.len);
    printf("# %s\n", path);
    fflush(stdout);
    LLVMFuzzerTestOneInput(copy, text.len);
    free(copy);
    printf("ok %d - %s\n", n, path);
    return 0;
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    int n = 0;
    int n_bad = 0;
    for (int idx = 1; idx < argc; idx++) {
        struct err err = {0};
        struct fs_names files = {&argv[idx], 1};
        bool is_dir = fs_is_dir(argv[idx]);
        if (is_dir && fs_walk(&arena, argv[idx], &files, &err) < 0) {
            printf("not ok %d - %s\n", ++n, err.msg);
            n_bad++;
            continue;
        }
        for (size_t file = 0; file < files.n; file++) {
            const char *path = is_dir ? fs_join(&arena, argv[idx], files.items[file]) : argv[idx];
            n_bad += replay_file(path, ++n) < 0;
        }
    }
    printf("1..%d\n", n);
    return n == 0 || n_bad > 0;
}
