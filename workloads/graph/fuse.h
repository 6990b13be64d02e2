/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites the calls of a finished graph so that less goes through memory. What is computed stays the same except for
   rounding.

   A pattern is fused at a site, which is an op, where the calls allow it and the policy wants it. The patterns are
   tried in the order of the enum, each at every op, because some need the result of others: a convolution that
   normalises its input needs the statistics of the convolution before it. */
#pragma once

#include "graph/graph.h"

enum fuse_pattern {
    FUSE_UPSAMPLE_LOSS, /* loss: upsampling and cross-entropy in one; the large logits are never a value */
    FUSE_BN_ADD, /* batch norm: with the addition that is its only reader, and the addition's ReLU */
    FUSE_MASK,   /* batch norm with ReLU: backward recomputes the mask from x and does not read y */
    FUSE_CONV_STATS, /* convolution: sums for the following batch norm, which is then one pass */
    FUSE_NORM_CONV, /* convolution: normalises its input, in forward and in its weight gradient; the normalised value is
                       then never stored */
    FUSE_CONV_BN_BWD, /* convolution: its data gradient is masked and summed for the preceding batch norm */
    FUSE_BN_PAIR,       /* batch norm that adds: also normalises what it adds */
    FUSE_DROP_ADD_NORM, /* layer norm: with the addition before it, and the dropout of what is added */
    FUSE_PATTERN_COUNT
};

const char *fuse_pattern_name(enum fuse_pattern pattern); /* "conv_stats" */

struct fuse_policy {
    /* Asked once for every site where the calls allow the pattern. */
    bool (*wants)(void *self, const struct graph *graph, enum fuse_pattern pattern, int op);
    void *self;
    bool
        keeps_outputs; /* named outputs stay readable, even at the cost of a call; otherwise those that fusion makes
                          unnecessary are dropped */
};

struct fuse_report {
    int n_sites[FUSE_PATTERN_COUNT];
    int n_fused[FUSE_PATTERN_COUNT];
};

/* After graph_finish, before any plan is made. ret_report may be NULL. */
MUST_CHECK int graph_fuse(struct graph *graph, const struct fuse_policy *policy,
                          struct fuse_report *ret_report, struct err *err);

/* What a library's fused convolutions support; all other patterns are supported everywhere. */
struct fuse_support {
    enum dtype dtype;         /* of a graph whose convolutions are fused at all */
    int64_t channel_pad;      /* channels are stored rounded up to this ... */
    int64_t channel_multiple; /* ... and must then be a multiple of this */
    int64_t dilation_max;
    bool adds_strided; /* FUSE_CONV_BN_BWD at stride 2 with another gradient or an addition */
};

/* Source: research/cuda.md, section 2.2: cuDNN 9.19 planning for an H100; 1x1 and 3x3, one group, stride 1 or 2.
   tests/unit/test_wl_cuda_plans.c checks it again. */
struct fuse_support fuse_support_hopper(void);
bool fuse_supports(const struct fuse_support *support, const struct graph *graph,
                   enum fuse_pattern pattern, int op);

struct fuse_choice {
    enum fuse_pattern pattern;
    int op;
    bool is_fused;
    bool is_seen; /* the site has come up in the last graph */
};
struct fuse_list {
    struct fuse_choice *choices;
    int n_choices;
    bool keeps_outputs; /* as in struct fuse_policy */
};

/* Follows the list; a site that is not in it is left alone. An error if one that is to be fused never comes up.
   ret_report may be NULL. */
MUST_CHECK int graph_fuse_listed(struct graph *graph, struct fuse_list *list,
                                 struct fuse_report *ret_report, struct err *err);
