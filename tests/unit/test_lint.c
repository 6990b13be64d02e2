/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/nearest.h"
#include "judge/finding.h"
#include "report/shell_script.h"

TEST(words_follow_quotes_and_lines)
{
    struct shell_words words = {0};
    static const char *const WANTED[] = {"export", "A=1 2", "echo",      "x y", "$(a; b)",
                                         "c",      "d",     "${e:-f g}", "last"};
    shell_split(ARENA,
                str_of("export 'A=1 2'\n# a comment; not read\necho \"x y\" $(a; b) && c \\\n  d;"
                       " ${e:-f g} last"),
                &words);
    assert_int_equal(words.n, ARRAY_LEN(WANTED));
    for (size_t idx = 0; idx < words.n; idx++) {
        assert_true(str_eq_z(words.items[idx].text, WANTED[idx]));
    }
}

TEST(assignments_and_uses_are_seen)
{
    struct shell_words words = {0};
    struct str name, value;
    static const bool WANTED[] = {false, true, false, false, true, true, false};
    assert_true(shell_assignment(str_of("A_1=x"), &name, &value));
    assert_true(str_eq_z(name, "A_1") && str_eq_z(value, "x"));
    assert_true(shell_assignment(str_of("A+=x"), &name, &value) && str_eq_z(name, "A"));
    assert_false(shell_assignment(str_of("--a=1"), &name, &value));
    assert_false(shell_assignment(str_of("1A=1"), &name, &value));
    assert_false(shell_assignment(str_of("=1"), &name, &value));
    shell_split(ARENA, str_of("a $B '$N' \\$N \"$Q\" ${C:-d} 'open"), &words);
    assert_int_equal(words.n, ARRAY_LEN(WANTED));
    for (size_t idx = 0; idx < words.n; idx++) {
        assert_int_equal(words.items[idx].has_use, WANTED[idx]);
    }
    shell_split(ARENA, str_of("# only this"), &words);
    assert_int_equal(words.n, 0);
}

static struct shell_script script_of(struct arena *arena, const char *text)
{
    struct shell_script script = {0};
    shell_script_read(arena, str_of(text), &script);
    return script;
}

/* One row a text: the words of each program that it starts, "|" between programs. */
TEST(programs_are_found)
{
    static const struct {
        const char *text, *runs;
    } ROWS[] = {
        {"sudo -u me env A=1 tar x\\\nzf a", "tar xzf a"},
        {"time nohup timeout -k 5 60 nice -n 3 a b > log 2>&1 &", "a b"},
        {"B=8; run -b $B '$B' \"$B\"", "||run -b 8 $B 8"},
        {"C='py t.py'; $C -a", "||py t.py -a"},
        {"if x; then B=1; else B=2; fi; y $B", "x|||y $B"},
        {"bash -lc 'cd a && b c'", "bash -lc cd a && b c|cd a|b c"},
        {"docker run -v a:b --rm img:1 sh -c \"x; y\"",
         "docker run -v a:b --rm img:1 sh -c x; y|sh -c x; y|x|y"},
        {"mpirun -np 8 python -m torch.distributed.launch --n 2 t.py -b 1",
         "mpirun -np 8 python -m torch.distributed.launch --n 2 t.py -b 1|python -m "
         "torch.distributed.launch --n 2 t.py -b 1|t.py -b 1"},
        {"for i in 1 2; do a; done; b", "for i in 1 2|a|done|b"},
        {"while [ $i -le 6 ]; do a; done", "while [ $i -le 6 ]|a|done"},
        {"(cd a; b) | c # d", "cd a|b|c"},
    };
    for (size_t row = 0; row < ARRAY_LEN(ROWS); row++) {
        struct shell_script script = script_of(ARENA, ROWS[row].text);
        const char *got = "";
        for (size_t idx = 0; idx < script.n; idx++) {
            for (size_t word = 0; word < script.runs[idx].n; word++) {
                got = arena_printf(ARENA, "%s%s%.*s", got,
                                   word  ? " "
                                   : idx ? "|"
                                         : "",
                                   STR_ARG(script.runs[idx].words[word].text));
            }
            got = script.runs[idx].n ? got : arena_printf(ARENA, "%s|", got);
        }
        assert_string_equal(got, ROWS[row].runs);
    }
}

TEST(distances_are_least)
{
    assert_int_equal(edit_distance(str_of("TRANER_IPS"), str_of("TRAINER_IPS")), 1);
    assert_int_equal(edit_distance(str_of("abc"), str_of("abc")), 0);
    assert_int_equal(edit_distance(str_of(""), str_of("abc")), 3);
    assert_int_equal(edit_distance(str_of("kitten"), str_of("sitting")), 3);
    assert_int_equal(edit_distance(str_of("TRIANER_IPS"), str_of("TRAINER_IPS")), 1);
}

TEST(rules_are_sorted_and_complete)
{
    struct findings list = {.arena = ARENA};
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        const struct finding_rule *rule = &FINDING_RULES[idx];
        assert_true(idx == 0 || strcmp(FINDING_RULES[idx - 1].id, rule->id) < 0);
        assert_true(rule->title[0] && finding_help(rule).len > 0);
        assert_int_equal(rule->title[strlen(rule->title) - 1] == '.', false);
        finding_add(&list, rule->id, (struct spot){.log = STR_LIT("here")}, "%zu", idx);
    }
    assert_int_equal(list.n, N_FINDING_RULES);
    assert_ptr_equal(list.items[3].id, FINDING_RULES[3].id);
    assert_int_equal(list.items[3].level, FINDING_RULES[3].level);
    assert_true(str_eq_z(list.items[3].message, "3"));
    assert_true(str_eq_z(list.items[3].where, "here"));
}
