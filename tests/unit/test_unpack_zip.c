/* SPDX-License-Identifier: Apache-2.0 */
/* Zips: the entries that their directory lists are unpacked, and whatever is hostile in them is refused. */
#include "unit.h"

#include "tests/unit/unpack_fixture.h"

struct zip_part {
    const char *name, *data;
    uint32_t crc_change, size_change;
    unsigned mode; /* external attributes of Unix */
    unsigned flags;
    const char *local_name; /* NULL: as in the directory */
};

/* ISO 3309, bit by bit. */
static uint32_t crc_of(const char *text)
{
    uint32_t crc = UINT32_MAX;
    for (; *text; text++) {
        crc ^= (uint8_t)*text;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (0xEDB88320u & (0 - (crc & 1)));
        }
    }
    return ~crc;
}

static void le(uint64_t value, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_add_char(&made, (char)(value >> (8 * idx)));
    }
}

static void add_numbers(const struct zip_part *p)
{
    le(p->flags, 2);
    le(0, 6);
    le(crc_of(p->data) + p->crc_change, 4);
    le(strlen(p->data), 4);
    le(strlen(p->data) + p->size_change, 4);
}

static void make_zip(const struct zip_part *parts, size_t n)
{
    size_t at[8], directory;
    begin();
    for (size_t idx = 0; idx < n; idx++) {
        const struct zip_part *p = &parts[idx];
        const char *name = p->local_name ? p->local_name : p->name;
        at[idx] = made.len;
        le(0x04034b50, 4);
        le(20, 2);
        add_numbers(p);
        le(strlen(name), 2);
        le(0, 2);
        strbuf_add_z(&made, name);
        strbuf_add_z(&made, p->data);
    }
    directory = made.len;
    for (size_t idx = 0; idx < n; idx++) {
        const struct zip_part *p = &parts[idx];
        le(0x02014b50, 4);
        le(20 | 3 << 8, 2);
        le(20, 2);
        add_numbers(p);
        le(strlen(p->name), 2);
        le(0, 8);
        le((uint64_t)(p->mode ? p->mode : 0100644) << 16, 4);
        le(at[idx], 4);
        strbuf_add_z(&made, p->name);
    }
    size_t bytes = made.len - directory;
    le(0x06054b50, 4);
    le(0, 4);
    le(n, 2);
    le(n, 2);
    le(bytes, 4);
    le(directory, 4);
    le(0, 2);
}

TEST_IN_SCRATCH(test_zip)
{
    static const struct zip_part GOOD[] = {{.name = "a/x", .data = "one"},
                                           {.name = "b/", .data = "", .mode = 040755},
                                           {.name = "c", .data = "two", .local_name = "d"}};
    static const struct zip_part ROWS[][2] = {
        {{.name = "a", .data = "x", .crc_change = 1}},
        {{.name = "a", .data = "x", .size_change = 1}},
        {{.name = "a", .data = "/etc/passwd", .mode = 0120777}},
        {{.name = "a", .data = "x", .mode = 020644}},
        {{.name = "a", .data = "x", .mode = 0104755}},
        {{.name = "a", .data = "xxxxxxxxxxxxxxx", .flags = 1}},
        {{.name = "../a", .data = "x"}},
        {{.name = "a", .data = "x", .local_name = "../a"}},
        {{.name = "/a", .data = "x"}},
        {{.name = "a", .data = "x"}, {.name = "A", .data = "x"}},
        {{.name = "a", .data = "x"}, {.name = "a", .data = "y"}},
    };
    size_t whole;
    make_zip(GOOD, 3);
    whole = made.len;
    assert_taken(*state, PLAIN);
    assert_text(*state, "a/x", "one");
    assert_text(*state, "d", "two"); /* libarchive takes the name that stands before the data */
    assert_int_equal(result.list.n, 2);
    for (size_t len = 4; len < whole; len++) {
        make_zip(GOOD, 3);
        made.len = len;
        assert_refused(*state, PLAIN);
    }
    for (EACH(row, ROWS)) {
        make_zip(*row, (*row)[1].name ? 2 : 1);
        assert_refused(*state, PLAIN);
    }
}

/* The digest of the archive covers every byte of it, in whatever order libarchive reads them. */
TEST_IN_SCRATCH(test_digest)
{
    static const struct zip_part TWO[] = {{.name = "a", .data = "one"},
                                          {.name = "b", .data = "two"}};
    struct unpack_tree_opts opts = PLAIN;
    uint8_t sha256[SHA256_BYTES];
    make_zip(TWO, 2);
    sha256_of(strbuf_str(&made), sha256);
    opts.sha256 = sha256;
    assert_taken(*state, opts);
    sha256[0] ^= 1;
    assert_refused(*state, opts);
}

UNIT_MAIN(scratch_group_start, end)
