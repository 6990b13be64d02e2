/* SPDX-License-Identifier: Apache-2.0 */
/* Which convolutions are fused, by what the device at hand does faster: at each site the calls as they are and as they would be are given
   to the backend (core/forms.h). Sites are decided one after the other in the order of graph_fuse, each with all before it as decided:
   what does not pay by itself is not taken for the sake of what could follow. */
#ifndef GRAPH_FUSE_CHOOSE_H
#define GRAPH_FUSE_CHOOSE_H

#include "graph/fuse.h"

struct fuse_asked {
    const struct fuse_support *support; /* borrowed: what is not in it is not asked for */
    const struct backend *backend; /* borrowed; without `compare` all that is supported is fused */
    bool keeps_outputs;            /* as in struct fuse_policy */
};

/* Sites of the patterns that a library's convolutions do, by what was said of them; those that the support leaves out are in none. */
struct fuse_tally {
    int n_sites[FUSE_PATTERN_COUNT][FORM_CHOICE_COUNT];
};

/* Every site that the support allows, in the order of graph_fuse, with is_fused as it was chosen. `graph` is finished and is used up: give the list to graph_fuse_listed with a graph that is
   built anew. Ranks choose each for itself; where they must run the same calls, one rank's list is for all. */
MUST_CHECK int fuse_choose(struct arena *arena, struct graph *graph, const struct fuse_asked *asked,
                           struct fuse_list *ret_list, struct fuse_tally *ret_tally,
                           struct err *err);

#endif
