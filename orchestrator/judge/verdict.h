/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing numbers: for published cells (audit) and for runs. The words are part of the JSON contract. */
#pragma once

#include "judge/rule.h"

enum audit_verdict { AUDIT_EXACT, AUDIT_MATCH, AUDIT_DIFFERS, AUDIT_NO_LOG };
enum run_verdict {
    RUN_REPRODUCED,
    RUN_FASTER,
    RUN_SLOWER,
    RUN_NOT_COMPARABLE,
    RUN_FAILED,
    RUN_NOT_RUN
};

/* Source: our choice, as judge/README.md states it: "within 0.05 %". */
#define MATCH_REL_MAX 0.0005
/* A run reproduces a throughput when it is within this share of it, unless its plan has another. Source: our choice; day-to-day
   variation of one machine is up to 4 % (NVIDIA nvbench issue 231), so with less than 5 % noise would count as a difference. */
#define REPRODUCED_REL_MAX 0.05

/* Places at which a printed number and a computed one can be compared at all: two means of doubles agree in 14 digits. */
int verdict_decimals(double published, int decimals);
/* exact: `recomputed`, rounded or truncated to the printed digits, is the printed number. */
enum audit_verdict verdict_audit(double recomputed, double published, int decimals,
                                 enum rounding rounding);
enum run_verdict verdict_run(double measured, double published, double tolerance);
double rel_diff(double value, double reference); /* (value - reference) / reference */

extern const char *const AUDIT_VERDICT_NAMES[4], *const RUN_VERDICT_NAMES[6];
