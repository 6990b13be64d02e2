/* SPDX-License-Identifier: Apache-2.0 */
/* Zips whose directory and entries contradict each other. */
#include "base/base.h"

#include "tests/unit/unpack_fixture.h"

#include "codec/gunzip.h"

/* --- zip ---------------------------------------------------------------------------------------------------------------------- */

struct zip_part {
    const char *name, *data;
    uint32_t crc_change, size_change, local_crc_change;
    unsigned mode; /* external attributes of Unix */
    unsigned flags;
    const char *central_name;
    int64_t offset; /* in the directory; 0: where it is */
    bool is_hidden; /* not in the directory */
};

static void le(uint64_t value, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_add_char(&made, (char)(value >> (8 * idx)));
    }
}

/* The last zip made: where its directory is, what its end record says, where the end is. */
static struct {
    uint64_t directory, directory_bytes, n;
    size_t end;
} zip;

static void add_end_record(uint64_t n, uint64_t bytes, uint64_t offset, size_t comment_len)
{
    le(0x06054b50, 4);
    le(0, 4);
    le(n, 2);
    le(n, 2);
    le(bytes, 4);
    le(offset, 4);
    le(comment_len, 2);
}

static void make_zip(const struct zip_part *parts, size_t n, unsigned n_change)
{
    uint64_t at[8], directory;
    unsigned n_shown = 0;
    begin();
    for (size_t idx = 0; idx < n; idx++) {
        const struct zip_part *p = &parts[idx];
        uint32_t crc = crc32_add(0, p->data, strlen(p->data));
        at[idx] = made.len;
        le(0x04034b50, 4);
        le(20, 2);
        le(p->flags, 2);
        le(0, 6);
        le(crc + p->local_crc_change, 4);
        le(strlen(p->data), 4);
        le(strlen(p->data), 4);
        le(strlen(p->name), 2);
        le(0, 2);
        strbuf_add_z(&made, p->name);
        strbuf_add_z(&made, p->data);
    }
    directory = made.len;
    for (size_t idx = 0; idx < n; idx++) {
        const struct zip_part *p = &parts[idx];
        const char *name = p->central_name ? p->central_name : p->name;
        if (p->is_hidden) {
            continue;
        }
        n_shown++;
        le(0x02014b50, 4);
        le(20 | 3 << 8, 2);
        le(20, 2);
        le(p->flags, 2);
        le(0, 6);
        le(crc32_add(0, p->data, strlen(p->data)) + p->local_crc_change + p->crc_change, 4);
        le(strlen(p->data), 4);
        le(strlen(p->data) + p->size_change, 4);
        le(strlen(name), 2);
        le(0, 8);
        le((uint64_t)(p->mode ? p->mode : 0100644) << 16, 4);
        le(p->offset ? (uint64_t)p->offset : at[idx], 4);
        strbuf_add_z(&made, name);
    }
    zip.directory = directory;
    zip.directory_bytes = made.len - directory;
    zip.n = n_shown + n_change;
    zip.end = made.len;
    add_end_record(zip.n, zip.directory_bytes, zip.directory, 0);
}

static void test_zip(void **state)
{
    static const struct zip_part GOOD[] = {{.name = "a/x", .data = "one"},
                                           {.name = "b/", .data = "", .mode = 040755},
                                           {.name = "c", .data = "two"}};
    static const struct {
        const char *says;
        struct zip_part parts[2];
        unsigned n_change;
    } ROWS[] = {
        {"directory says CRC-32", {{.name = "a", .data = "x", .crc_change = 1}}, 0},
        {"", {{.name = "a", .data = "x", .local_crc_change = 1}}, 0},
        {"directory says 2 bytes", {{.name = "a", .data = "x", .size_change = 1}}, 0},
        {"a symlink", {{.name = "a", .data = "/etc/passwd", .mode = 0120777}}, 0},
        {"special file", {{.name = "a", .data = "x", .mode = 020644}}, 0},
        {"setuid", {{.name = "a", .data = "x", .mode = 0104755}}, 0},
        {"encrypted", {{.name = "a", .data = "xxxxxxxxxxxxxxx", .flags = 1}}, 0},
        {"another name inside", {{.name = "a", .data = "x", .central_name = "b"}}, 0},
        {"1 entries, 2 were read",
         {{.name = "a", .data = "x"}, {.name = "b", .data = "y", .is_hidden = true}},
         0},
        /* Two directory entries over one file's bytes, as in overlapping zip bombs. */
        {"where it does not begin",
         {{.name = "aa", .data = "x"}, {.name = "bb", .data = "x", .offset = 1}},
         0},
        /* A header inside an entry's data: another file for a reader that starts from the end. */
        {"where it does not begin",
         {{.name = "a",
           .data = "PK\3\4 and what a header has, which is thirty bytes",
           .offset = 31}},
         0},
        {"its end says 2", {{.name = "a", .data = "x"}}, 1},
        {"the part \"..\"", {{.name = "../a", .data = "x"}}, 0},
        {"differ only in case", {{.name = "a", .data = "x"}, {.name = "A", .data = "x"}}, 0},
    };
    size_t whole;
    make_zip(GOOD, 3, 0);
    whole = made.len;
    assert_taken(*state, PLAIN);
    assert_text(*state, "a/x", "one");
    assert_text(*state, "c", "two");
    assert_int_equal(fs_remove_tree(fs_join(&scratch_arena, *state, "out"), &last), 0);
    strbuf_add(&made, "x", 1);
    assert_refused(*state, PLAIN, "1 bytes follow the end");
    for (size_t len = 4; len < whole; len++) {
        make_zip(GOOD, 3, 0);
        made.len = len;
        assert_refused(*state, PLAIN, "");
    }
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        make_zip(ROWS[idx].parts, ROWS[idx].parts[1].name ? 2 : 1, ROWS[idx].n_change);
        assert_refused(*state, PLAIN, ROWS[idx].says);
    }
}

/* Its end, or zip64's, changed: a field at a place. */
struct end_change {
    const char *says; /* NULL: taken */
    size_t at, n;     /* from the first byte behind the directory */
    uint64_t value;
};

static const struct zip_part TWO[] = {{.name = "a", .data = "one"}, {.name = "b", .data = "two"}};

static void put(size_t at, size_t n, uint64_t value)
{
    for (size_t idx = 0; idx < n; idx++) {
        made.ptr[at + idx] = (char)(value >> (8 * idx));
    }
}

static void assert_end(const char *folder, const char *says)
{
    if (says) {
        assert_refused(folder, PLAIN, says);
        return;
    }
    assert_taken(folder, PLAIN);
    assert_text(folder, "b", "two");
    assert_int_equal(fs_remove_tree(fs_join(&scratch_arena, folder, "out"), &last), 0);
}

static void test_end(void **state)
{
    static const struct end_change ROWS[] = {
        {NULL, 4, 2, 0},
        {"no end", 0, 4, 0x06054b51},
        {"spans several disks", 4, 2, 1},
        {"spans several disks", 4, 2, UINT16_MAX},
        {"spans several disks", 6, 2, 1},
        {"spans several disks", 8, 2, 1},
        {"its end says 1 entries, its directory has 2", 10, 2, 1},
        {"its end says 3 entries", 10, 2, 3},
        {"its end says 65535 entries", 10, 2, UINT16_MAX},
        {"bytes of directory at", 12, 4, 0},
        {"bytes of directory at", 12, 4, UINT32_MAX},
        {"at byte 0,", 16, 4, 0},
        {"at byte 100000,", 16, 4, 100000},
        {"at byte 4294967294,", 16, 4, UINT32_MAX - 1},
        {"at byte 4294967295,", 16, 4, UINT32_MAX},
        {"0 bytes follow the end of its directory, its comment has 1", 20, 2, 1},
        {"its comment has 65535", 20, 2, UINT16_MAX},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        make_zip(TWO, 2, 0);
        put(zip.end + ROWS[idx].at, ROWS[idx].n, ROWS[idx].value);
        assert_end(*state, ROWS[idx].says);
    }
    /* A comment is accepted, but not one with another end record in it, which a reader from the end would find. */
    make_zip(TWO, 2, 0);
    put(zip.end + 20, 2, 30);
    strbuf_add(&made, "a comment; PK\5\6 is no end her", 30);
    assert_end(*state, NULL);
    make_zip(TWO, 2, 0);
    put(zip.end + 20, 2, 22);
    add_end_record(0, 0, zip.end, 0);
    assert_end(*state, "a second end");
    make_zip(TWO, 2, 0);
    add_end_record(zip.n, zip.directory_bytes, zip.directory, 0);
    assert_end(*state, "22 bytes follow");
    /* The second begins inside the first. */
    make_zip(TWO, 2, 0);
    put(zip.end + 20, 2, 20);
    put(zip.end + 16, 4, 0x06054b50);
    strbuf_add(&made, "12345678901234567890", 20);
    assert_end(*state, "a second end");
}

static void make_zip64(void)
{
    make_zip(TWO, 2, 0);
    made.len = zip.end;
    le(0x06064b50, 4);
    le(44, 8);
    le(45, 2);
    le(45, 2);
    le(0, 8);
    le(zip.n, 8);
    le(zip.n, 8);
    le(zip.directory_bytes, 8);
    le(zip.directory, 8);
    le(0x07064b50, 4);
    le(0, 4);
    le(zip.end, 8);
    le(1, 4);
    add_end_record(UINT16_MAX, UINT32_MAX, UINT32_MAX, 0);
}

static void test_end_zip64(void **state)
{
    static const struct end_change ROWS[] = {
        {NULL, 0, 4, 0x06064b50},
        {NULL, 76 + 4, 4, UINT32_MAX},
        {"no end", 0, 4, 0x06064b51},
        {"zip64 end does not fit", 4, 8, 0},
        {"zip64 end does not fit", 4, 8, 43},
        {"zip64 end does not fit", 4, 8, 100000},
        {"zip64 end does not fit", 4, 8, UINT64_MAX},
        {"zip64 end does not fit", 4, 8, UINT64_MAX - 11},
        {"has no locator", 4, 8, 45},
        {"zip64 end does not fit", 16, 4, 1},
        {"zip64 end does not fit", 20, 4, 1},
        {"zip64 end does not fit", 24, 8, 1},
        {"zip64 end does not fit", 32, 8, 3},
        {"zip64 end does not fit", 40, 8, 1},
        {"zip64 end does not fit", 48, 8, UINT64_MAX},
        {"has no locator", 56, 4, 0x07064b51},
        {"spans several disks", 56 + 4, 4, 1},
        {"locator says byte 0,", 56 + 8, 8, 0},
        {"locator says byte 100000,", 56 + 8, 8, 100000},
        {"locator says byte 18446744073709551615,", 56 + 8, 8, UINT64_MAX},
        {"spans several disks", 56 + 16, 4, 2},
        {"its end says 3 entries", 76 + 8, 4, 3 << 16 | 3},
        {"at byte 5,", 76 + 16, 4, 5},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        make_zip64();
        put(zip.end + ROWS[idx].at, ROWS[idx].n, ROWS[idx].value);
        assert_end(*state, ROWS[idx].says);
    }
    /* A locator without a zip64 end record: after the directory, and as its last entry's comment. */
    make_zip64();
    memmove(made.ptr + zip.end, made.ptr + zip.end + 56, 42);
    made.len -= 56;
    assert_end(*state, "no end");
    make_zip(TWO, 2, 0);
    made.len = zip.end;
    put(zip.end - 46 - 1 + 32, 2, 20);
    le(0x07064b50, 4);
    le(0, 4);
    le(7, 8);
    le(1, 4);
    add_end_record(zip.n, zip.directory_bytes + 20, zip.directory, 0);
    assert_end(*state, "locator is inside its directory");
}

#define T(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_zip),
        T(test_end),
        T(test_end_zip64),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, start, end);
}
