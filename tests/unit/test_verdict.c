/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <math.h>

#include "judge/verdict.h"

struct row {
    double recomputed, published;
    int decimals;
    enum rounding rounding;
    enum audit_verdict verdict;
};

static const struct row ROWS[] = {
    {117.2053, 117.205, 3, ROUND_NEAREST, AUDIT_EXACT},
    {117.20549, 117.205, 3, ROUND_NEAREST, AUDIT_EXACT},
    {117.20551, 117.205, 3, ROUND_NEAREST, AUDIT_MATCH},
    {6.136, 6.13, 2, ROUND_TRUNCATE, AUDIT_EXACT},
    {6.136, 6.13, 2, ROUND_NEAREST, AUDIT_DIFFERS},
    {6.13, 6.13, 2, ROUND_TRUNCATE, AUDIT_EXACT}, /* 612.999... hundredths */
    {10000.0, 10005.0, 0, ROUND_NEAREST, AUDIT_MATCH},
    {10000.0, 10005.1, 1, ROUND_NEAREST, AUDIT_DIFFERS}, /* over 0.05 % of what is printed */
    {428.4, 428, 0, ROUND_NEAREST, AUDIT_EXACT},
    {431.1, 428, 0, ROUND_NEAREST, AUDIT_DIFFERS},
    {0.0, 1.0, 0, ROUND_NEAREST, AUDIT_DIFFERS},
};

TEST(cells_are_judged_at_their_digits)
{
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        const struct row *row = &ROWS[idx];
        if (verdict_audit(row->recomputed, row->published, row->decimals, row->rounding) !=
            row->verdict) {
            fail_msg("row %zu: expected %s", idx, AUDIT_VERDICT_NAMES[row->verdict]);
        }
    }
    assert_int_equal(verdict_audit((double)NAN, 1, 0, ROUND_NEAREST), AUDIT_NO_LOG);
    assert_int_equal(verdict_audit((double)INFINITY, 1, 0, ROUND_NEAREST), AUDIT_NO_LOG);
}

TEST(runs_are_judged_within_five_percent)
{
    assert_int_equal(verdict_run(100, 100, REPRODUCED_REL_MAX), RUN_REPRODUCED);
    assert_int_equal(verdict_run(104.9, 100, REPRODUCED_REL_MAX), RUN_REPRODUCED);
    assert_int_equal(verdict_run(105.1, 100, REPRODUCED_REL_MAX), RUN_FASTER);
    assert_int_equal(verdict_run(94.9, 100, REPRODUCED_REL_MAX), RUN_SLOWER);
    assert_int_equal(verdict_run(109, 100, 0.1), RUN_REPRODUCED);
    assert_int_equal(verdict_run(101, 100, 0.001), RUN_FASTER);
    assert_int_equal(verdict_run((double)NAN, 100, REPRODUCED_REL_MAX), RUN_FAILED);
    assert_true(fabs(rel_diff(99, 100) + 0.01) < 1e-12);
    assert_string_equal(AUDIT_VERDICT_NAMES[AUDIT_NO_LOG], "no_log");
    assert_string_equal(RUN_VERDICT_NAMES[RUN_NOT_COMPARABLE], "not_comparable");
}
