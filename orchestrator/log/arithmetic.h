/* SPDX-License-Identifier: Apache-2.0 */
/* The log's own arithmetic: a rate times the time it took is a count, a bar's count over its time is its rate, and the log often
   prints all of them. Identities can only take `ok` away, or confirm a number. Pure. */
#pragma once

#include "log/survey.h"

enum arithmetic_state { ARITHMETIC_SILENT, ARITHMETIC_CONFIRMS, ARITHMETIC_CONTRADICTS };

struct arithmetic {
    enum arithmetic_state state;
    struct str said; /* both numbers and both lines; in the arena */
};

/* Of the figure that the log prints as `value` on `line`, or NONE if nothing else in the log bears on it. */
struct arithmetic arithmetic_check(struct arena *arena, const struct survey *survey, double value,
                                   int64_t line);

/* Whether a text can hold the counts and times that bear on a figure: cheap, before it is surveyed. */
bool arithmetic_is_likely(struct str text);
