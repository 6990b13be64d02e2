/* SPDX-License-Identifier: Apache-2.0 */
/* What a format reads from one log: named series of samples, facts about the run, and a parse verdict. Pure data, in the
   arena of whoever parsed it. Steps are as printed; values are as printed, in the series' unit, not scaled. */
#pragma once

#include "codec/json_table.h"

/* UNKNOWN: neither the format nor the log says it. */
enum scope { SCOPE_RANK, SCOPE_NODE, SCOPE_JOB, SCOPE_UNKNOWN };

/* The meaning of one value. RATE: items per second over the interval since the last line. RUNNING_MEAN: items per second since
   some earlier step (the format says which). STEP_TIME: seconds a step, averaged over the interval. SUMMARY: the tool's own
   figure for the whole run. CLOCK: only the moment at which a step was reported. SCORE: accuracy, loss. PROGRESS: only the step,
   if there is one figure for the whole run. */
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
    /* As printed, or counted over the epochs (series_spec.epoch_from); the ordinal from 1 if the line has none. */
    int64_t step;
    double value; /* NAN if the line has no usable value (verdict nan) */
    /* The moment of the line, seconds since 1970 taken as UTC, or NAN; lines without a year have the year 2000. */
    double time_s;
    int32_t rank; /* -1: not said */
    int16_t run;  /* which run of the file, from 0 */
    int16_t gpus; /* -1: not stated; the GPU count of a summary table's row */
};

struct series {
    struct str name;
    struct str unit; /* "samples/s", "images/s", "sequences/s", "s", "" */
    enum scope scope;
    enum quantity quantity;
    bool is_primary; /* the one `measure` prints */
    struct sample *samples;
    size_t n;
    int64_t last_line; /* of the last sample, from 1 */
    int64_t *lines;    /* of each sample, from 1; NULL: not kept (parser_keep_lines) */
};

/* A condition that the log itself states, by the name that report cases use ("cuda", "batch_per_gpu", ...). */
struct fact {
    struct str name;
    struct str value; /* as printed */
    int64_t line;     /* from 1, of its first statement */
    /* It belongs to each run from the first to the last; to none if the first is after the last. */
    int32_t first_run, last_run;
};
#define FACT_OF_NONE 1, 0

/* A fact besides the conditions: gpus, nodes, gpus_per_node, precision, model. */
bool fact_is_of_row(struct str name);
/* By which it can be told whose log it is (judge/identity.h): these, and the batch. */
bool fact_is_of_identity(struct str name);
/* run < 0: any. */
static inline bool fact_is_of(const struct fact *fact, int32_t run)
{
    return run < 0 || (fact->first_run <= run && run <= fact->last_run);
}

/* The verdict on a log; measurement.why has the cause. */
enum parse_verdict {
    PARSE_OK,
    PARSE_NO_METRIC,
    PARSE_INCOMPLETE,
    PARSE_NAN,
    PARSE_AMBIGUOUS,
    PARSE_TRUNCATED,
    PARSE_TWO_LEVELS,         /* no one number stands for all of the series */
    PARSE_CONTRADICTS_ITSELF, /* the log's own arithmetic refutes the number */
    PARSE_PROPOSED /* ok, but by a format that nobody has confirmed: of no log or kept series */
};

/* A log that is not whole has one verdict: that of its first cause in this order. */
enum cause {
    CAUSE_UNREADABLE, /* a line looks like the metric and holds no number over 0 */
    CAUSE_NAN_LOSS,   /* a loss is not finite */
    CAUSE_NO_METRIC,  /* no line holds the metric */
    CAUSE_RUNS,       /* several runs */
    CAUSE_WRITERS,    /* several ranks or cases have a figure of the whole job */
    CAUSE_DUPLICATE,  /* a step that the same rank has printed */
    CAUSE_BEYOND,     /* a step beyond the last one of the run */
    CAUSE_CLOCK,      /* a line earlier than the one before it */
    CAUSE_ARITHMETIC, /* the log's own numbers contradict the metric */
    CAUSE_LEVELS,     /* the series changes its level for good */
    CAUSE_TRUNCATED,  /* the last line ends in the middle of a record */
    CAUSE_FATAL,      /* the log says that the run failed */
    CAUSE_CRASH,      /* a traceback or lack of memory before the run's end */
    CAUSE_NO_END,     /* the line that ends a run is missing */
    CAUSE_SHORT,      /* steps or epochs of the run are missing at the end */
    CAUSE_BEGIN,      /* lines are missing before the first, or the line that begins a run is */
    CAUSE_GAP,        /* lines are missing in the grid of steps that the log itself shows */
    CAUSES
};

struct causes {
    int64_t n[CAUSES];   /* how often */
    int64_t at[CAUSES];  /* of the first: line, or step for causes about steps; 0: not known */
    char bad_value[40];  /* the text on the first unreadable line; empty: not known */
    int64_t total_steps; /* of a run that is short */
    int64_t epochs_left; /* likewise, if it counts epochs */
    int64_t n_synthetic; /* losses that are not finite, of data that are noise */
    struct str doubt;    /* of the first of CAUSE_ARITHMETIC and CAUSE_LEVELS: the sentence */
};

const char *cause_name(enum cause cause);
enum parse_verdict cause_verdict(enum cause cause);
/* Of the first cause; PARSE_OK if there is none. */
enum parse_verdict causes_verdict(const struct causes *causes);
/* Counts the cause once more, first at line or step `at`. */
void cause_add(struct causes *causes, enum cause cause, int64_t at);

struct measurement {
    struct str format; /* id */
    enum parse_verdict verdict;
    struct str why;       /* of a verdict other than ok: one sentence; else empty */
    struct causes causes; /* counted; all 0 in a kept series */
    struct series *series;
    size_t n_series;
    struct fact *facts;
    size_t n_facts;
    int32_t n_runs;  /* runs found in the file */
    bool states_end; /* the last of them states its length or its end; false in a kept series */
    /* ok or incomplete, only of the file's first and last run: for a rule that chooses one of several. */
    enum parse_verdict first_run, last_run;
    int64_t warmup_steps; /* stated by the log; -1: not stated */
    int64_t last_step;    /* of the primary series' last run; -1: none */
    int64_t total_steps;  /* stated by the log; -1: not stated */
    uint64_t n_bytes;
    uint64_t n_lines;
};

extern const char *const SCOPE_NAMES[4]; /* NULL: UNKNOWN */
extern const char *const QUANTITY_NAMES[7], *const PARSE_VERDICT_NAMES[9];

/* NULL if there is none of that name. */
const struct series *measurement_series(const struct measurement *m, struct str name);
const struct series *measurement_primary(const struct measurement *m);
/* The first fact of that name that the run states (run < 0: any); NULL: none. */
const struct fact *measurement_fact(const struct measurement *m, struct str name, int32_t run);

/* What a series is: the same wherever one is written. Of its samples there are two forms: columns, in series that are kept
   (load/kept_series.h, which also reads them), and here a list, of an object each, which others read. */
extern const struct json_field SERIES_HEAD_ROWS[5],
    FACT_ROWS[3]; /* of struct series, struct fact */
enum sample_members { SAMPLE_SCOPE = 1, SAMPLE_GPUS = 2, SAMPLE_RUN = 4 };
/* step, value and rank, and of the members those asked for; gpus only where it is known. */
void series_put_sample(struct json_out *out, const struct series *series, size_t idx,
                       unsigned members);
/* The member facts: what the log states, and where; none for NULL. */
void measurement_encode_facts(struct json_out *out, const struct measurement *m);
