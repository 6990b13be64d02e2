/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/train.h"

#include "base/rng.h"

void synthetic_batch(struct net *net, int64_t n_classes, uint64_t seed, int64_t idx)
{
    int input = graph_find(net->graph, "input");
    int labels = graph_find(net->graph, "labels");
    int64_t n_pixels = shape_count(&net->graph->values[input].shape);
    int64_t n_labels = shape_count(&net->graph->values[labels].shape);
    CLEANUP(free) double *pixels = xcalloc((size_t)n_pixels, sizeof(double));
    CLEANUP(free) int64_t *label = xcalloc((size_t)n_labels, sizeof(int64_t));
    struct rng rng;
    rng_init(&rng, seed);
    rng_init(&rng, rng_u64(&rng) ^ (uint64_t)idx);
    for (int64_t i = 0; i < n_labels; i++) {
        label[i] = (int64_t)rng_below(&rng, (uint64_t)n_classes);
    }
    for (int64_t i = 0; i < n_pixels; i++) {
        pixels[i] = rng_normal(&rng);
    }
    net_write_f64(net, input, pixels);
    net_write(net, labels, label);
}
