/* SPDX-License-Identifier: Apache-2.0 */
/* What a format reads from one log: named series of samples, facts about the run, and a parse verdict. Pure data, in the
   arena of whoever parsed it. Steps are as printed; values are as printed, in the series' unit, not scaled. */
#ifndef JUDGE_SERIES_H
#define JUDGE_SERIES_H

#include "base/str.h"

enum scope { SCOPE_RANK, SCOPE_NODE, SCOPE_JOB };

/* What one value says. RATE: items per second over the interval since the last line. RUNNING_MEAN: items per second since
   some earlier step (the format says which). STEP_TIME: seconds a step, averaged over the interval. SUMMARY: the tool's own
   figure for the whole run. CLOCK: nothing but the moment at which a step was reported. SCORE: accuracy, loss. */
enum quantity { QTY_RATE, QTY_RUNNING_MEAN, QTY_STEP_TIME, QTY_SUMMARY, QTY_CLOCK, QTY_SCORE };

#define RUNS_MAX INT16_MAX

/* 32 bytes: a log may have millions. */
struct sample {
    int64_t step; /* as printed; the ordinal from 1 where the line has none */
    double value; /* NAN where the line holds none that can be used (verdict nan) */
    double
        time_s; /* moment of the line, seconds since 1970 taken as UTC, or NAN; lines without a year: year 2000 */
    int32_t rank; /* -1: not said */
    int16_t run;  /* which run of the file, from 0 */
    int16_t gpus; /* -1: not said; the GPU count that a summary table's row is about */
};

struct series {
    struct str name;
    struct str unit; /* "samples/s", "images/s", "sequences/s", "s", "" */
    enum scope scope;
    enum quantity quantity;
    bool is_primary; /* the one `measure` prints */
    struct sample *samples;
    size_t n;
};

/* A condition that the log itself states, by the name that report cases use ("cuda", "batch_per_gpu", ...). */
struct fact {
    struct str name;
    struct str value; /* as printed */
    int64_t line;     /* from 1 */
};

/* Where several hold, the first of nan, no_metric, ambiguous, truncated, incomplete is given. nan: a rate or time that is not
   a number over 0. no_metric: nothing was read for the primary series. ambiguous: two runs. truncated: the last line ends
   in the middle of a record. incomplete: the steps it was to make, or the end it must have, were not reached. */
enum parse_verdict {
    PARSE_OK,
    PARSE_NO_METRIC,
    PARSE_INCOMPLETE,
    PARSE_NAN,
    PARSE_AMBIGUOUS,
    PARSE_TRUNCATED
};

struct measurement {
    struct str format; /* id */
    enum parse_verdict verdict;
    struct str why; /* of a verdict other than ok: one sentence; else empty */
    struct series *series;
    size_t n_series;
    struct fact *facts;
    size_t n_facts;
    int32_t n_runs; /* runs found in the file */
    /* ok or incomplete, of the file's first and last run alone: for a rule that chooses one of several. */
    enum parse_verdict first_run, last_run;
    int64_t warmup_steps; /* that the log says it made first; -1 not said */
    int64_t last_step;    /* of the primary series' last run; -1 none */
    int64_t total_steps;  /* that the log says it would make; -1 not said */
    uint64_t n_bytes;
    uint64_t n_lines;
};

const char *scope_name(enum scope scope);
const char *quantity_name(enum quantity quantity);
const char *parse_verdict_name(enum parse_verdict verdict);
bool scope_of_name(struct str name, enum scope *ret_scope);
bool quantity_of_name(struct str name, enum quantity *ret_quantity);

/* NULL where there is none of that name. */
const struct series *measurement_series(const struct measurement *m, struct str name);
const struct series *measurement_primary(const struct measurement *m);

#endif
