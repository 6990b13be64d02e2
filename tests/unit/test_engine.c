/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of a log to verdict, value and why, by formats that say no more than names and units. */
#include "unit.h"

#include <math.h>

#include "judge/rule.h"
#include "log/engine.h"
#include "log/parser.h"
#include "report/vocabulary.h"

#define NEAR 1e-6

struct row {
    const char *name;
    const char *quantity, *unit, *scope;
    const char *line;   /* "%T" is the moment, "%S" the step, "%V" the value */
    const char *values; /* a blank between; of the lines in turn */
    int64_t step, apart_s,
        times; /* from line to line; each step is printed so many times (0: once) */
    enum parse_verdict verdict;
    double value; /* 0: none */
    size_t n_skipped;
    const char *why; /* part of it; or NULL */
};

static const struct row ROWS[] = {
    {"rates weigh their time", "rate", "samples/s", "job", "step %S v %V x", "100 50 100 25", 10, 0,
     0, PARSE_OK, 4 / (2 / 100.0 + 1 / 50.0 + 1 / 25.0), 0, NULL},
    {"a slow start is left out", "rate", "samples/s", "job", "step %S v %V x",
     "10 100 100 100 100 100 100 100", 10, 0, 0, PARSE_OK, 100, 1, NULL},
    {"of two the first, if it takes half as long again", "rate", "items/s", "job", "step %S v %V x",
     "45 80", 10, 0, 0, PARSE_OK, 80, 1, NULL},
    {"of three too, where the others go on growing", "rate", "items/s", "job", "step %S v %V x",
     "30 180 260", 10, 0, 0, PARSE_OK, 2 / (1 / 180.0 + 1 / 260.0), 1, NULL},
    {"of three, if it takes longer than each", "rate", "items/s", "job", "step %S v %V x",
     "30 40 260", 10, 0, 0, PARSE_OK, 3 / (1 / 30.0 + 1 / 40.0 + 1 / 260.0), 0, NULL},
    {"but no less", "rate", "items/s", "job", "step %S v %V x", "60 80", 10, 0, 0, PARSE_OK,
     2 / (1 / 60.0 + 1 / 80.0), 0, NULL},
    {"at most a quarter", "step_time", "s", "job", "step %S v %V x", "9 9 9 1 1 1 1 1", 10, 0, 0,
     PARSE_OK, 14 / 6.0, 2, NULL},
    {"a fast start stays", "rate", "samples/s", "job", "step %S v %V x", "900 100 100 100", 10, 0,
     0, PARSE_OK, 4 / (3 / 100.0 + 1 / 900.0), 0, NULL},
    {"steps that nobody waited for are none", "rate", "samples/s", "job", "step %S v %V x",
     "1 4000 90000 100 100 100 100 100", 1, 0, 0, PARSE_OK, 100, 3, NULL},
    {"as long as half is left", "step_time", "s", "job", "step %S v %V x", "9 0.1 0.1 1 1", 1, 0, 0,
     PARSE_OK, 2.24, 0, NULL},
    {"nothing is slow where nothing is settled", "rate", "samples/s", "job", "step %S v %V x",
     "10 50 10 50 10 50", 10, 0, 0, PARSE_OK, 6 / (3 / 10.0 + 3 / 50.0), 0, NULL},
    {"by the clock, lines weigh their seconds", "rate", "words/s", "job", "%T step %S v %V x",
     "10 50 10 50", 10, 30, 0, PARSE_OK, 30, 0, NULL},
    {"the first 0 is not yet measured", "rate", "samples/s", "job", "step %S v %V x",
     "0 100 100 100", 10, 0, 0, PARSE_OK, 100, 0, NULL},
    {"another 0 is none", "rate", "samples/s", "job", "step %S v %V x", "100 0 100 100", 10, 0, 0,
     PARSE_NAN, 0, 0, "line 2: \"0\""},
    {"two levels", "step_time", "s", "job", "step %S v %V x", "5 5 5.1 5 5 5 9 9 9.1 9 9 9 9", 10,
     0, 0, PARSE_TWO_LEVELS, 0, 0, "two levels: 5 s before step 70, 9 from there"},
    {"a slope has no level", "step_time", "s", "job", "step %S v %V x",
     "1 2 3 4 5 6 7 8 9 10 11 12", 10, 0, 0, PARSE_OK, 6.5, 0, NULL},
    {"noise is one level", "step_time", "s", "job", "step %S v %V x", "5 9 5 9 5 9 5 9 5 9 5 9 5 9",
     10, 0, 0, PARSE_OK, 7, 0, NULL},
    {"a clock that contradicts the times", "step_time", "s", "job", "%T step %S v %V x",
     "0.5 0.5 0.5 0.5 0.5 0.5 0.5", 1, 5, 0, PARSE_CONTRADICTS_ITSELF, 0, 0,
     "add up to 3 s, and by the clock of the same lines they took 30 s"},
    {"one that does not", "step_time", "s", "job", "%T step %S v %V x",
     "0.5 0.5 0.5 0.5 0.5 0.5 0.5", 10, 5, 0, PARSE_OK, 0.5, 0, NULL},
    {"several writers without a name", "rate", "tokens/s", "rank", "%T step %S v %V x",
     "100 102 101 100 102 101", 1, 9, 3, PARSE_OK, 101, 0, NULL},
    {"who print the job's", "rate", "tokens/s", "job", "%T step %S v %V x",
     "100 102 101 100 102 101", 1, 9, 3, PARSE_AMBIGUOUS, 0, 0,
     "3 ranks print the figure of the whole job"},
    {"a step twice is none", "rate", "tokens/s", "rank", "step %S v %V x", "100 102 101", 1, 0, -1,
     PARSE_AMBIGUOUS, 0, 0, "step 1 is there twice"},
    {"summaries that stand together are of ranks", "summary", "samples/s", "job", "v %V x",
     "400 401 402", 1, 0, 0, PARSE_OK, 401, 0, NULL},
    {"others are of runs", "summary", "samples/s", "job", "v %V x\n\n\n\n", "400 401", 1, 0, 0,
     PARSE_AMBIGUOUS, 0, 0, "the log holds 2 runs"},
    {"running means: the last", "running_mean", "MB/s", "job", "step %S v %V x", "1 9 16.5", 1, 0,
     0, PARSE_OK, 16.5, 0, NULL},
    {"moments: seconds a step", "clock", "", "job", "%T step %S x", "1 1 1", 10, 30, 0, PARSE_OK, 3,
     0, NULL},
};

static struct format *format_of(struct arena *arena, const struct row *row)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct format *format = NULL;
    bool is_clock = strcmp(row->quantity, "clock") == 0;
    const char *text = arena_printf(
        arena,
        "{\"schema_version\": 1, \"id\": \"t\", \"title\": \"T\", \"framework\": \"f\", "
        "\"source\": \"s\", \"prefixes\": [], \"series\": [{\"name\": \"v\", \"literal\": null, "
        "\"pattern\": \"^(?:(?<time>\\\\d{4}-\\\\S+ \\\\S+) )?%s%s\", "
        "\"unit\": \"%s\", \"scope\": \"%s\", \"quantity\": \"%s\", \"primary\": true}], "
        "\"run_start\": null, \"end\": null, \"facts\": [], \"rules\": []}",
        strstr(row->line, "%S") ? "step (?<step>\\\\d+) " : "",
        is_clock ? "x$" : "v (?<value>\\\\S+) x", row->unit, row->scope, row->quantity);
    PASSES(json_parse(str_of(text), "t.json", &doc, ERR));
    doc.context = vocabulary_builtin(arena);
    struct json root = json_root(&doc);
    PASSES(format_read(&root, arena, &format, ERR));
    return format;
}

static void add_line(struct strbuf *out, const struct row *row, int64_t idx, struct str value)
{
    int64_t group = row->times > 0 ? idx / row->times : row->times < 0 ? idx / 2 : idx;
    int64_t seconds = group * row->apart_s;
    for (const char *at = row->line; *at; at++) {
        if (at[0] != '%') {
            strbuf_add_char(out, *at);
            continue;
        }
        at++;
        if (*at == 'T') {
            strbuf_printf(out, "2024-01-01 10:%02d:%02d", (int)(seconds / 60), (int)(seconds % 60));
        } else if (*at == 'S') {
            strbuf_printf(out, "%" PRId64, (group + 1) * row->step);
        } else {
            strbuf_add_str(out, value);
        }
    }
    strbuf_add_char(out, '\n');
}

static void measures(const struct row *row)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 16);
    struct format *format = format_of(ARENA, row);
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
