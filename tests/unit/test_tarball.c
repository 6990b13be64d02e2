/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

#include "base/fs.h"
#include "base/rng.h"
#include "codec/tarball.h"
#include "tests/unit/scratch.h"

struct file {
    const char *name;
    struct str bytes;
};

/* What a sink saw, as one text: "name:size:first byte..." lines. */
struct seen {
    struct strbuf text;
};

static int seen_begin(void *ctx, struct str name, uint64_t size_bytes, struct err *err UNUSED)
{
    struct seen *seen = ctx;
    strbuf_printf(&seen->text, "%.*s %" PRIu64 "\n", STR_ARG(name), size_bytes);
    return 0;
}

static int seen_data(void *ctx, const void *ptr, size_t len, struct err *err UNUSED)
{
    struct seen *seen = ctx;
    strbuf_add(&seen->text, ptr, len);
    return 0;
}

static int seen_end(void *ctx, struct err *err UNUSED)
{
    struct seen *seen = ctx;
    strbuf_add_z(&seen->text, "\n.\n");
    return 0;
}

/* All of it. */
static int tarball_read(const char *path, struct ustar_sink sink, struct err *err)
{
    CLEANUP(tarball_source) struct tarball_source source = TARBALL_SOURCE_EMPTY;
    CLEANUP(ustar_reader) struct ustar_reader reader;
    CLEANUP(free) void *buf = xmalloc(TARBALL_CHUNK_BYTES);
    size_t len = 0;
    ustar_reader_init(&reader, sink);
    if (tarball_open(path, &source, err) < 0) {
        return -1;
    }
    do {
        if (tarball_next(&source, buf, TARBALL_CHUNK_BYTES, &len, err) < 0) {
            return -1;
        }
        if (ustar_feed(&reader, buf, len, err) < 0) {
            return err_wrap(err, "%s", path);
        }
    } while (len);
    return ustar_finish(&reader, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

/* Into a new folder. */
static int unpack_all(const char *path, const char *folder, struct err *err)
{
    struct tarball_unpacker unpacker = TARBALL_UNPACKER_EMPTY;
    int result;
    assert_int_equal(fs_mkdir_p(folder, err), 0);
    unpacker.folder = folder;
    result = tarball_read(path, tarball_unpack_sink(&unpacker), err);
    tarball_unpacker_release(&unpacker);
    return result;
}

static int read_all(const char *path, struct seen *seen, struct err *err)
{
    struct ustar_sink sink = {seen, seen_begin, seen_data, seen_end};
    strbuf_init(&seen->text, 64u << 20);
    return tarball_read(path, sink, err);
}

static const struct file FILES[] = {
    {"environment/node0.json", {"{}", 2}},
    {"logs/raw/empty.log", {"", 0}},
    {"logs/raw/esc.log", {"a\x1b[0m\0\r\n", 8}},
    {"manifest/\xc3\xa9.json", {"{}\n", 3}},
    {USTAR_SUMS, {"sums", 4}},
    {USTAR_STATEMENT, {"{}", 2}},
};

static int write_files(const char *path, const struct file *files, size_t n,
                       const struct sign_key *key, struct err *err)
{
    CLEANUP(tarball_writer) struct tarball_writer w = TARBALL_WRITER_EMPTY;
    CLEANUP(fd) int fd = scratch_create(path);
    if (tarball_writer_init(&w, fd, path, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (tarball_begin(&w, str_of(files[idx].name), files[idx].bytes.len, err) < 0 ||
            tarball_data(&w, files[idx].bytes.ptr, files[idx].bytes.len, err) < 0 ||
            tarball_end(&w, err) < 0) {
            return -1;
        }
    }
    return tarball_finish(&w, key, err);
}

TEST(what_is_written_is_read)
{
    const char *path = scratch_path("a.tar.zst");
    CLEANUP(strbuf) struct strbuf wanted = STRBUF(1u << 20);
    struct seen seen;
    for (EACH(row, FILES)) {
        strbuf_printf(&wanted, "%s %zu\n", row->name, row->bytes.len);
        strbuf_add_str(&wanted, row->bytes);
        strbuf_add_z(&wanted, "\n.\n");
    }
    PASSES(write_files(path, FILES, ARRAY_LEN(FILES), NULL, ERR));
    PASSES(read_all(path, &seen, ERR));
    assert_int_equal(seen.text.len, wanted.len);
    assert_memory_equal(seen.text.ptr, wanted.ptr, wanted.len);
    strbuf_release(&seen.text);
}

/* Input in other portions, and a file over several zstd jobs: the same bytes come out. */
TEST(bytes_do_not_depend_on_portions)
{
    const char *paths[2] = {scratch_path("p0"), scratch_path("p1")};
    size_t len = (9u << 20) + 5;
    char *bytes = arena_alloc(&scratch_arena, len, 1);
    struct rng rng;
    struct str archives[2];
    rng_init(&rng, 3);
    for (size_t idx = 0; idx < len; idx++) {
        bytes[idx] = idx % 3 ? (char)rng_below(&rng, 256) : 'a';
    }
    for (size_t round = 0; round < 2; round++) {
        CLEANUP(tarball_writer) struct tarball_writer w = TARBALL_WRITER_EMPTY;
        CLEANUP(fd) int fd = scratch_create(paths[round]);
        PASSES(tarball_writer_init(&w, fd, paths[round], ERR));
        PASSES(tarball_begin(&w, STR_LIT("big"), len, ERR));
        for (size_t at = 0; at < len;) {
            size_t n = round ? 1 + (size_t)rng_below(&rng, 200000) : (size_t)1 << 20;
            n = n < len - at ? n : len - at;
            PASSES(tarball_data(&w, bytes + at, n, ERR));
            at += n;
        }
        PASSES(tarball_end(&w, ERR));
        PASSES(tarball_finish(&w, NULL, ERR));
        archives[round] = scratch_read(paths[round]);
    }
    assert_true(str_eq(archives[0], archives[1]));
    struct seen seen;
    PASSES(read_all(paths[0], &seen, ERR));
    assert_memory_equal(seen.text.ptr + strlen("big 9437189\n"), bytes, len);
    strbuf_release(&seen.text);
}

static void expect_refused(const char *path)
{
    struct seen seen;
    FAILS(read_all(path, &seen, ERR), ERR_INTEGRITY);
    SAYS(path);
    strbuf_release(&seen.text);
}

static void change_everywhere(const struct sign_key *key)
{
    const char *path = scratch_path("flip.tar.zst");
    struct str whole;
    char *bytes;
    PASSES(write_files(path, FILES, ARRAY_LEN(FILES), key, ERR));
    whole = scratch_read(path);
    bytes = arena_strndup(&scratch_arena, whole.ptr, whole.len + 1);
    for (size_t at = 0; at < whole.len; at++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            bytes[at] = (char)(whole.ptr[at] ^ (1 << bit));
            scratch_write(path, (struct str){bytes, whole.len});
            expect_refused(path);
        }
        bytes[at] = whole.ptr[at];
        scratch_write(path, (struct str){bytes, at});
        expect_refused(path);
    }
    for (unsigned added = 0; added < 256; added++) {
        bytes[whole.len] = (char)added;
        scratch_write(path, (struct str){bytes, whole.len + 1});
        expect_refused(path);
    }
    /* Twice the whole archive, one after the other: a second frame hides nothing. */
    CLEANUP(strbuf) struct strbuf twice = STRBUF(1u << 20);
    strbuf_add_str(&twice, whole);
    strbuf_add_str(&twice, whole);
    scratch_write(path, strbuf_str(&twice));
    expect_refused(path);
}

static struct sign_key test_key;

TEST(every_change_of_an_unsigned_archive_is_seen)
{
    change_everywhere(NULL);
}

TEST(every_change_of_a_signed_archive_is_seen)
{
    change_everywhere(&test_key);
}

/* Any tar stream in a container with a valid digest: what an attacker without the key can make. */
static void write_container(const char *path, struct str tar)
{
    size_t room = ZSTD_compressBound(tar.len);
    char *out = arena_alloc(&scratch_arena, room + 1024, 1);
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    uint8_t sha256[SHA256_BYTES];
    char hex[SHA256_HEX_SIZE];
    char dashes[129];
    size_t len;
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, 0)));
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1)));
    assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, 20)));
    len = ZSTD_compress2(zstd, out, room, tar.ptr, tar.len);
    assert_false(ZSTD_isError(len));
    ZSTD_freeCCtx(zstd);
    sha256_of((struct str){out, len}, sha256);
    hex_encode(sha256, sizeof(sha256), hex);
    memset(dashes, '-', 128);
    dashes[128] = '\0';
    memcpy(out + len, "\x5d\x2a\x4d\x18\x29\x01\0\0", 8);
    len += 8;
    len +=
        (size_t)snprintf(out + len, 1024, "reperf-closing 1\nsha256 %s\nkey %.64s\nsignature %s\n",
                         hex, dashes, dashes);
    scratch_write(path, (struct str){out, len});
}

static void add_member(struct strbuf *tar, const char *name, struct str bytes)
{
    uint8_t header[USTAR_BLOCK];
    static const char ZERO[USTAR_BLOCK];
    PASSES(ustar_header(str_of(name), bytes.len, header, ERR));
    strbuf_add(tar, header, sizeof(header));
    strbuf_add_str(tar, bytes);
    strbuf_add(tar, ZERO, ustar_padding(bytes.len));
}

static void add_end(struct strbuf *tar)
{
    static const char ZERO[2 * USTAR_BLOCK];
    strbuf_add(tar, ZERO, sizeof(ZERO));
}

/* A header changed at `at`, with its checksum recomputed. */
static void patch(struct strbuf *tar, size_t header, size_t at, const char *text, size_t len)
{
    unsigned sum = 0;
    memcpy(tar->ptr + header + at, text, len);
    memset(tar->ptr + header + 148, ' ', 8);
    for (size_t idx = 0; idx < USTAR_BLOCK; idx++) {
        sum += (uint8_t)tar->ptr[header + idx];
    }
    snprintf(tar->ptr + header + 148, 8, "%06o", sum);
    tar->ptr[header + 155] = ' ';
}

TEST(hostile_headers_are_refused)
{
    static const struct {
        size_t at;
        const char *text;
        size_t len;
    } ROWS[] = {
        {0, "/a", 2},
        {0, "../a", 5},
        {0, "a/../b", 7},
        {0, "a//b", 5},
        {0, "./a", 4},
        {0, "a/", 3},
        {0, "a\nb", 4},
        {0, "a\\b", 4},
        {0, "a\xff", 3},
        {0, "a\xed\xa0\x80", 5},
        {0, "\0", 1},
        {345, "/x", 2},
        {345, "x", 1},
        {156, "1", 1},
        {156, "2", 1},
        {156, "3", 1},
        {156, "4", 1},
        {156, "5", 1},
        {156, "6", 1},
        {156, "x", 1},
        {156, "L", 1},
        {156, "\0", 1},
        {157, "t", 1},
        {100, "0000755", 7},
        {108, "0000001", 7},
        {116, "0000001", 7},
        {136, "00000000001", 11},
        {124, "\x80\0\0\0\0\0\0\0\0\0\0\4", 12},
        {124, "        004 ", 12},
        {265, "root", 4},
        {297, "root", 4},
        {500, "x", 1},
        {8, "x", 1},
        {257, "ustar  ", 8},
    };
    const char *path = scratch_path("hostile");
    for (EACH(row, ROWS)) {
        CLEANUP(strbuf) struct strbuf tar = STRBUF(1u << 20);
        struct seen seen;
        add_member(&tar, "a", STR_LIT("data"));
        add_end(&tar);
        write_container(path, strbuf_str(&tar));
        PASSES(read_all(path, &seen, ERR)); /* the container itself is good */
        strbuf_release(&seen.text);
        patch(&tar, 0, row->at, row->text, row->len);
        write_container(path, strbuf_str(&tar));
        FAILS(read_all(path, &seen, ERR), ERR_INTEGRITY);
        strbuf_release(&seen.text);
    }
}

TEST(orders_and_synthetic_are_refused)
{
    static const char *const ROWS[][3] = {
        {"a", "a"},         {"b", "a"},   {USTAR_SUMS, "a"},  {USTAR_STATEMENT, USTAR_SUMS},
        {"A", "a"},         {"a", "a/b"}, {"a", "a-", "a/b"}, {"A/b", "a"},
        {"LOG/x", "log/X"},
    };
    const char *path = scratch_path("order");
    for (EACH(row, ROWS)) {
        CLEANUP(strbuf) struct strbuf tar = STRBUF(1u << 20);
        struct seen seen;
        for (size_t k = 0; k < 3 && (*row)[k]; k++) {
            add_member(&tar, (*row)[k], STR_LIT("data"));
        }
        add_end(&tar);
        write_container(path, strbuf_str(&tar));
        FAILS(read_all(path, &seen, ERR), ERR_INTEGRITY);
        strbuf_release(&seen.text);
    }
}

TEST(ends_are_exact)
{
    const char *path = scratch_path("ends");
    for (int kind = 0; kind < 6; kind++) {
        CLEANUP(strbuf) struct strbuf tar = STRBUF(1u << 20);
        add_member(&tar, "a", STR_LIT("data"));
        switch (kind) {
        case 0: /* no end at all */
            break;
        case 1: /* one zero block */
            strbuf_add(&tar, (char[USTAR_BLOCK]){0}, USTAR_BLOCK);
            break;
        case 2: /* one zero block and a member */
            strbuf_add(&tar, (char[USTAR_BLOCK]){0}, USTAR_BLOCK);
            add_member(&tar, "b", STR_LIT("data"));
            add_end(&tar);
            break;
        case 3: /* as GNU tar fills its records */
            add_end(&tar);
            add_end(&tar);
            break;
        case 4: /* a byte too many */
            add_end(&tar);
            strbuf_add_char(&tar, 'x');
            break;
        default: /* something in the padding */
            add_end(&tar);
            tar.ptr[USTAR_BLOCK + 5] = 'x';
            break;
        }
        write_container(path, strbuf_str(&tar));
        expect_refused(path);
    }
}

/* 80 GB of zeros in some kilobytes: refused by what the headers say, before any of it is unpacked. */
TEST(bombs_are_refused)
{
    const char *path = scratch_path("bomb");
    CLEANUP(strbuf) struct strbuf tar = STRBUF(4u << 20);
    char size[13];
    for (int idx = 0; idx < 10; idx++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", idx);
        add_member(&tar, name, STR_EMPTY);
    }
    snprintf(size, sizeof(size), "%011llo", 1ULL << 33);
    struct ustar_names names = {0};
    for (int idx = 0; idx < 8; idx++) {
        char name[16];
        snprintf(name, sizeof(name), "f%d", idx);
        PASSES(ustar_names_add(&names, str_of(name), (1ULL << 33), ERR));
    }
    FAILS(ustar_names_add(&names, STR_LIT("f8"), 1, ERR), ERR_INTEGRITY);
    ustar_names_release(&names);
    /* A member that claims 8 GiB and has nothing. */
    patch(&tar, 0, 124, size, 11);
    write_container(path, strbuf_str(&tar));
    expect_refused(path);
    /* Too many files. */
    names = (struct ustar_names){0};
    for (int idx = 0; idx < USTAR_FILES_MAX; idx++) {
        char name[16];
        snprintf(name, sizeof(name), "%06d", idx);
        PASSES(ustar_names_add(&names, str_of(name), 0, ERR));
    }
    FAILS(ustar_names_add(&names, STR_LIT("z"), 0, ERR), ERR_ANY);
    ustar_names_release(&names);
}

TEST(long_names_are_divided_or_refused)
{
    static const struct {
        size_t len, slash; /* slash 0: none */
        bool is_good;
    } ROWS[] = {
        {100, 0, true},    {101, 0, false},   {255, 155, true}, {256, 155, false}, {255, 154, true},
        {255, 153, false}, {255, 156, false}, {230, 150, true}, {230, 120, false}, {102, 1, true},
    };
    for (EACH(row, ROWS)) {
        char *name = arena_alloc(&scratch_arena, row->len + 1, 1);
        const char *path = scratch_path("long");
        const struct file file = {name, {"x", 1}};
        struct err err = {0};
        struct seen seen;
        memset(name, 'a', row->len);
        if (row->slash) {
            name[row->slash] = '/';
        }
        assert_int_equal(write_files(path, &file, 1, NULL, &err), row->is_good ? 0 : -1);
        if (row->is_good) {
            PASSES(read_all(path, &seen, ERR));
            assert_memory_equal(seen.text.ptr, name, row->len);
            strbuf_release(&seen.text);
        } else {
            assert_int_equal(err.code, ERR_INTEGRITY);
        }
    }
}

TEST(sizes_must_hold_while_writing)
{
    CLEANUP(tarball_writer) struct tarball_writer w = TARBALL_WRITER_EMPTY;
    CLEANUP(fd) int fd = scratch_create(scratch_path("size"));
    PASSES(tarball_writer_init(&w, fd, "size", ERR));
    PASSES(tarball_begin(&w, STR_LIT("a"), 3, ERR));
    PASSES(tarball_data(&w, "ab", 2, ERR));
    FAILS(tarball_end(&w, ERR), ERR_ANY);
    FAILS(tarball_data(&w, "abc", 3, ERR), ERR_ANY);
}

TEST(unpacking_gives_the_files)
{
    const char *path = scratch_path("u.tar.zst");
    const char *out = scratch_path("u.out");
    struct fs_names names;
    PASSES(write_files(path, FILES, ARRAY_LEN(FILES), NULL, ERR));
    PASSES(unpack_all(path, out, ERR));
    PASSES(fs_walk(&scratch_arena, out, &names, ERR));
    assert_int_equal(names.n, ARRAY_LEN(FILES));
    for (EACH(row, FILES)) {
        struct str bytes = scratch_read(fs_join(&scratch_arena, out, row->name));
        assert_true(str_eq(bytes, row->bytes));
    }
    /* An existing file is not touched. */
    FAILS(unpack_all(path, out, ERR), ERR_ANY);
    assert_true(fs_exists(fs_join(&scratch_arena, out, "logs/raw/esc.log")));
}

TEST(a_full_disk_is_said_so)
{
    const struct file big = {"big", {arena_alloc(&scratch_arena, 1u << 20, 1), 1u << 20}};
    const char *path = scratch_path("full.tar.zst");
    struct rlimit old, small;
    PASSES(write_files(path, &big, 1, NULL, ERR));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = (struct rlimit){4096, old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int result = unpack_all(path, scratch_path("full.out"), ERR);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(result, -1);
    assert_int_equal(ERR->code, ERR_DISK);
}

static int make_key(void **state UNUSED)
{
    char id[SIGN_KEY_ID_SIZE];
    struct err err = {0};
    signal(SIGXFSZ, SIG_IGN);
    if (scratch_start() < 0 ||
        sign_keygen(scratch_path("k"), scratch_path("k.pub"), id, &err) < 0) {
        return -1;
    }
    return sign_load_private(scratch_path("k"), &test_key, &err);
}

static int finish(void **state UNUSED)
{
    sign_key_release(&test_key);
    return scratch_end();
}

UNIT_MAIN(make_key, finish)
