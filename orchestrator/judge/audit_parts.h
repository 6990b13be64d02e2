/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the audit (audit.c and audit_*.c). Nobody else includes this. Everything lives in the arena of the audit. */
#pragma once

#include "judge/audit.h"

struct audit {
    struct arena *arena;
    const struct report *report;
    const struct binding *binding;
    struct report_audit *out;
    struct findings *found; /* of out */
};

/* audit.c */
/* As published, except for counts that the log itself states, if its format is given: a rate is scaled by what ran. */
struct rule_case audit_case_of_log(const struct report_case *c, const struct rule *rule,
                                   const struct format *format, const struct measurement *m);
/* The number of this cell by another rule; false if the rule does not apply. memos: one for each log, for the next such rule; or
   NULL. */
bool audit_apply(const struct rule *rule, const struct cell_audit *cell, struct rule_memo *memos,
                 struct rule_value *ret);

/* audit_explain.c: for cells that their rule does not give. */
void audit_explain(struct audit *audit);
/* What turns a value of the series into a number of the job. */
enum scale audit_scale_of(const struct series *series);

/* audit_like.c */
struct interval { /* from one line of a log to the next */
    int64_t step; /* the step of the line at its end, as printed */
    int64_t n_steps;
    double seconds;
};
struct pace { /* one run of one log as intervals; of the rank that prints first */
    struct interval *items;
    size_t n;
    const struct series *series;
};
/* False if the log holds no series of intervals. */
bool audit_pace(struct audit *audit, const struct cell_audit *cell, struct pace *ret_pace);
double pace_last_over_slowest(const struct pace *pace, size_t from);
void audit_like_for_like(struct audit *audit);

/* audit_find_*.c: general rules over cells, series and facts. */
void audit_find_cells(struct audit *audit);
void audit_find_facts(struct audit *audit);

/* One of the cell's logs, at a line or as a whole (0); a cell without logs in the manifest. */
struct spot log_spot(const struct audit *audit, const struct cell_audit *cell, size_t log,
                     int64_t line);
static inline struct spot cell_spot(const struct audit *audit, const struct cell_audit *cell)
{
    return log_spot(audit, cell, 0, 0);
}
