/* SPDX-License-Identifier: Apache-2.0 */
/* Archives that come out whole: sizes, compression, tars in a tar, digests and lists. */
#include "unit.h"

#include "tests/unit/unpack_fixture.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/tree_text.h"
#include <zlib.h>

/* --- good ones ---------------------------------------------------------------------------------------------------------------- */

TEST_IN_SCRATCH(test_good)
{
    const char *folder = *state;
    struct stat info;
    mode_t old = umask(077);
    MAKE_TAR({.name = "./", .type = '5'}, {.name = "./a/b/x", .type = '0', .data = "one"},
             {.name = "a/", .type = '5'}, {.name = "run", .type = '0', .data = "", .mode = 0700},
             {.name = "a/link", .type = '2', .link = "b/../b/x"},
             {.name = "hard", .type = '1', .link = "./a/b/x"},
             {.name = "harder", .type = '1', .link = "hard"},
             {.name = "to-hard", .type = '2', .link = "harder"},
             {.name = "\xc3\xa9/\xe6\xbc\xa2", .type = '0', .data = "two"});
    assert_taken(folder, PLAIN);
    umask(old);
    assert_text(folder, "a/b/x", "one");
    assert_text(folder, "a/link", "one");
    assert_text(folder, "harder", "one");
    assert_text(folder, "\xc3\xa9/\xe6\xbc\xa2", "two");
    assert_int_equal(result.list.n, 7);
    assert_string_equal(result.list.files[0].path, "a/b/x");
    assert_memory_equal(result.list.files[0].sha256, result.list.files[2].sha256, SHA256_BYTES);
    assert_int_equal(result.n_folders, 3);
    assert_int_equal(result.n_links, 4);
    assert_string_equal(result.format, "tar");
    assert_int_equal(result.archive.size_bytes, made.len);
    static const struct {
        const char *path;
        mode_t mode;
    } MODES[] = {{"out/run", 0755}, {"out/a/b/x", 0644}, {"out/a", 0755}, {"out", 0755}};
    for (EACH(row, MODES)) {
        assert_int_equal(stat(fs_join(&scratch_arena, folder, row->path), &info), 0);
        assert_int_equal(info.st_mode & 07777, row->mode);
    }
}

/* Sizes around every border: of blocks, batches and cuts. The digest is checked against the bytes that were given. */
TEST_IN_SCRATCH(test_sizes)
{
    static const size_t SIZES[] = {0,       1,       511,     512,     513,     1048575,
                                   1048576, 1048577, 4194303, 4194304, 4194305, 13000000};
    char *bytes = xmalloc(13000000);
    char name[32];
    for (size_t idx = 0; idx < 13000000; idx++) {
        bytes[idx] = (char)(idx * 2654435761u >> 13);
    }
    begin();
    for (size_t idx = 0; idx < ARRAY_LEN(SIZES); idx++) {
        snprintf(name, sizeof(name), "f%02zu", idx);
        add_header(name, '0', NULL, SIZES[idx], 0);
        add_bytes(bytes, SIZES[idx]);
    }
    add_end();
    assert_taken(*state, PLAIN);
    assert_int_equal(result.list.n, ARRAY_LEN(SIZES));
    for (size_t idx = 0; idx < ARRAY_LEN(SIZES); idx++) {
        uint8_t sha256[SHA256_BYTES];
        struct str found;
        sha256_of((struct str){bytes, SIZES[idx]}, sha256);
        assert_memory_equal(result.list.files[idx].sha256, sha256, SHA256_BYTES);
        snprintf(name, sizeof(name), "out/f%02zu", idx);
        found = scratch_read(fs_join(&scratch_arena, *state, name));
        assert_int_equal(found.len, SIZES[idx]);
        assert_memory_equal(found.ptr, bytes, found.len);
    }
    free(bytes);
}

static void gzip_made(bool want_two_members)
{
    static uint8_t out[32u << 20];
    size_t half = want_two_members ? made.len / 2 : made.len, n = 0;
    struct str parts[2] = {{made.ptr, half}, {made.ptr + half, made.len - half}};
    for (size_t idx = 0; idx < 2 && parts[idx].len > 0; idx++) {
        z_stream z = {.next_in = (z_const Bytef *)(uintptr_t)parts[idx].ptr,
                      .avail_in = (uInt)parts[idx].len,
                      .next_out = out + n,
                      .avail_out = (uInt)(sizeof(out) - n)};
        assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        n += z.total_out;
        deflateEnd(&z);
    }
    strbuf_clear(&made);
    strbuf_add(&made, out, n);
}

/* 0: by gzip; 1: by gzip, in two members; 2: by zstd. */
static void make_packed(int kind)
{
    make_some();
    if (kind == 2) {
        zstd_made();
    } else {
        gzip_made(kind == 1);
    }
}

TEST_IN_SCRATCH(test_compressed)
{
    for (int kind = 0; kind < 3; kind++) {
        make_packed(kind);
        assert_taken(*state, PLAIN);
        assert_string_equal(result.format, kind == 2 ? "tar.zst" : "tar.gz");
        assert_text(*state, "a/x", "one");
        strbuf_add(&made, "\0\0\0\0\0", 5); /* padding, as tapes have it; zstd knows none */
        if (kind < 2) {
            assert_taken(*state, PLAIN);
            strbuf_add(&made, "x", 1);
        }
        assert_refused(*state, PLAIN);
    }
}

/* Every truncation of a small tar.gz and tar.zst is detected, and every changed byte: of a tar.zst by itself, of a tar.gz, whose
   CRC-32 libarchive does not compare, by the archive's digest. */
TEST_IN_SCRATCH(test_compressed_damage)
{
    for (int kind = 0; kind < 3; kind += 2) {
        CLEANUP(strbuf) struct strbuf whole = STRBUF(1u << 20);
        make_packed(kind);
        strbuf_add_str(&whole, strbuf_str(&made));
        struct unpack_tree_opts opts = PLAIN;
        uint8_t sha256[SHA256_BYTES];
        sha256_of(strbuf_str(&made), sha256);
        opts.sha256 = kind == 0 ? sha256 : NULL;
        for (size_t len = 0; len < whole.len; len++) {
            strbuf_clear(&made);
            strbuf_add(&made, whole.ptr, len);
            assert_refused(*state, PLAIN);
        }
        for (size_t at = 0; at < whole.len; at++) {
            strbuf_clear(&made);
            strbuf_add_str(&made, strbuf_str(&whole));
            made.ptr[at] ^= 0x10;
            if (run(*state, opts, &(struct err){0}) == 0) {
                assert_int_equal(kind, 2);
                /* Only where it decodes to exactly the same bytes. */
                assert_text(*state, "a/x", "one");
                assert_text(*state, "b", "two");
            }
        }
    }
}

TEST_IN_SCRATCH(test_not_archives)
{
    static const char *const ROWS[] = {
        "",
        "<!DOCTYPE html><title>Sign in</title>",
        "BZh91AY&SY",
        "hello\n",
        "\x1f\x8b\x08",
        "PK\x03\x04",
    };
    for (EACH(row, ROWS)) {
        begin();
        strbuf_add_z(&made, *row);
        assert_refused(*state, PLAIN);
    }
}

/* --- tars in a tar ------------------------------------------------------------------------------------------------------------ */

static void add_inner(const char *name, const struct part *parts, size_t n)
{
    struct strbuf outer = made;
    struct strbuf inner;
    made = (struct strbuf){0};
    make_tar(parts, n);
    inner = made;
    made = outer;
    add_header(name, '0', NULL, inner.len, 0);
    add_bytes(inner.ptr, inner.len);
    strbuf_release(&inner);
}

TEST_IN_SCRATCH(test_nested)
{
    static const struct part ONE[] = {{.name = "n1_1.JPEG", .type = '0', .data = "one"},
                                      {.name = "h", .type = '1', .link = "n1_1.JPEG"},
                                      {.name = "s", .type = '2', .link = "../n2/deep/x.tar"}};
    static const struct part TWO[] = {{.name = "./deep/x.tar", .type = '0', .data = "not a tar"}};
    struct unpack_tree_opts opts = PLAIN;
    begin();
    add_inner("train/n1.tar", ONE, ARRAY_LEN(ONE));
    add_part(&(struct part){.name = "between", .type = '0', .data = "b"});
    add_inner("train/n2.tar", TWO, ARRAY_LEN(TWO));
    add_end();
    opts.unpack.is_nested = true;
    assert_taken(*state, opts);
    assert_text(*state, "train/n1/n1_1.JPEG", "one");
    assert_text(*state, "train/n1/h", "one");
    assert_text(*state, "train/n1/s", "not a tar");
    assert_text(*state, "train/n2/deep/x.tar", "not a tar");
    assert_text(*state, "between", "b");
    assert_int_equal(result.list.n, 5);
}

TEST_IN_SCRATCH(test_nested_hostile)
{
    static const struct part OUT[] = {{.name = "../n2/x", .type = '0', .data = "x"}};
    static const struct part LINK[] = {{.name = "l", .type = '2', .link = "../../x"}};
    static const struct part HARD[] = {{.name = "l", .type = '1', .link = "../y"}};
    static const struct part GOOD[] = {{.name = "x", .type = '0', .data = "x"}};
    static const struct {
        const char *name;
        const struct part *inner;
        size_t n;
    } ROWS[] = {{"n1.tar", OUT, 1},
                {"n1.tar", LINK, 1},
                {"n1.tar", HARD, 1},
                {"n1.tar", GOOD, 2},
                {".tar", GOOD, 1}};
    struct unpack_tree_opts opts = PLAIN;
    opts.unpack.is_nested = true;
    for (EACH(row, ROWS)) {
        begin();
        add_part(&(struct part){.name = "y", .type = '0'});
        for (size_t idx = 0; idx < row->n; idx++) {
            add_inner(row->name, row->inner, 1);
        }
        add_end();
        assert_refused(*state, opts);
    }
    MAKE_TAR({.name = "n1.tar", .type = '0', .data = "no tar at all"});
    assert_refused(*state, opts);
    MAKE_TAR({.name = "n1.tar", .type = '0', .data = ""});
    assert_refused(*state, opts);
    /* The inner one without its end mark, the outer whole. */
    make_tar(GOOD, 1);
    struct str inner =
        str_dup(&scratch_arena, (struct str){made.ptr, made.len - (size_t)2 * BLOCK});
    begin();
    add_header("n1.tar", '0', NULL, inner.len, 0);
    add_bytes(inner.ptr, inner.len);
    add_end();
    assert_refused(*state, opts);
}

/* --- facts known beforehand
   ---------------------------------------------------------------------------------------------------- */

TEST_IN_SCRATCH(test_digests)
{
    struct unpack_tree_opts opts = PLAIN;
    struct digest_value value;
    uint8_t bad[SHA256_BYTES] = {0};
    make_some();
    assert_taken(*state,
                 (struct unpack_tree_opts){.size_bytes = -1, .kinds = DIGEST_MD5 | DIGEST_SHA256});
    value = result.archive;
    opts.md5 = value.md5;
    opts.sha256 = value.sha256;
    opts.size_bytes = (int64_t)made.len;
    assert_taken(*state, opts);
    opts.md5 = bad;
    assert_refused(*state, opts);
    opts.md5 = NULL;
    opts.sha256 = bad;
    assert_refused(*state, opts);
    opts.sha256 = NULL;
    opts.size_bytes--;
    assert_refused(*state, opts);
}

TEST_IN_SCRATCH(test_list)
{
    static const char SHA[] =
        /* of "one" and "two", from coreutils */
        "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed  a/x\n"
        "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3  b\n";
    static const char MD5[] = "f97c5d29941bfb1b2fdab0874906ab82  a/x\n"
                              "b8a9f715dbb64fd5c56e7783c6820a61  b\n";
    static const char BAD[] =
        "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ee  a/x\n"
        "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3  c\n";
    struct tree_list list;
    struct unpack_tree_opts opts = PLAIN;
    opts.list = &list;
    make_some();
    PASSES(tree_text_read(tree_sums_read, &scratch_arena, STR_LIT(SHA), &list, ERR));
    assert_taken(*state, opts);
    PASSES(tree_text_read(tree_sums_read, &scratch_arena, STR_LIT(MD5), &list, ERR));
    assert_taken(*state, opts);
    PASSES(tree_text_read(tree_sums_read, &scratch_arena, STR_LIT(BAD), &list, ERR));
    assert_refused(*state, opts);
    assert_int_equal(result.differences.n, 3);
    for (unsigned idx = 0; idx < 3; idx++) {
        static const enum tree_fault FAULTS[] = {TREE_CORRUPT, TREE_EXTRA, TREE_MISSING};
        static const char *const PATHS[] = {"a/x", "b", "c"};
        assert_int_equal(result.differences.items[idx].fault, FAULTS[idx]);
        assert_string_equal(result.differences.items[idx].path, PATHS[idx]);
    }
}

TEST_IN_SCRATCH(test_stop)
{
    make_some();
    scratch_stop();
    FAILS(run(*state, PLAIN, ERR), ERR_INTERRUPTED);
    scratch_go_on();
    assert_nothing_left(*state);
}

TEST_IN_SCRATCH(test_into)
{
    struct unpack_tree_opts opts = {.size_bytes = -1};
    const char *archive = fs_join(&scratch_arena, *state, "archive");
    opts.into = fs_join(&scratch_arena, *state, "out");
    opts.archive = archive;
    PASSES(fs_mkdir_p(opts.into, ERR));
    make_some();
    scratch_write(archive, strbuf_str(&made));
    PASSES(unpack_tree(&scratch_arena, &opts, &result, ERR));
    MAKE_TAR({.name = "a/y", .type = '0', .data = "three"});
    scratch_write(archive, strbuf_str(&made));
    PASSES(unpack_tree(&scratch_arena, &opts, &result, ERR));
    assert_text(*state, "a/x", "one");
    assert_text(*state, "a/y", "three");
    FAILS_WITH(unpack_tree(&scratch_arena, &opts, &result, ERR), ERR_INTEGRITY,
               "another archive has that file");
    /* An existing symlink is not followed. */
    assert_int_equal(symlink("/tmp", fs_join(&scratch_arena, opts.into, "z")), 0);
    MAKE_TAR({.name = "z/reperf-unpack", .type = '0', .data = "three"});
    scratch_write(archive, strbuf_str(&made));
    FAILS(unpack_tree(&scratch_arena, &opts, &result, ERR), ERR_ANY);
    assert_int_equal(access("/tmp/reperf-unpack", F_OK), -1);
}

UNIT_MAIN(scratch_group_start, end)
