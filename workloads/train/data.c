/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/train.h"

#include "base/rng.h"
#include "models/tokens.h"

/* Patches of one class each, a twentieth of them ignored: a network whose output has a quarter of the resolution can learn
   them. */
#define PATCH_PIXELS   16
#define IGNORED_ONE_IN 20

/* What can be learnt from the pixels: bit k of the class raises or lowers channel k. */
#define LEARNABLE_CLASSES 8   /* three bits, and no model has fewer classes */
#define LEARNABLE_LIFT    1.5 /* of pixels whose deviation is 1 */

static int64_t draw_label(struct rng *rng, const struct model *model, int64_t n_classes)
{
    int64_t label = (int64_t)rng_below(rng, (uint64_t)n_classes);
    bool may_ignore = model->ignore_label != LOSS_IGNORE_NONE;
    return may_ignore && rng_below(rng, IGNORED_ONE_IN) == 0 ? model->ignore_label : label;
}

static void draw_patches(struct rng *rng, const struct model *model, int64_t n_classes,
                         const struct shape *shape, int64_t *labels)
{
    int64_t height = shape->dim[1];
    int64_t width = shape->dim[2];
    for (int64_t i = 0; i < shape_count(shape); i++) {
        int64_t row = i / width % height;
        int64_t column = i % width;
        bool is_corner = row % PATCH_PIXELS == 0 && column % PATCH_PIXELS == 0;
        int64_t above = (i - row % PATCH_PIXELS * width) - column % PATCH_PIXELS;
        labels[i] = is_corner ? draw_label(rng, model, n_classes) : labels[above];
    }
}

/* Source: vocabulary of bert-base-uncased: [CLS], [SEP], [MASK], and where whole words begin. */
#define TOKEN_CLS     101
#define TOKEN_SEP     102
#define TOKEN_MASK    103
#define WORD_FIRST    1996
#define MASKED_ONE_IN 7 /* BERT hides 15 % of the words, */
#define SEEN_ONE_IN   5 /* of which some stay readable */

/* One sample: each word mostly follows from the previous one, so that a network can learn it; from half the sequence to all of it,
   in two segments. parts[i] is the sample's stretch of part i, zeros. */
static void draw_tokens(struct rng *rng, const struct token_form *form,
                        int64_t *const parts[TOKEN_PARTS])
{
    uint64_t words = (uint64_t)form->vocabulary - WORD_FIRST;
    uint64_t half = (uint64_t)form->sequence / 2;
    int64_t used = form->sequence - (int64_t)rng_below(rng, half + 1);
    int64_t middle = used / 3 + (int64_t)rng_below(rng, (uint64_t)used / 3 + 1);
    uint64_t word = rng_below(rng, words);
    int64_t n_masked = 0;
    for (int64_t i = 0; i < used; i++) {
        bool is_word = i != 0 && i != middle && i + 1 != used;
        word = rng_below(rng, 10) != 0 ? (word * 31 + 7) % words : rng_below(rng, words);
        int64_t id = i == 0 ? TOKEN_CLS : is_word ? WORD_FIRST + (int64_t)word : TOKEN_SEP;
        bool is_masked = rng_below(rng, MASKED_ONE_IN) == 0;
        bool is_seen = rng_below(rng, SEEN_ONE_IN) == 0;
        parts[TOKENS_IDS][i] = id;
        parts[TOKENS_SEGMENTS][i] = i > middle;
        parts[TOKENS_MASK][i] = 1;
        if (is_word && is_masked && n_masked < form->predictions) {
            parts[TOKENS_POSITIONS][n_masked] = i;
            parts[TOKENS_MASKED][n_masked++] = id;
            parts[TOKENS_IDS][i] = is_seen ? id : TOKEN_MASK;
        }
    }
    parts[TOKENS_NEXT][0] = (int64_t)rng_below(rng, 2);
}

/* Which stretch of a step's samples: those of all ranks in each micro-batch. */
struct part {
    int64_t idx, n_parts;
};

/* As for images: all samples of the step are drawn, and one part is kept. */
static void token_batch(struct net *net, const struct model *model, struct part own,
                        struct rng *rng)
{
    int ids[TOKEN_PARTS];
    int64_t *batch[TOKEN_PARTS];
    for (enum token_part part = TOKENS_IDS; part < TOKEN_PARTS; part++) {
        ids[part] = graph_find(net->graph, token_part_name(part));
        const struct shape *shape = &net->graph->values[ids[part]].shape;
        batch[part] = xcalloc((size_t)(shape_count(shape) * own.n_parts), sizeof(int64_t));
    }
    const struct token_form form = {.sequence = net->graph->values[ids[TOKENS_IDS]].shape.dim[1],
                                    .predictions =
                                        net->graph->values[ids[TOKENS_MASKED]].shape.dim[1],
                                    .vocabulary = model->n_classes};
    int64_t n = net->graph->values[ids[TOKENS_IDS]].shape.dim[0];
    for (int64_t i = 0; i < n * own.n_parts; i++) {
        int64_t *parts[TOKEN_PARTS];
        for (enum token_part part = TOKENS_IDS; part < TOKEN_PARTS; part++) {
            parts[part] = batch[part] + i * token_part_count(&form, part);
        }
        draw_tokens(rng, &form, parts);
    }
    for (enum token_part part = TOKENS_IDS; part < TOKEN_PARTS; part++) {
        net_write(net, ids[part], batch[part] + own.idx * n * token_part_count(&form, part));
        free(batch[part]);
    }
}

/* pixels (N, 3, plane); labels (N), or one a pixel where is_dense. */
static void colour(double *pixels, const struct shape *shape, const int64_t *labels, bool is_dense)
{
    int64_t plane = shape->dim[2] * shape->dim[3];
    for (int64_t i = 0; i < shape_count(shape); i++) {
        int64_t channel = i / plane % shape->dim[1];
        int64_t n = i / plane / shape->dim[1];
        int64_t label = labels[is_dense ? n * plane + i % plane : n];
        double lift = (label >> channel & 1) != 0 ? LEARNABLE_LIFT : -LEARNABLE_LIFT;
        pixels[i] += label < LEARNABLE_CLASSES ? lift : 0.0; /* otherwise the ignored one */
    }
}

/* All samples of the step are drawn, labels first, and one part is kept: any number of ranks and micro-batches sees the same ones. */
static void image_batch(struct net *net, const struct model *model, struct part own,
                        struct rng *rng, bool is_learnable)
{
    int64_t n_classes = is_learnable ? LEARNABLE_CLASSES : model->n_classes;
    int input = graph_find(net->graph, "input");
    int labels = graph_find(net->graph, "labels");
    struct shape all = net->graph->values[labels].shape;
    int64_t n_pixels = shape_count(&net->graph->values[input].shape);
    int64_t n_labels = shape_count(&all);
    all.dim[0] *= own.n_parts;
    CLEANUP(free) double *pixels = xcalloc((size_t)n_pixels, sizeof(double));
    CLEANUP(free) int64_t *label = xcalloc((size_t)shape_count(&all), sizeof(int64_t));
    if (all.n_dims == 3) {
        draw_patches(rng, model, n_classes, &all, label);
    } else {
        for (int64_t i = 0; i < shape_count(&all); i++) {
            label[i] = draw_label(rng, model, n_classes);
        }
    }
    for (int64_t i = 0; i < own.idx * n_pixels; i++) {
        (void)rng_normal(rng);
    }
    for (int64_t i = 0; i < n_pixels; i++) {
        pixels[i] = rng_normal(rng);
    }
    if (is_learnable) {
        colour(pixels, &net->graph->values[input].shape, label + own.idx * n_labels,
               all.n_dims == 3);
    }
    net_write_f64(net, input, pixels);
    net_write(net, labels, label + own.idx * n_labels);
}

void synthetic_micro(struct net *net, const struct model *model, const struct synthetic *what)
{
    const struct graph_ranks *ranks = &net->graph->ranks;
    const struct part own = {.idx = what->micro * ranks->n_ranks + ranks->rank,
                             .n_parts = what->n_micro * ranks->n_ranks};
    struct rng rng;
    rng_init(&rng, what->seed);
    rng_init(&rng, rng_u64(&rng) ^ (uint64_t)what->idx);
    if (model->kind == MODEL_TOKENS) {
        token_batch(net, model, own, &rng);
    } else {
        image_batch(net, model, own, &rng, what->is_learnable);
    }
}

void synthetic_batch(struct net *net, const struct model *model, uint64_t seed, int64_t idx)
{
    synthetic_micro(net, model, &(struct synthetic){.seed = seed, .idx = idx, .n_micro = 1});
}

void set_step(struct net *net, int64_t step)
{
    int id = graph_find(net->graph, "step");
    if (id != NO_VALUE) {
        net_write(net, id, &step);
    }
}
