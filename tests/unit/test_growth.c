/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "judge/growth.h"
#include "judge/lint.h"
#include "load/load.h"

static bool is_steep(const char *source)
{
    struct pattern *pattern = NULL;
    struct growth growth;
    struct err err = {0};
    bool result;
    assert_int_equal(pattern_new(str_of(source), &pattern, &err), 0);
    result = growth_is_steep(pattern, &growth);
    pattern_free(pattern);
    return result;
}

static void steep_ones_are_found(void **state UNUSED)
{
    static const char *const ROWS[] = {
        "ips: (?<value>[0-9.]+) img.*last",
        "\\[TRAIN\\].*\\bips: ",
        "(?<value>\\d+) samples/s",
        "^a.*b.*c$",
        "^(?:\\s*\\w+)*\\s*: (?<value>\\d+)$",
        "x(?:y[^z]*)?z=(?<value>\\d+)",
        "(?=.*\\bamp=False\\b).*\\bfp16=False\\b",
        "step \\S+ of|loss (?<value>[^,]+), then",
        "a{2,}b",
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        if (!is_steep(ROWS[idx])) {
            fail_msg("not found: %s", ROWS[idx]);
        }
    }
}

static void others_are_not(void **state UNUSED)
{
    static const char *const ROWS[] = {
        "ips: (?<value>[0-9.]+) img(*COMMIT).*last",
        "\\[TRAIN\\](*COMMIT).*\\bips: ",
        "(?<!\\d)(?<value>\\d{1,20}) samples/s",
        "^(?=.*\\bamp=False\\b).*\\bfp16=False\\b",
        "seed=(?<value>[^\\s,)]+)",
        "step (?<step>\\d+)/(?<total>\\d+), loss (?<value>\\S+)",
        "^DLL .* - ",
        "x",
        "[]]",
        "k=[]x]+;",
        "a|b",
        "(?i)Loss: (?<value>[\\d.]+)",
        "^.{0,80}end",
        "(((((((((((((((((((((((((((((((((((((((a)))))))))))))))))))))))))))))))))))))))",
        "\\Qa.b\\E",
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        if (is_steep(ROWS[idx])) {
            fail_msg("found: %s", ROWS[idx]);
        }
    }
}

static void shipped_formats_are_linear(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(format_set) struct format_set formats = {0};
    struct findings findings = {0};
    struct err err = {0};
    if (load_formats(&arena, ".", &formats, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    assert_true(formats.n > 30);
    for (size_t idx = 0; idx < formats.n; idx++) {
        lint_format(&arena, formats.items[idx], &findings);
    }
    for (size_t idx = 0; idx < findings.n; idx++) {
        print_error("%s: %s\n", findings.items[idx].where.ptr, findings.items[idx].message.ptr);
    }
    assert_int_equal(findings.n, 0);
}

/* Only byte for byte, and only with the library that tried them. */
static void what_was_tried_is_known(void **state UNUSED)
{
    static const char *const SOURCES[] = {"loss: (?<value>\\S+)", "step (?<step>\\d+)", "x"};
    uint8_t keys[ARRAY_LEN(SOURCES)][GROWTH_KEY_BYTES];
    struct pattern *one = NULL;
    struct pattern *other = NULL;
    struct err err = {0};
    for (size_t idx = 0; idx < ARRAY_LEN(SOURCES); idx++) {
        growth_key(str_of(SOURCES[idx]), keys[idx]);
    }
    for (size_t idx = 0; idx + 1 < ARRAY_LEN(SOURCES); idx++) { /* ascending */
        for (size_t at = 0; at + 1 < ARRAY_LEN(SOURCES); at++) {
            uint8_t copy[GROWTH_KEY_BYTES];
            if (memcmp(keys[at], keys[at + 1], sizeof(copy)) > 0) {
                memcpy(copy, keys[at], sizeof(copy));
                memcpy(keys[at], keys[at + 1], sizeof(copy));
                memcpy(keys[at + 1], copy, sizeof(copy));
            }
        }
    }
    const struct growth_tried all = {pattern_library().ptr, keys[0], ARRAY_LEN(keys)};
    const struct growth_tried others = {"10.00 2000-01-01", keys[0], ARRAY_LEN(keys)};
    for (size_t idx = 0; idx < ARRAY_LEN(SOURCES); idx++) {
        assert_int_equal(pattern_new(str_of(SOURCES[idx]), &one, &err), 0);
        assert_true(growth_was_tried(&all, one));
        assert_false(growth_was_tried(&others, one));
        assert_false(growth_was_tried(&GROWTH_TRIED, one)); /* this program has none */
        pattern_free(one);
    }
    assert_int_equal(pattern_new(STR_LIT("loss: (?<value>\\S+) "), &other, &err), 0);
    assert_false(growth_was_tried(&all, other));
    pattern_free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steep_ones_are_found),
        cmocka_unit_test(others_are_not),
        cmocka_unit_test(shipped_formats_are_linear),
        cmocka_unit_test(what_was_tried_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
