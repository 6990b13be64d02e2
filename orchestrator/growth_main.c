/* SPDX-License-Identifier: Apache-2.0 */
/* growth-tried ROOT: reads the formats below ROOT/manifests, tries their patterns for quadratic growth and writes, as the C source of
   TRIED (log/tried.h), which are linear. The build runs it, so that lint tries only what has changed since. */
#include "base/base.h"

#include "base/vec.h"
#include "codec/pattern.h"
#include "lint/lint.h"
#include "load/load.h"
#include "log/tried.h"

struct tried_key {
    uint8_t bytes[TRIED_KEY_BYTES];
};

struct tried_keys {
    VEC(struct tried_key) list;
};

static int add_key(struct arena *arena, const char *root, const struct format *format,
                   struct tried_keys *keys, struct err *err)
{
    struct str id = format_id(format);
    const char *path = arena_printf(arena, "%s/manifests/formats/%.*s.json", root, STR_ARG(id));
    struct findings findings = {0};
    struct tried_key key;
    struct str text;
    lint_format(arena, format, &findings);
    if (findings.n > 0) {
        return 0;
    }
    if (json_read_text(arena, path, &text, err) < 0) {
        return -1;
    }
    tried_key(id, text, key.bytes);
    VEC_PUSH(&keys->list, key);
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct tried_key));
}

static void print_source(const struct tried_keys *keys)
{
    struct str library = pattern_library();
    printf("/* Made by orchestrator/growth_main.c. */\n#include \"base/base.h\"\n\n#include "
           "\"log/tried.h\"\n\n"
           "static const uint8_t KEYS[][TRIED_KEY_BYTES] = {\n");
    for (size_t idx = 0; idx < keys->list.n; idx++) {
        for (size_t at = 0; at < TRIED_KEY_BYTES; at++) {
            printf("%s%u", at ? ", " : "    {", keys->list.items[idx].bytes[at]);
        }
        printf("},\n");
    }
    printf("};\nconst struct tried TRIED = {\"%.*s\", KEYS[0], ARRAY_LEN(KEYS)};\n",
           STR_ARG(library));
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(format_set) struct format_set formats = {0};
    struct tried_keys keys = {0};
    struct err err = {0};
    int status = argc == 2 ? load_formats(&arena, argv[1], &formats, &err)
                           : err_set(&err, ERR_USAGE, "expected the folder above manifests");
    for (size_t idx = 0; status == 0 && idx < formats.n; idx++) {
        status = add_key(&arena, argv[1], formats.items[idx], &keys, &err);
    }
    if (status < 0) {
        fprintf(stderr, "growth-tried: %s\n", err.msg);
        return 1;
    }
    qsort(keys.list.items, keys.list.n, sizeof(struct tried_key), compare_keys);
    print_source(&keys);
    VEC_RELEASE(&keys.list);
    return fflush(stdout) == 0 ? 0 : 1;
}
