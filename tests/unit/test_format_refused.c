/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid format manifests: each is refused, with its place. What any table of a document refuses (types, unknown keys and words) is
   test_json_table's. */
#include "unit.h"

#include "base/strbuf.h"
#include "document_format.h"

enum slot { PREFIX, SERIES, TOP, FACT, RULE, SLOTS };

static const char *const PLACES[SLOTS] = {"prefixes", "series", "$", "facts", "rules"};

/* A valid format with one more item in one of its places. */
static int decode(enum slot slot, const char *more, struct err *err)
{
    struct format *format = NULL;
    const char *in[SLOTS] = {"", "", "", "", ""};
    in[slot] = more;
    const char *text = arena_printf(
        ARENA,
        "{'schema_version': 1, 'id': 't', 'title': 'T', 'framework': 'f', 'source': 's', "
        "'prefixes': ['srun'%s], 'series': [{'name': 'ips', 'literal': 'ips: ', 'pattern': 'ips: "
        "(?<value>\\\\S+)', 'unit': 'samples/s', 'scope': 'rank', 'quantity': 'rate', 'primary': "
        "true}%s], 'run_start': null%s, 'facts': [{'name': 'cuda', 'literal': 'cuda ', 'pattern': "
        "'cuda (?<value>.*)'}%s], 'rules': [{'name': 'mean', 'series': 'ips', 'statistic': 'mean', "
        "'origin': 'own', 'source': 'x'}%s]}",
        in[PREFIX], in[SERIES], in[TOP], in[FACT], in[RULE]);
    const struct json *root = document(text, vocabulary_builtin(ARENA), err);
    assert_non_null(root);
    int result = format_read(root, ARENA, &format, err);
    format_release(format);
    return result;
}

static void refuses(enum slot slot, const char *more)
{
    FAILS_WITH(decode(slot, more, ERR), ERR_MANIFEST, PLACES[slot]);
}

static void refuse_all(enum slot slot, const char *const *rows, size_t n)
{
    for (unit_row = 1; unit_row <= n; unit_row++) {
        refuses(slot, rows[unit_row - 1]);
    }
}

TEST(what_more_is_right_is_read)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        PASSES(decode((enum slot)slot, "", ERR));
    }
    /* A format need not say whose rate it is. */
    PASSES(decode(SERIES,
                  ", {'name': 't', 'literal': null, 'pattern': '(?<value>1)', 'unit': 's', "
                  "'scope': null, 'primary': false, 'quantity': 'step_time'}",
                  ERR));
}

TEST(a_format_of_another_make_is_refused)
{
    static const char *const ROWS[] = {
        ", 'total_from': 'steps'",
        ", 'epochs_from': 'epochs'",
        ", 'begin': {'unknown': false, 'why': 'x'}",
        ", 'begin': {'unknown': true, 'why': ''}",
        ", 'begin': {'unknown': true}",
        ", 'begin': {'literal': 'begun'}",
        ", 'done': {'literal': 'done', 'pattern': 'done'}",
        ", 'end': {'literal': 'end', 'pattern': '('}",
        ", 'end': {'literal': 'all\\ndone', 'pattern': 'a'}",
        ", 'end': {'literal': 'e', 'pattern': 'e'}",
        ", 'fatal': {'required': true, 'literal': 'broken', 'pattern': 'b'}",
    };
    refuses(PREFIX, ", 'torchrun'");
    refuse_all(TOP, ROWS, ARRAY_LEN(ROWS));
}

#define MORE(members)                                                                              \
    ", {'name': 'more', 'literal': null, 'scope': 'job', 'primary': false, " members "}"

TEST(a_series_that_could_not_be_read_is_refused)
{
    static const char *const ROWS[] = {
        MORE("'pattern': 'done', 'unit': '', 'quantity': 'progress'"),
        MORE("'pattern': '(?<step>1)', 'unit': '', 'quantity': 'clock'"),
        MORE("'pattern': '(?<time>1)(?<value>1)', 'unit': '', 'quantity': 'clock'"),
        MORE("'pattern': '1', 'unit': 's', 'quantity': 'step_time'"),
        MORE("'pattern': '(?<value>1)(?<steps>2)', 'unit': 's', 'quantity': 'step_time'"),
        MORE("'pattern': '(?<step>1)(?<value>1)', 'unit': 's', 'quantity': 'step_time', "
             "'epoch_from': 0"),
        MORE("'pattern': '(?<value>1)', 'unit': 's', 'quantity': 'step_time', 'like': 'x'"),
        MORE("'pattern': '(?<value>1)', 'unit': 's', 'quantity': 'step_time', 'until': 'x'"),
        MORE("'pattern': '(?<value>1)', 'unit': 's', 'quantity': 'step_time', 'factor': 0"),
        MORE("'pattern': '(?<value>1)', 'unit': 'ms', 'quantity': 'step_time'"),
        MORE("'pattern': '(?<value>1)', 'unit': 'samples/s', 'quantity': 'score'"),
        MORE("'pattern': '(?<value>1', 'unit': 's', 'quantity': 'step_time'"),
        ", {'name': 'ips', 'literal': 'sec', 'like': '(', 'pattern': '(?<value>1)', 'unit': 's', "
        "'scope': 'job', 'primary': false, 'quantity': 'step_time'}",
        ", {'name': 'ips', 'literal': 's', 'pattern': '(?<value>1)', 'unit': 's', 'scope': 'job', "
        "'primary': false, 'quantity': 'step_time'}",
        ", {'name': 'ips', 'literal': null, 'pattern': '(?<value>1)', 'unit': 's', 'scope': "
        "'job', 'primary': false, 'quantity': 'step_time'}",
        ", {'name': 't', 'literal': null, 'pattern': '(?<value>1)', 'unit': 's', 'scope': 'job', "
        "'primary': true, 'quantity': 'step_time'}",
    };
    refuse_all(SERIES, ROWS, ARRAY_LEN(ROWS));
}

TEST(a_fact_that_is_neither_read_nor_absent_is_refused)
{
    CLEANUP(strbuf) struct strbuf many = STRBUF(1 << 16);
    static const char *const ROWS[] = {
        ", {'name': 'cudnn'}",
        ", {'name': 'cudnn', 'literal': 'cudnn', 'pattern': 'cudnn'}",
        ", {'name': 'cudnn', 'literal': 'cudnn', 'pattern': 'cudnn (?<value>.)', 'says': '8'}",
        ", {'name': 'cudnn', 'literal': 'cudnn', 'pattern': '('}",
        ", {'name': 'weather', 'literal': 'weather', 'pattern': '(?<value>.)'}",
        ", {'name': 'cudnn', 'absent': true}",
        ", {'name': 'cudnn', 'absent': true, 'why': 'x', 'list': true}",
        ", {'name': 'cuda', 'absent': true, 'why': 'no line has it'}",
    };
    refuse_all(FACT, ROWS, ARRAY_LEN(ROWS));
    for (int idx = 0; idx < 64; idx++) {
        strbuf_printf(&many,
                      ", {'name': 'cudnn', 'literal': 'cudnn %d', 'pattern': 'cudnn (?<value>.)'}",
                      idx);
    }
    FAILS(decode(FACT, many.ptr, ERR), ERR_MANIFEST);
}

#define ANOTHER(members)                                                                           \
    ", {'name': 'r', 'series': 'ips', 'origin': 'own', 'source': 'x', " members "}"
#define OF_MEAN(members) ANOTHER("'statistic': 'mean', " members)

TEST(a_rule_that_gives_no_number_is_refused)
{
    static const char *const ROWS[] = {
        ", {'name': 'mean', 'series': 'ips', 'statistic': 'max', 'origin': 'own', 'source': 'x'}",
        ", {'name': 'Max', 'series': 'ips', 'statistic': 'max', 'origin': 'own', 'source': 'x'}",
        ", {'name': 'max', 'series': 'loss', 'statistic': 'max', 'origin': 'own', 'source': 'x'}",
        ", {'name': 'r', 'series': 'ips', 'origin': 'own', 'source': 'x'}",
        ANOTHER("'statistic': 'timestamps', 'scale': 'gpus'"),
        OF_MEAN("'steps': [3]"),
        OF_MEAN("'steps': [3, 1]"),
        OF_MEAN("'trim': {'count': 1}"),
        ANOTHER("'statistic': 'trimmed_mean'"),
        ANOTHER("'statistic': 'trimmed_mean', 'trim': {'share': 0.5}"),
        ANOTHER("'statistic': 'trimmed_mean', 'trim': {}"),
        ANOTHER("'statistic': 'elapsed', 'scale': 'gpus'"),
        ANOTHER("'statistic': 'elapsed', 'unit': 'weeks'"),
        OF_MEAN("'scale': 'fact_over', 'fact': 'global_batch'"),
        OF_MEAN("'fact': 'global_batch', 'unit': 'samples/s'"),
        OF_MEAN("'success': {'fact': 'status', 'value': 'success'}"),
        OF_MEAN("'required': {'fact': 'benchmark'}"),
        OF_MEAN("'required': {'fact': 'benchmark', 'logs': {'bert': 0}}"),
        OF_MEAN("'targets': {'at_least': {}}"),
        OF_MEAN("'targets': {'at_least': {}, 'at_most': 1}"),
        OF_MEAN("'targets': {'at_least': {'bert': 'x'}, 'at_most': {}}"),
    };
    refuse_all(RULE, ROWS, ARRAY_LEN(ROWS));
}

TEST(a_rule_for_too_many_models_is_refused)
{
    CLEANUP(strbuf) struct strbuf models = STRBUF(1 << 16);
    for (int idx = 0; idx < 65; idx++) {
        strbuf_printf(&models, "%s'm%d': 1", idx ? ", " : "", idx);
    }
    refuses(RULE, arena_printf(ARENA, OF_MEAN("'required': {'fact': 'benchmark', 'logs': {%s}}"),
                               models.ptr));
    refuses(RULE, arena_printf(ARENA, OF_MEAN("'targets': {'at_least': {}, 'at_most': {%s}}"),
                               models.ptr));
}
