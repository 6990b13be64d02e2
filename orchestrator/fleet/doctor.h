/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at nodes before anything is started there: each answers a request to reperf-node (node/facts.h), which judge/checks
   judges. Changes nothing on a node, except that reperf-node is installed as for any job, and that with several nodes a
   listener waits on a port for a moment. */
#pragma once

#include "fleet/checks.h"
#include "fleet/fleet.h"
#include "report/plan.h"

/* What launchers take for their rendezvous. Source: torchrun's documentation. */
#define DOCTOR_PORT_DEFAULT 29500

struct doctor_opts {
    const char *root;
    const struct inventory *inventory;
    const struct report *report; /* NULL: what the inventory asks alone */
    const char *const *globs;    /* which of its cases; none: all */
    size_t n_globs;
    enum profile profile; /* smoke asks for no GPU */
    int64_t port;
    struct clock_src clock;
    const char *work_folder; /* this machine's, for the inventory "local" */
};

struct doctor_result {
    struct node_probes probes;
    struct checks checks;
    struct differences differences;
    struct str *cases; /* the report's */
    size_t n_cases;
    enum err_code cause; /* why the first node, in the inventory's order, was not reached */
};

/* A node that cannot be reached is a failed check, not an error. */
MUST_CHECK int doctor_run(struct arena *arena, const struct doctor_opts *opts,
                          struct doctor_result *ret_result, struct err *err);

/* Asks all nodes of an open fleet: facts, clock, times; no ports. The probes live in the arena. engines: names of container
   engines that are asked, which takes most of the time; "": all. */
MUST_CHECK int doctor_examine(struct arena *arena, struct fleet *fleet, struct clock_src clock,
                              const char *engines, struct node_probes *ret_probes, struct err *err);

/* 0: all required checks pass; else 6, or 5 if a node's host key has changed. A required check that is unknown is not 0
   unless allow_unknown. */
int doctor_exit_status(const struct doctor_result *result, bool allow_unknown);
