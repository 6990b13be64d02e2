/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a log is the whole record of one run, and if not, why: the one table of causes, and the one function that looks at the
   samples of a run. measure, audit and run judge by it alone. Pure. */
#ifndef JUDGE_WHOLE_H
#define JUDGE_WHOLE_H

#include "judge/series.h"

struct run_seen { /* one run of one log */
    const struct series *primary;
    int32_t run;
    int64_t total_steps; /* that it was to make; -1 not said */
    int64_t done_step;   /* that it says it has made, beside the samples; -1 none */
    bool repeats;        /* a step may be printed again */
    bool has_steps;      /* the samples' steps are printed, not counted */
    bool is_off_grid;    /* printed by the clock: intervals of steps show no gap */
    int64_t epochs_left; /* where only epochs are counted: those that are missing */
    bool shows_begin;    /* its first step tells whether lines are missing before it */
    int64_t
        first_by; /* the step at which its tool prints its first line at the latest; 0: its interval */
    int64_t log_interval; /* steps from line to line that the log states; 0 not said */
    bool has_end;         /* its last step tells how far the run came */
    int64_t n_before;     /* steps made when the first is printed: 1 where that is called 0 */
    int64_t epoch_steps;  /* of an epoch, where steps are counted over all of them; 0 not so */
    int64_t first_step;   /* of its first line; filled in by whole_look */
    int64_t edge;         /* the last step of an epoch where each counts anew, -1 none; likewise */
    bool sees_more;       /* since DERIVATION_GAPS: few lines and the first of an epoch show gaps */
    bool sees_ends;       /* since DERIVATION_ENDS: a run's last line, and its last epoch */
    bool knows_epochs;    /* how many it makes is said */
};

const char *cause_name(enum cause cause);
/* Of the first cause; PARSE_OK where there is none. */
enum parse_verdict causes_verdict(const struct causes *causes);
/* One sentence about the first cause; empty where there is none. */
struct str causes_why(struct arena *arena, const struct causes *causes);
/* Adds what the run's samples show. */
void whole_look(const struct run_seen *run, struct causes *causes);
/* Once more, first at line or step `at`. */
void cause_add(struct causes *causes, enum cause cause, int64_t at);

#endif
