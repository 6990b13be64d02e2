/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "lint/growth.h"
#include "lint/lint.h"
#include "load/load.h"
#include "log/tried.h"

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

/* A format of which every pattern is steep. */
static void every_pattern_is_tried(void **state UNUSED)
{
    static const char PROBE[] = "{\"literal\": \"word\", \"pattern\": \"word.*last\"}";
    static const char *const PLACES[] = {"series[0].pattern", "series[0].after.pattern",
                                         "series[0].until",   "series[0].like",
                                         "run_start.pattern", "begin.pattern",
                                         "resumed.pattern",   "end.pattern",
                                         "fatal.pattern",     "done.pattern",
                                         "facts[0].pattern"};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(format_set) struct format_set formats = {0};
    struct findings findings = {0};
    struct err err = {0};
    const char *text = arena_printf(
        &arena,
        "{\"schema_version\": 1, \"id\": \"mine\", \"title\": \"t\", \"framework\": \"f\", "
        "\"source\": \"s\", \"prefixes\": [], \"series\": [{\"name\": \"s\", \"literal\": "
        "\"word\", \"pattern\": \"word.*last (?<value>x)\", \"unit\": \"samples/s\", \"scope\": "
        "\"job\", \"quantity\": \"rate\", \"primary\": true, \"after\": %s, \"like\": "
        "\"word.*last\", \"until\": \"word.*last\"}], \"run_start\": %s, \"begin\": %s, "
        "\"resumed\": %s, \"end\": %s, \"fatal\": %s, \"done\": {\"literal\": \"word\", "
        "\"pattern\": \"word.*last (?<step>x)\"}, \"facts\": [{\"name\": \"seed\", \"literal\": "
        "\"word\", \"pattern\": \"word.*last (?<value>x)\"}], \"rules\": []}",
        PROBE, PROBE, PROBE, PROBE, PROBE, PROBE);
    if (load_format_text(&arena, ".", str_of(text), "mine.json", &formats, &err) < 0) {
        fail_msg("%s", err.msg);
    }
    lint_format(&arena, formats.items[0], &findings);
    assert_int_equal(findings.n, ARRAY_LEN(PLACES));
    for (size_t idx = 0; idx < findings.n; idx++) {
        assert_string_equal(findings.items[idx].where.ptr,
                            arena_printf(&arena, "mine.json:$.%s", PLACES[idx]));
    }
}

/* Only byte for byte, under its own name, and only with the library that tried it. */
static void what_was_tried_is_known(void **state UNUSED)
{
    const struct str id = STR_LIT("mine");
    const struct str text = STR_LIT("{\"id\": \"mine\"}\n");
    uint8_t keys[3][TRIED_KEY_BYTES] = {{0}, {0}, {0}};
    tried_key(id, text, keys[1]);
    memset(keys[2], UINT8_MAX, sizeof(keys[2])); /* ascending */
    const struct tried all = {pattern_library().ptr, keys[0], ARRAY_LEN(keys)};
    const struct tried others = {"10.00 2000-01-01", keys[0], ARRAY_LEN(keys)};
    assert_true(format_is_tried(&all, id, text));
    assert_false(format_is_tried(&all, STR_LIT("yours"), text));
    assert_false(format_is_tried(&all, id, str_sub(text, 0, text.len - 1)));
    assert_false(format_is_tried(&others, id, text));
    assert_false(format_is_tried(&TRIED, id, text)); /* this program has none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steep_ones_are_found),       cmocka_unit_test(others_are_not),
        cmocka_unit_test(shipped_formats_are_linear), cmocka_unit_test(every_pattern_is_tried),
        cmocka_unit_test(what_was_tried_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
