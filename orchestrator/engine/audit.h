/* SPDX-License-Identifier: Apache-2.0 */
/* Recomputing every published cell of a report: from raw logs (a folder) or from the series kept in logs/published. */
#ifndef ENGINE_AUDIT_H
#define ENGINE_AUDIT_H

#include "base/progress.h"
#include "domain/finding.h"
#include "domain/format.h"
#include "domain/report.h"
#include "domain/verdict.h"

struct log_ref {
    struct str path; /* below the logs folder: "paddle-perf-8903782/..." */
    struct str sha256;
};

/* Where the stated rule does not give the printed value: what the search over named statistics and windows found. */
struct explanation {
    size_t n_tried;
    size_t n_matching; /* candidates that give this cell's printed value */
    size_t n_single;   /* of those, the ones that are one sample alone */
    size_t n_group;    /* cells in the group */
    struct str best;   /* the candidate that gives this cell, in words; NULL where none does */
    size_t
        best_explains; /* how many of the group's cells it gives: only n_group of n_group is an explanation */
};

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
    struct findings findings; /* of the audit, then of lint */
    size_t n_from_logs;       /* the audit's own */
};

struct audit_opts {
    const char *logs_folder; /* NULL: the series in logs/published below root */
    const char *root;        /* folder that holds manifests/ and logs/ */
    const char
        *series_folder; /* with logs_folder: write the series of REPORT to here/REPORT; or NULL */
    struct progress *progress; /* counts logs; or NULL */
};

/* How many logs (times formats) audit_report will read: for progress. */
size_t audit_count_logs(const struct report *report);

MUST_CHECK int audit_report(struct arena *arena, const struct report *report,
                            const struct format_set *formats, const struct audit_opts *opts,
                            struct report_audit *ret_audit, struct err *err);

#endif
