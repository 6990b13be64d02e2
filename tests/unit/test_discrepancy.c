/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as another value, what is wording or an added key, and what is no document at all. */
#include "unit.h"

#include "evidence/discrepancy.h"

#define DERIVED "{'a': 1, 'why': 'because', 'cells': [{'verdict': 'match', 'value': null}]}"

#define KEPT(a, why, cells) "{'a': " a ", 'why': " why ", 'cells': " cells "}"
#define MATCH               "[{'verdict': 'match', 'value': null}]"

static int find(struct arena *arena, const char *kept, const char *derived,
                struct discrepancies *found, struct err *err)
{
    *found = (struct discrepancies){0};
    return discrepancies_find(arena, "result.json", str_of(json_text(kept)),
                              str_of(json_text(derived)), found, err);
}

TEST(values_and_wordings_are_told_apart)
{
    static const struct {
        const char *kept;
        size_t n_values, n_wordings;
        const char *first;
    } ROWS[] = {
        {DERIVED, 0, 0, NULL},
        {KEPT("2", "'because'", MATCH), 1, 0, "$.a"},
        {KEPT("'1'", "'because'", MATCH), 1, 0, "$.a"},
        {KEPT("true", "'because'", MATCH), 1, 0, "$.a"},
        {KEPT("[]", "'because'", MATCH), 1, 0, "$.a"},
        {KEPT("1", "'as it is'", MATCH), 0, 1, "$.why"},
        {KEPT("1", "null", MATCH), 0, 1, "$.why"},
        {KEPT("1", "'because'", "[{'verdict': 'exact', 'value': null}]"), 1, 0,
         "$.cells[0].verdict"},
        {KEPT("1", "'because'", "[{'verdict': 'match', 'value': 3}]"), 1, 0, "$.cells[0].value"},
        {KEPT("1", "'because'", "[{'verdict': 'match'}]"), 1, 0, "$.cells[0].value"},
        {KEPT("1", "'because'", "[]"), 1, 0, "$.cells[0]"},
        {KEPT("1", "'because'", "[{'verdict': 'match', 'value': null}, 7]"), 1, 0, "$.cells[1]"},
        /* A key that nothing derives may claim anything; but that of the programs before is known to mean nothing, at its place. */
        {"{'a': 1, 'why': 'because', 'cells': [{'verdict': 'match', 'value': null}], 'note': 1}", 1,
         0, "$.note"},
        {"{'derivation': 4, 'a': 1, 'why': 'because', 'cells': [{'verdict': 'match', 'value': "
         "null}]}",
         0, 1, "$.derivation"},
        {KEPT("1", "'because'", "[{'verdict': 'match', 'value': null, 'derivation': 4}]"), 1, 0,
         "$.cells[0].derivation"},
        /* All that is not derived under a wording is one, but not how many there are. */
        {KEPT("2", "'x'", "[{'verdict': 'x', 'value': null}]"), 2, 1, "$.a"},
    };
    for (EACH(row, ROWS)) {
        struct discrepancies found;
        PASSES(find(ARENA, row->kept, DERIVED, &found, ERR));
        assert_int_equal(found.n_values, row->n_values);
        assert_int_equal(found.n_wordings, row->n_wordings);
        assert_int_equal(found.n, found.n_values + found.n_wordings);
        if (row->first) {
            const char *start = arena_printf(ARENA, "result.json:%s: ", row->first);
            assert_true(str_starts(str_of(found.items[0].text), str_of(start)));
        }
        int status = discrepancies_refuse(&found, ERR);
        assert_int_equal(status, found.n_values ? -1 : 0);
        assert_int_equal(ERR->code, found.n_values ? ERR_INTEGRITY : ERR_NONE);
    }
}

TEST(the_sentences_of_a_list_are_wording_and_their_number_is_not)
{
    struct discrepancies found;
    PASSES(find(ARENA, "{'taints': ['a']}", "{'taints': ['b']}", &found, ERR));
    assert_int_equal(found.n_values, 0);
    assert_int_equal(found.n_wordings, 1);
    PASSES(find(ARENA, "{'taints': []}", "{'taints': ['b']}", &found, ERR));
    assert_int_equal(found.n_values, 1);
}

/* A key that today's rules add is one that programs before did not write; any other that is missing was taken out. */
TEST(a_key_that_is_missing_is_a_value_but_for_those_that_came_later)
{
    static const char *const LATER[] = {"program_version", "files", "by_node", "taints", "also"};
    struct discrepancies found;
    for (EACH(row, LATER)) {
        PASSES(find(ARENA, "{'a': 1}", arena_printf(ARENA, "{'a': 1, '%s': ['b']}", *row), &found,
                    ERR));
        assert_int_equal(found.n_values, 0);
        assert_int_equal(found.n_wordings, 1);
    }
    PASSES(find(ARENA, "{'a': 1}", "{'a': 1, 'differs': []}", &found, ERR));
    assert_int_equal(found.n_values, 1);
}

/* Today's rules may know two texts to be the same condition; nothing else comes into a list by that. */
TEST(a_difference_that_is_none_is_one_of_conditions)
{
#define SAME "{'name': 'os', 'published': '1', 'run': '1.0'}"
    static const struct {
        const char *kept, *derived;
        size_t n_values;
    } ROWS[] = {
        {"{'differs': [" SAME "]}", "{'differs': []}", 0},
        {"{'differs': [" SAME ", 7]}", "{'differs': [7]}", 0},
        {"{'cells': [" SAME "]}", "{'cells': []}", 1},
        {"{'differs': [{'name': 'os', 'published': '1', 'run': '2'}]}", "{'differs': []}", 1},
        {"{'differs': [{'name': 'os', 'published': '1', 'run': '1', 'value': 9}]}",
         "{'differs': []}", 1},
        {"{'differs': [{'published': '1', 'run': '1'}]}", "{'differs': []}", 1},
        {"{'differs': [7]}", "{'differs': []}", 1},
    };
    for (EACH(row, ROWS)) {
        struct discrepancies found;
        PASSES(find(ARENA, row->kept, row->derived, &found, ERR));
        assert_int_equal(found.n_values, row->n_values);
        assert_int_equal(found.n_wordings, !row->n_values);
    }
}

TEST(another_form_of_the_same_is_refused)
{
    static const char *const KEPT[] = {
        "{'a':1}", "{'a': 1} ", "{'a': 1.0}", "{'a': 1, 'a': 1}", "{'a': 1", "",
    };
    for (EACH(row, KEPT)) {
        struct discrepancies found;
        FAILS(find(ARENA, *row, "{'a': 1}", &found, ERR), ERR_INTEGRITY);
    }
}

/* However many wordings come first, a value is among those that are listed. */
TEST(values_are_listed_whatever_comes_before)
{
    CLEANUP(strbuf) struct strbuf kept = STRBUF(1 << 20);
    CLEANUP(strbuf) struct strbuf derived = STRBUF(1 << 20);
    struct discrepancies found;
    strbuf_add_z(&kept, "[");
    strbuf_add_z(&derived, "[");
    for (int idx = 0; idx < 2 * DISCREPANCIES_MAX; idx++) {
        strbuf_add_z(&kept, "{'why': 'a'},");
        strbuf_add_z(&derived, "{'why': 'b'},");
    }
    strbuf_add_z(&kept, "1]");
    strbuf_add_z(&derived, "2]");
    PASSES(find(ARENA, kept.ptr, derived.ptr, &found, ERR));
    assert_int_equal(found.n, DISCREPANCIES_MAX);
    assert_int_equal(found.n_values, 1);
    assert_int_equal(found.n_wordings, 2 * DISCREPANCIES_MAX);
    FAILS(discrepancies_refuse(&found, ERR), ERR_ANY);
}
