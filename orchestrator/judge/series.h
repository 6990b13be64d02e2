/* SPDX-License-Identifier: Apache-2.0 */
/* What a format reads from one log: named series of samples, facts about the run, and a parse verdict. Pure data, in the
   arena of whoever parsed it. Steps are as printed; values are as printed, in the series' unit, not scaled. */
#ifndef JUDGE_SERIES_H
#define JUDGE_SERIES_H

#include "base/str.h"

enum scope { SCOPE_RANK, SCOPE_NODE, SCOPE_JOB };

/* What one value says. RATE: items per second over the interval since the last line. RUNNING_MEAN: items per second since
   some earlier step (the format says which). STEP_TIME: seconds a step, averaged over the interval. SUMMARY: the tool's own
   figure for the whole run. CLOCK: nothing but the moment at which a step was reported. SCORE: accuracy, loss. PROGRESS: nothing but
   the step, where the figure itself is one for the whole run. */
enum quantity {
    QTY_RATE,
    QTY_RUNNING_MEAN,
    QTY_STEP_TIME,
    QTY_SUMMARY,
    QTY_CLOCK,
    QTY_SCORE,
    QTY_PROGRESS
};

#define RUNS_MAX INT16_MAX

/* 32 bytes: a log may have millions. */
struct sample {
    int64_t
        step; /* as printed, or counted over the epochs (series_spec.epoch_from); the ordinal from 1 where the line has none */
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
    int64_t *lines; /* of each sample, from 1; NULL: not kept (parser_keep_lines) */
};

/* A condition that the log itself states, by the name that report cases use ("cuda", "batch_per_gpu", ...). */
struct fact {
    struct str name;
    struct str value; /* as printed */
    int64_t line;     /* from 1, where it is stated first */
    /* Of each run from the first to the last; of none where the first is after the last. */
    int32_t first_run, last_run;
};
#define FACT_OF_NONE 1, 0

/* run < 0: whichever. */
static inline bool fact_is_of(const struct fact *fact, int32_t run)
{
    return run < 0 || (fact->first_run <= run && run <= fact->last_run);
}

/* What a log that is not ok is called; why is its cause. */
enum parse_verdict {
    PARSE_OK,
    PARSE_NO_METRIC,
    PARSE_INCOMPLETE,
    PARSE_NAN,
    PARSE_AMBIGUOUS,
    PARSE_TRUNCATED
};

/* A log that is not whole has one verdict: that of the first cause it has, in this order. */
enum cause {
    CAUSE_UNREADABLE, /* a line looks like the metric and holds no number over 0 */
    CAUSE_NAN_LOSS,   /* a loss is not finite */
    CAUSE_NO_METRIC,  /* no line holds the metric */
    CAUSE_RUNS,       /* several runs */
    CAUSE_WRITERS,    /* several ranks print the figure of the whole job */
    CAUSE_DUPLICATE,  /* a step that the same rank has printed */
    CAUSE_BEYOND,     /* a step after the last that the run was to make */
    CAUSE_CLOCK,      /* a line earlier than the one before it */
    CAUSE_TRUNCATED,  /* the last line ends in the middle of a record */
    CAUSE_FATAL,      /* the log says that the run failed */
    CAUSE_CRASH,      /* a traceback or want of memory before the run's end */
    CAUSE_NO_END,     /* the line that ends a run is missing */
    CAUSE_SHORT,      /* steps or epochs that the run was to make are missing at the end */
    CAUSE_BEGIN,      /* lines are missing before the first, or the line with which a run begins */
    CAUSE_GAP,        /* lines are missing in the grid of steps that the log itself shows */
    CAUSES
};

struct causes {
    int64_t n[CAUSES]; /* how often */
    int64_t
        at[CAUSES]; /* of the first: line, or step for those that are about steps; 0 not known */
    char bad_value[40];  /* what stands on the first unreadable line; empty: not known */
    int64_t total_steps; /* of a run that is short */
    int64_t epochs_left; /* likewise, where it counts epochs */
};

struct measurement {
    struct str format; /* id */
    enum parse_verdict verdict;
    struct str why;       /* of a verdict other than ok: one sentence; else empty */
    struct causes causes; /* counted; all 0 in a series that was kept, and before derivation 4 */
    struct series *series;
    size_t n_series;
    struct fact *facts;
    size_t n_facts;
    int32_t n_runs; /* runs found in the file */
    bool
        states_end; /* the last of them: how long it is, or that it is over; false in a series that was kept */
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

/* What a series is, into an object that is open: the same wherever one is written. Of its samples there are two forms, which others
   read: columns, in series that are kept (load/series_parts.h, which also reads them), and here a list, of an object each. */
struct json_out;
void series_encode_head(struct json_out *out, const struct series *series);
enum sample_members { SAMPLE_SCOPE = 1, SAMPLE_GPUS = 2, SAMPLE_RUN = 4 };
/* step, value and rank, and of the members those asked for; gpus only where it is known. */
void series_encode_sample(struct json_out *out, const struct series *series, size_t idx,
                          unsigned members);
/* The member facts: what the log states, and where. Nothing for NULL. */
void measurement_encode_facts(struct json_out *out, const struct measurement *m);

#endif
