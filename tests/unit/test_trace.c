/* SPDX-License-Identifier: Apache-2.0 */
/* How a number follows from its log, in words: each statistic, each scale and each reason why a sample does not count. The numbers in the
   text are those used in the computation. */
#include "unit.h"

#include <math.h>

#include "base/strbuf.h"
#include "document_format.h"
#include "judge/trace.h"
#include "samples.h"

static const char HEAD[] =
    "{'schema_version': 1, 'id': 't', 'title': 'T', 'framework': 'f', 'source': 's', 'prefixes': "
    "[], 'series': [{'name': 'ips', 'literal': 'ips: ', 'pattern': 'ips: (?<value>.)', 'unit': "
    "'samples/s', 'scope': 'rank', 'quantity': 'rate', 'primary': true}, {'name': 't', 'literal': "
    "'time ', 'pattern': 'time (?<value>.)', 'unit': 's', 'scope': 'rank', 'quantity': "
    "'step_time', 'primary': false}], 'run_start': null, 'facts': [], 'rules': [{'name': 'r', "
    "'origin': 'own', 'source': 'x', ";

#define IPS "'series': 'ips', 'statistic': "

/* One log of five samples of each series: steps 10 to 50, two seconds apart, the last of a second run. */
static const double VALUES[] = {4, 1, 3, 2, 5};
#define N_VALUES ARRAY_LEN(VALUES)

struct made {
    struct format *format;
    struct sample samples[N_VALUES];
    struct series series[2];
    struct fact facts[1];
    struct measurement m;
    struct audit_log read[3], *logs[3];
    struct log_ref refs[3];
    struct report_case of_case;
    struct cell cell;
    struct bound_cell bound;
    struct cell_audit audit;
};

static struct trace how_by(struct made *made, const char *rule)
{
    struct trace how;
    format_release(made->format);
    made->format = format_of(arena_printf(ARENA, "%s%s}]}", HEAD, rule));
    made->bound = (struct bound_cell){.format = made->format, .logs = made->logs};
    made->audit.bound = &made->bound;
    made->audit.by = format_rule(made->format, made->audit.rule);
    trace_of(ARENA, &made->audit, &how);
    return how;
}

static void make(struct made *made)
{
    *made = (struct made){0};
    fill_samples(made->samples, VALUES, N_VALUES, 10);
    made->series[0] = series_of("ips", made->samples, N_VALUES);
    made->series[1] = series_of("t", made->samples, N_VALUES);
    made->series[1].quantity = QTY_STEP_TIME;
    made->facts[0] = (struct fact){STR_LIT("global_batch"), STR_LIT("256"), 1, 0, INT32_MAX};
    made->m = (struct measurement){.format = STR_LIT("t"),
                                   .series = made->series,
                                   .n_series = 2,
                                   .facts = made->facts,
                                   .n_facts = 1,
                                   .n_runs = 1,
                                   .warmup_steps = -1};
    made->of_case = (struct report_case){
        .format = STR_LIT("t"), .gpus = 8, .nodes = 2, .gpus_per_node = 4, .batch_per_gpu = 4};
    made->cell = (struct cell){.published = 3, .decimals = 1};
    for (size_t idx = 0; idx < ARRAY_LEN(made->logs); idx++) {
        made->read[idx].measurement = &made->m;
        made->logs[idx] = &made->read[idx];
    }
    made->audit = (struct cell_audit){.of_case = &made->of_case,
                                      .cell = &made->cell,
                                      .recomputed = 3,
                                      .rule = STR_LIT("t/r"),
                                      .rounding = STR_LIT("nearest"),
                                      .logs = made->refs,
                                      .n_logs = 1};
}

static void expect_steps(const struct trace_steps *steps, const char *const *words, size_t n)
{
    for (size_t idx = 0; idx < n && words[idx]; idx++) {
        assert_true(idx < steps->n);
        assert_string_equal(str_z(ARENA, steps->items[idx].words), words[idx]);
    }
}

TEST(every_statistic_and_scale_says_what_it_did)
{
    static const struct {
        const char *rule, *words[2];
        double value;
    } ROWS[] = {
        {IPS "'mean'", {"15 / 5: sum over number, the mean of 5 samples of ips"}, 3},
        {IPS "'olympic_mean'", {"9 / 3: sum over number, the mean of 3 samples of ips"}, 3},
        {IPS "'median'", {"middle of 5 samples of ips in order"}, 3},
        {IPS "'harmonic_mean'", {"5 / 2.28333333: number over the sum of 1 / ips"}, 300.0 / 137},
        {IPS "'time_weighted_mean'",
         {"50 / 22.8333333: steps over the sum of steps / rate, of 5 intervals"},
         300.0 / 137},
        {"'series': 't', 'statistic': 'time_weighted_mean'",
         {"150 / 50: seconds over steps, of 5 intervals"},
         3},
        {IPS "'min'", {"smallest of 5 samples of ips"}, 1},
        {IPS "'max', 'scale': 'gpus'", {"largest of 5 samples of ips", "5 x 8 GPUs"}, 40},
        {IPS "'first', 'scale': 'nodes'", {"first sample of ips", "4 x 2 nodes"}, 8},
        {IPS "'last'", {"last sample of ips"}, 5},
        {IPS "'last', 'last': 2", {"7 / 2: mean of the last 2 samples of ips"}, 3.5},
        {IPS "'timestamps'",
         {"8 GPUs x 4 x (50 - 10) steps / 8 s: items between two timestamps"},
         160},
        {IPS "'elapsed', 'unit': 'min'",
         {"8 s from the first to the last line of ips, in min"},
         8 / 60.0},
        {IPS "'mean', 'scale': 'global_batch'",
         {"15 / 5: sum over number, the mean of 5 samples of ips",
          "3 x 32 samples a step (8 GPUs x 4)"},
         96},
        {"'series': 't', 'statistic': 'median', 'scale': 'global_batch_over'",
         {"middle of 5 samples of t in order", "32 samples a step (8 GPUs x 4) / 3"},
         32 / 3.0},
        {"'series': 't', 'statistic': 'median', 'scale': 'fact_over', 'fact': 'global_batch', "
         "'unit': 'tokens/s'",
         {"middle of 5 samples of t in order", "256 global_batch / 3"},
         256 / 3.0},
    };
    struct made made;
    make(&made);
    for (EACH(row, ROWS)) {
        struct trace how = how_by(&made, row->rule);
        assert_non_null(how.rule);
        expect_steps(&how.logs[0].steps, row->words, 2);
        assert_true(fabs(how.logs[0].value - row->value) < 1e-9);
        assert_true(fabs(how.logs[0].steps.items[how.logs[0].steps.n - 1].value - row->value) <
                    1e-9);
    }
    format_release(made.format);
}

TEST(every_sample_that_does_not_count_has_its_reason)
{
    static const struct {
        const char *rule;
        size_t at; /* of the five */
        const char *words;
    } ROWS[] = {
        {IPS "'mean', 'skip': 1", 1, "counted"},
        {IPS "'mean', 'skip': 1", 0, "skipped: among the first 1"},
        {IPS "'mean', 'drop_last': 2", 3, "dropped: among the last 2"},
        {IPS "'mean', 'last': 2", 2, "before the last 2"},
        {IPS "'mean', 'steps': [20, 40]", 4, "not in steps 20 to 40"},
        {IPS "'mean', 'warmup': true", 0, "warm-up, as the log states it"},
        {IPS "'olympic_mean'", 4, "dropped: one of the smallest or largest"},
        {IPS "'timestamps'", 2, "between those that count"},
    };
    struct made made;
    make(&made);
    made.m.warmup_steps = 15;
    for (EACH(row, ROWS)) {
        struct trace how = how_by(&made, row->rule);
        struct str words = trace_use_words(ARENA, how.rule, how.logs[0].uses[row->at]);
        assert_string_equal(str_z(ARENA, words), row->words);
    }
    made.m.n_runs = 2;
    made.samples[4].run = 1;
    struct trace how = how_by(&made, IPS "'mean', 'run': 'first'");
    assert_string_equal(trace_use_words(ARENA, how.rule, how.logs[0].uses[4]).ptr,
                        "of another run");
    assert_int_equal(how.logs[0].n_of[USE_OTHER_RUN], 1);
    made.samples[4].run = 0;
    for (size_t idx = 0; idx < N_VALUES; idx++) {
        made.samples[idx].gpus = idx < 2 ? 8 : 16;
    }
    how = how_by(&made, IPS "'mean', 'match_gpus': true");
    assert_true(str_eq_z(trace_use_words(ARENA, how.rule, how.logs[0].uses[4]),
                         "of another number of GPUs"));
    assert_int_equal(how.logs[0].n_of[USE_OTHER_GPUS], 3);
    format_release(made.format);
}

TEST(a_log_without_a_number_says_why)
{
    struct made made;
    make(&made);
    made.audit.recomputed = (double)NAN;
    struct trace how = how_by(&made, IPS "'tool'");
    assert_true(isnan(how.logs[0].value));
    assert_true(str_starts(how.logs[0].why, STR_LIT("rule t/r")));
    assert_int_equal(how.logs[0].steps.n, 0);
    assert_int_equal(how.steps.n, 0);
    made.read[0].measurement = NULL;
    how = how_by(&made, IPS "'mean'");
    assert_true(str_eq_z(how.logs[0].why, "the log is missing"));
    made.audit.note = STR_LIT("kept elsewhere");
    how = how_by(&made, IPS "'mean'");
    assert_true(str_eq_z(how.logs[0].why, "kept elsewhere"));
    made.audit.rule = STR_LIT("t/other");
    assert_null(how_by(&made, IPS "'mean'").rule);
    format_release(made.format);
}

TEST(several_logs_are_one_number)
{
    static const char *const MEAN[] = {"mean of the numbers of 3 logs",
                                       "x 0.5, the factor of f.txt", "rounded to 1 decimal"};
    static const char *const OLYMPIC[] = {
        "mean of the numbers of 3 logs, without the fastest and the slowest",
        "x 0.5, the factor of f.txt", "cut to 1 decimal"};
    struct made made;
    make(&made);
    made.audit.n_logs = 3;
    made.audit.recomputed = 1.5;
    made.of_case.factor = (struct factor){0.5, STR_LIT("f.txt"), STR_EMPTY};
    struct trace how = how_by(&made, IPS "'mean', 'repeats': 'mean'");
    expect_steps(&how.steps, MEAN, 3);
    assert_int_equal(how.steps.n, 3);
    made.audit.rounding = STR_LIT("truncate");
    how = how_by(&made, IPS "'mean', 'repeats': 'olympic'");
    expect_steps(&how.steps, OLYMPIC, 3);
    assert_int_equal(how.logs[0].is_dropped + how.logs[1].is_dropped + how.logs[2].is_dropped, 2);
    format_release(made.format);
}
