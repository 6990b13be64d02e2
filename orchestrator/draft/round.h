/* SPDX-License-Identifier: Apache-2.0 */
/* A round of MLPerf Training as its repository holds it: SUBMITTER/results/SYSTEM/BENCHMARK/result_*.txt, one log a run, beside
   them where there is one scaling.json; SUBMITTER/systems/SYSTEM.json describes the machine. And the table of its results. */
#pragma once

#include "judge/rule.h"
#include "report/report.h"

#define ROUND_FORMAT "mlperf-training"
#define ROUND_RULE   "mlperf-training/result"

struct round_run {                         /* one log */
    struct str name;                       /* in its folder */
    const struct measurement *measurement; /* NULL: it cannot be read, and why says why */
    struct str why;                        /* likewise, or why it did not succeed */
    double value;        /* minutes; INFINITY: it did not succeed; NAN: it has none */
    double minutes;      /* the same, NAN if it did not succeed */
    const char *dropped; /* by the score: "fastest", "slowest", "unsuccessful"; NULL: it counts */
};

struct round_check { /* a rule that failed, or could not be checked */
    const char *rule;
    bool has_failed;
    struct str why;
};

struct submission {                           /* one result as it was handed in */
    struct str folder;                        /* relative to the round; "." is the round's own */
    const char *path;                         /* of that folder, as the user names it */
    struct str submitter, machine, benchmark; /* empty where the path is not a round's */
    struct str machine_name, submitter_name;  /* as its submitter describes them, or empty */
    struct round_run *runs;
    size_t n_runs;
    struct round_check *checks;
    size_t n_checks, n_failed;
    double factor;  /* of scaling.json; 1 without */
    double minutes; /* NAN: there is no score; why says why */
    struct str why, rule;
};

struct round {
    const char *folder;
    struct submission *items; /* sorted by folder */
    size_t n;
};
/* Every folder at or below this one that holds result_*.txt, with its score. ERR_NOT_FOUND where none does. */
MUST_CHECK int round_read(struct arena *arena, const char *root, const char *folder,
                          const struct rule *rule, struct round *ret_round, struct err *err);

/* One result of the table, as it is printed there. */
struct round_row {
    struct str round, submitter, machine, benchmark, minutes;
    double published;
    size_t line;
    const struct submission *of; /* whose result it is, or whose it should be; NULL: none */
    bool is_score;               /* and that submission's score is this number */
    const char *how;             /* in words */
};
struct round_rows {
    struct round_row *items;
    size_t n;
};
/* CSV (RFC 4180) with the columns round, submitter, system, benchmark and result_min, others beside them; the rows of the round
   that the folder's name states (training_results_vN), and each one's submission, which is no other row's. */
MUST_CHECK int round_rows_read(struct arena *arena, const struct round *round, const char *path,
                               struct round_rows *ret_rows, struct err *err);
/* The last of these steps: of, is_score and how of each row. */
void round_rows_match(const struct round *round, struct round_rows *rows);
