/* SPDX-License-Identifier: Apache-2.0 */
/* Reproducibility defects that can be seen in a report's manifest: general rules over pins, commands, conditions and rows.
   No rule knows a report. Pure. */
#pragma once

#include "base/command.h"
#include "judge/finding.h"
#include "report/report.h"

extern const struct cmd CMD_LINT;

/* Appends to `findings`; messages live in the arena. */
void lint_report(struct arena *arena, const struct report *report, struct findings *findings);
