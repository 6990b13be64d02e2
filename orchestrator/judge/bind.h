/* SPDX-License-Identifier: Apache-2.0 */
/* What the names in a report and in a plan stand for. They are bound once, when the reports and formats have been read: from then
   on a case, a format, a rule and a log is a pointer, and only load, bind and explain look one up by its name
   (tests/lint/names.sh). A name that stands for nothing is bound to NULL, and bind_findings has one finding for it. Pure; all is
   in the arena, and borrows from the report and the formats. */
#pragma once

#include "judge/finding.h"
#include "log/format.h"
#include "report/plan.h"

struct log_ref {
    struct str path; /* below the logs folder: "paddle-perf-8903782/..." */
    struct str sha256;
    struct str file; /* that was read; NULL: the kept series was used instead */
};

struct audit_log {     /* one log as read by one format */
    struct str path;   /* below logs_source.path */
    struct str format; /* id */
    struct log_ref ref;
    bool is_read; /* load/audit_logs.h has looked for it: what follows says what it found */
    const struct measurement *measurement; /* NULL: not there, or not readable */
    bool is_unreadable;                    /* if NULL: it exists, but is not a log of its format */
    struct str why;                        /* and why */
    struct str tried;       /* the whole path at which a raw log was looked for; else NULL */
    struct str kept_sha256; /* of a raw log, as logs/published records it; NULL: no record */
};

struct bound_cell {
    const struct report_case *of_case;
    const struct cell *cell;
    const struct format *format; /* that reads its logs; NULL: it names none, or none that exists */
    const struct rule *rule;     /* that gives its number; NULL: why_no_rule says why */
    /* "there is no rule f/x" where it names what does not exist (is_missing), or that it names none; NULL where there is a
       rule. */
    const char *why_no_rule;
    bool is_missing;
    bool takes_mean;         /* by any rule: its logs are repeats of one run */
    struct audit_log **logs; /* one for each log of the case; NULL: no format is named for them */
    const struct bound_cell **of; /* a derived cell's own cells, one for each of cell->of */
};

struct binding {
    const struct report *report;
    struct bound_cell *cells; /* in manifest order */
    size_t n_cells;
    struct audit_log **logs; /* those whose format exists, each once, in the order of the cells */
    size_t n_logs;
};
void bind_report(struct arena *arena, const struct report *report, const struct format_set *formats,
                 struct binding *ret_binding);

/* step->bound of each step. */
void bind_plan(struct arena *arena, const struct report *report, const struct format_set *formats,
               struct plan *plan);
/* Of one step, without its cases. */
void bind_step(struct arena *arena, const struct format_set *formats, struct plan_step *step);

/* Names of formats and rules, in cells and in recipes, that stand for nothing: rule-missing, recipe-rule-missing. */
void bind_findings(struct arena *arena, const struct report *report,
                   const struct format_set *formats, struct findings *findings);

/* The name itself, for whoever loads or explains it: of the cell's rule, or empty. */
struct str cell_rule(const struct report_case *c, const struct cell *cell);
