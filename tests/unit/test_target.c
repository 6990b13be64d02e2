/* SPDX-License-Identifier: Apache-2.0 */
/* The time until a running loss was low enough, with made logs. */
#include "unit.h"

#include <math.h>

#include "judge/target.h"
#include "samples.h"

#define SAMPLES_MAX 5

static const struct rule_case CASE = {.gpus = 4, .nodes = 2, .batch_per_gpu = 2};

/* Losses 5, 4, 3, ... and the times given, of steps every, 2 every, ... */
struct made {
    struct sample losses[SAMPLES_MAX], times[SAMPLES_MAX];
    struct series series[2];
    struct measurement m;
};

static void fill(struct made *made, const double *times, size_t n, int64_t every)
{
    static const double LOSSES[] = {5, 4, 3, 2, 1};
    *made = (struct made){0};
    fill_samples(made->losses, LOSSES, n, every);
    fill_samples(made->times, times, n, every);
    made->series[0] = series_of("t", made->times, n);
    made->series[0].quantity = QTY_STEP_TIME;
    made->series[1] = series_of("loss", made->losses, n);
    made->series[1].quantity = QTY_SCORE;
    made->series[1].is_primary = false;
    made->m = (struct measurement){.series = made->series, .n_series = 2, .n_runs = 1};
}

static struct target_value reach(struct made *made, double at_most, int64_t mean_of)
{
    struct loss_target target = {STR_LIT("loss"), at_most, mean_of};
    struct target_value value = {0};
    PASSES(target_apply(&target, &made->m, &CASE, &value, ERR));
    return value;
}

static void refuses(struct made *made, double at_most, int64_t mean_of, const char *says)
{
    struct loss_target target = {STR_LIT("loss"), at_most, mean_of};
    struct target_value value = {0};
    FAILS_WITH(target_apply(&target, &made->m, &CASE, &value, ERR), ERR_PARSE, says);
}

static const double TIMES[] = {10, 1, 2, 4, 8};

TEST(test_first_step)
{
    struct made made;
    fill(&made, TIMES, 5, 1);
    struct target_value value = reach(&made, 3, 1);
    assert_int_equal(value.step, 3);
    assert_float_equal(value.elapsed_s, 13, 1e-12); /* the cold first step too */
    value = reach(&made, 5, 1);
    assert_int_equal(value.step, 1);
    assert_float_equal(value.elapsed_s, 10, 1e-12);
    value = reach(&made, 3, 3); /* (4 + 3 + 2) / 3 */
    assert_int_equal(value.step, 4);
    assert_float_equal(value.elapsed_s, 17, 1e-12);
    made.losses[1].value = 0; /* one low loss is no low mean */
    assert_int_equal(reach(&made, 1, 3).step, 0);
}

TEST(test_never)
{
    struct made made;
    fill(&made, TIMES, 5, 1);
    struct target_value value = reach(&made, 0.5, 2);
    assert_int_equal(value.step, 0);
    assert_true(isnan(value.elapsed_s));
    assert_float_equal(value.lowest, 1.5, 1e-12);
}

/* Rates: of the job, a node's and a rank's, 2 x 4 samples a step; a line every ten steps. */
TEST(test_rates)
{
    static const double RATES[] = {8, 16};
    struct made made;
    fill(&made, RATES, 2, 10);
    made.series[0].quantity = QTY_RATE;
    made.series[0].scope = SCOPE_JOB;
    assert_float_equal(reach(&made, 4, 1).elapsed_s, 15, 1e-12);
    made.series[0].scope = SCOPE_NODE;
    assert_float_equal(reach(&made, 4, 1).elapsed_s, 7.5, 1e-12);
    made.series[0].scope = SCOPE_RANK;
    assert_float_equal(reach(&made, 4, 1).elapsed_s, 3.75, 1e-12);
}

/* Of several ranks in one log the lowest counts; times and losses of others are not mixed in. */
TEST(test_ranks)
{
    struct made made;
    fill(&made, TIMES, 5, 1);
    for (size_t idx = 0; idx < 5; idx++) {
        made.losses[idx].rank = idx == 1 ? 3 : 0;
        made.times[idx].rank = idx == 1 ? 3 : 0;
    }
    struct target_value value = reach(&made, 4, 1);
    assert_int_equal(value.step, 3);
    assert_float_equal(value.elapsed_s, 10 + 2 * 2, 1e-12);
}

TEST(test_refuses)
{
    struct made made;
    fill(&made, TIMES, 5, 1);
    refuses(&made, 1, 6, "the log has 5 losses, fewer than a mean of 6");
    made.losses[2].value = (double)NAN;
    refuses(&made, 1, 1, "step 3 has no usable loss");
    fill(&made, TIMES, 5, 1);
    made.times[1].value = 0;
    refuses(&made, 3, 1, "step 2 after 1 has no usable time");
    fill(&made, TIMES, 5, 1);
    made.times[1].step = 1;
    refuses(&made, 3, 1, "step 1 after 1 has no usable time");
    fill(&made, TIMES, 5, 1);
    made.series[0].n = 2;
    refuses(&made, 3, 1, "does not say how long step 3 took");
    made.m.n_runs = 2;
    refuses(&made, 3, 1, "the log holds 2 runs");
    fill(&made, TIMES, 5, 1);
    made.series[0].quantity = QTY_RUNNING_MEAN;
    refuses(&made, 3, 1, "says nothing of single steps");
    made.series[1].name = STR_LIT("other");
    refuses(&made, 3, 1, "no series \"loss\"");
}
