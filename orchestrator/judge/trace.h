/* SPDX-License-Identifier: Apache-2.0 */
/* How a cell's number follows from its logs: which samples count, and the arithmetic step by step, with the numbers that the
   audit itself computed. Pure; lives in the arena given, borrows the audit. */
#pragma once

#include "judge/audit.h"

struct trace_step {
    struct str words; /* "543.9 / 98: mean of 98 samples of ips" */
    double value;     /* NAN: the words say it all */
};
struct trace_steps {
    struct trace_step *items;
    size_t n;
};

struct trace_log {
    const struct series *series; /* that the rule takes; NULL: there is none */
    enum sample_use *uses;       /* one per sample; NULL if the rule does not apply */
    size_t n_of[USE_BEFORE_LAST + 1];
    struct trace_steps steps;
    double value;    /* INFINITY: the run did not succeed; NAN: none */
    struct str why;  /* why it has no number, or did not succeed */
    bool is_dropped; /* dropped by an olympic mean of several */
};

struct trace {
    const struct rule *rule; /* NULL: none applies */
    struct trace_log *logs;  /* as many as the cell's */
    /* From the logs' numbers to the printed one; empty if there is no number. */
    struct trace_steps steps;
};

/* formats: those of the audit. */
void trace_of(struct arena *arena, const struct cell_audit *cell, struct trace *ret_trace);

/* Why a sample does not count, in words: "before the window: skip 2". */
struct str trace_use_words(struct arena *arena, const struct rule *rule, enum sample_use use);
/* "5 samples of time in s: 3 counted; 2 skipped: among the first 2", of a log that has uses. */
struct str trace_samples_words(struct arena *arena, const struct rule *rule,
                               const struct trace_log *log);
