/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <math.h>

#include "base/strbuf.h"
#include "document.h"
#include "judge/rule.h"
#include "samples.h"

/* One series "s" of n samples: values given, steps 10, 20, ..., one run, no rank, a second a step. */
struct made {
    struct sample samples[64];
    struct series series;
    struct measurement m;
};

static void fill(struct made *made, const double *values, size_t n)
{
    *made = (struct made){0};
    fill_samples(made->samples, values, n, 10);
    made->series = series_of("s", made->samples, n);
    made->m = (struct measurement){
        .series = &made->series, .n_series = 1, .n_runs = 1, .warmup_steps = -1};
}

/* A rule from the members that the test cares about. */
static int decode(struct arena *arena, const char *members, struct rule *ret, struct err *err)
{
    const char *text = arena_printf(
        arena, "{'name': 'r', 'series': 's', 'origin': 'own', 'source': 'test', %s}", members);
    const struct json *root = document(text, NULL, err);
    return root ? rule_decode(root, arena, STR_LIT("f"), ret, err) : -1;
}

static const struct rule_case CASE = {.gpus = 8, .nodes = 2, .batch_per_gpu = 4};

static int try_rule(struct made *made, const char *members, struct rule_value *ret, struct err *err)
{
    struct rule rule;
    assert_int_equal(decode(ARENA, members, &rule, err), 0);
    return rule_apply(&rule, &made->m, &CASE, ret, err);
}

static void gives(struct made *made, const char *members, double wanted, size_t n_used)
{
    struct rule_value value = {0};
    PASSES(try_rule(made, members, &value, ERR));
    if (fabs(value.value - wanted) > 1e-12 * fabs(wanted) || value.n_used != n_used) {
        fail_msg("%s: %.17g of %zu", members, value.value, value.n_used);
    }
}

#define refuses(made, members)                                                                     \
    FAILS(try_rule((made), (members), &(struct rule_value){0}, ERR), ERR_PARSE)

TEST(every_statistic)
{
    static const double V[] = {4, 1, 3, 2, 10};
    struct made made;
    fill(&made, V, 5);
    gives(&made, "'statistic': 'mean'", 4, 5);
    gives(&made, "'statistic': 'median'", 3, 5);
    gives(&made, "'statistic': 'trimmed_mean', 'trim': {'count': 2}", 3, 1);
    gives(&made, "'statistic': 'trimmed_mean', 'trim': {'share': 0.2}", 3, 3);
    gives(&made, "'statistic': 'trimmed_mean', 'trim': {'count': 1, 'share': 0.4}", 3, 1);
    gives(&made, "'statistic': 'olympic_mean'", 3, 3);
    gives(&made, "'statistic': 'harmonic_mean'", 5 / (0.25 + 1 + 1.0 / 3 + 0.5 + 0.1), 5);
    gives(&made, "'statistic': 'time_weighted_mean'", 5 / (0.25 + 1 + 1.0 / 3 + 0.5 + 0.1), 5);
    gives(&made, "'statistic': 'min'", 1, 5);
    gives(&made, "'statistic': 'max'", 10, 5);
    gives(&made, "'statistic': 'first'", 4, 1);
    gives(&made, "'statistic': 'last'", 10, 1);
    gives(&made, "'statistic': 'last', 'last': 2", 6, 2);
    /* 8 GPUs x 4 x 40 steps in 8 seconds */
    gives(&made, "'statistic': 'timestamps'", 160, 2);
    made.series.n = 1;
    gives(&made, "'statistic': 'tool'", 4, 1);
}

TEST(every_window)
{
    static const double V[] = {1, 2, 3, 4, 5, 6};
    struct made made;
    fill(&made, V, 6);
    gives(&made, "'statistic': 'mean', 'skip': 2", 4.5, 4);
    gives(&made, "'statistic': 'mean', 'drop_last': 1", 3, 5);
    gives(&made, "'statistic': 'mean', 'last': 2", 5.5, 2);
    gives(&made, "'statistic': 'mean', 'skip': 1, 'drop_last': 1, 'last': 3", 4, 3);
    gives(&made, "'statistic': 'mean', 'steps': [20, 40]", 3, 3);
    gives(&made, "'statistic': 'mean', 'steps': [20, 40], 'skip': 1", 3.5, 2);
    refuses(&made, "'statistic': 'mean', 'skip': 6");
    refuses(&made, "'statistic': 'mean', 'steps': [61, 70]");
    refuses(&made, "'statistic': 'mean', 'skip': 3, 'drop_last': 3");
    refuses(&made, "'statistic': 'trimmed_mean', 'trim': {'count': 3}");
    refuses(&made, "'statistic': 'mean', 'warmup': true");
    made.m.warmup_steps = 30;
    gives(&made, "'statistic': 'mean', 'warmup': true", 5, 3);
    refuses(&made, "'statistic': 'tool'");
}

TEST(every_scale)
{
    static const double V[] = {2, 2};
    struct made made;
    struct rule_case unknown = {0};
    fill(&made, V, 2);
    gives(&made, "'statistic': 'mean', 'scale': 'gpus'", 16, 2);
    gives(&made, "'statistic': 'mean', 'scale': 'nodes'", 4, 2);
    gives(&made, "'statistic': 'mean', 'scale': 'global_batch_over'", 16, 2);
    static const char *const NEED[] = {
        "'statistic': 'mean', 'scale': 'gpus'", "'statistic': 'mean', 'scale': 'nodes'",
        "'statistic': 'mean', 'scale': 'global_batch_over'",
        "'statistic': 'mean', 'match_gpus': true", "'statistic': 'timestamps'"};
    for (EACH(row, NEED)) {
        struct rule rule;
        struct rule_value value;
        PASSES(decode(ARENA, *row, &rule, ERR));
        FAILS(rule_apply(&rule, &made.m, &unknown, &value, ERR), ERR_ANY);
    }
}

TEST(runs_rows_and_ranks)
{
    static const double V[] = {1, 2, 3, 10, 20, 30};
    struct made made;
    fill(&made, V, 6);
    for (size_t idx = 0; idx < 6; idx++) {
        made.samples[idx].run = idx >= 3;
    }
    refuses(&made, "'statistic': 'mean'");
    gives(&made, "'statistic': 'mean', 'run': 'first'", 2, 3);
    gives(&made, "'statistic': 'mean', 'run': 'last'", 20, 3);
    fill(&made, V, 6);
    for (size_t idx = 0; idx < 6; idx++) {
        made.samples[idx].gpus = idx == 4 ? 8 : 1;
    }
    gives(&made, "'statistic': 'tool', 'match_gpus': true", 20, 1);
    /* Ranks 0 and 1 interleaved: the first sample of each is skipped. */
    fill(&made, V, 6);
    for (size_t idx = 0; idx < 6; idx++) {
        made.samples[idx].rank = (int32_t)(idx % 2);
    }
    gives(&made, "'statistic': 'mean', 'skip': 1", (3 + 10 + 20 + 30) / 4.0, 4);
    gives(&made, "'statistic': 'mean', 'last': 1", 25, 2);
    made.series.scope = SCOPE_JOB; /* job figures are one sequence, whoever prints them */
    gives(&made, "'statistic': 'mean', 'skip': 1", 13, 5);
    made.series.n = 2;
    gives(&made, "'statistic': 'tool'", 1.5, 2); /* one each */
}

#define WEIGHTED "'statistic': 'time_weighted_mean'"

/* Made of samples of `n` ranks: rank, step and value in turn. */
static void fill_ranks(struct made *made, const double (*rows)[3], size_t n)
{
    double values[64] = {0};
    for (size_t idx = 0; idx < n; idx++) {
        values[idx] = rows[idx][2];
    }
    fill(made, values, n);
    for (size_t idx = 0; idx < n; idx++) {
        made->samples[idx].rank = (int32_t)rows[idx][0];
        made->samples[idx].step = (int64_t)rows[idx][1];
    }
}

static void gives_weighted(struct made *made, double wanted)
{
    gives(made, WEIGHTED, wanted, made->series.n);
}

/* Each rank's samples count by its own intervals, its first for as many steps as its second; computed by hand. */
TEST(each_rank_has_its_own_intervals)
{
    struct made made;
    /* Two ranks, every 10 steps, one twice as fast as the other at its first sample: 40 / (10/120 + 10/40 + 10/60 + 10/60) = 60. */
    static const double TWO[][3] = {{0, 10, 120}, {1, 10, 40}, {0, 20, 60}, {1, 20, 60}};
    fill_ranks(&made, TWO, 4);
    gives_weighted(&made, 60);
    gives(&made, WEIGHTED ", 'scale': 'gpus'", 480, 4);
    /* Step times: (10 x 120 + 10 x 60 + 10 x 40 + 10 x 60) / 40. */
    made.series.quantity = QTY_STEP_TIME;
    gives_weighted(&made, 70);
    /* The same in the order of the ranks, and whatever the scope says. */
    static const double BY_RANK[][3] = {{0, 10, 120}, {0, 20, 60}, {1, 10, 40}, {1, 20, 60}};
    fill_ranks(&made, BY_RANK, 4);
    gives_weighted(&made, 60);
    fill_ranks(&made, TWO, 4);
    made.series.scope = SCOPE_JOB;
    gives_weighted(&made, 60);
    /* Intervals of 10 and 20 steps; of 5 and 5: 30 + 20 + 5 + 5 + 5 steps. Windows are cut first. */
    static const double UNEVEN[][3] = {{0, 10, 7},  {0, 30, 20}, {0, 50, 40}, {0, 80, 60},
                                       {1, 5, 100}, {1, 10, 5},  {1, 15, 10}, {1, 20, 2}};
    fill_ranks(&made, UNEVEN, 8);
    gives(&made, WEIGHTED ", 'skip': 1",
          (20 + 20 + 30 + 5 + 5 + 5) /
              (20 / 20.0 + 20 / 40.0 + 30 / 60.0 + 5 / 5.0 + 5 / 10.0 + 5 / 2.0),
          6);
}

/* What has no interval: 9 = 30 / (10/5 + 10/10 + 10/30), since the third sample is a rank's only one. */
TEST(a_sample_without_interval_counts_like_its_neighbour)
{
    static const struct {
        size_t n;
        double rows[4][3], wanted;
    } ROWS[] = {
        {3, {{0, 10, 5}, {0, 20, 10}, {1, 20, 30}}, 9},
        {3, {{0, 20, 30}, {1, 10, 5}, {1, 20, 10}}, 9},
        {2, {{0, 10, 1}, {1, 70, 3}}, 1.5},
        /* Steps that begin again (a new epoch): 30 / (10/5 + 10/10 + 10/30), its last without a next. */
        {3, {{0, 10, 5}, {0, 20, 10}, {0, 10, 30}}, 9},
        {4, {{0, 10, 10}, {0, 20, 10}, {0, 5, 5}, {0, 10, 5}}, 30.0 / 4},
        /* One rank, steps in order. */
        {4,
         {{0, 10, 4}, {0, 20, 1}, {0, 50, 3}, {0, 60, 2}},
         60 / (10 / 4.0 + 10 / 1.0 + 30 / 3.0 + 10 / 2.0)},
    };
    for (EACH(row, ROWS)) {
        struct made made;
        fill_ranks(&made, row->rows, row->n);
        gives_weighted(&made, row->wanted);
    }
}

TEST(what_cannot_be_used_is_refused)
{
    static const double V[] = {1, 2, 3};
    struct made made;
    fill(&made, V, 3);
    made.samples[1].value = (double)NAN;
    refuses(&made, "'statistic': 'mean'");
    gives(&made, "'statistic': 'mean', 'skip': 2", 3, 1);
    made.samples[2].time_s = (double)NAN;
    refuses(&made, "'statistic': 'timestamps'");
    made.series.n = 0;
    refuses(&made, "'statistic': 'mean'");
    fill(&made, V, 3);
    made.series.name = STR_LIT("other");
    refuses(&made, "'statistic': 'mean'");
}

TEST(repeats_combine)
{
    static const double V[] = {5, 1, 3, 100};
    double value = 0;
    PASSES(rule_combine(REPEATS_MEAN, V, 4, &value, ERR));
    assert_true(value == 27.25);
    PASSES(rule_combine(REPEATS_MEDIAN, V, 4, &value, ERR));
    assert_true(value == 4);
    PASSES(rule_combine(REPEATS_OLYMPIC, V, 4, &value, ERR));
    assert_true(value == 4);
    PASSES(rule_combine(REPEATS_SINGLE, V, 1, &value, ERR));
    assert_true(value == 5);
    FAILS(rule_combine(REPEATS_SINGLE, V, 2, &value, ERR), ERR_ANY);
    FAILS(rule_combine(REPEATS_OLYMPIC, V, 2, &value, ERR), ERR_ANY);
}

TEST(repeats_that_failed)
{
    const double one[] = {5, (double)INFINITY, 3, 4, 7};
    const double two[] = {5, (double)INFINITY, 3, (double)INFINITY, 7};
    double value = 0;
    PASSES(rule_combine(REPEATS_OLYMPIC, one, 5, &value, ERR));
    assert_true(fabs(value - 16.0 / 3) < 1e-12); /* 4, 5, 7: the one that failed is the slowest */
    FAILS(rule_combine(REPEATS_OLYMPIC, two, 5, &value, ERR), ERR_ANY);
}

TEST(repeats_dropped)
{
    const double repeats[] = {4, 3, (double)INFINITY, 3, 9};
    size_t fastest = 0;
    size_t slowest = 0;
    rule_dropped(repeats, 5, &fastest, &slowest);
    assert_int_equal(fastest, 1);
    assert_int_equal(slowest, 2);
}

TEST(success_and_required)
{
    static const double V[] = {1, 2};
    static const char MEMBERS[] =
        "'statistic': 'elapsed', 'unit': 'min', 'repeats': 'olympic', 'success': {'fact': "
        "'run_status', 'value': 'success'}, 'required': {'fact': 'model', 'logs': {'resnet': 5}}, "
        "'targets': {'at_least': {'resnet': 0.759}, 'at_most': {'rnnt': 0.058}}";
    struct fact facts[] = {{STR_LIT("run_status"), STR_LIT("success"), 3, 0, 0},
                           {STR_LIT("model"), STR_LIT("resnet"), 1, 0, 0}};
    struct made made;
    struct rule rule;
    struct rule_repeat repeat;
    fill(&made, V, 2);
    made.m.facts = facts;
    made.m.n_facts = 2;
    PASSES(decode(ARENA, MEMBERS, &rule, ERR));
    PASSES(rule_repeat(&rule, &made.m, &CASE, ARENA, &repeat, ERR));
    assert_true(repeat.value == 2.0 / 60 && repeat.by.value == repeat.value);
    assert_int_equal(rule_required_for(&rule, &made.m), 5);
    assert_true(rule_target_for(&rule, STR_LIT("rnnt"))->is_most);
    assert_null(rule_target_for(&rule, STR_LIT("bert")));
    facts[0].value = STR_LIT("aborted");
    PASSES(rule_repeat(&rule, &made.m, &CASE, ARENA, &repeat, ERR));
    assert_true(isinf(repeat.value) && repeat.by.n_used == 0);
    assert_non_null(strstr(repeat.why.ptr, "aborted"));
    facts[1] =
        (struct fact){STR_LIT("run_status"), STR_LIT("success"), 9, 0, 0}; /* two that differ */
    PASSES(rule_repeat(&rule, &made.m, &CASE, ARENA, &repeat, ERR));
    assert_true(isinf(repeat.value));
    assert_int_equal(rule_required_for(&rule, &made.m), 0);
    FAILS(decode(ARENA, "'statistic': 'elapsed', 'unit': 'days'", &rule, ERR), ERR_ANY);
}

TEST(rounding)
{
    assert_true(rule_round(ROUND_TRUNCATE, 6.1358, 2) == 6.13);
    assert_true(rule_round(ROUND_TRUNCATE, 6.13, 2) == 6.13); /* 612.999... in binary */
    assert_true(rule_round(ROUND_TRUNCATE, 44.399999, 2) == 44.39);
    assert_true(rule_round(ROUND_NEAREST, 6.1358, 2) == 6.14);
    assert_true(rule_round(ROUND_NEAREST, 428.5, 0) == 429);
}

TEST(rules_are_told_in_words)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1000);
    struct rule rule;
    PASSES(decode(ARENA,
                  "'statistic': 'trimmed_mean', 'skip': 2, 'trim': {'count': 5, 'share': 0.05}, "
                  "'scale': 'gpus'",
                  &rule, ERR));
    rule_describe(&rule, &text);
    assert_string_equal(text.ptr, "trimmed mean of s, without the first 2, trim 5+5 or 5 % each if "
                                  "that is more, times the GPUs");
    assert_string_equal(rule.id.ptr, "f/r");
}

/* Every statistic over every small window, in turn with one memo: the same number, or the same reason, as without. */
static void same_with_memo(struct made *made, bool can_be_kept)
{
    struct rule_memo memo = {0};
    struct rule rule = {.id = STR_LIT("f/r"), .series = STR_LIT("s"), .trim_count = 1};
    for (int64_t at = 0; at < 6 * 3 * 4 * (int64_t)STAT_COUNT; at++) {
        struct rule_case with = CASE;
        struct rule_value expected = {0};
        struct rule_value value = {0};
        struct err why = {0};
        struct err err = {0};
        with.memo = &memo;
        rule.statistic = (enum statistic)(at % STAT_COUNT);
        rule.window.skip = at / STAT_COUNT % 6;
        rule.window.drop_last = at / STAT_COUNT / 6 % 3;
        rule.window.last = at / STAT_COUNT / 18;
        int result = rule_apply(&rule, &made->m, &CASE, &expected, &why);
        assert_int_equal(rule_apply(&rule, &made->m, &with, &value, &err), result);
        assert_string_equal(err.msg, why.msg);
        assert_memory_equal(&value, &expected, sizeof(value));
        assert_true((memo.series != NULL) == can_be_kept);
    }
    rule_memo_release(&memo);
}

TEST(a_memo_changes_no_number)
{
    static const double V[] = {4, 1, 3, 3, 10, 0.1, 7, 2};
    struct made made;
    fill(&made, V, ARRAY_LEN(V));
    same_with_memo(&made, true);
    made.samples[2].value = (double)NAN;
    same_with_memo(&made, false);
    fill(&made, V, ARRAY_LEN(V));
    made.samples[1].rank = 1;
    same_with_memo(&made, false);
    made.series.scope = SCOPE_JOB;
    same_with_memo(&made, false);
}

TEST(a_memo_is_of_one_series_run_and_row)
{
    static const double V[] = {1, 2, 4, 8};
    struct rule_memo memo = {0};
    struct rule_case with = CASE;
    struct rule rule = {.id = STR_LIT("f/r"), .series = STR_LIT("s"), .run = RUN_FIRST};
    struct rule_value value = {0};
    struct made made;
    struct made other;
    fill(&made, V, 4);
    fill(&other, V, 2);
    made.samples[2].run = made.samples[3].run = 1;
    made.samples[0].gpus = 8;
    with.memo = &memo;
    PASSES(rule_apply(&rule, &made.m, &with, &value, ERR));
    assert_true(value.value == 1.5);
    rule.run = RUN_LAST;
    PASSES(rule_apply(&rule, &made.m, &with, &value, ERR));
    assert_true(value.value == 6);
    rule.run = RUN_FIRST;
    rule.match_gpus = true;
    PASSES(rule_apply(&rule, &made.m, &with, &value, ERR));
    assert_true(value.value == 1);
    with.gpus = 4;
    FAILS(rule_apply(&rule, &made.m, &with, &value, ERR), ERR_ANY);
    rule.match_gpus = false;
    PASSES(rule_apply(&rule, &other.m, &with, &value, ERR));
    assert_true(value.value == 1.5);
    rule.window = (struct window){.has_steps = true, .step_from = 20, .step_to = 20};
    PASSES(rule_apply(&rule, &other.m, &with, &value, ERR));
    assert_true(value.value == 2);
    rule_memo_release(&memo);
}
