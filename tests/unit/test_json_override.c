/* SPDX-License-Identifier: Apache-2.0 */
/* codec/json_override: one value changes, every other byte stays. */
#include "unit.h"

#include "codec/json.h"
#include "codec/json_override.h"

static const char DOC[] =
    "{\n  \"id\": \"r\", \"n\": 117.2050, \"on\": true, \"empty\": {}, \"none\": [ ],\n"
    "  \"stacks\": [\n    {\"id\": \"a\", \"env\": {\"X\": \"1\", \"Y\": null}},\n"
    "    {\"id\": \"b/c.d/n1g1\", \"env\": {}, \"text\": \"a \\\"]}, [{ \\\\\", \"list\": [1, [2, "
    "3], {\"k\": 4}]}\n  ]\n}\n";

static void change(const char *setting, const char *from, const char *to, const char *was,
                   const char *value)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json_override made;
    PASSES(json_override(ARENA, str_of(DOC), str_of(setting), false, &made, ERR));
    assert_string_equal(made.text.ptr, replaced(DOC, from, to));
    assert_true(was ? str_eq_z(made.was, was) : made.was.ptr == NULL);
    assert_true(str_eq_z(made.value, value));
    PASSES(json_parse(made.text, "changed", &doc, ERR));
}

TEST(values_are_replaced_in_place)
{
    change("n=5", "117.2050", "5", "117.2050", "5");
    change("$.n=5e1", "117.2050", "5e1", "117.2050", "5e1");
    change("on=false", "true", "false", "true", "false");
    change("stacks[a].env.X=2", "\"X\": \"1\"", "\"X\": \"2\"", "\"1\"", "\"2\"");
    change("stacks[0].env.X=\"2\"", "\"X\": \"1\"", "\"X\": \"2\"", "\"1\"", "\"2\"");
    change("stacks[0].env.X=null", "\"X\": \"1\"", "\"X\": null", "\"1\"", "null");
    change("stacks[0].env.X=", "\"X\": \"1\"", "\"X\": \"\"", "\"1\"", "\"\"");
    change("stacks[a].env.Y=some words = \"x\"", "null", "\"some words = \\\"x\\\"\"", "null",
           "\"some words = \\\"x\\\"\"");
    change("stacks[b/c.d/n1g1].list[1][0]=9", "2, 3", "9, 3", "2", "9");
    change("stacks[1].list[2].k=[7, {}]", "\"k\": 4", "\"k\": [7, {}]", "4", "[7, {}]");
    change("stacks[1].text=x", "\"a \\\"]}, [{ \\\\\"", "\"x\"", "\"a \\\"]}, [{ \\\\\"", "\"x\"");
}

TEST(a_last_key_may_be_new)
{
    change("empty.k=1", "\"empty\": {}", "\"empty\": {\"k\": 1}", NULL, "1");
    change("stacks[b/c.d/n1g1].env.Z=v", "\"env\": {}", "\"env\": {\"Z\": \"v\"}", NULL, "\"v\"");
    change("stacks[a].env.Z=v", "\"Y\": null}", "\"Y\": null, \"Z\": \"v\"}", NULL, "\"v\"");
}

TEST(what_leads_nowhere_is_refused)
{
    static const char *const BAD[] = {"",
                                      "n",
                                      "=1",
                                      "$.=1",
                                      "n.k=1",
                                      "nothere.k=1",
                                      "stacks[2].id=1",
                                      "stacks[zz].id=1",
                                      "stacks.a=1",
                                      "none[0]=1",
                                      "[0]=1",
                                      "n..k=1",
                                      "stacks[a.env=1",
                                      "stacks[]=1",
                                      "n k=1",
                                      "stacks[a]env.X=1",
                                      "n[0]=1"};
    for (EACH(row, BAD)) {
        struct json_override made;
        FAILS(json_override(ARENA, str_of(DOC), str_of(*row), false, &made, ERR), ERR_USAGE);
    }
}
