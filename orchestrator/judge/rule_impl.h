/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of rule.h share (rule.c, rule_apply.c, rule_repeats.c). Nobody else includes this. */
#ifndef JUDGE_RULE_IMPL_H
#define JUDGE_RULE_IMPL_H

#include "judge/rule.h"

/* Seconds in the unit; 0: not a unit of time that a rule may use. */
double rule_unit_s(struct str unit);
static inline bool rule_is_by_fact(const struct rule *rule)
{
    return rule->scale == SCALE_FACT_OVER || rule->scale == SCALE_FACT;
}
/* The members "success" and "required", after everything else of the rule. */
MUST_CHECK int rule_decode_repeats(const struct json *at, struct arena *arena, struct rule *rule,
                                   struct err *err);

/* ---- rule_pick.c ---- */

struct picked {                  /* samples in the window, in file order */
    const struct sample **items; /* owned, or a part of the kept ones */
    size_t n;
    const struct series *series;
    enum sample_use *uses; /* borrowed: one for each sample of the series; NULL: not asked for */
    const struct rule_memo *kept; /* borrowed; NULL: the items are its own */
};
void picked_cleanup(struct picked *picked);

/* The rule's series, and its samples in the window; picked->uses is set. */
MUST_CHECK int rule_pick(const struct rule *rule, const struct measurement *m,
                         const struct rule_case *of, struct picked *picked, struct err *err);
void picked_note(const struct picked *picked, const struct sample *s, enum sample_use use);
void picked_sort_by_rank(const struct sample **items, size_t n);
/* Their values, in file order; *own: freed by the caller, NULL where they are kept ones. */
const double *picked_values(const struct picked *picked, double **own);
/* The same in ascending order. */
const double *picked_sorted(const struct picked *picked, double **own);

#endif
