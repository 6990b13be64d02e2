/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/train.h"

#include "base/rng.h"

/* Patches of one class each, a twentieth of them ignored: a network that sees at a quarter of the resolution can learn them. */
#define PATCH_PIXELS   16
#define IGNORED_ONE_IN 20

static int64_t draw_label(struct rng *rng, const struct model *model)
{
    int64_t label = (int64_t)rng_below(rng, (uint64_t)model->n_classes);
    bool may_ignore = model->ignore_label != LOSS_IGNORE_NONE;
    return may_ignore && rng_below(rng, IGNORED_ONE_IN) == 0 ? model->ignore_label : label;
}

static void draw_patches(struct rng *rng, const struct model *model, const struct shape *shape,
                         int64_t *labels)
{
    int64_t height = shape->dim[1];
    int64_t width = shape->dim[2];
    for (int64_t i = 0; i < shape_count(shape); i++) {
        int64_t row = i / width % height;
        int64_t column = i % width;
        bool is_corner = row % PATCH_PIXELS == 0 && column % PATCH_PIXELS == 0;
        int64_t above = (i - row % PATCH_PIXELS * width) - column % PATCH_PIXELS;
        labels[i] = is_corner ? draw_label(rng, model) : labels[above];
    }
}

void synthetic_batch(struct net *net, const struct model *model, uint64_t seed, int64_t idx)
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
    if (net->graph->values[labels].shape.n_dims == 3) {
        draw_patches(&rng, model, &net->graph->values[labels].shape, label);
    } else {
        for (int64_t i = 0; i < n_labels; i++) {
            label[i] = draw_label(&rng, model);
        }
    }
    for (int64_t i = 0; i < n_pixels; i++) {
        pixels[i] = rng_normal(&rng);
    }
    net_write_f64(net, input, pixels);
    net_write(net, labels, label);
}

void set_step(struct net *net, int64_t step)
{
    int id = graph_find(net->graph, "step");
    if (id != NO_VALUE) {
        net_write(net, id, &step);
    }
}
