/* SPDX-License-Identifier: Apache-2.0 */
/* Zips whose directory and entries tell different stories. */
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

static void make_zip(const struct zip_part *parts, size_t n, unsigned n_change)
{
    uint64_t at[8], directory, directory_bytes;
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
    directory_bytes = made.len - directory;
    le(0x06054b50, 4);
    le(0, 4);
    le(n_shown + n_change, 2);
    le(n_shown + n_change, 2);
    le(directory_bytes, 4);
    le(directory, 4);
    le(0, 2);
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
        {"1 entries, 2 were met",
         {{.name = "a", .data = "x"}, {.name = "b", .data = "y", .is_hidden = true}},
         0},
        /* Two entries of the directory over one file's bytes, the way of the overlapping bombs. */
        {"where none of its own begins",
         {{.name = "aa", .data = "x"}, {.name = "bb", .data = "x", .offset = 1}},
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

#define T(f) cmocka_unit_test_setup_teardown(f, scratch_make, scratch_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_zip),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, start, end);
}
