/* SPDX-License-Identifier: Apache-2.0 */
/* The least that a training step must compute and move through device memory, counted from the graph: no step can be
   faster than a GPU's peaks allow for that.

   Counted as if everything that can be fused were: a convolution or matrix product reads its operands once and writes
   its result once; a batch norm's sums are computed by whoever writes its input or its gradient, and it is applied by
   the convolution that reads it, or in the sum that does, except on a GPU without such convolutions, where its statistics
   and its sums are a pass each, and only a sum applies it; other element-wise operations cost nothing extra; sums of
   several terms, including upsampled ones, are one pass; concatenated channels are written in place. A mask costs what
   it is computed from. Weights are moved once a use, and by the optimiser. Channels are not rounded up. */
#pragma once

#include "graph/graph.h"

enum floor_pass { FLOOR_FORWARD, FLOOR_BACKWARD, FLOOR_WEIGHT, FLOOR_UPDATE };

struct floor_part {
    int op; /* of the graph; -1: the optimiser */
    enum floor_pass pass;
    double flops, bytes;
};

struct floor_count {
    struct floor_part *parts; /* in the arena */
    int n_parts;
    double flops, bytes;
};

/* The graph is finished, its types are those of the device. n_moments: what the optimiser keeps of each parameter. fuses_norms: the
   GPU has convolutions with batch norms in them (peak_fuses_norms). */
void floor_of_graph(struct arena *arena, const struct graph *graph, int n_moments, bool fuses_norms,
                    struct floor_count *ret_count);

/* Each part takes the longer of its two times; seconds. */
double floor_seconds(const struct floor_count *count, double flops_per_s, double bytes_per_s);
