/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions under which a run measures, as found on the machine: environment/NODE.json. Environment variables are taken
   by an allow-list; host names, users and paths outside the program's own are left out. */
#pragma once

#include "base/clock.h"
#include "evidence/code.h"
#include "fleet/fleet.h"

struct environment_opts {
    struct clock_src clock;
    /* Of this machine alone: self is NULL for nodes. */
    const char *self;           /* reperf */
    const char *train_path;     /* reperf-train, or NULL */
    const char *root;           /* of the source tree, for its commit */
    const char *work_folder;    /* where the run's files will lie */
    const struct code *command; /* of somebody's own command; or NULL */
};

struct node_environment {
    struct str name; /* of the node */
    struct str json; /* environment/NAME.json */
};
/* One for each node that was reached, n_nodes entries at most. What a machine says beyond the conditions (GPU clocks, caps,
   limits, ports) is under "facts". */
MUST_CHECK int environment_of_nodes(struct arena *arena, struct fleet *fleet,
                                    const struct environment_opts *opts,
                                    struct node_environment *ret_items, size_t *ret_n,
                                    struct err *err);
/* The same of this machine, asked as any node is. */
MUST_CHECK int environment_local(struct arena *arena, const struct environment_opts *opts,
                                 struct str *ret_json, struct err *err);

/* GPUs that the NVIDIA driver of this machine shows. */
int64_t environment_gpus(void);
