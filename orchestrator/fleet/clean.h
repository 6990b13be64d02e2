/* SPDX-License-Identifier: Apache-2.0 */
/* What runs have left on nodes when nobody works on them any more: jobs, containers, leases, half-written files, jobs of
   Slurm. First everything is listed with the intended action; then, if wanted, the actions are carried out. A run held by an
   orchestrator on this machine is left alone, and so is one of another machine that renewed its lease on that node recently.
   Memory is the arena's. */
#pragma once

#include "fleet/fleet.h"

#define CLEAN_ITEMS_MAX   65536 /* in all */
#define CLEAN_PARTIAL_MIN 60    /* minutes for which nothing was written to it */

enum clean_kind { CLEAN_JOB, CLEAN_CONTAINER, CLEAN_LEASE, CLEAN_PARTIAL, CLEAN_BATCH };
enum clean_action { CLEAN_KEEP, CLEAN_REMOVE, CLEAN_END /* and remove */ };

struct clean_item {
    enum clean_kind kind;
    enum clean_action action;
    struct str run;  /* NULL: of none */
    struct str name; /* job id without the run; container's name; path */
    struct str id;   /* what the node knows it by */
    /* "running", "orphaned" (its wrapper is gone, its program is not), "ended" or "lost"; a container has the engine's word, a
       lease "N s old". */
    const char *state;
    const char *why; /* the reason of CLEAN_KEEP */
    bool is_done;
};

struct clean_node {
    struct clean_item *items; /* sorted by kind and id */
    size_t n, n_max;
    struct err err; /* why it could not be looked at; ERR_NONE: it was */
};

enum clean_run { CLEAN_RUN_UNKNOWN, CLEAN_RUN_HELD, CLEAN_RUN_RESUMABLE, CLEAN_RUN_OVER };

/* What this machine knows of a run; for CLEAN_RUN_HELD *ret_why, in the arena, says who works on it. run_use (run/runs.h). */
typedef enum clean_run (*clean_run_fn)(struct arena *arena, const char *state, struct str run,
                                       const char **ret_why);

struct clean_opts {
    const char *state; /* this machine's: where runs live */
    clean_run_fn use_of_run;
    struct str run;        /* this run only; NULL: all */
    const char *jobs_root; /* where the local node's runs have their folders; NULL: over SSH */
};

struct clean_list {
    struct clean_opts opts;
    struct clean_node *nodes; /* as many and in the order of the fleet */
    size_t n_nodes;
    /* The node with Slurm's jobs: its login node, else the first one for this machine; SIZE_MAX: no Slurm. */
    size_t batch_idx;
};

/* Returns how many nodes failed (fleet node->err says why), or -1. */
MUST_CHECK int clean_scan(struct arena *arena, struct fleet *fleet, const struct clean_opts *opts,
                          struct clean_list *ret_list, struct err *err);

/* Parses a line of a node's leftovers: KIND, its state except for a partial, then its name, separated by tabs. Decides
   nothing; the strings are in the line and the arena. ERR_NODE for any other line. */
MUST_CHECK int clean_read_line(struct arena *arena, struct str line, struct clean_item *ret_item,
                               struct err *err);

/* Carries out the actions of the list, and sets is_done. A node that could not be scanned has failed here too. As
   clean_scan. */
MUST_CHECK int clean_apply(struct fleet *fleet, struct clean_list *list, struct err *err);

extern const char *const CLEAN_KIND_NAMES[CLEAN_BATCH + 1]; /* "job", ... */
extern const char *const CLEAN_ACTION_NAMES[CLEAN_END + 1]; /* "keep", "remove", "end" */
