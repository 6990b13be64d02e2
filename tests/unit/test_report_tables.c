/* SPDX-License-Identifier: Apache-2.0 */
/* Form 2 of a manifest: what a table and what is left out stand for, and where a mistake is said to be. */
#include "unit.h"

#include "document.h"
#include "report/report.h"
#include "report/report_tables.h"

#define HEAD                                                                                       \
    "{'schema_version': 2, 'id': 'mine', 'title': 'T', 'source': {'repository': "                  \
    "'https://example.org/m.git', 'commit': '50619b5df63f1d646715a82c1fb8c35f271e25fa', 'path': "  \
    "'README.md', 'date': '2026-05-18'}, 'own_logs': 'logs', "
#define LAB "{'id': 'lab', 'nodes': 2, 'gpus_per_node': 8, 'conditions': {'gpu': 'V100'}}"
#define BOX                                                                                        \
    "{'id': 'box', 'title': 'B', 'nodes': 1, 'gpus_per_node': 1, 'source': {'path': 'box.md'}}"
#define ONE HEAD "'environments': [" LAB "], 'stacks': [{'id': 'pytorch'}], 'cases': "
#define MANY                                                                                       \
    HEAD "'environments': [" LAB ", " BOX "], 'stacks': [{'columns': ['id', 'framework'], "        \
         "'rows': [['new', 'tf'], ['old', 'tf']]}], 'cases': "
#define TABLE(columns, rows)                                                                       \
    "[{'model': 'resnet50', 'precision': 'amp', 'rule': 'f/m', 'unit': 'images/s', 'table': "      \
    "'Table 1', 'conditions': {'seed': null, 'os': 'Debian'}, 'columns': [" columns                \
    "], 'rows': [" rows "]}]}"
#define NUMBERS "'gpus_per_node', 'batch_per_gpu', 'throughput', 'logs'"

static int read_report(struct arena *arena, const char *text, struct report *ret, struct err *err)
{
    struct spelled spelled;
    if (report_spell_out(arena, str_of(json_text(text)), "t.json", &spelled, err) < 0) {
        return -1;
    }
    const struct json *root = document(spelled.text.ptr, vocabulary_builtin(arena), err);
    if (!root) {
        return -1;
    }
    return report_decode(root, arena, ret, err) < 0 ? report_fail_there(&spelled, err) : 0;
}

TEST(a_table_is_a_case_a_row)
{
    struct report r = {0};
    struct str value;
    PASSES(read_report(
        ARENA,
        ONE TABLE(NUMBERS,
                  "[1, 128, '1353.2', 'a.log'], [8, 64, '10541.0', ['b_{0..2}.log', 'c.log']]"),
        &r, ERR));
    assert_int_equal(r.n_cases, 2);
    assert_string_equal(r.cases[0].id.ptr, "resnet50/pytorch/amp/n2g1/bs128");
    assert_string_equal(r.cases[1].id.ptr, "resnet50/pytorch/amp/n2g8/bs64");
    assert_string_equal(r.cases[1].cells[0].id.ptr, "resnet50/pytorch/amp/n2g8/bs64#throughput");
    assert_string_equal(r.cases[1].cells[0].printed.ptr, "10541.0");
    assert_string_equal(r.cases[1].cells[0].unit.ptr, "images/s");
    assert_string_equal(r.cases[1].cells[0].table.ptr, "Table 1");
    assert_int_equal(r.cases[1].n_logs, 4);
    assert_string_equal(r.cases[1].logs[0].ptr, "b_0.log");
    assert_string_equal(r.cases[1].logs[2].ptr, "b_2.log");
    assert_string_equal(r.cases[1].logs[3].ptr, "c.log");
    assert_true(case_condition(&r.cases[1], "seed", &value) && !value.ptr);
    assert_true(case_condition(&r.cases[1], "gpu", &value) && str_eq_z(value, "V100"));
}

TEST(what_is_left_out_follows_from_the_rest)
{
    struct report r = {0};
    const struct report_case *c;
    PASSES(read_report(ARENA, ONE TABLE(NUMBERS, "[1, 128, '1353.2', 'a.log']"), &r, ERR));
    c = &r.cases[0];
    assert_string_equal(c->group.ptr, "resnet50");
    assert_string_equal(c->format.ptr, "f");
    assert_string_equal(c->stack->framework.ptr, "pytorch");
    assert_string_equal(c->stack->label.ptr, "pytorch");
    assert_string_equal(c->environment->title.ptr, "lab");
    assert_string_equal(c->environment->source.path.ptr, "README.md");
    PASSES(read_report(ARENA,
                       MANY TABLE("'stack', 'environment', 'batch_per_gpu', 'throughput'",
                                  "['old', 'box', 4, '7'], ['new', 'lab', 4, '8']"),
                       &r, ERR));
    assert_string_equal(r.cases[0].id.ptr, "resnet50/tf/amp/n1g1/bs4");
    assert_string_equal(r.cases[0].stack->id.ptr, "old");
    assert_string_equal(r.cases[0].environment->source.path.ptr, "box.md");
    assert_string_equal(r.cases[0].environment->source.date.ptr, "2026-05-18");
    assert_string_equal(r.cases[1].id.ptr, "resnet50/tf/amp/n2g8/bs4");
}

/* Of form 1's cells those of throughput alone have the case's rule. */
TEST(numbers_are_named_by_their_metric)
{
    struct report r = {0};
    const char *text = ONE
        "[{'model': 'm', 'precision': 'fp32', 'rule': 'f/m', 'unit': {'throughput': 'images/s', "
        "'accuracy': '%'}, 'table': 't', 'throughput': '10', 'run_throughput.1': {'printed': '9', "
        "'unit': 'images/s', 'rule': 'f/other'}, 'accuracy': '76.5', 'speedup': null}]}";
    PASSES(read_report(ARENA, text, &r, ERR));
    assert_int_equal(r.cases[0].n_cells, 3);
    assert_null(r.cases[0].cells[0].rule.ptr);
    assert_string_equal(r.cases[0].cells[1].id.ptr, "m/pytorch/fp32/n2g8/bs0#run_throughput.1");
    assert_string_equal(r.cases[0].cells[1].rule.ptr, "f/other");
    assert_string_equal(r.cases[0].cells[2].rule.ptr, "f/m");
    assert_string_equal(r.cases[0].cells[2].unit.ptr, "%");
}

TEST(a_mistake_is_named_by_its_table_and_row)
{
    static const char *const ROWS[][2] = {
        {ONE TABLE(NUMBERS, "[1, 128, '1', 'a'], [1, 128, '1']"), "$.cases[0].rows[1]"},
        {ONE TABLE(NUMBERS, "[1, 128, 1.5, 'a']"), "$.cases[0].rows[0][2]"},
        {ONE TABLE(NUMBERS, "[1, 128, '1', 'a'], [2, 128, '1e3', 'a']"),
         "$.cases[0].rows[1].cells[0].printed"},
        {ONE TABLE(NUMBERS, "[1, 128, '1', 'a'], [1, 128, '2', 'a']"), "$.cases[0].rows[1]"},
        {ONE TABLE(NUMBERS, "[1, 128, '1', 'a_{0..900}.log']"), "$.cases[0].rows[0][3]"},
        {ONE TABLE("'thruput'", "['1']")},
        {ONE "[{'columns': ['model']}]}", "$.cases[0]"},
        {ONE "[{'model': 'm'}]}", "$.cases[0]"},
        {ONE "[{'model': 'm', 'precision': 'fp32', 'nodes': '1'}]}", "$.cases[0].nodes"},
        {MANY "[{'model': 'm', 'precision': 'fp32', 'stack': 'none'}]}", "$.cases[0]"},
        {ONE "{}}", "$.cases"},
        {"{'schema_version': 2, 'cases': [}", "t.json"},
    };
    for (EACH(row, ROWS)) {
        struct report r = {0};
        FAILS(read_report(ARENA, (*row)[0], &r, ERR), ERR_MANIFEST);
        SAYS((*row)[1] ? (*row)[1] : "");
    }
}

TEST(any_other_text_is_given_back)
{
    static const char *const TEXTS[] = {"", "{", "[]", "{\"schema_version\": 1}",
                                        "{\"id\": {\"schema_version\": 2}}"};
    for (EACH(row, TEXTS)) {
        struct spelled spelled;
        PASSES(report_spell_out(ARENA, str_of(*row), "r.json", &spelled, ERR));
        assert_ptr_equal(spelled.text.ptr, *row);
    }
}
