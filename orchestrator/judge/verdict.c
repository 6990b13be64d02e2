/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/verdict.h"

#include <math.h>

/* 15 survive text to double to text (DBL_DIG); a mean of several loses one. */
#define DOUBLE_DIGITS 14

const char *const AUDIT_VERDICT_NAMES[4] = {"exact", "match", "differs", "no_log"};
const char *const RUN_VERDICT_NAMES[] = {"reproduced",     "faster", "slower",
                                         "not_comparable", "failed", "not_run"};

double rel_diff(double value, double reference)
{
    return (value - reference) / reference;
}

/* Half a unit of the last printed place is far above the rounding error of a decimal text read as a double, so that two
   values at the same place differ by less than a quarter of it only if they are the same text. */
static bool same_at(double a, double b, int decimals)
{
    return fabs(a - b) < 0.25 * pow(10.0, -decimals);
}

int verdict_decimals(double published, int decimals)
{
    int before = published >= 1 ? (int)floor(log10(published)) + 1 : 0;
    return decimals + before > DOUBLE_DIGITS ? DOUBLE_DIGITS - before : decimals;
}

enum audit_verdict verdict_audit(double recomputed, double published, int decimals,
                                 enum rounding rounding)
{
    if (!isfinite(recomputed)) {
        return AUDIT_NO_LOG;
    }
    decimals = verdict_decimals(published, decimals);
    published = rule_round(ROUND_NEAREST, published, decimals);
    if (same_at(rule_round(rounding, recomputed, decimals), published, decimals)) {
        return AUDIT_EXACT;
    }
    return fabs(rel_diff(recomputed, published)) <= MATCH_REL_MAX ? AUDIT_MATCH : AUDIT_DIFFERS;
}

enum run_verdict verdict_run(double measured, double published, double tolerance)
{
    double diff = rel_diff(measured, published);
    if (!isfinite(diff)) {
        return RUN_FAILED;
    }
    if (fabs(diff) <= tolerance) {
        return RUN_REPRODUCED;
    }
    return diff > 0 ? RUN_FASTER : RUN_SLOWER;
}
