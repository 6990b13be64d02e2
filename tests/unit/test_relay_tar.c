/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of a staging: members are read as they are written, in any pieces, and every other archive is refused. What tar(1) makes
   of it: tests/integration/test_stage.sh. */
#include "unit.h"

#include "base/strbuf.h"
#include "codec/relay.h"

struct taken { /* what a sink was given, as text */
    struct strbuf text;
    int fail_at; /* calls until one fails; 0: none does */
};

static int count(struct taken *taken, struct err *err)
{
    return taken->fail_at && --taken->fail_at == 0 ? err_set(err, ERR_DISK, "full") : 0;
}

static int begin(void *ctx, const struct relay_member *member, struct err *err)
{
    struct taken *taken = ctx;
    strbuf_printf(&taken->text, "[%" PRIu64 "@%" PRIu64 "+%" PRIu64 " ", member->file,
                  member->offset, member->size_bytes);
    return count(taken, err);
}

static int data(void *ctx, const void *bytes, size_t len, struct err *err)
{
    struct taken *taken = ctx;
    strbuf_add(&taken->text, bytes, len);
    return count(taken, err);
}

static int end(void *ctx, struct err *err)
{
    struct taken *taken = ctx;
    strbuf_add_char(&taken->text, ']');
    return count(taken, err);
}

static void add_zeros(struct strbuf *out, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_add_char(out, '\0');
    }
}

static void add_member(struct strbuf *out, struct relay_member member, const char *text)
{
    uint8_t block[USTAR_BLOCK];
    member.size_bytes = strlen(text);
    relay_member_write(&member, block);
    strbuf_add(out, block, sizeof(block));
    strbuf_add_z(out, text);
    add_zeros(out, ustar_padding(member.size_bytes));
}

/* In pieces of that many bytes. */
static int take(struct taken *taken, struct str bytes, size_t piece, bool *ret_is_over,
                struct err *err)
{
    struct relay_tar tar = {0};
    struct relay_sink sink = {taken, begin, data, end};
    int result = 0;
    for (size_t at = 0; at < bytes.len && result == 0; at += piece) {
        struct str part = str_sub(bytes, at, piece);
        result = relay_tar_take(&tar, &sink, (const uint8_t *)part.ptr, part.len, err);
    }
    *ret_is_over = tar.is_over;
    return result;
}

TEST(members_are_read_in_any_pieces)
{
    static const size_t PIECES[] = {1, 7, 511, 512, 513, 1u << 20};
    CLEANUP(strbuf) struct strbuf out = STRBUF(1u << 20);
    add_member(&out, (struct relay_member){.file = 0, .offset = 0}, "first");
    add_member(&out, (struct relay_member){.file = 1999999, .offset = 1ULL << 45}, "rest");
    add_member(&out, (struct relay_member){.file = 3, .offset = 0}, "");
    add_zeros(&out, RELAY_END_BYTES);
    assert_int_equal(out.len % USTAR_BLOCK, 0);
    for (EACH(row, PIECES)) {
        struct taken taken = {0};
        bool is_over;
        strbuf_init(&taken.text, 4096);
        PASSES(take(&taken, strbuf_str(&out), *row, &is_over, ERR));
        assert_true(is_over);
        assert_string_equal(taken.text.ptr, "[0@0+5 first][1999999@35184372088832+4 rest][3@0+0 ]");
        strbuf_release(&taken.text);
        strbuf_init(&taken.text, 4096);
        PASSES(take(&taken, str_sub(strbuf_str(&out), 0, out.len - 1), *row, &is_over, ERR));
        assert_false(is_over); /* cut off: the reader waits for the rest */
        strbuf_release(&taken.text);
    }
}

TEST(a_sinks_error_ends_it)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(1u << 16);
    add_member(&out, (struct relay_member){.file = 1}, "a");
    add_member(&out, (struct relay_member){.file = 2}, "");
    for (int at = 1; at <= 5; at++) {
        struct taken taken = {.fail_at = at};
        bool is_over;
        strbuf_init(&taken.text, 4096);
        FAILS(take(&taken, strbuf_str(&out), 4096, &is_over, ERR), ERR_DISK);
        strbuf_release(&taken.text);
    }
}

/* A header with these bytes at an offset; its checksum is made right. */
static void plant(char *block, size_t at, const char *bytes, size_t len)
{
    unsigned sum = 0;
    memcpy(block + at, bytes, len);
    memset(block + 148, ' ', 8);
    for (size_t idx = 0; idx < USTAR_BLOCK; idx++) {
        sum += (uint8_t)block[idx];
    }
    snprintf(block + 148, 8, "%06o", sum);
}

static int take_all(struct strbuf *out, struct err *err)
{
    struct taken taken = {0};
    bool is_over;
    strbuf_init(&taken.text, 1u << 20);
    int result = take(&taken, strbuf_str(out), 4096, &is_over, err);
    assert_true(result == 0 || taken.text.len == 0);
    strbuf_release(&taken.text);
    return result;
}

TEST(hostile_headers_are_refused)
{
#define AT(offset, text)                                                                           \
    {                                                                                              \
        offset, text, sizeof(text) - 1                                                             \
    }
#define NAME(text)                                                                                 \
    {                                                                                              \
        0, text, sizeof(text)                                                                      \
    }
    static const struct {
        size_t at;
        const char *bytes;
        size_t len;
    } BAD[] = {
        NAME("/etc/passwd"),
        NAME("../x"),
        NAME("a/../../x"),
        NAME(""),
        NAME("."),
        NAME("a"),
        NAME("7"),
        NAME("7@"),
        NAME("@0"),
        NAME("7@0x"),
        NAME("7@0/"),
        NAME("-7@0"),
        NAME("+7@0"),
        NAME(" 7@0"),
        NAME("7@ 0"),
        NAME("07@0"),
        NAME("7@00"),
        NAME("7@-1"),
        NAME("./7@0"),
        NAME("7@0\n"),
        NAME("7@0@0"),
        NAME("9223372036854775808@0"),
        NAME("7@18446744073709551616"),
        NAME("7@9223372036854775808"),
        AT(0, "7@0\0../x"),     /* after the name's end */
        AT(100, "0000755"),     /* mode */
        AT(100, "0004755"),     /* setuid */
        AT(108, "0001750"),     /* owner */
        AT(124, "0000000000 "), /* size */
        AT(124, "          1"),
        AT(124, "\x80\0\0\0\0\0\0\0\0\0\0\1"), /* base 256 */
        AT(124, "40000000001"),                /* more than a member may have */
        AT(124, "77777777777"),
        AT(124, "00000000009"),
        AT(136, "00000000001"), /* time */
        AT(156, "\0"),          /* the type of old archives */
        AT(156, "1"),
        AT(156, "2"),
        AT(156, "3"),
        AT(156, "4"),
        AT(156, "5"),
        AT(156, "6"),
        AT(156, "7"),
        AT(156, "L"),
        AT(156, "K"),
        AT(156, "x"),
        AT(156, "g"),
        AT(156, "S"),
        AT(156, "M"),
        AT(157, "/etc/passwd"), /* link */
        AT(257, "ustar  "),     /* GNU's */
        AT(257, "\0\0\0\0\0"),  /* V7's */
        AT(265, "root"),
        AT(297, "root"),
        AT(329, "0000001"),
        AT(345, "/etc"), /* prefix */
        AT(345, ".."),
        AT(500, "x"),
    };
#undef AT
#undef NAME
    for (size_t idx = 0; idx < ARRAY_LEN(BAD); idx++) {
        CLEANUP(strbuf) struct strbuf out = STRBUF(1u << 16);
        struct err err = {0};
        add_member(&out, (struct relay_member){.file = 7}, "x");
        plant(out.ptr, BAD[idx].at, BAD[idx].bytes, BAD[idx].len);
        if (take_all(&out, &err) == 0) {
            fail_msg("accepted: case %zu", idx);
        }
        assert_int_equal(err.code, ERR_INTEGRITY);
    }
}

TEST(every_changed_bit_of_a_header_is_seen)
{
    for (size_t bit = 0; bit < 8 * USTAR_BLOCK; bit++) {
        CLEANUP(strbuf) struct strbuf out = STRBUF(1u << 16);
        add_member(&out, (struct relay_member){.file = 7}, "x");
        out.ptr[bit / 8] = (char)(out.ptr[bit / 8] ^ (1 << bit % 8));
        FAILS(take_all(&out, ERR), ERR_INTEGRITY);
    }
}

TEST(nothing_hides_between_members)
{
    static const struct {
        size_t zeros;
        bool in_padding, more;
    } WAYS[] = {{0, true, false}, {USTAR_BLOCK, false, true}, {RELAY_END_BYTES, false, true}};
    for (EACH(row, WAYS)) {
        CLEANUP(strbuf) struct strbuf out = STRBUF(1u << 16);
        struct taken taken = {0};
        bool is_over;
        strbuf_init(&taken.text, 4096);
        add_member(&out, (struct relay_member){.file = 7}, "x");
        if (row->in_padding) {
            out.ptr[out.len - 1] = 'y';
        }
        add_zeros(&out, row->zeros);
        if (row->more) {
            add_member(&out, (struct relay_member){.file = 8}, "y");
        }
        FAILS(take(&taken, strbuf_str(&out), 4096, &is_over, ERR), ERR_INTEGRITY);
        assert_string_equal(taken.text.ptr, "[7@0+1 x]");
        strbuf_release(&taken.text);
    }
}
