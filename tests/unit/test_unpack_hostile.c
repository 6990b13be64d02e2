/* SPDX-License-Identifier: Apache-2.0 */
/* Archives made to do harm, truncated and lengthened: none is accepted, and none leaves anything behind. */
#include "unit.h"

#include "tests/unit/unpack_fixture.h"

#include <archive.h>
#include <archive_entry.h>

#include "codec/unpack_names.h"

/* --- hostile ones ------------------------------------------------------------------------------------------------------------- */

#define LONG_50 "12345678901234567890123456789012345678901234567890"

TEST_IN_SCRATCH(test_hostile)
{
    static const struct part ROWS[][4] = {
        {{.name = "/etc/x", .type = '0'}},
        {{.name = "../x", .type = '0'}},
        {{.name = "a/../../x", .type = '0'}},
        {{.name = "a/..", .type = '5'}},
        {{.name = "a/./x", .type = '0'}},
        {{.name = "././x", .type = '0'}},
        {{.name = "a//x", .type = '0'}},
        {{.name = ".//x", .type = '0'}},
        {{.name = ".", .type = '0'}},
        {{.name = "a\nb", .type = '0'}},
        {{.name = "a\x1b[0mb", .type = '0'}},
        {{.name = "a\xc2\x9b", .type = '0'}},
        {{.name = "a\x7f", .type = '0'}},
        {{.name = "a\\b", .type = '0'}},
        {{.name = "a\xff", .type = '0'}},
        {{.name = "a\xc0\xaf", .type = '0'}},
        {{.name = "l", .type = '2', .link = "/etc"}},
        {{.name = "l", .type = '2', .link = ".."}},
        {{.name = "a/l", .type = '2', .link = "../../etc"}},
        {{.name = "a/l", .type = '2', .link = "b/../../../etc"}},
        {{.name = "l", .type = '2', .link = "a\nb"}},
        {{.name = "l", .type = '2', .link = "nowhere"}},
        {{.name = "l", .type = '2', .link = "."}},
        {{.name = "a/x", .type = '0'}, {.name = "l", .type = '2', .link = "a"}},
        {{.name = "a/x", .type = '0'},
         {.name = "l", .type = '2', .link = "a"},
         {.name = "l/y", .type = '0'}},
        {{.name = "x", .type = '0'},
         {.name = "l", .type = '2', .link = "x"},
         {.name = "m", .type = '2', .link = "l"}},
        {{.name = "a/b/x", .type = '0'},
         {.name = "m", .type = '2', .link = "l/../x"},
         {.name = "l", .type = '2', .link = "a/b"}},
        {{.name = "x", .type = '0'}, {.name = "l", .type = '2', .link = "x/../x"}},
        {{.name = "x", .type = '0'}, {.name = "x/y", .type = '0'}},
        {{.name = "h", .type = '1', .link = "later"}},
        {{.name = "a/x", .type = '0'}, {.name = "h", .type = '1', .link = "a"}},
        {{.name = "x", .type = '0'},
         {.name = "l", .type = '2', .link = "x"},
         {.name = "h", .type = '1', .link = "l"}},
        {{.name = "X", .type = '0'}, {.name = "h", .type = '1', .link = "x"}},
        {{.name = "h", .type = '1', .link = "/etc/passwd"}},
        {{.name = "h", .type = '1', .link = "../x"}},
        {{.name = "d", .type = '3'}},
        {{.name = "d", .type = '4'}},
        {{.name = "p", .type = '6'}},
        {{.name = "s", .type = '0', .mode = 04755}},
        {{.name = "s", .type = '0', .mode = 02755}},
        {{.name = "Foo", .type = '0'}, {.name = "foo", .type = '0'}},
        {{.name = "A/x", .type = '0'}, {.name = "a/y", .type = '0'}},
        {{.name = "\xc3\x89", .type = '0'}, {.name = "\xc3\xa9", .type = '0'}},
        {{.name = "x", .type = '0'}, {.name = "./x", .type = '0'}},
        {{.name = "y", .type = '0'},
         {.name = "x", .type = '0'},
         {.name = "x", .type = '1', .link = "y"}},
        {{.name = "a/x", .type = '0'}, {.name = "a", .type = '0'}},
        {{.name = "a", .type = '0'}, {.name = "a/", .type = '5'}},
    };
    for (EACH(row, ROWS)) {
        size_t n = 0;
        while (n < 4 && (*row)[n].name) {
            n++;
        }
        make_tar(*row, n);
        assert_refused(*state, PLAIN);
    }
}

static void add_pax(const char *key, const char *value, size_t value_len)
{
    CLEANUP(strbuf) struct strbuf record = {0};
    size_t len = strlen(key) + value_len + 3,
           digits; /* the record's length counts its own digits */
    strbuf_init(&record, 1u << 20);
    for (digits = 1; digits < 8; digits++) {
        char number[16];
        if ((size_t)snprintf(number, sizeof(number), "%zu", len + digits) == digits) {
            break;
        }
    }
    strbuf_printf(&record, "%zu %s=", len + digits, key);
    strbuf_add(&record, value, value_len);
    strbuf_add_char(&record, '\n');
    add_header("pax", 'x', NULL, record.len, 0);
    add_bytes(record.ptr, record.len);
}

/* pax gives another name, or a link, than the header. */
static void make_pax(const char *path, size_t len)
{
    begin();
    add_pax("path", path, len);
    add_header("x", '0', NULL, 0, 0);
    add_end();
}

TEST_IN_SCRATCH(test_hostile_pax)
{
    static char long_name[5000], depth[4000];
    const struct str ROWS[] = {STR_LIT("../x"),
                               STR_LIT("a\nb"),
                               STR_LIT("a\xff"
                                       "b"),
                               {long_name, 256},
                               {long_name, 5000},
                               {depth, 2 * UNPACK_DEPTH_MAX + 1}};
    memset(long_name, 'a', sizeof(long_name));
    for (size_t idx = 0; idx < 2000; idx++) {
        memcpy(depth + 2 * idx, "d/", 2);
    }
    for (EACH(row, ROWS)) {
        make_pax(row->ptr, row->len);
        assert_refused(*state, PLAIN);
    }
    begin();
    add_pax("linkpath", "/etc/passwd", 11);
    add_header("l", '2', "x", 0, 0);
    add_end();
    assert_refused(*state, PLAIN);
    make_pax(long_name, 255);
    assert_taken(*state, PLAIN);
}

/* As GNU gives a long name. */
static void make_long(const char *path, size_t len)
{
    begin();
    add_header("name", 'L', NULL, len, 0);
    add_bytes(path, len);
    add_header("x", '0', NULL, 0, 0);
    add_end();
}

/* For libarchive a name ends at a NUL: what is left of it is judged, and is what is written. */
TEST_IN_SCRATCH(test_nul_in_name)
{
    for (int is_long = 0; is_long < 2; is_long++) {
        (is_long ? make_long : make_pax)("a\0b\0\0", is_long ? 6 : 3);
        assert_taken(*state, PLAIN);
        assert_text(*state, "a", "");
        assert_int_equal(result.list.n, 1);
        (is_long ? make_long : make_pax)("../a\0b\0", is_long ? 7 : 6);
        assert_refused(*state, PLAIN);
    }
}

/* --- ends and sizes ----------------------------------------------------------------------------------------------------------- */

TEST_IN_SCRATCH(test_truncated)
{
    CLEANUP(strbuf) struct strbuf whole = STRBUF(1u << 20);
    make_some();
    strbuf_add_str(&whole, strbuf_str(&made));
    /* Completed again with one block of zeros: nothing shows what is lost. */
    for (size_t len = 0; len < whole.len - BLOCK; len += len < 1200 ? 7 : 61) {
        strbuf_clear(&made);
        strbuf_add(&made, whole.ptr, len);
        assert_refused(*state, PLAIN);
    }
    strbuf_clear(&made);
    strbuf_add(&made, whole.ptr, whole.len - 2 * BLOCK); /* at a border of entries */
    assert_refused(*state, PLAIN);
}

TEST_IN_SCRATCH(test_trailing)
{
    static char zero[70000];
    uint8_t sha256[SHA256_BYTES];
    make_some();
    strbuf_add(&made, zero, sizeof(zero));
    assert_taken(*state, PLAIN);
    /* The digest is of every byte, those after the end included. */
    sha256_of(strbuf_str(&made), sha256);
    assert_memory_equal(sha256, result.archive.sha256, SHA256_BYTES);
    strbuf_add(&made, "x", 1);
    assert_refused(*state, PLAIN);
    make_some();
    strbuf_add(&made, "x", 1);
    assert_refused(*state, PLAIN);
    make_some();
    add_part(&(struct part){.name = "hidden", .type = '0', .data = "x"}); /* another tar after it */
    add_end();
    assert_refused(*state, PLAIN);
}

static void make_sparse(int64_t size)
{
    static char bytes[1u << 20];
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    size_t used = 0;
    assert_int_equal(archive_write_set_format_pax(a), ARCHIVE_OK);
    assert_int_equal(archive_write_open_memory(a, bytes, sizeof(bytes), &used), ARCHIVE_OK);
    archive_entry_set_pathname(entry, "sparse");
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_size(entry, size);
    archive_entry_sparse_add_entry(entry, 4096, 5);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, bytes + sizeof(bytes) - 4096, 4096), 4096);
    assert_int_equal(archive_write_data(a, "hello", 5), 5);
    archive_entry_free(entry);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    begin();
    strbuf_add(&made, bytes, used);
}

TEST_IN_SCRATCH(test_sparse)
{
    struct str text;
    make_sparse(300000);
    assert_taken(*state, PLAIN);
    text = scratch_read(fs_join(&scratch_arena, *state, "out/sparse"));
    assert_int_equal(text.len, 300000);
    assert_memory_equal(text.ptr + 4096, "hello", 5);
    assert_int_equal(text.ptr[0] | text.ptr[4095] | text.ptr[4101] | text.ptr[299999], 0);
}

TEST_IN_SCRATCH(test_bombs)
{
    struct unpack_tree_opts opts = PLAIN;
    static char zero[1u << 20];
    make_sparse(INT64_C(1) << 60);
    assert_refused(*state, PLAIN);
    /* 70 MB of zeros in a few hundred bytes of zstd. */
    begin();
    add_header("zeros", '0', NULL, 80u << 20, 0);
    for (int idx = 0; idx < 80; idx++) {
        strbuf_add(&made, zero, sizeof(zero));
    }
    add_end();
    zstd_made();
    assert_refused(*state, PLAIN);
    make_some();
    opts.unpack.limits.files = 2;
    assert_refused(*state, opts);
    opts.unpack.limits.files = 3;
    assert_taken(*state, opts);
    opts = PLAIN;
    opts.unpack.limits.bytes = 5;
    assert_refused(*state, opts);
    opts.unpack.limits.bytes = 6;
    assert_taken(*state, opts);
}

/* --- names -------------------------------------------------------------------------------------------------------------------- */

/* Many names: the table grows, finds each again, and refuses each a second time. */
TEST_IN_SCRATCH(test_names_many)
{
    struct unpack_names names = {.nodes.seed = 1, .n_max = 100000};
    bool is_new;
    char path[64];
    for (int round = 0; round < 2; round++) {
        for (int idx = 0; idx < 20000; idx++) {
            int n = snprintf(path, sizeof(path), "n%03d/%d/f%d.JPEG", idx % 1000, idx % 3, idx);
            int added = unpack_names_add(&names, (struct str){path, (size_t)n}, UNPACK_FILE,
                                         STR_EMPTY, &is_new, ERR);
            assert_int_equal(added, round == 0 ? 0 : -1);
            assert_true(round == 1 || is_new);
            assert_true(round == 0 || strstr(ERR->msg, "twice"));
            *ERR = (struct err){0};
        }
    }
    assert_int_equal(names.nodes.n, 20000 + 1000 + 3000);
    unpack_names_release(&names);
}

UNIT_MAIN(scratch_group_start, end)
