/* SPDX-License-Identifier: Apache-2.0 */
/* Tars made byte by byte, and unpack_tree run on them, for the test_unpack programs. */
#pragma once

#include "unit.h"

#include <zstd.h>

#include "base/fs.h"
#include "base/strbuf.h"
#include "store/unpack_tree.h"
#include "tests/unit/scratch.h"

#define BLOCK 512

struct part { /* one entry of a tar */
    const char *name;
    char type; /* '0' file, '5' folder, '2' symlink, '1' hard link, ... */
    const char *link;
    const char *data;
    unsigned mode; /* 0: 0644 */
};

static struct strbuf made; /* the archive being made */

static UNUSED void octal(char *field, size_t size, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%0*" PRIo64, (int)size - 1, value);
    memcpy(field, text, size);
}

static UNUSED void add_header(const char *name, char type, const char *link, uint64_t size,
                              unsigned mode)
{
    char block[BLOCK] = {0};
    unsigned sum = 0;
    memcpy(block, name, strlen(name) < 100 ? strlen(name) : 100);
    octal(block + 100, 8, mode ? mode : 0644);
    octal(block + 108, 8, 0);
    octal(block + 116, 8, 0);
    octal(block + 124, 12, size);
    octal(block + 136, 12, 1000000000);
    memset(block + 148, ' ', 8);
    block[156] = type;
    memcpy(block + 157, link ? link : "", link ? strlen(link) : 0);
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t idx = 0; idx < BLOCK; idx++) {
        sum += (unsigned char)block[idx];
    }
    snprintf(block + 148, 8, "%06o", sum);
    strbuf_add(&made, block, BLOCK);
}

static UNUSED void add_bytes(const void *ptr, size_t len)
{
    static const char ZERO[BLOCK];
    strbuf_add(&made, ptr, len);
    strbuf_add(&made, ZERO, (BLOCK - len % BLOCK) % BLOCK);
}

static UNUSED void add_part(const struct part *part)
{
    const char *data = part->data ? part->data : "";
    bool has_data = part->type == '0' || part->data;
    add_header(part->name, part->type, part->link, has_data ? strlen(data) : 0, part->mode);
    add_bytes(data, has_data ? strlen(data) : 0);
}

static UNUSED void add_end(void)
{
    static const char ZERO[2 * BLOCK];
    strbuf_add(&made, ZERO, sizeof(ZERO));
}

static UNUSED void begin(void)
{
    strbuf_release(&made);
    strbuf_init(&made, 256u << 20);
}

static UNUSED void make_tar(const struct part *parts, size_t n)
{
    begin();
    for (size_t idx = 0; idx < n; idx++) {
        add_part(&parts[idx]);
    }
    add_end();
}

#define MAKE_TAR(...)                                                                              \
    do {                                                                                           \
        const struct part parts_[] = {__VA_ARGS__};                                                \
        make_tar(parts_, ARRAY_LEN(parts_));                                                       \
    } while (0)

/* --- running it --------------------------------------------------------------------------------------------------------------- */

static struct unpack_tree_result result;
static const struct unpack_tree_opts PLAIN = {.size_bytes = -1};

/* The bytes of `made` as an archive, into a new FOLDER/out. */
static UNUSED int run(const char *folder, struct unpack_tree_opts opts, struct err *err)
{
    const char *archive = fs_join(&scratch_arena, folder, "archive");
    scratch_write(archive, strbuf_str(&made));
    opts.archive = archive;
    opts.new_folder = fs_join(&scratch_arena, folder, "out");
    return fs_remove_tree(opts.new_folder, err) < 0
               ? -1
               : unpack_tree(&scratch_arena, &opts, &result, err);
}

static UNUSED void assert_text(const char *folder, const char *path, const char *text)
{
    struct str found =
        scratch_read(fs_join(&scratch_arena, fs_join(&scratch_arena, folder, "out"), path));
    assert_int_equal(found.len, strlen(text));
    assert_memory_equal(found.ptr, text, found.len);
}

/* The folder holds the archive and nothing else. */
static UNUSED void assert_nothing_left(const char *folder)
{
    struct fs_names names;
    PASSES(fs_list(&scratch_arena, folder, &names, ERR));
    assert_int_equal(names.n, 1);
    assert_string_equal(names.items[0], "archive");
}

static UNUSED void assert_refused(const char *folder, struct unpack_tree_opts opts)
{
    FAILS(run(folder, opts, ERR), ERR_INTEGRITY);
    assert_nothing_left(folder);
}

static UNUSED void assert_taken(const char *folder, struct unpack_tree_opts opts)
{
    PASSES(run(folder, opts, ERR));
}

static UNUSED void zstd_made(void)
{
    static uint8_t out[32u << 20];
    ZSTD_CCtx *ctx = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(ctx, ZSTD_c_checksumFlag, 1);
    size_t n = ZSTD_compress2(ctx, out, sizeof(out), made.ptr, made.len);
    assert_false(ZSTD_isError(n));
    ZSTD_freeCCtx(ctx);
    strbuf_clear(&made);
    strbuf_add(&made, out, n);
}

static UNUSED void make_some(void)
{
    MAKE_TAR({.name = "a/x", .type = '0', .data = "one"},
             {.name = "b", .type = '0', .data = "two"});
}

static UNUSED int end(void **state)
{
    strbuf_release(&made);
    return scratch_group_end(state);
}
