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
    struct str file; /* that was read; NULL: the kept series was used instead */
};

/* If the stated rule does not give the printed value: the result of the search over named statistics and windows. */
struct explanation {
    size_t n_tried;
    size_t n_matching;    /* candidates that give this cell's printed value */
    size_t n_single;      /* of those, the ones that are a single sample */
    size_t n_group;       /* cells in the group */
    struct str best;      /* the candidate that gives this cell, in words; NULL if none does */
    size_t best_explains; /* how many of the group's cells it gives */
};
/* Whether the best candidate gives every cell of a group of several: a group of one proves nothing. */
bool explains(const struct explanation *e);

/* The state of a cell's logs: the worst of several, in this order. */
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
    const struct measurement **measurements; /* one per log; NULL for a missing log */
    size_t n_used;                           /* samples that the rule used, of the first log */
    struct explanation explanation;
    struct str
        rounding; /* "nearest" or "truncate": how the printed digits were made; NULL if not judged */
    struct str note;
    enum proof proof;
    bool is_proposed; /* its number was read by a format that is only proposed */
    enum log_state log_state;
    struct identity
        identity; /* what its logs prove about the row; of several, and of derived cells, the worst */
    size_t identity_log; /* the log that contradicts */
    struct str digits;   /* of a match: "58.715 for 58.716"; else NULL */
};

/* One row of a table, both frameworks judged by one rule: value_a / value_b, next to the published ratio. */
struct like_row {
    const struct cell_audit *a, *b; /* a: the report's own framework */
    struct str rule;                /* the one statistic and window, in words */
    double value_a, value_b;        /* job items per second; NAN if a log is missing */
    double ratio, published_ratio;
    struct str
        note; /* "not alike: ", and another network, another optimizer, ...; wherever the ratio is shown, so is this */
};

struct report_audit {
    const struct report *report;
    struct cell_audit *cells; /* in manifest order */
    size_t n_cells;
    struct like_row *rows;
    size_t n_rows;
    struct findings findings;  /* of the audit, then of lint */
    size_t n_from_logs;        /* the audit's own */
    struct str written_sha256; /* of the list of series written for it, or NULL */
    size_t n_left_out;         /* findings of cases that were not selected */
};

struct audit_log {     /* one log as read by one format */
    struct str path;   /* below logs_source.path */
    struct str format; /* id */
    struct log_ref ref;
    const struct measurement *measurement; /* NULL: not there, or not readable */
    bool is_unreadable;                    /* if NULL: it exists, but is not a log of its format */
    struct str why;                        /* and why */
    struct str tried;       /* the whole path at which a raw log was looked for; else NULL */
    struct str kept_sha256; /* of a raw log, as logs/published records it; NULL: no record */
};

struct audit_logs {   /* the logs of the report's cells, read by load/audit_logs.h */
    struct map items; /* "FORMAT\nPATH" to struct audit_log */
};

/* NULL if the format did not read such a log. */
struct audit_log *audit_logs_find(const struct audit_logs *logs, struct str path,
                                  struct str format);
/* The log lives in the arena, zero except for path and format; that pair must be new. */
struct audit_log *audit_logs_add(struct audit_logs *logs, struct arena *arena, struct str path,
                                 struct str format);
void audit_logs_release(struct audit_logs *logs);

/* The format that the cell's logs are read by, or NULL. */
struct str cell_format(const struct report_case *c, const struct cell *cell);
/* The rule of that format, or NULL. */
struct str cell_rule(const struct report_case *c, const struct cell *cell);
/* What rules need to know about the case, as published. */
struct rule_case rule_case_of(const struct report_case *c);
const char *log_state_name(enum log_state state);
/* "exact", or "exact, proposed" of a cell that a proposed format read. */
const char *cell_verdict_words(const struct cell_audit *cell);
/* What is missing if the cell names a format or a rule that does not exist, in the arena; NULL if both exist. */
const char *audit_missing_rule(struct arena *arena, const struct format_set *formats,
                               const struct report_case *c, const struct cell *cell);

/* Judges every published cell by its logs, with explanations and findings. Borrows the report and the logs. */
void audit_judge(struct arena *arena, const struct report *report, const struct format_set *formats,
                 const struct audit_logs *logs, struct report_audit *ret_audit);

/* Keeps the cells of the cases that globs select (report/plan.h), the rows with two such cells, and all findings except those about other
   cases only. Verdicts stay as judged with the whole report. */
void audit_select(struct arena *arena, struct report_audit *audit, const struct str *globs,
                  size_t n_globs);

#endif
