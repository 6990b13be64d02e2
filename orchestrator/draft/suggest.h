/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a format from the numbers that recur in a log (log/survey.h): which of them is a rate or a step's time, in which unit, by
   which pattern. What the log does not say is reported as missing, never assumed. Pure. */
#pragma once

#include "log/format.h"
#include "log/survey.h"

enum suggestion_kind {
    SUGGEST_RATE,         /* items or steps a second */
    SUGGEST_RATE_NO_UNIT, /* a rate by its name, whose unit the log does not print */
    SUGGEST_TIME,         /* seconds per step, in a printed unit */
    SUGGEST_TIME_NO_UNIT, /* a step's time by its name */
    SUGGEST_CLOCK,        /* moments of steps */
    SUGGEST_SCALED,       /* "436G" */
    SUGGEST_SPAN,         /* a span of time, mostly of an epoch: its content is unknown */
    SUGGEST_PREPARING,    /* of what comes before the steps: data or a model that is loaded */
    SUGGEST_TABLE,        /* figures of several cases: sizes, kernels, tests, devices */
    SUGGEST_ELAPSED,      /* the time since the beginning, at each step */
    SUGGEST_NONE,         /* something else */
};

/* What a number can be. */
extern const struct kind_row {
    int score;                     /* the higher, the likelier it is the log's speed */
    const char *says;              /* for people */
    const char *series, *quantity; /* that a format makes of it; NULL: none can */
} SUGGEST_KINDS[];

struct suggestion {
    const struct survey_number *number; /* borrowed */
    enum suggestion_kind kind;
    struct str unit; /* of the vocabulary; empty if none is printed */
    double factor;   /* converts the printed value to unit */
    /* A bandwidth or arithmetic rate, which training logs print in addition to their own. */
    bool is_beside;
    bool has_eval; /* lines of an evaluation have the same figure */
    struct str
        not_after;   /* "prompt " before "eval rate", where "prompt eval rate" is another's key */
    bool is_of_one;  /* a rate of each device, not of the job */
    bool is_flipped; /* of a bar, whose other lines have the unit upside down: "s/it" for "it/s" */
    /* The steps of a bar among similar ones of other lengths, which tell it from them; else 0. */
    int64_t total;
    int score; /* the higher, the likelier it is the log's main figure */
};

/* Whether it is a unit of time, and how many seconds it is; else 1. */
bool suggest_factor(const struct word *unit, double *ret);

struct suggestions {
    struct suggestion *items; /* all numbers, best first; in the arena */
    size_t n;
};

/* unit: that of the best number without one, or empty. ERR_USAGE if it is not a unit of a rate or of time. */
MUST_CHECK int suggest_rank(struct arena *arena, const struct survey *survey,
                            const struct vocabulary *vocabulary, struct str unit,
                            struct suggestions *ret, struct err *err);
/* The one for which a format is made, or NULL: none is a figure. */
const struct suggestion *suggest_best(const struct suggestions *list);
/* "a rate, images/s", for people. */
const char *suggest_says(const struct suggestion *suggestion);
/* "s/it" of "it/s", in buf; empty for a unit without a slash. */
struct str suggest_flip(struct str unit, char *buf, size_t size);
/* False if no pattern can be made. */
bool suggest_pattern(const struct suggestion *suggestion, struct strbuf *out);

struct suggested_format {
    struct str id;
    struct str source; /* where it was made from */
    size_t skip;       /* samples of a slow start, which its rule "window" leaves out */
};
/* The text of a format for the best suggestion. */
void suggest_format(const struct suggestions *list, const struct suggested_format *as,
                    struct strbuf *out);

/* Given by the user: a pattern with a group value, and its unit. */
struct given_format {
    struct str id, pattern, unit;
    const struct vocabulary *vocabulary;
};
/* ERR_USAGE if it is not a unit, or the pattern has no group value. */
MUST_CHECK int suggest_given(const struct given_format *given, struct strbuf *out, struct err *err);
