/* SPDX-License-Identifier: Apache-2.0 */
/* The number of a log whose rule nobody named: `measure`, a run of a command, a comparison of logs. Pure. */
#pragma once

#include "judge/identity.h"
#include "log/engine.h"

/* The format's default rule for the series; NULL: it has none, or it needs a batch that is not known, and the engine makes the
   number. */
const struct rule *number_rule(const struct format *format, const struct series *series,
                               const struct rule_case *of);

struct made_number {
    struct rule_value made;
    struct figure figure; /* without a rule: how the value was made */
    struct str unit;
};
/* rule NULL: by the engine. ERR_PARSE where no number follows, or the series is a table of several GPU counts and `of` names
   none. */
MUST_CHECK int number_make(const struct measurement *m, const struct series *series,
                           const struct rule *rule, const struct rule_case *of,
                           struct made_number *ret, struct err *err);
/* rule NULL: of the primary series, by its default rule or the engine; then the log itself says how large the job was, as far as
   it does, since nobody has stated what it must be. */
MUST_CHECK int number_of_log(const struct format *format, const struct measurement *m,
                             const struct rule *rule, struct rule_case *of, struct made_number *ret,
                             struct err *err);
/* A table of several GPU counts: its number is that of one row. */
bool number_has_rows(const struct series *series);
