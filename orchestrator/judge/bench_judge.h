/* SPDX-License-Identifier: Apache-2.0 */
/* Judges everything that nodes bench measured: each node against its group, each link against the others. Used for new measurements
   (fleet/bench_nodes.h) and for a document that is read again (judge/bench_doc.h). Pure. */
#ifndef JUDGE_BENCH_JUDGE_H
#define JUDGE_BENCH_JUDGE_H

#include "judge/node_bench.h"

/* From one node to another, in messages of one size. */
struct bench_link {
    size_t from, to;
    int64_t size_bytes;
    struct bench_figure figure;
};

struct bench_all {
    const struct str *groups;      /* of each node */
    struct bench_figure **figures; /* of each node: BENCH_MEASURES, summed where they have values */
    size_t n_nodes;
    struct bench_link *links; /* summed likewise */
    size_t n_links;
};

/* A node's network figure is the median of its links' medians. False: none of its links was measured. */
bool bench_sum_links(struct arena *arena, const struct bench_all *all, size_t node,
                     const struct bench_measure *measure);

/* Gives every figure its verdict. Links that are not compared keep theirs. */
void bench_judge(struct arena *arena, const struct bench_limits *limits,
                 const struct bench_all *all);

/* "node1 to node2" */
struct str bench_link_words(struct arena *arena, struct str from, struct str to);

#endif
