/* SPDX-License-Identifier: Apache-2.0 */
/* Recomputing every published cell of a report from its logs, once they are read (load/audit_logs.h). Pure. */
#ifndef JUDGE_AUDIT_H
#define JUDGE_AUDIT_H

#include "base/map.h"
#include "judge/finding.h"
#include "judge/format.h"
#include "judge/identity.h"
#include "judge/verdict.h"
#include "report/report.h"

struct log_ref {
    struct str path; /* below the logs folder: "paddle-perf-8903782/..." */
    struct str sha256;
    struct str file; /* that was read; NULL: the kept series was */
};

/* Where the stated rule does not give the printed value: what the search over named statistics and windows found. */
struct explanation {
    size_t n_tried;
    size_t n_matching;    /* candidates that give this cell's printed value */
    size_t n_single;      /* of those, the ones that are one sample alone */
    size_t n_group;       /* cells in the group */
    struct str best;      /* the candidate that gives this cell, in words; NULL where none does */
    size_t best_explains; /* how many of the group's cells it gives */
};
/* Whether the best candidate gives every cell of a group of several: a group of one shows nothing. */
bool explains(const struct explanation *e);

/* What its logs are to a cell; of several the worst, in this order. */
enum log_state { LOG_WHOLE, LOG_INCOMPLETE, LOG_UNREADABLE, LOG_NO_RULE, LOG_ABSENT };

struct cell_audit {
    const struct report_case *of_case;
    const struct cell *cell;
    double recomputed; /* NAN: none */
    double rel_diff;   /* NAN: none */
    enum audit_verdict verdict;
    struct str rule; /* id, or "derived:ratio" ..., or NULL */
    struct log_ref *logs;
    size_t n_logs;
    const struct measurement **measurements; /* one a log; NULL items where a log is not there */
    size_t n_used;                           /* samples that the rule used, of the first log */
    struct explanation explanation;
    struct str
        rounding; /* "nearest" or "truncate": how the printed digits were made; NULL where not judged */
    struct str note;
    enum proof proof;
    enum log_state log_state;
    struct identity
        identity; /* what of the row its logs show; of several, and of derived cells, the worst */
    size_t identity_log; /* the log that contradicts */
    struct str digits;   /* of a match: "58.715 for 58.716"; else NULL */
};

/* One row of a table, both frameworks judged by one rule: value_a / value_b beside the published ratio. */
struct like_row {
    const struct cell_audit *a, *b; /* a: the report's own framework */
    struct str rule;                /* the one statistic and window, in words */
    double value_a, value_b;        /* job items per second; NAN where a log is missing */
    double ratio, published_ratio;
    struct str note; /* why it is not like for like even so: other network, other optimizer, ... */
};

struct report_audit {
    const struct report *report;
    struct cell_audit *cells; /* in manifest order */
    size_t n_cells;
    struct like_row *rows;
    size_t n_rows;
    struct findings findings;  /* of the audit, then of lint */
    size_t n_from_logs;        /* the audit's own */
    struct str written_sha256; /* of the list of series that was written for it, or NULL */
    size_t n_left_out;         /* findings of cases that were not selected */
};

struct audit_log {     /* one log as one format read it */
    struct str path;   /* below logs_source.path */
    struct str format; /* id */
    struct log_ref ref;
    const struct measurement *measurement; /* NULL: not there, or not readable */
    bool is_unreadable;                    /* then: it is there, and no log of its format */
    struct str why;                        /* and why */
    struct str tried;                      /* where a raw log was looked for, whole; else NULL */
    struct str kept_sha256; /* of a raw log, as logs/published records it; NULL: no record */
};

struct audit_logs {   /* what the report's cells stand on, read (load/audit_logs.h) */
    struct map items; /* "FORMAT\nPATH" to struct audit_log */
};

/* NULL where the format did not read such a log. */
struct audit_log *audit_logs_find(const struct audit_logs *logs, struct str path,
                                  struct str format);
/* The log lives in the arena, zero but for path and format; there must be none of both yet. */
struct audit_log *audit_logs_add(struct audit_logs *logs, struct arena *arena, struct str path,
                                 struct str format);
void audit_logs_release(struct audit_logs *logs);

/* By which format the cell's logs are read: in force, or NULL. */
struct str cell_format(const struct report_case *c, const struct cell *cell);
/* By which rule of it: in force, or NULL. */
struct str cell_rule(const struct report_case *c, const struct cell *cell);
/* What rules must know of the case, as published. */
struct rule_case rule_case_of(const struct report_case *c);
const char *log_state_name(enum log_state state);
/* A cell that names a format or a rule which does not exist: what is missing, in the arena; NULL where all is there. */
const char *audit_missing_rule(struct arena *arena, const struct format_set *formats,
                               const struct report_case *c, const struct cell *cell);

/* Every published cell against its logs, explanations, findings. Borrows the report and the logs. */
void audit_judge(struct arena *arena, const struct report *report, const struct format_set *formats,
                 const struct audit_logs *logs, struct report_audit *ret_audit);

/* Leaves the cells of the cases that globs select (report/plan.h), the rows that two of them stand in, and the findings but those of other
   cases alone. What was judged stays as it was judged, by the whole report. */
void audit_select(struct arena *arena, struct report_audit *audit, const struct str *globs,
                  size_t n_globs);

#endif
