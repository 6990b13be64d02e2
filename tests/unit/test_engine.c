/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a log to verdict, value and why, by formats that say no more than names and units. */
#include "unit.h"

#include <math.h>

#include "document_format.h"
#include "judge/rule.h"
#include "log/engine.h"
#include "log/parser.h"

#define NEAR 1e-6

struct row {
    const char *name, *quantity, *unit, *values; /* a blank between; of the lines in turn */
    double value;                                /* 0: none */
    size_t n_skipped;
    enum parse_verdict verdict;
    const char *why;   /* part of it; or NULL */
    const char *scope; /* NULL: job */
    const char *line;  /* "%T" is the moment, "%S" the step, "%V" the value; NULL: step and value */
    int64_t step, apart_s; /* from line to line; 0: 10 steps */
    int64_t times;         /* each step is printed so many times; 0: once */
};

#define TIMED "%T step %S v %V x"

static const struct row ROWS[] = {
    {"rates weigh their time", "rate", "samples/s", "100 50 100 25",
     .value = 4 / (2 / 100.0 + 1 / 50.0 + 1 / 25.0)},
    {"a slow start is left out", "rate", "samples/s", "10 100 100 100 100 100 100 100", 100,
     .n_skipped = 1},
    {"of two the first, if it takes half as long again", "rate", "items/s", "45 80", 80,
     .n_skipped = 1},
    {"of three too, where the others go on growing", "rate", "items/s", "30 180 260",
     2 / (1 / 180.0 + 1 / 260.0), .n_skipped = 1},
    {"of three, if it takes longer than each", "rate", "items/s", "30 40 260",
     .value = 3 / (1 / 30.0 + 1 / 40.0 + 1 / 260.0)},
    {"but no less", "rate", "items/s", "60 80", .value = 2 / (1 / 60.0 + 1 / 80.0)},
    {"at most a quarter", "step_time", "s", "9 9 9 1 1 1 1 1", 14 / 6.0, .n_skipped = 2},
    {"a fast start stays", "rate", "samples/s", "900 100 100 100",
     .value = 4 / (3 / 100.0 + 1 / 900.0)},
    {"steps that nobody waited for are none", "rate", "samples/s",
     "1 4000 90000 100 100 100 100 100", 100, 3, .step = 1},
    {"as long as half is left", "step_time", "s", "9 0.1 0.1 1 1", 2.24, .step = 1},
    {"nothing is slow where nothing is settled", "rate", "samples/s", "10 50 10 50 10 50",
     .value = 6 / (3 / 10.0 + 3 / 50.0)},
    {"by the clock, lines weigh their seconds", "rate", "words/s", "10 50 10 50", 30, .line = TIMED,
     .apart_s = 30},
    {"the first 0 is not yet measured", "rate", "samples/s", "0 100 100 100", .value = 100},
    {"another 0 is none", "rate", "samples/s", "100 0 100 100", .verdict = PARSE_NAN,
     .why = "line 2: \"0\""},
    {"two levels", "step_time", "s", "5 5 5.1 5 5 5 9 9 9.1 9 9 9 9", .verdict = PARSE_TWO_LEVELS,
     .why = "two levels: 5 s before step 70, 9 from there"},
    {"a slope has no level", "step_time", "s", "1 2 3 4 5 6 7 8 9 10 11 12", .value = 6.5},
    {"noise is one level", "step_time", "s", "5 9 5 9 5 9 5 9 5 9 5 9 5 9", .value = 7},
    {"a clock that contradicts the times", "step_time", "s", "0.5 0.5 0.5 0.5 0.5 0.5 0.5",
     .verdict = PARSE_CONTRADICTS_ITSELF,
     .why = "add up to 3 s, and by the clock of the same lines they took 30 s", .line = TIMED,
     .step = 1, .apart_s = 5},
    {"one that does not", "step_time", "s", "0.5 0.5 0.5 0.5 0.5 0.5 0.5", 0.5, .line = TIMED,
     .apart_s = 5},
    {"several writers without a name", "rate", "tokens/s", "100 102 101 100 102 101", 101,
     .scope = "rank", .line = TIMED, .step = 1, .apart_s = 9, .times = 3},
    {"who print the job's", "rate", "tokens/s", "100 102 101 100 102 101",
     .verdict = PARSE_AMBIGUOUS, .why = "3 ranks or cases have a figure of the whole job each",
     .line = TIMED, .step = 1, .apart_s = 9, .times = 3},
    {"a step twice is none", "rate", "tokens/s", "100 102 101", .verdict = PARSE_AMBIGUOUS,
     .why = "step 1 is there twice", .scope = "rank", .step = 1, .times = -1},
    {"summaries that stand together are of ranks", "summary", "samples/s", "400 401 402", 401,
     .line = "v %V x"},
    {"others are of runs", "summary", "samples/s", "400 401", .verdict = PARSE_AMBIGUOUS,
     .why = "the log holds 2 runs", .line = "v %V x\n\n\n\n"},
    {"running means: the last", "running_mean", "MB/s", "1 9 16.5", 16.5, .step = 1},
    {"moments: seconds a step", "clock", "", "1 1 1", 3, .line = "%T step %S x", .apart_s = 30},
};

static const char *line_of(const struct row *row)
{
    return row->line ? row->line : "step %S v %V x";
}

static struct format *format_by(const struct row *row)
{
    bool is_clock = strcmp(row->quantity, "clock") == 0;
    return format_of(arena_printf(
        ARENA,
        "{'schema_version': 1, 'id': 't', 'title': 'T', 'framework': 'f', 'source': 's', "
        "'prefixes': [], 'series': [{'name': 'v', 'literal': null, "
        "'pattern': '^(?:(?<time>\\\\d{4}-\\\\S+ \\\\S+) )?%s%s', "
        "'unit': '%s', 'scope': '%s', 'quantity': '%s', 'primary': true}], "
        "'run_start': null, 'end': null, 'facts': [], 'rules': []}",
        strstr(line_of(row), "%S") ? "step (?<step>\\\\d+) " : "",
        is_clock ? "x$" : "v (?<value>\\\\S+) x", row->unit, row->scope ? row->scope : "job",
        row->quantity));
}

static void add_line(struct strbuf *out, const struct row *row, int64_t idx, struct str value)
{
    int64_t group = row->times > 0 ? idx / row->times : row->times < 0 ? idx / 2 : idx;
    int64_t seconds = group * row->apart_s;
    for (const char *at = line_of(row); *at; at++) {
        if (at[0] != '%') {
            strbuf_add_char(out, *at);
            continue;
        }
        at++;
        if (*at == 'T') {
            strbuf_printf(out, "2024-01-01 10:%02d:%02d", (int)(seconds / 60), (int)(seconds % 60));
        } else if (*at == 'S') {
            strbuf_printf(out, "%" PRId64, (group + 1) * (row->step ? row->step : 10));
        } else {
            strbuf_add_str(out, value);
        }
    }
    strbuf_add_char(out, '\n');
}

static void measures(const struct row *row)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 16);
    struct format *format = format_by(row);
    struct parser *parser = NULL;
    struct measurement m = {0};
    struct str rest = str_of(row->values);
    struct str value;
    for (int64_t idx = 0; str_next(&rest, ' ', &value); idx++) {
        add_line(&text, row, idx, value);
    }
    PASSES(parser_new(format, ARENA, &parser, ERR));
    PASSES(parser_feed(parser, strbuf_str(&text).ptr, text.len, ERR));
    PASSES(parser_finish(parser, &m, ERR));
    engine_doubt(ARENA, &m, &m.series[0]);
    if (m.verdict != row->verdict) {
        fail_msg("%s: verdict %s: %.*s", row->name, PARSE_VERDICT_NAMES[m.verdict], STR_ARG(m.why));
    }
    if (row->why && str_find(m.why, str_of(row->why)) < 0) {
        fail_msg("%s: why %.*s", row->name, STR_ARG(m.why));
    }
    struct figure f = engine_figure(&m.series[0]);
    if (row->value > 0 && !(fabs(f.value - row->value) < NEAR * row->value)) {
        fail_msg("%s: value %.9g, wanted %.9g", row->name, f.value, row->value);
    }
    assert_int_equal(f.n_skipped, row->n_skipped);
    parser_free(parser);
    format_release(format);
}

TEST(every_row)
{
    for (EACH(row, ROWS)) {
        measures(row);
    }
}
