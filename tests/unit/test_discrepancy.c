/* SPDX-License-Identifier: Apache-2.0 */
/* What counts as another value, what is wording or an added key, and what is no document at all. */
#include "unit.h"

#include "evidence/discrepancy.h"

#define DERIVED                                                                                    \
    "{\"a\": 1, \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", \"value\": null}]}"

static int find(struct arena *arena, const char *kept, const char *derived,
                struct discrepancies *found, struct err *err)
{
    *found = (struct discrepancies){0};
    return discrepancies_find(arena, "result.json", str_of(kept), str_of(derived), found, err);
}

TEST(values_and_wordings_are_told_apart)
{
    static const struct {
        const char *kept;
        size_t n_values, n_wordings;
        const char *first;
    } ROWS[] = {
        {DERIVED, 0, 0, NULL},
        {"{\"a\": 2, \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", \"value\": null}]}",
         1, 0, "result.json:$.a: kept 2, today's rules derive 1"},
        {"{\"a\": \"1\", \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", \"value\": "
         "null}]}",
         1, 0, "result.json:$.a: kept \"1\", today's rules derive 1"},
        {"{\"a\": true, \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", \"value\": "
         "null}]}",
         1, 0, "result.json:$.a: kept true, today's rules derive 1"},
        {"{\"a\": [], \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", \"value\": "
         "null}]}",
         1, 0, "result.json:$.a: kept a list, today's rules derive 1"},
        {"{\"a\": 1, \"why\": \"as it is\", \"cells\": [{\"verdict\": \"match\", \"value\": "
         "null}]}",
         0, 1, "result.json:$.why: kept \"as it is\", today's rules derive \"because\""},
        {"{\"a\": 1, \"why\": null, \"cells\": [{\"verdict\": \"match\", \"value\": null}]}", 0, 1,
         "result.json:$.why: kept null, today's rules derive \"because\""},
        {"{\"a\": 1, \"why\": \"because\", \"cells\": [{\"verdict\": \"exact\", \"value\": null}]}",
         1, 0, "result.json:$.cells[0].verdict: kept \"exact\", today's rules derive \"match\""},
        {"{\"a\": 1, \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", \"value\": 3}]}", 1,
         0, "result.json:$.cells[0].value: kept 3, today's rules derive null"},
        {"{\"a\": 1, \"why\": \"because\", \"cells\": [{\"verdict\": \"match\"}]}", 0, 1,
         "result.json:$.cells[0].value: a key that today's rules add"},
        {"{\"a\": 1, \"why\": \"because\", \"cells\": []}", 1, 0,
         "result.json:$.cells[0]: kept nothing, today's rules derive an object"},
        {"{\"a\": 1, \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", \"value\": null}, "
         "7]}",
         1, 0, "result.json:$.cells[1]: kept 7, today's rules derive nothing"},
        /* A key that nothing derives may claim anything; but that of the programs before is known to mean nothing, at its place. */
        {"{\"a\": 1, \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", \"value\": null}], "
         "\"note\": 1}",
         1, 0, "result.json:$.note: a key that no rule derives"},
        {"{\"derivation\": 4, \"a\": 1, \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", "
         "\"value\": null}]}",
         0, 1, "result.json:$.derivation: a key of earlier programs, without a meaning today"},
        {"{\"a\": 1, \"why\": \"because\", \"cells\": [{\"verdict\": \"match\", \"value\": null, "
         "\"derivation\": 4}]}",
         1, 0, "result.json:$.cells[0].derivation: a key that no rule derives"},
        /* All that is not derived under a wording is one, but not how many there are. */
        {"{\"a\": 2, \"why\": \"x\", \"cells\": [{\"verdict\": \"x\"}]}", 2, 2,
         "result.json:$.a: kept 2, today's rules derive 1"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        struct discrepancies found;
        struct err err = {0};
        struct err refused = {0};
        assert_int_equal(find(ARENA, ROWS[idx].kept, DERIVED, &found, &err), 0);
        assert_int_equal(found.n_values, ROWS[idx].n_values);
        assert_int_equal(found.n_wordings, ROWS[idx].n_wordings);
        assert_int_equal(found.n, found.n_values + found.n_wordings);
        if (ROWS[idx].first) {
            assert_string_equal(found.items[0].text, ROWS[idx].first);
        }
        assert_int_equal(discrepancies_refuse(&found, &refused), found.n_values ? -1 : 0);
        assert_int_equal(refused.code, found.n_values ? ERR_INTEGRITY : ERR_NONE);
    }
}

TEST(the_sentences_of_a_list_are_wording_and_their_number_is_not)
{
    struct discrepancies found;
    PASSES(find(ARENA, "{\"taints\": [\"a\"]}", "{\"taints\": [\"b\"]}", &found, ERR));
    assert_int_equal(found.n_values, 0);
    assert_int_equal(found.n_wordings, 1);
    PASSES(find(ARENA, "{\"taints\": []}", "{\"taints\": [\"b\"]}", &found, ERR));
    assert_int_equal(found.n_values, 1);
}

TEST(another_form_of_the_same_is_refused)
{
    static const char *const KEPT[] = {
        "{\"a\":1}", "{\"a\": 1} ", "{\"a\": 1.0}", "{\"a\": 1, \"a\": 1}", "{\"a\": 1", "",
    };
    for (size_t idx = 0; idx < ARRAY_LEN(KEPT); idx++) {
        struct discrepancies found;
        FAILS(find(ARENA, KEPT[idx], "{\"a\": 1}", &found, ERR), ERR_INTEGRITY);
    }
}

/* However many wordings come first, a value is among those that are listed. */
TEST(values_are_listed_whatever_comes_before)
{
    CLEANUP(strbuf) struct strbuf kept = {0};
    CLEANUP(strbuf) struct strbuf derived = {0};
    struct discrepancies found;
    strbuf_init(&kept, 1 << 20);
    strbuf_init(&derived, 1 << 20);
    strbuf_add_z(&kept, "[");
    strbuf_add_z(&derived, "[");
    for (int idx = 0; idx < 2 * DISCREPANCIES_MAX; idx++) {
        strbuf_add_z(&kept, "{\"why\": \"a\"},");
        strbuf_add_z(&derived, "{\"why\": \"b\"},");
    }
    strbuf_add_z(&kept, "1]");
    strbuf_add_z(&derived, "2]");
    PASSES(find(ARENA, kept.ptr, derived.ptr, &found, ERR));
    assert_int_equal(found.n, DISCREPANCIES_MAX);
    assert_int_equal(found.n_values, 1);
    assert_int_equal(found.n_wordings, 2 * DISCREPANCIES_MAX);
    FAILS(discrepancies_refuse(&found, ERR), ERR_ANY);
}
