/* SPDX-License-Identifier: Apache-2.0 */
/* Two sides, each a run or a log, beside each other: how their cells differ, what of machine, software and plan differs, and
   whether the second is slower than allowed. A log is a result of one cell, whose "repeats" are means of batches of its steps. */
#pragma once

#include "base/command.h"
#include "base/vec.h"
#include "evidence/columns.h"
#include "load/load.h"
#include "view/run_health.h"

/* How likely a difference is to change a throughput. */
enum weight { WEIGHT_LIKELY, WEIGHT_POSSIBLE, WEIGHT_INCIDENTAL };

struct change {
    struct str name;
    struct str a, b; /* ptr NULL: none */
    enum weight weight;
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

struct compare_log {
    const char *path;
    struct str format, sha256;
    size_t n_steps; /* that the number is made of */
};

struct compare_side {
    struct run_view view;
    const struct compare_log *log; /* NULL: a run */
    struct columns columns;        /* of a run: its frameworks side by side, and the claims */
};

struct compare_row {
    struct str case_id;
    const struct cell_result *a, *b; /* one of them may be NULL */
    /* b / a - 1; NAN: one has no value, their units differ, or only one was rehearsed. */
    double change;
    bool has_interval;   /* both have two repeats that count */
    double low, high;    /* of it: 95 % confidence interval of the change, by Welch's t; else NAN */
    bool exceeds_spread; /* the ranges of their repeats do not touch */
    double speed, speed_low, speed_high; /* the same as a change of speed: less time is faster */
    enum gate gate;
};

struct compare_opts {
    const char *format; /* of logs; NULL: whichever reads them */
    bool has_gate;      /* the second must not be slower than allowed */
    /* An undecided cell passes where the change itself is within the tolerance, or A has no value. */
    bool allows_undecided;
    double tolerance; /* of a rate, as a part of it */
    bool is_verbose;
};

struct compare {
    struct arena *arena; /* borrowed */
    struct compare_opts opts;
    struct format_set formats; /* of logs */
    struct compare_side a, b;
    VEC(struct change) changes; /* likeliest to matter first */
    struct compare_row *rows;   /* of both runs, those of A first */
    size_t n_rows;
    enum gate outcome; /* the worst of the rows' */
};
void compare_cleanup(struct compare *compare);

/* A run, an archive or a log. ERR_PARSE where a log gives no number. */
MUST_CHECK int compare_open(struct compare *c, const struct cmd_ctx *ctx, const char *name,
                            struct compare_side *ret, struct err *err);
/* ERR_USAGE where a log stands beside a run of several cases. */
MUST_CHECK int compare_sides(struct compare *c, struct err *err);
/* The exit status: 0 if every cell of both passes; reports each on stderr. */
int compare_gate(const struct compare *c);

bool compare_is_outlier(const struct cell_result *cell, size_t repeat_idx);
void compare_text(const struct compare *c, bool is_markdown, struct strbuf *out);
void compare_json(const struct compare *c, struct strbuf *out);
