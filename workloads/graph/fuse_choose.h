/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions are fused, by what the device does faster: at each site the plain and the fused calls are given to the backend
   (core/forms.h). Sites are decided one after the other in the order of graph_fuse, each with all earlier decisions applied: a fusion
   that does not pay by itself is not made for the sake of later ones. */
#pragma once

#include "graph/fuse.h"

struct fuse_asked {
    const struct fuse_support *support; /* borrowed: what it lacks is not asked for */
    const struct backend *backend; /* borrowed; without `compare` all that is supported is fused */
    bool keeps_outputs;            /* as in struct fuse_policy */
};

/* Sites of the patterns that a library's convolutions do, by the backend's answer; those that the support excludes are in none. */
struct fuse_tally {
    int n_sites[FUSE_PATTERN_COUNT][FORM_CHOICE_COUNT];
};

/* Every site that the support allows, in the order of graph_fuse, with is_fused as chosen. `graph` is finished and is used up: give the list to graph_fuse_listed with a new graph. Each rank
   chooses by itself; where ranks must run the same calls, one rank's list is used by all. */
MUST_CHECK int fuse_choose(struct arena *arena, struct graph *graph, const struct fuse_asked *asked,
                           struct fuse_list *ret_list, struct fuse_tally *ret_tally,
                           struct err *err);
