/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "codec/pattern.h"

static struct pattern *make(const char *source)
{
    struct pattern *pattern = NULL;
    PASSES(pattern_new(str_of(source), &pattern, ERR));
    return pattern;
}

#define PLENTY (&(struct match_budget){1u << 20})

static bool matches(struct pattern *pattern, struct str subject)
{
    bool found = false;
    PASSES(pattern_match(pattern, subject, PLENTY, &found, ERR));
    return found;
}

TEST(groups_are_found_by_name)
{
    struct pattern *p = make("step (?<step>\\d+)(?: of (?<total>\\d+))?: (?<value>\\S+)");
    struct str line = STR_LIT("xx step 12: 3.5 yy");
    assert_true(matches(p, line));
    assert_true(str_eq_z(pattern_text(p, line, pattern_group(p, "step")), "12"));
    assert_true(str_eq_z(pattern_text(p, line, pattern_group(p, "value")), "3.5"));
    assert_null(pattern_text(p, line, pattern_group(p, "total")).ptr);
    assert_int_equal(pattern_group(p, "epoch"), -1);
    assert_null(pattern_text(p, line, -1).ptr);
    assert_null(pattern_text(p, line, 99).ptr);
    assert_true(str_eq_z(pattern_text(p, line, 0), "step 12: 3.5"));
    line = STR_LIT("step 1 of 9: z");
    assert_true(matches(p, line));
    assert_true(str_eq_z(pattern_text(p, line, pattern_group(p, "total")), "9"));
    assert_string_equal(pattern_group_name(p, 0), "step");
    assert_string_equal(pattern_group_name(p, 2), "value");
    assert_null(pattern_group_name(p, 3));
    assert_false(matches(p, STR_EMPTY));
    pattern_free(p);
}

TEST(a_bad_pattern_names_the_place)
{
    static const struct {
        const char *source;
        const char *says;
    } BAD[] = {
        {"abc(", "character 5"},     {"a[z-a]", "character 5"},
        {"(?<1x>a)", "character 4"}, {"(?<a>x)(?<a>y)", "character"},
        {"*", "character 1"},        {"\\", "character 2"},
        {"(*UTF)a", "UTF"},          {"\\C", "\\C"},
    };
    for (EACH(row, BAD)) {
        struct pattern *p = NULL;
        FAILS_WITH(pattern_new(str_of(row->source), &p, ERR), ERR_MANIFEST, row->says);
        assert_null(p);
    }
}

TEST(length_is_limited)
{
    char *text = xmalloc(PATTERN_LEN_MAX + 1);
    struct pattern *p = NULL;
    memset(text, 'a', PATTERN_LEN_MAX + 1);
    FAILS(pattern_new((struct str){text, PATTERN_LEN_MAX + 1}, &p, ERR), ERR_ANY);
    FAILS(pattern_new(STR_EMPTY, &p, ERR), ERR_ANY);
    PASSES(pattern_new((struct str){text, PATTERN_LEN_MAX}, &p, ERR));
    pattern_free(p);
    free(text);
}

TEST(bytes_are_not_utf8)
{
    struct pattern *p = make("^.\\xe2.$");
    assert_true(matches(p, STR_LIT("\xff\xe2\x80")));
    assert_false(matches(p, STR_LIT("\xe2\x96\x88\xe2\x96\x88")));
    pattern_free(p);
}

TEST(a_subject_may_hold_a_nul)
{
    struct pattern *p = make("a\\x00b");
    assert_true(matches(p, (struct str){"a\0b", 3}));
    pattern_free(p);
}

/* Would take ages: 2^40 ways to split the letters. */
TEST(backtracking_ends_in_an_error)
{
    struct pattern *p = make("^(?:a|a|b)*(?:a|a|b)*(?:a|a|b)*c\\1?()$");
    char line[60];
    bool found = false;
    memset(line, 'a', sizeof(line));
    FAILS(pattern_match(p, (struct str){line, sizeof(line)}, PLENTY, &found, ERR), ERR_PARSE);
    SAYS("60 bytes");
    pattern_free(p);
}

/* Short lines cost nothing; others cost their steps, and a pattern that scans to the end from each beginning grows as the square. */
TEST(steps_are_counted)
{
    const uint64_t all = 1u << 30;
    struct pattern *p = make("ips: (?<value>[0-9.]+) img.*last");
    char line[15 * 800];
    uint64_t cost[3];
    for (size_t at = 0; at < sizeof(line); at += 15) {
        memcpy(line + at, "ips: 1 img tsa ", 15);
    }
    for (size_t idx = 0; idx < 3; idx++) {
        struct match_budget budget = {all};
        bool found = true;
        struct str part = {line, (size_t)15 * (200u << idx)};
        PASSES(pattern_match(p, part, &budget, &found, ERR));
        assert_false(found);
        cost[idx] = all - budget.left;
    }
    assert_true(cost[0] > 15 * 200);
    assert_true(cost[1] > 3 * cost[0] && cost[2] > 3 * cost[1]);
    for (size_t len = 0; len < 128; len++) {
        struct match_budget none = {0};
        bool found = true;
        PASSES(pattern_match(p, (struct str){line, len}, &none, &found, ERR));
        assert_false(found);
    }
    pattern_free(p);
}

TEST(a_cut_line_matches_in_part)
{
    struct pattern *p = make("iter: (?<step>\\d+)/\\d+, ips: (?<value>[\\d.]+) samples/sec");
    static const struct {
        const char *line;
        bool is_partial;
    } LINES[] = {
        {"[TRAIN] iter: 30/400, ips: 19.46", true},
        {"[TRAIN] iter: 30/4", true},
        {"[TRAIN] iter", false}, /* four bytes: not enough to tell */
        {"nothing of the kind", false},
        {"iter: 3/4, loss", false},
    };
    for (EACH(row, LINES)) {
        bool is_partial = !row->is_partial;
        PASSES(pattern_match_partial(p, str_of(row->line), 4, PLENTY, &is_partial, ERR));
        assert_int_equal(is_partial, row->is_partial);
    }
    assert_true(matches(p, STR_LIT("iter: 3/4, ips: 2 samples/sec"))); /* still works after */
    pattern_free(p);
}

/* Too large to be counted: an error where its steps are needed. */
TEST(a_large_pattern_is_not_counted)
{
    struct pattern *p = make("(?:(?:abcdefghij){20}){80}");
    char line[1000];
    bool found = true;
    memset(line, 'a', sizeof(line));
    line[sizeof(line) - 1] = 'j';
    PASSES(pattern_match(p, (struct str){line, 100}, PLENTY, &found, ERR));
    assert_false(found);
    FAILS(pattern_match(p, (struct str){line, sizeof(line)}, PLENTY, &found, ERR), ERR_PARSE);
    pattern_free(p);
}

/* A line that begins the pattern repeatedly, and one that matches once, at every place around the limits of steps. */
TEST(long_lines_cost_what_they_are_long)
{
    const size_t len = 1u << 20;
    struct pattern *pattern = NULL;
    struct match_budget budget = {1u << 20};
    bool is_found = true;
    char *line = test_malloc(len);
    PASSES(pattern_new(STR_LIT("ips: (?<value>[0-9.]+) img.*last"), &pattern, ERR));
    for (size_t at = 0; at + 11 <= len; at += 11) {
        memcpy(line + at, "ips: 1 img ", 11);
    }
    memcpy(line + len - 3, "ast", 3); /* what each beginning searches to the end without success */
    FAILS(pattern_match(pattern, (struct str){line, len}, &budget, &is_found, ERR), ERR_PARSE);
    SAYS("steps");
    assert_int_equal(budget.left, 0);
    memset(line, '.', len);
    for (size_t window = 1; window < 5; window++) {
        for (size_t at = window * PATTERN_WINDOW - 20; at < window * PATTERN_WINDOW + 20; at++) {
            memcpy(line + at, "ips: 7.25 img last", 18);
            PASSES(pattern_match(pattern, (struct str){line, len}, PLENTY, &is_found, ERR));
            assert_true(is_found);
            assert_ptr_equal(pattern_text(pattern, (struct str){line, len}, 0).ptr, line + at);
            PASSES(pattern_match(pattern, (struct str){line, at + 18}, PLENTY, &is_found, ERR));
            assert_true(is_found);
            memset(line + at, '.', 18);
        }
    }
    test_free(line);
    pattern_free(pattern);
}
