/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of rule.h share (rule.c, rule_apply.c). Nobody else includes this. */
#pragma once

#include "judge/rule.h"

/* Seconds in the unit; 0: not a unit of time that a rule may use. */
double rule_unit_s(struct str unit);
/* NULL if the run states none, or several that differ. */
const struct fact *rule_one_fact(const struct measurement *m, struct str name, int32_t run);
