/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/rng.h"
#include "codec/tarball.h"
#include "tests/unit/scratch.h"

struct file {
    const char *name;
    struct str bytes;
};

/* What was read, as one text: a line with name and size, the bytes, ".". */
struct seen {
    struct strbuf text;
};

static int read_members(struct tarball_source *source, struct seen *seen, struct err *err)
{
    struct unpack_entry member;
    bool has = true;
    for (;;) {
        const void *ptr;
        size_t len = 1;
        if (tarball_next(source, &member, &has, err) < 0) {
            return -1;
        }
        if (!has) {
            return 0;
        }
        strbuf_printf(&seen->text, "%.*s %" PRIu64 "\n", STR_ARG(member.path), member.size_bytes);
        while (len > 0) {
            if (unpack_data(source->unpack, &ptr, &len, err) < 0) {
                return -1;
            }
            strbuf_add(&seen->text, ptr, len);
        }
        strbuf_add_z(&seen->text, "\n.\n");
    }
}

static int read_all(const char *path, struct seen *seen, struct err *err)
{
    CLEANUP(tarball_source) struct tarball_source source = TARBALL_SOURCE_EMPTY;
    strbuf_init(&seen->text, 64u << 20);
    return tarball_open(path, &source, err) < 0 ? -1 : read_members(&source, seen, err);
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
    FAILS_WITH(read_all(path, &seen, ERR), ERR_INTEGRITY, path);
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

TEST(names_are_clean_in_order_and_of_files_alone)
{
    char longest[USTAR_NAME_MAX + 2] = {0};
    const struct {
        const char *names[3];
        bool is_good;
    } ROWS[] = {
        {{"a", "b/c", USTAR_SUMS}, true},
        {{USTAR_SUMS, USTAR_PROVENANCE, USTAR_STATEMENT}, true},
        {{longest + 1}, true},
        {{longest}, false},
        {{""}, false},
        {{"/a"}, false},
        {{"a/../b"}, false},
        {{"a\nb"}, false},
        {{"a", "a"}, false},
        {{"b", "a"}, false},
        {{USTAR_SUMS, "a"}, false},
        {{USTAR_STATEMENT, USTAR_SUMS}, false},
        {{"A", "a"}, false},
        {{"a", "a/b"}, false},
        {{"a", "a-", "a/b"}, false},
        {{"A/b", "a"}, false},
        {{"LOG/x", "log/X"}, false},
    };
    memset(longest, 'a', USTAR_NAME_MAX + 1);
    for (EACH(row, ROWS)) {
        CLEANUP(ustar_names) struct ustar_names names = {0};
        struct err err = {0};
        int result = 0;
        for (size_t k = 0; k < 3 && row->names[k] && result == 0; k++) {
            result = ustar_names_add(&names, str_of(row->names[k]), 1, &err);
        }
        assert_int_equal(result, row->is_good ? 0 : -1);
        assert_int_equal(err.code, row->is_good ? ERR_NONE : ERR_INTEGRITY);
    }
}

/* Refused by what the headers say, before any of it is unpacked. */
TEST(bombs_are_refused)
{
    static const struct {
        int n;
        uint64_t size_bytes;
    } ROWS[] = {{8, 1ULL << 33}, {USTAR_FILES_MAX, 0}};
    for (EACH(row, ROWS)) {
        CLEANUP(ustar_names) struct ustar_names names = {0};
        for (int idx = 0; idx < row->n; idx++) {
            char name[16];
            snprintf(name, sizeof(name), "%06d", idx);
            PASSES(ustar_names_add(&names, str_of(name), row->size_bytes, ERR));
        }
        FAILS(ustar_names_add(&names, STR_LIT("z"), 1, ERR), ERR_INTEGRITY);
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

static int make_key(void **state UNUSED)
{
    char id[SIGN_KEY_ID_SIZE];
    struct err err = {0};
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
