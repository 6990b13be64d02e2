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
    enum sample_use *uses;       /* one per sample; NULL if the rule does not apply */
    size_t n_of[USE_BEFORE_LAST + 1];
    struct how_steps steps;
    double value;    /* INFINITY: the run did not succeed; NAN: none */
    struct str why;  /* why it has no number, or did not succeed */
    bool is_dropped; /* dropped by an olympic mean of several */
};

struct how {
    const struct rule *rule; /* NULL: none applies */
    struct how_log *logs;    /* as many as the cell's */
    struct how_steps
        steps; /* from the logs' numbers to the printed one; empty if there is no number */
};

/* formats: those of the audit. */
void how_of(struct arena *arena, const struct cell_audit *cell, struct how *ret_how);

/* Why a sample does not count, in words: "before the window: skip 2". */
struct str how_use_words(struct arena *arena, const struct rule *rule, enum sample_use use);
/* "5 samples of time in s: 3 counted; 2 skipped: one of the first 2", of a log that has uses. */
struct str how_samples_words(struct arena *arena, const struct rule *rule,
                             const struct how_log *log);

#endif
