/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a log may give a number: the same log, asked with each demand. */
#include "unit.h"

#include <math.h>

#include "judge/judgement.h"

enum runs { ONE, TWO, TWO_LAST_BAD, TWO_FIRST_BAD };

static struct measurement made(enum parse_verdict verdict, enum runs runs, struct series *series)
{
    struct measurement m = {.verdict = verdict,
                            .why = verdict == PARSE_OK ? STR_EMPTY : STR_LIT("as it is"),
                            .n_runs = runs == ONE ? 1 : 2,
                            .first_run = runs == TWO_FIRST_BAD ? PARSE_INCOMPLETE : PARSE_OK,
                            .last_run = runs == TWO_LAST_BAD ? PARSE_INCOMPLETE : PARSE_OK,
                            .series = series,
                            .n_series = 2};
    m.causes.n[CAUSE_RUNS] = runs == ONE ? 0 : 2;
    return m;
}

TEST(each_demand_has_its_answer)
{
    static const struct {
        enum parse_verdict verdict;
        enum runs runs;
        enum run_choice run; /* of the rule */
        enum parse_verdict part;
        bool is_whole, is_part; /* gives a number */
        enum log_state state;
    } ROWS[] = {
        {PARSE_OK, ONE, RUN_ONLY, PARSE_OK, true, true, LOG_WHOLE},
        {PARSE_INCOMPLETE, ONE, RUN_ONLY, PARSE_INCOMPLETE, false, true, LOG_INCOMPLETE},
        {PARSE_TRUNCATED, ONE, RUN_ONLY, PARSE_TRUNCATED, false, true, LOG_INCOMPLETE},
        {PARSE_NAN, ONE, RUN_ONLY, PARSE_NAN, false, false, LOG_UNREADABLE},
        {PARSE_AMBIGUOUS, ONE, RUN_ONLY, PARSE_AMBIGUOUS, false, false, LOG_INCOMPLETE},
        {PARSE_AMBIGUOUS, TWO, RUN_ONLY, PARSE_AMBIGUOUS, false, false, LOG_WHOLE},
        {PARSE_AMBIGUOUS, TWO, RUN_LAST, PARSE_OK, false, true, LOG_WHOLE},
        {PARSE_AMBIGUOUS, TWO_LAST_BAD, RUN_LAST, PARSE_INCOMPLETE, false, true, LOG_INCOMPLETE},
        {PARSE_AMBIGUOUS, TWO_LAST_BAD, RUN_FIRST, PARSE_OK, false, true, LOG_WHOLE},
        {PARSE_AMBIGUOUS, TWO_FIRST_BAD, RUN_FIRST, PARSE_INCOMPLETE, false, true, LOG_INCOMPLETE},
        {PARSE_NO_METRIC, ONE, RUN_ONLY, PARSE_OK, false, true, LOG_WHOLE},
        {PARSE_NO_METRIC, TWO_LAST_BAD, RUN_LAST, PARSE_INCOMPLETE, false, true, LOG_INCOMPLETE},
    };
    for (EACH(row, ROWS)) {
        struct sample samples[1] = {{.step = 1, .value = 1}};
        struct series series[2] = {{.name = STR_LIT("ips")}, {.name = STR_LIT("other")}};
        series[1].samples = samples;
        series[1].n = 1;
        const struct measurement m = made(row->verdict, row->runs, series);
        const struct rule rule = {.series = STR_LIT("other"), .run = row->run};
        struct judgement whole = judgement_of(ARENA, &m, &rule, DEMAND_WHOLE);
        struct judgement part = judgement_of(ARENA, &m, &rule, DEMAND_PART);
        struct judgement any = judgement_of(ARENA, &m, &rule, DEMAND_ANY);
        assert_int_equal(whole.verdict, row->verdict);
        assert_int_equal(whole.gives, row->is_whole);
        assert_int_equal(part.verdict, row->part);
        assert_int_equal(part.gives, row->is_part);
        assert_int_equal(part.verdict == PARSE_OK, part.why.len == 0);
        assert_int_equal(any.state, row->state);
        assert_true(any.gives);
    }
}

TEST(a_rule_whose_series_is_empty_has_no_metric)
{
    struct series series[2] = {{.name = STR_LIT("ips")}, {.name = STR_LIT("other")}};
    const struct measurement m = made(PARSE_OK, ONE, series);
    const struct rule rule = {.series = STR_LIT("other")};
    struct judgement part = judgement_of(ARENA, &m, &rule, DEMAND_PART);
    assert_int_equal(part.verdict, PARSE_NO_METRIC);
    assert_false(part.gives);
    assert_true(judgement_of(ARENA, &m, &rule, DEMAND_WHOLE).gives); /* the rule says why not */
}

/* Two levels of which the rule's window holds one are no doubt about its number; and a doubt is no refutation for audit. */
TEST(only_the_window_is_doubted)
{
    struct sample samples[40];
    struct series series[2] = {{.name = STR_LIT("ips"), .unit = STR_LIT("samples/s")},
                               {.name = STR_LIT("other")}};
    for (int idx = 0; idx < 40; idx++) {
        samples[idx] = (struct sample){idx + 1, idx < 20 ? 100 : 50, (double)NAN, -1, 0, -1};
    }
    series[0].samples = samples;
    series[0].n = 40;
    const struct measurement m = made(PARSE_OK, ONE, series);
    const struct rule all = {.series = STR_LIT("ips")};
    const struct rule late = {.series = STR_LIT("ips"), .window = {.skip = 20}};
    struct judgement whole = judgement_of(ARENA, &m, &all, DEMAND_WHOLE);
    struct judgement any = judgement_of(ARENA, &m, &all, DEMAND_ANY);
    assert_int_equal(whole.verdict, PARSE_TWO_LEVELS);
    assert_false(whole.gives);
    assert_true(judgement_of(ARENA, &m, &all, DEMAND_RAN).gives);
    assert_int_equal(whole.causes.n[CAUSE_LEVELS], 1);
    assert_true(any.gives);
    assert_int_equal(any.state, LOG_WHOLE);
    assert_int_equal(judgement_of(ARENA, &m, &late, DEMAND_WHOLE).verdict, PARSE_OK);
    assert_int_equal(m.verdict, PARSE_OK);
}
