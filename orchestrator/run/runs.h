/* SPDX-License-Identifier: Apache-2.0 */
/* The runs on this machine, read from their folders without changing anything. */
#pragma once

#include "evidence/rundir.h"
#include "fleet/clean.h"
#include "report/plan.h"

struct run_cell {
    struct str case_id;
    struct str verdict;
    struct str unit; /* NULL: none */
    double value;    /* NAN: none */
};

struct run_repeat { /* as the journal has it */
    struct str case_id;
    int64_t repeat;
    int64_t attempt; /* the last; 0: not begun */
    size_t n_lost;   /* attempts */
    /* "waiting", "running" (or was when its orchestrator ended), "lost", "collected", "ok", or a log's verdict: "nan",
       "no_metric", ... */
    const char *state;
    struct str nodes; /* "node[1-4]", or NULL */
    struct str since; /* time of its last record, RFC 3339; NULL: none */
    struct str why;   /* of what does not count, or was lost; else NULL */
    /* Of run_info_measure: what its log gives so far, by the case's rule. */
    double value; /* NAN: none yet */
    struct str unit;
    size_t n_samples;
    int64_t step, n_steps; /* the last that it printed, of so many; -1: not said */
    double left_s;         /* of a running one, at its pace so far; NAN: not known */
};

struct run_info {
    struct rundir dir;
    const char *name; /* given by --name; NULL: none. Filled by who lists runs: rundir_name_of */
    const char *time; /* of its id, RFC 3339 */
    struct str report;
    enum profile profile;
    bool is_rehearsal;
    const char *state; /* "running", "interrupted", "died", "cancelled", "sealed", RUN_DAMAGED */
    struct str why;    /* of interrupted: the signal or the error; of damaged; else NULL */
    size_t n_done, n_total;     /* repeats */
    size_t n_lost;              /* attempts */
    int64_t exit_status;        /* once sealed, else -1 */
    struct run_repeat *repeats; /* of the steps that are run, in plan order; n_total of them */
    struct run_cell *cells;     /* once there is a result */
    size_t n_cells;
};

/* It is not over and nobody works on it: `reperf resume` continues it. */
bool run_can_resume(const struct run_info *info);
/* Of a sealed run the cells follow from its logs (run/journal_check.h). One whose files are not what a run leaves is in state
   "damaged", and says why; its report is NULL, and it has no repeats and cells. */
#define RUN_DAMAGED "damaged"
void run_info_look(struct arena *arena, const struct rundir *dir, struct run_info *ret_info);

/* Reads the logs that there are, also those that still grow. */
MUST_CHECK int run_info_measure(struct arena *arena, struct clock_src clock, struct run_info *info,
                                struct err *err);

/* A clean_run_fn: by the run's lock and journal below state. One whose files cannot be read is resumable, so that nothing of it
   is thrown away. */
enum clean_run run_use(struct arena *arena, const char *state, struct str run,
                       const char **ret_why);
