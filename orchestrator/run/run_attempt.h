/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt of a repeat, on one or more nodes, and its results. Only run/run*.c include it. */
#pragma once

#include "run/run_impl.h"

/* How it ended. Collected are EXITED (each job by itself, or after a peer that failed) and DEADLINE; lost are LOST (a job left
   no status, or was not started in time), STOPPED (by a signal to this process, which is not counted against the repeat) and
   NODE (a node failed). */
enum attempt_end { END_NONE, END_EXITED, END_DEADLINE, END_LOST, END_STOPPED, END_NODE };

struct watch {         /* of a job's monitor */
    const char *id;    /* NULL: not asked for yet */
    struct strbuf log; /* all zeros: nothing read yet */
    bool is_over;
};

enum rank_job_phase {
    RANK_JOB_FIND,  /* is its job there already? */
    RANK_JOB_READY, /* absent: waits until the others are known to be absent, too */
    RANK_JOB_START,
    RANK_JOB_WAIT,
    RANK_JOB_LOOK, /* between two polls: the log's next part */
    RANK_JOB_TERM,
    RANK_JOB_KILL,
    RANK_JOB_REAP, /* it is over: ends whatever it left running */
    RANK_JOB_READ, /* the rest of its log */
    RANK_JOB_DIGEST,
    RANK_JOB_UNWATCH, /* what its monitor said */
    RANK_JOB_OVER,
    RANK_JOB_GONE, /* its node cannot be reached: err says why */
};

struct rank_job { /* one job of the attempt */
    struct launch_job launch;
    size_t node;           /* index into the fleet */
    struct remote *remote; /* borrowed from the fleet's node, or from the attempt */
    enum rank_job_phase phase;
    bool is_ended;
    int exit_status; /* once ended */
    char left[128];  /* of the report of its end */
    int64_t next_look_ns;
    int fd;           /* of its log here; -1: none yet */
    const char *part; /* path of that */
    uint64_t log_bytes, log_lines;
    struct digest digest; /* of what was read */
    char sha256[SHA256_HEX_SIZE];
    struct watch watch;
    int64_t started_ns; /* by us; 0: it was found */
    char there[SHA256_HEX_SIZE];
    struct err err;
};

struct attempt {
    struct runner *r;
    struct unit *unit;
    struct remote *batch; /* LAUNCHER_SLURM: owned; its one job goes through it */
    struct rank_job *jobs;
    size_t n_jobs;
    enum { ATTEMPT_RUNS, ATTEMPT_STOPPING, ATTEMPT_KILLING } way;
    bool is_noted_lost;   /* J_LOST is in the journal */
    enum attempt_end end; /* why it is being stopped, then how it ended */
    int exit_status;      /* of the job that failed first, or was ended by a signal; 0: none did */
    size_t failed_job;    /* that one */
    int64_t deadline_ns;  /* monotonic */
    int64_t kill_ns;      /* once it is ATTEMPT_STOPPING: KILL from then on */
    int64_t peers_ns;     /* jobs still running then are stopped; 0: none has failed */
    struct event_fields fields;
};

/* Journals the attempt and makes its jobs. The unit is placed. */
MUST_CHECK int attempt_begin(struct attempt *a, struct runner *r, struct unit *unit,
                             struct err *err);
/* STEP_DONE: it is over everywhere (a->end says how), logs are read; collect it or lose it. */
enum step attempt_step(struct attempt *a, struct err *err);
/* TERM now, KILL after a grace. */
void attempt_stop(struct attempt *a, enum attempt_end why);
void attempt_release(struct attempt *a);
/* The name of the node that the job is on. */
struct str attempt_node(const struct attempt *a, const struct rank_job *job);

/* J_LOST, once. */
MUST_CHECK int attempt_note_lost(struct attempt *a, struct err *err);
/* It ended and does not count: its logs and outcome are kept as those of a lost attempt, and it is to be made again. archive: as
   run_make_again. */
MUST_CHECK int unit_set_aside(struct runner *r, struct unit *unit, struct str archive,
                              struct err *err);
/* Free bytes of the run folder's disk are at least these. */
MUST_CHECK int run_expect_disk(const struct runner *r, int64_t bytes, struct err *err);

/* The monitor of a job of an attempt. Whether jobs have monitors: */
bool run_watches(const struct runner *r);
/* Its log becomes evidence, and the node's record says where. */
MUST_CHECK int watch_keep(struct attempt *a, const struct rank_job *job, struct outcome_node *node,
                          struct journal_file *ret_file, struct err *err);
