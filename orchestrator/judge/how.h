/* SPDX-License-Identifier: Apache-2.0 */
/* How a cell's number follows from its logs: which samples count, and the arithmetic step by step, with the numbers that the audit
   itself computed. Pure; lives in the arena given, borrows the audit. */
#ifndef JUDGE_HOW_H
#define JUDGE_HOW_H

#include "judge/audit.h"

struct how_step {
    struct str words; /* "543.9 / 98: mean of 98 samples of ips" */
    double value;     /* NAN: the words say it all */
};
struct how_steps {
    struct how_step *items;
    size_t n;
};

struct how_log {
    const struct series *series; /* that the rule takes; NULL: there is none */
    enum sample_use *uses;       /* one a sample; NULL where the rule does not apply */
    size_t n_of[USE_BEFORE_LAST + 1];
    struct how_steps steps;
    double value;    /* INFINITY: it did not succeed; NAN: none */
    struct str why;  /* it has no number, or did not succeed */
    bool is_dropped; /* of several, by an olympic mean */
};

struct how {
    const struct rule *rule; /* NULL: none applies */
    struct how_log *logs;    /* as many as the cell's */
    struct how_steps
        steps; /* from the logs' numbers to the printed one; empty where there is no number */
};

/* The formats that the audit had. */
void how_of(struct arena *arena, const struct format_set *formats, const struct report *report,
            const struct cell_audit *cell, struct how *ret_how);

/* In words, of a sample that does not count: "before the window: skip 2". */
struct str how_use_words(struct arena *arena, const struct rule *rule, enum sample_use use);

#endif
