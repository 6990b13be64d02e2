/* SPDX-License-Identifier: Apache-2.0 */
/* From raw logs to verdicts: for each collected repeat its series, for each case its cell, for the run result.json. A function
   of the frozen inputs and the logs alone: no clock, nothing of the machine. Used by run, resume and replay. */
#pragma once

#include "evidence/frozen.h"
#include "judge/verdict.h"

enum outcome { OUTCOME_EXITED, OUTCOME_DEADLINE };

struct outcome_node { /* one job of the attempt */
    struct str name;
    int64_t exit_status;
    struct str log; /* below the evidence folder */
    struct str log_sha256;
    int64_t log_bytes;
    struct str monitor; /* its monitor's log, below the evidence folder, or NULL: nobody watched */
};

/* logs/outcome/CASE/repeat-N.json: how the attempt that counts ended, and what its log was. */
struct outcome_record {
    struct str case_id;
    int64_t repeat;
    int64_t attempt;
    enum outcome outcome;
    int64_t exit_status; /* 128+n: signal n */
    struct str log;      /* path below the evidence folder */
    struct str log_sha256;
    int64_t log_bytes;
    struct outcome_node *nodes; /* none: it ran on this machine alone */
    size_t n_nodes;
    struct str failed_node; /* whose job ended first with another status than 0, or NULL */
    struct str left;        /* "node: names" of processes that outlived their job, or NULL */
    /* SHA-256 of the archive in which the attempt before it counted, or NULL. */
    struct str replaces;
};

struct commands_record { /* logs/commands/CASE/repeat-N.json: what was started on the nodes */
    struct str case_id;
    int64_t repeat, attempt;
    const struct commands_job { /* NULL once read: nothing is derived of it */
        struct str node;
        const char *const *argv, *const *env, *const *cleanup; /* ended by NULL */
    } * jobs;
    size_t n_jobs;
};
#define COMMANDS_N 5
extern const struct json_field COMMANDS_ROWS[COMMANDS_N];

struct target_result { /* of a step that has a target */
    double elapsed_s;  /* NAN: not reached, or not to be told from the log: why */
    int64_t step;      /* 0: none */
    struct str why;
};

struct also_result { /* of a rule that the step's recipe names in addition to its own */
    double value;    /* NAN: there is none: why */
    struct str rule, series, unit;
    struct str why;
};

struct repeat_result {
    int64_t repeat;
    struct outcome_record outcome;
    enum parse_verdict parse;
    bool counts;  /* it ended well and its log is whole: its value goes into the summary */
    double value; /* items per second of the job by the rule; NAN where there is none */
    size_t n_used, n_window;
    enum err_code cause; /* where it does not count */
    struct str why;
    struct str log; /* path below the evidence folder */
    struct str unit;
    const struct fact *facts; /* what the log itself states */
    size_t n_facts;
    struct str doubt;   /* what the judgement of its log says; NULL: nothing */
    struct str others;  /* what the other nodes' logs say of a command's number; NULL: nothing */
    struct str *taints; /* "node2: ...": reasons to doubt the number, which they do not change */
    size_t n_taints;
    bool has_target;             /* the step has one */
    struct target_result target; /* of a repeat that counts */
    struct also_result *also;    /* likewise, one a rule */
    size_t n_also;
};

struct run_difference {
    struct str name;
    struct str published; /* NULL: never, see not_stated */
    struct str run;       /* NULL: there is none */
};

struct summary {
    size_t n;
    double mean, median, std, min, max; /* std with n-1, NAN for n < 2 */
};

struct cell_result {
    const struct plan_step *step;
    const struct report_case *of_case;  /* NULL never */
    const struct report_case *baseline; /* NULL where the report has no such case */
    const struct cell *published;       /* NULL where the baseline has no throughput */
    struct str unit;
    double value;    /* NAN: none */
    double rel_diff; /* NAN unless judged against the published number */
    enum run_verdict verdict;
    enum err_code cause; /* of failed and not_run */
    struct str why;
    struct repeat_result *repeats;
    size_t n_repeats;
    struct summary summary;
    struct target_result target; /* the mean over the repeats, of the last step; of all, or none */
    /* What each rule makes of all repeats; none where the case was not run. */
    struct also_result *also;
    size_t n_also;
    struct run_difference *differs;
    size_t n_differs;
    struct str *not_stated; /* conditions of ours that the published case does not state */
    size_t n_not_stated;
    /* Conditions that nothing but the nodes' own word supports: no log states them. */
    struct str *by_node;
    size_t n_by_node;
};

struct run_result {
    struct cell_result *cells; /* in plan order */
    size_t n_cells;
    /* As in reperf(1), EXIT STATUS: the first failure in plan order, else 1 where a cell does not hold, else 0. */
    int exit_status;
    struct str text; /* result.json */
};

/* Takes each derived file: its name below the evidence folder and its whole text. */
typedef int (*derived_fn)(void *ctx, const char *name, struct str text, struct err *err);
struct derived_to { /* where files go */
    derived_fn put;
    void *ctx;
};

void outcome_encode(const struct outcome_record *record, struct strbuf *out);
extern const char *const OUTCOME_NAMES[2];

/* What rules must know of the step, as it was run. */
struct rule_case result_rule_case(const struct frozen *frozen, const struct plan_step *step);

/* One repeat: checks the log against its recorded digest (ERR_INTEGRITY), parses it, gives its series file to `put`. Of the log
   only what the result needs stays in the arena. */
struct repeat_of {
    const struct plan_step *step;
    int64_t repeat;
};
MUST_CHECK int result_repeat(struct arena *arena, const struct frozen *frozen, struct repeat_of of,
                             struct derived_to to, struct repeat_result *ret_repeat,
                             struct err *err);

/* The format of a log whose step names none: of those that the run froze. NULL: *ret_why says why. */
MUST_CHECK int result_choose_format(struct arena *arena, const struct frozen *frozen,
                                    const char *path, const struct format **ret_format,
                                    struct str *ret_why, struct err *err);

/* Where a repeat has its place among those of the plan, of which there are result_n_repeats, each run or not. */
size_t result_n_repeats(const struct plan *plan);
size_t result_repeat_at(const struct plan *plan, const struct plan_step *step, int64_t repeat);
/* "1e-4" and "0.0001", "32,32" and "32" are one value of a condition. */
bool result_same_value(struct str a, struct str b);
/* What the plan's step states of a condition; else `otherwise`. */
struct str result_planned(const struct plan_step *step, const char *name, struct str otherwise);
/* Whether the first n repeats of a step are all that it needs: `repeats`, or more until the interval is narrow enough. */
bool result_has_enough(const struct plan *plan, const struct repeat_result *repeats, int64_t n);
/* result.json, from the repeats of all steps that were run, each at its place; borrowed by the result. */
MUST_CHECK int result_combine(struct arena *arena, const struct frozen *frozen,
                              struct repeat_result *repeats, struct derived_to to,
                              struct run_result *ret_result, struct err *err);
/* All of it: each repeat, then result.json. */
MUST_CHECK int result_derive(struct arena *arena, const struct frozen *frozen, struct derived_to to,
                             struct run_result *ret_result, struct err *err);

/* What the numbers of rules named in addition to a case's are worth, as a sentence for people. */
const char *result_also_means(const struct plan *plan);

/* The cells; also for `reperf run --json`. */
extern const struct json_field RESULT_CELLS_ROWS[1];
extern const struct json_document RESULT_DOCUMENT;
