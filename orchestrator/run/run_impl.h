/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of run/run. */
#pragma once

#include "base/progress.h"
#include "codec/digest.h"
#include "fleet/fleet.h"
#include "fleet/lease.h"
#include "run/events.h"
#include "run/journal.h"
#include "run/launch.h"
#include "run/run.h"

#define LOST_BY_NODE    "node" /* outcome in J_LOST: a node of it could not be reached any more */
#define RUN_CHUNK_BYTES (256u << 10)
#define RUN_TICK_NS     (50 * NS_PER_MS)

enum unit_state {
    UNIT_TODO,
    UNIT_STARTED,
    UNIT_FINISHED,
    UNIT_PARSED,
    UNIT_SPARE /* the repeats before it are enough */
};

struct unit { /* one repeat of one step */
    const struct plan_step *step;
    int64_t repeat;
    int64_t attempt; /* of the last that was started; 0: none */
    enum unit_state state;
    int64_t started_wall_ns; /* of that attempt */
    /* The nodes that it runs on, in rank order: indices into the fleet; NULL: not placed yet. */
    const size_t *nodes;
    int n_lost;       /* attempts that this orchestrator lost */
    bool is_given_up; /* by this orchestrator: err says why; resume tries again */
    struct err err;
    bool counts;   /* once parsed */
    int n_retries; /* --retry-failed: of this orchestrator */
    /* SHA-256 of the archive in which the attempt before counted; ptr NULL: in none. */
    struct str replaces;
    struct journal_file commands; /* of that attempt; name NULL: it has no such file */
};

/* Whether an attempt is under way or still to come. */
static inline bool unit_is_open(const struct unit *unit)
{
    return unit->state < UNIT_FINISHED;
}

struct run_orphan { /* an attempt that was given up while a node of it could not be reached */
    const char *job_id;
    const size_t *nodes;
    size_t n_nodes;
};

struct runner {
    struct arena *arena;
    const struct run_opts *opts;
    struct rundir dir;
    struct frozen frozen;
    struct journal journal;
    struct map files; /* that the journal had when it was opened */
    struct events events;
    struct loop loop;
    struct fleet fleet;     /* the nodes of the frozen inventory */
    struct run_node *nodes; /* as many */
    struct progress progress;
    char *chunk;                  /* of a log on its way, RUN_CHUNK_BYTES; in the arena */
    const char *const *child_env; /* what a local job inherits; in the arena */
    struct unit *units;
    size_t n_units;
    struct repeat_result *repeats; /* once parsed, each at its place (result_repeat_at) */
    VEC(struct run_orphan) orphans;
    VEC(struct runtime_image) images; /* on the nodes */
    VEC(const char *) tokens; /* each stands in an argv for a staged thing's path on the node */
    /* fleet_remote_new; tests have their own nodes */
    struct remote *(*open)(struct loop *loop, const struct inventory *inventory,
                           const struct inventory_node *node, struct err *err);
    bool has_leases;
    int64_t lease_due_ns;
    size_t n_judged; /* cases with a verdict in the journal */
    int stop_signal; /* 0: none yet */
    int n_signals;
    bool was_sealed;
    struct str sealed; /* the last archive's SHA-256 */
    int n_archives;    /* that were sealed and are kept beside the one to come */
};

struct run_node {
    bool is_busy; /* an attempt is on it */
    struct lease_op lease;
    struct remote *keeper; /* owned: the connection that renews its lease; NULL: not needed yet */
    struct str holder;     /* another run that has it; empty: none */
    bool is_due;           /* its lease is to be renewed, or is being renewed */
    int64_t taken_ns;      /* the lease, last */
    const char **paths;    /* there, of each of the run's tokens; NULL: none were staged */
    bool is_bad;           /* it failed: nothing more is placed on it by this orchestrator */
    bool is_spare;         /* is_bad, as the run has no work for it, or another run has it */
};

/* ---- all of them ---- */

/* The record of a repeat's attempt, and the fields of its events, but for what happened. */
struct journal_record unit_record(const struct unit *unit, enum journal_state state);
struct event_fields unit_fields(const struct unit *unit);

/* Writes a file below the evidence folder, synced, and names it for the record that announces it. The name is NUL-terminated. */
MUST_CHECK int run_put_file(struct runner *r, const char *name, struct str text,
                            struct journal_file *ret_file, struct err *err);
/* The same of a file that is derived, for result.h; ctx: a run_put. */
struct run_put {
    struct runner *r;
    struct journal_file file; /* the last that was written */
};
int run_put_derived(void *ctx, const char *name, struct str text, struct err *err);

/* Executes every unit as far as possible. 0 with stop_signal set if it was stopped. */
MUST_CHECK int run_schedule(struct runner *r, struct err *err);

/* Those that are collected and not yet parsed. */
MUST_CHECK int run_parse_collected(struct runner *r, struct err *err);

/* ---- where it is ---- */

/* The unit's attempt was set aside; archive: of the run as it was sealed with it, or NULL. */
void run_make_again(struct runner *r, struct unit *unit, struct str archive);

void runner_cleanup(struct runner *r); /* CLEANUP(runner) */
/* Below the run's folder: what has come so far of the log of a repeat's job, by result_repeat_at and the job's number. */
#define RUN_PART_NAME "collect-%zu-%zu.part"
/* Whether a unit is open. */
bool run_has_work(const struct runner *r);
/* Needs the frozen plan and the arena only. */
void run_make_units(struct runner *r);
int64_t run_wall_of(struct str rfc3339); /* ns since 1970; 0: it is no time */

/* ---- nodes ---- */

/* Opens the fleet of the frozen inventory. */
MUST_CHECK int run_nodes_open(struct runner *r, struct err *err);
/* Leases the nodes and gives them what the steps need. 0 with stop_signal set where it was stopped. */
MUST_CHECK int run_provision(struct runner *r, struct err *err);
/* Images, program and data onto the nodes. */
MUST_CHECK int run_stage(struct runner *r, struct err *err);
/* What stands for the absolute path on the node in an argv until the job's node is known. */
#define RUN_TOKEN_PROGRAM "/@reperf-train@"
#define RUN_TOKEN_DATA    "/@reperf-data@"

/* Each turn of whoever waits: those that are due are renewed; a node whose lease is another's by now is left out. ctx: the
   runner. */
void run_keep_leases(void *ctx);
/* Gives leases back, and removes the jobs' folders if the run is over. Failures are logged only. */
void run_leave_nodes(struct runner *r, bool is_over);
/* This orchestrator no longer uses the node. */
void run_leave_out(struct runner *r, size_t node_idx, const struct err *why);
bool run_is_node_error(const struct err *err);
MUST_CHECK int run_judge_nodes(struct runner *r, int n_failed, struct err *err);
/* The unit's last attempt may still run somewhere: it is ended when its nodes answer again. */
void run_note_orphan(struct runner *r, const struct unit *unit);
/* The nodes that a record of J_STARTED names, again. */
MUST_CHECK int run_place_again(struct runner *r, struct unit *unit,
                               const struct journal_record *record, struct err *err);
/* Ends the jobs of an attempt, wherever they are. */
MUST_CHECK int run_kill_job(struct runner *r, const struct run_orphan *job, struct err *err);
/* The jobs as data, below the evidence folder, before they are started. */
MUST_CHECK int run_write_commands(struct runner *r, struct unit *unit,
                                  const struct launch_job *jobs, size_t n, struct err *err);
/* Id of the jobs of an attempt; on a node that several runs share, the run's id comes first. */
char *run_job_id(struct runner *r, const struct unit *unit);
/* Slurm, as one attempt's own. NULL and *err where it cannot be asked. */
struct remote *run_batch_open(struct runner *r, struct err *err);
/* Its jobs, with RUN_TOKEN_* and token_of() for paths on a node. launch: what of it the plan does not say; program and env are
   the local node's, image NULL where it was not provided or is not needed. Pure but for the arena. */
MUST_CHECK int run_launch(struct launch launch, const struct plan *plan,
                          struct launch_job **ret_jobs, size_t *ret_n, struct err *err);
/* argv, environment and cleanup of each job of the unit's attempt. */
MUST_CHECK int run_jobs(struct runner *r, const struct unit *unit, struct launch_job **ret_jobs,
                        size_t *ret_n, struct err *err);
