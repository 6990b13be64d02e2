/* SPDX-License-Identifier: Apache-2.0 */
/* A round of MLPerf Training as its repository holds it: SUBMITTER/results/SYSTEM/BENCHMARK/result_*.txt, one log a run, next to it where
   there is one scaling.json; SUBMITTER/systems/SYSTEM.json describes the machine. And the table of its results. */
#ifndef DRAFT_ROUND_H
#define DRAFT_ROUND_H

#include "base/lanes.h"
#include "log/format.h"
#include "report/report.h"

#define ROUND_FORMAT "mlperf-training"
#define ROUND_RULE   "mlperf-training/result"

struct round_source {
    const char *folder; /* the checked out repository */
    const char *root;   /* of manifests/formats */
    struct str *files;  /* that its commit holds, relative; sorted */
    size_t n_files;
    const struct lanes *lanes;
};

struct round_log {
    struct str path; /* below the repository */
    struct str sha256;
    const struct measurement *measurement; /* NULL: not there, or not readable */
    struct str why;                        /* then: why */
    bool is_absent;
};

struct machine { /* as its submitter describes it; an empty text or -1 where that does not say */
    struct str path; /* of the description; NULL: there is none */
    struct str name, submitter, division, status, framework, accelerator, cpu, os, interconnect;
    struct str cuda, driver, nccl, cudnn;
    int64_t nodes, per_node;
};

struct submission { /* one result as it was handed in */
    struct str folder, submitter, system_folder, benchmark;
    const struct machine *machine;
    struct round_log *logs;
    size_t n_logs, n_absent;
    struct factor factor;
    double minutes; /* INFINITY or NAN: there is no score; why says why */
    struct str why;
};

struct round {
    struct submission *items; /* sorted by folder */
    size_t n;
};
MUST_CHECK int round_read(struct arena *arena, const struct round_source *from,
                          struct round *ret_round, struct err *err);

/* One folder of result_*.txt of whoever's. ERR_NOT_FOUND where it holds none. */
MUST_CHECK int submission_read(struct arena *arena, const char *root, const char *folder,
                               const struct lanes *lanes, struct submission *ret_submission,
                               struct err *err);

/* One result of the table, as it is printed there. */
struct round_row {
    struct str round, division, availability, submitter, machine, benchmark, minutes, accelerator,
        framework;
    double published;
    int64_t accelerators;
    size_t line;
};
struct round_rows {
    struct round_row *items;
    size_t n;
};
/* CSV with these columns: round, division, availability, submitter, machine, benchmark, result_min, accelerators, accelerator, framework. */
MUST_CHECK int round_rows_read(struct arena *arena, struct str text, const char *name,
                               struct round_rows *ret_rows, struct err *err);

/* Which submission a row is of. */
struct round_match {
    const struct submission *submission; /* NULL: none */
    struct str how;                      /* in words */
};
/* Of the rows of one round, in their order; each submission is at most one row's. */
void round_match(struct arena *arena, const struct round *round, const struct round_row *rows,
                 size_t n, struct round_match *ret_matches);

#endif
