/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "judge/finding.h"
#include "report/shell_text.h"

static void words_follow_quotes_and_lines(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct shell_words words = {0};
    static const char *const WANTED[] = {"export", "A=1 2", "echo",      "x y", "$(a; b)",
                                         "c",      "d",     "${e:-f g}", "last"};
    static const bool STARTS[] = {true, true, true, false, false, true, false, true, false};
    shell_split(&arena,
                str_of("export 'A=1 2'\n# a comment; not read\necho \"x y\" $(a; b) && c \\\n  d;"
                       " ${e:-f g} last"),
                &words);
    assert_int_equal(words.n, ARRAY_LEN(WANTED));
    for (size_t idx = 0; idx < words.n; idx++) {
        assert_true(str_eq_z(words.items[idx].text, WANTED[idx]));
        assert_int_equal(words.items[idx].starts, STARTS[idx]);
    }
}

static void text_without_words_has_none(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct shell_words words = {0};
    shell_split(&arena, str_of(""), &words);
    assert_int_equal(words.n, 0);
    shell_split(&arena, str_of("# only this"), &words);
    assert_int_equal(words.n, 0);
    shell_split(&arena, str_of("'open"), &words);
    assert_int_equal(words.n, 1);
}

static void assignments_and_uses_are_seen(void **state UNUSED)
{
    struct str name;
    struct str value;
    bool has_default = false;
    size_t at = 0;
    assert_true(shell_assignment(str_of("A_1=\"x\""), &name, &value));
    assert_true(str_eq_z(name, "A_1") && str_eq_z(value, "x"));
    assert_false(shell_assignment(str_of("--a=1"), &name, &value));
    assert_false(shell_assignment(str_of("1A=1"), &name, &value));
    assert_false(shell_assignment(str_of("=1"), &name, &value));
    assert_true(shell_next_use(str_of("a $B ${C:-d} $1 $"), &at, &name, &has_default));
    assert_true(str_eq_z(name, "B") && !has_default);
    assert_true(shell_next_use(str_of("a $B ${C:-d} $1 $"), &at, &name, &has_default));
    assert_true(str_eq_z(name, "C") && has_default);
    assert_false(shell_next_use(str_of("a $B ${C:-d} $1 $"), &at, &name, &has_default));
}

static void options_have_values(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct shell_words words = {0};
    struct str value = STR_EMPTY;
    shell_split(&arena, str_of("run --nnodes=2 --batch_size 8 --last"), &words);
    assert_true(shell_option(&words, "--nnodes", &value) && str_eq_z(value, "2"));
    assert_true(shell_option(&words, "--batch_size", &value) && str_eq_z(value, "8"));
    assert_false(shell_option(&words, "--last", &value));
    assert_false(shell_option(&words, "--batch", &value));
}

static void distances_are_least(void **state UNUSED)
{
    assert_int_equal(edit_distance(str_of("TRANER_IPS"), str_of("TRAINER_IPS")), 1);
    assert_int_equal(edit_distance(str_of("abc"), str_of("abc")), 0);
    assert_int_equal(edit_distance(str_of(""), str_of("abc")), 3);
    assert_int_equal(edit_distance(str_of("kitten"), str_of("sitting")), 3);
}

static void rules_are_sorted_and_complete(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct findings list = {0};
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        const struct finding_rule *rule = &FINDING_RULES[idx];
        assert_true(idx == 0 || strcmp(FINDING_RULES[idx - 1].id, rule->id) < 0);
        assert_true(rule->title[0] && rule->help[0]);
        assert_int_equal(rule->title[strlen(rule->title) - 1] == '.', false);
        finding_add(&list, &arena, rule->id, str_of("here"), "%zu", idx);
    }
    assert_int_equal(list.n, N_FINDING_RULES);
    assert_ptr_equal(list.items[3].id, FINDING_RULES[3].id);
    assert_int_equal(list.items[3].level, FINDING_RULES[3].level);
    assert_true(str_eq_z(list.items[3].message, "3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_follow_quotes_and_lines),
        cmocka_unit_test(text_without_words_has_none),
        cmocka_unit_test(assignments_and_uses_are_seen),
        cmocka_unit_test(options_have_values),
        cmocka_unit_test(distances_are_least),
        cmocka_unit_test(rules_are_sorted_and_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
