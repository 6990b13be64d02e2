/* SPDX-License-Identifier: Apache-2.0 */
/* Recomputing every published cell of a report from its logs, once they are read (load/audit_logs.h). Pure. */
#pragma once

#include "judge/bind.h"
#include "judge/identity.h"
#include "judge/judgement.h"
#include "judge/verdict.h"

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

struct cell_audit {
    const struct report_case *of_case;
    const struct cell *cell;
    const struct bound_cell *bound;
    const struct rule *by; /* that it is judged by; NULL: it has none, or no log */
    double recomputed;     /* NAN: none */
    double rel_diff;       /* NAN: none */
    enum audit_verdict verdict;
    struct str rule; /* id, or "derived:ratio" ..., or NULL */
    struct log_ref *logs;
    size_t n_logs;
    size_t n_used; /* samples that the rule used, of the first log */
    struct explanation explanation;
    /* How the printed digits were made, "nearest" or "truncate"; NULL if not judged. */
    struct str rounding;
    struct str note;
    enum proof proof;
    bool is_proposed; /* its number was read by a format that is only proposed */
    /* The rule was chosen because it gives n_given of the n_asked numbers of its table whose logs are there; 0, 0: it was
       stated. */
    size_t n_given, n_asked;
    enum log_state log_state;
    struct str refuted; /* why a log gives no number, whatever its rule; NULL: none does */
    /* What its logs prove about the row; of several, and of derived cells, the worst. */
    struct identity identity;
    size_t identity_log; /* the log that contradicts */
    struct str digits;   /* of a match: "58.715 for 58.716"; else NULL */
};

/* One row of a table, both frameworks judged by one rule: value_a / value_b, next to the published ratio. */
struct like_row {
    const struct cell_audit *a, *b; /* a: the report's own framework */
    struct str rule;                /* the one statistic and window, in words */
    double value_a, value_b;        /* job items per second; NAN if a log is missing */
    double ratio, published_ratio;
    /* "not alike: ", and another network, another optimizer, ...; wherever the ratio is shown, so is this. */
    struct str note;
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

/* What was read of one of its logs; NULL: a log that is missing, or unreadable, or not there for it. */
const struct measurement *cell_measurement(const struct cell_audit *cell, size_t log);
/* "exact", or "exact, proposed" of a cell that a proposed format read. */
const char *cell_verdict_words(const struct cell_audit *cell);
/* " as truncated" where it is exact because its digits were cut off, and rounding gives others; else "". */
const char *cell_cut_words(const struct cell_audit *cell);
/* The recomputed number as every view shows it: with as many digits as the difference beside it needs to follow from the two
   numbers; and that difference, "+0.31 %". Empty: none. */
struct str cell_number_words(struct arena *arena, const struct cell_audit *cell);
struct str cell_diff_words(struct arena *arena, const struct cell_audit *cell);
/* The rule's id, and of one that was inferred how much it gives: "megatron/median (inferred: gives 2 of 3)"; NULL: none. */
struct str cell_rule_words(struct arena *arena, const struct cell_audit *cell);
/* "" or "; rules inferred from the numbers, which they give in 5 of 7 cases". */
struct str audit_inferred_words(struct arena *arena, const struct report_audit *audit);
/* Judges every published cell by its logs, which have been read, with explanations and findings. Borrows the binding. */
void audit_judge(struct arena *arena, const struct binding *binding,
                 struct report_audit *ret_audit);

/* Keeps the cells of the cases that globs select (report/plan.h), the rows with two such cells, and all findings except those
   about other cases only. Verdicts stay as judged with the whole report. */
void audit_select(struct arena *arena, struct report_audit *audit, const struct str *globs,
                  size_t n_globs);
