/* SPDX-License-Identifier: Apache-2.0 */
/* Reproducibility defects that can be seen in a report's manifest: general rules over pins, commands, conditions and rows.
   No rule knows a report. Pure. */
#ifndef LINT_LINT_H
#define LINT_LINT_H

#include "base/command.h"
#include "judge/finding.h"
#include "log/format.h"
#include "report/report.h"

extern const struct cmd CMD_LINT;

/* Appends to `findings`; messages live in the arena. */
void lint_report(struct arena *arena, const struct report *report, struct findings *findings);
/* Many reports name one format: its patterns are tried once. */
struct format_trials {
    const struct format_set *formats;
    struct findings **found; /* of each format; NULL before it was tried */
};
/* Patterns of the formats that its cells name, each tried on lines that begin it over and over. */
void lint_formats(struct arena *arena, const struct report *report,
                  const struct format_trials *trials, struct findings *findings);
void lint_format(struct arena *arena, const struct format *format, struct findings *findings);

#endif
