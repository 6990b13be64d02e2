/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs side by side: what cmd_compare.c finds, compare_write.c shows and compare_gate.c judges. Nobody else includes this. */
#ifndef CMD_COMPARE_PARTS_H
#define CMD_COMPARE_PARTS_H

#include "base/vec.h"
#include "evidence/columns.h"
#include "view/run_health.h"

/* How likely a difference is to change a throughput. */
enum weight { WEIGHT_LIKELY, WEIGHT_POSSIBLE, WEIGHT_INCIDENTAL };

struct change {
    struct str name;
    struct str a, b; /* ptr NULL: none */
    enum weight weight;
};

struct changes {
    struct change *items;
    size_t n, n_max;
};

/* What a gate says of a cell, worst last; of the runs, the worst of their cells'. */
enum gate {
    GATE_NONE,   /* it was not asked */
    GATE_WITHIN, /* the whole interval of the change is within the tolerance */
    GATE_UNDECIDED, /* it reaches to both sides, or there is none: the repeats are too few, or A has no value */
    GATE_SLOWER,  /* the whole interval is beyond it */
    GATE_MISSING, /* a value in A and none in B */
};
extern const char *const GATE_NAMES[GATE_MISSING + 1];

struct compare_gate {
    bool is_asked;
    bool
        allows_undecided; /* such a cell passes where the change itself is within the tolerance, or A has no value */
    double share; /* the tolerance: of a rate, as a part of it */
};

/* What a log adds to a view of one cell, whose summary is over means of batches of steps. */
struct compare_log {
    const char *path;
    struct str format, sha256;
    size_t n_steps; /* that the number is made of */
};

struct compare_side {
    struct run_view view;
    const struct compare_log *log; /* NULL: a run */
};

/* A cell of B against that of A. */
struct compare_change {
    double
        change; /* b / a - 1; NAN: one has no value, their units differ, or only one was rehearsed */
    bool has_interval;   /* both have two repeats that count */
    double low, high;    /* of it: 95 % confidence interval of the change, by Welch's t; else NAN */
    bool exceeds_spread; /* the ranges of their repeats do not touch */
    double speed, speed_low, speed_high; /* the same as a change of speed: less time is faster */
};

struct compare_row {
    struct str case_id;
    const struct cell_result *a, *b; /* one of them may be NULL */
    struct compare_change change;
    enum gate gate;
};

struct compare {
    struct run_view a, b;
    const struct compare_log *log_a, *log_b; /* NULL: a run */
    bool is_verbose;
    struct changes changes;
    struct columns columns_a,
        columns_b;            /* of runs: their frameworks side by side, and the claims */
    struct compare_row *rows; /* in the arena */
    size_t n_rows;
    struct compare_gate gate;
    enum gate outcome;                        /* the worst of the rows' */
    const struct health *health_a, *health_b; /* NULL: not of --each-node */
};

/* A file that is not an archive. */
bool compare_is_log(const char *name);
struct compare_logs { /* how logs are read */
    struct arena *arena;
    const char *root;
    const char *format;     /* --format, or NULL */
    struct format_set *set; /* loaded for the first log, used for the second */
};
/* ERR_PARSE where the log gives no number. */
MUST_CHECK int compare_open_log(const struct compare_logs *logs, const char *path,
                                struct compare_side *ret, struct err *err);
/* Gives a log's cell the case of the run or log beside it. ERR_USAGE where that has several. */
MUST_CHECK int compare_match_log(struct arena *arena, struct compare_side *log,
                                 struct compare_side *other, struct err *err);

/* NULL where the run has no such case. */
const struct cell_result *compare_find(const struct run_view *view, struct str case_id);
/* Makes the rows: the cells of both runs, those of A first. */
void compare_rows(struct arena *arena, struct compare *c);
bool compare_is_outlier(const struct cell_result *cell, size_t repeat_idx);
/* Repeats that count and are outliers: "3 (7.1)"; nothing if there are none. */
void compare_outliers_text(const struct cell_result *cell, struct strbuf *out);

void compare_text(const struct compare *c, struct strbuf *out);
void compare_json(const struct compare *c, struct strbuf *out);
void compare_csv(const struct compare *c, struct strbuf *out);
void compare_markdown(const struct compare *c, struct strbuf *out);

/* Returns the exit status: 0 if every cell of both passes; reports each on stderr. */
int gate_run(const struct compare *c);

#endif
