/* SPDX-License-Identifier: Apache-2.0 */
/* Node sets: what each form stands for, what is refused and where, folding. */
#include "unit.h"

#include "base/strbuf.h"
#include "report/hostlist.h"

/* Names joined by blanks, or the error's code. */
static const char *expand(struct arena *arena, const char *text)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(1 << 20);
    struct hostlist list;
    struct err err = {0};
    if (hostlist_expand(arena, str_of(text), &list, &err) < 0) {
        return err_code_name(err.code);
    }
    for (size_t idx = 0; idx < list.n; idx++) {
        strbuf_printf(&out, "%s%s", idx ? " " : "", list.names[idx].ptr);
    }
    return arena_printf(arena, "%s", out.ptr);
}

static const char *fold(struct arena *arena, const char *text)
{
    struct hostlist list;
    PASSES(hostlist_expand(arena, str_of(text), &list, ERR));
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
        {"n[98-101]", "n98 n99 n100 n101"},
        {"n[098-101]", "n098 n099 n100 n101"},
        {"n[09-11],n[099-101]", "n09 n10 n11 n099 n100 n101"},
    };
    for (EACH(row, ROWS)) {
        assert_string_equal(expand(ARENA, (*row)[0]), (*row)[1]);
    }
}

static void refused(const char *text)
{
    struct hostlist list;
    FAILS(hostlist_expand(ARENA, str_of(text), &list, ERR), ERR_USAGE);
}

TEST(what_is_refused_says_where)
{
    static const struct {
        const char *text;
        int byte; /* at which it is refused; 0: as a whole */
    } ROWS[] = {
        {"n[08-0010]", 3},
        {"n[1-010]", 3},
        {"", 1},
        {" ", 2},
        {"n[5-3]", 3},
        {"n[]", 3},
        {"n[1,]", 5},
        {"n[-1]", 3},
        {"n[1--3]", 5},
        {"n[a-b]", 0},
        {"n[1-9999999999999999]", 0},
        {"n[1", 2},
        {"n1]", 0},
        {"a[[1-2]]", 3},
        {"a,,b", 3},
        {",a", 1},
        {"a, ", 4},
        {"a;reboot", 0},
        {"a$(id)", 0},
        {"-oProxyCommand=x", 0},
        {"a\x01", 0},
        {"n[1-5000]", 0},
        {"a[1-4096],b", 0},
        {"a[1-100]b[1-100]", 0},
        {"a@b", 0},
        /* What ClusterShell has besides, and "..". */
        {"a[1-4]!a2", 7},
        {"a[1-4],!a2", 8},
        {"a[1-3]&a2", 7},
        {"a1 ^ a2", 4},
        {"a,@all", 3},
        {"*", 1},
        {"gpu?", 4},
        {"n[0-10/5]", 7},
        {"../x", 3},
    };
    for (EACH(row, ROWS)) {
        refused(row->text);
        SAYS(row->byte ? arena_printf(ARENA, "byte %d:", row->byte) : "");
    }
}

TEST(limits_hold)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 20);
    strbuf_add_z(&text, "a");
    for (int idx = 0; idx <= HOSTLIST_BRACKETS_MAX; idx++) {
        strbuf_add_z(&text, "[1]-");
    }
    strbuf_add_z(&text, "z");
    refused(text.ptr);
    strbuf_clear(&text);
    for (int idx = 0; idx < HOSTLIST_NAME_MAX + 1; idx++) {
        strbuf_add_char(&text, 'a');
    }
    refused(text.ptr);
    /* Names that occur again cost work all the same. */
    strbuf_clear(&text);
    strbuf_add_z(&text, "x");
    for (int idx = 0; idx < 300; idx++) {
        strbuf_add_z(&text, ",a[1-4095]");
    }
    refused(text.ptr);
    strbuf_clear(&text);
    while (text.len <= HOSTLIST_TEXT_MAX) {
        strbuf_add_z(&text, "aaaaaaaa,");
    }
    refused(text.ptr);
    assert_string_equal(fold(ARENA, "a[0-4095]"), "a[0-4095]");
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
    for (EACH(row, ROWS)) {
        assert_string_equal(fold(ARENA, (*row)[0]), (*row)[1]);
    }
    assert_string_equal(str_z(ARENA, hostlist_fold(ARENA, twice, 3)), "a[1-2]");
    assert_string_equal(str_z(ARENA, hostlist_fold(ARENA, NULL, 0)), "");
}
