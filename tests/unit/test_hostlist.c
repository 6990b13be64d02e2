/* SPDX-License-Identifier: Apache-2.0 */
/* Node sets: what each form stands for, what is refused and where, folding. Against ClusterShell's own nodeset and Slurm's scontrol:
   tests/integration/test_hostlist.sh. */
#include "unit.h"

#include "base/strbuf.h"
#include "report/hostlist.h"

/* Names joined by blanks, or the error's text. */
static const char *expand(struct arena *arena, const char *text, enum hostlist_syntax syntax)
{
    CLEANUP(strbuf) struct strbuf out;
    strbuf_init(&out, 1 << 20);
    struct hostlist list;
    struct err err = {0};
    if (hostlist_expand(arena, str_of(text), syntax, &list, &err) < 0) {
        assert_int_equal(err.code, ERR_USAGE);
        return arena_printf(arena, "%s", err.msg);
    }
    for (size_t idx = 0; idx < list.n; idx++) {
        strbuf_printf(&out, "%s%s", idx ? " " : "", list.names[idx].ptr);
    }
    return arena_printf(arena, "%s", out.ptr);
}

static const char *fold(struct arena *arena, const char *text)
{
    struct hostlist list;
    PASSES(hostlist_expand(arena, str_of(text), HOSTLIST_SET, &list, ERR));
    return str_z(arena, hostlist_fold(arena, list.names, list.n));
}

TEST(each_form)
{
    static const char *const ROWS[][2] = {
        {"login", "login"},
        {"gpu[01-04,7]", "gpu01 gpu02 gpu03 gpu04 gpu7"},
        {"n[08-11]", "n08 n09 n10 n11"},
        {"n[8-11]", "n8 n9 n10 n11"},
        {"n[000-002]", "n000 n001 n002"},
        {"r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"},
        {"r[1-2]n[01-02]-ib", "r1n01-ib r1n02-ib r2n01-ib r2n02-ib"},
        {"n1[0-2]", "n10 n11 n12"},
        {"n[0-1][1-2]", "n01 n02 n11 n12"},
        {"[1-2]", "1 2"},
        {"n[ 1 - 2 , 4 ]", "n1 n2 n4"},
        {"b,a,b", "b a"},
        {"a b,c\td", "a b c d"},
        {" a , b ", "a b"},
        {"a[1-3],a[2-5]", "a1 a2 a3 a4 a5"},
        {"10.11.0.[2-3]", "10.11.0.2 10.11.0.3"},
        {"fe80::[1-2]", "fe80::1 fe80::2"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        assert_string_equal(expand(ARENA, ROWS[idx][0], HOSTLIST_SET), ROWS[idx][1]);
    }
}

TEST(what_is_refused_says_where)
{
    static const char *const ROWS[][2] = {
        {"n[01-100]", "byte 3: both ends of \"01-100\" need the same number of digits"},
        {"n[1-010]", "byte 3: both ends"},
        {"", "node set \"\", byte 1: expected a host name"},
        {" ", "byte 2: expected a host name"},
        {"n[5-3]", "byte 3: expected FIRST-LAST, upwards, found \"5-3\""},
        {"n[]", "byte 3: expected a number"},
        {"n[1,]", "byte 5: expected a number"},
        {"n[-1]", "byte 3: expected a number"},
        {"n[1--3]", "byte 5: expected a number"},
        {"n[a-b]", "found \"a\""},
        {"n[1-9999999999999999]", "at most 15 digits"},
        {"n[1", "byte 2: expected ] after this ["},
        {"n1]", "expected a host name, found \"n1]\""},
        {"a[[1-2]]", "byte 3: expected a number"},
        {"a,,b", "byte 3: expected a host name"},
        {",a", "byte 1: expected a host name"},
        {"a, ", "byte 4: expected a host name"},
        {"a;reboot", "expected a host name"},
        {"a$(id)", "expected a host name"},
        {"-oProxyCommand=x", "expected a host name"},
        {"a\x01", "expected a host name"},
        {"n[1-5000]", "more than 4096 names"},
        {"a[1-4096],b", "more than 4096 names"},
        {"a[1-100]b[1-100]", "more than 4096 names"},
        {"a@b", "expected a host name, found \"a@b\": put a user into an inventory"},
        /* What ClusterShell has besides, and "..". */
        {"a[1-4]!a2", "byte 7: \"!\" is not understood: expected names and ranges"},
        {"a[1-4],!a2", "byte 8: \"!\" is not understood"},
        {"a[1-3]&a2", "byte 7: \"&\" is not understood"},
        {"a1 ^ a2", "byte 4: \"^\" is not understood"},
        {"a,@all", "byte 3: \"@\" is not understood"},
        {"*", "byte 1: \"*\" is not understood"},
        {"gpu?", "byte 4: \"?\" is not understood"},
        {"n[0-10/5]", "byte 7: \"/\" is not understood"},
        {"../x", "byte 3: \"/\" is not understood"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        const char *found = expand(ARENA, ROWS[idx][0], HOSTLIST_SET);
        if (!strstr(found, ROWS[idx][1])) {
            fail_msg("%s: expected ... %s ..., found %s", ROWS[idx][0], ROWS[idx][1], found);
        }
    }
}

TEST(limits_hold)
{
    CLEANUP(strbuf) struct strbuf text;
    strbuf_init(&text, 1 << 20);
    strbuf_add_z(&text, "a");
    for (int idx = 0; idx <= HOSTLIST_BRACKETS_MAX; idx++) {
        strbuf_add_z(&text, "[1]-");
    }
    strbuf_add_z(&text, "z");
    assert_non_null(strstr(expand(ARENA, text.ptr, HOSTLIST_SET), "more than 16 brackets"));
    strbuf_clear(&text);
    for (int idx = 0; idx < HOSTLIST_NAME_MAX + 1; idx++) {
        strbuf_add_char(&text, 'a');
    }
    assert_non_null(strstr(expand(ARENA, text.ptr, HOSTLIST_SET), "longer than 253 bytes"));
    /* Names that occur again cost work all the same. */
    strbuf_clear(&text);
    strbuf_add_z(&text, "x");
    for (int idx = 0; idx < 300; idx++) {
        strbuf_add_z(&text, ",a[1-4095]");
    }
    assert_non_null(strstr(expand(ARENA, text.ptr, HOSTLIST_SET), "names in all"));
    strbuf_clear(&text);
    while (text.len <= HOSTLIST_TEXT_MAX) {
        strbuf_add_z(&text, "aaaaaaaa,");
    }
    assert_non_null(strstr(expand(ARENA, text.ptr, HOSTLIST_SET), "65536 bytes"));
    assert_string_equal(fold(ARENA, "a[0-4095]"), "a[0-4095]");
}

TEST(slurms_own_lists)
{
    static const char *const ROWS[][2] = {
        {"gpu[01-03,7],login1", "gpu01 gpu02 gpu03 gpu7 login1"},
        {"r[0-1]n[00-01]", "r0n00 r0n01 r1n00 r1n01"},
        {"n[98-101]", "n98 n99 n100 n101"},
        {"n[098-101]", "n098 n099 n100 n101"},
        {"n[08-0010]", "node set \"n[08-0010]\", byte 3: both ends of \"08-0010\" need the same "
                       "number of digits"},
        {"n[1-4/2]", "node set \"n[1-4/2]\", byte 6: \"/\" is not understood: expected names and "
                     "ranges, as in gpu[01-04,7],login"},
    };
    const char *wide;
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        assert_string_equal(expand(ARENA, ROWS[idx][0], HOSTLIST_SLURM), ROWS[idx][1]);
    }
    wide = expand(ARENA, "n[09-100]", HOSTLIST_SLURM);
    assert_true(str_starts(str_of(wide), STR_LIT("n09 n10 ")));
    assert_true(str_ends(str_of(wide), STR_LIT(" n99 n100")));
}

TEST(folded)
{
    static const char *const ROWS[][2] = {
        {"b,a", "a,b"},
        {"gpu3,gpu1,gpu2", "gpu[1-3]"},
        {"gpu1", "gpu1"},
        {"n[01-04,7]", "n[7,01-04]"},
        {"n[8-12],n[08-09]", "n[8-9,08-12]"},
        {"n[98-101]", "n[98-101]"},
        {"n[0,10,2,8,4,6]", "n[0,2,4,6,8,10]"},
        {"r[1-2]n[1-4]", "r1n[1-4],r2n[1-4]"},
        {"x[1,3]y[1-3],x2y[1,3]", "x1y[1-3],x2y[1,3],x3y[1-3]"},
        {"b1,a1,aa,c,a2,x1y1", "a[1-2],aa,b1,c,x1y1"},
        {"10.0.0.1,10.0.1.1,10.0.0.2,10.0.1.2", "10.0.0.[1-2],10.0.1.[1-2]"},
        {"n123456789012345678901,n123456789012345678902",
         "n123456789012345678901,n123456789012345678902"},
        {"a1b2c3d4e5f6g7h8i9j1k2l3m4n5o6p7q[1-2]", "a1b2c3d4e5f6g7h8i9j1k2l3m4n5o6p7q[1-2]"},
    };
    struct str twice[] = {STR_LIT("a1"), STR_LIT("a1"), STR_LIT("a2")};
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        assert_string_equal(fold(ARENA, ROWS[idx][0]), ROWS[idx][1]);
    }
    assert_string_equal(str_z(ARENA, hostlist_fold(ARENA, twice, 3)), "a[1-2]");
    assert_string_equal(str_z(ARENA, hostlist_fold(ARENA, NULL, 0)), "");
}
