/* SPDX-License-Identifier: Apache-2.0 */
/* From the numbers that recur in a log (judge/survey.h) to a format that reads them: which of them says a rate or a step's time, in which
   unit, by which pattern. What the log does not say is said to be missing, never assumed. Pure. */
#ifndef JUDGE_SUGGEST_H
#define JUDGE_SUGGEST_H

#include "judge/format.h"
#include "judge/survey.h"

#define SUGGESTIONS_MAX 8 /* series of one format */

enum suggestion_kind {
    SUGGEST_RATE,         /* items or steps a second */
    SUGGEST_RATE_NO_UNIT, /* a rate by its name: of what, the log does not print */
    SUGGEST_TIME,         /* seconds a step, in a unit that is printed */
    SUGGEST_TIME_NO_UNIT, /* a step's time by its name */
    SUGGEST_CLOCK,        /* moments of steps */
    SUGGEST_SPAN,         /* a span of time, of an epoch mostly: nothing says what it holds */
    SUGGEST_NONE,         /* something else */
};

struct suggestion {
    const struct survey_number *number; /* borrowed */
    enum suggestion_kind kind;
    struct str unit; /* of the vocabulary; empty where none is printed */
    double factor;   /* turns what is printed into unit */
    bool
        is_beside; /* a bandwidth or arithmetic rate, which logs of training print beside their own */
    bool is_plain; /* its pattern takes the number alone: no step, and bars on their way too */
    int64_t
        total; /* of a bar beside alike ones of other lengths: its steps, which tell it from them; else 0 */
    int score; /* the more, the rather it is what the log is about */
};

struct suggestions {
    struct suggestion *items; /* all numbers, best first; in the arena */
    size_t n;
};

/* unit: what the best number without one is in, or empty. ERR_USAGE where it is no unit of a rate or of time. */
MUST_CHECK int suggest_rank(struct arena *arena, const struct survey *survey,
                            const struct vocabulary *vocabulary, struct str unit,
                            struct suggestions *ret, struct err *err);
/* The one that a format is made for, or NULL. */
const struct suggestion *suggest_best(const struct suggestions *list);
/* "a rate, images/s", for people. */
const char *suggest_says(const struct suggestion *suggestion);
/* False where no pattern can be made. */
bool suggest_pattern(const struct suggestion *suggestion, struct strbuf *out);

struct suggested_format {
    struct str id;
    struct str source; /* where it was made from */
    size_t skip;       /* samples that its first rule leaves out */
};
/* The text of a format for the best suggestion and for those that stand in for it. */
void suggest_format(const struct suggestions *list, const struct suggested_format *as,
                    struct strbuf *out);

/* What a person gave: a pattern with a group value, and its unit. */
struct given_format {
    struct str id, pattern, unit;
    const struct vocabulary *vocabulary;
};
/* ERR_USAGE where the unit is none, or the pattern has no value. */
MUST_CHECK int suggest_given(const struct given_format *given, struct strbuf *out, struct err *err);

/* How many samples at the beginning are away from where the second half lies by more than a tenth; at most a quarter of them. */
size_t suggest_warmup(const struct series *series);

#endif
