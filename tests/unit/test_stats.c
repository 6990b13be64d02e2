/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <math.h>

#include "judge/stats.h"
#include "log/logtime.h"

static void is_near(double got, double wanted)
{
    assert_true(fabs(got - wanted) <= 1e-12 * fmax(1, fabs(wanted)));
}

TEST(means)
{
    const double v[] = {1, 2, 3, 4, 10};
    is_near(stats_mean(v, 5), 4);
    is_near(stats_sum(v, 5), 20);
    is_near(stats_harmonic_mean(v, 5), 5 / (1 + 0.5 + 1.0 / 3 + 0.25 + 0.1));
    is_near(stats_mean(v, 1), 1);
}

/* A plain sum loses every 1 here. */
TEST(sums_are_compensated)
{
    const double v[] = {1e16, 1, 1, 1, 1, -1e16};
    is_near(stats_sum(v, 6), 4);
}

TEST(order_statistics)
{
    double v[] = {9, 1, 8, 2, 7, 3};
    const double odd[] = {1, 5, 6};
    stats_sort(v, 6);
    for (size_t idx = 1; idx < 6; idx++) {
        assert_true(v[idx - 1] < v[idx]);
    }
    is_near(stats_sorted_median(v, 6), 5);
    is_near(stats_sorted_median(odd, 3), 5);
    is_near(stats_sorted_trimmed_mean(v, 6, 1), (2 + 3 + 7 + 8) / 4.0);
    is_near(stats_sorted_trimmed_mean(v, 6, 0), 5);
}

/* Against R: sd(c(2,4,4,4,5,5,7,9)), and t.test of it: 95 % interval 3.213 to 6.787. */
TEST(spread)
{
    const double v[] = {2, 4, 4, 4, 5, 5, 7, 9};
    is_near(stats_std(v, 8), sqrt(32.0 / 7));
    assert_true(fabs(stats_ci95(v, 8) - 1.7877) < 2e-3);
    is_near(stats_std(v, 1), 0);
    assert_true(isnan(stats_ci95(v, 1)));
    double many[1000];
    for (size_t idx = 0; idx < 1000; idx++) {
        many[idx] = (double)(idx % 2);
    }
    assert_true(fabs(stats_ci95(many, 1000) / (stats_std(many, 1000) / sqrt(1000)) - 1.9623) <
                1e-3);
}

TEST(numbers_of_logs)
{
    static const struct {
        const char *text;
        enum number_kind kind;
        double value;
    } ROWS[] = {
        {"382.10713", NUMBER_OK, 382.10713},
        {"0", NUMBER_OK, 0},
        {"-3.5", NUMBER_OK, -3.5},
        {"1e3", NUMBER_OK, 1000},
        {"11651.105191020579", NUMBER_OK, 11651.105191020579},
        {"123456789012345678901234567890", NUMBER_OK, 123456789012345678901234567890.0},
        {"0.1", NUMBER_OK, 0.1},
        {"nan", NUMBER_NOT_FINITE, 0},
        {"NaN", NUMBER_NOT_FINITE, 0},
        {"-inf", NUMBER_NOT_FINITE, 0},
        {"Infinity", NUMBER_NOT_FINITE, 0},
        {"1e999", NUMBER_NOT_FINITE, 0},
        {"-1e31", NUMBER_NOT_FINITE, 0},
        {"1e30", NUMBER_OK, 1e30},
        {"127.0.0.1", NUMBER_NONE, 0},
        {"None", NUMBER_NONE, 0},
        {"", NUMBER_NONE, 0},
        {".", NUMBER_NONE, 0},
        {"1,234", NUMBER_NONE, 0},
    };
    for (EACH(row, ROWS)) {
        double value = 0;
        assert_int_equal(lognumber_parse(str_of(row->text), &value), row->kind);
        assert_true(row->kind != NUMBER_OK || value == row->value);
    }
}

TEST(groups_of_digits)
{
    static const struct {
        const char *text, *plain;
    } ROWS[] = {
        {"1,234", "1234"},
        {"12,345,678.5", "12345678.5"},
        {"123,456", "123456"},
        {"1234.5", "1234.5"},
        {"1234", "1234"},
        {"1234,567", "1234,567"}, /* a decimal comma */
        {"1,2345", "1,2345"},
        {"12345,678", "12345,678"},
        {"1,2345,678", "1,2345,678"},
        {",123", ",123"},
        {"250,75", "250,75"},
        {"1,234x", "1,234x"},
    };
    for (EACH(row, ROWS)) {
        char buf[32];
        assert_true(str_eq_z(lognumber_ungroup(str_of(row->text), buf, sizeof(buf)), row->plain));
    }
}

TEST(moments_of_logs)
{
    static const struct {
        const char *text;
        double seconds; /* by date -u +%s; -1: none */
    } ROWS[] = {
        {"2020-12-16 18:32:38", 1608143558},
        {"2022-02-10 06:18:09,760", 1644473889.760},
        {"2020-12-17T18:27:52.907857Z", 1608229672.907857},
        {"2024-02-29 00:00:00", 1709164800},
        {"0826 17:46:24.366020", 967311984.366020}, /* of the year 2000 */
        {"1558631910.424", 1558631910.424},
        {"1558631910424", 1558631910.424},
        {"1558631910424123456", 1558631910.424123456},
        {"2020-13-16 18:32:38", -1},
        {"2020-12-16 25:32:38", -1},
        {"2020-12-16", -1},
        {"2020-12-16 18:32:38 x", -1},
        {"yesterday", -1},
        {"", -1},
        {"-5", -1},
    };
    for (EACH(row, ROWS)) {
        double seconds = 0;
        assert_int_equal(logtime_parse(str_of(row->text), &seconds), row->seconds >= 0);
        assert_true(row->seconds < 0 || fabs(seconds - row->seconds) < 1e-6);
    }
}

/* Computed by hand: see tests/integration/test_gate.sh. */
TEST(changes_have_intervals)
{
    const struct stats_sample a = {3, 10, 0.2};
    const struct stats_sample b = {3, 9, 0.3};
    const struct stats_sample one = {1, 9, (double)NAN};
    const struct stats_sample still = {2, 9, 0};
    double half = -1;
    assert_true(stats_change_ci95(&a, &b, &half));
    assert_true(fabs(half - 0.064273) < 1e-5);
    assert_true(stats_change_ci95(&still, &still, &half));
    assert_true(half == 0);
    half = 7;
    assert_false(stats_change_ci95(&a, &one, &half));
    assert_false(stats_change_ci95(&one, &b, &half));
    assert_true(half == 7);
    assert_true(stats_t975(1) == 12.706 && stats_t975(3.9) == 3.182 && stats_t975(30.5) == 2.042);
    assert_true(fabs(stats_t975(31.2) - 2.0395) < 3e-3);
}

TEST(outliers_stand_out)
{
    const double odd[] = {10, 10.01, 7.5, 9.99};
    const double like[] = {10, 10.2, 9.8};
    const double digits[] = {10, 10, 10, 10.05};
    const double equal_but_one[] = {10, 10, 12};
    for (size_t idx = 0; idx < 4; idx++) {
        assert_int_equal(stats_is_outlier(odd, 4, idx), idx == 2);
        assert_false(stats_is_outlier(digits, 4, idx));
    }
    for (size_t idx = 0; idx < 3; idx++) {
        assert_false(stats_is_outlier(like, 3, idx));
        assert_int_equal(stats_is_outlier(equal_but_one, 3, idx), idx == 2);
    }
    assert_false(stats_is_outlier(odd + 1, 2, 1));
}

TEST(whole_numbers_of_logs)
{
    int64_t value = 0;
    assert_true(logwhole_parse(STR_LIT("00480"), INT64_MAX, &value));
    assert_int_equal(value, 480);
    assert_false(logwhole_parse(STR_LIT("481"), 480, &value));
    assert_false(logwhole_parse(STR_LIT("-1"), INT64_MAX, &value));
    assert_false(logwhole_parse(STR_LIT(""), INT64_MAX, &value));
    assert_false(logwhole_parse(STR_LIT("9999999999999999999"), INT64_MAX, &value));
}
