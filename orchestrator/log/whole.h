/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a log is the whole record of one run, and if not, why: the one table of causes, and the one function that looks at the
   samples of a run. measure, audit and run judge by it alone. Pure. */
#ifndef LOG_WHOLE_H
#define LOG_WHOLE_H

#include "log/series.h"

struct run_seen { /* one run of one log */
    const struct series *primary;
    int32_t run;
    int64_t total_steps;  /* that it was to make; -1: not stated */
    int64_t done_step;    /* that it says it has made, apart from the samples; -1: none */
    bool repeats;         /* a step may be printed again */
    bool has_steps;       /* the samples' steps are printed, not counted */
    bool is_off_grid;     /* printed by the clock: intervals of steps reveal no gap */
    int64_t epochs_left;  /* if only epochs are counted: the missing ones */
    bool shows_begin;     /* its first step shows whether lines are missing before it */
    int64_t first_by;     /* its tool's first line has at most this step; -1: its interval */
    int64_t log_interval; /* steps from line to line as the log states; 0: not stated */
    bool has_end;         /* its last step shows how far the run came */
    int64_t n_before;     /* steps made when the first is printed: 1 if that is step 0 */
    int64_t epoch_steps;  /* of an epoch, if steps are counted over all of them; else 0 */
    int64_t first_step;   /* of its first line; filled in by whole_look */
    int64_t edge; /* the last step of an epoch if each counts from the start, -1: none; likewise */
    bool knows_epochs; /* the number of epochs is stated */
};

const char *cause_name(enum cause cause);
enum parse_verdict cause_verdict(enum cause cause);
/* Of the first cause; PARSE_OK if there is none. */
enum parse_verdict causes_verdict(const struct causes *causes);
/* One sentence about the first cause; empty if there is none. */
struct str causes_why(struct arena *arena, const struct causes *causes);
/* Adds what the run's samples show. */
void whole_look(const struct run_seen *run, struct causes *causes);
/* Counts the cause once more, first at line or step `at`. */
void cause_add(struct causes *causes, enum cause cause, int64_t at);

#endif
