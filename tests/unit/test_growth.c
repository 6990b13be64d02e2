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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steep_ones_are_found),
        cmocka_unit_test(others_are_not),
        cmocka_unit_test(shipped_formats_are_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
